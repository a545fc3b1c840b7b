// A host that schedules looks at sessions, cancels some, and sends messages for later, at moments of its own. Only in
// some seeds.
import type { Stage } from './people.ts'

/** How long it goes on. What it asks for comes soon after. */
const SCHEDULING_MS = 1_200
const KEYS = ['h0', 'h1', 'h2'] as const

export function hasHost(seed: number): boolean {
  return seed % 3 === 1
}

export class Schedules {
  readonly #stage: Stage
  /** How many requests it is still going to send. */
  busy = 0

  constructor(stage: Stage) {
    this.#stage = stage
  }

  async play(): Promise<void> {
    const { actor, invariants } = this.#stage
    const { chance } = actor
    this.busy = 1
    for (let n = 0; actor.elapsed() < SCHEDULING_MS; n++) {
      await actor.sleep(chance.between(20, 140))
      // A wake tells a graph nothing, so only sessions of models get them.
      const session = chance.pick([...invariants.sessions().keys()].filter((id) => /^s\d$/.test(id)))
      const due = actor.now() + chance.between(-50, 400)
      const key = chance.pick(KEYS)
      const what = chance.between(0, 9)
      if (what < 5)
        await this.#stage.say(session, { type: 'user.schedule', id: `h${n}`, due, reason: `host ${n}`, key })
      else if (what < 7) await this.#stage.say(session, { type: 'user.unschedule', id: `h${n}`, key })
      else if (what < 9) await this.#stage.say(session, messageAt(`h${n}`, due))
      else await this.#changeMind(session, n, key)
    }
    this.busy = 0
  }

  /** Drops a wake right when its run is prepared, and asks for a later one under its key. */
  async #changeMind(session: string, n: number, key: string): Promise<void> {
    const { actor } = this.#stage
    const asked = { type: 'user.schedule', reason: 'in haste', key } as const
    await this.#stage.say(session, { ...asked, id: `now${n}`, due: actor.now() })
    await this.#stage.say(session, messageAt(`with${n}`, actor.now()))
    await actor.sleep(actor.chance.between(1, 15))
    await this.#stage.say(session, { type: 'user.unschedule', id: `not${n}`, key })
    await this.#stage.say(session, { ...asked, id: `then${n}`, due: actor.now() + 300 })
  }
}

function messageAt(id: string, notBefore: number) {
  return { type: 'user.message', id, parts: [{ type: 'text', text: `at ${id}` }], when: 'after', notBefore } as const
}
