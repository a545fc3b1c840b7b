// The verdict of a grader: each criterion with a reason. The grader judges criteria, and code decides what that makes of
// the round.
import type { Json } from '../kernel/content.ts'
import { clipText } from '../view/shown-text.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { RoundGrade } from './pursuit.ts'

const MET = ['yes', 'no', 'unclear'] as const
export type Criterion = { readonly criterion: string; readonly met: (typeof MET)[number]; readonly why: string }
export type RoundVerdict = { readonly criteria: readonly Criterion[]; readonly summary: string }

export const VERDICT_SCHEMA: Json = {
  type: 'object',
  properties: {
    criteria: {
      type: 'array',
      minItems: 1,
      maxItems: 100,
      items: {
        type: 'object',
        properties: {
          criterion: { type: 'string', description: 'The criterion, in a few words of the rubric.' },
          met: { type: 'string', enum: [...MET] },
          why: { type: 'string', description: 'What shows it, or what is missing.' },
        },
        required: ['criterion', 'met', 'why'],
        additionalProperties: false,
      },
    },
    summary: { type: 'string', description: 'One or two sentences about the result as a whole.' },
  },
  required: ['criteria', 'summary'],
  additionalProperties: false,
}

/** Null if the output of a run is no verdict. */
export function readVerdict(output: unknown): RoundVerdict | null {
  if (!isObject(output)) return null
  const { criteria, summary } = output
  if (!Array.isArray(criteria) || criteria.length === 0 || typeof summary !== 'string') return null
  const read = criteria.map(readCriterion)
  return read.every((one) => one !== null) ? { criteria: read, summary } : null
}

function readCriterion(value: unknown): Criterion | null {
  if (!isObject(value)) return null
  const { criterion, met, why } = value
  const known = MET.find((word) => word === met)
  if (known === undefined || typeof criterion !== 'string' || typeof why !== 'string') return null
  return { criterion, met: known, why }
}

const SUMMARY_CHARS = 500

/** One criterion that is not met fails the round. Without such a one, an unclear one leaves it uncertain. */
export function gradeOfVerdict({
  criteria,
  summary,
}: RoundVerdict): Pick<RoundGrade, 'state' | 'met' | 'of' | 'summary'> {
  const met = criteria.filter((each) => each.met === 'yes').length
  const fails = criteria.some((each) => each.met === 'no')
  const state = fails ? 'fail' : met === criteria.length ? 'pass' : 'uncertain'
  return { state, met, of: criteria.length, summary: clipText(summary, SUMMARY_CHARS) }
}
