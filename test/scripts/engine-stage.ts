// What the tests of cells share: a thread that is ended after the test, and cells that are given what they ask for.
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import type { CellDone, CellRequest, CellResult, WantedCall } from '../../src/scripts/cell.ts'
import { type CellOutcome, type CellRunner, startCellThread } from '../../src/scripts/sandbox.ts'

const ALLOWED = { now: 1_000, seed: 7, computeMs: 5_000 }
const LEFT = { model: 64, tool: 128 }

export async function startThread(): Promise<CellRunner> {
  const runner = await startCellThread(systemClock)
  onTestFinished(() => runner.close())
  return runner
}

export type CellOptions = { readonly cell?: number; readonly names?: readonly string[]; readonly computeMs?: number }

export function startCell(runner: CellRunner, code: string, options: CellOptions = {}): Promise<CellOutcome> {
  const { cell = 1, names = ['read', 'send'], computeMs = ALLOWED.computeMs } = options
  return runOne(runner, { ...ALLOWED, computeMs, type: 'cell', cell, code, names, left: LEFT })
}

export function giveResults(runner: CellRunner, results: readonly CellResult[]): Promise<CellOutcome> {
  return runOne(runner, { ...ALLOWED, type: 'results', results })
}

async function runOne(runner: CellRunner, request: CellRequest): Promise<CellOutcome> {
  const [outcome] = await runner.run([request])
  if (!outcome) throw new Error('The engine said nothing.')
  return outcome
}

type RunOptions = CellOptions & {
  /** What each of its calls is given. */
  readonly answer?: (call: WantedCall) => unknown
  /** Sees what comes from the thread. A thread that was lost is then an error of the cell. */
  readonly look?: (outcome: CellOutcome) => void
}

/** Runs a cell to its end. */
export async function runCell(runner: CellRunner, code: string, options: RunOptions = {}): Promise<CellDone> {
  const { answer = ({ args }) => args, look } = options
  let rest = await startCell(runner, code, options)
  look?.(rest)
  while (rest.type === 'rest' && rest.done === null) {
    rest = await giveResults(
      runner,
      rest.calls.map((call) => [call.n, true, answer(call)]),
    )
    look?.(rest)
  }
  if (rest.type === 'rest' && rest.done) return rest.done
  if (rest.type === 'ended') return { error: rest.error, changed: [], stdout: '' }
  if (look) return { error: { kind: 'script_error', message: rest.type, at: null }, changed: [], stdout: '' }
  throw new Error(`The thread was lost: ${JSON.stringify(rest)}`)
}
