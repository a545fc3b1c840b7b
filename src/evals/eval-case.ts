// What a case is: a question to an agent, and what scorers expect of its answer. Plain JSON, and its one check.
import type { Frozen, Json } from '../kernel/content.ts'
import { type Check, listCheck, nonEmptyCheck, optionsChecker, requiredCheck } from '../options.ts'
import { jsonRecord } from '../tools/core/plain-values.ts'
import { whyNotCaseId } from './eval-ids.ts'

/** One thing to try. It is plain JSON, so it can stand in a file. */
export type EvalCase = Frozen<{
  /** 1 to 60 letters, digits, `_` or `-`. */
  id: string
  /** What a person writes. Several texts are sent one after another, each when the run before it has ended. */
  input: string | readonly string[]
  /** For the scorers alone. The agent does not see it, and a trial is not run again when it changes. */
  expected?: Json
  /** The id of a recorded session: what is graded in the mode `recorded`, and what tools answer from in `replayed`. */
  recording?: string
}>

const inputCheck: Check = (value, name, of) => {
  if (!Array.isArray(value)) return nonEmptyCheck(value, name, of)
  return value.length === 0 ? 'must have at least one text' : listCheck(nonEmptyCheck)(value, name, of)
}
const expectedCheck: Check = (value, name, of) => jsonRecord(32)({ value }, name, of)
/** Throws `invalid_config` with one sentence for a case that does not fit. */
export const checkCase = optionsChecker<EvalCase>('a case', {
  id: requiredCheck(whyNotCaseId),
  input: requiredCheck(inputCheck, 'Give what a person writes.'),
  expected: expectedCheck,
  recording: nonEmptyCheck,
})
