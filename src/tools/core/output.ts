// What a handler may give back: an envelope of content and metadata, or a failure the model can read. Data only.
import type { FailureKind, Frozen, Json } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import { flag, listOf, needed, optionsOf, record, text } from '../../options.ts'
import type { OutputPart } from './file-part.ts'
import { firstNonJson, TOO_DEEP } from './plain.ts'
import { isObject } from '../../view/json.ts'

/** What a call adds to its session beside its result, in the same commit: a later look at it, or something learned. */
export type Follow =
  | Extract<OwnerBody, { type: 'wake.scheduled' }>
  | (Extract<OwnerBody, { type: 'note.added' }> & { readonly kind: 'learning' })

/** The one shape every result has. `metadata` is for people and programs; the model reads `content`. */
export type Metadata = { readonly [key: string]: Json }
export type Output = Frozen<{ ok: boolean; content: string; metadata: Metadata } & Beside>
/** `parts` are pictures and files that the model sees after the content, where it can. */
type Beside = { follows?: readonly Follow[]; parts?: readonly OutputPart[] }

/** One object for all that have none, so that it is cheap to tell. */
export const NO_METADATA: Metadata = Object.freeze({})

const LEVELS_MAX = 256

export function isMetadata(value: unknown): value is Metadata {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

const MARK = Symbol('terret.output')

type Given = {
  readonly ok?: boolean
  readonly content: string
  readonly metadata?: Metadata
  readonly follows?: readonly Follow[]
  readonly parts?: readonly OutputPart[]
}
const checkEnvelope = optionsOf<Given>('output', {
  ok: flag,
  content: needed(text),
  metadata: record,
  follows: listOf(record),
  parts: listOf(record),
})

/** An envelope of one's own: content for the model, pictures and files after it, metadata beside it. */
export function output(envelope: Given): Output {
  checkEnvelope(envelope)
  const { ok = true, content, metadata = NO_METADATA, follows = [], parts = [] } = envelope
  const more = follows.length > 0 ? { follows: follows.map(followOf) } : {}
  const shown = parts.length > 0 ? { parts } : {}
  return Object.defineProperty({ ok, content, metadata, ...more, ...shown }, MARK, { value: true })
}

/** As the log will have it, and nothing else of it. Only what has the mark is looked at for these, so all are checked here. */
function followOf(follow: Follow): Follow {
  if (follow.type === 'wake.scheduled') {
    const { type, due, reason, key, urgent } = follow
    const wake = { type, due, reason, key } as const
    if (isMoment(due) && isText(reason) && isText(key)) return urgent ? { ...wake, urgent: true } : wake
    throw new TypeError('A wake has a time, a reason and a key.')
  }
  const { type, kind, text } = follow
  if (type === 'note.added' && kind === 'learning' && isText(text)) return { type, kind, text }
  throw new TypeError('A call may add wakes and learnings to its session, and nothing else.')
}

/** As far as a date goes. */
const MOMENT_MAX = 8.64e15

function isMoment(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= MOMENT_MAX
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/**
 * Text is content as it is; any other value is JSON with sorted keys, so that equal values read equal. What JSON would lose
 * without a word, such as a Map, is refused: the call has run, and the model is told that its result cannot be shown.
 */
export function envelopeOf(value: unknown): Output {
  if (isOutput(value)) return value
  if (typeof value === 'string') return { ok: true, content: value, metadata: NO_METADATA }
  if (value === undefined) return { ok: true, content: '', metadata: NO_METADATA }
  const lost = firstNonJson(value, LEVELS_MAX, true)
  if (lost !== null) {
    const hint = lost === TOO_DEEP ? 'Return less deeply nested JSON' : 'Return plain JSON or text'
    const content = `The tool ran, but its result holds ${lost}, which JSON cannot show. ${hint}; for the model: do not repeat the call only because of this.`
    return { ok: false, content, metadata: UNSHOWN }
  }
  return { ok: true, content: JSON.stringify(value, sorted, 2) ?? '', metadata: NO_METADATA }
}

const UNSHOWN: Metadata = Object.freeze({ error_type: 'InvalidToolOutput' })

export function isUnshown({ metadata }: Output): boolean {
  return metadata === UNSHOWN
}

/** What the promise of a tool is about: of an envelope its content, as JSON where it is that. */
export function promisedIn(value: unknown): unknown {
  if (!isOutput(value)) return value
  try {
    return JSON.parse(value.content)
  } catch {
    return value.content
  }
}

function isOutput(value: unknown): value is Output {
  return value !== null && typeof value === 'object' && MARK in value
}

function sorted(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** What went wrong, for the model: short, bounded, actionable. It never ends a run. */
export class ToolFailure extends Error {
  readonly kind: FailureKind
  readonly metadata: Metadata
  constructor(kind: FailureKind, message: string, metadata: Metadata = {}) {
    super(message || kind)
    this.name = kind
    this.kind = kind
    this.metadata = metadata
  }
}

/** A person must be asked first, and nothing was changed yet: the harness asks, and then runs the call again. */
export class ApprovalNeeded extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ApprovalNeeded'
  }
}

/** The model should correct its call and try again: counts against the tool's retries. Its metadata may name another `error_type`. */
export class ModelRetry extends Error {
  readonly metadata: Metadata
  constructor(message: string, metadata: Metadata = NO_METADATA) {
    super(message || 'Try again with other arguments.')
    this.name = 'ModelRetry'
    this.metadata = metadata
  }
}

/** Nothing has left this machine. */
export const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

const LOST: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENETDOWN',
  'EHOSTDOWN',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** Whether an error says that a server on the network is away for now, by codes and never by words. Its cause is not looked at. */
export function isAway(error: Error): boolean {
  const { code, status, statusCode } = error as { code?: unknown; status?: unknown; statusCode?: unknown }
  if (typeof code === 'string' && (UNSENT.has(code) || LOST.has(code))) return true
  const http = typeof status === 'number' ? status : statusCode
  if (typeof http === 'number') return http === 408 || http === 429 || (http >= 500 && http < 600)
  return error.name === 'TimeoutError'
}
