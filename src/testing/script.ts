// What a chaos script is made of: what the model says, what the provider answers instead, and how the answer goes wrong on
// its way. Types and small makers; how they become bytes is said elsewhere.
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

/** `rawArgs` is sent as it is, also where it is no JSON. An id that is not given is made from the request's number. */
export type ChaosCall = Frozen<{ tool: string; args?: Json; rawArgs?: string; id?: string }>

/**
 * Messages signs its thinking (`signature`) or hides it (`redacted`), Responses encrypts it (`encrypted`). What is not given is
 * made up. Chat sends `reasoning_content`, or OpenRouter's `reasoning_details` once a signature is given.
 */
export type ChaosReasoning = string | Frozen<{ text: string; signature?: string; encrypted?: string; redacted?: true }>

/** What the model says, encoded in the dialect it is asked in. */
export type ChaosSaid = Frozen<{
  text?: string
  reasoning?: ChaosReasoning
  calls?: readonly ChaosCall[]
  /** Made from the sizes of question and answer where it is not given. */
  usage?: Usage
  finish?: 'stop' | 'length' | 'refusal'
  /** Into how many pieces the text, the reasoning and the arguments of each call are cut. Default 1. */
  deltas?: number
  model?: string
  chaos?: Mischief
}>

export type TroubleName =
  | ('overloaded' | 'rate_limited' | 'overflow' | 'unauthorized' | 'quota')
  | ('server_error' | 'bad_request' | 'not_found')

/** The provider answers with trouble. A name stands for the status and the body that this provider has for it. */
export type ChaosTrouble = Frozen<{
  status: number | TroubleName
  /** In the place of the provider's own. A string is sent as it is. */
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
  /** Says nothing more after so many bytes; with 0 not even the head is sent. Then it goes on, after `stallMs` or never. */
  stallAfterBytes?: number
  stallMs?: number
  /** Destroys the socket after so many bytes; with 0 there is no answer at all. */
  cutAfterBytes?: number
  /** One byte at a time, with so much time between them. */
  dripMs?: number
  /** Writes of so many bytes, whatever they tear apart. */
  splitBytes?: number
  /** Flips all bits of this byte. */
  corruptAt?: number
  gzip?: true

  /** Comments, pings and events that nobody knows, in between. */
  junk?: true
  /** The provider reports an error in the stream, after so many events. */
  errorAfter?: number
  /** The stream ends as if it were whole, without the provider's own end. */
  noEnd?: true
  /** After the first event nothing but signs of life, every `dripMs` (default 20 ms), for ever. */
  pingsOnly?: true
  /** The first piece of text again and again, for ever. */
  endless?: true
  /** One line of so many bytes, in an event that nobody knows. */
  hugeLine?: number
  redirectTo?: string

  /** Not said, nonsense (below zero, beyond what a number holds), or said three times in one stream. */
  wrongUsage?: 'missing' | 'absurd' | 'triple'
  /** All calls of one reply have the id of the first. */
  duplicateIds?: true
  blankIds?: true
  /** The finish that is reported in the place of the true one. A word of no dialect is sent as it is. */
  finish?: string
}>

/** What was received. The values of headers that hold keys are not kept. */
export type ChaosRequest = Frozen<{
  dialect: Dialect
  path: string
  headers: Readonly<Record<string, string>>
  /** Null if it was no JSON. */
  body: Json
  at: number
  /** The rule it broke, with `strict`. It was refused and took no reply of the script. */
  refused?: string
}>

/** In order, or by what is asked. A list that ran out and a function that throws answer 400, so that a test fails loudly. */
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
/** What a script answers with. */
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

/** The money is used up: it does not get better by waiting. */
export function quota(): ChaosTrouble {
  return { status: 'quota' }
}

export function serverError(): ChaosTrouble {
  return { status: 'server_error' }
}
