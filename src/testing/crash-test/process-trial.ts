// A run under test in processes of its own, on a SQLite file: the first is killed with SIGKILL at the point, the second
// goes on. Each process loads the file of the test anew. What it notes is on disk before it goes on.
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault, sqlite } from '../../index.ts'
import type { FaultCode } from '../../kernel/failure.ts'
import { liveOnce, readLogs } from './crash-life.ts'
import { checkCrashWorld, type CrashTestOptions } from './crash-options.ts'
import { type RunTrial, TIMEOUT_MS, trialRecord, worldAtEnd } from './crash-trial.ts'
import { thrownText } from '../../view/shown-text.ts'
import type { CrashNote, CrashTrial } from './notes.ts'
import { LifePoints, NO_CRASH } from './points.ts'

/** What a process is told: its folder, the point at which it is killed, and whether the run is one without a crash. */
type LifeOrder = { readonly folder: string; readonly at: string | null; readonly nth: 1 | 2; readonly isClean: boolean }
type LifeReport =
  | (Pick<CrashTrial, 'trouble' | 'logs' | 'world'> & { readonly names: readonly string[] })
  | { readonly error: string; readonly code: FaultCode | null }

const ORDER = 'TERRET_CRASH_LIFE'
const STDERR_CHARS_MAX = 300

const fileIn = {
  store: (folder: string) => join(folder, 'sessions.db'),
  notes: (folder: string) => join(folder, 'notes.jsonl'),
  report: (folder: string) => join(folder, 'report.json'),
}

/** `command` starts this program again, to live one life. */
export function trialsInProcesses(command: readonly string[], { timeoutMs = TIMEOUT_MS }: CrashTestOptions): RunTrial {
  return async (point) => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-crash-'))
    const isClean = point === null
    try {
      const first = await startLife({ folder, at: point?.name ?? null, nth: 1, isClean }, command, timeoutMs)
      const { names, ...ended } =
        first ?? (await startLife({ folder, at: null, nth: 2, isClean }, command, timeoutMs)) ?? GONE
      return {
        trial: { point: point ?? NO_CRASH, reached: isClean || first === null, notes: readNotes(folder), ...ended },
        names,
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

type LivedReport = Exclude<LifeReport, { error: string }>
const GONE: LivedReport = { trouble: 'its second process was killed', logs: {}, world: null, names: [] }

/** Null: the process was killed at its point. */
async function startLife(order: LifeOrder, command: readonly string[], timeoutMs: number): Promise<LivedReport | null> {
  const [program = '', ...args] = command
  const env = { ...process.env, [ORDER]: JSON.stringify(order) }
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'], windowsHide: true })
  let printed = ''
  let isLate = false
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed = (printed + text).slice(-STDERR_CHARS_MAX)))
  const timer = setTimeout(() => {
    isLate = true
    child.kill('SIGKILL')
  }, timeoutMs)
  const [code, signal] = await new Promise<readonly [number | null, string | null]>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (...end) => resolve(end))
  })
  clearTimeout(timer)
  const path = fileIn.report(order.folder)
  const report = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as LifeReport) : null
  if (report && !('error' in report)) return report
  if (report === null && !isLate && signal === 'SIGKILL' && order.at !== null) return null
  const why =
    report?.error ?? (isLate ? `it has not settled after ${timeoutMs / 1_000} s` : exitText(code, signal, printed))
  if (order.isClean) throw new Fault(report?.code ?? 'invalid_config', why)
  return { ...GONE, trouble: why }
}

function exitText(code: number | null, signal: string | null, printed: string): string {
  const last = printed.trim().split('\n').at(-1) ?? ''
  return `the process ended by itself, with ${signal ?? `exit code ${code ?? 0}`}${last === '' ? '' : `: ${last}`}`
}

/** The order that this process was started with; null in every other process. */
export function lifeOrder(): LifeOrder | null {
  const given = process.env[ORDER]
  return given === undefined ? null : (JSON.parse(given) as LifeOrder)
}

/** In the process itself: lives once, and writes down what became of it. */
export async function liveInProcess(loadTest: () => Promise<CrashTestOptions>, order: LifeOrder): Promise<void> {
  const write = (report: LifeReport): void => writeFileSync(fileIn.report(order.folder), JSON.stringify(report))
  try {
    write(await liveInFolder(await loadTest(), order))
  } catch (error) {
    const text = thrownText(error)
    write({ error: text, code: error instanceof Error && 'code' in error ? (error.code as FaultCode) : null })
  }
}

async function liveInFolder(test: CrashTestOptions, { folder, at, nth, isClean }: LifeOrder): Promise<LifeReport> {
  const place = { folder: join(folder, 'world') }
  mkdirSync(place.folder, { recursive: true })
  const store = sqlite(fileIn.store(folder))
  const world = checkCrashWorld(await test.world(place))
  const trial = trialRecord(world, (note) => appendFileSync(fileIn.notes(folder), `${JSON.stringify(note)}\n`))
  for (const note of readNotes(folder)) {
    if (note.type === 'began') trial.begun.add(note.key)
    if (note.type === 'ended') trial.ended.add(note.key)
  }
  const points = new LifePoints(at, () => process.kill(process.pid, 'SIGKILL'))
  const trouble = await liveOnce({ test, store, life: { points, clock: null, trial, sources: new Set() }, nth })
  const report = {
    trouble,
    logs: await readLogs(store),
    world: await worldAtEnd(test, world, isClean),
    names: points.names,
  }
  await world.close?.()
  await store.close()
  return report
}

function readNotes(folder: string): readonly CrashNote[] {
  const path = fileIn.notes(folder)
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as CrashNote)
}
