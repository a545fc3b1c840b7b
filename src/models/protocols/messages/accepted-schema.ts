// The schema of an answer in the form that Anthropic accepts: objects are closed, and keywords that the API refuses
// become a sentence in the description. The caller's own schema still checks the answer. Pure.
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
import type { Json } from '../../../kernel/content.ts'
import { isObject, type JsonObject } from '../../../view/untrusted-json.ts'

const REFUSED: ReadonlySet<string> = new Set(
  [
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern',
    'minItems maxItems uniqueItems minProperties maxProperties not',
  ].flatMap((line) => line.split(' ')),
)
const FORMATS: ReadonlySet<Json> = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '))
/** The values of these keywords are schemas by name, not a schema. */
const GROUPS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

const acceptedSchemas = new WeakMap<object, Json>()

export function acceptedSchema(schema: Json): Json {
  if (!isObject(schema)) return schema
  const before = acceptedSchemas.get(schema)
  if (before !== undefined) return before
  const kept = acceptedNode(schema)
  acceptedSchemas.set(schema, kept)
  return kept
}

function acceptedNode(node: JsonObject): JsonObject {
  const kept: Record<string, Json> = {}
  const said: string[] = []
  for (const [keyword, value] of Object.entries(node)) {
    if (REFUSED.has(keyword) || (keyword === 'format' && !FORMATS.has(value))) {
      said.push(`${keyword}: ${JSON.stringify(value)}`)
    } else kept[keyword === 'oneOf' ? 'anyOf' : keyword] = acceptedValue(keyword, value)
  }
  if (node['type'] === 'object' && 'properties' in node && !('additionalProperties' in node)) {
    kept['additionalProperties'] = false
  }
  if (said.length > 0) {
    const described = typeof node['description'] === 'string' ? [node['description']] : []
    kept['description'] = [...described, `${said.join('; ')}.`].join('\n')
  }
  return kept
}

function acceptedValue(keyword: string, value: Json): Json {
  if (GROUPS.has(keyword) && isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, isObject(item) ? acceptedNode(item) : item]),
    )
  }
  if (keyword === 'items' || keyword === 'additionalProperties') return isObject(value) ? acceptedNode(value) : value
  if (keyword !== 'anyOf' && keyword !== 'oneOf' && keyword !== 'allOf') return value
  return Array.isArray(value) ? value.map((item: Json) => (isObject(item) ? acceptedNode(item) : item)) : value
}
