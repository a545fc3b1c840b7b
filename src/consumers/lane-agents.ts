// The agents of lanes: each consumer has one, and its sessions are the lanes of that consumer.
import { Fault } from '../kernel/failure.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { queueAgent } from '../queues/queue-agent.ts'
import { type Consumer, runOf } from '../runtime/hooks/consumers.ts'
import { readSettledRun, type RunName } from '../runtime/hooks/settled-run.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { laneAgent } from '../view/lanes.ts'

export type LaneHost = {
  /** The harness, for consumers of this package that work on sessions themselves. */
  readonly harness: () => unknown
  readonly store: CompleteStore
  readonly clock: Clock
  readonly report: (where: string, error: unknown) => void
}

const TIMEOUT_MS = 30_000
const ATTEMPTS = 5

/** The agents by name. Two consumers of one name are refused. */
export function laneAgents(consumers: readonly Consumer[], host: LaneHost): ReadonlyMap<string, Agent> {
  const agents = new Map<string, Agent>()
  for (const consumer of consumers) {
    const name = laneAgent(consumer.name)
    if (agents.has(name))
      throw new Fault('invalid_config', `Two consumers are named "${consumer.name}". Give one of them another name.`)
    agents.set(name, agentOfConsumer(name, consumer, host))
  }
  return agents
}

function agentOfConsumer(agent: string, consumer: Consumer, { store, clock, report, harness }: LaneHost): Agent {
  let told: Consumer['run'] | null = null
  const { name, timeoutMs = TIMEOUT_MS, attempts = ATTEMPTS, usd = null, deadLetters = true } = consumer
  return queueAgent({
    name: agent,
    timeoutMs,
    attempts,
    usd,
    deadLetters,
    store,
    clock,
    work: async ({ key, data }, context) => {
      const settled = await readSettledRun(store, data as RunName)
      // Its session was removed, with everything that could be told.
      if (settled === null) return
      told ??= runOf(consumer, harness())
      await told(settled, {
        key,
        signal: context.signal,
        repeated: context.repeated,
        // Read only by a consumer that asks a model.
        get askModel() {
          return context.askModel
        },
      })
    },
    failed: (_lane, key, { type, reason, tries }) => {
      const end = type === 'dead' ? ' It is a dead letter now: retry it, or drop it.' : ''
      report(`consumer ${name}`, new Error(`${key}: try ${tries} of ${attempts} failed: ${reason}${end}`))
    },
  })
}
