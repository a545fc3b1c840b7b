// `metrics`, `metrics.turn`: what a look at `/metrics` costs after a thousand sessions on SQLite that all wait for an
// approval, and what counting adds to a turn in a process that somebody watches. Without a server nothing is counted.
import { join } from 'node:path'
import { Harness, scripted } from '../src/index.ts'
import { metricsText, RunMetrics } from '../src/server/metrics.ts'
import { RunCounts } from '../src/server/run-counts.ts'
import { completeStore } from '../src/stores/plan/complete-store.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { warmDriver } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { risky } from './many.ts'
import { turnEvents } from './turn.ts'

const SESSIONS = 1_000
const WIDTH = 50
const LOOKS = 20
const TURNS = 100_000
const WARM = 10_000

const page: Case = async (folder) => {
  warmDriver()
  const store = completeStore(sqlite(join(folder, `metrics-${process.pid}.db`)))
  const harness = new Harness({ model: scripted(() => ({ calls: [{ tool: 'risky' }] })), tools: [risky], store })
  const metrics = new RunMetrics(store)
  metrics.listenTo(harness)
  for (let at = 0; at < SESSIONS; at += WIDTH) await Promise.all(Array.from({ length: WIDTH }, () => harness.run('go')))
  const look = async (): Promise<string> => metricsText(await harness.health(), 0) + (await metrics.text())
  const begun = cpuMs()
  const text = await look()
  const firstMs = cpuMs() - begun
  if (!text.includes(`terret_approvals_waiting{agent="default"} ${SESSIONS}\n`)) throw new Error(text)
  const again = cpuMs()
  for (let i = 0; i < LOOKS; i++) await look()
  const ms = (cpuMs() - again) / LOOKS
  const listing = cpuMs()
  for (let i = 0; i < LOOKS; i++) await store.list({ waiting: true, limit: SESSIONS })
  const listMs = (cpuMs() - listing) / LOOKS
  await harness.close()
  await store.close()
  return { firstMs, ms, listMs }
}

const turn: Case = async () => {
  const counts = new RunCounts({ read: () => Promise.reject(new Error('nothing is read')) })
  const turns = Array.from({ length: TURNS }, (_, n) => turnEvents(n * 4, { at: 1, epoch: 1 }))
  const play = (from: number, to: number): void => {
    for (const commits of turns.slice(from, to)) for (const events of commits) counts.count('s', 'default', events)
  }
  play(0, WARM)
  const begun = cpuMs()
  play(WARM, TURNS)
  return { us: ((cpuMs() - begun) * 1_000) / (TURNS - WARM) }
}

export const metrics: Family = {
  repetitions: 3,
  cases: { page, turn },
  figures: [
    {
      name: 'metrics',
      unit: 'CPU ms',
      target: 50,
      value: (median) => median('page.ms'),
      floor: (median) => median('page.listMs'),
      note: (median) => `${SESSIONS} sessions that wait; the first look ${median('page.firstMs').toFixed(0)} ms`,
    },
    {
      name: 'metrics.turn',
      unit: 'CPU µs a turn',
      target: 5,
      value: (median) => median('turn.us'),
      floor: () => 0,
    },
  ],
}
