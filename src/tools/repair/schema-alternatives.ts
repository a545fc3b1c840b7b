// A tool's JSON Schema as repair needs it: the possible types of a value, its fields, its items. This is not a
// validator: the tool's own schema checks the result afterwards, so a schema we do not understand only means less
// repair.
import type { Frozen, Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'

/** One alternative of a schema. `fields` is null if none are declared; `rest` is the schema of undeclared fields. */
export type SchemaShape = Frozen<{
  types: ReadonlySet<string>
  fields: ReadonlyMap<string, Json> | null
  required: ReadonlySet<string>
  rest: Json | null
  items: Json | null
}>

const REFERENCES_MAX = 16
/** A few lines of schema can describe billions of alternatives. */
const PARTS_MAX = 256

/**
 * A cache per schema, because it is used for every item of a list. It is keyed by root, from which references are
 * resolved.
 */
const knownShapes = new WeakMap<object, WeakMap<object, readonly SchemaShape[] | null>>()

/** The alternatives of `schema`; null if it accepts anything, uses a keyword we do not read, or has too many parts. */
export function shapesOf(schema: Json, root: Json): readonly SchemaShape[] | null {
  if (!isObject(schema) || !isObject(root)) return null
  const shapes = knownShapes.get(root) ?? new WeakMap<object, readonly SchemaShape[] | null>()
  knownShapes.set(root, shapes)
  const before = shapes.get(schema)
  if (before !== undefined) return before
  const found = listAlternatives(schema, { root, parts: 0 }, 0)
  shapes.set(schema, found)
  return found
}

type ShapeSearch = { readonly root: Json; parts: number }

function listAlternatives(schema: Json, whole: ShapeSearch, depth: number): readonly SchemaShape[] | null {
  whole.parts += 1
  if (!isObject(schema) || depth > REFERENCES_MAX || whole.parts > PARTS_MAX) return null
  if (typeof schema['$ref'] === 'string')
    return listAlternatives(resolveReference(schema['$ref'], whole.root), whole, depth + 1)
  const either = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(either)) {
    const all: SchemaShape[] = []
    for (const one of either as readonly Json[]) {
      const shapes = listAlternatives(one, whole, depth + 1)
      if (shapes === null) return null
      all.push(...shapes)
    }
    return all
  }
  if (Array.isArray(schema['allOf'])) return mergeParts(schema['allOf'], whole, depth)
  const types = schemaTypes(schema)
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

/** The one object alternative that this value is meant for: the only one, or the only one whose constants it has. */
export function objectShape(shapes: readonly SchemaShape[], value: JsonObject): SchemaShape | null {
  const all = shapes.filter((shape) => shape.types.has('object'))
  const meant = all.length === 1 ? all : all.filter((shape) => hasConstants(shape, value))
  return meant.length === 1 ? (meant[0] ?? null) : null
}

export function acceptsType(shapes: readonly SchemaShape[], type: string): boolean {
  return shapes.some(({ types }) => types.has(type) || (type === 'integer' && types.has('number')))
}

export function jsonTypeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

function schemaTypes(schema: JsonObject): ReadonlySet<string> {
  const { type } = schema
  if (typeof type === 'string') return new Set([type])
  if (Array.isArray(type)) return new Set(type.filter((one) => typeof one === 'string'))
  if (schema['const'] !== undefined) return new Set([jsonTypeOf(schema['const'])])
  if (Array.isArray(schema['enum'])) return new Set(schema['enum'].map(jsonTypeOf))
  return new Set(isObject(schema['properties']) ? ['object'] : [])
}

/** Merges parts that must all hold into one shape, if each of them is one. */
function mergeParts(parts: readonly Json[], whole: ShapeSearch, depth: number): readonly SchemaShape[] | null {
  const shapes: SchemaShape[] = []
  for (const part of parts) {
    const [one, ...more] = listAlternatives(part, whole, depth + 1) ?? []
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

function resolveReference(reference: string, root: Json): Json {
  if (!reference.startsWith('#')) return null
  let found: Json = root
  for (const step of reference.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isObject(found) || !Object.hasOwn(found, key)) return null
    found = found[key] ?? null
  }
  return found
}

function hasConstants({ fields }: SchemaShape, value: JsonObject): boolean {
  let constants = 0
  for (const [name, schema] of fields ?? []) {
    if (!isObject(schema) || schema['const'] === undefined) continue
    constants += 1
    if (!Object.hasOwn(value, name) || value[name] !== schema['const']) return false
  }
  return constants > 0
}
