// Parts that a harness is made of: its hooks, its agents by name, and how it tells its host of trouble.
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { checkWork, type WorkOptions } from '../../engine/due-loop.ts'
import type { Agent } from '../../engine/wiring.ts'
import { type BreakerOptions, Guard } from '../../riders/guard/guard.ts'
import { type Hook, Hooks } from '../../riders/hooks/hooks.ts'

/** A threshold that makes no sense is a mistake of the caller, not of a run. */
export function checkBreaker(breaker: BreakerOptions | false): BreakerOptions | false {
  new Guard({ breaker })
  return breaker
}

type Hooked = { readonly hooks?: readonly Hook[]; readonly strictHooks?: boolean; readonly clock: Clock }

export function hooksOf(
  { hooks = [], strictHooks = false, clock }: Hooked,
  agents: readonly string[],
  onError: (where: string, error: unknown) => void,
): Hooks | null {
  if (hooks.length === 0) return null
  const report = (hook: string, error: unknown): void => onError(`hook ${hook}`, error)
  return new Hooks({ hooks, strict: strictHooks, agents, clock, report })
}

/** An error callback that throws must not break the run. */
export function reporter(tell: (where: string, error: unknown) => void): (where: string, error: unknown) => void {
  return (where, error) => {
    const telling = async (): Promise<void> => tell(where, error)
    telling().catch((thrown: unknown) => {
      warn(where, error)
      warn('onError', thrown)
    })
  }
}

export function warn(where: string, error: unknown): void {
  const text = error instanceof Error ? error.message || error.name : String(error)
  process.emitWarning(`${where}: ${text}`, 'TerretWarning')
}

export function agentsBy(named: ReadonlyMap<string, Agent>): (name: string) => Agent {
  return (name) => {
    const agent = named.get(name)
    if (agent) return agent
    throw new Fault('invalid_config', `This session belongs to agent "${name}", which this harness does not have.`)
  }
}

/** The agent that a new session is to have. */
export function agentNamed(known: ReadonlyMap<string, Agent>, name: string): Agent {
  const agent = known.get(name)
  if (agent) return agent
  const names = [...known.keys()].join(', ')
  throw new Fault('invalid_config', `This harness has no agent "${name}". "agent" may name: ${names}.`)
}

/** Options of `work`, with the agents whose sessions it may drive: those that are named, or all that the harness has. */
export function worksFor(known: ReadonlyMap<string, Agent>, options: WorkOptions): WorkOptions {
  checkWork(options)
  const all = [...known.keys()]
  const { agents = all } = options
  const missing = agents.find((name) => !known.has(name))
  if (missing === undefined) return { ...options, agents }
  throw new Fault('invalid_config', `This harness has no agent "${missing}". "agents" may name: ${all.join(', ')}.`)
}
