// Decides whether a schema may be sent as `strict`: every object requires all its properties and forbids others, and
// OpenAI's strict mode refuses nothing in it. A refused schema fails the whole request.
import type { Json } from '../../kernel/content.ts'
import { hasRootChoice } from './tool-schema.ts'
import { isObject } from '../../view/untrusted-json.ts'

/**
 * The keywords of https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas, and those that
 * only describe.
 */
const KEYWORDS: ReadonlySet<string> = new Set(
  [
    'type properties required additionalProperties items anyOf enum const $ref $defs definitions pattern format',
    'multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems title description $schema',
  ].flatMap((line) => line.split(' ')),
)
const FORMATS: ReadonlySet<Json> = new Set('date-time time date duration email hostname ipv4 ipv6 uuid'.split(' '))
const DEPTH_MAX = 10

const strictSchemas = new WeakMap<object, boolean>()

export function isStrict(schema: Json): boolean {
  if (!isObject(schema) || schema['type'] !== 'object' || hasRootChoice(schema)) return false
  const before = strictSchemas.get(schema)
  if (before !== undefined) return before
  const strict = isStrictNode(schema, 1)
  strictSchemas.set(schema, strict)
  return strict
}

/**
 * The schema with its objects closed, if that makes it strict: every value of the closed schema also fits the original. Objects
 * with their own `additionalProperties` stay as they are.
 */
export function tightenSchema(schema: Json): Json {
  const closed = JSON.parse(JSON.stringify(schema), (_key, node: Json) => {
    const opens =
      isObject(node) && node['type'] === 'object' && 'properties' in node && !('additionalProperties' in node)
    return opens ? { ...node, additionalProperties: false } : node
  }) as Json
  return isStrict(closed) ? closed : schema
}

type JsonObject = { readonly [key: string]: Json }

function isStrictNode(node: Json, depth: number): boolean {
  if (!isObject(node) || depth > DEPTH_MAX) return false
  if (Object.keys(node).some((keyword) => !KEYWORDS.has(keyword)) || !hasOneForm(node)) return false
  const { type, items, anyOf, format, $defs, definitions } = node as Record<string, Json | undefined>
  if (format !== undefined && !FORMATS.has(format)) return false
  const objects = type === 'object' || (Array.isArray(type) && type.includes('object')) || 'properties' in node
  if (objects && !isClosed(node)) return false
  const below: Json[] = [$defs, definitions, node['properties']].flatMap((group) =>
    group !== undefined && isObject(group) ? Object.values(group) : [],
  )
  if (items !== undefined) below.push(items)
  if (anyOf !== undefined) below.push(...(Array.isArray(anyOf) ? (anyOf as readonly Json[]) : [anyOf]))
  return below.every((child) => isStrictNode(child, objects ? depth + 1 : depth))
}

/** An empty node is refused, and so is a `$ref` with other keywords. */
function hasOneForm(node: JsonObject): boolean {
  if ('$ref' in node) return Object.keys(node).length === 1
  const items = node['type'] !== 'array' || 'items' in node
  return items && ['type', 'anyOf', 'enum', 'const'].some((keyword) => keyword in node)
}

function isClosed({ properties, required, additionalProperties }: JsonObject): boolean {
  if (additionalProperties !== false || properties === undefined || !isObject(properties)) return false
  const names = Array.isArray(required) ? (required as readonly Json[]) : []
  return Object.keys(properties).every((name) => names.includes(name))
}
