// `durable` and `durable.bytes`: what a turn costs when every event is on disk (SQLite, WAL, synchronous=FULL) before
// the next thing happens, and how much of the disk it takes.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Harness, scripted } from '../src/index.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { checkpoint, openBare } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { ask, LIMITS, lookup, turnEvents } from './turn.ts'

/** As in loop.ts: turns 2,001 to 3,000 of one process. */
const WARM_UP = 2_000
const TURNS = 1_000

/** Runs a session of so many turns to its end. `mark` is called at each request, with the number of turns done. */
async function run(file: string, turns: number, mark: (done: number) => void): Promise<void> {
  const model = scripted((_request, n) => {
    mark(n)
    return n < turns ? ask(n) : 'done'
  })
  const store = sqlite(file)
  const harness = new Harness({ model, tools: [lookup], limits: LIMITS, store })
  const result = await (await harness.open({ id: 'bench' })).run('go')
  await harness.close()
  await store.close()
  if (result.status !== 'completed' || result.usage.toolCalls !== turns) throw new Error(`the run ${result.status}`)
}

const harness: Case = async (folder) => {
  const begun = cpuMs()
  const marks = new Map<number, number>()
  await run(join(folder, `harness-${process.pid}.db`), WARM_UP + TURNS, (done) => {
    if (done % TURNS === 0) marks.set(done, cpuMs())
  })
  const at = (turn: number): number => marks.get(turn) ?? Number.NaN
  return { warm: (at(WARM_UP + TURNS) - at(WARM_UP)) / TURNS, cold: (at(TURNS) - begun) / TURNS }
}

/** The same rows in the same commits: two a turn, two events each. */
const floor: Case = async (folder) => {
  const bare = openBare(join(folder, `floor-${process.pid}.db`))
  let begun = 0
  for (let turn = 0; turn < WARM_UP + TURNS; turn++) {
    if (turn === WARM_UP) begun = cpuMs()
    const pairs = turnEvents(4 + turn * 4, { at: Date.now(), epoch: 1 })
    for (const pair of pairs) bare.insert(pair.map((event) => JSON.stringify(event)))
  }
  const warm = (cpuMs() - begun) / TURNS
  bare.close()
  return { warm }
}

const stored: Case = async (folder) => {
  const file = join(folder, `stored-${process.pid}.db`)
  await run(file, TURNS, () => {})
  const store = sqlite(file)
  const { events } = await store.read('bench', 0)
  await store.close()
  checkpoint(file)
  const bareFile = join(folder, `bare-${process.pid}.db`)
  const bare = openBare(bareFile)
  bare.insert(events.map((event) => JSON.stringify(event)))
  bare.close()
  checkpoint(bareFile)
  return { harness: statSync(file).size / TURNS, floor: statSync(bareFile).size / TURNS, events: events.length / TURNS }
}

export const durable: Family = {
  repetitions: 7,
  cases: { harness, floor },
  figures: [
    {
      name: 'durable',
      unit: 'CPU ms a turn',
      target: 0.35,
      value: (median) => median('harness.warm'),
      floor: (median) => median('floor.warm'),
      note: (median) => `${median('harness.cold').toFixed(2)} over the first 1,000 turns`,
    },
  ],
}

export const bytes: Family = {
  repetitions: 1,
  cases: { stored },
  figures: [
    {
      name: 'durable.bytes',
      unit: 'bytes a turn',
      target: 1228,
      value: (median) => median('stored.harness'),
      floor: (median) => median('stored.floor'),
      note: (median) => `${median('stored.events').toFixed(2)} events a turn`,
    },
  ],
}
