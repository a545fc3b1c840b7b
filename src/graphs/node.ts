// The kinds of nodes, typed by the state of their graph: code that runs, a question to a person or a program, a child session, and the
// same work on many items.
import { storeTime } from './time.ts'
import type { Json } from '../kernel/content.ts'
import {
  anyCheck,
  functionCheck,
  type Check,
  type Checks,
  nonEmptyCheck,
  flagCheck,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  orFunction,
  textCheck,
  waitCheck,
  optionsCheck,
} from '../options.ts'
import { type Approval, approvalCheck, effectCheck, type ToolContext } from '../tools/core/tool.ts'
import type { Channels, GraphState, StateOf, UpdateOf } from './channel.ts'
import { QuorumRunner } from './quorum-runner.ts'
import { plainJson } from './plain-json.ts'
import {
  type GraphCommand,
  decodeOutput,
  encodeOutput,
  isCommand,
  type GateKind,
  type NodeItem,
  lateError,
  type MapPolicy,
  type PlannerNode,
  nodeTool,
  type NodeToolOptions,
  nodeOutputOf,
} from './planner-node.ts'

declare const OF: unique symbol
/** A node of a graph with these channels, whose commands go to these names. */
export type Node<C extends Channels, Name extends string = never> = PlannerNode & {
  readonly [OF]?: { readonly channels: C; readonly to: Name }
}

type NodeResult<C extends Channels, Name extends string> =
  | UpdateOf<C>
  | GraphCommand<UpdateOf<C>, Name>
  | undefined
  | void

type NodeDescription<Name extends string> = {
  /** Shown to people who approve or answer, and in drawings. */
  readonly description?: string
  /** The nodes that its commands may go to. */
  readonly to?: readonly Name[]
  /**
   * How often it is tried again after an error or timeout of its own or of its child. Each try is a new call. Default
   * 0.
   */
  readonly retries?: number
}
type NodeCallOptions<Args> = Pick<NodeToolOptions, 'effect' | 'timeoutMs' | 'secrets' | 'sequential'> & {
  /** Must a person approve before it runs? They see the exact arguments that it runs with. */
  readonly approval?: Approval | ((args: Args) => Approval | Promise<Approval>)
}

export type NodeOptions<C extends Channels, Args, Name extends string> = NodeDescription<Name> &
  NodeCallOptions<Args> & {
    /**
     * Reads the arguments from the state. Must be pure. Without it the node has no arguments, or those of a `send`. If
     * it returns a command, the node is not called, and the graph follows the command.
     */
    readonly reads?: (state: StateOf<C>) => Args | GraphCommand<UpdateOf<C>, NoInfer<Name>>
    readonly run: (
      args: Args,
      context: ToolContext,
    ) => NodeResult<C, NoInfer<Name>> | Promise<NodeResult<C, NoInfer<Name>>>
    /** Undoes a call of this node by the update that it wrote, for `session.undo` and for `onFailure` of the graph. */
    readonly undo?: NodeToolOptions['undo']
  }

export type QuestionOptions<C extends Channels, Args, Name extends string> = Omit<NodeDescription<Name>, 'retries'> &
  Pick<NodeCallOptions<Args>, 'approval'> & {
    /** The content of the question. People are shown the field `question` first. */
    readonly reads: (state: StateOf<C>) => Args
    /** Turns the answer into an update. Must be pure. If it throws, the answer is refused and the node has failed. */
    readonly take: (answer: string, state: StateOf<C>) => NodeResult<C, NoInfer<Name>>
  }

export type AgentNodeOptions<C extends Channels, Name extends string> = NodeDescription<Name> &
  Pick<NodeCallOptions<{ readonly task: string }>, 'approval'> & {
    /** The name of an agent of the harness, or of another graph. */
    readonly agent: string
    readonly task: (state: StateOf<C>) => string
    readonly take: (answer: string, state: StateOf<C>) => NodeResult<C, NoInfer<Name>>
  }

