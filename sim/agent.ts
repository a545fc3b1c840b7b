// The agent the simulator runs: a model whose replies the seed chooses, and tools of every class with every bad habit.
import type { EffectClass, Json, Limits } from '../src/kernel/content.ts'
import { DEFAULT_LIMITS } from '../src/kernel/limits.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../src/kernel/ports.ts'
import type { Agent } from '../src/runtime/world.ts'
import { defineTool, type StandardSchema, type Tool } from '../src/tools/tool.ts'
import type { Oracle } from './oracle.ts'
import type { SimProcess } from './process.ts'
import type { Chance } from './scheduler.ts'
import { Toolbox } from '../src/runtime/toolbox.ts'

const TOOL_MS = 60
const MODEL_MS = 150

export function simAgent(name: string, limits: Limits, process: SimProcess, oracle: Oracle): Agent {
  const tools = new Toolbox({ tools: simTools(process, oracle), plan: false, clock: process.clock })
  const approvalMs = name.endsWith('expiring') ? 120 : null
  return {
    name,
    model: simModel(process, oracle),
    tools,
    instructions: 'Simulate.',
    limits,
    approvalMs,
    policy: { rules: [] },
    environment: null,
    budget: null,
    output: null,
  }
}

export function simLimits(chance: Chance): Limits {
  return {
    ...DEFAULT_LIMITS,
    modelMs: MODEL_MS,
    modelRequests: chance.between(2, 7),
    modelAttempts: 3,
    toolCalls: chance.yes(0.4) ? chance.between(2, 9) : null,
    activeMs: chance.yes(0.3) ? chance.between(150, 900) : 60_000,
    lossesMax: 6,
    parallel: chance.pick([1, 2, 16]),
    hold: chance.yes(0.3) ? 1_000 : 0,
  }
}

const anything: StandardSchema<{ readonly n: number }> = {
  '~standard': {
    validate: (value) => {
      const { n } = value as { readonly n?: Json }
      return typeof n === 'number' ? { value: { n } } : { issues: [{ message: 'expected a number', path: ['n'] }] }
    },
  },
}

function simTools(process: SimProcess, oracle: Oracle): readonly Tool[] {
  const make = (name: string, effect: EffectClass, extra: { sequential?: boolean; approval?: 'ask' } = {}): Tool =>
    defineTool({
      name,
      description: name,
      input: anything,
      effect,
      timeoutMs: TOOL_MS,
      ...extra,
      execute: (_args, context) => work(process, oracle, context, effect),
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
  return [
    make('look', 'read'),
    make('put', 'idempotent'),
    make('pay', 'once'),
    make('slow', 'once', { sequential: true }),
    make('risky', 'once', { approval: 'ask' }),
    make('publish', 'idempotent', { approval: 'ask' }),
    outside,
    checked,
  ]
}

type Context = { readonly session: string; readonly call: string; readonly signal: AbortSignal }

/** Acts somewhere in the middle of its time; sometimes fails, sometimes ignores its abort, sometimes takes far too long. */
async function work(process: SimProcess, oracle: Oracle, context: Context, effect: EffectClass): Promise<string> {
  const { chance } = process
  const heedless = chance.yes(0.3)
  await process.sleep(chance.between(0, 15))
  if (context.signal.aborted && !heedless) throw new Error('aborted')
  oracle.execute(context.session, context.call, effect)
  await process.sleep(chance.yes(0.08) ? chance.between(100, 400) : chance.between(0, 25))
  if (chance.yes(0.15)) throw new Error('the tool failed')
  return 'done'
}

function simModel(process: SimProcess, oracle: Oracle): Model {
  return {
    name: 'simulated',
    async call(request, context) {
      oracle.ask(request)
      const { chance } = process
      if (chance.yes(0.04)) return stall(process, context)
      await process.sleep(chance.between(1, 40))
      if (chance.yes(0.06)) return failure(chance)
      return reply(request, chance)
    },
  }
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

function reply(request: Request, chance: Chance): Reply {
  const width = chance.yes(0.35) ? 0 : chance.between(1, 4)
  const calls: ReplyCall[] = []
  // The first answer of the first session asks for every class of effect, so that no seed goes without one.
  const every = request.session === 's0' && !request.messages.some((message) => message.role === 'assistant')
  if (every)
    for (const tool of ['look', 'put', 'pay']) calls.push({ id: `e${request.seq}-${tool}`, tool, args: '{"n":1}' })
  for (let i = 0; i < width; i++) {
    const args = chance.yes(0.05) ? '{"n":"x"}' : '{"n":1}'
    calls.push({ id: `c${request.seq}-${i}`, tool: chance.pick(NAMES), args })
  }
  const silent = calls.length === 0 && chance.yes(0.08)
  const cost = chance.between(100, 1_000)
  return {
    type: 'reply',
    parts: silent ? [] : [{ type: 'text', text: 'said' }],
    calls,
    finish: silent ? 'length' : 'stop',
    usage: null,
    cost,
  }
}
