// Random JSON schemas, values that fit them, and what models make of such values. Also a checker of its own for these schemas:
// the tools under test are given it, and what they let through is held against it.
import type { Json } from '../../src/kernel/content.ts'
import type { Tape } from './tape.ts'

export type JsonObject = { readonly [key: string]: Json }

const NAMES = [
  'path command replace_all names limit old_string file_path x y type',
  'filePath cmd replaceAll oldString args input properties',
  '__proto__ constructor prototype toString hasOwnProperty',
].flatMap((line) => line.split(' '))
const ALIASES: Readonly<Record<string, string>> = {
  path: 'filePath',
  command: 'cmd',
  replace_all: 'replaceAll',
  old_string: 'oldString',
}
const TEXTS = [
  '',
  'a',
  'true',
  'false',
  '0',
  '-5',
  '12',
  '1.0',
  '9007199254740993',
  'null',
  'ü',
  '\ud800',
  '{}',
  'a b',
  '\\"',
]
const ODD = [
  '[a](a)',
  '[[a](a)]([a](a))',
  '[a](b)',
  '[]',
  '["a"]',
  '[1,"2"]',
  '["a',
  '{"x":"true"}',
  '{"path":1}',
  '"{}"',
  '```json\n["a"]\n```',
  '{"__proto__":{"polluted":1}}',
  '  ',
]
const NUMBERS = [0, 1, -1, 12, 1.5, -0.5, 1e21, Number.MAX_SAFE_INTEGER, 2 ** 60]

/** The root of arguments: closed, so that an unknown field is unknown. `#/$defs/node` may refer to itself. */
export function rootSchema(tape: Tape): JsonObject {
  const root = objectSchema(tape, 0)
  return { ...root, additionalProperties: false, $defs: { node: objectSchema(tape, 1) } }
}

function objectSchema(tape: Tape, depth: number): JsonObject {
  const names = [...new Set(tape.list(5, () => tape.pick(NAMES)))]
  const properties = Object.fromEntries(names.map((name) => [name, schema(tape, depth + 1)]))
  const required = names.filter(() => tape.chance(2))
  const rest = tape.below(5)
  if (rest > 2)
    return { type: 'object', properties, required, additionalProperties: rest === 3 ? true : schema(tape, depth + 2) }
  return { type: 'object', properties, required, ...(rest === 0 ? {} : { additionalProperties: false }) }
}

function schema(tape: Tape, depth: number): Json {
  const kind = tape.below(depth > 3 ? 5 : 13)
  switch (kind) {
    case 0:
      return { type: 'string' }
    case 1:
      return { type: 'integer' }
    case 2:
      return { type: 'boolean' }
    case 3:
      return { type: 'number' }
    case 4:
      return { const: tape.pick<Json>(['a', 'true', 1, true, null]) }
    case 5:
      return { type: 'array', items: schema(tape, depth + 1) }
    case 6:
      return { type: 'array' }
    case 7:
      return objectSchema(tape, depth)
    case 8:
      return { anyOf: [schema(tape, depth + 1), { type: 'null' }] }
    case 9:
      return { anyOf: tape.list(3, () => schema(tape, depth + 1), 1) }
    case 10:
      return { enum: tape.list(3, () => tape.pick<Json>(['a', 'true', 'false', 0, 12, true, null]), 1) }
    case 11:
      return { $ref: '#/$defs/node' }
    default:
      return {}
  }
}

/** Does the value fit? Written for these schemas alone, and for being obvious. */
export function fits(value: Json, one: Json, root: JsonObject): boolean {
  if (!isObject(one)) return one !== false
  if ('$ref' in one) return fits(value, nodeOf(root), root)
  if (Array.isArray(one['anyOf'])) return one['anyOf'].some((option: Json) => fits(value, option, root))
  if ('const' in one) return value === one['const']
  if (Array.isArray(one['enum'])) return one['enum'].includes(value)
  switch (one['type']) {
    case 'integer':
      return Number.isInteger(value)
    case 'array': {
      const { items } = one
      return Array.isArray(value) && (items === undefined || value.every((item: Json) => fits(item, items, root)))
    }
    case 'object':
      return isObject(value) && fitsFields(value, one, root)
    case 'null':
      return value === null
    case undefined:
      return true
    default:
      return typeof value === one['type']
  }
}

function fitsFields(value: JsonObject, one: JsonObject, root: JsonObject): boolean {
  const properties = one['properties'] as JsonObject
  const required = one['required'] as readonly string[]
  return (
    required.every((name) => Object.hasOwn(value, name)) &&
    Object.entries(value).every(([name, item]) =>
      Object.hasOwn(properties, name)
        ? fits(item, properties[name] as Json, root)
        : fits(item, one['additionalProperties'] ?? true, root),
    )
  )
}

function nodeOf(root: JsonObject): Json {
  return (root['$defs'] as JsonObject)['node'] as Json
}

