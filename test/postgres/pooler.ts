// A pooler for one test, gone after it.
import { onTestFinished } from 'vitest'
import { startPooler } from './pgbouncer.ts'
import type { Server } from './server.ts'

export { noPooler } from './pgbouncer.ts'

/** Returns its port. `size` server connections serve all clients. */
export async function pooler(server: Server, size: number): Promise<number> {
  const { port, close } = await startPooler(server, size)
  onTestFinished(close)
  return port
}
