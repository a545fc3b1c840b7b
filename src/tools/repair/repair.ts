// The repair table: shapes of arguments that models get wrong in known ways, put right by the tool's own schema. A pure function
// over a copy. It does not decide: admission validates what comes out and keeps it only if it is completely clean.
import type { Json } from '../../kernel/content.ts'
import { canonicalJson } from '../core/canonical.ts'
import { accepts, objectShape, type Shape, shapesOf, typeOf } from './shape.ts'
import { isObject, type JsonObject, parsed } from '../../view/json.ts'

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
/** Everything after the parser looks at every value, some of it more than once. */
export const VALUES_MAX = 100_000

/**
 * The same value if there is nothing to repair, or if any field is unknown: then it is not clear what was meant, and nothing is
 * touched. Idempotent. A field appears only under its own name or an alias of it, and a value only from the value that was there.
 */
export function repair(parameters: Json, args: Json, aliases = ALIASES, conflicts: Conflict[] = []): Json {
  return mended(args, { root: parameters, schema: parameters, path: [], aliases, conflicts }) ?? args
}

/** A field and an alias of it are both there and say different things, so neither is believed. */
export type Conflict = { readonly path: readonly (string | number)[]; readonly message: string }

type Place = {
  readonly root: Json
  readonly schema: Json
  readonly path: readonly (string | number)[]
  readonly aliases: Aliases
  readonly conflicts: Conflict[]
}

/** The same object with the aliases at its top under their real names, where these are free. */
export function renamed(args: JsonObject, aliases: Aliases): JsonObject {
  const free = (key: string): string => {
    const target = aliases.get(key)
    return target === undefined || Object.hasOwn(args, target) ? key : target
  }
  const entries = Object.entries(args).map(([key, item]) => [free(key), item] as const)
  // Two aliases of one field stay as they are: neither is the field.
  return new Set(entries.map(([key]) => key)).size === entries.length ? Object.fromEntries(entries) : args
}

/** Undefined cancels the whole repair. */
function mended(value: Json, place: Place): Json | undefined {
  const shapes = shapesOf(place.schema, place.root)
  if (shapes === null || place.path.length > DEPTH_MAX) return value
  const fit = accepts(shapes, typeOf(value)) ? value : coerced(value, shapes)
  // Only where a text is meant: else what is left of the link would be read as something else the next time.
  if (typeof fit === 'string') {
    const linked = LINKED.has(String(place.path.at(-1))) && accepts(shapes, 'string')
    return linked ? unlinked(fit) : fit
  }
  if (Array.isArray(fit)) return mendedItems(fit as readonly Json[], shapes, place)
  return isObject(fit) ? mendedFields(fit, shapes, place) : fit
}

function mendedItems(value: readonly Json[], shapes: readonly Shape[], place: Place): Json | undefined {
  const [shape, ...more] = shapes.filter(({ types }) => types.has('array'))
  if (!shape || more.length > 0 || shape.items === null) return value
  const { items } = shape
  const done = value.map((item, i) => mended(item, { ...place, schema: items, path: [...place.path, i] }))
  if (!isWhole(done)) return undefined
  return done.some((item, i) => item !== value[i]) ? done : value
}

function isWhole(items: readonly (Json | undefined)[]): items is readonly Json[] {
  return !items.includes(undefined)
}

function mendedFields(value: JsonObject, shapes: readonly Shape[], place: Place): Json | undefined {
  const shape = objectShape(shapes, value)
  if (!shape) return knownInSome(value, shapes) ? value : undefined
  // No field is declared and nothing is said about others: anything goes.
  if (shape.fields === null && (shape.rest === null || typeof shape.rest === 'boolean')) return value
  let changed = false
  let cancelled = false
  const spelled = new Map<string, string>()
  const entries: (readonly [string, Json])[] = []
  for (const [key, item] of Object.entries(value)) {
    const name = nameOf(key, shape, value, place.aliases)
    const other = spelled.get(name)
    spelled.set(name, key)
    changed ||= name !== key
    if (other !== undefined) {
      if (canonicalJson(value[other]) === canonicalJson(item)) continue
      place.conflicts.push(conflict(name, [other, key], place))
      cancelled = true
      continue
    }
    const schema = shape.fields?.get(name) ?? shape.rest
    if (schema === null || schema === false) {
      cancelled = true
      continue
    }
    // null_optional_omitted: "none" for a field that may be left out and cannot be null.
    if (item === null && omitsNull(name, shape, schema, place.root)) {
      changed = true
      continue
    }
    const done = mended(item, { ...place, schema, path: [...place.path, name] })
    if (done === undefined) cancelled = true
    else entries.push([name, done])
    changed ||= done !== item
  }
  if (cancelled) return undefined
  // Own properties whatever their name: `fromEntries` defines, it does not assign.
  return changed ? Object.fromEntries(entries) : value
}

