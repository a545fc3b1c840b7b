// Performs the effects on the world: prepare a run, call the model, run a call, and review calls from elsewhere.
// Failures are part of the landing. Nothing is decided here; admission and the verdict are recorded with the reply.
import type { Effect } from '../../kernel/next.ts'
import type { FailEffect, PerformEffect, FlightContext, Landing } from '../state/effect.ts'
import { whyNotDriven } from '../state/program.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { agentOfRun } from '../state/agent.ts'
import type { Allowances } from '../money/allowance.ts'
import { admissionContextFor, ModelCaller } from './call-model.ts'
import { type FrozenRun, FrozenRuns } from '../state/frozen-run.ts'
import { landFailedEffect, PREPARE_MS } from './landings.ts'
import { Preparer } from './prepare-run.ts'
import { reviewRun } from './review-run.ts'
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

  /** The functions that perform the effects of one session's attempt. */
  for(cache: SessionCache): { readonly perform: PerformEffect; readonly fail: FailEffect } {
    const perform: PerformEffect = (effect, flight) => {
      if (effect.type === 'call') return this.#model.call(cache, effect, flight)
      if (effect.type === 'prepare') return this.#preparer.prepare(effect, cache, flight)
      if (effect.type === 'review') return this.#review(cache, effect, flight)
      if (effect.type === 'end') return this.#end(cache, effect, flight)
      if (effect.mode === 'edit') return this.#calls.admitEdit(cache, effect, flight)
      return effect.mode === 'clear' ? this.#calls.clear(cache, effect, flight) : this.#calls.run(cache, effect, flight)
    }
    const fail: FailEffect = (effect, error) =>
      effect.type === 'prepare'
        ? this.#preparer.landFailure(effect, cache, error, PREPARE_MS)
        : landFailedEffect(effect, error)
    return { perform, fail }
  }

  /** Why no worker of this harness drives the session; null if one may. */
  whyLeft(cache: SessionCache): Promise<string | null> {
    return whyNotDriven(this.#services, this.#frozen, cache)
  }

  /** The frozen instructions and tools of the open run. */
  async frozenRun(cache: SessionCache): Promise<FrozenRun> {
    return this.#frozen.known(cache) ?? (await this.#frozen.of(cache))
  }

  /**
   * The allowances of sessions and their tools. Loaded by the first agent with a budget, or the first tool that asks a
   * model.
   */
  allowances(): Promise<Allowances> {
    this.#allowances ??= import('../money/allowance.ts').then(
      ({ Allowances }) => new Allowances(this.#services, this.#frozen),
    )
    return this.#allowances
  }

  async #end(cache: SessionCache, effect: Extract<Effect, { type: 'end' }>, flight: FlightContext): Promise<Landing> {
    const { endRun } = await import('./end-run.ts')
    return endRun(this.#services, cache, effect, flight)
  }

  #review(cache: SessionCache, effect: Extract<Effect, { type: 'review' }>, flight: FlightContext): Promise<Landing> {
    const asking = admissionContextFor(this.#services, agentOfRun(this.#services, cache), cache)
    return reviewRun({ services: this.#services, preparer: this.#preparer, asking }, effect, cache, flight)
  }
}
