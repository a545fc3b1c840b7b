// `scripts`: what it takes to run a cell of a script again over five hundred recorded results, as a process does that goes on with
// it: `scripts.cold` is the first of a process, which compiles the engine. `scripts.calls` is what five hundred calls one after the
// other compute, and `scripts.wait` how long another session waits beside programs that take all there is.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Harness, memory, scripted } from '../src/index.ts'
import { createScripts } from '../src/scripts/index.ts'
import type { CellLog } from '../src/scripts/cell-log.ts'
import type { CellSegment } from '../src/scripts/cell.ts'
import { LiveCells } from '../src/scripts/live-cells.ts'
import { readLogOf } from '../src/scripts/open-cell.ts'
import { startCellThread } from '../src/scripts/sandbox.ts'
import { systemClock } from '../src/stores/plan/system-clock.ts'
import { defineTool } from '../src/tools/core/tool.ts'
import { type Case, cpuMs, type Family, medianOf } from './family.ts'

const CALLS = 500
const RESULT = 'r'.repeat(200)
const PROGRAM = `let chars = 0
for (let n = 0; n < ${CALLS}; n++) chars += (await tool_call('look', { n })).length
return chars`
/** From the fifth on it takes no less. */
const WARM_UP = 5
const WARM = 5
const SEGMENT: CellSegment = { now: 1_000, seed: 7, computeMs: 30_000 }

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object', properties: { n: { type: 'integer' } } },
  effect: 'read',
  execute: async () => RESULT,
})

/** The program, run to its end by a real harness. Gives the store and the session. */
async function runProgram() {
  const store = memory()
  const { tool, planner } = createScripts({ mode: 'on', limits: { toolCalls: CALLS } })
  const harness = new Harness({ model: scripted([]), store, tools: [look, tool], graphs: [planner], secrets: {} })
  const { sessionId, status, text } = await harness.run(PROGRAM, { agent: 'script' })
  await harness.close()
  if (status !== 'completed' || !text.includes(`"value":${CALLS * RESULT.length}`))
    throw new Error(`the script ended as ${status}: ${text.slice(0, 200)}`)
  return { store, session: sessionId }
}

/** Runs it again over what the log has, in an engine that knows nothing of it. */
const again: Case = async () => {
  const { store, session } = await runProgram()
  const log = await readLogOf(store, session)
  const times: number[] = []
  for (let n = 0; n < WARM_UP + WARM; n++) {
    const begun = cpuMs()
    await replay(log)
    times.push(cpuMs() - begun)
  }
  return { ms: medianOf(times.slice(WARM_UP)) }
}

/** As the first thing that a process does with scripts: the log was made by another one. */
const first: Case = async (folder) => {
  const log = JSON.parse(readFileSync(join(folder, LOG), 'utf8')) as CellLog
  const begun = cpuMs()
  await replay(log)
  return { ms: cpuMs() - begun }
}

async function replay(log: CellLog): Promise<void> {
  const live = new LiveCells({ start: startCellThread, idle: systemClock })
  const cell = { key: 'cell', session: 'cell', log, chain: [], readLog: async () => log }
  const step = await live.step(cell, log.parts.length, SEGMENT, systemClock, new AbortController().signal)
  live.drop('cell')
  if (step.type !== 'rest' || step.done === null) throw new Error(`the cell is not at its end: ${JSON.stringify(step)}`)
}

const LOG = 'cell.json'

const recorded: Case = async (folder) => {
  const { store, session } = await runProgram()
  writeFileSync(join(folder, LOG), JSON.stringify(await readLogOf(store, session)))
  return {}
}

const live: Case = async () => {
  const { store, session } = await runProgram()
  const { parts } = await readLogOf(store, session)
  return { ms: parts.reduce((sum, { ms }) => sum + ms, 0) }
}

/** The same program in a bare thread, without an engine or a log. */
const bare: Case = async () => {
  const code = `const { parentPort } = require('node:worker_threads')
const tool_call = async () => 'r'.repeat(${RESULT.length})
void (async () => {${PROGRAM}})().then((chars) => parentPort.postMessage(chars))`
  const times: number[] = []
  for (let n = 0; n < WARM; n++) {
    const begun = cpuMs()
    const worker = new Worker(code, { eval: true, env: {}, execArgv: [] })
    const chars = await new Promise((done) => worker.once('message', done))
    await worker.terminate()
    times.push(cpuMs() - begun)
    if (chars !== CALLS * RESULT.length) throw new Error('a result is missing')
  }
  return { ms: medianOf(times), firstMs: times[0] ?? 0 }
}

/** Each takes its whole time: a loop, a pattern, memory, and numbers that grow without a look at the clock. */
const HOSTILE = [
  'for (;;) {}',
  '/(a+)+$/.test("a".repeat(40) + "b")',
  'const a = []; for (;;) a.push("x".repeat(1_000) + a.length)',
  'let x = 3n; for (;;) x = x * x',
] as const
const HOSTILE_MS = 500

const beside: Case = async () => {
  // The first thread compiles the engine, on all cores.
  for (const code of HOSTILE) await runBeside(code)
  const waits: number[] = []
  for (const code of HOSTILE) waits.push(await runBeside(code))
  return { ms: Math.max(...waits) }
}

async function runBeside(code: string): Promise<number> {
  const thread = await startCellThread(systemClock)
  // One that is enabled again counts the time between, too.
  const waits = monitorEventLoopDelay({ resolution: 1 })
  waits.enable()
  const cell = { type: 'cell', cell: 1, code, names: [], left: { model: 0, tool: 0 } } as const
  await thread.run([{ ...SEGMENT, computeMs: HOSTILE_MS, ...cell }])
  waits.disable()
  thread.close()
  return waits.max / 1e6
}

const alone: Case = async () => {
  const waits = monitorEventLoopDelay({ resolution: 1 })
  waits.enable()
  await sleep(HOSTILE.length * HOSTILE_MS)
  waits.disable()
  return { ms: waits.max / 1e6 }
}

export const scripts: Family = {
  repetitions: 5,
  fixture: recorded,
  cases: { again, first, live, bare, beside, alone },
  figures: [
    {
      name: 'scripts',
      unit: 'CPU ms',
      target: 100,
      value: (median) => median('again.ms'),
      floor: (median) => median('bare.ms'),
    },
    {
      name: 'scripts.cold',
      unit: 'CPU ms',
      target: 500,
      value: (median) => median('first.ms'),
      floor: (median) => median('bare.firstMs'),
    },
    {
      name: 'scripts.calls',
      unit: 'ms',
      target: 1_000,
      value: (median) => median('live.ms'),
      floor: (median) => median('bare.ms'),
    },
    {
      name: 'scripts.wait',
      unit: 'ms',
      target: 50,
      value: (median) => median('beside.ms'),
      floor: (median) => median('alone.ms'),
    },
  ],
}