function conflict(name: string, keys: readonly string[], { path }: Place): Conflict {
  const spellings = keys.map((key) => `"${key}"`).join(' and ')
  return { path: [...path, name], message: `is given as ${spellings}, with different values. Give "${name}" alone` }
}

function nameOf(key: string, { fields, required, rest }: Shape, value: JsonObject, aliases: Aliases): string {
  const target = aliases.get(key)
  if (target === undefined || !fields?.has(target) || fields.has(key)) return key
  if (rest === null || rest === false) return target
  // Where any field may come, the odd name may be meant, unless the right one is missed.
  return required.has(target) && !Object.hasOwn(value, target) ? target : key
}

function omitsNull(name: string, { fields, required }: Shape, schema: Json, root: Json): boolean {
  if (!fields?.has(name) || required.has(name)) return false
  const shapes = shapesOf(schema, root)
  return shapes !== null && !accepts(shapes, 'null')
}

function knownInSome(value: JsonObject, shapes: readonly Shape[]): boolean {
  const objects = shapes.filter(({ types }) => types.has('object'))
  const takes = ({ fields, rest }: Shape, key: string): boolean =>
    fields === null || fields.has(key) || (rest !== null && rest !== false)
  return Object.keys(value).every((key) => objects.some((shape) => takes(shape, key)))
}

/** A value of a type the schema does not take here, as the type it was meant to be; itself if that is not certain. */
function coerced(value: Json, shapes: readonly Shape[]): Json {
  // empty_object_to_array
  if (isObject(value)) return accepts(shapes, 'array') && Object.keys(value).length === 0 ? [] : value
  if (typeof value !== 'string') return value
  // semantic_boolean_string
  if (accepts(shapes, 'boolean') && (value === 'true' || value === 'false')) return value === 'true'
  // semantic_integer_string: exact integers only.
  if (accepts(shapes, 'integer') && /^(?:0|-?[1-9]\d{0,15})$/.test(value) && Number.isSafeInteger(Number(value))) {
    return Number(value)
  }
  const decoded = decodeInner(value)
  if (decoded !== undefined && isObject(decoded) && accepts(shapes, 'object')) return decoded
  if (!accepts(shapes, 'array')) return value
  // stringified_array, else bare_string_to_array. Nothing, and what looks like a broken list, is not one item.
  if (Array.isArray(decoded)) return decoded as Json
  return value.trim() === '' || /^\s*\[\s*["[{]/.test(value) ? value : [value]
}

/** JSON text, fenced or not; undefined if it is none. */
export function decode(text: string): Json | undefined {
  const fenced = /^\s*```\w*\s([\s\S]*?)```\s*$/.exec(text)
  return parsed(fenced?.[1] ?? text)
}

/** The same for a text within arguments. One with too many values stays a text. */
export function decodeInner(text: string): Json | undefined {
  const value = decode(text)
  return isTooMuch(value, text) ? undefined : value
}

/** Does what was read from this text have more than VALUES_MAX values? A value takes at least two characters. */
export function isTooMuch(value: Json | undefined, text: string): boolean {
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

/** The text of the link must equal its target: `[x](x)`, however often it was wrapped. */
function unlinked(text: string): string {
  let path = text
  for (;;) {
    const half = (path.length - 4) / 2
    const inner = path.slice(1, 1 + half)
    if (!Number.isInteger(half) || half < 1 || path !== `[${inner}](${inner})`) return path
    path = inner
  }
}
