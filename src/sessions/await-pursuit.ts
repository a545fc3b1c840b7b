// Waits for the end of what a session pursues, by looking at it now and then: of a harness, or of a client of a server.
// It drives nothing.
import { Fault } from '../kernel/failure.ts'
import { optionsChecker } from '../options.ts'
import { runtimeClock } from '../runtime/state/machine.ts'
import { sleep } from '../runtime/state/sleep.ts'
import { signalCheck } from './command.ts'
import type { PursuitStatus } from './pursuit.ts'
import type { Session } from './verbs.ts'

/** Options of `awaitPursuit`: a signal that ends the waiting, and not the pursuit. */
export type AwaitPursuitOptions = {
  /** Ends the wait when it is aborted. The outcome goes on. */
  readonly signal?: AbortSignal
}
const checkAwait = optionsChecker<AwaitPursuitOptions>('awaitPursuit', { signal: signalCheck })
const LOOK_MS = 200

/**
 * Resolves when the pursuit has ended, or waits for a person (`blocked`). The signal ends the waiting, and the pursuit
 * goes on.
 */
export async function awaitPursuit(
  session: Pick<Session, 'id' | 'status'>,
  options: AwaitPursuitOptions = {},
): Promise<Exclude<PursuitStatus, { state: 'missing_outcome' }>> {
  checkAwait(options)
  const { signal } = options
  for (;;) {
    signal?.throwIfAborted()
    const { pursuit } = await session.status({ include: ['pursuit'] })
    if (pursuit.state === 'missing_outcome')
      throw new Fault('invalid_input', `Session ${session.id} pursues nothing. Begin with session.pursue(…).`)
    if (pursuit.end !== null || pursuit.state === 'blocked') return pursuit
    await sleep(runtimeClock, LOOK_MS, signal)
  }
}
