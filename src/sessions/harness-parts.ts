// Parts of a harness: its hooks, its agents by name, and its reports of trouble to the host.
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import { checkWorkOptions, type WorkOptions } from '../runtime/loop/due-loop.ts'
import type { Agent } from '../runtime/state/agent.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { type BreakerOptions, GuardFold } from '../runtime/guard/guard.ts'
import { Hooks } from '../runtime/hooks/hooks.ts'
import type { Hook } from '../runtime/state/hook-events.ts'
import { isLaneAgent } from '../view/lanes.ts'
import { thrownText } from '../view/shown-text.ts'

/** Invalid thresholds are the caller's mistake, so they are checked here and not in a run. */
export function checkBreaker(breaker: BreakerOptions | false): BreakerOptions | false {
  new GuardFold({ breaker })
  return breaker
}

type HookParts = { readonly hooks?: readonly Hook[]; readonly clock: Clock }

export function buildHooks(
  { hooks = [], clock }: HookParts,
  agents: readonly string[],
  onError: (where: string, error: unknown) => void,
): Hooks | null {
  if (hooks.length === 0) return null
  const report = (hook: string, error: unknown): void => onError(`hook ${hook}`, error)
  return new Hooks({ hooks, agents, clock, report })
}

/** An error callback that throws must not break the run. */
export function buildReporter(tell: (where: string, error: unknown) => void): (where: string, error: unknown) => void {
  return (where, error) => {
    const telling = async (): Promise<void> => tell(where, error)
    telling().catch((thrown: unknown) => {
      emitTerretWarning(where, error)
      emitTerretWarning('onError', thrown)
    })
  }
}

export function emitTerretWarning(where: string, error: unknown): void {
  process.emitWarning(`${where}: ${thrownText(error)}`, 'TerretWarning')
}

/** `find` makes agents that are not named by the host. */
export function agentFinder(
  named: ReadonlyMap<string, Agent>,
  find: (name: string) => Agent | null,
): (name: string) => Agent {
  return (name) => {
    const agent = named.get(name) ?? find(name)
    if (agent) return agent
    throw new Fault('invalid_config', `This session belongs to agent "${name}", which this harness does not have.`)
  }
}

/** The agent for a new session. */
export function findAgent(known: ReadonlyMap<string, Agent>, name: string): Agent {
  const agent = known.get(name)
  if (agent && !isLaneAgent(name)) return agent
  const names = [...known.keys()].filter((each) => !isLaneAgent(each)).join(', ')
  throw new Fault('invalid_config', `This harness has no agent "${name}". "agent" may name: ${names}.`)
}

/**
 * Completes the options of `work` with the agents whose sessions it may drive: the named ones, or all of the harness,
 * with what `withGraders` adds to them.
 */
export function completeWorkOptions(
  known: ReadonlyMap<string, Agent>,
  options: WorkOptions,
  withGraders: (names: readonly string[]) => readonly string[],
): WorkOptions {
  checkWorkOptions(options)
  const all = [...known.keys()]
  const { agents = all } = options
  const missing = agents.find((name) => !known.has(name))
  if (missing === undefined) return { ...options, agents: withGraders(agents) }
  throw new Fault('invalid_config', `This harness has no agent "${missing}". "agents" may name: ${all.join(', ')}.`)
}

/** The agents that pay for their sessions from a budget of their own, with what it may be in a day. */
export function dayBudgetsOf(agents: ReadonlyMap<string, Agent>): Services['dayBudgets'] {
  const own = [...agents].flatMap(([name, { ownDay }]) => (ownDay === undefined ? [] : [[name, ownDay] as const]))
  return own.length > 0 ? new Map(own.map(([name, dayUsd]) => [name, { dayUsd }])) : undefined
}