/** A value that fits, with declared fields only and no text that could mean anything else. Undefined where there is none. */
export function fitting(tape: Tape, one: Json, root: JsonObject, depth = 0): Json | undefined {
  if (!isObject(one) || depth > 6) return undefined
  if ('$ref' in one) return fitting(tape, nodeOf(root), root, depth + 1)
  if (Array.isArray(one['anyOf'])) return fitting(tape, tape.pick(one['anyOf'] as readonly Json[]), root, depth + 1)
  if ('const' in one) return one['const']
  if (Array.isArray(one['enum'])) return tape.pick(one['enum'] as readonly Json[])
  switch (one['type']) {
    case 'integer':
      return Math.trunc(tape.pick(NUMBERS))
    case 'number':
      return tape.pick(NUMBERS)
    case 'boolean':
      return tape.chance(2)
    case 'null':
      return null
    case 'array': {
      const items = tape.list(3, () => fitting(tape, one['items'] ?? { type: 'string' }, root, depth + 1))
      return items.includes(undefined) ? [] : (items as readonly Json[])
    }
    case 'object':
      return fittingFields(tape, one, root, depth)
    default:
      return tape.pick(TEXTS)
  }
}

function fittingFields(tape: Tape, one: JsonObject, root: JsonObject, depth: number): Json | undefined {
  const required = one['required'] as readonly string[]
  const entries: (readonly [string, Json])[] = []
  for (const [name, field] of Object.entries(one['properties'] as JsonObject)) {
    if (!required.includes(name) && tape.chance(3)) continue
    const item = fitting(tape, field, root, depth + 1)
    if (item !== undefined) entries.push([name, item])
    else if (required.includes(name)) return undefined
  }
  return Object.fromEntries(entries)
}

/** Any value at all. */
export function anyJson(tape: Tape, depth = 0): Json {
  switch (tape.below(depth > 3 ? 4 : 6)) {
    case 0:
      return tape.pick(TEXTS)
    case 1:
      return tape.pick(ODD)
    case 2:
      return tape.pick(NUMBERS)
    case 3:
      return tape.pick([null, true, false])
    case 4:
      return tape.list(3, () => anyJson(tape, depth + 1))
    default:
      return Object.fromEntries(tape.list(4, () => [tape.pick(NAMES), anyJson(tape, depth + 1)] as const))
  }
}

/** What models do to a value on the way: other names, other types, text for structure, nulls, strangers, gaps. */
export function spoiled(tape: Tape, value: Json, depth = 0): Json {
  if (depth > 0 && tape.chance(6)) return tape.pick([spoiledLeaf, anyJsonOf])(tape, value)
  if (Array.isArray(value)) return value.map((item: Json) => spoiled(tape, item, depth + 1))
  if (!isObject(value)) return value
  const entries = Object.entries(value).flatMap(([name, item]) => {
    if (tape.chance(12)) return []
    return [[tape.chance(3) ? (ALIASES[name] ?? name) : name, spoiled(tape, item, depth + 1)] as const]
  })
  if (tape.chance(8)) entries.push([tape.pick(NAMES), anyJson(tape)])
  return Object.fromEntries(entries)
}

function anyJsonOf(tape: Tape): Json {
  return anyJson(tape)
}

function spoiledLeaf(tape: Tape, value: Json): Json {
  if (typeof value === 'string') return tape.chance(2) ? `[${value}](${value})` : [value]
  return tape.pick<Json>([JSON.stringify(value), null, { ...(isObject(value) ? value : {}) }])
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item: Json, i) => sameJson(item, b[i] as Json))
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameJson(a[name], b[name]))
  )
}

/** Everything in `part` stands in `whole` at the same place; lists and objects may only be shorter. */
export function isPart(part: Json | undefined, whole: Json | undefined): boolean {
  if (Array.isArray(part)) return Array.isArray(whole) && part.every((item: Json, i) => isPart(item, whole[i] as Json))
  if (!isObject(part)) return part === whole
  return (
    isObject(whole) &&
    Object.entries(part).every(([name, item]) => Object.hasOwn(whole, name) && isPart(item, whole[name]))
  )
}

/** Threat 48: no object of the result has a wrong prototype, and `Object.prototype` has no new field. */
export function pollution(value: Json): string | null {
  const strange = Object.getOwnPropertyNames(Object.prototype).find((name) => !PROTOTYPE.has(name))
  if (strange !== undefined) return `Object.prototype has "${strange}"`
  return foreign(value) ? 'an object has a prototype from the arguments' : null
}

const PROTOTYPE = new Set(Object.getOwnPropertyNames(Object.prototype))

function foreign(value: Json): boolean {
  if (Array.isArray(value)) return value.some(foreign)
  return isObject(value) && (Object.getPrototypeOf(value) !== Object.prototype || Object.values(value).some(foreign))
}

/** Pieces of JSON text, to be put together wrongly. */
export const JSON_BITS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  'true',
  'nul',
  '-1',
  '1e',
  ' ',
  '`',
  '\u2028',
] as const
