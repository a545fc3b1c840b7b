// What a model may have meant by the text of its arguments: the readings of it, best first. The first that the tool's schema
// accepts is the call; none is accepted here.
import type { Json } from '../../kernel/content.ts'
import { ALIASES, type Conflict, decode, decodeInner, isTooMuch, LINKED, repair } from './repair.ts'
import { objectShape, type Shape, shapesOf } from './shape.ts'
import type { Tool } from '../core/tool.ts'
import { type Closed, close } from './truncated.ts'
import { isObject, type JsonObject } from '../../view/json.ts'

/** Where models put the arguments when they echo the request instead of answering it, and what may stand beside them. */
const WRAPPERS = new Set(['properties', 'arguments', 'args', 'parameters', 'params', 'param', 'input'])
const BESIDE = new Set(['type', 'required', 'additionalProperties', '$schema', 'name', 'tool'])
const LAYERS_MAX = 3
const TRACE_DEPTH_MAX = 16

/**
 * `written` is the object as it was written, `closed` is set if the text was not JSON. The last try is the object without repair,
 * so that what is wrong with it is told in the model's own terms.
 */
export type Reading = {
  readonly tries: readonly Json[]
  readonly written: JsonObject | null
  readonly closed: Closed | 'unreadable' | null
  /** Fields that are given twice, under two names: such arguments are refused. */
  readonly conflicts: readonly Conflict[]
}

/** Strict JSON; nothing at all means no arguments. Undefined if it is not JSON. */
export function parse(text: string): Json | undefined {
  if (text === '') return {}
  try {
    return JSON.parse(text) as Json
  } catch {
    return text.trim() === '' ? {} : undefined
  }
}

/**
 * A schema that drops unknown fields would accept an envelope, an alias or a linked path and lose what was meant. Such arguments
 * are read with care before the first validation; all others are not slowed down. Looks at names, never through contents.
 */
export function isSuspect(tool: Tool, args: JsonObject): boolean {
  const hint = hintOf(tool)
  const { aliases, linked } = hint
  const traced = aliases.size + linked.size > 0 && hasTrace(args, hint, 0)
  return traced || unwrapped(hint, tool, args) !== undefined
}

/** Arguments with too many values are not read any further. */
export function readingOf(tool: Tool, text: string): Reading | 'too much' {
  const value = parse(text) ?? decode(text)
  if (isTooMuch(value, text)) return 'too much'
  if (value !== undefined) {
    return { ...triesOf(tool, value), written: isObject(value) ? value : null, closed: null }
  }
  const closed = close(text)
  if (closed && isTooMuch(closed.value, text)) return 'too much'
  const safe = closed?.lost === 'none' || (closed?.lost === 'tail' && tool.effect === 'read')
  // A dropped tail may have been a filter or a "dry run": without it only a read is harmless.
  if (closed && safe) return { ...triesOf(tool, closed.value), written: closed.value, closed }
  // Last resort: no arguments, if none can have been lost or nothing can be harmed. The schema says whether any is required.
  const harmless = hintOf(tool).takesNothing || (closed === null && tool.effect === 'read')
  const tries = harmless ? [{}] : []
  return { tries, written: closed?.value ?? null, closed: closed ?? 'unreadable', conflicts: [] }
}

/** The tool's own other shapes, before anything is judged. */
export function normalised(tool: Tool, args: Json): Json {
  return tool.normalise ? tool.normalise(args) : args
}

function triesOf(tool: Tool, value: Json): Pick<Reading, 'tries' | 'conflicts'> {
  const conflicts: Conflict[] = []
  const tries = layersOf(tool, value, 0).flatMap((layer) => {
    const plain = normalised(tool, layer)
    const mended = repair(tool.parameters, plain, tool.aliases ?? ALIASES, conflicts)
    return mended === plain ? [plain] : [mended, plain]
  })
  return { tries, conflicts }
}

/** Innermost first: an envelope is opened before the whole is tried. */
function layersOf(tool: Tool, value: Json, depth: number): readonly JsonObject[] {
  if (depth > LAYERS_MAX) return []
  if (typeof value === 'string' && value.trim() !== '') {
    const decoded = decodeInner(value)
    return decoded === undefined ? [] : layersOf(tool, decoded, depth + 1)
  }
  if (isObject(value)) {
    const inner = unwrapped(hintOf(tool), tool, value)
    return inner === undefined ? [value] : [...layersOf(tool, inner, depth + 1), value]
  }
  // Nothing, said in another way.
  const nothing = value === null || value === '' || (Array.isArray(value) && value.length === 0)
  return nothing ? [{}] : []
}

/** What an echo holds; undefined if this is none, or the tool really takes such a field. */
function unwrapped(hint: Hint, tool: Tool, args: JsonObject): Json | undefined {
  let inner: Json | undefined
  for (const key in args) {
    if (!(WRAPPERS.has(key) || BESIDE.has(key)) || hint.takes(key)) return undefined
    if (BESIDE.has(key)) {
      const named = key === 'name' || key === 'tool'
      if (named && args[key] !== tool.name) return undefined
    } else {
      if (inner !== undefined) return undefined
      inner = args[key]
    }
  }
  return inner
}

/** Per tool, once: which odd names to look for, and which fields it takes. */
type Hint = {
  readonly aliases: ReadonlySet<string>
  readonly linked: ReadonlySet<string>
  readonly takes: (key: string) => boolean
  readonly takesNothing: boolean
}

const hints = new WeakMap<Tool, Hint>()

function hintOf(tool: Tool): Hint {
  const known = hints.get(tool)
  if (known) return known
  const root = objectShape(shapesOf(tool.parameters, tool.parameters) ?? [], {})
  const hint = { ...oddNames(tool), takes: takenBy(root), takesNothing: takesNothing(root) }
  hints.set(tool, hint)
  return hint
}

/** Where the fields are not declared, any field may be one. */
function takenBy(root: Shape | null): (key: string) => boolean {
  const { fields, rest } = root ?? { fields: null, rest: null }
  return (key) => fields === null || fields.has(key) || (rest !== null && rest !== false)
}

function takesNothing(root: Shape | null): boolean {
  return root !== null && root.fields?.size === 0 && (root.rest === null || root.rest === false)
}

/** The aliases of any field declared anywhere, and the fields that may hold a linked path. */
function oddNames({ parameters, aliases = ALIASES }: Tool): Pick<Hint, 'aliases' | 'linked'> {
  const text = JSON.stringify(parameters)
  const declared = (name: string): boolean => text.includes(`${JSON.stringify(name)}:`)
  const odd = [...aliases].filter(([, target]) => declared(target)).map(([alias]) => alias)
  return { aliases: new Set(odd), linked: new Set([...LINKED].filter(declared)) }
}

function hasTrace(value: Json, hint: Hint, depth: number): boolean {
  if (value === null || typeof value !== 'object' || depth > TRACE_DEPTH_MAX) return false
  if (Array.isArray(value)) return value.some((item: Json) => hasTrace(item, hint, depth + 1))
  const object = value as JsonObject
  for (const key in object) {
    const item = object[key] as Json
    if (hint.aliases.has(key) || (typeof item === 'string' && item.startsWith('[') && hint.linked.has(key))) return true
    if (typeof item === 'object' && hasTrace(item, hint, depth + 1)) return true
  }
  return false
}
