// Waiting by the injected clock; ends early on abort and leaves no timer behind.
import type { Clock } from '../kernel/ports.ts'

export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const cancel = clock.timer(ms, () => {
      signal?.removeEventListener('abort', stop)
      resolve()
    })
    const stop = (): void => {
      cancel()
      resolve()
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
}
