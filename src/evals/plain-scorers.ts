// Scorers of an answer: equal, contained, matched, of a form, close to a number. Each is 0 or 1, and says what it found.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { type JsonSchema, fromAnyJsonSchema } from '../tools/core/json-schema.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { shortenText } from '../view/shown-text.ts'
import { parseJson } from '../view/untrusted-json.ts'
import { problemOf } from '../models/structured-output.ts'
import type { ScoreResult, Scorer } from './score.ts'
import type { EvalCase } from './eval-case.ts'
import type { Trial } from './trial.ts'

/** A value, or how to find it in the case. */
export type Wanted<T> = T | ((of: EvalCase) => T)

const SHOWN_CHARS = 200

/** The value that a scorer was given for this case. Without one it is what the case expects. */
export function wantedOf<T extends Json>(wanted: Wanted<T> | undefined, { case: of }: Trial): T {
  const value = typeof wanted === 'function' ? wanted(of) : (wanted ?? of.expected)
  if (value === undefined)
    throw new Fault(
      'invalid_config',
      `Case "${of.id}" expects nothing. Give it \`expected\`, or give the scorer a value.`,
    )
  return value as T
}

/** The answer as JSON where the agent has a form for it or the text is JSON, and otherwise the text. */
function answerOf({ output, text }: Trial): Json {
  return output !== null && typeof output !== 'string' ? output : (parseJson(text) ?? text)
}

/** The answer is this text or this JSON. Blanks around a text do not count. */
export function equals(wanted?: Wanted<Json>): Scorer {
  return {
    name: 'equals',
    score: (trial) => {
      const value = wantedOf(wanted, trial)
      const isText = typeof value === 'string'
      const same = isText ? trial.text.trim() === value.trim() : canonicalJson(answerOf(trial)) === canonicalJson(value)
      return same || unlike(trial, `is not ${quoteValue(value)}`)
    },
  }
}

/** The answer contains this text, or each of these, whatever their case. */
export function contains(wanted?: Wanted<string | readonly string[]>): Scorer {
  return {
    name: 'contains',
    score: (trial) => {
      const value = wantedOf(wanted, trial)
      const text = trial.text.toLowerCase()
      const missing = (typeof value === 'string' ? [value] : value).find((each) => !text.includes(each.toLowerCase()))
      return missing === undefined || unlike(trial, `does not contain ${quoteValue(missing)}`)
    },
  }
}

/** The answer matches this pattern. */
export function matches(pattern: RegExp): Scorer {
  if (!(pattern instanceof RegExp)) throw new Fault('invalid_config', 'matches takes a pattern, such as /refunded/i.')
  // One with a memory of its last match would find every second answer.
  const fresh = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''))
  return { name: 'matches', score: (trial) => fresh.test(trial.text) || unlike(trial, `does not match ${fresh}`) }
}

/** The answer is JSON of this schema. */
export function json(schema: JsonSchema): Scorer {
  const { validate } = fromAnyJsonSchema(schema, 'json')['~standard']
  return {
    name: 'json',
    score: async (trial) => {
      const { output, text } = trial
      const value = typeof output === 'string' ? parseJson(text) : (output ?? parseJson(text))
      if (value === undefined) return unlike(trial, 'is no JSON')
      const checked = await validate(value)
      return checked.issues ? unlike(trial, `does not fit:\n${problemOf(checked.issues)}`) : true
    },
  }
}

/** The answer is a number, or has one as its last, that is at most `within` away. */
export function closeTo(wanted?: Wanted<number>, { within = 1e-9 }: { readonly within?: number } = {}): Scorer {
  return {
    name: 'closeTo',
    score: (trial) => {
      const value = wantedOf(wanted, trial)
      const answer = answerOf(trial)
      const found =
        typeof answer === 'number' ? answer : Number(trial.text.match(/-?\d+(?:\.\d+)?/g)?.at(-1) ?? Number.NaN)
      if (Number.isNaN(found)) return unlike(trial, 'has no number')
      return (
        Math.abs(found - value) <= within || unlike(trial, `has ${found}, which is not within ${within} of ${value}`)
      )
    },
  }
}

function unlike({ text }: Trial, why: string): ScoreResult {
  return { score: 0, why: `The answer ${quoteValue(text)} ${why}.` }
}

export function quoteValue(value: Json): string {
  return shortenText(JSON.stringify(value) ?? 'nothing', SHOWN_CHARS)
}
