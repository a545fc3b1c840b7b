// The agents the simulator runs: models whose replies the seed chooses, and tools of every class with every bad habit.
import { hash } from 'node:crypto'
import type { EffectClass, Json } from '../src/kernel/content.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../src/ports/model.ts'
import { Toolbox } from '../src/runtime/state/toolbox.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import type { SharedAgentOptions } from '../src/sessions/agent.ts'
import { ToolFailure } from '../src/tools/core/tool-output.ts'
import { orderTools, SPAWN } from '../src/tools/agents/order-tools.ts'
import { LIKE_PARENT, subagentTool } from '../src/tools/agents/subagent.ts'
import { defineTool, type StandardSchema, type Tool, type ToolSource } from '../src/tools/core/tool.ts'
import { type Cast, COST_MAX, GRACE_MS, INSTRUCTIONS, type Role } from './cast.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../src/context/summary.ts'
import { BOARD, boardPlanner } from '../src/boards/board-planner.ts'
import { AS_AGENT } from '../src/graphs/graph-definition.ts'
import { countRequestChars } from '../src/runtime/money/usage-estimate.ts'
import { requestBytes } from './bytes.ts'
import { handOf, reviewOf, simGraph } from './graphs.ts'
import type { Oracle } from './oracle.ts'
import type { SimProcess } from './process.ts'
import type { Chance } from './scheduler.ts'
import { secretIn } from './secrets.ts'

const TOOL_MS = 60
/** What every request counts, where contexts fill up. */
const FILLED_BASE = 300
/** How long results are. */
const RESULT_CHARS = 700

/** The agents of one process, each made once. */
export function simAgents(cast: Cast, process: SimProcess, oracle: Oracle): (name: string) => Agent {
  const tools = simTools(process, oracle, cast.secret)
  const agents = new Map<string, Agent>()
  return (name) => {
    const agent =
      agents.get(name) ??
      (name === BOARD ? boardPlanner()[AS_AGENT](process) : null) ??
      simGraph(name, process, oracle)?.[AS_AGENT](sharedBy(cast, process)) ??
      simAgent(name, cast, tools, process, oracle)
    agents.set(name, agent)
    return agent
  }
}

function sharedBy({ policy, budget }: Cast, { clock, store }: SimProcess): SharedAgentOptions {
  return { approvals: { policy }, clock, store, ...(budget === null ? {} : { budget }) }
}

function simAgent(name: string, cast: Cast, tools: readonly Tool[], process: SimProcess, oracle: Oracle): Agent {
  const role = cast.roles.get(name) ?? (handOf(name, cast) as Role)
  const { limits, approvalMs, children } = role
  const clerks = [{ name: 'clerk', description: 'clerk' }]
  const leading = role.leads ? orderTools(clerks) : []
  const own = children.length > 0 ? [subagentTool(clerks, LIKE_PARENT), ...leading] : []
  const model = simModel(role, cast, process, oracle)
  return {
    name,
    model: cast.budget === null ? model : { ...model, ...PRICED },
    tools: new Toolbox({
      tools: cast.outage && !cast.outage.toolsStay ? [...tools, needed(process, oracle)] : tools,
      plan: false,
      clock: process.clock,
      own,
    }),
    // What a session was told first it is told by every process.
    instructions: process.place === 'a folder' ? INSTRUCTIONS : `${INSTRUCTIONS} It is another folder.`,
    limits,
    approvalMs,
    policy: cast.policy,
    environment: null,
    budget: cast.budget,
    output: null,
    children,
    planner: null,
  }
}

/** A source of tools that every run needs, and that is down when the provider is. */
function needed({ clock }: SimProcess, oracle: Oracle): ToolSource {
  const tools = async (): Promise<readonly Tool[]> => {
    if (!oracle.isDown(clock.now())) return []
    oracle.absent += 1
    throw new ToolFailure('Unavailable', 'the tools are away')
  }
  return { type: 'source', name: 'needed', tools, close: async () => {} }
}

