// What a closed SQLite file leaves open in its process.
import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { openLearnings } from '../../src/memory/learnings.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { makeFile } from './folder.ts'

const CYCLES = 600
/** The usual limit of a process is 1024. A store has up to three descriptors while it is open. */
const DESCRIPTORS_MAX = 200

/** The most descriptors that this process has more than at the start, while `openAndClose` is repeated. Its results are kept. */
async function mostDescriptors(openAndClose: () => unknown): Promise<number> {
  const count = (): number => readdirSync('/proc/self/fd').length
  const before = count()
  const kept: unknown[] = []
  let most = 0
  for (let i = 0; i < CYCLES; i++) {
    kept.push(await openAndClose())
    most = Math.max(most, count() - before)
    // A turn of the event loop, as every application has them.
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(kept).toHaveLength(CYCLES)
  return most
}

it('B-FD-1: a store that is opened and closed 600 times gives its descriptors back', { timeout: 120_000 }, async () => {
  const file = makeFile()
  const most = await mostDescriptors(async () => {
    const store = sqlite(file)
    await store.card('none')
    await store.close()
    return store
  })
  expect(most).toBeLessThan(DESCRIPTORS_MAX)
})

it('B-FD-1: the file of what agents learned gives its descriptors back too', { timeout: 120_000 }, async () => {
  const file = makeFile()
  const most = await mostDescriptors(() => openLearnings(file).close())
  expect(most).toBeLessThan(DESCRIPTORS_MAX)
})
