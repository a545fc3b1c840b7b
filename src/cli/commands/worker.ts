// `terret worker`: looks at each session when it becomes due, in the folder where it was started, until it is told to stop. It only
// says when; what happens to a session is decided where it always is.
import type { Harness } from '../../index.ts'
import { agentFor } from '../agent.ts'
import type { Call } from '../args.ts'
import { clean } from '../clean.ts'
import { coveredBy } from '../deck.ts'
import { endOf, EXIT } from '../exit.ts'
import { inPlace, type Place, shortId, workplaceOf } from '../place.ts'
import { printJson, warn } from '../print.ts'
import type { Setup } from '../setup.ts'
import { LEASE_MS, setupOf } from '../work.ts'
import { lookedText } from './wake.ts'

export function worker(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const patrol = new Patrol(place, call)
    const stop = (): void => patrol.stop()
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    try {
      await patrol.run(call.is('idle'))
    } finally {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      await patrol.close()
    }
    return EXIT.ok
  })
}

const WIDTH = 16
const AGAIN_MS = 1_000
const AGAIN_MS_MAX = 60_000

type Crew = { readonly setup: Setup; readonly harness: Harness }
type Trouble = { readonly count: number; readonly until: number }

class Patrol {
  readonly #place: Place
  readonly #call: Call
  readonly #crews = new Map<string, Promise<Crew>>()
  readonly #busy = new Set<string>()
  /** What could not be looked at waits longer each time, so that one bad session costs little. */
  readonly #troubles = new Map<string, Trouble>()
  #stopped = false
  #ring = (): void => {}

  constructor(place: Place, call: Call) {
    this.#place = place
    this.#call = call
  }

  async run(untilIdle: boolean): Promise<void> {
    const { store } = this.#place
    const unwatch = store.watchDue(() => this.#ring())
    try {
      while (!this.#stopped) {
        let timer: NodeJS.Timeout | undefined
        const rung = new Promise<void>((resolve) => {
          this.#ring = resolve
        })
        const due = (await store.due(WIDTH * 4)).filter((session) => this.#isFree(session))
        for (const session of due.slice(0, WIDTH - this.#busy.size)) this.#begin(session)
        if (untilIdle && this.#busy.size === 0 && due.length === 0) return
        const waitMs = await this.#waitMs()
        if (waitMs !== null) timer = setTimeout(() => this.#ring(), waitMs)
        // Nobody else may keep the process: it waits for news of others too.
        const held = setInterval(() => {}, AGAIN_MS_MAX)
        if (!this.#stopped) await rung
        clearTimeout(timer)
        clearInterval(held)
      }
    } finally {
      unwatch()
    }
  }

  stop(): void {
    this.#stopped = true
    this.#ring()
  }

  /** Gives back what is being driven, written down as far as it came. */
  async close(): Promise<void> {
    for (const crew of this.#crews.values()) await crew.then(({ harness }) => harness.close()).catch(() => {})
  }

  #isFree(session: string): boolean {
    const { store } = this.#place
    return !this.#busy.has(session) && (this.#troubles.get(session)?.until ?? 0) <= store.now()
  }

  async #waitMs(): Promise<number | null> {
    const { store } = this.#place
    const now = store.now()
    const next = await store.nextDue()
    const troubles = [...this.#troubles.values()].map(({ until }) => until).filter((until) => until > now)
    const times = [...(next !== null && next > now ? [next] : []), ...troubles]
    // What is due and not free is looked at again when it ends, or in a moment.
    if (next !== null && next <= now && this.#busy.size === 0) times.push(now + AGAIN_MS)
    return times.length > 0 ? Math.min(...times) - now : null
  }

  #begin(session: string): void {
    this.#busy.add(session)
    this.#look(session)
      .then(
        (done) => (done ? this.#troubles.delete(session) : this.#trouble(session)),
        (error: unknown) => {
          this.#trouble(session)
          if (!this.#stopped) warn(`${shortId(session)}: ${clean(endOf(error).text)}`)
        },
      )
      .finally(() => {
        this.#busy.delete(session)
        this.#ring()
      })
      .catch(() => {})
  }

  #trouble(session: string): void {
    const { count = 0 } = this.#troubles.get(session) ?? {}
    const until = this.#place.store.now() + Math.min(AGAIN_MS_MAX, AGAIN_MS * 2 ** count)
    this.#troubles.set(session, { count: count + 1, until })
  }

  /** False if somebody else has it, or it was lost. */
  async #look(session: string): Promise<boolean> {
    const { setup, harness } = await this.#crewOf(session)
    for (;;) {
      const looked = await harness.wake(session)
      if (this.#call.is('json')) printJson({ session, ...looked })
      else if (!this.#call.is('quiet')) warn(lookedText(shortId(session), looked))
      if (looked.type !== 'rested') return looked.type === 'stopped'
      if (looked.waiting !== 'approval' || !(await this.#cover(harness, setup, session))) return true
    }
  }

  /** Writes that somebody allowed for the whole run. */
  async #cover(harness: Harness, { policy }: Setup, session: string): Promise<boolean> {
    const handle = harness.session(session)
    const covered = await coveredBy(policy, await handle.run())
    for (const { pending, by } of covered) {
      const { callId, digest } = pending
      const seen = digest === undefined ? {} : { digest }
      await handle.decide({ callId, allow: true, by: 'terret', why: `${by} allowed writes for this run`, ...seen })
    }
    return covered.length > 0
  }

  /** One harness a folder: what a session may do is what its folder's setup says. */
  #crewOf(session: string): Promise<Crew> {
    const folder = workplaceOf(this.#place, session)
    const known = this.#crews.get(folder)
    if (known) return known
    const crew = this.#open(folder)
    this.#crews.set(folder, crew)
    crew.catch(() => this.#crews.delete(folder))
    return crew
  }

  async #open(folder: string): Promise<Crew> {
    const setup = await setupOf(this.#place, folder, this.#call)
    const { options } = await agentFor(setup, { models: this.#call.texts('model') })
    const { Harness } = await import('../../index.ts')
    return { setup, harness: new Harness({ ...options, store: this.#place.store, worker: { leaseMs: LEASE_MS } }) }
  }
}
