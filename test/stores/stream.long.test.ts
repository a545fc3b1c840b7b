// Moves and copies in processes of their own: with little memory, and killed in the middle.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { checkStore } from '../../src/archive/store-check.ts'
import { readSqlite } from '../../src/stores/sqlite/sqlite-move.ts'
import { fill } from '../cli/filled.ts'
import { begin, note, write } from '../contract/fixture.ts'
import { share } from '../runs.ts'
import { makeFile, makeFolder, open } from './folder.ts'

const FILE = fileURLToPath(new URL('../../.build/test/stores/child-move.js', import.meta.url))
const EVENTS = 200_000
const HEAP_MB = 48

function start(how: 'move' | 'copy', from: string, to: string, ...flags: readonly string[]) {
  const child = spawn(process.execPath, [...flags, FILE, how, from, to], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (data: Buffer) => {
    said += data.toString()
  })
  return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, said })) }
}

it('B-PORTABLE-9: a session with 200,000 events moves in a heap of 48 MB', async () => {
  const from = makeFile()
  const store = open(from)
  const owner = await begin(store, 'long')
  const notes = Array.from({ length: 5_000 }, (_, i) => note(`${i}: ${'A note as long as notes are. '.repeat(8)}`))
  for (let n = 0; n < EVENTS; n += notes.length)
    await write(store, owner, notes, n + notes.length < EVENTS ? {} : { release: true })
  await store.close()
  const to = join(makeFolder(), 'to.db')
  const { code, said } = await start('move', from, to, `--max-old-space-size=${HEAP_MB}`).ended
  expect([code, said]).toEqual([0, expect.stringMatching(/^[0-9a-f]{64}$/)])
  expect((await open(to).card('long'))?.seq).toBe(EVENTS + 1)
}, 300_000)

it('B-PORTABLE-7: a copy that is killed at any point has whole sessions only, and the same copy again comes to its end', async () => {
  const from = makeFile()
  await fill(from, 60)
  const whole = await start('copy', from, join(makeFolder(), 'whole.db')).ended
  expect(whole.code).toBe(0)
  const to = join(makeFolder(), 'to.db')
  for (const ms of share([150, 300, 450, 600, 800])) {
    const { child, ended } = start('copy', from, to)
    setTimeout(() => child.kill('SIGKILL'), ms)
    await ended
    const store = open(to)
    for (const { seq } of await store.list({ limit: 99 })) expect(seq).toBe(501)
    await store.close()
  }
  expect(await start('copy', from, to).ended).toEqual(whole)
  const store = open(to)
  expect((await checkStore(store, await readSqlite(to))).problems).toEqual([])
  expect((await store.list({ limit: 99 })).length).toBe(60)
}, 300_000)
