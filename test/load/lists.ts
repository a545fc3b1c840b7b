// Every list of a server with many sessions: `npm run lists [-- --sessions 100000]`. `terret serve` as it is published. How long each answer
// takes, and how much of a core: on a machine that does other things only the second says anything. Exit 1 if one is over its bound. How many statements each takes is a
// test (test/server/lists.long.test.ts).
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { argumentsOf, wholeNumber } from '../../sim/arguments.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { TRIGGERS, SECRETS } from './chores.ts'
import { fillMany, LISTS } from './many.ts'
import { cpuMsOf, dataOf, prepareFolder, ServerProcess, startProvider } from './server.ts'
import { middleOf } from './slope.ts'

const BOUND_MS = 50
const ASKED = 12

const { values } = argumentsOf('lists', { options: { sessions: { type: 'string' } } })
const sessions = wholeNumber(values.sessions ?? '100000', 'sessions', 1)

mkdirSync('.build', { recursive: true })
const folder = mkdtempSync(resolve('.build', 'lists-'))
const provider = await startProvider('1', '1')
prepareFolder(folder, provider.url, TRIGGERS)
const server = new ServerProcess(folder, ['--no-drive'], SECRETS)
const stop = async (): Promise<void> => {
  await server.end('SIGTERM')
  provider.child.kill()
  rmSync(folder, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(1)))
try {
  mkdirSync(dataOf(folder), { recursive: true })
  const store = sqlite(join(dataOf(folder), 'terret.db'))
  await fillMany(store, sessions)
  await store.close()
  await server.start()
  console.log(
    `${sessions} sessions; each list ${ASKED} times: the first answer, the middle one, and the CPU of one after the first`,
  )
  let isOver = false
  for (const list of LISTS) isOver = !(await measured(list)) || isOver
  process.exitCode = isOver ? 1 : 0
} finally {
  await stop()
}

async function measured(list: string): Promise<boolean> {
  const times: number[] = []
  let [cpu, bytes] = [0, 0]
  for (let n = 0; n < ASKED; n += 1) {
    if (n === 1) cpu = cpuMsOf(server.pid)
    const begun = performance.now()
    const { status, text } = await server.ask('GET', list)
    times.push(performance.now() - begun)
    bytes = text.length
    if (status !== 200) {
      console.log(`✗ ${list.padEnd(52)} ${status} ${text}`)
      return false
    }
  }
  const cpuMs = (cpuMsOf(server.pid) - cpu) / (ASKED - 1)
  const [first = 0] = times
  const ok = cpuMs <= BOUND_MS
  const shown = [
    `first ${first.toFixed(0)} ms`,
    `middle ${middleOf(times).toFixed(0)} ms`,
    `CPU ${cpuMs.toFixed(1)} ms`,
  ]
  console.log(`${ok ? '✓' : '✗'} ${list.padEnd(52)} ${shown.map((each) => each.padStart(15)).join('')} ${bytes} bytes`)
  return ok
}
