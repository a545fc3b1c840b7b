// The built-in workflows, and the harness options of their sessions. The agent name of a session identifies its
// workflow, so any process can continue it. The graphs of the report are those of the demonstration.
import type { HarnessOptions } from '../../index.ts'
import type { Graph } from '../../graphs/index.ts'
import { readAgentFlow, flowOf, flowParts, type ModelOf, offlineModel } from './workflow-files.ts'
import { isObject, parseJson } from '../../view/untrusted-json.ts'

/** A built-in workflow, or the agent of a workflow from a file, such as `flow-review`. */
export type WorkflowName = 'report' | 'report_with_model' | (string & {})

/** The workflow of a session with this agent, also if it is one of the workflow's children. */
export function workflowOfAgent(agent: string | undefined): WorkflowName | null {
  if (agent === undefined) return null
  if (agent === 'report') return 'report'
  const flow = flowOf(agent)
  if (flow !== null) return flow
  return /^report_(?:with_model|planner|writer|reviewer)$/.test(agent) ? 'report_with_model' : null
}

/** True for sessions of the workflow itself, whose replies are checkpoints. Sessions of its children do not count. */
export function isWorkflowAgent(agent: string): boolean {
  return agent === 'report' || agent === 'report_with_model' || flowOf(agent) === agent
}

/**
 * The built-in graphs for a folder. The user names the documents and the output file, so these may be outside of it.
 */
export async function builtInGraphs(folder: string): Promise<readonly Graph[]> {
  const { reportGraph, reportWithModelGraph } = await import('../demo/report/report-graph.ts')
  const options = { root: folder, anywhere: true }
  return [reportGraph(options), reportWithModelGraph(options)]
}

/** The harness options except the model. `modelOf` makes the models that a file names. */
export async function workflowParts(
  workflow: WorkflowName,
  folder: string,
  modelOf: ModelOf = offlineModel,
): Promise<Pick<HarnessOptions, 'graphs' | 'subagents'>> {
  if (flowOf(workflow) !== null) return flowParts(await readAgentFlow(workflow, folder), modelOf)
  const graphs = await builtInGraphs(folder)
  if (workflow === 'report') return { graphs: graphs.filter(({ name }) => name === workflow) }
  const { reportAgents } = await import('../demo/report/report-graph.ts')
  return { graphs, subagents: reportAgents }
}

/** The task of a session for people; for a report, its topic. */
export function taskText(said: string): string {
  if (!said.startsWith('{"topic":')) return said
  const fields = parseJson(said)
  const topic = isObject(fields) ? fields['topic'] : undefined
  return typeof topic === 'string' ? `report: ${topic}` : said
}
