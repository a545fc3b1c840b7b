// Sends traces to a collector, as OTLP over HTTP with JSON. Nothing else: no gRPC, no protobuf, no sampling.
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import { nonEmptyCheck, optionsChecker, objectCheck, tableCheck, textCheck, waitCheck } from '../options.ts'
import { encodeSpans } from './otlp-encode.ts'
import { type PostAnswer, type HttpClient, openHttpClient, postOnce } from './http-post.ts'
import type { Capture } from '../view/spans/span.ts'
import { captureCheck, type ExportContext, type Sink } from './sink.ts'

/** Options of `otlp`: the collector, its headers, and what is captured. */
export type OtlpOptions = {
  /**
   * The collector's address; `/v1/traces` is added. Default: the variables of OpenTelemetry, then
   * `http://localhost:4318`.
   */
  readonly endpoint?: string
  /** In addition to those in `OTEL_EXPORTER_OTLP_HEADERS`. Put the key of the trace store here. */
  readonly headers?: Readonly<Record<string, string>>
  /** Which texts are sent. Default `none`. */
  readonly capture?: Capture
  /** For one request. Default: 10,000. */
  readonly timeoutMs?: number
  /** Default: `OTEL_SERVICE_NAME`, or `terret`. */
  readonly service?: string
  /** Where the variables of OpenTelemetry are looked for. Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const DEFAULT_ENDPOINT = 'http://localhost:4318'
const TRACES_PATH = '/v1/traces'
const BODY_BYTES_MAX = 4 * 1_024 * 1_024
const TRIES_MAX = 5
const BACKOFF_MS = 1_000
const WAIT_MS_MAX = 30_000
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

const checkOptions = optionsChecker<OtlpOptions>('otlp', {
  endpoint: textCheck,
  headers: tableCheck(textCheck),
  capture: captureCheck,
  timeoutMs: waitCheck,
  service: nonEmptyCheck,
  env: objectCheck,
})

/** A sink that sends spans to a collector of OpenTelemetry, over HTTP. */
export function otlp(options: OtlpOptions = {}): Sink {
  checkOptions(options)
  const env = options.env ?? process.env
  const { capture = 'none', timeoutMs = 10_000, service = env['OTEL_SERVICE_NAME'] || 'terret' } = options
  const url = urlOf(options.endpoint, env)
  const headers = { ...headersOf(env), ...lowerCaseKeys(options.headers ?? {}), 'content-type': 'application/json' }
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value)
  let door: HttpClient | null = null
  return {
    name: `collector at ${url.host}`,
    capture,
    async export(spans, context) {
      door ??= openHttpClient(url.protocol)
      for (const body of encodeSpans(spans, { service, texts: context.texts, bytesMax: BODY_BYTES_MAX })) {
        await deliver({ door, url, headers, body, timeoutMs, jitter: jitterOf(spans[0]?.traceId ?? '') }, context)
      }
    },
    async close() {
      door?.agent.destroy()
    },
  }
}

type Delivery = {
  readonly door: HttpClient
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs: number
  readonly jitter: number
}

/** Sends until the collector accepts it, refuses it for good, or the tries are used up. */
async function deliver(delivery: Delivery, { clock, signal }: ExportContext): Promise<void> {
  for (let tries = 1; ; tries++) {
    const heard = await tryDelivery(delivery, clock, signal)
    if (heard.type === 'taken') return
    signal.throwIfAborted()
    if (heard.type === 'refused' || tries >= TRIES_MAX)
      throw new Fault('io_error', `The collector at ${delivery.url.host} ${heard.why} (tried ${tries} times).`)
    const backoff = BACKOFF_MS * 2 ** (tries - 1) * delivery.jitter
    await sleep(clock, Math.min(heard.afterMs ?? backoff, WAIT_MS_MAX), signal)
  }
}

type DeliveryAnswer =
  | { readonly type: 'taken' }
  | { readonly type: 'refused'; readonly why: string }
  | { readonly type: 'again'; readonly why: string; readonly afterMs: number | null }

async function tryDelivery({ door, url, headers, body, timeoutMs }: Delivery, clock: Clock, signal: AbortSignal) {
  const late = new AbortController()
  const cancel = clock.timer(timeoutMs, () => late.abort())
  try {
    return interpretAnswer(await postOnce(door, { url, headers, body, signal: AbortSignal.any([signal, late.signal]) }))
  } catch {
    const why = late.signal.aborted ? `did not answer within ${timeoutMs} ms` : 'could not be reached'
    return { type: 'again', why, afterMs: null } as const
  } finally {
    cancel()
  }
}

function interpretAnswer({ status, retryAfterMs, body }: PostAnswer): DeliveryAnswer {
  const why = `answered ${status}`
  if (RETRYABLE.has(status)) return { type: 'again', why, afterMs: retryAfterMs }
  if (status < 200 || status >= 300) return { type: 'refused', why }
  const rejected = rejectedIn(body)
  return rejected > 0 ? { type: 'refused', why: `rejected ${rejected} spans` } : { type: 'taken' }
}

/** A partly accepted request must not be sent again. */
function rejectedIn(body: string): number {
  try {
    const said = JSON.parse(body) as { readonly partialSuccess?: { readonly rejectedSpans?: string | number } } | null
    return Number(said?.partialSuccess?.rejectedSpans ?? 0)
  } catch {
    return 0
  }
}

/** Spreads the retries of several clients. Derived from the trace id, which is as good as random. */
function jitterOf(traceId: string): number {
  return 0.5 + (Number.parseInt(traceId.slice(0, 4), 16) || 0) / 0x1_ffff
}

function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(new Error('The export was stopped.'))
    }
    const cancel = clock.timer(ms, () => {
      signal.removeEventListener('abort', stop)
      resolve()
    })
    signal.addEventListener('abort', stop, { once: true })
  })
}

function urlOf(endpoint: string | undefined, env: Readonly<Record<string, string | undefined>>): URL {
  const exact = endpoint === undefined ? env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] : undefined
  const given = exact || endpoint || env['OTEL_EXPORTER_OTLP_ENDPOINT'] || DEFAULT_ENDPOINT
  const url = URL.canParse(given) ? new URL(given) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Fault('invalid_config', 'The address of the collector must begin with http:// or https://.')
  if (!exact && !url.pathname.endsWith(TRACES_PATH)) url.pathname = `${url.pathname.replace(/\/+$/, '')}${TRACES_PATH}`
  return url
}

/** `name=value,name=value`, as OpenTelemetry writes them. The headers for traces replace the general ones. */
function headersOf(env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  const text = env['OTEL_EXPORTER_OTLP_TRACES_HEADERS'] || env['OTEL_EXPORTER_OTLP_HEADERS'] || ''
  const pairs = text.split(',').flatMap((pair) => {
    const at = pair.indexOf('=')
    return at > 0 ? [[pair.slice(0, at).trim(), decodePercent(pair.slice(at + 1).trim())] as const] : []
  })
  return lowerCaseKeys(Object.fromEntries(pairs))
}

function decodePercent(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

function lowerCaseKeys(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** The message leaves out the value, because it may be a key. */
function checkHeader(name: string, value: string): void {
  if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && !/[^\t\x20-\x7e\x80-\xff]/.test(value)) return
  throw new Fault('invalid_config', `The header ${JSON.stringify(name)} for the collector cannot be sent over HTTP.`)
}
