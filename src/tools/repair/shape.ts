// A tool's JSON Schema as repair needs it: which types a value may have, which fields, which items. Not a validator: whatever
// is built on it is checked by the tool's own schema afterwards, so a schema we do not understand only means less repair.
import type { Frozen, Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/json.ts'

/** One alternative of a schema. `fields` is null where none are declared; `rest` is what undeclared fields must be. */
export type Shape = Frozen<{
  types: ReadonlySet<string>
  fields: ReadonlyMap<string, Json> | null
  required: ReadonlySet<string>
  rest: Json | null
  items: Json | null
}>

const REFERENCES_MAX = 16
/** A schema can say in a few lines what has billions of alternatives. */
const PARTS_MAX = 256

/** Once per schema: it is asked for every item of a list. By root, which references begin at. */
const known = new WeakMap<object, WeakMap<object, readonly Shape[] | null>>()

/** The alternatives of `schema`, or null if it takes anything, says something we do not read, or has too many parts. */
export function shapesOf(schema: Json, root: Json): readonly Shape[] | null {
  if (!isObject(schema) || !isObject(root)) return null
  const shapes = known.get(root) ?? new WeakMap<object, readonly Shape[] | null>()
  known.set(root, shapes)
  const before = shapes.get(schema)
  if (before !== undefined) return before
  const found = alternatives(schema, { root, parts: 0 }, 0)
  shapes.set(schema, found)
  return found
}

type Whole = { readonly root: Json; parts: number }

function alternatives(schema: Json, whole: Whole, depth: number): readonly Shape[] | null {
  whole.parts += 1
  if (!isObject(schema) || depth > REFERENCES_MAX || whole.parts > PARTS_MAX) return null
  if (typeof schema['$ref'] === 'string') return alternatives(pointed(schema['$ref'], whole.root), whole, depth + 1)
  const either = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(either)) {
    const all: Shape[] = []
    for (const one of either as readonly Json[]) {
      const shapes = alternatives(one, whole, depth + 1)
      if (shapes === null) return null
      all.push(...shapes)
    }
    return all
  }
  if (Array.isArray(schema['allOf'])) return merged(schema['allOf'], whole, depth)
  const types = typesOf(schema)
  if (types.size === 0) return null
  const { properties, required, additionalProperties: rest, items } = schema
  return [
    {
      types,
      fields: isObject(properties) ? new Map(Object.entries(properties)) : null,
      required: new Set(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []),
      rest: rest ?? null,
      items: items ?? null,
    },
  ]
}

/** The one object alternative this value is meant for: the only one, or the only one whose constants it has. */
export function objectShape(shapes: readonly Shape[], value: JsonObject): Shape | null {
  const all = shapes.filter((shape) => shape.types.has('object'))
  const meant = all.length === 1 ? all : all.filter((shape) => hasConstants(shape, value))
  return meant.length === 1 ? (meant[0] ?? null) : null
}

export function accepts(shapes: readonly Shape[], type: string): boolean {
  return shapes.some(({ types }) => types.has(type) || (type === 'integer' && types.has('number')))
}

export function typeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

function typesOf(schema: JsonObject): ReadonlySet<string> {
  const { type } = schema
  if (typeof type === 'string') return new Set([type])
  if (Array.isArray(type)) return new Set(type.filter((one) => typeof one === 'string'))
  if (schema['const'] !== undefined) return new Set([typeOf(schema['const'])])
  if (Array.isArray(schema['enum'])) return new Set(schema['enum'].map(typeOf))
  return new Set(isObject(schema['properties']) ? ['object'] : [])
}

/** Parts that all hold are one shape, if each of them is one. */
function merged(parts: readonly Json[], whole: Whole, depth: number): readonly Shape[] | null {
  const shapes: Shape[] = []
  for (const part of parts) {
    const [one, ...more] = alternatives(part, whole, depth + 1) ?? []
    if (!one || more.length > 0) return null
    shapes.push(one)
  }
  const [first] = shapes
  if (!first) return null
  return [
    {
      types: first.types,
      fields: new Map(shapes.flatMap(({ fields }) => [...(fields ?? [])])),
      required: new Set(shapes.flatMap(({ required }) => [...required])),
      rest: shapes.every(({ rest }) => rest === true) ? true : null,
      items: first.items,
    },
  ]
}

function pointed(reference: string, root: Json): Json {
  if (!reference.startsWith('#')) return null
  let found: Json = root
  for (const step of reference.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isObject(found) || !Object.hasOwn(found, key)) return null
    found = found[key] ?? null
  }
  return found
}

function hasConstants({ fields }: Shape, value: JsonObject): boolean {
  let constants = 0
  for (const [name, schema] of fields ?? []) {
    if (!isObject(schema) || schema['const'] === undefined) continue
    constants += 1
    if (!Object.hasOwn(value, name) || value[name] !== schema['const']) return false
  }
  return constants > 0
}
