// Writes spans as lines of JSON and reads them back. It touches no files: local-traces.ts does.
import type { Attributes, Span } from '../view/spans/span.ts'

/** A span as a line of a local trace. */
export type SpanRecord = {
  readonly type: 'span'
  readonly trace_id: string
  readonly span_id: string
  readonly parent_id: string | null
  readonly name: string
  readonly kind: Span['kind']
  readonly started_at: string
  readonly ended_at: string | null
  readonly duration_ms: number | null
  readonly attributes: Attributes
  readonly status: Span['status']
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
