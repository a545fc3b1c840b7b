// The repair table: known mistakes of models in arguments, corrected with the tool's own schema. A pure function over a
// copy. It does not decide: admission validates the result and keeps it only if it is completely valid.
import type { Json } from '../../kernel/content.ts'
import { canonicalJson } from '../core/canonical-json.ts'
import { acceptsType, objectShape, type SchemaShape, shapesOf, jsonTypeOf } from './schema-alternatives.ts'
import { isObject, type JsonObject, parseJson } from '../../view/untrusted-json.ts'

/** Other names of fields: `{ file_path: 'path' }`. A tool declares its own. */
export type Aliases = ReadonlyMap<string, string>

/** field_alias: other names that every tool understands. Used only if the tool has the field and the call does not. */
export const ALIASES: Aliases = new Map([
  ['filePath', 'path'],
  ['oldString', 'old_string'],
  ['newString', 'new_string'],
  ['replaceAll', 'replace_all'],
  ['cmd', 'command'],
])

/** markdown_autolink_path: the fields in which `[a/b.ts](a/b.ts)` means `a/b.ts`. */
export const LINKED: ReadonlySet<string> = new Set(['file_path', 'path', 'cwd', 'directory'])

const DEPTH_MAX = 64
/** Each step after the parser looks at every value, sometimes more than once. */
export const VALUES_MAX = 100_000

/**
 * Returns the same value if there is nothing to repair, or if any field is unknown: then the meaning is unclear, and
 * nothing is changed. Idempotent. A field appears only under its own name or replaces an alias, and its value always
 * comes from the given value.
 */
export function repairArguments(
  parameters: Json,
  args: Json,
  aliases = ALIASES,
  conflicts: AliasConflict[] = [],
): Json {
  return mendValue(args, { root: parameters, schema: parameters, path: [], aliases, conflicts }) ?? args
}

/** A field and an alias of it have different values, so neither is used. */
export type AliasConflict = { readonly path: readonly (string | number)[]; readonly message: string }

type RepairPlace = {
  readonly root: Json
  readonly schema: Json
  readonly path: readonly (string | number)[]
  readonly aliases: Aliases
  readonly conflicts: AliasConflict[]
}

/** Renames the aliases at the top of the object to the real names, where these are free. */
export function renameAliases(args: JsonObject, aliases: Aliases): JsonObject {
  const free = (key: string): string => {
    const target = aliases.get(key)
    return target === undefined || Object.hasOwn(args, target) ? key : target
  }
  const entries = Object.entries(args).map(([key, item]) => [free(key), item] as const)
  // Two aliases of one field stay as they are: it is unclear which one is the field.
  return new Set(entries.map(([key]) => key)).size === entries.length ? Object.fromEntries(entries) : args
}

/** Undefined cancels the whole repair. */
function mendValue(value: Json, place: RepairPlace): Json | undefined {
  const shapes = shapesOf(place.schema, place.root)
  if (shapes === null || place.path.length > DEPTH_MAX) return value
  const fit = acceptsType(shapes, jsonTypeOf(value)) ? value : coerceValue(value, shapes)
  // Only where the schema wants a text: elsewhere the rest of the link would be read as something else the next time.
  if (typeof fit === 'string') {
    const linked = LINKED.has(String(place.path.at(-1))) && acceptsType(shapes, 'string')
    return linked ? unlinkPath(fit) : fit
  }
  if (Array.isArray(fit)) return mendItems(fit as readonly Json[], shapes, place)
  return isObject(fit) ? mendFields(fit, shapes, place) : fit
}

function mendItems(value: readonly Json[], shapes: readonly SchemaShape[], place: RepairPlace): Json | undefined {
  const [shape, ...more] = shapes.filter(({ types }) => types.has('array'))
  if (!shape || more.length > 0 || shape.items === null) return value
  const { items } = shape
  const done = value.map((item, i) => mendValue(item, { ...place, schema: items, path: [...place.path, i] }))
  if (!isComplete(done)) return undefined
  return done.some((item, i) => item !== value[i]) ? done : value
}

function isComplete(items: readonly (Json | undefined)[]): items is readonly Json[] {
  return !items.includes(undefined)
}

