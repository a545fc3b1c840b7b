// Closes an object that the host's own code made for a harness or a run. A failure to close it must end neither.
import type { Clock } from '../../ports/system.ts'
import { sleep } from '../state/sleep.ts'

type Closable = { readonly close?: () => unknown } & Partial<AsyncDisposable & Disposable>

/** The longest time that closing may take. Another run, another worker or the end of the process may wait for it. */
const CLOSE_MS = 5_000

/**
 * An object without `close` and without a dispose method is left as it is. `what` begins the sentence of the warning.
 */
export async function closeHostResource(made: unknown, what: string, clock: Clock): Promise<void> {
  const done = new AbortController()
  await Promise.race([closeWhenReady(made, what), sleep(clock, CLOSE_MS, done.signal)])
  done.abort()
}

/** An object that is still being made is closed when it is ready. */
async function closeWhenReady(made: unknown, what: string): Promise<void> {
  try {
    const closable = (await made) as Closable | null | undefined
    const close = closable?.[Symbol.asyncDispose] ?? closable?.[Symbol.dispose] ?? closable?.close
    if (typeof close === 'function') await Promise.resolve(close.call(closable))
  } catch (error) {
    process.emitWarning(`${what} could not be closed: ${String(error)}`, 'TerretWarning')
  }
}
