// Bounds how long a caller waits for a session whose provider does not answer. When its patience is over the caller
// leaves; the session keeps waiting, and its worker tries again. Nothing is written or driven here.
import type { Limits } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { DEFAULT_LIMITS, patienceMsOf } from '../kernel/limits.ts'
import { type Outage, findOutage } from '../runtime/state/session-tree.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import type { RestReport, Worker } from '../runtime/loop/worker.ts'

/** The session that is waited for. */
type AwaitedSession = { readonly id: string; readonly services: Services; readonly worker: Pick<Worker, 'heads'> }
type RestedReport = Extract<RestReport, { type: 'rested' }>

/**
 * The shortest time between two looks. It is also the pace where no event tells that an outage began, as for a child's.
 */
const LOOK_MS = 500

export class CallerPatience {
  readonly #place: AwaitedSession
  readonly #givenMs: number | undefined
  readonly #begunAt: number
  #cancel = (): void => {}
  #watches = false
  #left = false
  #resolve: (seen: RestedReport) => void = () => {}
  /** Resolves when the patience is over, with the state in which the session waits then. */
  readonly over = new Promise<RestedReport>((resolve) => {
    this.#resolve = resolve
  })

  /**
   * `givenMs`: the caller's own patience. Default: the limit `patienceMs` of the agent, or that of the run if it is
   * longer.
   */
  constructor(place: AwaitedSession, givenMs: number | undefined) {
    this.#place = place
    this.#givenMs = givenMs
    this.#begunAt = place.services.clock.now()
  }

  /** Looks begin only when the session waits for a provider, or for a child that may. */
  take(event: Event): void {
    const fails = event.type === 'model.failed' && event.retryAt !== undefined
    const waits = fails || event.type === 'run.deferred' || event.type === 'agent.custom_tool_use'
    if (!waits || this.#watches) return
    this.#watches = true
    this.#look()
  }

  /** The patience that is left, if the session waits for a provider now. */
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
    // If the store cannot be read now, it is read again later. The caller's own reads report the failure.
    this.#seen().catch(() => this.#lookIn(LOOK_MS))
  }

  async #seen(): Promise<void> {
    const [outage, patienceMs] = [await this.#outage(), await this.#patienceMs()]
    const usedMs = outage === null ? 0 : this.#usedMs(outage)
    // With a patience of 0, a retry that is under way or due is still waited for.
    const tries = outage?.until === null && patienceMs === 0
    if (outage !== null && !tries && usedMs >= patienceMs)
      this.#resolve({ type: 'rested', waiting: 'retry', until: outage.until })
    else this.#lookIn(Math.max(LOOK_MS, patienceMs - usedMs))
  }

  #outage(): Promise<Outage | null> {
    const { id, services, worker } = this.#place
    return findOutage(worker.heads, id, services.store.now())
  }

  /** Time before this caller came does not count against its patience. */
  #usedMs({ lastedMs }: Outage): number {
    return Math.min(lastedMs, this.#place.services.clock.now() - this.#begunAt)
  }

  async #patienceMs(): Promise<number> {
    if (this.#givenMs !== undefined) return this.#givenMs
    const { id, services, worker } = this.#place
    const { run, agent } = await worker.heads.of(id)
    const own = patienceMsOf(agentLimits(services, agent))
    // A message with more patience sets it for everyone who waits for its run.
    return run && !run.foreign ? Math.max(own, patienceMsOf(run.limits)) : own
  }
}

function agentLimits({ agent }: Pick<Services, 'agent'>, name: string): Limits {
  try {
    return agent(name).limits
  } catch {
    // The agent belongs to another process.
    return DEFAULT_LIMITS
  }
}
