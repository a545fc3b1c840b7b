// Builds the smallest value that fits a JSON Schema, for the offline model. Patterns, conditions and negations are
// ignored: a schema with those may refuse the value.
import type { Json } from '../../kernel/content.ts'
import { asList } from '../../view/untrusted-json.ts'

type Schema = { readonly [keyword: string]: Json }

/** Schemas may be recursive: try few steps first, and give up after the last limit. */
const STEPS = [2, 4, 8, 16, 32] as const

export function smallestValue(schema: Json): Json {
  return firstOf(STEPS, (steps) => smallestWithin(schema, schema, steps)) ?? null
}

/** Undefined if no value fits within these steps. */
function smallestWithin(schema: Json, root: Json, steps: number): Json | undefined {
  if (schema === false || steps < 0) return undefined
  if (!isSchema(schema)) return null
  const given = [schema['const'], schema['default'], itemAt(schema['examples'], 0), itemAt(schema['enum'], 0)]
  const said = given.find((value) => value !== undefined)
  if (said !== undefined) return said
  const below = (child: Json): Json | undefined => smallestWithin(child, root, steps - 1)
  if (typeof schema['$ref'] === 'string') return below(followReference(schema['$ref'], root))
  const choices = asList(schema['anyOf'] ?? schema['oneOf'] ?? [])
  if (choices.length > 0) return firstOf(choices, (choice) => below(choice))
  const all = asList(schema['allOf'] ?? []).map((part) => resolveReference(part, root))
  if (all.length > 0) return below(all.reduce<Schema>(mergeSchemas, { ...schema, allOf: [] }))
  return firstOf(typesOf(schema), (type) => smallestOfType(schema, type, below))
}

type ChildValue = (child: Json) => Json | undefined

function smallestOfType(schema: Schema, type: Json, below: ChildValue): Json | undefined {
  if (type === 'object') return smallestObject(schema, below)
  if (type === 'array') return smallestList(schema, below)
  if (type === 'string') return smallestText(schema)
  if (type === 'integer' || type === 'number') return smallestNumber(schema, type === 'integer')
  return type === 'boolean' ? false : null
}

/** Infers the type of a schema without `type` from its other keywords. */
function typesOf({ type, properties, required, items, minLength, minimum }: Schema): readonly Json[] {
  if (type !== undefined) return Array.isArray(type) ? (type as readonly Json[]) : [type]
  if (properties !== undefined || required !== undefined) return ['object']
  if (items !== undefined) return ['array']
  return [minLength !== undefined ? 'string' : minimum !== undefined ? 'number' : 'null']
}

function smallestObject({ properties, required, minProperties }: Schema, below: ChildValue): Json | undefined {
  const known = isSchema(properties) ? properties : {}
  const must = asList(required ?? []).map(String)
  const more = Object.keys(known).filter((name) => !must.includes(name))
  const names = [...must, ...more.slice(0, Math.max(0, numberOf(minProperties, 0) - must.length))]
  const entries: [string, Json][] = []
  for (const name of names) {
    const value = below(known[name] ?? {})
    if (value === undefined) return undefined
    entries.push([name, value])
  }
  return Object.fromEntries(entries)
}

function smallestList({ minItems, items = {}, prefixItems, uniqueItems }: Schema, below: ChildValue): Json | undefined {
  const list: Json[] = []
  for (let i = 0; i < numberOf(minItems, 0); i++) {
    const schema = itemAt(prefixItems, i) ?? items
    const value = below(schema)
    if (value === undefined) return undefined
    list.push(uniqueItems === true && i > 0 ? makeDifferent(value, schema, i) : value)
  }
  return list
}

function makeDifferent(value: Json, schema: Json, i: number): Json {
  const listed = isSchema(schema) ? itemAt(schema['enum'], i) : undefined
  if (listed !== undefined) return listed
  if (typeof value === 'string') return `${value}${i}`
  return typeof value === 'number' ? value + i : value
}

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2000-01-01T00:00:00Z',
  date: '2000-01-01',
  time: '00:00:00Z',
  duration: 'PT0S',
  email: 'offline@example.com',
  hostname: 'example.com',
  ipv4: '127.0.0.1',
  ipv6: '::1',
  uuid: '00000000-0000-4000-8000-000000000000',
  uri: 'https://example.com/',
}

function smallestText({ format, minLength, maxLength }: Schema): Json {
  const text = typeof format === 'string' ? (FORMATS[format] ?? '') : ''
  return text.padEnd(numberOf(minLength, 0), 'offline ').slice(0, numberOf(maxLength, Number.POSITIVE_INFINITY))
}

function smallestNumber(schema: Schema, whole: boolean): Json {
  const [least, above] = [numberOf(schema['minimum'], -Infinity), numberOf(schema['exclusiveMinimum'], -Infinity)]
  const [most, under] = [numberOf(schema['maximum'], Infinity), numberOf(schema['exclusiveMaximum'], Infinity)]
  const fits = (value: number): boolean => value >= least && value > above && value <= most && value < under
  const [low, high] = [Math.max(least, above), Math.min(most, under)]
  const step = numberOf(schema['multipleOf'], whole ? 1 : 0)
  const from = low > 0 ? low : high
  const way = low > 0 ? 1 : -1
  const near = step > 0 ? Math.ceil((from * way) / step) * step * way : from
  const between = Number.isFinite(low + high) ? [(low + high) / 2] : []
  return [0, near, near + way * (step || 1), ...between].find(fits) ?? 0
}

function followReference(reference: string, root: Json): Json {
  if (!reference.startsWith('#')) return {}
  let node: Json | undefined = root
  for (const step of reference.slice(2).split('/').filter(Boolean)) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    node = isSchema(node) ? node[name] : undefined
  }
  return node ?? {}
}

function resolveReference(schema: Json, root: Json): Schema {
  const found = isSchema(schema) && typeof schema['$ref'] === 'string' ? followReference(schema['$ref'], root) : schema
  return isSchema(found) ? found : {}
}

function mergeSchemas(left: Schema, right: Schema): Schema {
  const properties = { ...(left['properties'] as Schema | undefined), ...(right['properties'] as Schema | undefined) }
  const required = [...asList(left['required'] ?? []), ...asList(right['required'] ?? [])]
  return { ...left, ...right, properties, required }
}

function firstOf<T>(list: readonly T[], make: (entry: T) => Json | undefined): Json | undefined {
  for (const entry of list) {
    const value = make(entry)
    if (value !== undefined) return value
  }
  return undefined
}

function itemAt(list: Json | undefined, i: number): Json | undefined {
  return Array.isArray(list) ? (list as readonly Json[])[i] : undefined
}

function numberOf(value: Json | undefined, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

function isSchema(value: Json | undefined): value is Schema {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
