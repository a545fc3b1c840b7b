// The parts of a chaos script: replies of the model, errors of the provider, and damage on the way. Types and small constructors;
// other files make bytes of them.
import type { Frozen, Json, Usage } from '../kernel/content.ts'
import {
  anything,
  type Check,
  count,
  flag,
  listOf,
  ms,
  needed,
  oneOf,
  record,
  tableOf,
  text,
  within,
} from '../options.ts'

export type Dialect = 'messages' | 'responses' | 'chat'

/** `rawArgs` is sent unchanged, even if it is not JSON. A missing id is made from the number of the request. */
export type ChaosCall = Frozen<{ tool: string; args?: Json; rawArgs?: string; id?: string }>

/**
 * Messages signs its thinking (`signature`) or hides it (`redacted`), Responses encrypts it (`encrypted`). Missing values are
 * generated. Chat sends `reasoning_content`, or OpenRouter's `reasoning_details` once a signature is given.
 */
export type ChaosReasoning = string | Frozen<{ text: string; signature?: string; encrypted?: string; redacted?: true }>

/** A reply of the model, encoded in the dialect of the request. */
export type ChaosSaid = Frozen<{
  text?: string
  reasoning?: ChaosReasoning
  calls?: readonly ChaosCall[]
  /** Default: computed from the sizes of request and reply. */
  usage?: Usage
  finish?: 'stop' | 'length' | 'refusal'
  /** The number of pieces for the text, the reasoning and the arguments of each call. Default 1. */
  deltas?: number
  model?: string
  chaos?: Mischief
}>

export type TroubleName =
  | ('overloaded' | 'rate_limited' | 'overflow' | 'unauthorized' | 'quota')
  | ('server_error' | 'bad_request' | 'not_found')

/** An error of the provider. A name stands for the status and body this provider uses for it. */
export type ChaosTrouble = Frozen<{
  status: number | TroubleName
  /** Replaces the provider's body. A string is sent unchanged. */
  body?: Json
  /** Seconds, as the header `retry-after`. */
  retryAfter?: number
  headers?: Readonly<Record<string, string>>
  chaos?: Mischief
}>

/** A plain string is a text. */
export type ChaosReply = string | ChaosSaid | ChaosTrouble

/** Bytes are those of the body as sent. Nothing here depends on chance. */
export type Mischief = Frozen<{
  /** Stalls after so many bytes; with 0 even before the head. Goes on after `stallMs`, or never. */
  stallAfterBytes?: number
  stallMs?: number
  /** Destroys the socket after so many bytes; with 0 there is no answer at all. */
  cutAfterBytes?: number
  /** One byte at a time, or `splitBytes`, with so much time between them. */
  dripMs?: number
  /** Writes of so many bytes, also in the middle of a character. */
  splitBytes?: number
  /** Flips all bits of this byte. */
  corruptAt?: number
  gzip?: true

  /** Comments, pings and unknown events in between. */
  junk?: true
  /** The provider reports an error in the stream, after so many events. */
  errorAfter?: number
  /** The stream ends normally, but without the provider's end event. */
  noEnd?: true
  /** After the first event only pings, every `dripMs` (default 20 ms), for ever. */
  pingsOnly?: true
  /** The first piece of text again and again, for ever. */
  endless?: true
  /** One line of so many bytes, in an unknown event. */
  hugeLine?: number
  redirectTo?: string

  /** Missing, nonsense (negative, or too large for a number), or sent three times in one stream. */
  wrongUsage?: 'missing' | 'absurd' | 'triple'
  /** All calls of one reply have the id of the first. */
  duplicateIds?: true
  blankIds?: true
  /** Replaces the true finish reason. An unknown word is sent unchanged. */
  finish?: string
}>

/** A received request, without the values of headers that hold keys. */
export type ChaosRequest = Frozen<{
  dialect: Dialect
  path: string
  headers: Readonly<Record<string, string>>
  /** Null if it was not JSON. */
  body: Json
  at: number
  /** With `strict`: the broken rule. The request was refused and used no reply of the script. */
  refused?: string
}>

/** Replies in order, or by a function of the request. A used-up list or a throwing function answers 400, so that the test fails. */
export type ChaosScript =
  | readonly ChaosReply[]
  | ((request: ChaosRequest, n: number) => ChaosReply | Promise<ChaosReply>)

const mischief = within<Mischief>({
  stallAfterBytes: count(),
  stallMs: ms,
  cutAfterBytes: count(),
  dripMs: ms,
  splitBytes: count(1),
  corruptAt: count(),
  gzip: flag,
  junk: flag,
  errorAfter: count(),
  noEnd: flag,
  pingsOnly: flag,
  endless: flag,
  hugeLine: count(),
  redirectTo: text,
  wrongUsage: oneOf<NonNullable<Mischief['wrongUsage']>>({ missing: true, absurd: true, triple: true }),
  duplicateIds: flag,
  blankIds: flag,
  finish: text,
})
const said = within<ChaosSaid>({
  text,
  reasoning: anything,
  calls: listOf(within<ChaosCall>({ tool: needed(text), args: anything, rawArgs: text, id: text })),
  usage: record,
  finish: oneOf<NonNullable<ChaosSaid['finish']>>({ stop: true, length: true, refusal: true }),
  deltas: count(1),
  model: text,
  chaos: mischief,
})
const trouble = within<ChaosTrouble>({
  status: needed(anything),
  body: anything,
  retryAfter: ms,
  headers: tableOf(text),
  chaos: mischief,
})
/** An answer of a script. */
export const replyCheck: Check = (value, name, of) => {
  if (typeof value === 'string') return null
  return (value !== null && typeof value === 'object' && 'status' in value ? trouble : said)(value, name, of)
}

export function isTrouble(reply: ChaosSaid | ChaosTrouble): reply is ChaosTrouble {
  return 'status' in reply
}

/** 529 of Anthropic, 503 of the others. */
export function overloaded(): ChaosTrouble {
  return { status: 'overloaded' }
}

export function rateLimited(seconds?: number): ChaosTrouble {
  return seconds === undefined ? { status: 'rate_limited' } : { status: 'rate_limited', retryAfter: seconds }
}

/** The prompt is longer than the context window. */
export function overflow(): ChaosTrouble {
  return { status: 'overflow' }
}

export function unauthorized(): ChaosTrouble {
  return { status: 'unauthorized' }
}

/** The account is empty: waiting does not help. */
export function quota(): ChaosTrouble {
  return { status: 'quota' }
}

export function serverError(): ChaosTrouble {
  return { status: 'server_error' }
}
