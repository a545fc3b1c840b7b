// `terret worker`: drives each session when it becomes due, in the folder where it was started, until it is stopped. It only decides
// when; the engine decides everything else, also when to give up on a failing session.
import type { Harness, LookResult } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { agentFor } from '../state/agent.ts'
import { equipped, isDefined } from '../state/agents.ts'
import type { Call } from '../args.ts'
import { clean } from '../present/clean.ts'
import { decideCovered } from '../present/approval.ts'
import { endOf, EXIT } from '../exit.ts'
import { type Remembering, remembering } from '../state/memory.ts'
import { outageLine } from '../present/outage.ts'
import { inPlace, type Place, shortId, workplaceOf } from '../state/place.ts'
import { printJson, warn } from '../present/print.ts'
import type { Setup } from '../state/setup.ts'
import { LEASE_MS, setupOf } from '../state/work.ts'
import { workflowOf } from '../state/workflows.ts'
import { troubleText } from './list.ts'
import { lookedText } from './wake.ts'

export function worker(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const { DueLoop } = await import('../../index.ts')
    const crews = new Crews(place, call)
    const idleMs = call.is('idle') ? 0 : Number.POSITIVE_INFINITY
    const { store } = place
    const report = (error: unknown): void => warn(clean(endOf(error).text))
    const look = (session: string, alone: boolean) => crews.look(session, alone)
    const dueLoop = new DueLoop({ store, width: WIDTH, idleMs, driving: () => crews.busy, look, report })
    // Running sessions are released, with their log complete up to here.
    const stop = (): void => {
      dueLoop.stop()
      void crews.close()
    }
    // Keeps the process alive while it waits for other processes.
    const held = setInterval(() => {}, HELD_MS)
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    try {
      await dueLoop.done
    } finally {
      clearInterval(held)
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      await crews.close()
    }
    return EXIT.ok
  })
}

type Looked = NonNullable<Awaited<ReturnType<Harness['look']>>['looked']>

const WIDTH = 16
const HELD_MS = 60_000

type Crew = Pick<Remembering, 'close'> & { readonly setup: Setup; readonly harness: Harness }

/** One harness per folder and workflow, opened when a session of it is due. */
class Crews {
  readonly #place: Place
  readonly #call: Call
  readonly #crews = new Map<string, Promise<Crew>>()
  #busy = 0
  #closed = false

  constructor(place: Place, call: Call) {
    this.#place = place
    this.#call = call
  }

  get busy(): number {
    return this.#busy
  }

  async look(session: string, alone: boolean): Promise<LookResult> {
    this.#busy += 1
    try {
      return await this.#look(session, alone)
    } catch (error) {
      this.#report(session, error)
      return 'failed'
    } finally {
      this.#busy -= 1
    }
  }

  #report(session: string, error: unknown): void {
    if (!this.#closed) warn(`${shortId(session)}: ${clean(endOf(error).text)}`)
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const crew of this.#crews.values()) await crew.then(leave).catch(() => {})
  }

  async #look(session: string, alone: boolean): Promise<LookResult> {
    const { agent = '' } = (await this.#place.store.card(session)) ?? {}
    const { setup, harness } = await this.#crewOf(session, agent)
    for (;;) {
      const { seen, looked } = await harness.look(session, alone)
      // The failure was reported; a session that must run alone comes again.
      if (looked === null || seen === 'later') return seen
      this.#say(session, looked, await this.#place.store.card(session))
      // Another worker has it, or the lease was lost.
      if (looked.type !== 'rested') return looked.type === 'stopped' ? 'seen' : 'failed'
      if (looked.waiting !== 'approval' || !(await this.#cover(harness, setup, session))) return 'seen'
    }
  }

  #say(session: string, looked: Looked, card: Card | null): void {
    const { trouble, outage } = card ?? {}
    const waits = outage && card ? outageLine(card) : null
    if (this.#call.is('json'))
      printJson({ session, ...looked, ...(trouble ? { trouble } : {}), ...(outage ? { outage } : {}) })
    else if (waits !== null) warn(`${shortId(session)}: ${waits}`)
    else if (trouble) warn(`${shortId(session)}: ${troubleText(session, trouble)}`)
    else if (!this.#call.is('quiet')) warn(lookedText(shortId(session), looked))
  }

  /** Writes allowed for the whole run. */
  async #cover(harness: Harness, setup: Setup, session: string): Promise<boolean> {
    const handle = harness.session(session)
    return decideCovered({ session: handle, setup, kept: [] }, await handle.run())
  }

  /** The setup of its folder limits a session. */
  async #crewOf(session: string, agent: string): Promise<Crew> {
    const folder = await workplaceOf(this.#place, session)
    const name = `${isDefined(agent) ? 'agents' : (workflowOf(agent) ?? '')} ${folder}`
    const known = this.#crews.get(name)
    if (known) return known
    const crew = this.#open(folder, agent)
    this.#crews.set(name, crew)
    crew.catch(() => this.#crews.delete(name))
    return crew
  }

  async #open(folder: string, agent: string): Promise<Crew> {
    const setup = await setupOf(this.#place, folder, this.#call, agent)
    const { store } = this.#place
    const own = await agentFor(setup, { models: this.#call.texts('model'), agent })
    const parts = await equipped(own, setup, agent, store)
    const { options, close } = await remembering(parts.options, setup, store)
    const { Harness } = await import('../../index.ts')
    const worker = { leaseMs: LEASE_MS, onError: (session: string, error: unknown) => this.#report(session, error) }
    return { setup, close, harness: new Harness({ ...options, store, worker }) }
  }
}

async function leave({ harness, close }: Crew): Promise<void> {
  await harness.close()
  await close()
}
