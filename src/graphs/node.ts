// The kinds of nodes, typed by the state of their graph: code that runs, a question to a person or a program, a child session, and the
// same work on many items.
import { timeIn } from './time.ts'
import type { Json } from '../kernel/content.ts'
import {
  anything,
  callable,
  type Check,
  type Checks,
  filled,
  flag,
  listOf,
  needed,
  oneOf,
  optionsOf,
  orFunction,
  text,
  wait,
  within,
} from '../options.ts'
import { type Approval, approvalCheck, effectCheck, type ToolContext } from '../tools/core/tool.ts'
import type { Channels, State, StateOf, UpdateOf } from './channel.ts'
import { Enough } from './enough.ts'
import { plainJson } from './plain.ts'
import {
  type Command,
  decoded,
  encoded,
  type GateKind,
  type Item,
  lateError,
  type MapPolicy,
  type Step,
  toolOf,
  type Ways,
  writtenOf,
} from './step.ts'

declare const OF: unique symbol
/** A node of a graph with these channels, whose commands go to these names. */
export type Node<C extends Channels, Name extends string = never> = Step & {
  readonly [OF]?: { readonly channels: C; readonly to: Name }
}

type Said<C extends Channels, Name extends string> = UpdateOf<C> | Command<UpdateOf<C>, Name> | undefined | void

type Described<Name extends string> = {
  /** For people who approve, answer or draw. */
  readonly description?: string
  /** Where its commands may go. */
  readonly to?: readonly Name[]
  /** How often it is tried again after an error or a timeout of its own, or of its child. Each try is a new call. Default 0. */
  readonly retries?: number
}
type Guarded<Args> = Pick<Ways, 'effect' | 'timeoutMs' | 'secrets' | 'sequential'> & {
  /** Must a person approve before it runs? They see the arguments, and those are what runs. */
  readonly approval?: Approval | ((args: Args) => Approval | Promise<Approval>)
}

export type NodeOptions<C extends Channels, Args, Name extends string> = Described<Name> &
  Guarded<Args> & {
    /**
     * The arguments, from the state. Must be pure. Without it: none, or what a `send` brings. A command instead of arguments: the node
     * is not called, and the graph goes there.
     */
    readonly reads?: (state: StateOf<C>) => Args | Command<UpdateOf<C>, NoInfer<Name>>
    readonly run: (args: Args, context: ToolContext) => Said<C, NoInfer<Name>> | Promise<Said<C, NoInfer<Name>>>
    /** Takes back what a call of this node did, by what it wrote: for `session.undo` and for `onFailure` of the graph. */
    readonly undo?: Ways['undo']
  }

export type QuestionOptions<C extends Channels, Args, Name extends string> = Omit<Described<Name>, 'retries'> &
  Pick<Guarded<Args>, 'approval'> & {
    /** What is asked. A field `question` is what people are shown first. */
    readonly reads: (state: StateOf<C>) => Args
    /** What the answer means. Must be pure; when it throws, the answer is refused and the node has failed. */
    readonly take: (answer: string, state: StateOf<C>) => Said<C, NoInfer<Name>>
  }

export type AgentNodeOptions<C extends Channels, Name extends string> = Described<Name> &
  Pick<Guarded<{ readonly task: string }>, 'approval'> & {
    /** An agent of the harness, or another graph, by its name. */
    readonly agent: string
    readonly task: (state: StateOf<C>) => string
    readonly take: (answer: string, state: StateOf<C>) => Said<C, NoInfer<Name>>
  }

/** One child of a node that starts several. */
export type Assigned = { readonly agent: string; readonly task: string }

export type AgentsNodeOptions<C extends Channels, Name extends string> = Described<Name> &
  Pick<Guarded<Assigned>, 'approval'> &
  Pick<MapOptions<C, Assigned, string, Name>, 'take' | 'policy'> & {
    /** All agents it may start. */
    readonly agents: readonly string[]
    /** Whom to give what to. `limits.parallel` of them work at once. */
    readonly over: (state: StateOf<C>) => readonly Assigned[]
  }

/** What became of one item, at its place in the input. */
export type Mapped<Value> =
  | { readonly index: number; readonly ok: true; readonly value: Value }
  | { readonly index: number; readonly ok: false; readonly error: string }

/** An item that has no value, and why: it failed, it was lost while it might have taken effect, or it did not run. */
export type MissingItem = { readonly index: number; readonly error: string }

