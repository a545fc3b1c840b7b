// The memory of a process whose readers do not read. Quick tests of the same are in follow.test.ts.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeFile } from '../stores/folder.ts'

const script = fileURLToPath(new URL('../../.build/test/runtime/child-follow-memory.js', import.meta.url))
const MIB = 1024 * 1024

type Measured = {
  readonly memory: readonly { readonly rss: number; readonly heap: number }[]
  readonly events: number
  readonly p99Ms: number
}

it('B-FOLLOW-10: 150 readers that stop reading leave the memory flat, and one that reads gets its events', () => {
  const said = execFileSync(process.execPath, ['--expose-gc', script, makeFile()], { encoding: 'utf8' })
  const { memory, events, p99Ms } = JSON.parse(said) as Measured
  const [, second, ...rest] = memory
  const last = rest.at(-1)
  console.log(
    `${events} events, p99 ${p99Ms.toFixed(1)} ms; ${JSON.stringify(memory.map(({ rss, heap }) => [rss, heap].map((bytes) => Math.round(bytes / MIB))))}`,
  )
  // After the first rounds: 8 MB more are written and 8 MB more are said to 50 readers each, 800 MB if it were queued.
  expect((last?.heap ?? 0) - (second?.heap ?? 0)).toBeLessThan(16 * MIB)
  expect((last?.rss ?? 0) - (second?.rss ?? 0)).toBeLessThan(64 * MIB)
})