/** One child of a node that starts several. */
export type AgentTask = { readonly agent: string; readonly task: string }

export type AgentsNodeOptions<C extends Channels, Name extends string> = NodeDescription<Name> &
  Pick<NodeCallOptions<AgentTask>, 'approval'> &
  Pick<MapOptions<C, AgentTask, string, Name>, 'take' | 'policy'> & {
    /** All agents it may start. */
    readonly agents: readonly string[]
    /** The agents and their tasks. `limits.parallel` of them work at once. */
    readonly over: (state: StateOf<C>) => readonly AgentTask[]
  }

/** The result of one item, with its position in the input. */
export type Mapped<Value> =
  | { readonly index: number; readonly ok: true; readonly value: Value }
  | { readonly index: number; readonly ok: false; readonly error: string }

/** An item without a value. */
export type MissingItem = {
  /** Its position in the input, from 0. */
  readonly index: number
  /** Why: it failed, it was lost while it may have taken effect, or it did not run. */
  readonly error: string
}

export type MapOptions<C extends Channels, Of, Value, Name extends string> = NodeDescription<Name> &
  NodeCallOptions<{ readonly index: number; readonly item: Of }> & {
    readonly over: (state: StateOf<C>) => readonly Of[]
    readonly run: (item: Of, context: ToolContext) => Value | Promise<Value>
    /**
     * The results in the order of the input. With `best-effort` and `quorum`, items that failed or did not run are left
     * out. `missing` names every item without a value, whatever the policy.
     */
    readonly take: (
      results: readonly Mapped<Value>[],
      state: StateOf<C>,
      missing: readonly MissingItem[],
    ) => NodeResult<C, NoInfer<Name>>
    /** Default `collect-all`: all items run, and `take` gets every result. */
    readonly policy?: MapPolicy
    /**
     * The time limit for all items together, from the first call on, also while no process works on them. Items that
     * are not done by then have failed. Default: unlimited.
     */
    readonly totalMs?: number
  }

const MISSING_CHARS_MAX = 300

const descriptionChecks: Checks<NodeDescription<string>> = {
  description: textCheck,
  to: listCheck(textCheck),
  retries: anyCheck,
}
const approvalOption = orFunction(approvalCheck)
const callOptionChecks: Checks<NodeCallOptions<unknown>> = {
  effect: effectCheck,
  timeoutMs: waitCheck,
  secrets: listCheck(nonEmptyCheck),
  sequential: flagCheck,
  approval: approvalOption,
}
const checkNode = optionsChecker<NodeOptions<Channels, unknown, string>>('node', {
  ...descriptionChecks,
  ...callOptionChecks,
  reads: functionCheck,
  run: requiredCheck(functionCheck),
  undo: functionCheck,
})
const checkQuestion = optionsChecker<QuestionOptions<Channels, unknown, string>>('question', {
  description: textCheck,
  to: listCheck(textCheck),
  approval: approvalOption,
  reads: requiredCheck(functionCheck),
  take: requiredCheck(functionCheck),
})
const checkAgent = optionsChecker<AgentNodeOptions<Channels, string>>('agentNode', {
  ...descriptionChecks,
  approval: approvalOption,
  agent: requiredCheck(nonEmptyCheck),
  task: requiredCheck(functionCheck),
  take: requiredCheck(functionCheck),
})
export const policyCheck: Check = (value, name, of) => {
  if (typeof value === 'object')
    return optionsCheck<{ quorum: number }>({ quorum: requiredCheck(anyCheck) })(value, name, of)
  return oneOf<Extract<MapPolicy, string>>({ 'collect-all': true, 'fail-fast': true, 'best-effort': true })(
    value,
    name,
    of,
  )
}
const checkAgents = optionsChecker<AgentsNodeOptions<Channels, string>>('agentsNode', {
  ...descriptionChecks,
  approval: approvalOption,
  agents: requiredCheck(listCheck(nonEmptyCheck)),
  over: requiredCheck(functionCheck),
  take: requiredCheck(functionCheck),
  policy: policyCheck,
})
const checkMap = optionsChecker<MapOptions<Channels, unknown, unknown, string>>('mapNode', {
  ...descriptionChecks,
  ...callOptionChecks,
  over: requiredCheck(functionCheck),
  run: requiredCheck(functionCheck),
  take: requiredCheck(functionCheck),
  policy: policyCheck,
  totalMs: waitCheck,
})

