// What the tests of cells share: a thread that is ended after the test, and cells that are given what they ask for.
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import type { CellDone, CellResult, WantedCall } from '../../src/scripts/cell.ts'
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
  return runner.run({ ...ALLOWED, computeMs, type: 'cell', cell, code, names, left: LEFT })
}

export function giveResults(runner: CellRunner, results: readonly CellResult[]): Promise<CellOutcome> {
  return runner.run({ ...ALLOWED, type: 'results', results })
}

/** Runs a cell to its end. `answer` is what each of its calls is given. */
export async function runCell(
  runner: CellRunner,
  code: string,
  options: CellOptions & { readonly answer?: (call: WantedCall) => unknown } = {},
): Promise<CellDone> {
  const { answer = ({ args }) => args } = options
  let rest = await startCell(runner, code, options)
  while (rest.type === 'rest' && rest.done === null)
    rest = await giveResults(
      runner,
      rest.calls.map((call) => [call.n, true, answer(call)]),
    )
  if (rest.type === 'rest' && rest.done) return rest.done
  if (rest.type === 'ended') return { error: rest.error, changed: [], stdout: '' }
  throw new Error(`The thread was lost: ${JSON.stringify(rest)}`)
}
