// `watch` and `watch.latency`: a process that watches a store which others write. What it costs while there are no writes,
// and how soon it notices an append of another process.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { openBare, warmDriver } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { buildLog } from './log.ts'

/** Until the watcher has stopped looking, and V8 has collected what the start left behind (it waits 8 s for that). */
const SETTLE_MS = 12_000
const IDLE_MS = 5_000
const APPENDS = 40
const SPACING_MS = 30
const MISSED_MS = 5_000

const watched: Case = async (folder) => {
  const store = sqlite(join(folder, `idle-${process.pid}.db`))
  await buildLog(store, { id: 'bench', events: 100 })
  const unwatch = [store.watch('bench', () => {}), store.watchDue(() => {})]
  const ms = await idleCpu()
  for (const leave of unwatch) leave()
  await store.close()
  return { ms }
}

/** A process that has the driver loaded and waits for nothing. */
const unwatched: Case = async () => {
  warmDriver()
  return { ms: await idleCpu() }
}

/** CPU ms a second, once the work of getting here has died down. */
async function idleCpu(): Promise<number> {
  await sleep(SETTLE_MS)
  const begun = cpuMs()
  await sleep(IDLE_MS)
  return ((cpuMs() - begun) * 1_000) / IDLE_MS
}

const noticed: Case = async (folder) => {
  const file = join(folder, `latency-${process.pid}.db`)
  const store = sqlite(file)
  await buildLog(store, { id: 'bench', events: 100 })
  const sample = await noticing('store', file, (heard) => store.watch('bench', heard))
  await store.close()
  return sample
}

/** The least one can do: a bare insert, and the file system's own word that the log was touched. */
const touched: Case = async (folder) => {
  const file = join(folder, `touch-${process.pid}.db`)
  const bare = openBare(file)
  bare.insert(['{}'])
  const sample = await noticing('bare', file, (heard) => {
    const watcher = watch(`${file}-wal`, heard)
    return () => watcher.close()
  })
  bare.close()
  return sample
}

/** Lets another process append, one at a time, and times each from before its commit to `heard`. */
async function noticing(kind: string, file: string, listen: (heard: () => void) => () => void) {
  const writer = fork(process.argv[1] ?? '', ['--case', `watch.latency:${kind}Writer`, file], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  await once(writer, 'message')
  let heard = (): void => {}
  const leave = listen(() => heard())
  const latencies: number[] = []
  for (let i = 0; i < APPENDS; i++) {
    await sleep(SPACING_MS + i)
    const arrival = new Promise<bigint | null>((resolve) => {
      heard = () => resolve(process.hrtime.bigint())
      setTimeout(() => resolve(null), MISSED_MS).unref()
    })
    const begun = await append(writer, i)
    const at = await arrival
    latencies.push(at === null ? MISSED_MS : Number(at - begun) / 1e6)
  }
  leave()
  writer.disconnect()
  latencies.sort((a, b) => a - b)
  return { typical: latencies[APPENDS >> 1] ?? Number.NaN, worst: latencies.at(-1) ?? Number.NaN }
}

/** When the writer began, on the clock that all processes of a machine share. */
async function append(writer: ChildProcess, n: number): Promise<bigint> {
  const answer = once(writer, 'message')
  writer.send(n)
  const [begun] = (await answer) as [string]
  return BigInt(begun)
}

const storeWriter: Case = async (file) => {
  const store = sqlite(file)
  await store.card('bench')
  await serve(async (n) => {
    const go = { type: 'user.message', id: `m${n}`, parts: [{ type: 'text', text: 'go' }], when: 'next' } as const
    await store.commit([{ session: 'bench', lane: 'inbox', events: [go] }])
  })
  await store.close()
  return {}
}

const bareWriter: Case = async (file) => {
  const bare = openBare(file)
  await serve(async () => bare.insert(['{}']))
  bare.close()
  return {}
}

async function serve(act: (n: number) => Promise<void>): Promise<void> {
  process.on('message', (n: number) => {
    const begun = process.hrtime.bigint()
    void act(n).then(() => process.send?.(String(begun)))
  })
  process.send?.('ready')
  await once(process, 'disconnect')
}

export const idle: Family = {
  repetitions: 3,
  together: true,
  cases: { watched, unwatched },
  figures: [
    {
      name: 'watch',
      unit: 'CPU ms a second',
      target: 1,
      value: (median) => median('watched.ms'),
      floor: (median) => median('unwatched.ms'),
    },
  ],
}

export const latency: Family = {
  repetitions: 3,
  cases: { noticed, touched },
  parts: { storeWriter, bareWriter },
  figures: [
    {
      name: 'watch.latency',
      unit: 'ms',
      target: 50,
      value: (median) => median('noticed.worst'),
      floor: (median) => median('touched.worst'),
      note: (median) => `worst of ${APPENDS} appends; typical ${median('noticed.typical').toFixed(1)}`,
    },
  ],
}
