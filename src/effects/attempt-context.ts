// What a host's `context` builds for tools: for each run that an attempt drives, before the run's first call there. It is closed when
// the next run begins, or when the worker leaves the session. Loaded by the first harness that has a `context`.
import type { SessionCache } from '../engine/session-cache.ts'
import { sleep } from '../engine/sleep.ts'
import type { Services } from '../engine/wiring.ts'
import { cloneJson } from './clone-json.ts'

/** How long closing may take: another run, or another worker, may wait for it. */
const CLOSE_MS = 5_000

type Closable = { readonly close?: () => unknown } & Partial<AsyncDisposable & Disposable>

export class AttemptContext {
  readonly #services: Services
  readonly #cache: SessionCache
  #made: { readonly run: number; readonly deps: Promise<unknown> } | null = null

  constructor(services: Services, cache: SessionCache) {
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
    const done = new AbortController()
    await Promise.race([closing(deps), sleep(this.#services.clock, CLOSE_MS, done.signal)])
    done.abort()
  }
}

async function closing(deps: Promise<unknown>): Promise<void> {
  const made = (await deps.catch(() => null)) as Closable | null | undefined
  try {
    const close = made?.[Symbol.asyncDispose] ?? made?.[Symbol.dispose] ?? made?.close
    if (typeof close === 'function') await close.call(made)
  } catch (error) {
    // It is the host's own: that it could not be closed must not end a run.
    process.emitWarning(`The context of a session could not be closed: ${String(error)}`, 'TerretWarning')
  }
}
