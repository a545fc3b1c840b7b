// What the readers of calls have in common: their types, and the values that they read. Pure.
import type { Json } from '../../../kernel/content.ts'
import type { ToolSchema } from '../../../ports/model.ts'
import { isObject, ownOf, parseJson } from '../../../view/untrusted-json.ts'
import { readTolerantJson } from '../../../view/tolerant-json.ts'
import { endOfJson } from './json-span.ts'

/** `args` is the JSON text of the arguments. It may be damaged: admission repairs it, or refuses the call. */
export type ReadCall = { readonly tool: string; readonly args: string }
/** The calls of one marked part of a text, and where that part ends. */
export type CallBlock = { readonly calls: readonly ReadCall[]; readonly end: number }
/** Reads the part whose marker stands at `from`. Null if it is not whole, or calls no tool of the run. */
export type CallReader = (text: string, from: number, reading: CallReading) => CallBlock | null

/** Damaged parts may be scanned to the end of the text. After this many, no more are. */
const SCANS_MAX = 16

/** One reading of one text: the tools of the run, and a bound on the work. */
export class CallReading {
  readonly tools: ReadonlyMap<string, ToolSchema>
  /** Texts that do not occur at or after a position. */
  readonly #absent = new Map<string, number>()
  #scans = 0

  constructor(tools: readonly ToolSchema[]) {
    this.tools = new Map(tools.map((tool) => [tool.name, tool]))
  }

  /** The next position of a closing text, or -1. A text that was not found is not searched again. */
  find(text: string, closing: string, from: number): number {
    if (from >= (this.#absent.get(closing) ?? Number.POSITIVE_INFINITY)) return -1
    const at = text.indexOf(closing, from)
    if (at < 0) this.#absent.set(closing, from)
    return at
  }

  /** The end of the JSON value at `from`; -1 if it does not close. */
  endOfJson(text: string, from: number): number {
    const end = this.isOver ? -1 : endOfJson(text, from, text.length)
    if (end < 0) this.failed()
    return end
  }

  /** A part could not be read, and may have been scanned to the end of the text. */
  failed(): void {
    this.#scans += 1
  }

  /** So many parts could not be read that the rest is not tried. */
  get isOver(): boolean {
    return this.#scans > SCANS_MAX
  }
}

const NAMES = ['name', 'tool', 'tool_name', 'function'] as const
const ARGUMENTS = ['arguments', 'parameters', 'args', 'input'] as const
/** A call whose name can be read although its arguments are damaged. */
const DAMAGED =
  /^\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,200})"\s*,\s*"(?:arguments|parameters|args|input)"\s*:/

/** Reads calls as JSON: one, several, or a list of them. Null if one of them calls no tool of the run. */
export function readJsonCalls(body: string, { tools }: CallReading): readonly ReadCall[] | null {
  if (!/^[[{]/.test(body)) return null
  const values = jsonValues(body)
  if (values === null) return readDamagedCall(body, tools)
  const calls = values.flatMap((each) => readJsonCall(each, tools) ?? [])
  return calls.length === values.length && calls.length > 0 ? calls : null
}

/** The values of a text, one after the other. Null if one of them cannot be read, or something else is among them. */
function jsonValues(body: string): readonly Json[] | null {
  const values: Json[] = []
  for (let at = 0; at < body.length; ) {
    const end = endOfJson(body, at, body.length)
    const text = end < 0 ? body.slice(at) : body.slice(at, end)
    const value = /^[[{]/.test(text) ? (parseJson(text) ?? readTolerantJson(text)) : undefined
    if (value === undefined) return null
    if (Array.isArray(value)) values.push(...(value as readonly Json[]))
    else values.push(value)
    at = end < 0 ? body.length : end
    // A bracket too many is a slip.
    while (at < body.length && ' \t\r\n,;]}'.includes(body[at] as string)) at += 1
  }
  return values
}

function readJsonCall(value: Json, tools: CallReading['tools']): ReadCall | null {
  if (!isObject(value)) return null
  const named = NAMES.map((key) => ownOf(value, key)).find((name) => typeof name === 'string')
  if (typeof named !== 'string' || !tools.has(named)) return null
  const key = ARGUMENTS.find((each) => Object.hasOwn(value, each))
  const args = key === undefined ? {} : (ownOf(value, key) ?? {})
  return { tool: named, args: typeof args === 'string' ? args : JSON.stringify(args) }
}

/** Only for one value: the arguments of the first of several would reach to the end of the last. */
function readDamagedCall(body: string, tools: CallReading['tools']): readonly ReadCall[] | null {
  const first = endOfJson(body, 0, body.length)
  if (first >= 0 && /[^\s,;\]}]/.test(body.slice(first))) return null
  const [head = '', tool = ''] = DAMAGED.exec(body) ?? []
  const end = body.lastIndexOf('}')
  return tools.has(tool) && end > head.length ? [{ tool, args: body.slice(head.length, end).trim() }] : null
}

/** The schemas of the parameters, by name. */
export function parametersOf({ parameters }: ToolSchema): ReadonlyMap<string, Json> {
  const properties = isObject(parameters) ? ownOf(parameters, 'properties') : undefined
  return new Map(isObject(properties) ? Object.entries(properties) : [])
}

/** A value written as text becomes what its schema says, if it is that; else it stays a text. */
export function readValue(text: string, schema: Json | undefined): Json {
  const { type } = isObject(schema) ? schema : { type: null }
  const types = Array.isArray(type) ? type : [type]
  if (types.includes('string')) return text
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  const isWhole = /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))
  if (types.includes('integer') && isWhole) return Number(text)
  if (types.includes('number') && /^-?\d{1,16}(?:\.\d{1,16})?(?:[eE][+-]?\d{1,3})?$/.test(text)) return Number(text)
  const value = /^\s*[[{n]/.test(text) ? parseJson(text) : undefined
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  return value !== undefined && types.includes(kind) ? value : text
}

/** The JSON text of an object with these fields. A field may have any name, also `__proto__`. */
export function fieldsJson(entries: readonly (readonly [string, Json])[]): string {
  return JSON.stringify(Object.fromEntries(entries))
}
