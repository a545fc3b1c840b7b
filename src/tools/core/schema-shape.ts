// Checks early whether an object given as JSON Schema can be one. An object that is something else has no keyword of
// JSON Schema, or gives keywords values that they never have. The full check is in json-schema.ts.
import { isObject } from '../../view/untrusted-json.ts'

const TYPES: ReadonlySet<unknown> = new Set(['null', 'boolean', 'object', 'array', 'number', 'string', 'integer'])
const LEVELS_MAX = 64

type KeywordRule = (value: unknown, levels: number) => string | null

const isText: KeywordRule = (value) => (typeof value === 'string' ? null : 'must be a text')
const isNumber: KeywordRule = (value) => (typeof value === 'number' ? null : 'must be a number')
const isFlag: KeywordRule = (value) => (typeof value === 'boolean' ? null : 'must be true or false')
const isList: KeywordRule = (value) => (Array.isArray(value) ? null : 'must be a list')
const anything: KeywordRule = () => null
const isType: KeywordRule = (value) => {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.length > 0 && all.every((type) => TYPES.has(type)) ? null : `must be one of ${[...TYPES].join(', ')}`
}
const isTextList: KeywordRule = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? null : 'must be a list of texts'
const isSchema: KeywordRule = (value, levels) => (typeof value === 'boolean' ? null : troubleIn(value, levels, false))
const areSchemas: KeywordRule = (value, levels) => {
  if (!Array.isArray(value)) return 'must be a list of schemas'
  return firstTrouble(value.map((item: unknown) => isSchema(item, levels)))
}
const areNamedSchemas: KeywordRule = (value, levels) => {
  if (!isObject(value)) return 'must be an object of schemas'
  return firstTrouble(Object.entries(value).map(([name, item]) => withinField(name, isSchema(item, levels))))
}
const isOneOrMore: KeywordRule = (value, levels) => (Array.isArray(value) ? areSchemas : isSchema)(value, levels)

const WORDS: ReadonlyMap<string, KeywordRule> = new Map<string, KeywordRule>([
  ['type', isType],
  ['required', isTextList],
  ['enum', isList],
  ['const', anything],
  ...(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'] as const).map(
    (w) => [w, areNamedSchemas] as const,
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

/** Says why the value is not a JSON Schema, as the end of a sentence; null if it may be one. */
export function schemaTrouble(value: unknown): string | null {
  return troubleIn(value, LEVELS_MAX, true)
}

function troubleIn(value: unknown, levels: number, isWhole: boolean): string | null {
  if (!isObject(value) || !isPlainObject(value)) return 'it is no plain object'
  if (levels === 0) return null
  const words = Object.keys(value)
  if (isWhole && words.length > 0 && !words.some((word) => WORDS.has(word)))
    return `it has no word of JSON Schema, only ${words.slice(0, 3).join(', ')}`
  return firstTrouble(words.map((word) => withinField(word, WORDS.get(word)?.(value[word], levels - 1) ?? null)))
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function withinField(name: string, trouble: string | null): string | null {
  return trouble === null ? null : `"${name.slice(0, 64)}" ${trouble}`
}

function firstTrouble(troubles: readonly (string | null)[]): string | null {
  return troubles.find((trouble) => trouble !== null) ?? null
}
