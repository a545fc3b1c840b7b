// Checks JSON from outside against a schema generated from types: no field missing, none unknown, each of the right
// type. Reports the first error in one sentence. It knows only the keywords that scripts/event-schema.ts writes.
import { Fault } from '../kernel/failure.ts'
import { isObject } from '../view/untrusted-json.ts'
import { SCHEMAS } from './event-schema.ts'
import type { Schema } from './schema.ts'

type PlainObject = Readonly<Record<string, unknown>>

export function invalidImport(sentence: string): Fault {
  return new Fault('invalid_input', `This is no session that can be imported: ${sentence}`)
}

export const NO_EXPORT =
  'it is not a file that Terret exported. Make one with `terret export SESSION --format json`, or with `exportSession`.'

/** Throws a Fault that says what is wrong, and where. */
export function checkPortable(records: unknown): void {
  checkValue({ $ref: '#/$defs/Portable' }, records, 'records')
}

function checkValue(referred: Schema, value: unknown, at: string): void {
  const schema = resolveReference(referred)
  if (schema.anyOf) return checkValue(pickSchema(schema.anyOf, value), value, at)
  if (schema.oneOf) return checkMember(schema.oneOf, value, at)
  if (schema.properties?.['type']) return checkMember([schema], value, at)
  if (schema.properties) return checkFields(schema, requireObject(value, at), at)
  if (schema.propertyNames) return checkTable(schema, requireObject(value, at), at)
  if (schema.items) return checkList(schema.items, value, at)
  if (!isScalarOf(schema, value)) throw invalidImport(`${at} must be ${expectationText(schema)}.`)
}

function resolveReference(schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (SCHEMAS[schema.$ref.slice('#/$defs/'.length)] ?? {})
}

function pickSchema(schemas: readonly Schema[], value: unknown): Schema {
  const kind = kindOf(value)
  return schemas.find(({ type }) => type === kind) ?? schemas.find(({ $ref }) => $ref !== undefined) ?? schemas[0] ?? {}
}

function checkMember(members: readonly Schema[], value: unknown, at: string): void {
  const found = requireObject(value, at)
  const { type } = found
  const schema = members.find((each) => resolveReference(each).properties?.['type']?.const === type)
  if (!schema)
    throw invalidImport(`${at} has the type ${JSON.stringify(type) ?? 'undefined'}, which this version does not know.`)
  checkFields(resolveReference(schema), found, at)
}

function checkFields({ properties = {}, required = [] }: Schema, found: PlainObject, at: string): void {
  const place = (key: string): string => (at === '' ? key : `${at}.${key}`)
  const unknown = Object.keys(found).find((key) => !Object.hasOwn(properties, key))
  if (unknown !== undefined) throw invalidImport(`${place(unknown)} is not known.`)
  for (const [key, schema] of Object.entries(properties)) {
    if (Object.hasOwn(found, key)) checkValue(schema, found[key], place(key))
    else if (required.includes(key)) throw invalidImport(`${place(key)} is missing.`)
  }
}

function checkTable({ propertyNames = {}, additionalProperties }: Schema, found: PlainObject, at: string): void {
  for (const [key, stored] of Object.entries(found)) {
    checkValue(propertyNames, key, `the key ${JSON.stringify(key)} of ${at}`)
    checkValue(additionalProperties || {}, stored, `${at}.${key}`)
  }
}

function checkList(items: Schema, value: unknown, at: string): void {
  if (!Array.isArray(value)) throw invalidImport(`${at} must be a list.`)
  value.forEach((each, i) => checkValue(items, each, `${at}[${i}]`))
}

function isScalarOf(schema: Schema, value: unknown): boolean {
  const { type, minLength = 0, pattern, minimum = 0, maximum = Number.MAX_VALUE } = schema
  if (schema.enum) return schema.enum.includes(value)
  if (schema.const !== undefined) return value === schema.const
  if (type === 'string') {
    if (typeof value !== 'string' || value.length < minLength) return false
    return pattern === undefined || new RegExp(pattern, 'u').test(value)
  }
  if (type === 'integer' && !Number.isInteger(value)) return false
  if (type === 'integer' || type === 'number') return typeof value === 'number' && value >= minimum && value <= maximum
  // A value without a type in the schema may be any JSON, and it came from a JSON text.
  return type === undefined || kindOf(value) === type
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number that is not negative',
  boolean: 'true or false',
}

function expectationText({ enum: words, const: word, description, type = '' }: Schema): string {
  if (words) return `one of ${words.join(', ')}`
  return word === undefined ? (description ?? KINDS[type] ?? type) : JSON.stringify(word)
}

function requireObject(value: unknown, at: string): PlainObject {
  if (!isObject(value)) throw invalidImport(`${at === '' ? 'it' : at} must be an object.`)
  return value
}
