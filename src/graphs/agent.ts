// A graph as an agent: its model is the planner, its tools are the nodes. Everything else (admission, intents, approvals, recovery,
// children, forks) is what every agent has.
import { timeIn } from './time.ts'
import type { Outcome } from '../kernel/content.ts'
import type { Reply, Request } from '../ports/model.ts'
import type { Shared } from '../sessions/agent.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { limitsOf } from '../effects/limits.ts'
import { Toolbox } from '../effects/toolbox.ts'
import type { Tool } from '../tools/core/tool.ts'
import type { Agent } from '../engine/wiring.ts'
import { parsePolicy } from '../tools/policy/policy.ts'
import { toJson, toMermaid } from './draw.ts'
import type { Graph } from './definition.ts'
import { type Machine, type Planned, plan } from './plan.ts'
import { pointOf } from './checkpoint.ts'
import { finalized } from './finalize.ts'
import { askedIfUnknown, undoTool } from './undo.ts'

/** A graph goes further in one run than a model should. */
const TURNS_MAX = 1_000

export function graphAgent(graph: Graph, shared: Shared): Agent {
  const { name, nodes } = graph
  const limits = limitsOf({ modelRequests: TURNS_MAX, ...graph.limits })
  const tools = toolsOf(graph)
  const machine: Machine = { graph, width: limits.parallel }
  const planner = `graph:${name}`
  const policy = parsePolicy(shared.policy ?? { rules: [] })
  const environment = shared.environment ?? null
  const last = tools.get(graph.onInterrupt ?? '')
  const rules = { policy, environment }
  return {
    name,
    model: {
      name: planner,
      call: async (request, context) => replyOf(plan({ ...machine, now: timeIn(context) }, request.messages), request),
    },
    tools: new Toolbox({ tools: [...tools.values()], plan: false, clock: shared.clock }),
    // Frozen with each run, so a log says which graph it was.
    instructions: canonicalJson(toJson(graph)),
    limits,
    approvalMs: shared.approvalMs ?? null,
    policy,
    environment,
    output: null,
    // For models that its nodes ask: planning costs nothing, and what its children cost is theirs, and the tree's.
    budget: shared.budget ?? null,
    children: [...new Set([...nodes.values()].flatMap(({ child }) => child ?? []))],
    planner: {
      name: planner,
      verdict,
      draw: () => ({ json: toJson(graph), mermaid: toMermaid(graph) }),
      ...(last === undefined
        ? {}
        : {
            finalizer: {
              secrets: last.secrets,
              run: (messages, context) => finalized(machine, { tool: last, rules }, messages, context),
            },
          }),
    },
  }
}

/** The nodes, and what undoes them. */
function toolsOf({ nodes, onFailure }: Graph): ReadonlyMap<string, Tool> {
  const tools = new Map([...nodes].map(([node, step]) => [node, step.tool(node)]))
  for (const [node, by] of onFailure) {
    const step = nodes.get(node)
    const tool = by === true ? step && undoTool(node, step) : tools.get(by)
    if (tool) tools.set(tool.name, askedIfUnknown(tool))
  }
  return tools
}

function replyOf({ point, calls }: Planned, { seq }: Request): Reply {
  return {
    type: 'reply',
    parts: [{ type: 'text', text: canonicalJson(point) }],
    calls: calls.map(({ tool, args }, i) => ({ id: `call_${seq}_${i}`, tool, args: JSON.stringify(args) })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage: null,
  }
}

function verdict({ parts, calls }: Reply): ReturnType<NonNullable<Agent['planner']>['verdict']> {
  if (calls.length > 0) return { type: 'continue' }
  const { failed, state } = pointOf(parts)
  if (failed === undefined) return { type: 'final', output: state }
  const outcome: Outcome = { type: 'failed', reason: 'planner_failed', failure: { kind: 'Failed', message: failed } }
  return { type: 'stop', reason: failed, as: outcome }
}
