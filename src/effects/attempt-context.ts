// What a host's `context` builds for tools: for each run that an attempt drives, before the run's first call there. It is closed when
// the next run begins, or when the worker leaves the session. Loaded by the first harness that has a `context`.
import type { ContextOf, Services } from '../engine/wiring.ts'
import { cloneJson } from './clone-json.ts'
import { closeMade } from './close-made.ts'

/** What it needs to know of the session that is driven. */
type Driven = { readonly session: { readonly began: number }; readonly place: ContextOf }

export class AttemptContext {
  readonly #services: Services
  readonly #cache: Driven
  #made: { readonly run: number; readonly deps: Promise<unknown> } | null = null

  constructor(services: Services, cache: Driven) {
    this.#services = services
    this.#cache = cache
  }

  /** The same for every call of a run. What could not be built is built anew for the next call. */
  async deps(): Promise<unknown> {
    const run = this.#cache.session.began
    if (this.#made?.run !== run) {
      const before = this.#made
      this.#made = { run, deps: this.#build() }
      await this.#closed(before?.deps)
    }
    const { deps } = this.#made
    deps.catch(() => {
      if (this.#made?.deps === deps) this.#made = null
    })
    return deps
  }

  async #build(): Promise<unknown> {
    return this.#services.context?.(cloneJson(this.#cache.place))
  }

  async close(): Promise<void> {
    const { deps } = this.#made ?? {}
    this.#made = null
    await this.#closed(deps)
  }

  /** One that is still being built is closed when it is there, and not waited for any longer than another. */
  async #closed(deps: Promise<unknown> | undefined): Promise<void> {
    if (deps === undefined) return
    const made = deps.catch(() => null)
    await closeMade(made, 'The context of a session', this.#services.clock)
  }
}
