// Two worker processes with one job in an SQLite file, killed in the middle of their work: each time begins one run.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { cron, cronPlanner } from '../../src/cron/index.ts'
import { Harness, scripted } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { until } from '../until.ts'
import { fastClock } from './fast-clock.ts'

const EVERY_MS = 5 * 60_000
const BEGIN = Date.UTC(2026, 10, 19, 0, 1)
const KILLS = 16
const running = new Set<ChildProcess>()
afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
})

describe('processes', () => {
  it('B-CRON-18: two processes that are killed again and again begin each time once, and leave none out', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'terret-cron-')), 'terret.db')
    const origin = Date.now()
    const clock = fastClock(BEGIN, origin)
    const store = sqlite(file, { clock })
    const worker = { leaseMs: 30 * 60_000 }
    const planner = { graphs: [cronPlanner()], program: 'cron', system: { clock } }
    const harness = new Harness({ model: scripted(() => 'Done.'), store, worker, ...planner })
    const added = await cron(harness).add({ name: 'job', line: '*/5 * * * *', prompt: 'Go.', missed: 'all' })
    const workers = [await startWorker(file, origin), await startWorker(file, origin)]
    for (let i = 0; i < KILLS; i++) {
      await new Promise((resolve) => setTimeout(resolve, 200 + ((i * 379) % 900)))
      const victim = workers.shift()
      victim?.kill('SIGKILL')
      workers.push(await startWorker(file, origin))
    }
    const end = Math.floor(clock.now() / EVERY_MS) * EVERY_MS
    const first = added.next[0] ?? 0
    const wanted = Array.from({ length: (end - first) / EVERY_MS + 1 }, (_, i) => idOf(first + i * EVERY_MS))
    expect(wanted.length).toBeGreaterThan(KILLS / 2)
    await until(async () => {
      const made = await runsOf(harness)
      expect(made.filter(({ id }) => wanted.includes(id)).map(({ id, outcome }) => [id, outcome])).toEqual(
        wanted.map((id) => [id, 'completed']),
      )
    })
    for (const id of wanted) {
      const { events } = await harness.session(id).events()
      expect(events.filter(({ type }) => type === 'user.message')).toHaveLength(1)
      expect(events.filter(({ type }) => type === 'run.settled')).toHaveLength(1)
    }
    for (const one of workers) one.kill('SIGKILL')
    await harness.close()
    await store.close()
  }, 120_000)
})

function idOf(at: number): string {
  return `cron.job.${new Date(at).toISOString().slice(0, 16).replaceAll(/[-:]/g, '')}Z`
}

async function runsOf(harness: Harness): Promise<readonly { readonly id: string; readonly outcome: string | null }[]> {
  const { cards } = await harness.list({ agent: 'default', order: 'made', limit: 500 })
  return cards.map(({ session: id, outcome }) => ({ id, outcome })).toReversed()
}

async function startWorker(file: string, origin: number): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('../../.build/test/cron/child-worker.js', import.meta.url))
  const child = spawn(process.execPath, [script, file, String(BEGIN), String(origin)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  await new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()))
  return child
}