/** So many answers of a session are cut at most, one after the other: from the fourth on each costs half a minute. */
const CUTS_MAX = 7

/** The profile of a model with a price: the hold for each request covers its dearest answer. */
const PRICE = { input: 0.05, output: 1 }
const PROFILE = { price: PRICE, known: true, contextTokens: 1_000_000, cost: () => 0 }
const ABLE = { name: 'simulated', native: 'no' }
export const PRICED = { able: ABLE, secrets: {}, outputTokensMax: COST_MAX, profile: async () => PROFILE }

export const anything: StandardSchema<{ readonly n: number }> = {
  '~standard': {
    validate: (value) => {
      const { n } = value as { readonly n?: Json }
      return typeof n === 'number' ? { value: { n } } : { issues: [{ message: 'expected a number', path: ['n'] }] }
    },
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
}

function simTools(process: SimProcess, oracle: Oracle, secret: boolean): readonly Tool[] {
  type Extra = {
    sequential?: boolean
    approval?: 'ask' | (() => Promise<'ask'>)
    deliverable?: boolean
    onInterrupt?: 'block'
    place?: () => string
  }
  const make = (name: string, effect: EffectClass, extra: Extra = {}): Tool =>
    defineTool({
      name,
      description: name,
      input: anything,
      effect,
      timeoutMs: TOOL_MS,
      ...extra,
      execute: (args, context) =>
        work(process, oracle, context, effect, { args, secret, place: extra.place && placeHash(extra.place()) }),
    })
  const outside = defineTool({
    name: 'outside',
    description: 'outside',
    input: anything,
    effect: 'once',
    timeoutMs: TOOL_MS,
  })
  const checked = defineTool({
    name: 'checked',
    description: 'a once tool that can tell afterwards whether it happened',
    input: anything,
    effect: 'once',
    timeoutMs: TOOL_MS,
    execute: (_args, context) => work(process, oracle, context, 'once'),
    reconcile: async (_args, context) => {
      await process.sleep(process.chance.between(1, 120))
      return oracle.executed(context.session, context.call) ? 'it happened' : undefined
    },
  })
  const broken = defineTool({
    name: 'broken',
    description: 'never works',
    input: anything,
    effect: 'read',
    timeoutMs: TOOL_MS,
    execute: async (_args, context) => {
      oracle.execute(context.session, context.call, 'read')
      await process.sleep(process.chance.between(0, 15))
      throw new ToolFailure('NotFound', 'There is no such thing.')
    },
  })
  // Whether it must be asked about takes a while to find out: meanwhile its siblings start.
  const lookUp = async (): Promise<'ask'> => {
    await process.sleep(process.chance.between(0, 10))
    return 'ask'
  }
  const all = [
    make('look', 'read'),
    make('put', 'idempotent', { deliverable: true }),
    make('pay', 'once'),
    make('slow', 'once', { sequential: true, onInterrupt: 'block' }),
    make('risky', 'once', { approval: 'ask' }),
    make('publish', 'idempotent', { approval: lookUp, place: () => process.place }),
    outside,
    checked,
    broken,
  ]
  for (const { name, definition } of all) oracle.definitions.set(name, definition)
  return all
}

/** Computed independently, so that the real hash is compared with something. */
function placeHash(place: string): string {
  return hash('sha256', JSON.stringify([null, place]))
}

type Context = { readonly session: string; readonly call: string; readonly signal: AbortSignal }
/** What it runs with, where, and whether it tells a secret. */
type Acting = { readonly args?: unknown; readonly place?: string | undefined; readonly secret?: boolean }

/** Acts somewhere in the middle of its time; sometimes fails, sometimes ignores its abort, sometimes takes far too long. */
async function work(
  process: SimProcess,
  oracle: Oracle,
  context: Context,
  effect: EffectClass,
  { args, place, secret = false }: Acting = {},
): Promise<string> {
  const { chance } = process
  const heedless = chance.yes(0.3)
  await process.sleep(chance.between(0, 15))
  if (context.signal.aborted && !heedless) throw new Error('aborted')
  oracle.execute(context.session, context.call, effect, place, args)
  await process.sleep(chance.yes(0.08) ? chance.between(100, 400) : chance.between(0, 25))
  const more = secret ? secretIn(context.call) : ''
  if (chance.yes(0.15)) throw new Error(`the tool failed.${more}`)
  // Long enough that old results are worth clearing where contexts fill up.
  return `done ${context.call}${more} `.padEnd(RESULT_CHARS, 'and on ')
}

function simModel(role: Role, { window, forgetful, secret }: Cast, process: SimProcess, oracle: Oracle): Model {
  return {
    name: 'simulated',
    async call(request, context) {
      if (request.instructions === CONTEXT_SUMMARY_PROMPT) return summary(process, oracle, request, forgetful)
      oracle.ask(request)
      if (context.signal.aborted)
        oracle.violations.push(`O8 ${request.session} asks a model for what is stopped already`)
      const { chance } = process
      let abortedAt = Number.POSITIVE_INFINITY
      context.signal.addEventListener('abort', () => {
        abortedAt = process.clock.now()
      })
      if (chance.yes(0.04)) return stall(process, context)
      if (oracle.isDown(process.clock.now())) {
        await process.sleep(chance.between(1, 10))
        return oracle.refuse(request)
      }
      if (chance.yes(0.4)) await listen(process, context, chance)
      else await process.sleep(chance.between(1, 40))
      if (chance.yes(role.cutting && oracle.cutsOf(request) < CUTS_MAX ? 0.85 : 0.02)) {
        // A request that is not over soon after its abort was given up, and nothing of it is shown any more.
        oracle.cut(request)
        if (process.clock.now() - abortedAt < GRACE_MS) oracle.spoke(request)
        context.emit({ kind: 'text', part: 0, text: 'Half' })
        return { type: 'failure', class: 'network', message: 'the connection was cut', retryable: true }
      }
      if (chance.yes(0.06)) return failure(chance)
      const calls = role.stubborn
        ? [callOf(request, 0, 'broken', '{"n":1}')]
        : role.brief && chance.yes(0.7)
          ? []
          : arranged(callsOf(request, chance), role)
      const reply = said(request, calls, chance, { filling: window !== null, secret })
      return role.reviews && calls.length === 0 && reply.parts.length > 0
        ? { ...reply, parts: [{ type: 'text', text: reviewOf(chance) }] }
        : reply
    },
  }
}

/** What the older part of a full context becomes: mostly a summary, often a long one, now and then nothing of use. */
async function summary(
  process: SimProcess,
  oracle: Oracle,
  request: Request,
  forgetful: boolean,
): Promise<Reply | ModelFailure> {
  const { chance } = process
  oracle.summaries += 1
  await process.sleep(chance.between(0, 20))
  if (process.falters()) await process.sleep(0)
  const drawn = chance.fraction()
  if (drawn < 0.1) return failure(chance)
  // As long as it may be, and longer: of that a part is taken.
  const words = Array.from({ length: Math.ceil((0.7 * countRequestChars(request)) / 8) }, (_, i) => `word${i}`)
  const useless = forgetful || drawn < 0.2 ? '' : drawn < 0.3 ? 'lol' : 'long '.repeat(20_000)
  const text = forgetful || drawn < 0.35 ? useless : sections(request.seq, drawn < 0.7 ? words.join(' ') : 'All of it.')
  const usage = { inputTokens: chance.between(50, 300), outputTokens: chance.between(10, 200) }
  const parts = [{ type: 'text', text }] as const
  return { type: 'reply', parts, calls: [], finish: 'stop', usage, cost: chance.between(100, COST_MAX) }
}

/** A summary that counts. */
export function sections(seq: number, done: string): string {
  const goal =
    'Go on with what was asked for, call the tools that are needed, and say in the end what came of all of them.'
  const state =
    'Some calls were made and their results were read; what failed is tried again, and nobody waits for anything.'
  const rest = 'Every call has a key of its own, which never moves, and no call that is done is made a second time.'
  return `## Goal\n${goal}\n## Completed Actions\nSummed up at ${seq}. ${done}\n## Active State\n${state}\n## Pending\nThe rest.\n## Critical Context\n${rest}`
}

/** Looks at its abort, and then answers because of it or throws. All other models do not look, and answer late. */
async function listen(process: SimProcess, { signal }: CallContext, chance: Chance): Promise<void> {
  for (let left = chance.between(1, 40); left > 0 && !signal.aborted; left -= 4) await process.sleep(4)
  if (signal.aborted && chance.yes(0.5)) throw new DOMException('The operation was aborted.', 'AbortError')
}

async function stall(process: SimProcess, context: CallContext): Promise<ModelFailure> {
  while (!context.signal.aborted) await process.sleep(10)
  return { type: 'failure', class: 'other', message: 'aborted', retryable: false }
}

function failure(chance: Chance): ModelFailure {
  const retryable = chance.yes(0.85)
  return { type: 'failure', class: retryable ? 'server' : 'auth', message: 'simulated trouble', retryable }
}

const NAMES = [
  'look',
  'look',
  'put',
  'pay',
  'pay',
  'slow',
  'risky',
  'publish',
  'outside',
  'checked',
  'missing',
] as const

function callsOf(request: Request, chance: Chance): readonly ReplyCall[] {
  const done = request.allow === 'none' ? 0.8 : 0.35
  const width = chance.yes(done) ? 0 : chance.between(1, 4)
  const calls: ReplyCall[] = []
  // The first answer of the first session asks for every class of effect, so that no seed goes without one.
  const every = request.session === 's0' && !request.messages.some((m) => m.role === 'assistant' && m.calls.length > 0)
  const add = (tool: string, args: string): void => void calls.push(callOf(request, calls.length, tool, args))
  if (every) for (const tool of ['look', 'put', 'pay']) add(tool, '{"n":1}')
  const family = request.tools.some(({ name }) => name === 'subagent')
  const leads = request.tools.some(({ name }) => name === SPAWN)
  const question = family ? questionIn(request) : undefined
  // A parent that reads a child's question mostly answers it, now and then twice.
  if (question !== undefined && chance.yes(0.75)) {
    const answer = JSON.stringify({ task: 'The answer.', session: question })
    for (let i = 0, n = chance.yes(0.15) ? 2 : 1; i < n; i++) add('subagent', answer)
  }
  // A leader that has read of its children mostly waits for the newest.
  const newest = leads ? childrenIn(request).at(-1) : undefined
  if (newest !== undefined && chance.yes(0.9)) add('wait_subagent', waitFor(newest, chance))
  // What must be asked about again in another place, beside one call that runs and others that hooks still look at.
  if (width > 1 && chance.yes(0.3)) for (const tool of ['publish', 'look', 'put', 'pay']) add(tool, '{"n":2}')
  for (let i = 0; i < width; i++) {
    if (family && chance.yes(0.25)) add('subagent', childArgs(chance))
    else if (leads && chance.yes(0.35)) add(...orderOf(request, chance))
    else if (request.session.includes('~') && chance.yes(0.3)) add('outside', '{"n":1}')
    else if (chance.yes(0.05)) {
      // A model that gets a call wrong gets it wrong more than once.
      const tool = chance.pick(NAMES)
      for (let n = chance.between(1, 3); n > 0; n--) add(tool, '{"n":"x"}')
    } else add(chance.pick(NAMES), `{"n":${chance.between(1, 3)}}`)
  }
  return calls
}

function arranged(calls: readonly ReplyCall[], { ordersFirst = false }: Role): readonly ReplyCall[] {
  const isOrder = ({ tool }: ReplyCall): boolean => /_(sub)?agents?$/.test(tool)
  return ordersFirst ? [...calls.filter(isOrder), ...calls.filter((call) => !isOrder(call))] : calls
}

function callOf({ seq }: Request, i: number, tool: string, args: string): ReplyCall {
  return { id: `c${seq}-${i}`, tool, args }
}

const KEYS = [undefined, undefined, 'one', 'two']

/** The detached children that a model has read of. */
function childrenIn({ messages }: Request): readonly string[] {
  const found = JSON.stringify(messages).matchAll(/subagent_session_id\\*":\\*"([^"\\]+)/g)
  return [...found].map(([, id = '']) => id)
}

function waitFor(id: string, chance: Chance): string {
  return JSON.stringify({ id, timeout_secs: chance.between(1, 3) })
}

/** An order to children: mostly to those it knows, now and then to a stranger. */
function orderOf(request: Request, chance: Chance): [string, string] {
  const known = childrenIn(request)
  const task = () => ({ prompt: 'Do it.', agent_id: chance.pick([undefined, 'clerk', 'clerk', 'nobody']) })
  const kind = known.length === 0 ? chance.pick(['spawn', 'many', 'list']) : chance.pick(ORDERS)
  const id = chance.yes(0.05) ? 's0~1.0' : (known.at(-1) ?? '')
  const args: Readonly<Record<string, [string, object]>> = {
    spawn: [
      'spawn_subagent',
      { ...task(), task_key: chance.pick(KEYS), fresh: chance.yes(0.2), blocking: chance.yes(0.1) },
    ],
    many: ['spawn_parallel_agents', { tasks: [task(), task()] }],
    wait: ['wait_subagent', { id, timeout_secs: chance.between(1, 3) }],
    steer: ['steer_subagent', { id, message: 'Otherwise.' }],
    list: ['list_subagents', {}],
    continue: ['continue_subagent', { id, answer: 'Go on.' }],
    close: ['close_subagent', { id }],
  }
  const [tool, given] = args[kind] ?? ['list_subagents', {}]
  return [tool, JSON.stringify(given)]
}
const ORDERS = ['spawn', 'many', 'wait', 'steer', 'list', 'continue', 'close'] as const

function childArgs(chance: Chance): string {
  const agent = chance.pick([undefined, undefined, 'clerk', 'clerk', 'default', 'nobody'])
  const session = chance.yes(0.03) ? 's0~1.0' : undefined
  return JSON.stringify({ task: 'Do it.', agent, session })
}

/** The child that asked in the results this request shows for the first time. */
function questionIn({ messages }: Request): string | undefined {
  const from = messages.findLastIndex((message) => message.role === 'assistant')
  for (const message of messages.slice(from + 1)) {
    if (message.role !== 'tool' || typeof message.content !== 'string') continue
    const [, session] = /call subagent with "session": "([^"]+)"/.exec(message.content) ?? []
    if (session !== undefined) return session
  }
  return undefined
}

function said(
  request: Request,
  calls: readonly ReplyCall[],
  chance: Chance,
  { filling, secret }: { readonly filling: boolean; readonly secret: boolean },
): Reply {
  const silent = calls.length === 0 && chance.yes(0.08)
  const counted = chance.between(50, 300)
  const more = secret ? secretIn(`${request.seq}`) : ''
  // Where contexts fill up, a request counts by its length.
  const inputTokens = filling ? FILLED_BASE + Math.ceil(requestBytes(request).length / 4) : counted
  const usage = { inputTokens, outputTokens: chance.between(10, 200) }
  const reply: Reply = {
    type: 'reply',
    parts: silent ? [] : [{ type: 'text', text: `Said at ${request.seq} of ${request.session}.${more}` }],
    calls,
    finish: silent ? 'length' : 'stop',
    usage,
  }
  // A reply that says neither what it used nor what it cost is paid as it was held.
  return chance.yes(0.1) ? { ...reply, usage: null } : { ...reply, cost: chance.between(100, COST_MAX) }
}
