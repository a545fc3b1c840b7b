// The built-in workflows, and the harness options their sessions need. The agent name of a session tells its workflow, so any process
// can go on with it. The graphs are in src/workflows.
import type { HarnessOptions } from '../../index.ts'
import type { Graph } from '../../graphs/index.ts'
import { flowFor, flowOf, flowParts, type ModelOf, unused } from './flows.ts'
import { isObject, parsed } from '../../view/json.ts'

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
  const fields = parsed(said)
  const topic = isObject(fields) ? fields['topic'] : undefined
  return typeof topic === 'string' ? `report: ${topic}` : said
}
