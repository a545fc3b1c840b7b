// Turns a provider's HTTP status, error body and retry hints into one class of failure. Pure.
import type { ProviderFailureClass } from '../../kernel/content.ts'
import type { ModelFailure } from '../../ports/model.ts'

export type ProviderTrouble = {
  readonly status?: number
  /** The provider's own type or code of the error, such as `overloaded_error`. */
  readonly code?: string
  readonly message: string
  readonly retryAfterMs?: number
}

const RETRYABLE: ReadonlySet<ProviderFailureClass> = new Set(['rate_limit', 'server', 'network', 'timeout'])
const MESSAGE_CHARS_MAX = 1_000

export function failure(kind: ProviderFailureClass, message: string, retryAfterMs?: number): ModelFailure {
  const text = message.trim().slice(0, MESSAGE_CHARS_MAX) || kind
  const plain = { type: 'failure', class: kind, message: text, retryable: RETRYABLE.has(kind) } as const
  return retryAfterMs === undefined ? plain : { ...plain, retryAfterMs }
}

export function failureFromTrouble(trouble: ProviderTrouble): ModelFailure {
  const { status, code, message, retryAfterMs } = trouble
  const said = [status === undefined ? null : `HTTP ${status}`, code || null, message || null].filter(
    (part) => part !== null,
  )
  return failure(classifyTrouble(trouble), said.join(': '), retryAfterMs)
}

/** By the provider's error code, then by the status, then by the text. */
function classifyTrouble({ status, code = '', message }: ProviderTrouble): ProviderFailureClass {
  if (OVERFLOW.test(code) || OVERFLOW_SAID.test(message)) return 'overflow'
  // An empty account is reported as 429 or 400, and waiting does not help.
  if (BROKE.test(code) || BROKE_SAID.test(message)) return 'auth'
  const named = WORDS.find(([pattern]) => pattern.test(code))?.[1]
  // A status that means that the request will never succeed counts for more than a code that blames the server.
  if (named && !(named === 'server' && PERMANENT.has(status ?? 0))) return named
  const told = status ?? statusIn(message)
  if (told !== undefined) return classOfStatus(told)
  return SAID.find(([pattern]) => pattern.test(message))?.[1] ?? 'other'
}

type ClassPatterns = readonly (readonly [RegExp, ProviderFailureClass])[]

const OVERFLOW = /context_length_exceeded|string_above_max_length|request_too_large|exceed_context_size/
const OVERFLOW_SAID = new RegExp(
  [
    'prompt is too long|maximum (context|prompt) length|context window|available context size',
    'input length and .max_tokens. exceed|too many tokens in (the )?(prompt|input)',
    'input token count .{0,40}exceeds|reduce the length of the (messages|prompt)',
  ].join('|'),
  'i',
)
const BROKE = /insufficient_quota|billing|credit/i
const BROKE_SAID = /credit balance is too low|insufficient (balance|credits)|exceeded your current quota/i

const WORDS: ClassPatterns = [
  [/rate_limit|resource_exhausted|too_many_requests/i, 'rate_limit'],
  [/overloaded|server_error|api_error|internal|unavailable|timeout/i, 'server'],
  [/authentication|permission|invalid_api_key|unauthorized|unauthenticated/i, 'auth'],
  [/not_found|invalid_request|invalid_prompt|bad_request|invalid_argument/i, 'bad_request'],
]

/** Used only if the provider sent neither a code nor a status. */
const SAID: ClassPatterns = [
  [/rate limit|too many requests/i, 'rate_limit'],
  [/overloaded|temporarily unavailable|internal server error/i, 'server'],
  [/invalid api key|unauthori[sz]ed/i, 'auth'],
]

/** A number counts as a status only if the text names it as one: not `4290 tokens` or `500 ms`. */
function statusIn(message: string): number | undefined {
  const found = /\b(?:HTTP|status)(?: code)?[ :=/]{1,3}([45]\d\d)\b(?!\.\d)/i.exec(message)
  return found ? Number(found[1]) : undefined
}

/** The same request fails later too: it is wrong, or the server cannot answer it. */
const PERMANENT: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 405, 410, 413, 422, 501, 505])
/** Statuses below 500 that may pass: the request came too late, during a lock, or too early. */
const PASSING: ReadonlySet<number> = new Set([408, 409, 425])

function classOfStatus(status: number): ProviderFailureClass {
  if (status === 429) return 'rate_limit'
  if (status === 401 || status === 402 || status === 403) return 'auth'
  if (status === 413) return 'overflow'
  if (PASSING.has(status) || (status >= 500 && !PERMANENT.has(status))) return 'server'
  return status >= 400 ? 'bad_request' : 'other'
}

/** The code and message of an error body, in any form that providers use; else its first characters. */
export function readTrouble(body: string): Pick<ProviderTrouble, 'code' | 'message'> {
  try {
    const parsed: unknown = JSON.parse(body)
    const outer = Array.isArray(parsed) ? (parsed[0] as unknown) : parsed
    const error = isObjectOrList(outer) ? (outer['error'] ?? outer) : outer
    if (typeof error === 'string') return { message: error }
    if (isObjectOrList(error)) {
      const code = [error['code'], error['type'], error['status']].find((value) => typeof value === 'string')
      const message = error['message'] ?? error['detail']
      return {
        ...(typeof code === 'string' ? { code } : {}),
        message: typeof message === 'string' ? message : body.slice(0, 300),
      }
    }
  } catch {}
  return { message: body.trim().slice(0, 300) }
}

/** The error in a body that came with a status of success; null if there is none. */
export function readErrorBody(body: string): ModelFailure | null {
  const { code, message } = readTrouble(body)
  // A message that only repeats the beginning of the body is not an error message.
  if (message === '' || body.trim().startsWith(message.trim())) return null
  const failed = failureFromTrouble(code === undefined ? { message } : { code, message })
  return failed.class === 'other' ? failure('server', failed.message) : failed
}

/** No run waits longer than this. */
export const RETRY_MS_MAX = 30 * 24 * 3_600_000

/**
 * The header gives milliseconds, seconds, or a date. A date counts from the date of the answer, so by the provider's
 * own clock.
 */
export function readRetryAfter(headers: Readonly<Record<string, string>>): { readonly retryAfterMs?: number } {
  const { 'retry-after-ms': inMs = '', 'retry-after': after = '', date = '' } = headers
  const ms = inMs === '' ? Number.NaN : Number(inMs)
  const seconds = after === '' ? Number.NaN : Number(after)
  const until = Date.parse(after) - Date.parse(date)
  const wait = [ms, seconds * 1_000, until].find(Number.isFinite) ?? Number.NaN
  return wait >= 0 ? { retryAfterMs: Math.min(wait, RETRY_MS_MAX) } : {}
}

export function isObjectOrList(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object'
}
