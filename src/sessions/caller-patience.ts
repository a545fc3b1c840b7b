// How long a caller waits for a session whose provider does not answer. When its patience is over the caller leaves; the session keeps
// what it waits for, and whoever drives it tries again. Nothing is written or driven here.
import type { Limits } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { DEFAULT_LIMITS, patienceMsOf } from '../kernel/limits.ts'
import { type Outage, outageOf } from '../riders/children/tree.ts'
import type { Services } from '../engine/wiring.ts'
import type { Looked, Worker } from '../engine/worker.ts'

/** The session that is waited for. */
type SessionPlace = { readonly id: string; readonly services: Services; readonly worker: Pick<Worker, 'heads'> }
type Rested = Extract<Looked, { type: 'rested' }>

/** How often to look again at the least, where nothing tells when an outage began: that of a child. */
const LOOK_MS = 500

export class CallerPatience {
  readonly #place: SessionPlace
  readonly #givenMs: number | undefined
  readonly #begunAt: number
  #cancel = (): void => {}
  #watches = false
  #left = false
  #resolve: (seen: Rested) => void = () => {}
  /** Resolves when the patience is over, with what the session waits for then. */
  readonly over = new Promise<Rested>((resolve) => {
    this.#resolve = resolve
  })

  /** `givenMs`: the caller's own. Default: the limit `patienceMs` of the agent, or that of the run if it is longer. */
  constructor(place: SessionPlace, givenMs: number | undefined) {
    this.#place = place
    this.#givenMs = givenMs
    this.#begunAt = place.services.clock.now()
  }

  /** Nothing is looked at before the session waits for a provider, or for a child that may. */
  take(event: Event): void {
    const fails = event.type === 'model.failed' && event.retryAt !== undefined
    const waits = fails || event.type === 'run.deferred' || event.type === 'agent.custom_tool_use'
    if (!waits || this.#watches) return
    this.#watches = true
    this.#look()
  }

  /** What is left of the patience, if the session waits for a provider now. */
  async leftMs(): Promise<number> {
    const outage = await this.#outage()
    const patienceMs = await this.#patienceMs()
    return outage === null ? patienceMs : patienceMs - this.#usedMs(outage)
  }

  leave(): void {
    this.#left = true
    this.#cancel()
  }

  /** Sets no timer after the caller has left. */
  #lookIn(ms: number): void {
    if (!this.#left) this.#cancel = this.#place.services.clock.timer(ms, this.#look)
  }

  readonly #look = (): void => {
    // A store that cannot be read now is read again later. The caller's own reads report the trouble.
    this.#seen().catch(() => this.#lookIn(LOOK_MS))
  }

  async #seen(): Promise<void> {
    const [outage, patienceMs] = [await this.#outage(), await this.#patienceMs()]
    const usedMs = outage === null ? 0 : this.#usedMs(outage)
    // Without any patience a try that is under way, or due, is waited for.
    const tries = outage?.until === null && patienceMs === 0
    if (outage !== null && !tries && usedMs >= patienceMs)
      this.#resolve({ type: 'rested', waiting: 'retry', until: outage.until })
    else this.#lookIn(Math.max(LOOK_MS, patienceMs - usedMs))
  }

  #outage(): Promise<Outage | null> {
    const { id, services, worker } = this.#place
    return outageOf(worker.heads, id, services.store.now())
  }

  /** An outage that began before this caller came has used none of its patience by then. */
  #usedMs({ lastedMs }: Outage): number {
    return Math.min(lastedMs, this.#place.services.clock.now() - this.#begunAt)
  }

  async #patienceMs(): Promise<number> {
    if (this.#givenMs !== undefined) return this.#givenMs
    const { id, services, worker } = this.#place
    const { run, agent } = await worker.heads.of(id)
    const own = patienceMsOf(limitsOf(services, agent))
    // Somebody who asked for more patience with a message asked for all who wait for its run.
    return run && !run.foreign ? Math.max(own, patienceMsOf(run.limits)) : own
  }
}

function limitsOf({ agent }: Pick<Services, 'agent'>, name: string): Limits {
  try {
    return agent(name).limits
  } catch {
    // Its agent is another process's.
    return DEFAULT_LIMITS
  }
}
