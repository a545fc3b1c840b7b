// A file with many sessions, for moves that must last long enough to be killed in their middle.
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { begin, note, write } from '../contract/fixture.ts'

const EVENTS = 500
const TEXT = 'A note that is as long as notes are. '.repeat(8)

export async function fill(file: string, sessions: number): Promise<void> {
  const store = sqlite(file)
  for (let i = 0; i < sessions; i++) {
    const owner = await begin(store, `session-${i}`)
    const notes = Array.from({ length: EVENTS }, (_, at) => note(`${i}.${at}: ${TEXT}`))
    await write(store, owner, notes, { release: true })
  }
  await store.close()
}
