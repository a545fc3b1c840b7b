// The effects on the world: prepare a run, call the model, run a call, and review what came from elsewhere. What goes wrong is part of
// the landing. Nothing is decided here; admission and the verdict are recorded with the reply.
import type { Effect } from '../kernel/next.ts'
import type { Fail, FlightContext, Landing, Perform } from '../engine/flights.ts'
import { whyLeft } from '../engine/program.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { agentFor, type Services } from '../engine/wiring.ts'
import type { Allowances } from '../riders/money/allowance.ts'
import { askingFor, ModelCaller } from './call-model.ts'
import { type FrozenRun, FrozenRuns } from './frozen-run.ts'
import { failedLanding, PREPARE_MS } from './outcomes.ts'
import { Preparer } from './prepare.ts'
import { CallRunner } from './run-call.ts'

export class Performer {
  readonly #services: Services
  readonly #frozen: FrozenRuns
  readonly #preparer: Preparer
  readonly #model: ModelCaller
  readonly #calls: CallRunner
  #allowances: Promise<Allowances> | null = null

  constructor(services: Services) {
    this.#services = services
    this.#frozen = new FrozenRuns(services.store)
    this.#preparer = new Preparer(services, this.#frozen, () => this.allowances())
    this.#model = new ModelCaller(services, this.#frozen, () => this.allowances())
    this.#calls = new CallRunner(services, this.#frozen, () => this.allowances())
  }

  /** The effects of one session's attempt. */
  for(cache: SessionCache): { readonly perform: Perform; readonly fail: Fail } {
    const perform: Perform = (effect, flight) => {
      if (effect.type === 'call') return this.#model.call(cache, effect, flight)
      if (effect.type === 'prepare') return this.#preparer.prepare(effect, cache, flight)
      if (effect.type === 'review') return this.#review(cache, effect, flight)
      if (effect.mode === 'edit') return this.#calls.admitEdit(cache, effect, flight)
      return effect.mode === 'clear' ? this.#calls.clear(cache, effect, flight) : this.#calls.run(cache, effect, flight)
    }
    const fail: Fail = (effect, error) =>
      effect.type === 'prepare' ? this.#preparer.failed(effect, cache, error, PREPARE_MS) : failedLanding(effect, error)
    return { perform, fail }
  }

  /** Why no worker of this harness drives the session; null if one may. */
  whyLeft(cache: SessionCache): Promise<string | null> {
    return whyLeft(this.#services, this.#frozen, cache)
  }

  /** What the open run froze. */
  async frame(cache: SessionCache): Promise<FrozenRun> {
    return this.#frozen.known(cache) ?? (await this.#frozen.of(cache))
  }

  /** What sessions and their tools may spend. Loaded by the first that has a budget, or whose tool asks a model. */
  allowances(): Promise<Allowances> {
    this.#allowances ??= import('../riders/money/allowance.ts').then(
      ({ Allowances }) => new Allowances(this.#services, this.#frozen),
    )
    return this.#allowances
  }

  async #review(
    cache: SessionCache,
    effect: Extract<Effect, { type: 'review' }>,
    flight: FlightContext,
  ): Promise<Landing> {
    const { reviewRun } = await import('./review.ts')
    const asking = askingFor(this.#services, agentFor(this.#services, cache), cache)
    return reviewRun({ services: this.#services, preparer: this.#preparer, asking }, effect, cache, flight)
  }
}
