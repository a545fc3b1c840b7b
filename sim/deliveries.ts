// Events from outside: each comes to two processes at once under one key, and is sent again until one of them acknowledges it. Processes
// die and commits fail meanwhile. Only in some seeds.
import { AS_AGENT } from '../src/graphs/graph-definition.ts'
import type { Harness } from '../src/harness.ts'
import { Fault } from '../src/kernel/failure.ts'
import type { Reply } from '../src/ports/model.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { createTriggers } from '../src/triggers/create-triggers.ts'
import { textOf } from '../src/view/shown-text.ts'
import type { Cast } from './cast.ts'
import { buildIdleHarness } from './idle-harness.ts'
import type { Stage } from './people.ts'
import type { SimProcess } from './process.ts'
import { Chance } from './scheduler.ts'

const SHARE = 0.6
const KEYS = ['k0', 'k1', 'k2', 'k3'] as const
const COMES_MS = 1_200
/** A process that died never answers. */
const PATIENCE_MS = 120
const SOURCE = 'mail'

/**
 * Whether this seed has deliveries. Its own chance, so that the other seeds are as they were. A trigger that was put off by a clock
 * which was an hour ahead is waited for, and no seed lasts that long; and hooks would hold back what it decides.
 */
export function hasDeliveries(seed: number, { clocks, hooks }: Cast): boolean {
  return !clocks && hooks === null && new Chance(seed ^ 0x3a11).yes(SHARE)
}

export class Deliveries {
  readonly violations: string[] = []
  readonly tally = { accepted: 0, duplicates: 0, unanswered: 0, failed: 0, notices: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #chance: Chance
  readonly #desks: { readonly process: SimProcess; readonly harness: Harness }[] = []
  /** The session that each key got. */
  readonly #acknowledged = new Map<string, string>()
  /** The effect of the notices, by their keys. */
  readonly #effects = new Set<string>()

  constructor(stage: Stage) {
    this.#stage = stage
    this.#chance = stage.actor.chance
  }

  /** The graph of the source in this process, which takes deliveries in from now on. */
  agentIn(process: SimProcess): (name: string) => Agent | null {
    const { store, clock } = process
    const triggers = this.#triggersIn(process)
    const harness = buildIdleHarness(process, this.#chance, { triggers })
    this.#desks.push({ process, harness })
    const [graph] = triggers.graphs
    const agent = graph?.[AS_AGENT]({ store, clock })
    return (name) => (agent && name === agent.name ? agent : null)
  }

  #triggersIn(process: SimProcess) {
    const call = async (): Promise<Reply> => {
      await process.sleep(this.#chance.between(0, 60))
      const action = this.#chance.yes(0.7) ? 'notify' : 'drop'
      const text = JSON.stringify({ action, prompt: 'Look.', reason: 'So.' })
      return { type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage: null }
    }
    return createTriggers({
      models: [{ name: 'simulated', call }],
      sources: { [SOURCE]: {} },
      notify: async (_, { key }) => {
        await process.sleep(this.#chance.between(0, 20))
        this.tally.notices += 1
        this.#effects.add(key)
        if (process.falters()) await new Promise(() => {})
      },
    })
  }

  async play(): Promise<void> {
    await Promise.all(KEYS.map((key) => this.#event(key)))
  }

  async #event(key: string): Promise<void> {
    const { actor } = this.#stage
    this.busy += 1
    await actor.sleep(this.#chance.between(10, COMES_MS))
    await Promise.all([this.#deliver(key, 0), this.#deliver(key, 1)])
    this.busy -= 1
  }

  async #deliver(key: string, side: number): Promise<void> {
    const { actor, over } = this.#stage
    while (!over()) {
      const alive = this.#desks.filter(({ process }) => process.alive)
      if (alive.length > 0) {
        const { harness } = this.#chance.pick(alive)
        // Senders repeat an event word for word, or with something of their own.
        const payload = this.#chance.yes(0.6) ? key : `${key} ${side}`
        const envelope = { source: SOURCE, label: 'mail', payload, dedupeKey: key }
        const answer = await Promise.race([
          harness.trigger(envelope).catch((error: unknown) => this.#refused(error)),
          actor.sleep(PATIENCE_MS).then(() => 'no answer' as const),
        ])
        if (answer === 'no answer') this.tally.unanswered += 1
        else if (answer !== null) return this.#accepted(key, answer.sessionId, answer.duplicate)
      }
      await actor.sleep(this.#chance.between(5, 40))
    }
  }

  #refused(error: unknown): null {
    const code = error instanceof Fault ? error.code : String(error)
    if (!['disk_full', 'store_busy', 'io_error'].includes(code))
      this.violations.push(`Q1 a delivery is refused: ${code}`)
    this.tally.failed += 1
    return null
  }

  #accepted(key: string, session: string, duplicate: boolean): void {
    this.tally[duplicate ? 'duplicates' : 'accepted'] += 1
    const known = this.#acknowledged.get(key)
    if (known !== undefined && known !== session)
      this.violations.push(`Q2 ${key} has the sessions ${known} and ${session}`)
    this.#acknowledged.set(key, session)
    if (!this.#stage.invariants.sessions().has(session))
      this.violations.push(`Q3 ${key} is acknowledged, and ${session} is not on disk`)
  }

  /** At rest: each acknowledged delivery has one session, which was judged, and told once where it was to be told. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const wrong: string[] = []
    const known = new Set(this.#acknowledged.values())
    for (const [id, { fold }] of this.#stage.invariants.sessions()) {
      if (!id.startsWith('trigger.')) continue
      if (!known.delete(id)) wrong.push(`Q4 ${id} is the session of no delivery that was acknowledged`)
      const { events } = await store.read(id, 0)
      if (events.filter(({ type }) => type === 'user.message').length !== 1) wrong.push(`Q5 ${id} has not one message`)
      if (fold.last === null) wrong.push(`Q6 ${id} rests and was not judged`)
      const reply = events.findLast((event) => event.type === 'agent.message')
      const said = reply === undefined ? '' : textOf(reply.parts)
      if (fold.last?.type === 'completed' && !said.includes('"evaluated":{'))
        wrong.push(`Q6 ${id} ends without a decision`)
      if (said.includes('"action":"notify"') && fold.last?.type === 'completed' && !this.#effects.delete(id))
        wrong.push(`Q7 ${id} was to be told and was not`)
      if (fold.last?.type !== 'completed') this.#effects.delete(id)
    }
    for (const id of known) wrong.push(`Q3 ${id} was acknowledged, and is not there`)
    for (const key of this.#effects)
      wrong.push(`Q8 a notice has the key ${key}, which is no session that was to be told`)
    return wrong
  }
}
