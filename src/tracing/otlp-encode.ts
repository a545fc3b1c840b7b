// Encodes spans as OTLP/JSON: ids in hex, times as strings of nanoseconds, enumerations as numbers. Pure; otlp.ts
// sends.
import type { Json } from '../kernel/content.ts'
import { CONTENT, ERROR_TYPE, GEN_AI, TERRET } from '../view/spans/attribute-names.ts'
import type { Attributes, Span } from '../view/spans/span.ts'

const KINDS = { internal: 1, client: 3 } as const
const ERROR = 2
/** Always encoded as fractions: an attribute that is sometimes an integer breaks the columns of some databases. */
const FRACTIONS: ReadonlySet<string> = new Set([TERRET.costUsd])
/** The conventions want a list, because several answers may be requested at once. Here it is always one. */
const LISTS: ReadonlySet<string> = new Set([GEN_AI.finishReasons])

/** The request bodies: one, unless it would be larger than `bytesMax`. OTLP has no form for a span without an end. */
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
    attributes: encodeAttributes({ ...span.attributes, ...frozenTexts(span, texts) }),
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

/** A collector cannot look up hashes, so a run's own span contains its instructions and tools, once for each run. */
function frozenTexts({ attributes }: Span, texts: ReadonlyMap<string, string>): Attributes {
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
