// What the crash test makes happen: the plans a client writes into its messages, the scripted model that follows them, and
// tools of every effect class. Each handler itself notes its effect in the oracle, outside of the store.
import { setTimeout as sleep } from 'node:timers/promises'
import type { EffectClass, Limits } from '../../src/kernel/content.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { Model } from '../../src/ports/model.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { scripted } from '../../src/models/local/scripted.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import type { Agent } from '../../src/runtime/state/agent.ts'
import { defineTool, type StandardSchema, type Tool, type ToolContext } from '../../src/tools/core/tool.ts'
import { orderTools } from '../../src/tools/agents/order-tools.ts'
import { type Appender, type OracleLine, readLines } from './evidence.ts'
import { orderOf, ordered } from './orders.ts'
import type { Args, Plan, PlannedCall, PlannedTurn } from './plan.ts'
import type { Chance } from './random.ts'
import { Toolbox } from '../../src/runtime/state/toolbox.ts'

export const AGENT = 'crash'
/** What a request holds. A reply costs less; a call that is lost with its worker is charged all of it. */
export const HOLD = 1_000
const COST = 300

type Kind = {
  readonly name: string
  readonly effect: EffectClass
  readonly asks?: true
  readonly outside?: true
  readonly sequential?: true
  readonly reconciles?: true
  /** Stops working when it is told to. The others go on to their end. */
  readonly obeys?: true
}

const KINDS: readonly Kind[] = [
  { name: 'look', effect: 'read', obeys: true },
  { name: 'put', effect: 'idempotent' },
  { name: 'pay', effect: 'once', obeys: true },
  { name: 'send', effect: 'once' },
  { name: 'ship', effect: 'once', reconciles: true },
  { name: 'pay_in_turn', effect: 'once', sequential: true },
  { name: 'pay_asked', effect: 'once', asks: true },
  { name: 'put_asked', effect: 'idempotent', asks: true },
  { name: 'ask_person', effect: 'once', outside: true },
]

/** With `levels` it may give tasks to children, and those to theirs, so many levels down. */
export function planOf(chance: Chance, levels = 0): Plan {
  const turns = Array.from({ length: chance.integer(1, 4) }, () => turnOf(chance, levels))
  return { turns }
}

function turnOf(chance: Chance, levels: number): PlannedTurn {
  const { name: quiet } = chance.pick(KINDS.filter((kind) => !kind.asks && !kind.outside))
  // Most turns go on by themselves: a session that waits for a person cannot be struck.
  const calls = Array.from({ length: chance.integer(1, 4) }, (): PlannedCall => {
    const tool = chance.happens(0.85) ? chance.pick(KINDS.slice(0, 6)).name : chance.pick(KINDS).name
    return { tool, ms: chance.integer(0, 40), bytes: chance.happens(0.02) ? 70_000 : 20 }
  })
  // In a tree some work long enough to be stopped from above.
  const first = { tool: quiet, ms: chance.integer(5, levels > 0 && chance.happens(0.1) ? 900 : 60), bytes: 20 }
  const orders = levels > 0 && chance.happens(0.4) ? [orderOf(chance, () => planOf(chance, levels - 1))] : []
  return { thinkMs: chance.integer(0, 25), flaky: chance.happens(0.05), calls: [first, ...orders, ...calls.slice(1)] }
}

/** Follows the newest plan it was shown, one turn a reply. */
function planner(): Model {
  return scripted((request) => {
    const { plan, taken } = newestPlan(request.messages)
    const turn = plan.turns[taken]
    if (!turn) return { text: 'done', delayMs: 3, cost: COST }
    // By its seq, so that the same question asked again is answered.
    if (turn.flaky && request.seq % 3 === 0) return { error: 'server', delayMs: turn.thinkMs }
    const calls = turn.calls.map((call) => {
      if ('order' in call) return ordered(call, request.messages)
      return { tool: call.tool, args: { ms: call.ms, bytes: call.bytes } }
    })
    return { calls, delayMs: turn.thinkMs, cost: COST }
  })
}

function newestPlan(messages: readonly Message[]): { readonly plan: Plan; readonly taken: number } {
  let taken = 0
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') taken += 1
    const part = message.role === 'user' ? message.parts[0] : undefined
    if (part?.type === 'text' && part.text.startsWith('{')) return { plan: JSON.parse(part.text) as Plan, taken }
  }
  return { plan: { turns: [] }, taken }
}

export function agentOf(oracle: Appender<OracleLine>, oraclePath: string): Agent {
  const tools = KINDS.map((kind) => toolOf(kind, oracle, oraclePath))
  const limits: Limits = { ...DEFAULT_LIMITS, hold: HOLD, lossesMax: 100 }
  return {
    name: AGENT,
    model: planner(),
    tools: new Toolbox({
      tools,
      plan: false,
      clock: runtimeClock,
      own: orderTools([{ name: AGENT, description: '' }]),
    }),
    instructions: 'Follow the plan.',
    limits,
    approvalMs: null,
    policy: { rules: [] },
    environment: null,
    budget: null,
    output: null,
    children: [AGENT],
    planner: null,
  }
}

function toolOf(kind: Kind, oracle: Appender<OracleLine>, oraclePath: string): Tool {
  const { name, effect } = kind
  const execute = async ({ ms, bytes }: Args, { key, signal }: ToolContext): Promise<string> => {
    oracle.add({ key, effect, pid: process.pid, phase: 'start' })
    await sleep(ms, undefined, kind.obeys ? { signal } : {})
    oracle.add({ key, effect, pid: process.pid, phase: 'end' })
    return `${name} ${key} `.padEnd(bytes, '.')
  }
  const reconcile = async (_args: Args, { key }: ToolContext): Promise<string | undefined> => {
    await sleep(30)
    const ended = readLines<OracleLine>(oraclePath).some((line) => line.key === key && line.phase === 'end')
    return ended ? `${name} ${key} had happened` : undefined
  }
  return defineTool<Args>({
    name,
    description: `${name} (${effect})`,
    input: ARGS,
    effect,
    sequential: kind.sequential ?? false,
    approval: kind.asks ? 'ask' : 'auto',
    ...(kind.outside ? {} : { execute }),
    ...(kind.reconciles ? { reconcile } : {}),
  })
}

const ARGS: StandardSchema<Args> = {
  '~standard': {
    validate(value) {
      const { ms, bytes } = value as Partial<Args>
      if (typeof ms === 'number' && typeof bytes === 'number') return { value: { ms, bytes } }
      return { issues: [{ message: 'ms and bytes must be numbers' }] }
    },
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
}
