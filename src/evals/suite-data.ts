// A suite as data, as it stands in YAML or JSON: its scorers by their names, and values that are looked up in the case.
// It reads no file: the command line does.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { anyCheck, listCheck, nonEmptyCheck, optionsChecker, requiredCheck, textCheck } from '../options.ts'
import type { Model } from '../ports/model.ts'
import { asList, asString, isObject, type JsonObject, ownOf } from '../view/untrusted-json.ts'
import * as way from './call-scorers.ts'
import type { EvalCase } from './eval-case.ts'
import { judgedBy, type JudgeOptions } from './judge.ts'
import { closeTo, contains, equals, json, matches, quoteValue, type Wanted } from './plain-scorers.ts'
import type { Scorer } from './score.ts'
import type { SuiteOptions } from './suite.ts'

/** What a file says beside what any suite says. */
export type SuiteData = Omit<SuiteOptions, 'scorers' | 'agent' | 'recordings' | 'people'> & {
  readonly scorers: readonly Json[]
  readonly people?: 'allow' | 'deny'
  /** The name of an agent of the folder. */
  readonly agent?: string
  /** Models in place of the agent's: one, or several of which the next is asked when one fails. */
  readonly model?: string | readonly string[]
  /** In place of the agent's. */
  readonly instructions?: string
}

const checkData = optionsChecker<SuiteData>('the suite', {
  name: requiredCheck(anyCheck),
  cases: requiredCheck(anyCheck),
  scorers: requiredCheck(anyCheck),
  agent: nonEmptyCheck,
  agentName: nonEmptyCheck,
  model: (value, name, of) =>
    typeof value === 'string' ? nonEmptyCheck(value, name, of) : listCheck(nonEmptyCheck)(value, name, of),
  instructions: textCheck,
  people: anyCheck,
  trials: anyCheck,
  usd: anyCheck,
  trialUsd: anyCheck,
  mode: anyCheck,
  parallel: anyCheck,
  gate: anyCheck,
  version: anyCheck,
  scoreMs: anyCheck,
})

/** Checks what only a file has. The rest is checked by `defineSuite`. */
export function readSuiteData(value: unknown): SuiteData {
  checkData(value)
  return value as SuiteData
}

/** Makes a model of its name, with its key. */
export type ModelMaker = (name: string) => Promise<Model | string>

/** Each is a name alone, or an object with one name and its value, and perhaps a `name` of its own. */
export async function scorersOf(given: unknown, modelOf: ModelMaker): Promise<readonly Scorer[]> {
  if (!Array.isArray(given)) throw new Fault('invalid_config', 'The scorers of a suite must be a list.')
  const scorers: Scorer[] = []
  for (const each of given as readonly Json[]) {
    const scorer = await scorerOf(each, modelOf)
    const alike = scorers.filter(({ name }) => name === scorer.name || name.startsWith(`${scorer.name} `)).length
    scorers.push(alike === 0 ? scorer : { ...scorer, name: `${scorer.name} ${alike + 1}` })
  }
  return scorers
}

async function scorerOf(given: Json, modelOf: ModelMaker): Promise<Scorer> {
  const { name = null, ...said } = isObject(given) ? given : { [asString(given)]: null }
  const [[kind, value] = ['', null], ...more] = Object.entries(said)
  if (more.length > 0 || (name !== null && typeof name !== 'string'))
    throw new Fault('invalid_config', `A scorer is one name with its value, not ${quoteValue(given)}.`)
  const scorer = kind === 'judgedBy' ? await judgeOf(value, modelOf) : ownOf(SCORERS, kind)?.(value)
  if (scorer === undefined)
    throw new Fault(
      'invalid_config',
      `There is no scorer "${kind.slice(0, 64)}". Known are: ${[...Object.keys(SCORERS), 'judgedBy'].join(', ')}.`,
    )
  return name === null ? scorer : { ...scorer, name }
}

async function judgeOf(value: Json, modelOf: ModelMaker): Promise<Scorer> {
  if (!isObject(value)) throw new Fault('invalid_config', 'judgedBy needs { rubric, model }.')
  const { model } = value
  // What does not fit is refused by the scorer itself.
  const made = typeof model === 'string' && model !== '' ? { ...value, model: await modelOf(model) } : value
  return judgedBy(made as unknown as JudgeOptions)
}

const SCORERS: Readonly<Record<string, (value: Json) => Scorer>> = {
  equals: (value) => equals(wantedIn(value)),
  contains: (value) => contains(wantedIn(value)),
  matches: (value) => matches(patternOf(value)),
  json: (value) => json(objectOf('json', value)),
  closeTo: (value) => {
    const { value: wanted = null, within } = isObject(value) ? value : { value }
    return closeTo(wantedIn(wanted), typeof within === 'number' ? { within } : {})
  },
  calls: (value) => {
    const { list = null, ...options } = isObject(value) ? value : { list: value }
    return way.calls(wantedIn(list), options)
  },
  never: (value) => way.never(...textsOf(value)),
  asked: (value) => way.asked(...textsOf(value)),
  settled: (value) => way.settled(wantedIn(value ?? 'completed')),
  events: (value) => way.events(objectOf('events', value)),
  bounds: (value) => way.bounds(objectOf('bounds', value)),
}

const REFERENCE = /^\$(expected|input|id)((?:\.[A-Za-z0-9_-]+)*)$/

/** `$expected.answer` is looked up in each case. Nothing at all is what the case expects. */
function wantedIn<T extends Json>(value: Json): Wanted<T> | undefined {
  if (value === null) return undefined
  const [, field, path = ''] = typeof value === 'string' ? (REFERENCE.exec(value) ?? []) : []
  if (field === undefined) return value as T
  return (of) => lookUp(of, [field, ...path.split('.').slice(1)]) as T
}

function lookUp(of: EvalCase, path: readonly string[]): Json {
  const found = path.reduce<Json | undefined>(
    (value, name) => (isObject(value) ? ownOf(value, name) : undefined),
    of as unknown as Json,
  )
  if (found === undefined) throw new Fault('invalid_config', `Case "${of.id}" has no "${path.join('.')}".`)
  return found
}

/** `/text/i`, or the pattern alone. */
function patternOf(value: Json): RegExp {
  const [, source, flags] = typeof value === 'string' ? (/^\/(.+)\/([a-z]*)$/s.exec(value) ?? [null, value, '']) : []
  try {
    if (source) return new RegExp(source, flags)
  } catch {}
  throw new Fault('invalid_config', `matches takes a pattern, such as "/refunded/i", not ${quoteValue(value)}.`)
}

function objectOf(kind: string, value: Json): JsonObject {
  if (isObject(value)) return value
  throw new Fault('invalid_config', `${kind} takes an object, not ${quoteValue(value)}.`)
}

function textsOf(value: Json): readonly string[] {
  return (typeof value === 'string' ? [value] : asList(value)) as readonly string[]
}
