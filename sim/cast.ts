// The cast and rules of a seed: its agents, their limits, the money, the hooks, the breaker. Drawn once, so that every process of
// the seed has the same.
import type { Limits } from '../src/kernel/content.ts'
import { DEFAULT_LIMITS } from '../src/kernel/limits.ts'
import type { Budget } from '../src/runtime/state/agent.ts'
import type { Policy } from '../src/tools/policy/policy.ts'
import { LIKE_PARENT } from '../src/tools/agents/subagent.ts'
import type { Chance } from './scheduler.ts'

export type Role = {
  readonly limits: Limits
  readonly approvalMs: number | null
  /** The agents it may start as children. */
  readonly children: readonly string[]
  /** It also leads children that work on while it goes on. */
  readonly leads: boolean
  /** Its model makes the same hopeless call again and again. */
  readonly stubborn: boolean
  /** Most of its model's answers are cut after they began. */
  readonly cutting: boolean
  /** It mostly answers at once. */
  readonly brief?: boolean
  /** Its answers are reviews. */
  readonly reviews?: boolean
  /** The orders of an answer stand before its other calls. */
  readonly ordersFirst?: boolean
}

/** Which hooks there are. A list of tools, or null for all. */
export type HookPlan = {
  readonly strict: boolean
  /** How fast they answer. `soon`: while what landed before is still being written. */
  readonly pace: 'at once' | 'soon' | 'slow'
  /** How often one throws instead of judging a call. */
  readonly throws: number
  readonly before: readonly (readonly string[] | null)[]
  readonly after: readonly string[] | null
  readonly subagent: boolean
  readonly stop: boolean
  readonly prompt: boolean
}

export type Cast = {
  readonly roles: ReadonlyMap<string, Role>
  /** What one session's account may spend where there is no budget, by session. */
  readonly allowances: ReadonlyMap<string, number>
  readonly budget: Budget | null
  readonly hooks: HookPlan | null
  readonly breaker: boolean
  readonly policy: Policy
  /**
   * When its provider goes down, and for how long. `long`: longer than callers wait, and it fails in several ways. `toolsStay`: only the
   * provider is away, and not the tools that a run needs to begin.
   */
  readonly outage: {
    readonly fromMs: number
    readonly forMs: number
    readonly long?: true
    readonly toolsStay?: boolean
  } | null
  /** The clocks of its machines are wrong now and then. */
  readonly clocks: boolean
  /** Processes of one host can tell each other apart. */
  readonly tells: boolean
  /** How many tokens its model takes, if that is so few that contexts fill up. */
  readonly window: number | null
  /** Its summaries say nothing. */
  readonly forgetful: boolean
  /** What is said has a secret in it now and then. */
  readonly secret: boolean
}

/** What a request of the simulated model costs at most, and what is held for one at most, in millionths of a dollar. */
export const COST_MAX = 1_000
/** What a run is told that chose nothing else. */
export const INSTRUCTIONS = 'Simulate.'
export const HOLD_MAX = 2_500
/** Most calls the stubborn model makes before the breaker must end its run. */
export const STUBBORN_MAX = 3

const MODEL_MS = 150
/** How long a request is waited for after its abort. */
export const GRACE_MS = 15
const WINDOW = 1_600
const CLERK = 'clerk'
const HOOKED = ['look', 'put', 'pay', 'slow', 'risky', 'publish', 'outside', 'checked', 'broken']

export function drawCast(chance: Chance, sessions: readonly string[]): Cast {
  const budget = chance.yes(0.4) ? drawBudget(chance) : null
  const breaker = chance.yes(0.5)
  const roles = new Map<string, Role>()
  const allowances = new Map<string, number>()
  const children = [LIKE_PARENT, CLERK]
  const stubborn = breaker && chance.yes(0.6) ? sessions.at(-1) : undefined
  const outage = chance.yes(0.1) ? { fromMs: chance.between(50, 1_200), forMs: chance.between(30_000, 130_000) } : null
  const cutter = chance.yes(0.3) ? sessions[1] : undefined
  // Sessions that must wait for a provider are tried for three days; the others give up after three tries.
  const patient = { modelAttempts: null }
  for (const session of sessions) {
    const drawn = limitsOf(chance, session, session === stubborn, budget === null)
    const limits = outage !== null || session === cutter ? { ...drawn, ...patient } : drawn
    if (limits.hold > 0) allowances.set(session, limits.hold * chance.between(2, 8))
    roles.set(session, {
      limits,
      approvalMs: chance.yes(0.3) ? 120 : null,
      children: session !== stubborn && chance.yes(0.7) ? children : [],
      leads: chance.yes(0.5),
      stubborn: session === stubborn,
      cutting: session === cutter,
    })
  }
  for (const name of children) {
    const { hold, ...drawn } = drawLimits(chance, budget === null)
    const limits = { ...drawn, ...(outage ? patient : {}), hold, modelRequests: chance.between(2, 4) }
    roles.set(name, {
      limits,
      approvalMs: chance.yes(0.3) ? 120 : null,
      children,
      leads: chance.yes(0.4),
      stubborn: false,
      cutting: false,
    })
  }
  const hooks = chance.yes(0.55) ? drawHooks(chance) : null
  const asks = { effect: 'ask', tool: 'subagent', class: 'child' } as const
  const policy: Policy = { rules: chance.yes(0.15) ? [asks] : [] }
  const clocks = chance.yes(0.5)
  const window = chance.yes(0.3) ? WINDOW : null
  const forgetful = window !== null && chance.yes(0.25)
  return {
    roles,
    allowances,
    budget,
    hooks,
    breaker,
    policy,
    outage,
    clocks,
    tells: chance.yes(0.6),
    window,
    forgetful,
    secret: false,
  }
}