export function node<C extends Channels, Args, Name extends string>(
  options: NodeOptions<C, Args, Name>,
): Node<C, Name> {
  checkNode(options)
  const { reads, run, undo } = options
  const ways = undo === undefined ? toolOptionsOf(options) : { ...toolOptionsOf(options), undo }
  return {
    type: 'run',
    ...commonFields(options),
    policy: null,
    child: null,
    args: (state) => [reads ? reads(state as StateOf<C>) : {}],
    // Sound: these arguments are what `reads` returned, or what a `send` brought.
    tool: (name) =>
      nodeTool(name, options.description ?? '', ways, async (args, context) => {
        const said = await run(args as Args, context)
        return { value: encodeOutput(nodeOutputOf(said)), wake: isCommand(said) ? said.wake : undefined }
      }),
    read: (content) => encodeOutput(decodeOutput(JSON.parse(content) as Json)),
    take: ([item]) => decodeOutput(item?.value ?? {}),
  }
}

export function question<C extends Channels, Args, Name extends string>(
  options: QuestionOptions<C, Args, Name>,
): Node<C, Name> {
  checkQuestion(options)
  const { reads, take, description = '' } = options
  const ways = toolOptionsOf(options)
  return {
    type: 'question',
    ...commonFields(options),
    policy: null,
    child: null,
    args: (state) => [reads(state as StateOf<C>)],
    tool: (name) => nodeTool(name, description, ways, null),
    ...answerHandlers(take),
  }
}

export function agentNode<C extends Channels, Name extends string>(options: AgentNodeOptions<C, Name>): Node<C, Name> {
  checkAgent(options)
  const { agent, task, take, description = '' } = options
  const ways = toolOptionsOf(options)
  return {
    type: 'agent',
    ...commonFields(options),
    policy: null,
    child: agent,
    args: (state) => [{ task: task(state as StateOf<C>) }],
    tool: (name) => ({ ...nodeTool(name, description, ways, null), child: () => agent }),
    ...answerHandlers(take),
  }
}

export function mapNode<C extends Channels, Of, Value, Name extends string>(
  options: MapOptions<C, Of, Value, Name>,
): Node<C, Name> {
  checkMap(options)
  const { over, run, take, policy = 'collect-all', description = '', totalMs } = options
  const ways = toolOptionsOf(options)
  const enough = new QuorumRunner()
  return {
    type: 'map',
    ...commonFields(options),
    policy,
    ...(totalMs === undefined ? {} : { totalMs }),
    child: null,
    args: (state) => over(state as StateOf<C>).map((item, index) => ({ index, item })),
    tool: (name) =>
      nodeTool(name, description, ways, async ({ item, until, need }, context) => {
        const work = (within: ToolContext) => Promise.resolve(run(item as Of, within))
        const needed =
          typeof need === 'number'
            ? (within: ToolContext) => enough.run(replyKey(within), need, (signal) => work(withSignal(within, signal)))
            : work
        const value =
          typeof until === 'number' ? await runUntilDeadline(until, totalMs, needed, context) : await work(context)
        return { value: plainJson(value ?? null, 'the result') }
      }),
    read: (content) => JSON.parse(content) as Json,
    take: (items, state) =>
      nodeOutputOf(take(mapItems<Value>(policy, items), state as StateOf<C>, missingItems(items))),
  }
}

