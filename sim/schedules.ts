// A host that schedules looks at sessions, cancels some, and sends messages for later, at moments of its own. Only in
// some seeds, and with chances of its own, so that the others stay as they are.
import type { Stage, People } from './people.ts'
import { Chance } from './scheduler.ts'

/** How long it goes on. What it asks for comes soon after. */
const SCHEDULING_MS = 1_200
const KEYS = ['h0', 'h1', 'h2'] as const

export function hasHost(seed: number): boolean {
  return seed % 3 === 1
}

export class Schedules {
  readonly #stage: Stage
  readonly #say: People['say']
  readonly #chance: Chance
  /** How many requests it is still going to send. */
  busy = 0

  constructor(stage: Stage, seed: number, say: People['say']) {
    this.#stage = stage
    this.#say = say
    this.#chance = new Chance(Math.imul(seed, 7) + 3)
  }

  async play(): Promise<void> {
    const { scheduler, invariants } = this.#stage
    const chance = this.#chance
    this.busy = 1
    for (let n = 0; scheduler.elapsed() < SCHEDULING_MS; n++) {
      await scheduler.sleep(chance.between(20, 140))
      // A wake tells a graph nothing, so only sessions of models get them.
      const session = chance.pick([...invariants.sessions().keys()].filter((id) => /^s\d$/.test(id)))
      const due = scheduler.now() + chance.between(-50, 400)
      const key = chance.pick(KEYS)
      const what = chance.between(0, 9)
      if (what < 5) await this.#say(session, { type: 'user.schedule', id: `h${n}`, due, reason: `host ${n}`, key })
      else if (what < 7) await this.#say(session, { type: 'user.unschedule', id: `h${n}`, key })
      else if (what < 9) await this.#say(session, messageAt(`h${n}`, due))
      else await this.#changeMind(session, n, key)
    }
    this.busy = 0
  }

  /** Drops a wake right when its run is prepared, and asks for a later one under its key. */
  async #changeMind(session: string, n: number, key: string): Promise<void> {
    const { scheduler } = this.#stage
    const asked = { type: 'user.schedule', reason: 'in haste', key } as const
    await this.#say(session, { ...asked, id: `now${n}`, due: scheduler.now() })
    await this.#say(session, messageAt(`with${n}`, scheduler.now()))
    await scheduler.sleep(this.#chance.between(1, 15))
    await this.#say(session, { type: 'user.unschedule', id: `not${n}`, key })
    await this.#say(session, { ...asked, id: `then${n}`, due: scheduler.now() + 300 })
  }
}

function messageAt(id: string, notBefore: number) {
  return { type: 'user.message', id, parts: [{ type: 'text', text: `at ${id}` }], when: 'after', notBefore } as const
}
