// The built-in workflows, and the harness options their sessions need. The agent name of a session tells its workflow, so any process
// can go on with it. The graphs are in src/workflows.
import type { HarnessOptions } from '../../index.ts'
import type { Event } from '../../kernel/index.ts'
import type { Graph, ReportState } from '../../graphs/index.ts'
import { oneLine } from '../present/clean.ts'
import { flowFor, flowOf, flowParts, type ModelOf, unused } from './flows.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { textOf } from '../../view/text.ts'

/** A built-in one, or that of a file by its agent, such as `flow-review`. */
export type Workflow = 'report' | 'report_with_model' | (string & {})

/** The workflow a session of this agent belongs to, also as one of its children. */
export function workflowOf(agent: string | undefined): Workflow | null {
  if (agent === undefined) return null
  if (agent === 'report') return 'report'
  const flow = flowOf(agent)
  if (flow !== null) return flow
  return /^report_(?:with_model|planner|writer|reviewer)$/.test(agent) ? 'report_with_model' : null
}

/** Sessions of the workflow itself, whose replies are checkpoints. Those of its children are not. */
export function isPlanned(agent: string): boolean {
  return agent === 'report' || agent === 'report_with_model' || flowOf(agent) === agent
}

/** The graphs of a folder. The user names the documents and the file, so they may lie outside of it. */
export async function graphsOf(folder: string): Promise<readonly Graph[]> {
  const { reportGraph, reportWithModelGraph } = await import('../../graphs/index.ts')
  const options = { root: folder, anywhere: true }
  return [reportGraph(options), reportWithModelGraph(options)]
}

/** The harness options besides the model. `modelOf` makes the models that a file names. */
export async function partsOf(
  workflow: Workflow,
  folder: string,
  modelOf: ModelOf = unused,
): Promise<Pick<HarnessOptions, 'graphs' | 'subagents'>> {
  if (flowOf(workflow) !== null) return flowParts(await flowFor(workflow, folder), modelOf)
  const graphs = await graphsOf(folder)
  if (workflow === 'report') return { graphs: graphs.filter(({ name }) => name === workflow) }
  const { reportAgents } = await import('../../graphs/index.ts')
  return { graphs, subagents: reportAgents }
}

/** The task of a session for people; for a report, its topic. */
export function taskText(said: string): string {
  if (!said.startsWith('{"topic":')) return said
  const { topic } = fieldsIn(said)
  return typeof topic === 'string' ? `report: ${topic}` : said
}

/** One node of the graph: its status and result. */
export type Stop = {
  readonly node: string
  readonly call: string
  readonly status: string
  readonly attempts: number
  readonly beganAt: number | null
  readonly durationMs: number | null
  readonly found: string
}
type Open = { -readonly [K in keyof Stop]: Stop[K] }
type Found = (node: string, state: Partial<ReportState>) => string

/** The nodes in the order they ran, from the log alone. */
export function stopsOf(events: readonly Event[], found: Found): readonly Stop[] {
  const stops: Open[] = []
  const byCall = new Map<string, Open>()
  let done: Open[] = []
  for (const event of events) {
    if (event.type === 'agent.message') {
      const state = stateOfReply(event) ?? {}
      for (const stop of done) stop.found = found(stop.node, state)
      done = []
      for (const [index, { tool, gate }] of event.calls.entries()) {
        const call = `${event.seq}.${index}`
        const before = stops.at(-1)
        const again = before?.node === tool && before.status !== 'ok'
        const stop: Open = again && before ? before : { node: tool, call, ...FRESH }
        if (!again) stops.push(stop)
        Object.assign(stop, { call, status: gate?.type === 'ask' ? 'waits' : 'open' })
        byCall.set(call, stop)
      }
    } else if (event.type === 'agent.tool_use' || event.type === 'agent.custom_tool_use') {
      const stop = byCall.get(event.call)
      if (stop) Object.assign(stop, { attempts: stop.attempts + 1, beganAt: stop.beganAt ?? event.at, status: 'runs' })
    } else if (event.type === 'agent.tool_result') {
      const stop = byCall.get(event.call)
      if (!stop) continue
      const durationMs = stop.beganAt === null ? null : event.at - stop.beganAt
      // A refused call ends as an error with the reason.
      const status = event.failure?.kind === 'Denied' ? 'denied' : event.status
      Object.assign(stop, { status, durationMs, found: failureOf(event) })
      if (event.status === 'ok') done.push(stop)
    }
  }
  return stops
}

const FRESH = { status: 'open', attempts: 0, beganAt: null, durationMs: null, found: '' } as const

/** The state of a workflow, from its last reply. */
export function stateIn(events: readonly Event[]): Partial<ReportState> | null {
  const last = events.findLast((event) => event.type === 'agent.message')
  return last?.type === 'agent.message' ? stateOfReply(last) : null
}

export function stateOfReply({
  parts,
}: Pick<Extract<Event, { type: 'agent.message' }>, 'parts'>): Partial<ReportState> | null {
  const { state } = fieldsIn(textOf(parts)) as { readonly state?: Partial<ReportState> }
  return state ?? null
}

/** The replies of a workflow are checkpoints for programs. */
export function isCheckpoint(reply: Parameters<typeof stateOfReply>[0]): boolean {
  const [part] = reply.parts
  return (
    part?.type === 'text' &&
    /^\{"(?:arrived|calls|failed|reached|state)":/.test(part.text) &&
    stateOfReply(reply) !== null
  )
}

/** Why a node failed, or why it was stopped. */
export function failureOf({ status, content, failure }: Extract<Event, { type: 'agent.tool_result' }>): string {
  if (status === 'ok') return ''
  const said = typeof content === 'string' ? content : (failure?.message ?? '')
  const { error } = fieldsIn(said)
  return oneLine(typeof error === 'string' ? error : said, 400)
}

/** The fields of a JSON object; none if it is not one. */
function fieldsIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
