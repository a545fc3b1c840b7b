// Where in a trace the work of a run stands, for those that go on with it: tools, model requests and children. It makes no spans.
import type { Session } from '../kernel/session.ts'
import { traceIdOf } from '../view/spans/span.ts'
import { readTraceparent, traceparentOf } from '../view/spans/traceparent.ts'
import type { Services } from '../engine/wiring.ts'

type Place = { readonly id: string; readonly session: Pick<Session, 'run' | 'parent'> }

/**
 * The `traceparent` for what happens within a span of the open run. Without tracing there is no such span: then it is the one that the
 * run was given, passed on as it came. Undefined if there is no trace to go on with.
 */
export function traceparentIn(
  { traces }: Pick<Services, 'traces'>,
  { id, session: { run, parent } }: Place,
  spanId: () => string,
): string | undefined {
  if (run === null) return undefined
  // A log may come from a file: what stands there was perhaps never checked.
  const given = run.traceparent === undefined ? null : readTraceparent(run.traceparent)
  if (traces === undefined) return given === null ? undefined : run.traceparent
  if (given !== null) return traceparentOf(given, spanId())
  // A child is in the trace of its root, which tells it.
  if (!traces.propagate || parent !== null) return undefined
  return traceparentOf({ traceId: traceIdOf(id, run.seq), flags: '01' }, spanId())
}
