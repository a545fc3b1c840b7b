// An agent as a run sees it, with its defaults filled in, and the agent of a session now. What a host writes is checked
// in sessions/agent.ts.
import type { Reply, Model, AnswerSettings } from '../../ports/model.ts'
import type { Verdict, Json, Limits, Narrowing, Outcome, Part } from '../../kernel/content.ts'
import type { Message } from '../../kernel/transcript.ts'
import type { ToolContext } from '../../tools/core/tool-context.ts'
import type { Tool } from '../../tools/core/tool.ts'
import type { Toolbox } from './toolbox.ts'
import type { Policy } from '../../tools/policy/policy.ts'
import type { OutputPlan } from '../../models/structured-output.ts'
import type { Tier } from './model-tiers.ts'
import type { UnknownTool } from '../../tools/core/admit.ts'
import { assert } from '../../kernel/failure.ts'
import type { Session } from '../../kernel/session.ts'

/**
 * Answers turns instead of a language model, and decides itself what its replies mean. The planner's `call` is the
 * agent's model.
 */
export type Planner = {
  /** Recorded in `session.created`, such as `graph:report`. */
  readonly name: string
  verdict(reply: Reply): Verdict
  /**
   * Whether a reply repeats everything that later replies need. What is older than its request is then cut from the
   * transcript. Absent: no reply does.
   */
  readonly isCheckpoint?: (parts: readonly Part[]) => boolean
  /** For people and programs that look at the planner. Absent: there is nothing to draw. */
  readonly draw?: () => PlannerDrawing
  /** Absent: a stopped run ends without an output of its own. */
  readonly finalizer?: Finalizer
  /** Its replies may send messages to other sessions. Absent: they do not. */
  readonly leads?: true
  /**
   * Each reply holds all that the next one needs. Once the conversation has more messages than this, those before the
   * last request are cut from it.
   */
  readonly keeps?: number
  /**
   * Its calls are those of a model, so the limits of a narrowed run hold for it too, except those on requests. Absent:
   * its calls are its host's program.
   */
  readonly bounded?: true
  /**
   * What its parent reads of a run that ended without an answer, made of the last reply. Absent: the reply as it is.
   */
  readonly describeUnfinished?: (reply: string, outcome: Outcome) => string
}

/** A graph: `json` for programs, and the source of a Mermaid picture. */
export type PlannerDrawing = { readonly json: Json; readonly mermaid: string }

/** Called when a run is stopped: its value is the output of that run. It only reads. */
export type Finalizer = {
  readonly secrets: readonly string[]
  run(messages: readonly Message[], context: ToolContext): Promise<Json>
}

/**
 * How much results are shortened: `light` only reformats, `full` also leaves out, `auto` is `light` for agents that
 * write code.
 */
export type Compression = 'auto' | 'full' | 'light'

/** Ways to shorten fresh results, in this order. An absent one is off. */
export type ResultShortening = {
  readonly compression?: Compression
  /** The content router looks at results of at least this many bytes. Absent: of a few hundred. */
  readonly fromBytes?: number
  /** A model summarises results above the first number of tokens, down to the second. */
  readonly summarize?: { readonly fromTokens: number; readonly toTokens: number }
  /** No result has more bytes than this. */
  readonly bytes?: number
}