function mendFields(value: JsonObject, shapes: readonly SchemaShape[], place: RepairPlace): Json | undefined {
  const shape = objectShape(shapes, value)
  if (!shape) return knownInSome(value, shapes) ? value : undefined
  // No field is declared and other fields are not restricted: anything is valid.
  if (shape.fields === null && (shape.rest === null || typeof shape.rest === 'boolean')) return value
  let changed = false
  let cancelled = false
  const spelled = new Map<string, string>()
  const entries: (readonly [string, Json])[] = []
  for (const [key, item] of Object.entries(value)) {
    const name = fieldName(key, shape, value, place.aliases)
    const other = spelled.get(name)
    spelled.set(name, key)
    changed ||= name !== key
    if (other !== undefined) {
      if (canonicalJson(value[other]) === canonicalJson(item)) continue
      place.conflicts.push(aliasConflict(name, [other, key], place))
      cancelled = true
      continue
    }
    const schema = shape.fields?.get(name) ?? shape.rest
    if (schema === null || schema === false) {
      cancelled = true
      continue
    }
    // null_optional_omitted: null in an optional field that cannot be null means that it is absent.
    if (item === null && omitsNull(name, shape, schema, place.root)) {
      changed = true
      continue
    }
    const done = mendValue(item, { ...place, schema, path: [...place.path, name] })
    if (done === undefined) cancelled = true
    else entries.push([name, done])
    changed ||= done !== item
  }
  if (cancelled) return undefined
  // `fromEntries` defines own properties whatever their name; assigning would not.
  return changed ? Object.fromEntries(entries) : value
}

function aliasConflict(name: string, keys: readonly string[], { path }: RepairPlace): AliasConflict {
  const spellings = keys.map((key) => `"${key}"`).join(' and ')
  return { path: [...path, name], message: `is given as ${spellings}, with different values. Give "${name}" alone` }
}

function fieldName(key: string, { fields, required, rest }: SchemaShape, value: JsonObject, aliases: Aliases): string {
  const target = aliases.get(key)
  if (target === undefined || !fields?.has(target) || fields.has(key)) return key
  if (rest === null || rest === false) return target
  // If any field is allowed, the alias may be a field of its own, unless the real one is required and missing.
  return required.has(target) && !Object.hasOwn(value, target) ? target : key
}

function omitsNull(name: string, { fields, required }: SchemaShape, schema: Json, root: Json): boolean {
  if (!fields?.has(name) || required.has(name)) return false
  const shapes = shapesOf(schema, root)
  return shapes !== null && !acceptsType(shapes, 'null')
}

function knownInSome(value: JsonObject, shapes: readonly SchemaShape[]): boolean {
  const objects = shapes.filter(({ types }) => types.has('object'))
  const takes = ({ fields, rest }: SchemaShape, key: string): boolean =>
    fields === null || fields.has(key) || (rest !== null && rest !== false)
  return Object.keys(value).every((key) => objects.some((shape) => takes(shape, key)))
}

/** Converts a value of a wrong type to the intended type; returns it unchanged if that is not certain. */
function coerceValue(value: Json, shapes: readonly SchemaShape[]): Json {
  // empty_object_to_array
  if (isObject(value)) return acceptsType(shapes, 'array') && Object.keys(value).length === 0 ? [] : value
  if (typeof value !== 'string') return value
  // semantic_boolean_string
  if (acceptsType(shapes, 'boolean') && (value === 'true' || value === 'false')) return value === 'true'
  // semantic_integer_string: exact integers only.
  if (acceptsType(shapes, 'integer') && /^(?:0|-?[1-9]\d{0,15})$/.test(value) && Number.isSafeInteger(Number(value))) {
    return Number(value)
  }
  const decoded = decodeInnerJson(value)
  if (decoded !== undefined && isObject(decoded) && acceptsType(shapes, 'object')) return decoded
  if (!acceptsType(shapes, 'array')) return value
  // stringified_array, else bare_string_to_array. An empty text, or one that looks like a broken list, does not become
  // one item.
  if (Array.isArray(decoded)) return decoded as Json
  return value.trim() === '' || /^\s*\[\s*["[{]/.test(value) ? value : [value]
}

/** Parses JSON text, fenced or not; undefined if it is not JSON. */
export function decodeJson(text: string): Json | undefined {
  const fenced = /^\s*```\w*\s([\s\S]*?)```\s*$/.exec(text)
  return parseJson(fenced?.[1] ?? text)
}

/** The same for a text within arguments. One with too many values stays a text. */
export function decodeInnerJson(text: string): Json | undefined {
  const value = decodeJson(text)
  return hasTooManyValues(value, text) ? undefined : value
}

/** Does the value read from this text have more than VALUES_MAX values? Each takes at least two characters. */
export function hasTooManyValues(value: Json | undefined, text: string): boolean {
  if (text.length <= 2 * VALUES_MAX || value === undefined) return false
  const open: Json[] = [value]
  let count = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    count += 1
    if (next === null || typeof next !== 'object') continue
    const fields = next as JsonObject
    for (const key in fields) {
      open.push(fields[key] as Json)
      if (open.length + count > VALUES_MAX) return true
    }
  }
  return false
}

/** The link's text must equal its target: `[x](x)`, however often it was wrapped. */
function unlinkPath(text: string): string {
  let path = text
  for (;;) {
    const half = (path.length - 4) / 2
    const inner = path.slice(1, 1 + half)
    if (!Number.isInteger(half) || half < 1 || path !== `[${inner}](${inner})`) return path
    path = inner
  }
}