/**
 * Every eighth seed: all parents lead, and all hooks are strict and answer soon, so that one of them ends a run in the commit in which
 * orders were let go.
 */
export function withStrictHooks(seed: number, cast: Cast): Cast {
  if (seed % 8 !== 6) return cast
  const none = { subagent: false, stop: false, prompt: false }
  const roles = new Map([...cast.roles].map(([name, role]) => [name, { ...role, leads: true, ordersFirst: true }]))
  return { ...cast, roles, hooks: { strict: true, pace: 'soon', throws: 0.3, before: [null], after: null, ...none } }
}

/** How long a provider asks to wait in a long outage. */
export const RETRY_AFTER_MS = 30 * 60_000

/** Every second outage is longer than callers wait, by default 15 minutes: from 20 minutes to an hour. */
export function withLongOutage(seed: number, cast: Cast): Cast {
  const { outage } = cast
  if (outage === null || seed % 2 !== 0) return cast
  const forMs = (20 + ((seed * 7_919) % 40)) * 60_000
  return { ...cast, outage: { ...outage, forMs, long: true, toolsStay: seed % 4 !== 0 } }
}

function drawBudget(chance: Chance): Budget {
  const usd = (low: number, high: number): number => (COST_MAX * chance.between(low, high)) / 1_000_000
  return {
    ...(chance.yes(0.6) ? { runUsd: usd(2, 6) } : {}),
    ...(chance.yes(0.5) ? { sessionUsd: usd(3, 12) } : {}),
    ...(chance.yes(0.6) ? { treeUsd: usd(4, 20) } : {}),
    ...(chance.yes(0.3) ? { dayUsd: usd(4, 20) } : {}),
  }
}

function drawHooks(chance: Chance): HookPlan {
  const some = (): readonly string[] | null => (chance.yes(0.4) ? null : HOOKED.filter(() => chance.yes(0.5)))
  const tools = [some(), ...(chance.yes(0.5) ? [some()] : [])].filter((list) => list === null || list.length > 0)
  const after = some()
  return {
    strict: chance.yes(0.5),
    pace: chance.yes(0.5) ? 'at once' : 'slow',
    throws: 0.12,
    before: tools,
    after: after?.length === 0 ? null : after,
    subagent: chance.yes(0.6),
    stop: chance.yes(0.5),
    prompt: chance.yes(0.5),
  }
}

function limitsOf(chance: Chance, session: string, stubborn: boolean, holds: boolean): Limits {
  const drawn = drawLimits(chance, holds)
  const free = { ...drawn, toolCalls: null, tokens: null, activeMs: 60_000 }
  if (stubborn) return { ...free, modelRequests: STUBBORN_MAX + 4 }
  // The first session may make the three calls of its first answer.
  return session === 's0' ? free : drawn
}

function drawLimits(chance: Chance, holds: boolean): Limits {
  return {
    ...DEFAULT_LIMITS,
    modelMs: MODEL_MS,
    modelRequests: chance.between(2, 7),
    modelAttempts: 3,
    toolCalls: chance.yes(0.4) ? chance.between(2, 9) : null,
    activeMs: chance.yes(0.3) ? chance.between(150, 900) : 60_000,
    tokens: chance.yes(0.2) ? chance.between(500, 2_500) : null,
    lossesMax: 6,
    parallel: chance.pick([1, 2, 16]),
    hold: holds && chance.yes(0.3) ? COST_MAX : 0,
    depth: chance.between(1, 3),
    toolRetries: chance.pick([0, 1, 5]),
  }
}