export type MapOptions<C extends Channels, Of, Value, Name extends string> = Described<Name> &
  Guarded<{ readonly index: number; readonly item: Of }> & {
    readonly over: (state: StateOf<C>) => readonly Of[]
    readonly run: (item: Of, context: ToolContext) => Value | Promise<Value>
    /**
     * The results in the order of the input. With `best-effort` and `quorum`, those that failed or did not run are not among them.
     * `missing` names every item without a value, whatever the policy.
     */
    readonly take: (
      results: readonly Mapped<Value>[],
      state: StateOf<C>,
      missing: readonly MissingItem[],
    ) => Said<C, NoInfer<Name>>
    /** Default `collect-all`: all run, and `take` is told of each. */
    readonly policy?: MapPolicy
    /**
     * How long all items together may take, from when the first is called, also while no process works on them. What is not done then
     * has failed. Default: for ever.
     */
    readonly totalMs?: number
  }

const MISSING_CHARS_MAX = 300

const described: Checks<Described<string>> = { description: text, to: listOf(text), retries: anything }
const asking = orFunction(approvalCheck)
const guarded: Checks<Guarded<unknown>> = {
  effect: effectCheck,
  timeoutMs: wait,
  secrets: listOf(filled),
  sequential: flag,
  approval: asking,
}
const checkNode = optionsOf<NodeOptions<Channels, unknown, string>>('node', {
  ...described,
  ...guarded,
  reads: callable,
  run: needed(callable),
  undo: callable,
})
const checkQuestion = optionsOf<QuestionOptions<Channels, unknown, string>>('question', {
  description: text,
  to: listOf(text),
  approval: asking,
  reads: needed(callable),
  take: needed(callable),
})
const checkAgent = optionsOf<AgentNodeOptions<Channels, string>>('agentNode', {
  ...described,
  approval: asking,
  agent: needed(filled),
  task: needed(callable),
  take: needed(callable),
})
export const policyCheck: Check = (value, name, of) => {
  if (typeof value === 'object') return within<{ quorum: number }>({ quorum: needed(anything) })(value, name, of)
  return oneOf<Extract<MapPolicy, string>>({ 'collect-all': true, 'fail-fast': true, 'best-effort': true })(
    value,
    name,
    of,
  )
}
const checkAgents = optionsOf<AgentsNodeOptions<Channels, string>>('agentsNode', {
  ...described,
  approval: asking,
  agents: needed(listOf(filled)),
  over: needed(callable),
  take: needed(callable),
  policy: policyCheck,
})
const checkMap = optionsOf<MapOptions<Channels, unknown, unknown, string>>('mapNode', {
  ...described,
  ...guarded,
  over: needed(callable),
  run: needed(callable),
  take: needed(callable),
  policy: policyCheck,
  totalMs: wait,
})

export function node<C extends Channels, Args, Name extends string>(
  options: NodeOptions<C, Args, Name>,
): Node<C, Name> {
  checkNode(options)
  const { reads, run, undo } = options
  const ways = undo === undefined ? waysOf(options) : { ...waysOf(options), undo }
  return {
    type: 'run',
    ...commonOf(options),
    policy: null,
    child: null,
    args: (state) => [reads ? reads(state as StateOf<C>) : {}],
    // Sound: these arguments are what `reads` returned, or what a `send` brought.
    tool: (name) =>
      toolOf(name, options.description ?? '', ways, async (args, context) =>
        encoded(writtenOf(await run(args as Args, context))),
      ),
    read: (content) => encoded(decoded(JSON.parse(content) as Json)),
    take: ([item]) => decoded(item?.value ?? {}),
  }
}

export function question<C extends Channels, Args, Name extends string>(
  options: QuestionOptions<C, Args, Name>,
): Node<C, Name> {
  checkQuestion(options)
  const { reads, take, description = '' } = options
  const ways = waysOf(options)
  return {
    type: 'question',
    ...commonOf(options),
    policy: null,
    child: null,
    args: (state) => [reads(state as StateOf<C>)],
    tool: (name) => toolOf(name, description, ways, null),
    ...answeredBy(take),
  }
}

export function agentNode<C extends Channels, Name extends string>(options: AgentNodeOptions<C, Name>): Node<C, Name> {
  checkAgent(options)
  const { agent, task, take, description = '' } = options
  const ways = waysOf(options)
  return {
    type: 'agent',
    ...commonOf(options),
    policy: null,
    child: agent,
    args: (state) => [{ task: task(state as StateOf<C>) }],
    tool: (name) => ({ ...toolOf(name, description, ways, null), child: () => agent }),
    ...answeredBy(take),
  }
}

