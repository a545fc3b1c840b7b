// Whether an object that a host gives as JSON Schema can be one, told where it is given: an object of something else has no word of
// JSON Schema, or gives its words values that they never have. What a schema means is for the checker (json-schema.ts).
import { isObject } from '../../view/json.ts'

const TYPES: ReadonlySet<unknown> = new Set(['null', 'boolean', 'object', 'array', 'number', 'string', 'integer'])
const LEVELS_MAX = 64

type Rule = (value: unknown, levels: number) => string | null

const isText: Rule = (value) => (typeof value === 'string' ? null : 'must be a text')
const isNumber: Rule = (value) => (typeof value === 'number' ? null : 'must be a number')
const isFlag: Rule = (value) => (typeof value === 'boolean' ? null : 'must be true or false')
const isList: Rule = (value) => (Array.isArray(value) ? null : 'must be a list')
const anything: Rule = () => null
const isType: Rule = (value) => {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.length > 0 && all.every((type) => TYPES.has(type)) ? null : `must be one of ${[...TYPES].join(', ')}`
}
const isTexts: Rule = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? null : 'must be a list of texts'
const isSchema: Rule = (value, levels) => (typeof value === 'boolean' ? null : troubleIn(value, levels, false))
const areSchemas: Rule = (value, levels) => {
  if (!Array.isArray(value)) return 'must be a list of schemas'
  return first(value.map((item: unknown) => isSchema(item, levels)))
}
const areNamed: Rule = (value, levels) => {
  if (!isObject(value)) return 'must be an object of schemas'
  return first(Object.entries(value).map(([name, item]) => within(name, isSchema(item, levels))))
}
const isOneOrMore: Rule = (value, levels) => (Array.isArray(value) ? areSchemas : isSchema)(value, levels)

const WORDS: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['type', isType],
  ['required', isTexts],
  ['enum', isList],
  ['const', anything],
  ...(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'] as const).map(
    (w) => [w, areNamed] as const,
  ),
  ...(['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const).map((word) => [word, areSchemas] as const),
  ...(['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'additionalProperties'] as const).map(
    (w) => [w, isSchema] as const,
  ),
  ...(['unevaluatedProperties', 'unevaluatedItems', 'additionalItems'] as const).map(
    (word) => [word, isSchema] as const,
  ),
  ['items', isOneOrMore],
  ...(['$ref', '$id', '$schema', '$anchor', '$comment', 'title', 'description', 'pattern', 'format'] as const).map(
    (w) => [w, isText] as const,
  ),
  ...(['minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'minItems', 'maxItems'] as const).map(
    (w) => [w, isNumber] as const,
  ),
  ...(['minProperties', 'maxProperties', 'minContains', 'maxContains'] as const).map(
    (word) => [word, isNumber] as const,
  ),
  ['uniqueItems', isFlag],
  ...(
    ['exclusiveMinimum', 'exclusiveMaximum', 'dependentRequired', 'dependencies', 'default', 'examples'] as const
  ).map((w) => [w, anything] as const),
  ...(['deprecated', 'readOnly', 'writeOnly', 'contentEncoding', 'contentMediaType', '$dynamicRef'] as const).map(
    (w) => [w, anything] as const,
  ),
])

/** Why the value is no JSON Schema, as the end of a sentence; null if it may be one. */
export function schemaTrouble(value: unknown): string | null {
  return troubleIn(value, LEVELS_MAX, true)
}

function troubleIn(value: unknown, levels: number, isWhole: boolean): string | null {
  if (!isObject(value) || !isPlain(value)) return 'it is no plain object'
  if (levels === 0) return null
  const words = Object.keys(value)
  if (isWhole && words.length > 0 && !words.some((word) => WORDS.has(word)))
    return `it has no word of JSON Schema, only ${words.slice(0, 3).join(', ')}`
  return first(words.map((word) => within(word, WORDS.get(word)?.(value[word], levels - 1) ?? null)))
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function within(name: string, trouble: string | null): string | null {
  return trouble === null ? null : `"${name.slice(0, 64)}" ${trouble}`
}

function first(troubles: readonly (string | null)[]): string | null {
  return troubles.find((trouble) => trouble !== null) ?? null
}
