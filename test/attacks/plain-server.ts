// A server of one harness that drives nothing, with one token of its owner, until its world ends.
import type { CompleteStore } from '../../src/ports/store.ts'
import { startHttpServer } from '../../src/server/http-server.ts'
import type { ServerHost } from '../../src/server/server-host.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import type { Harness } from '../../src/index.ts'
import type { World } from './world.ts'

/** Gives back its port. */
export async function servePlain(
  world: World,
  harness: Harness,
  store: CompleteStore,
  token: string,
  more: Pick<ServerHost, 'webhooks'> = {},
): Promise<number> {
  const server = await startHttpServer({
    host: {
      version: 'test',
      store,
      storeId: 'test',
      harness,
      harnessOf: async () => harness,
      begin: async () => ({ harness }),
      agents: () => harness.agents(),
      elsewhere: () => null,
      program: '',
      drives: false,
      driving: () => 0,
      ...more,
    },
    tokens: TokenRegistry.inMemory(token, 'owner'),
    port: 0,
    report: () => {},
  })
  world.defer(async () => {
    await server.close()
    await harness.close()
  })
  return server.port
}
