// Spans as OTLP/JSON: ids in hex, times as strings of nanoseconds, enumerations as numbers. Pure; sending is otlp.ts.
import type { Json } from '../kernel/content.ts'
import { CONTENT, ERROR_TYPE, GEN_AI, TERRET } from '../view/spans/names.ts'
import type { Attributes, Span } from '../view/spans/span.ts'

const KINDS = { internal: 1, client: 3 } as const
const ERROR = 2
/** Whole amounts too: an attribute that is now a number and now a fraction breaks the columns of some databases. */
const FRACTIONS: ReadonlySet<string> = new Set([TERRET.costUsd])
/** The conventions want a list, since a model may be asked for several answers at once. Here it is asked for one. */
const LISTS: ReadonlySet<string> = new Set([GEN_AI.finishReasons])

/** The bodies to send: one unless it would be larger than `bytesMax`. OTLP has no form for a span without an end. */
export function encodeSpans(
  spans: readonly Span[],
  { service, texts, bytesMax }: { service: string; texts: ReadonlyMap<string, string>; bytesMax: number },
): readonly string[] {
  const bodies: string[] = []
  let batch: string[] = []
  let bytes = 0
  const finish = (): void => {
    if (batch.length > 0) bodies.push(bodyOf(service, batch))
    batch = []
    bytes = 0
  }
  for (const span of spans) {
    if (span.endedAt === null) continue
    const text = JSON.stringify(encodeSpan(span, span.endedAt, texts))
    const size = Buffer.byteLength(text)
    if (bytes + size > bytesMax) finish()
    batch.push(text)
    bytes += size
  }
  finish()
  return bodies
}

function bodyOf(service: string, spans: readonly string[]): string {
  const resource = JSON.stringify({ attributes: encodeAttributes({ 'service.name': service }) })
  const scope = JSON.stringify({ name: 'terret' })
  return `{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"scope":${scope},"spans":[${spans.join(',')}]}]}]}`
}

function encodeSpan(span: Span, endedAt: number, texts: ReadonlyMap<string, string>): Json {
  const { traceId, spanId, parentId, name, kind, startedAt, status, exceptions } = span
  const errorType = span.attributes[ERROR_TYPE]
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: encodeAttributes({ ...span.attributes, ...named(span, texts) }),
    events: exceptions.map(({ at, type, message }) => ({
      timeUnixNano: nanoseconds(at),
      name: 'exception',
      attributes: encodeAttributes({
        'exception.type': type,
        ...(message === undefined ? {} : { 'exception.message': message }),
      }),
    })),
    status: status === 'error' ? { code: ERROR, message: String(errorType ?? 'error') } : {},
  }
}

/** A collector has no folder to look hashes up in: a run's own span carries its instructions and tools, once a run. */
function named({ attributes }: Span, texts: ReadonlyMap<string, string>): Attributes {
  const instructions = texts.get(String(attributes[TERRET.instructionsHash] ?? ''))
  const toolset = texts.get(String(attributes[TERRET.toolsetHash] ?? ''))
  return {
    ...(instructions === undefined || instructions === ''
      ? {}
      : { [CONTENT.instructions]: JSON.stringify([{ type: 'text', content: instructions }]) }),
    ...(toolset === undefined ? {} : { [CONTENT.toolDefinitions]: toolset }),
  }
}

function encodeAttributes(attributes: Attributes): Json {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: encodeValue(key, value) }))
}

function encodeValue(key: string, value: string | number | boolean): Json {
  if (LISTS.has(key)) return { arrayValue: { values: [{ stringValue: String(value) }] } }
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isInteger(value) && !FRACTIONS.has(key) ? { intValue: String(value) } : { doubleValue: value }
}

function nanoseconds(ms: number): string {
  return (BigInt(Math.round(ms)) * 1_000_000n).toString()
}
