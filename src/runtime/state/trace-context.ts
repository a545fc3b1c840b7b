// The trace context of a run, for the parts that continue the trace: tools, model requests and children. It makes no
// spans.
import type { Session } from '../../kernel/session.ts'
import { traceIdOf } from '../../view/spans/span.ts'
import { readTraceparent, traceparentOf } from '../../view/spans/traceparent.ts'
import type { Services } from './runtime-ports.ts'

type TracedSession = { readonly id: string; readonly session: Pick<Session, 'run' | 'parent'> }

/**
 * The `traceparent` for work within a span of the open run. Without tracing there is no such span, and the traceparent
 * given to the run is passed on unchanged. Undefined if there is no trace to continue.
 */
export function traceparentIn(
  { traces }: Pick<Services, 'traces'>,
  { id, session: { run, parent } }: TracedSession,
  spanId: () => string,
): string | undefined {
  if (run === null) return undefined
  // A log may come from a file, so its traceparent may be unchecked.
  const given = run.traceparent === undefined ? null : readTraceparent(run.traceparent)
  if (traces === undefined) return given === null ? undefined : run.traceparent
  if (given !== null) return traceparentOf(given, spanId())
  // A child is in the trace of its root, which passes it on.
  if (!traces.propagate || parent !== null) return undefined
  return traceparentOf({ traceId: traceIdOf(id, run.seq), flags: '01' }, spanId())
}
