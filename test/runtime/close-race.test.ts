// A harness that is closed while a session writes: the session is given back, and another process goes on with it at once.
import { describe, expect, it } from 'vitest'
import { Harness, scripted, sqlite } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { makeFolder } from '../stores/folder.ts'

describe('a harness that is closed', () => {
  it('B-DRIVE-23: while the request of a session is being written gives the session back, and no lease has to end first', async () => {
    const store = sqlite(`${makeFolder()}/terret.db`)
    const closing: Promise<void>[] = []
    const first: Harness = new Harness({
      model: scripted([{ stall: true }]),
      store: storeWith(store, {
        commit: async (writes) => {
          const asks = writes.some(({ events }) => events.some(({ type }) => type === 'model.started'))
          if (asks && closing.length === 0) closing.push(first.close())
          return store.commit(writes)
        },
      }),
      worker: { leaseMs: 600_000 },
    })
    const session = await first.open({ id: 's' })
    await session.run('Go.').catch(() => {})
    await Promise.all(closing)
    const second = new Harness({ model: scripted(['Done.']), store })
    expect(await second.session('s').run()).toMatchObject({ status: 'completed', text: 'Done.' })
    await second.close()
    await store.close()
  })
})
