// A session that was removed while a worker still held its log in memory, and another session that got the same id.
import { expect, it } from 'vitest'
import { lines, make, STORAGES, storeOf } from './scene.ts'

it.each(STORAGES)(
  'B-STORE-137: a worker that read the first session of an id goes on with the second alone, on %s',
  async (storage) => {
    const store = storeOf(storage)
    const worker = make(['One.', 'Two.'], { store })
    const first = await worker.open({ id: 's' })
    await first.run('The old secret.')
    const { seq = 0 } = (await store.card('s')) ?? {}
    await store.remove('s', 'ana')
    const other = make(['Never asked.'], { store, worker: { drives: false } })
    const second = await other.open({ id: 's' })
    // More events than the first session had: an old seq would exist in the new log, too.
    for (let n = 0; n <= seq; n++) await second.send(`New ${n}.`)
    expect(await worker.session('s').run()).toMatchObject({ status: 'completed', text: 'Two.' })
    const texts = lines(await second.messages())
    expect(texts.some((text) => text.includes('The old secret.'))).toBe(false)
    expect(texts.filter((text) => text.includes('New '))).toHaveLength(seq + 1)
    await worker.close()
    await other.close()
    await store.close()
  },
)
