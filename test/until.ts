// Waits for what other processes or sockets do. Long enough for a busy machine: a test that fails here has not merely been slow.
import { vi } from 'vitest'

const TIMEOUT_MS = 50_000
const INTERVAL_MS = 10

/** Until `check` throws no more; then what it gave. */
export function until<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: TIMEOUT_MS, interval: INTERVAL_MS })
}
