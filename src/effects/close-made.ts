// Closes what a host's own code has made for a harness or a run. That it cannot be closed must end neither.
import type { Clock } from '../ports/system.ts'
import { sleep } from '../engine/sleep.ts'

type Closable = { readonly close?: () => unknown } & Partial<AsyncDisposable & Disposable>

/** How long closing may take: another run, another worker or the end of the process may wait for it. */
const CLOSE_MS = 5_000

/** What has no `close` and no dispose method is left as it is. `what` begins the sentence that says what went wrong. */
export async function closeMade(made: unknown, what: string, clock: Clock): Promise<void> {
  const done = new AbortController()
  await Promise.race([closing(made, what), sleep(clock, CLOSE_MS, done.signal)])
  done.abort()
}

/** What is still being made is closed when it is there. */
async function closing(made: unknown, what: string): Promise<void> {
  try {
    const closable = (await made) as Closable | null | undefined
    const close = closable?.[Symbol.asyncDispose] ?? closable?.[Symbol.dispose] ?? closable?.close
    if (typeof close === 'function') await Promise.resolve(close.call(closable))
  } catch (error) {
    process.emitWarning(`${what} could not be closed: ${String(error)}`, 'TerretWarning')
  }
}