export type Agent = {
  readonly name: string
  /**
   * Reads content that a context shows only in part. A model gets this tool once its context names it, and not before.
   * Unset where it is denied.
   */
  readonly retrieve?: Tool
  readonly model: Model
  /** The models that its tools ask on their own, whose keys are secrets. Absent: none. */
  readonly asks?: readonly Model[]
  /** Answer settings of this run, which override the model's own. */
  readonly settings?: AnswerSettings
  readonly tools: Toolbox
  readonly instructions: string
  readonly limits: Limits
  readonly approvalMs: number | null
  readonly policy: Policy
  readonly environment: string | null
  /** Null: any text is an answer. */
  readonly output: OutputPlan | null
  /** Null: no budget limits it. */
  readonly budget: Budget | null
  /** In dollars: what its sessions and their children may spend in a day, whatever the harness says. */
  readonly ownDay?: number
  /** The same for another model, which may have to be asked in another way. Absent where no run can choose its model. */
  readonly outputFor?: (model: Model) => OutputPlan | null
  /** The agents it may start as children, by name. */
  readonly children: readonly string[]
  /** The agents that single tools of it start, whatever `children` says. Absent: none. */
  readonly starts?: readonly string[]
  /** Absent: it may start any of its children, and be started by any. */
  readonly tier?: Tier
  /** Absent: no own limit on how much of its answer its parent reads. */
  readonly maxResultChars?: number
  /** Null: a language model. Notices, breakers and prefix rules are for those alone. */
  readonly planner: Planner | null
  /** Absent: `return`, for both. */
  readonly unknownTool?: UnknownTool | undefined
  readonly toolErrors?: 'return' | 'fail' | undefined
  /** Absent: results are as their tools return them. */
  readonly shortening?: ResultShortening
  /** Absent: `keep`. */
  readonly prefix?: 'keep' | 'follow' | undefined
}

/** The model that writes summaries for an agent: the route's, or the agent's own. */
export function summarizerOf(
  { route }: { readonly route?: ((workload: 'summarization') => Model | null) | undefined },
  { model }: Agent,
): Model {
  return route?.('summarization') ?? model
}

/** The agents of a harness. */
type AgentsByName = { readonly agent: (name: string) => Agent }

/**
 * The agent that drives this session now: its own, or the variant that the open run's options made, which was read
 * before the run went on. An imported run is driven by the session's own agent until it was reviewed.
 */
export function agentOfRun(services: AgentsByName, { session, varied }: DrivenRun): Agent {
  const { run } = session
  if (run?.options === undefined || run.foreign) return agentOfSession(services, session)
  assert(varied?.options === run.options, 'a run goes on without its options')
  return varied.agent
}

/** The agent of a session, with tools that work where the session does: a child may have a folder, or paths, of its own. */
export function agentOfSession(services: AgentsByName, { agent: name, parent, folder }: Session): Agent {
  const agent = services.agent(name)
  const { owns } = parent ?? {}
  if (parent === null || (folder === undefined && owns === undefined)) return agent
  const known = relocatedAgents.get(agent) ?? new Map<string, Agent>()
  relocatedAgents.set(agent, known)
  const place = JSON.stringify([folder, owns])
  const root = { ...(folder === undefined ? {} : { folder }), ...(owns ? { claims: { own: owns, others: [] } } : {}) }
  const found = known.get(place) ?? { ...agent, tools: agent.tools.rooted(root) }
  // The most recently used entry is dropped last.
  known.delete(place)
  known.set(place, found)
  const [oldest] = known.keys()
  if (known.size > RELOCATED_KEPT && oldest !== undefined) known.delete(oldest)
  return found
}
const relocatedAgents = new WeakMap<Agent, Map<string, Agent>>()
const RELOCATED_KEPT = 32

type DrivenRun = { readonly session: Session; readonly varied: RunVariant | null }
/** `below`: the bounds of the sessions that the run starts. */
export type RunVariant = { readonly options: string; readonly agent: Agent; readonly below?: Narrowing }

/** The name of whatever answers the turns of an agent's sessions, as it is recorded. */
export function plannerName(services: AgentsByName, agent: string): string {
  return services.agent(agent).planner?.name ?? 'model'
}

/** In dollars. A call that could exceed any of these is not made. */
export type Budget = {
  /** What one run may spend, in dollars. */
  readonly runUsd?: number
  /** What one session may spend in all its runs, in dollars. */
  readonly sessionUsd?: number
  /** A session and all its children, by their root. */
  readonly treeUsd?: number
  /** All sessions of this agent in the store and their children, by the day of the store's clock (UTC). */
  readonly dayUsd?: number
}
