// Finalizes a graph whose run was stopped: the planner works out the last state, and the node `onInterrupt` runs on it.
// The node only reads, so it may run again after a crash; its output is recorded with the end of the run.
import { storeTime } from './time.ts'
import type { Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import { toOutput } from '../tools/core/tool-output.ts'
import { judgeCall } from '../tools/policy/policy.ts'
import type { Tool, ToolContext } from '../tools/core/tool.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { applyWrites } from './channel.ts'
import { GraphError } from './error.ts'
import { type PlannerSetup, planNextCalls } from './graph-planner.ts'
import { plainJson } from './plain-json.ts'
import { decodeOutput, isCommand, type NodeOutput, nodeOutputOf } from './planner-node.ts'

type FinalizerRules = Pick<Agent, 'policy' | 'environment'>

/** The state after the finalizer. Throws if the finalizer fails, or if a rule does not let it run. */
export async function finalizeGraph(
  machine: PlannerSetup,
  { tool, rules }: { readonly tool: Tool; readonly rules: FinalizerRules },
  messages: readonly Message[],
  context: ToolContext,
): Promise<Json> {
  const { channels, nodes } = machine.graph
  const { state } = planNextCalls({ ...machine, now: storeTime(context) }, messages).point
  const [args] = nodes.get(tool.name)?.args(state) ?? []
  const written = isCommand(args)
    ? nodeOutputOf(args)
    : await callFinalizer(tool, rules, plainJson(args ?? {}, 'the arguments'), context)
  return applyWrites(channels, state, [{ node: tool.name, task: 0, update: written.update }])
}

async function callFinalizer(
  tool: Tool,
  { policy, environment }: FinalizerRules,
  args: Json,
  context: ToolContext,
): Promise<NodeOutput> {
  const place = {
    ...(environment === null ? {} : { environment }),
    ...(tool.root === undefined ? {} : { root: tool.root }),
  }
  const judged = await judgeCall(policy, { tool: tool.name, args, effect: 'read', approval: 'auto', ...place })
  if (judged.type !== 'allow') throw new GraphError(`The rules do not let the finalizer "${tool.name}" run.`)
  const { ok, content } = toOutput(await tool.execute(args, context))
  if (!ok) throw new GraphError(`The finalizer "${tool.name}" failed: ${content}`)
  return decodeOutput(JSON.parse(content) as Json)
}
