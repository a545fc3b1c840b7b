// Writes spans as lines of JSON and reads them back. It touches no files: local-traces.ts does.
import type { Attributes, Span } from '../view/spans/span.ts'

/** A span as a line of a local trace. */
export type SpanRecord = {
  /** Tells a span from records of other kinds. */
  readonly type: 'span'
  /** The trace: one for each run of a root session with everything below it. */
  readonly trace_id: string
  /** The id of the span. Of two records with one id the later one counts. */
  readonly span_id: string
  /** The span that it is a part of. Null for the first of a trace. */
  readonly parent_id: string | null
  /** What the span is about, such as a model or a tool. */
  readonly name: string
  /** `client` for requests to a model, `internal` for everything else. */
  readonly kind: Span['kind']
  /** When it began, as an ISO date. */
  readonly started_at: string
  /** When it ended, as an ISO date. Null while it is open. */
  readonly ended_at: string | null
  /** How long it took, in ms. Null while it is open. */
  readonly duration_ms: number | null
  /** Facts about the span, by the names of OpenTelemetry. */
  readonly attributes: Attributes
  /** `error` if it failed. */
  readonly status: Span['status']
  /** What went wrong in it, in order. Times are ISO dates. */
  readonly exceptions: readonly { readonly at: string; readonly type: string; readonly message?: string }[]
}

export function recordOf(span: Span): SpanRecord {
  const { startedAt, endedAt } = span
  return {
    type: 'span',
    trace_id: span.traceId,
    span_id: span.spanId,
    parent_id: span.parentId,
    name: span.name,
    kind: span.kind,
    started_at: iso(startedAt),
    ended_at: endedAt === null ? null : iso(endedAt),
    duration_ms: endedAt === null ? null : endedAt - startedAt,
    attributes: span.attributes,
    status: span.status,
    exceptions: span.exceptions.map(({ at, ...rest }) => ({ at: iso(at), ...rest })),
  }
}

/** Skips lines that a crash cut off; of two records of a span the later one counts. */
export function recordsIn(data: Uint8Array): readonly SpanRecord[] {
  const found = new Map<string, SpanRecord>()
  for (const line of new TextDecoder().decode(data).split('\n')) {
    const record = parseRecord(line)
    if (record) found.set(record.span_id, record)
  }
  return [...found.values()]
}

function parseRecord(line: string): SpanRecord | null {
  try {
    const value = JSON.parse(line) as Partial<SpanRecord> | null
    return value?.type === 'span' && typeof value.span_id === 'string' ? (value as SpanRecord) : null
  } catch {
    return null
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
