// The last word of a graph whose run was stopped: the planner is asked once more where it stands, and the node `onInterrupt` runs over
// that state. It only reads, so it may run again after a crash; what it comes to is recorded with the end of the run.
import { timeIn } from './time.ts'
import type { Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import { envelopeOf } from '../tools/core/output.ts'
import { judgeCall } from '../tools/policy/policy.ts'
import type { Tool, ToolContext } from '../tools/core/tool.ts'
import type { Agent } from '../engine/wiring.ts'
import { reduced } from './channel.ts'
import { GraphError } from './error.ts'
import { type Machine, plan } from './plan.ts'
import { plainJson } from './plain.ts'
import { decoded, isCommand, type Written, writtenOf } from './step.ts'

type Rules = Pick<Agent, 'policy' | 'environment'>

/** The state after the finalizer. Throws if it failed, or a rule does not let it run. */
export async function finalized(
  machine: Machine,
  { tool, rules }: { readonly tool: Tool; readonly rules: Rules },
  messages: readonly Message[],
  context: ToolContext,
): Promise<Json> {
  const { channels, nodes } = machine.graph
  const { state } = plan({ ...machine, now: timeIn(context) }, messages).point
  const [args] = nodes.get(tool.name)?.args(state) ?? []
  const written = isCommand(args)
    ? writtenOf(args)
    : await ran(tool, rules, plainJson(args ?? {}, 'the arguments'), context)
  return reduced(channels, state, [{ node: tool.name, task: 0, update: written.update }])
}

async function ran(tool: Tool, { policy, environment }: Rules, args: Json, context: ToolContext): Promise<Written> {
  const place = {
    ...(environment === null ? {} : { environment }),
    ...(tool.root === undefined ? {} : { root: tool.root }),
  }
  const judged = await judgeCall(policy, { tool: tool.name, args, effect: 'read', approval: 'auto', ...place })
  if (judged.type !== 'allow') throw new GraphError(`The rules do not let the finalizer "${tool.name}" run.`)
  const { ok, content } = envelopeOf(await tool.execute(args, context))
  if (!ok) throw new GraphError(`The finalizer "${tool.name}" failed: ${content}`)
  return decoded(JSON.parse(content) as Json)
}