export function agentsNode<C extends Channels, Name extends string>(
  options: AgentsNodeOptions<C, Name>,
): Node<C, Name> {
  checkAgents(options)
  const { agents, over, take, policy = 'collect-all', description = '' } = options
  const ways = toolOptionsOf(options)
  return {
    type: 'agent',
    ...commonFields(options),
    policy,
    child: agents,
    args: (state) => over(state as StateOf<C>).map(({ agent, task }) => ({ agent, task })),
    tool: (name) => ({ ...nodeTool(name, description, ways, null), child: (args) => (args as AgentTask).agent }),
    read: (content) => content,
    take: (items, state) =>
      nodeOutputOf(take(mapItems<string>(policy, items), state as StateOf<C>, missingItems(items))),
  }
}

/** Failures are included only with `collect-all`. */
function mapItems<Value>(policy: MapPolicy, items: readonly NodeItem[]): readonly Mapped<Value>[] {
  return items.flatMap((item, index) => mapItem<Value>(item, index)).filter(({ ok }) => ok || policy === 'collect-all')
}

/** The reasons are cut short: they may be kept in the state, which is in every reply. */
function missingItems(items: readonly NodeItem[]): readonly MissingItem[] {
  return items.flatMap(({ value, error = 'It did not run.' }, index) =>
    value === undefined ? [{ index, error: error.slice(0, MISSING_CHARS_MAX) }] : [],
  )
}

/** Ends at the node's deadline, even if the item ignores its signal. */
async function runUntilDeadline<T>(
  until: number,
  totalMs: number | undefined,
  work: (context: ToolContext) => Promise<T>,
  context: ToolContext,
): Promise<T> {
  const leftMs = until - storeTime(context)
  if (leftMs <= 0) throw lateError(totalMs)
  const over = new AbortController()
  let cancel = (): void => {}
  const late = new Promise<never>((_, reject) => {
    cancel = context.clock.timer(leftMs, () => {
      over.abort()
      reject(lateError(totalMs))
    })
  })
  try {
    return await Promise.race([work(withSignal(context, over.signal)), late])
  } finally {
    cancel()
  }
}

/**
 * The same context with a second abort signal. A proxy, not a copy: the fields of a context are computed when they are
 * read.
 */
function withSignal(context: ToolContext, also: AbortSignal): ToolContext {
  const signal = AbortSignal.any([context.signal, also])
  return new Proxy(context, {
    get: (target, name): unknown => (name === 'signal' ? signal : Reflect.get(target, name, target)),
  })
}

/** Identifies the reply that made this call, so that its calls form one group. */
function replyKey({ key }: ToolContext): string {
  return key.slice(0, key.lastIndexOf('.'))
}

function mapItem<Value>({ value, error }: NodeItem, index: number): readonly Mapped<Value>[] {
  if (error !== undefined) return [{ index, ok: false, error }]
  // Sound: it is what `run` returned, as JSON has it.
  return value === undefined ? [] : [{ index, ok: true, value: value as Value }]
}

function answerHandlers<C extends Channels, Name extends string>(
  take: (answer: string, state: StateOf<C>) => NodeResult<C, Name>,
): Pick<PlannerNode, 'read' | 'take'> {
  return {
    read: (content) => content,
    take: ([item], state: GraphState) => {
      const answer = typeof item?.value === 'string' ? item.value : ''
      return nodeOutputOf(take(answer, state as StateOf<C>))
    },
  }
}

function commonFields({
  description = '',
  to = [],
  retries = 0,
  approval,
}: NodeDescription<string> & { approval?: unknown }) {
  const gate: GateKind = typeof approval === 'function' ? 'by_arguments' : ((approval ?? 'auto') as Approval)
  return { description, to, retries, gate }
}

function toolOptionsOf<Args>(options: NodeCallOptions<Args>): NodeToolOptions {
  const { effect, timeoutMs, secrets, sequential, approval } = options
  return {
    ...(effect === undefined ? {} : { effect }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(secrets === undefined ? {} : { secrets }),
    ...(sequential === undefined ? {} : { sequential }),
    // Sound: the arguments are those that `reads` returned.
    ...(approval === undefined ? {} : { approval: approval as NonNullable<NodeToolOptions['approval']> }),
  }
}
