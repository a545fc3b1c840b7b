// The value that a host's `deps` builds for tools: once for each run that an attempt drives, before the run's first
// call. It is closed when the next run begins or when the worker leaves the session.
import type { RunIdentity, Services } from '../state/runtime-ports.ts'
import { cloneJson } from '../state/clone-json.ts'
import { closeHostResource } from './close-made.ts'

/** The part of the driven session that is needed here. */
type DrivenSession = { readonly session: { readonly began: number }; readonly runIdentity: RunIdentity }

export class AttemptContext {
  readonly #services: Services
  readonly #cache: DrivenSession
  #made: { readonly run: number; readonly deps: Promise<unknown> } | null = null

  constructor(services: Services, cache: DrivenSession) {
    this.#services = services
    this.#cache = cache
  }

  /** The same value for every call of a run. If building it failed, it is built anew for the next call. */
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
    return this.#services.makeDeps?.(cloneJson(this.#cache.runIdentity))
  }

  async close(): Promise<void> {
    const { deps } = this.#made ?? {}
    this.#made = null
    await this.#closed(deps)
  }

  /** A value that is still being built is closed when it is ready. The wait for it is bounded like any other. */
  async #closed(deps: Promise<unknown> | undefined): Promise<void> {
    if (deps === undefined) return
    const made = deps.catch(() => null)
    await closeHostResource(made, 'The context of a session', this.#services.clock)
  }
}
