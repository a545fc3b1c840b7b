// The parts of a chaos script: replies of the model, errors of the provider, and damage in transit. Types and small
// constructors; other files turn them into bytes.
import type { Frozen, Json, Usage } from '../kernel/content.ts'
import {
  anyCheck,
  type Check,
  countCheck,
  flagCheck,
  listCheck,
  msCheck,
  requiredCheck,
  oneOf,
  objectCheck,
  tableCheck,
  textCheck,
  optionsCheck,
} from '../options.ts'

/** The protocol in which a request came. */
export type Dialect = 'messages' | 'responses' | 'chat'

/** A call of the model. */
export type ChaosCall = Frozen<{
  /** The name of the tool. */
  tool: string
  /** The arguments. Default: an empty object. */
  args?: Json
  /** Sent unchanged in place of `args`, even if it is not JSON. */
  rawArgs?: string
  /** The id of the call. Default: one made from the number of the request. */
  id?: string
}>

/**
 * Messages signs its thinking (`signature`) or hides it (`redacted`), Responses encrypts it (`encrypted`). Missing values are
 * generated. Chat sends `reasoning_content`, or OpenRouter's `reasoning_details` once a signature is given.
 */
export type ChaosReasoning = string | Frozen<{ text: string; signature?: string; encrypted?: string; redacted?: true }>

/** A reply of the model, encoded in the dialect of the request. */
export type ChaosModelReply = Frozen<{
  /** The text of the reply. Default: none. */
  text?: string
  /** The thoughts before it. Default: none. */
  reasoning?: ChaosReasoning
  /** The calls that the model asks for. Default: none. */
  calls?: readonly ChaosCall[]
  /** Default: computed from the sizes of request and reply. */
  usage?: Usage
  /** Why the model stopped. Default: what follows from the calls. */
  finish?: 'stop' | 'length' | 'refusal'
  /** The number of pieces for the text, the reasoning and the arguments of each call. Default 1. */
  deltas?: number
  /** The name of the model in the answer. Default: the one that was asked for. */
  model?: string
  /** What goes wrong while the answer is sent. Default: nothing. */
  chaos?: ChaosDamage
}>

/** The kinds of refusal that a script can name. */
export type TroubleName =
  | ('overloaded' | 'rate_limited' | 'overflow' | 'unauthorized' | 'quota')
  | ('server_error' | 'bad_request' | 'not_found')

/** An error of the provider. A name stands for the status and body this provider uses for it. */
export type ChaosTrouble = Frozen<{
  /** The status of the answer, or a name for what this provider sends. */
  status: number | TroubleName
  /** Replaces the provider's body. A string is sent unchanged. */
  body?: Json
  /** Seconds, as the header `retry-after`. */
  retryAfter?: number
  /** More headers of the answer. */
  headers?: Readonly<Record<string, string>>
  /** What goes wrong while the answer is sent. Default: nothing. */
  chaos?: ChaosDamage
}>

/** A plain string is a text. */
export type ChaosReply = string | ChaosModelReply | ChaosTrouble

/** Positions and lengths are bytes of the body as sent. Nothing here is random. */
export type ChaosDamage = Frozen<{
  /** Stalls after so many bytes; with 0 even before the headers. Goes on after `stallMs`, or never. */
  stallAfterBytes?: number
  /** How long it stalls, in ms. Default: for ever. */
  stallMs?: number
  /** Destroys the socket after so many bytes; with 0 there is no answer at all. */
  cutAfterBytes?: number
  /** Sends one byte at a time, or `splitBytes`, with this much time between them. */
  dripMs?: number
  /** Writes this many bytes at a time, also in the middle of a character. */
  splitBytes?: number
  /** Flips all bits of this byte. */
  corruptAt?: number
  /** Compresses the body. */
  gzip?: true

  /** Comments, pings and unknown events in between. */
  junk?: true
  /** The provider reports an error in the stream, after so many events. */
  errorAfter?: number
  /** The stream ends normally, but without the provider's end event. */
  noEnd?: true
  /** After the first event sends only pings, every `dripMs` (default 20 ms), for ever. */
  pingsOnly?: true
  /** Repeats the first piece of text for ever. */
  endless?: true
  /** One line of so many bytes, in an unknown event. */
  hugeLine?: number
  /** Answers with a redirect to this address, and with nothing else. */
  redirectTo?: string

  /** Missing, nonsense (negative, or too large for a number), or sent three times in one stream. */
  wrongUsage?: 'missing' | 'absurd' | 'triple'
  /** All calls of one reply have the id of the first. */
  duplicateIds?: true
  /** All calls of one reply have an empty id. */
  blankIds?: true
  /** Replaces the true finish reason. An unknown word is sent unchanged. */
  finish?: string
}>

