// `durable` and `durable.bytes`: what a turn costs when every event is on disk (SQLite, WAL, synchronous=FULL) before
// the next thing happens, and how much of the disk it takes.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Harness, scripted } from '../src/index.ts'
import { sqlite } from '../src/stores/sqlite.ts'
import { checkpoint, openBare } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { ask, LIMITS, lookup, turnEvents } from './turn.ts'

const WARM_UP = 200
const TURNS = 1_000

/** Runs a session of so many turns to its end. Returns the CPU ms a turn, without the first `warmUp`. */
async function run(file: string, id: string, turns: number, warmUp: number): Promise<number> {
  let begun = 0
  let ended = 0
  const model = scripted((_request, n) => {
    if (n === warmUp) begun = cpuMs()
    if (n === turns) ended = cpuMs()
    return n < turns ? ask(n) : 'done'
  })
  const store = sqlite(file)
  const harness = new Harness({ model, tools: [lookup], limits: LIMITS, store })
  const result = await (await harness.open({ id })).run('go')
  await harness.close()
  await store.close()
  if (result.status !== 'completed' || result.usage.toolCalls !== turns) throw new Error(`the run ${result.status}`)
  return (ended - begun) / (turns - warmUp)
}

const harness: Case = async (folder) => {
  return { ms: await run(join(folder, `harness-${process.pid}.db`), 'bench', WARM_UP + TURNS, WARM_UP) }
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
  const ms = (cpuMs() - begun) / TURNS
  bare.close()
  return { ms }
}

const stored: Case = async (folder) => {
  const file = join(folder, `stored-${process.pid}.db`)
  await run(file, 'bench', TURNS, 0)
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
      value: (median) => median('harness.ms'),
      floor: (median) => median('floor.ms'),
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
