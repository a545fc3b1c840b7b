// The type of a provider rule, and checks that several dialects share: names and strict schemas.
import type { Frozen, Json } from '../kernel/content.ts'
import type { Issued } from './issued.ts'
import { fieldsOf } from './fields.ts'
import type { Dialect } from './chaos-script.ts'
import type { ProviderRefusal } from './answer-encoder.ts'
import { isObject, type JsonObject, asList, asString } from '../view/untrusted-json.ts'

/** A request, as the rules of providers look at it. */
export type RuleRequest = Frozen<{
  /** The headers of the request, with names in lower case. */
  headers: Readonly<Record<string, string>>
  /** The body of the request. */
  body: JsonObject
  /** What the stand-in has given out so far. */
  issued: Issued
}>

/** A rule of one dialect. */
export type DialectRule = Frozen<{
  /** The dialect and the number in it, such as `chat-3`. */
  id: string
  /** One sentence. */
  rule: string
  /** The provider's documentation, or a report of its refusal. */
  source: string
  /** Null if the request follows the rule. */
  check: (asked: RuleRequest) => ProviderRefusal | null
}>

/** Something that a real provider refuses, with where it is written down. */
export type ProviderRule = DialectRule & {
  /** The protocol that the rule belongs to. */
  readonly dialect: Dialect
}

/** The first refusal among the entries of a list. */
export function firstRefusal<T>(
  list: Iterable<T>,
  look: (entry: T, at: number) => ProviderRefusal | null,
): ProviderRefusal | null {
  let at = 0
  for (const entry of list) {
    const refusal = look(entry, at)
    if (refusal !== null) return refusal
    at += 1
  }
  return null
}

/** The first repeated value, or undefined. */
export function firstRepeated(values: readonly string[]): string | undefined {
  return values.find((value, at) => values.indexOf(value) !== at)
}

export function tooLongRefusal(param: string, text: string, most: number): ProviderRefusal | null {
  const message = `Invalid '${param}': string too long. Expected a string with maximum length ${most}, but got a string with length ${text.length} instead.`
  return text.length > most ? { message, param, code: 'string_above_max_length' } : null
}

export function emptyArrayRefusal(param: string): ProviderRefusal {
  const message = `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`
  return { message, param, code: 'empty_array' }
}

export function badNameRefusal(param: string, name: string, most: number): ProviderRefusal | null {
  if (name === '')
    return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' }
  const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) return { message, param, code: 'invalid_value' }
  return tooLongRefusal(param, name, most)
}

/** A tool that OpenAI refuses, whether it is strict or not. */
export function badRootRefusal(param: string, name: string, schema: Json | undefined): ProviderRefusal | null {
  if (rootChoice(schema) === undefined) return null
  const wrong = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
  return { message: `Invalid schema for function '${name}': ${wrong}`, param, code: 'invalid_function_parameters' }
}

/** A choice at the root of a tool's schema, which every provider refuses. */
export function rootChoice(schema: Json | undefined): string | undefined {
  return ['oneOf', 'anyOf', 'allOf', 'enum', 'const', 'not'].find((keyword) => keyword in fieldsOf(schema))
}

/** Not supported by OpenAI's strict mode. */
const UNSUPPORTED = ['allOf', 'not', 'dependentRequired', 'dependentSchemas', 'if', 'then', 'else'] as const

/** OpenAI's message for a schema that cannot be strict; null if it can. */
export function whyNotStrict(schema: Json | undefined): string | null {
  const root = fieldsOf(schema)
  if (root.type !== 'object')
    return `schema must be a JSON Schema of 'type: "object"', got 'type: "${asString(root.type) || 'None'}"'.`
  return whyNodeNotStrict(root, [])
}

function whyNodeNotStrict(node: JsonObject, path: readonly string[]): string | null {
  const context = `In context=(${path.map((step) => `'${step}'`).join(', ')})`
  const banned = UNSUPPORTED.find((keyword) => keyword in node)
  if (banned !== undefined) return `${context}, '${banned}' is not permitted.`
  if ('$ref' in node) {
    const beside = Object.keys(node).filter((keyword) => keyword !== '$ref')
    return beside.length === 0 ? null : `${context}, $ref cannot have keywords {'${beside.join("', '")}'}.`
  }
  if (!['type', 'anyOf', 'enum', 'const'].some((keyword) => keyword in node))
    return `${context}, schema must have a 'type' key.`
  if (node.type === 'array' && !('items' in node)) return `${context}, array schema missing items.`
  const properties = fieldsOf(node.properties)
  if (node.type === 'object' || 'properties' in node) {
    if (node.additionalProperties !== false)
      return `${context}, 'additionalProperties' is required to be supplied and to be false.`
    const missing = Object.keys(properties).find((name) => !asList(node.required).includes(name))
    if (missing !== undefined)
      return `${context}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`
  }
  for (const [child, steps] of childrenOf(node, properties)) {
    const found = whyNodeNotStrict(child, [...path, ...steps])
    if (found !== null) return found
  }
  return null
}

function childrenOf(node: JsonObject, properties: JsonObject): readonly (readonly [JsonObject, readonly string[]])[] {
  const children: (readonly [JsonObject, readonly string[]])[] = []
  const add = (value: Json | undefined, ...steps: readonly string[]): void => {
    if (isObject(value)) children.push([value, steps])
  }
  for (const [name, value] of Object.entries(properties)) add(value, 'properties', name)
  for (const [name, value] of Object.entries(fieldsOf(node.$defs))) add(value, '$defs', name)
  for (const [at, value] of asList(node.anyOf).entries()) add(value, 'anyOf', String(at))
  add(node.items, 'items')
  return children
}