/** A received request, without the values of headers that hold keys. */
export type ChaosRequest = Frozen<{
  /** The protocol in which the request came. */
  dialect: Dialect
  /** The path of the request, which tells the protocol. */
  path: string
  /** Its headers, without the values of those that hold keys. */
  headers: Readonly<Record<string, string>>
  /** Null if it was not JSON. */
  body: Json
  /** When it came, in ms by the clock of the server. */
  at: number
  /** With `strict`: the broken rule. The request was refused and used no reply of the script. */
  refused?: string
}>

/**
 * Replies in order, or by a function of the request. If the list is used up or the function throws, the server answers
 * 400, so that the test fails.
 */
export type ChaosScript =
  | readonly ChaosReply[]
  | ((request: ChaosRequest, n: number) => ChaosReply | Promise<ChaosReply>)

const damageCheck = optionsCheck<ChaosDamage>({
  stallAfterBytes: countCheck(),
  stallMs: msCheck,
  cutAfterBytes: countCheck(),
  dripMs: msCheck,
  splitBytes: countCheck(1),
  corruptAt: countCheck(),
  gzip: flagCheck,
  junk: flagCheck,
  errorAfter: countCheck(),
  noEnd: flagCheck,
  pingsOnly: flagCheck,
  endless: flagCheck,
  hugeLine: countCheck(),
  redirectTo: textCheck,
  wrongUsage: oneOf<NonNullable<ChaosDamage['wrongUsage']>>({ missing: true, absurd: true, triple: true }),
  duplicateIds: flagCheck,
  blankIds: flagCheck,
  finish: textCheck,
})
const modelReplyCheck = optionsCheck<ChaosModelReply>({
  text: textCheck,
  reasoning: anyCheck,
  calls: listCheck(
    optionsCheck<ChaosCall>({ tool: requiredCheck(textCheck), args: anyCheck, rawArgs: textCheck, id: textCheck }),
  ),
  usage: objectCheck,
  finish: oneOf<NonNullable<ChaosModelReply['finish']>>({ stop: true, length: true, refusal: true }),
  deltas: countCheck(1),
  model: textCheck,
  chaos: damageCheck,
})
const troubleCheck = optionsCheck<ChaosTrouble>({
  status: requiredCheck(anyCheck),
  body: anyCheck,
  retryAfter: msCheck,
  headers: tableCheck(textCheck),
  chaos: damageCheck,
})
/** Checks a reply of a script. */
export const replyCheck: Check = (value, name, of) => {
  if (typeof value === 'string') return null
  return (value !== null && typeof value === 'object' && 'status' in value ? troubleCheck : modelReplyCheck)(
    value,
    name,
    of,
  )
}

export function isChaosTrouble(reply: ChaosModelReply | ChaosTrouble): reply is ChaosTrouble {
  return 'status' in reply
}

/** Sends 529 as Anthropic, 503 as the others. */
export function overloadedError(): ChaosTrouble {
  return { status: 'overloaded' }
}

/** A provider that asks to wait, for so many seconds if it says so. */
export function rateLimitError(seconds?: number): ChaosTrouble {
  return seconds === undefined ? { status: 'rate_limited' } : { status: 'rate_limited', retryAfter: seconds }
}

/** The prompt is longer than the context window. */
export function overflowError(): ChaosTrouble {
  return { status: 'overflow' }
}

/** A provider that does not take the key. */
export function unauthorizedError(): ChaosTrouble {
  return { status: 'unauthorized' }
}

/** The account is empty: waiting does not help. */
export function quotaError(): ChaosTrouble {
  return { status: 'quota' }
}

/** A provider that fails on its own. */
export function serverError(): ChaosTrouble {
  return { status: 'server_error' }
}
