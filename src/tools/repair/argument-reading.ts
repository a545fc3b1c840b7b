// Reads a model's argument text in all the ways it may have been meant, best first. The first reading that the tool's
// schema accepts is the call; acceptance is decided elsewhere.
import type { Json } from '../../kernel/content.ts'
import {
  ALIASES,
  type AliasConflict,
  decodeJson,
  decodeInnerJson,
  hasTooManyValues,
  LINKED,
  repairArguments,
} from './repair.ts'
import { objectShape, type SchemaShape, shapesOf } from './schema-alternatives.ts'
import type { Tool } from '../core/tool.ts'
import { type ClosedJson, closeJson } from './close-json.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'

/** Fields into which models wrap the arguments when they echo the request, and fields that may stand beside them. */
const WRAPPERS = new Set(['properties', 'arguments', 'args', 'parameters', 'params', 'param', 'input'])
const BESIDE = new Set(['type', 'required', 'additionalProperties', '$schema', 'name', 'tool'])
const LAYERS_MAX = 3
const TRACE_DEPTH_MAX = 16

/**
 * `written` is the object as the model wrote it; `closed` is set if the text was not JSON. The last try is the object
 * without repair, so that errors are told in the model's own terms.
 */
export type ArgumentReading = {
  readonly tries: readonly Json[]
  readonly written: JsonObject | null
  readonly closed: ClosedJson | 'unreadable' | null
  /** Fields given twice, under two names: such arguments are refused. */
  readonly conflicts: readonly AliasConflict[]
}

/** Parses strict JSON; an empty text means no arguments. Undefined if it is not JSON. */
export function parseArguments(text: string): Json | undefined {
  if (text === '') return {}
  try {
    return JSON.parse(text) as Json
  } catch {
    return text.trim() === '' ? {} : undefined
  }
}

/**
 * A schema that drops unknown fields would accept an envelope, an alias or a linked path and lose the intended value.
 * Such arguments are repaired before the first validation; all others cost nothing extra. Looks at names, never at
 * contents.
 */
export function isSuspect(tool: Tool, args: JsonObject): boolean {
  const hint = toolHints.get(tool) ?? readToolHint(tool)
  const { aliases, linked } = hint
  const odd = aliases.size + linked.size > 0
  let wrapped = false
  for (const key in args) {
    const item = args[key] as Json
    wrapped ||= WRAPPERS.has(key)
    if (!odd) continue
    if (aliases.has(key) || (typeof item === 'string' && item.startsWith('[') && linked.has(key))) return true
    if (typeof item === 'object' && hasTrace(item, hint, 1)) return true
  }
  return wrapped && unwrapEcho(hint, tool, args) !== undefined
}

/** Stops at arguments with too many values. */
export function readArguments(tool: Tool, text: string): ArgumentReading | 'too much' {
  const value = parseArguments(text) ?? decodeJson(text)
  if (hasTooManyValues(value, text)) return 'too much'
  if (value !== undefined) {
    return { ...listTries(tool, value), written: isObject(value) ? value : null, closed: null }
  }
  const closed = closeJson(text)
  if (closed && hasTooManyValues(closed.value, text)) return 'too much'
  const safe = closed?.lost === 'none' || (closed?.lost === 'tail' && tool.effect === 'read')
  // A dropped tail may have been a filter or a "dry run": without it only a read is harmless.
  if (closed && safe) return { ...listTries(tool, closed.value), written: closed.value, closed }
  // Last resort: try empty arguments, if none can have been lost or the tool only reads. The schema decides whether any
  // are required.
  const { takesNothing } = toolHints.get(tool) ?? readToolHint(tool)
  const harmless = takesNothing || (closed === null && tool.effect === 'read')
  const tries = harmless ? [{}] : []
  return { tries, written: closed?.value ?? null, closed: closed ?? 'unreadable', conflicts: [] }
}

/** Applies the tool's own normaliser, before anything is judged. */
function normaliseArguments(tool: Tool, args: Json): Json {
  return tool.normalise ? tool.normalise(args) : args
}

function listTries(tool: Tool, value: Json): Pick<ArgumentReading, 'tries' | 'conflicts'> {
  const conflicts: AliasConflict[] = []
  const tries = unwrapLayers(tool, value, 0).flatMap((layer) => {
    const plain = normaliseArguments(tool, layer)
    const mended = repairArguments(tool.parameters, plain, tool.aliases ?? ALIASES, conflicts)
    return mended === plain ? [plain] : [mended, plain]
  })
  return { tries, conflicts }
}

/** Returns the innermost layer first: an envelope is opened before the whole is tried. */
function unwrapLayers(tool: Tool, value: Json, depth: number): readonly JsonObject[] {
  if (depth > LAYERS_MAX) return []
  if (typeof value === 'string' && value.trim() !== '') {
    const decoded = decodeInnerJson(value)
    return decoded === undefined ? [] : unwrapLayers(tool, decoded, depth + 1)
  }
  if (isObject(value)) {
    const inner = unwrapEcho(toolHints.get(tool) ?? readToolHint(tool), tool, value)
    return inner === undefined ? [value] : [...unwrapLayers(tool, inner, depth + 1), value]
  }
  // Other spellings of empty arguments.
  const nothing = value === null || value === '' || (Array.isArray(value) && value.length === 0)
  return nothing ? [{}] : []
}

/** Returns the content of an echo; undefined if this is none, or if the tool really takes such a field. */
function unwrapEcho(hint: ToolHint, tool: Tool, args: JsonObject): Json | undefined {
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

/** Computed once per tool: the odd names to look for, and the fields it takes. */
type ToolHint = {
  readonly aliases: ReadonlySet<string>
  readonly linked: ReadonlySet<string>
  readonly takes: (key: string) => boolean
  readonly takesNothing: boolean
}

const toolHints = new WeakMap<Tool, ToolHint>()

function readToolHint(tool: Tool): ToolHint {
  const root = objectShape(shapesOf(tool.parameters, tool.parameters) ?? [], {})
  const hint = { ...oddNames(tool), takes: fieldTaker(root), takesNothing: takesNothing(root) }
  toolHints.set(tool, hint)
  return hint
}

/** If the fields are not declared, any field is accepted. */
function fieldTaker(root: SchemaShape | null): (key: string) => boolean {
  const { fields, rest } = root ?? { fields: null, rest: null }
  return (key) => fields === null || fields.has(key) || (rest !== null && rest !== false)
}

function takesNothing(root: SchemaShape | null): boolean {
  return root !== null && root.fields?.size === 0 && (root.rest === null || root.rest === false)
}

/** The aliases of declared fields, and the fields that may hold a linked path. */
function oddNames({ parameters, aliases = ALIASES }: Tool): Pick<ToolHint, 'aliases' | 'linked'> {
  const text = JSON.stringify(parameters)
  const declared = (name: string): boolean => text.includes(`${JSON.stringify(name)}:`)
  const odd = [...aliases].filter(([, target]) => declared(target)).map(([alias]) => alias)
  return { aliases: new Set(odd), linked: new Set([...LINKED].filter(declared)) }
}

function hasTrace(value: Json, hint: ToolHint, depth: number): boolean {
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
