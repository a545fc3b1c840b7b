// What the tests of graphs share: a harness with graphs on a store of either kind, that is closed after the test, and looks at its
// log. Nothing is asserted here.
import type { EventOf } from '../../src/kernel/event.ts'
import { onTestFinished } from 'vitest'
import type { Event, HarnessOptions, Result, SessionHandle } from '../../src/index.ts'
import { Harness, scripted } from '../../src/index.ts'
import type { Graph } from '../../src/graphs/index.ts'

export { STORAGES, storeOf } from '../models/hosted-stage.ts'

/** The harness's own model is not used by a graph: it says so if it is asked. */
const NOBODY = scripted(() => 'Nobody asked me.')

export function withGraphs(graphs: readonly Graph[], options: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: NOBODY, secrets: {}, worker: { graceMs: 50 }, ...options, graphs })
  onTestFinished(() => harness.close())
  return harness
}

/** One graph, one input, in a new session. */
export async function runOf(
  graph: Graph,
  input: Parameters<Harness['run']>[0] = {},
  options: Partial<HarnessOptions> = {},
): Promise<{ readonly result: Result; readonly session: SessionHandle; readonly harness: Harness }> {
  const harness = withGraphs([graph], options)
  const result = await harness.run(input, { agent: graph.name })
  return { result, session: harness.session(result.sessionId), harness }
}

export async function eventsIn(session: SessionHandle): Promise<readonly Event[]> {
  return (await session.events()).events
}

export function ofType<T extends Event['type']>(events: readonly Event[], type: T) {
  return events.filter((event): event is EventOf<T> => event.type === type)
}

/** Which nodes were called in which turn. */
export async function turnsOf(session: SessionHandle): Promise<readonly (readonly string[])[]> {
  const replies = ofType(await eventsIn(session), 'agent.message')
  return replies.map(({ calls }) => calls.map(({ tool }) => tool))
}

/** The checkpoint that the last reply is. */
export async function pointIn(session: SessionHandle): Promise<{ readonly state: Record<string, unknown> }> {
  const part = ofType(await eventsIn(session), 'agent.message').at(-1)?.parts[0]
  return JSON.parse(part?.type === 'text' ? part.text : '{}') as { state: Record<string, unknown> }
}

export function failureIn(result: Result): string {
  return result.status === 'failed' ? `${result.stopReason}: ${result.failure.message}` : result.status
}