export function mapNode<C extends Channels, Of, Value, Name extends string>(
  options: MapOptions<C, Of, Value, Name>,
): Node<C, Name> {
  checkMap(options)
  const { over, run, take, policy = 'collect-all', description = '', totalMs } = options
  const ways = waysOf(options)
  const enough = new Enough()
  return {
    type: 'map',
    ...commonOf(options),
    policy,
    ...(totalMs === undefined ? {} : { totalMs }),
    child: null,
    args: (state) => over(state as StateOf<C>).map((item, index) => ({ index, item })),
    tool: (name) =>
      toolOf(name, description, ways, async ({ item, until, need }, context) => {
        const work = (within: ToolContext) => Promise.resolve(run(item as Of, within))
        const needed =
          typeof need === 'number'
            ? (within: ToolContext) => enough.run(waveOf(within), need, (signal) => work(withSignal(within, signal)))
            : work
        const value = typeof until === 'number' ? await before(until, totalMs, needed, context) : await work(context)
        return plainJson(value ?? null, 'the result')
      }),
    read: (content) => JSON.parse(content) as Json,
    take: (items, state) => writtenOf(take(mappedBy<Value>(policy, items), state as StateOf<C>, missingIn(items))),
  }
}

export function agentsNode<C extends Channels, Name extends string>(
  options: AgentsNodeOptions<C, Name>,
): Node<C, Name> {
  checkAgents(options)
  const { agents, over, take, policy = 'collect-all', description = '' } = options
  const ways = waysOf(options)
  return {
    type: 'agent',
    ...commonOf(options),
    policy,
    child: agents,
    args: (state) => over(state as StateOf<C>).map(({ agent, task }) => ({ agent, task })),
    tool: (name) => ({ ...toolOf(name, description, ways, null), child: (args) => (args as Assigned).agent }),
    read: (content) => content,
    take: (items, state) => writtenOf(take(mappedBy<string>(policy, items), state as StateOf<C>, missingIn(items))),
  }
}

/** Only `collect-all` is told of what failed. */
function mappedBy<Value>(policy: MapPolicy, items: readonly Item[]): readonly Mapped<Value>[] {
  return items.flatMap((item, index) => mapped<Value>(item, index)).filter(({ ok }) => ok || policy === 'collect-all')
}

/** It may be kept in the state, which is in every reply: so the reasons are short. */
function missingIn(items: readonly Item[]): readonly MissingItem[] {
  return items.flatMap(({ value, error = 'It did not run.' }, index) =>
    value === undefined ? [{ index, error: error.slice(0, MISSING_CHARS_MAX) }] : [],
  )
}

/** Ends with the time of the node, whether or not the item listens to its signal. */
async function before<T>(
  until: number,
  totalMs: number | undefined,
  work: (context: ToolContext) => Promise<T>,
  context: ToolContext,
): Promise<T> {
  const leftMs = until - timeIn(context)
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

/** Stopped by this signal too. The rest of a context is made when it is looked at, so it is not copied. */
function withSignal(context: ToolContext, also: AbortSignal): ToolContext {
  const signal = AbortSignal.any([context.signal, also])
  return new Proxy(context, {
    get: (target, name): unknown => (name === 'signal' ? signal : Reflect.get(target, name, target)),
  })
}

/** The calls of one reply. */
function waveOf({ key }: ToolContext): string {
  return key.slice(0, key.lastIndexOf('.'))
}

function mapped<Value>({ value, error }: Item, index: number): readonly Mapped<Value>[] {
  if (error !== undefined) return [{ index, ok: false, error }]
  // Sound: it is what `run` returned, as JSON has it.
  return value === undefined ? [] : [{ index, ok: true, value: value as Value }]
}

function answeredBy<C extends Channels, Name extends string>(
  take: (answer: string, state: StateOf<C>) => Said<C, Name>,
): Pick<Step, 'read' | 'take'> {
  return {
    read: (content) => content,
    take: ([item], state: State) => {
      const answer = typeof item?.value === 'string' ? item.value : ''
      return writtenOf(take(answer, state as StateOf<C>))
    },
  }
}

function commonOf({ description = '', to = [], retries = 0, approval }: Described<string> & { approval?: unknown }) {
  const gate: GateKind = typeof approval === 'function' ? 'by_arguments' : ((approval ?? 'auto') as Approval)
  return { description, to, retries, gate }
}

function waysOf<Args>(options: Guarded<Args>): Ways {
  const { effect, timeoutMs, secrets, sequential, approval } = options
  return {
    ...(effect === undefined ? {} : { effect }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(secrets === undefined ? {} : { secrets }),
    ...(sequential === undefined ? {} : { sequential }),
    // Sound: the arguments are those that `reads` returned.
    ...(approval === undefined ? {} : { approval: approval as NonNullable<Ways['approval']> }),
  }
}
