// A run that did not end as its caller needs it, as an error. What became of it is in its result.
import { flag, optionsOf } from '../options.ts'
import type { ToolList } from '../tools/core/typed.ts'
import type { Completed, Result } from './result.ts'

/** A run that did not complete, or not as it must, thrown by `orThrow` and by `require`. Its result has everything. */
export class RunFailed extends Error {
  readonly result: Result
  constructor(result: Result) {
    super(`The run ended as ${result.status} (${result.stopReason}): ${causeOf(result)}`)
    this.name = 'RunFailed'
    this.result = result
  }
}

/** Ends of a completed run that are errors too. Default: none. */
export type Strictness = {
  /** The model refused to answer. */
  readonly refusal?: boolean
  /** The answer was cut at its longest. */
  readonly truncated?: boolean
}
const checkStrictness = optionsOf<Strictness>('orThrow', { refusal: flag, truncated: flag })

/** The result if the run completed. Throws otherwise, and for what `strictness` names. */
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

/** For `require: 'complete'`: a whole answer, or an error. */
export function required(result: Result, require: 'complete' | undefined): Result {
  return require === undefined ? result : orThrow(result, { refusal: true, truncated: true })
}

function causeOf(result: Result): string {
  if (result.status === 'completed')
    return result.stopReason === 'refusal' ? 'the model refused to answer' : 'the answer was cut at its longest'
  if (result.status === 'failed') return result.failure.message
  if (result.status === 'halted') return result.reason
  if (result.status === 'limit') return result.account === undefined ? result.limit : `usd of the ${result.account}`
  if (result.status === 'interrupted') return result.reason ?? 'somebody stopped it'
  if (result.stopReason === 'paused' && result.reason !== undefined) return result.reason
  return result.status === 'sleeping' ? (result.reason ?? 'it goes on later') : 'it waits for somebody'
}
