// The error for a run that did not end as its caller needs. It carries the result.
import { flagCheck, optionsChecker } from '../options.ts'
import type { ToolList } from '../tools/core/tool-types.ts'
import type { Completed, Result } from '../runtime/state/run-result.ts'

/** Thrown by `orThrow` and by `require` for a run that did not complete as required. Its result has everything. */
export class RunFailed extends Error {
  /** The result of the run, with all that it did. */
  readonly result: Result
  constructor(result: Result) {
    super(`The run ended as ${result.status} (${result.stopReason}): ${failureCause(result)}`)
    this.name = 'RunFailed'
    this.result = result
  }
}

/** Ends of a completed run that are errors too. Default: none. */
export type Strictness = {
  /** The model refused to answer. */
  readonly refusal?: boolean
  /** The answer was cut at its maximum length. */
  readonly truncated?: boolean
}
const checkStrictness = optionsChecker<Strictness>('orThrow', { refusal: flagCheck, truncated: flagCheck })

/** Returns the result if the run completed. Throws otherwise, and for the ends named in `strictness`. */
export function orThrow<Output, Tools extends ToolList[number]>(
  result: Result<Output, Tools>,
  strictness: Strictness = {},
): Completed<Output, Tools> {
  checkStrictness(strictness)
  if (result.status !== 'completed') throw new RunFailed(result)
  const { stopReason } = result
  if ((strictness.refusal && stopReason === 'refusal') || (strictness.truncated && stopReason === 'max_tokens'))
    throw new RunFailed(result as Result)
  return result
}

/** For `require: 'complete'`: returns a whole answer or throws. */
export function requireComplete(result: Result, require: 'complete' | undefined): Result {
  return require === undefined ? result : orThrow(result, { refusal: true, truncated: true })
}

function failureCause(result: Result): string {
  if (result.status === 'completed')
    return result.stopReason === 'refusal' ? 'the model refused to answer' : 'the answer was cut at its longest'
  if (result.status === 'failed') return result.failure.message
  if (result.status === 'halted') return result.reason
  if (result.status === 'limit') return result.account === undefined ? result.limit : `usd of the ${result.account}`
  if (result.status === 'interrupted') return result.reason ?? 'somebody stopped it'
  if (result.stopReason === 'paused' && result.reason !== undefined) return result.reason
  return result.status === 'sleeping' ? (result.reason ?? 'it goes on later') : 'it waits for somebody'
}
