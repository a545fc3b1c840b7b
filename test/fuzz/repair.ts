// The repair table over random schemas and arguments as models get them wrong: what fits is left alone, nothing is invented,
// a stranger cancels everything, twice is once. What becomes of a repaired value is admit.ts.
import type { Json } from '../../src/kernel/content.ts'
import { ALIASES, repairArguments } from '../../src/tools/repair/repair.ts'
import { anyJson, fitting, isObject, type JsonObject, pollution, rootSchema, sameJson, spoiled } from './json.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = typeof repairArguments
type Case = { readonly schema: JsonObject; readonly valid: Json | undefined; readonly args: Json }

function call(tape: Tape): Case {
  const schema = rootSchema(tape)
  const valid = fitting(tape, schema, schema)
  return { schema, valid, args: valid === undefined || tape.chance(8) ? anyJson(tape) : spoiled(tape, valid) }
}

/** Every key and plain value in it, and all that its texts may stand for. */
function tracesOf(value: Json, found = new Set<string>()): ReadonlySet<string> {
  if (typeof value === 'string') return tracesOfText(value, found)
  if (Array.isArray(value)) for (const item of value as readonly Json[]) tracesOf(item, found)
  else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      found.add(`key ${ALIASES.get(key) ?? key}`)
      tracesOf(item, found)
    }
  } else found.add(JSON.stringify(value))
  return found
}

function tracesOfText(text: string, found: Set<string>): ReadonlySet<string> {
  found.add(JSON.stringify(text))
  const linked = /^\[(.+)\]\(\1\)$/s.exec(text)?.[1]
  if (linked !== undefined) tracesOfText(linked, found)
  try {
    const value = JSON.parse(/^\s*```\w*\s([\s\S]*?)```\s*$/.exec(text)?.[1] ?? text) as Json
    if (value !== text) tracesOf(value, found)
  } catch {}
  return found
}

/** What is in the result and was nowhere in what it was made from. */
export function invented(result: Json, source: Json): string | undefined {
  const known = tracesOf(source)
  return [...plainTraces(result)].find((trace) => !known.has(trace))
}

function plainTraces(value: Json, found = new Set<string>()): ReadonlySet<string> {
  if (Array.isArray(value)) for (const item of value as readonly Json[]) plainTraces(item, found)
  else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      found.add(`key ${ALIASES.get(key) ?? key}`)
      plainTraces(item, found)
    }
  } else found.add(JSON.stringify(value))
  return found
}

export const repairs = target<Subject, Case>({
  name: 'repair',
  real: repairArguments,
  cases: drawn(call, 96),
  planted: {
    'what can be repaired is, beside a stranger': (schema, args) => (isObject(args) ? inPart(schema, args) : args),
    'a missing required field is filled in': (schema, args) => {
      const [missing] = isObject(schema) ? (schema['required'] as readonly string[]) : []
      const done = repairArguments(schema, args)
      return isObject(done) && missing !== undefined && !Object.hasOwn(done, missing)
        ? { ...done, [missing]: 'none' }
        : done
    },
    'fields are assigned, so that __proto__ is one no longer': (schema, args) =>
      assigned(repairArguments(schema, args)),
    'of two names for one field the last one counts': (schema, args) => {
      if (!isObject(args)) return repairArguments(schema, args)
      const entries = Object.entries(args).map(([key, item]) => [ALIASES.get(key) ?? key, item] as const)
      const merged = Object.fromEntries(entries)
      return entries.length > Object.keys(merged).length ? merged : repairArguments(schema, args)
    },
    'every text that looks like a number is one': (schema, args) => numbered(repairArguments(schema, args)),
  },
  check: (subject, { schema, valid, args }) => {
    if (valid !== undefined) hold(subject(schema, valid) === valid, () => 'a value that fits was changed')
    const before = JSON.stringify(args)
    const once = subject(schema, args)
    hold(JSON.stringify(args) === before, () => 'the arguments themselves were changed')
    hold(sameJson(subject(schema, once), once), () => `a second repair changed ${JSON.stringify(once)}`)
    const strange = invented(once, args)
    hold(strange === undefined, () => `${strange} was invented: ${JSON.stringify(once)}`)
    const spoilt = pollution(once)
    hold(spoilt === null, () => spoilt ?? '')
    if (!isObject(args)) return
    const stranger = Object.fromEntries([...Object.entries(args), ['?', 1]])
    hold(subject(schema, stranger) === stranger, () => 'an unknown field did not cancel the repair')
    const fields = schema['properties'] as JsonObject
    for (const [alias, field] of ALIASES) {
      if (!Object.hasOwn(fields, field) || Object.hasOwn(fields, alias)) continue
      const twice = { ...args, [field]: 'one', [alias]: 'other' }
      hold(subject(schema, twice) === twice, () => `"${field}" was chosen among two names with different values`)
    }
  },
})

function inPart(schema: Json, args: JsonObject): Json {
  const { '?': stranger, ...known } = args
  if (stranger === undefined) return repairArguments(schema, args)
  const done = { ...(repairArguments(schema, known) as JsonObject), '?': stranger }
  return sameJson(done, args) ? args : done
}

function assigned(value: Json): Json {
  if (!isObject(value)) return value
  const copy: Record<string, Json> = {}
  for (const key of Object.keys(value)) copy[key] = value[key] as Json
  return sameJson(copy, value) ? value : copy
}

function numbered(value: Json): Json {
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, item === '12' ? 12 : item] as const)
  return entries.some(([key, item]) => item !== value[key]) ? Object.fromEntries(entries) : value
}
