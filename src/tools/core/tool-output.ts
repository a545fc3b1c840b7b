// The values that a handler may return: an envelope of content and metadata, or a failure that the model reads. Data
// only.
import type { FailureKind, Frozen, Json } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import { flagCheck, listCheck, requiredCheck, optionsChecker, objectCheck, textCheck } from '../../options.ts'
import type { OutputPart } from './file-part.ts'
import { firstNonJson, TOO_DEEP } from './plain-values.ts'
import { isObject } from '../../view/untrusted-json.ts'

/** Events that a call adds to its session in the same commit as its result: a later wake, or something learned. */
export type FollowEvent =
  | Extract<OwnerBody, { type: 'wake.scheduled' }>
  | (Extract<OwnerBody, { type: 'note.added' }> & { readonly kind: 'learning' })

/** The one shape of every result. `metadata` is for people and programs; the model reads `content`. */
export type OutputMetadata = { readonly [key: string]: Json }
/** What a tool returned, as hooks see it: what the model reads, and data beside it. */
export type Output = Frozen<
  {
    /** False: the model reads it as a failure. */
    ok: boolean
    /** What the model reads. */
    content: string
    /** Data for people and programs. The model does not read it. */
    metadata: OutputMetadata
  } & OutputExtras
>
/** `parts` are pictures and files that the model sees after the content, if it can. */
type OutputExtras = {
  /** Events that are added to the session in the same commit: later wakes, and learnings. */
  follows?: readonly FollowEvent[]
  /** Pictures and files that the model sees after the content, if it can. */
  parts?: readonly OutputPart[]
}

/** One shared object for all outputs without metadata, so that it is cheap to recognize. */
export const NO_OUTPUT_METADATA: OutputMetadata = Object.freeze({})

const LEVELS_MAX = 256

export function isMetadata(value: unknown): value is OutputMetadata {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

const MARK = Symbol('terret.output')

type OutputFields = {
  readonly ok?: boolean
  readonly content: string
  readonly metadata?: OutputMetadata
  readonly follows?: readonly FollowEvent[]
  readonly parts?: readonly OutputPart[]
}
const checkEnvelope = optionsChecker<OutputFields>('output', {
  ok: flagCheck,
  content: requiredCheck(textCheck),
  metadata: objectCheck,
  follows: listCheck(objectCheck),
  parts: listCheck(objectCheck),
})

/** Builds an envelope: content for the model, pictures and files after it, metadata beside it. */
export function output(envelope: OutputFields): Output {
  checkEnvelope(envelope)
  const { ok = true, content, metadata = NO_OUTPUT_METADATA, follows = [], parts = [] } = envelope
  const more = follows.length > 0 ? { follows: follows.map(checkFollow) } : {}
  const shown = parts.length > 0 ? { parts } : {}
  return Object.defineProperty({ ok, content, metadata, ...more, ...shown }, MARK, { value: true })
}

/**
 * Checks the event and copies only its known fields. Only marked outputs can carry events, so this is the one place
 * that checks them.
 */
function checkFollow(follow: FollowEvent): FollowEvent {
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

/** The largest time of a JavaScript date. */
const MOMENT_MAX = 8.64e15

function isMoment(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= MOMENT_MAX
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/**
 * Text becomes the content as it is; any other value becomes JSON with sorted keys, so that equal values read equal. A
 * value that JSON would lose silently, such as a Map, is refused: the call has run, and the model reads that its result
 * cannot be shown.
 */
export function toOutput(value: unknown): Output {
  if (typeof value === 'string') return { ok: true, content: value, metadata: NO_OUTPUT_METADATA }
  if (isOutput(value)) return value
  if (value === undefined) return { ok: true, content: '', metadata: NO_OUTPUT_METADATA }
  const lost = firstNonJson(value, LEVELS_MAX, true)
  if (lost !== null) {
    const hint = lost === TOO_DEEP ? 'Return less deeply nested JSON' : 'Return plain JSON or text'
    const content = `The tool ran, but its result holds ${lost}, which JSON cannot show. ${hint}; for the model: do not repeat the call only because of this.`
    return { ok: false, content, metadata: UNSHOWN }
  }
  return { ok: true, content: JSON.stringify(value, sortOwnKeys, 2) ?? '', metadata: NO_OUTPUT_METADATA }
}

const UNSHOWN: OutputMetadata = Object.freeze({ error_type: 'InvalidToolOutput' })

export function isUnshowable({ metadata }: Output): boolean {
  return metadata === UNSHOWN
}

/** The value that a tool's `output` schema checks. Of an envelope this is its content, parsed if it is JSON. */
export function valueToCheck(value: unknown): unknown {
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

function sortOwnKeys(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** A failure for the model: short, bounded, actionable. It never ends a run. */
export class ToolFailure extends Error {
  /** The kind of failure, which decides how it is classified. */
  readonly kind: FailureKind
  /** Data for people and programs. The model does not read it. */
  readonly metadata: OutputMetadata
  constructor(kind: FailureKind, message: string, metadata: OutputMetadata = {}) {
    super(message || kind)
    this.name = kind
    this.kind = kind
    this.metadata = metadata
  }
}

/** Thrown when a person must be asked first and nothing was changed yet. The harness asks, then runs the call again. */
export class ApprovalNeeded extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ApprovalNeeded'
  }
}

/**
 * Asks the model to correct its call and try again; counts against the tool's retries. Its metadata may name another
 * `error_type`.
 */
export class ModelRetry extends Error {
  /** Data for people and programs. The model does not read it. */
  readonly metadata: OutputMetadata
  constructor(message: string, metadata: OutputMetadata = NO_OUTPUT_METADATA) {
    super(message || 'Try again with other arguments.')
    this.name = 'ModelRetry'
    this.metadata = metadata
  }
}

/** Error codes that mean the request never left this machine. */
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

/** Whether the error's code or status says that a server is down for now. Words and causes are not examined. */
export function isServerAway(error: Error): boolean {
  const { code, status, statusCode } = error as { code?: unknown; status?: unknown; statusCode?: unknown }
  if (typeof code === 'string' && (UNSENT.has(code) || LOST.has(code))) return true
  const http = typeof status === 'number' ? status : statusCode
  if (typeof http === 'number') return http === 408 || http === 429 || (http >= 500 && http < 600)
  return error.name === 'TimeoutError'
}
