// Commits with large files: they are written by several statements, none of which is larger than a server takes.
import { describe, expect, it } from 'vitest'
import { admit, create, message } from '../contract/fixture.ts'
import { openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

describe.skipIf(noPostgres)('large files', () => {
  it('B-PG-27: what brings 64 MiB of files is one statement, and what brings more the next', async () => {
    const store = await openPostgres()
    await create(store, 's')
    const before = store.counts.written
    const blobs = Array.from({ length: 6 }, (_, i) => ({
      hash: `h${i}`,
      media: 'a/b',
      data: new Uint8Array(25 * 2 ** 20),
    }))
    const sent = blobs.map((blob, i) =>
      store.commit([{ session: 's', lane: 'inbox', events: [message(`m${i}`)], blobs: [blob] }]),
    )
    expect((await Promise.all(sent)).flatMap((receipts) => receipts.flatMap(({ seqs }) => seqs))).toEqual([
      2, 3, 4, 5, 6, 7,
    ])
    expect(store.counts.written - before).toBe(3)
    expect((await store.blob('h5'))?.data.byteLength).toBe(25 * 2 ** 20)
  })

  it('B-PG-27: a commit of over 1 GB is refused, and nothing of it is written', async () => {
    const store = await openPostgres()
    await create(store, 's')
    const blobs = [{ hash: 'h', media: 'a/b', data: new Uint8Array(1_000_000_001) }]
    const sent = store.commit([{ session: 's', lane: 'inbox', events: [message('m')], blobs }])
    await expect(sent).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('1 GB') as string,
    })
    expect(await admit(store, 's', message('n'))).toBeDefined()
    expect((await store.read('s', 0)).events).toHaveLength(2)
  })
})
