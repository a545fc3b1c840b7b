// Builds the agent of a graph: the planner stands in for its model, and the nodes are its tools. Admission, intents,
// approvals, recovery, children and forks work as for every agent.
import { storeTime } from './time.ts'
import type { Outcome } from '../kernel/content.ts'
import type { Reply, Request } from '../ports/model.ts'
import type { SharedAgentOptions } from '../sessions/agent.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { completeLimits } from '../runtime/state/limits.ts'
import { Toolbox } from '../runtime/state/toolbox.ts'
import type { Tool } from '../tools/core/tool.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { agentApprovals } from '../runtime/state/agent-approvals.ts'
import { toJson, toMermaid } from './draw.ts'
import type { Graph } from './graph-definition.ts'
import { type PlannerSetup, type PlannerReply, planNextCalls } from './graph-planner.ts'
import { readCheckpoint } from './checkpoint.ts'
import { finalizeGraph } from './finalize-graph.ts'
import { askIfUnknown, undoTool } from './undo-graph.ts'

/** A graph may need more turns in one run than a model should. */
const TURNS_MAX = 1_000

export function graphAgent(graph: Graph, shared: SharedAgentOptions): Agent {
  const { name, nodes } = graph
  const limits = completeLimits({ modelRequests: TURNS_MAX, ...graph.limits })
  const tools = toolsOfGraph(graph)
  const machine: PlannerSetup = { graph, width: limits.parallel }
  const planner = `graph:${name}`
  const approvals = agentApprovals(shared.approvals)
  const last = tools.get(graph.onInterrupt ?? '')
  return {
    name,
    model: {
      name: planner,
      call: async (request, context) =>
        replyFromPlan(planNextCalls({ ...machine, now: storeTime(context) }, request.messages), request),
    },
    tools: new Toolbox({ tools: [...tools.values()], plan: false, clock: shared.clock }),
    // The graph is frozen with each run, so the log shows which version ran.
    instructions: canonicalJson(toJson(graph)),
    limits,
    ...approvals,
    output: null,
    // Planning is free. The budget is for the models that the nodes start as children; their spending counts for the
    // whole tree.
    budget: shared.budget ?? null,
    children: [...new Set([...nodes.values()].flatMap(({ child }) => child ?? []))],
    planner: {
      name: planner,
      verdict: judgeGraphReply,
      draw: () => ({ json: toJson(graph), mermaid: toMermaid(graph) }),
      ...(last === undefined
        ? {}
        : {
            finalizer: {
              secrets: last.secrets,
              run: (messages, context) => finalizeGraph(machine, { tool: last, rules: approvals }, messages, context),
            },
          }),
    },
  }
}

/** The tools of the nodes, and the tools that undo them. */
function toolsOfGraph({ nodes, onFailure }: Graph): ReadonlyMap<string, Tool> {
  const tools = new Map([...nodes].map(([node, step]) => [node, step.tool(node)]))
  for (const [node, by] of onFailure) {
    const step = nodes.get(node)
    const tool = by === true ? step && undoTool(node, step) : tools.get(by)
    if (tool) tools.set(tool.name, askIfUnknown(tool))
  }
  return tools
}

function replyFromPlan({ point, calls }: PlannerReply, { seq }: Request): Reply {
  return {
    type: 'reply',
    parts: [{ type: 'text', text: canonicalJson(point) }],
    calls: calls.map(({ tool, args }, i) => ({ id: `call_${seq}_${i}`, tool, args: JSON.stringify(args) })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage: null,
  }
}

function judgeGraphReply({ parts, calls }: Reply): ReturnType<NonNullable<Agent['planner']>['verdict']> {
  if (calls.length > 0) return { type: 'continue' }
  const { failed, state } = readCheckpoint(parts)
  if (failed === undefined) return { type: 'final', output: state }
  const outcome: Outcome = { type: 'failed', reason: 'planner_failed', failure: { kind: 'Failed', message: failed } }
  return { type: 'stop', reason: failed, as: outcome }
}
