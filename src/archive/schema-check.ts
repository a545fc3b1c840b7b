// Checks plain JSON from outside by a schema that was made of types: nothing missing, nothing more, everything of its kind, and one
// sentence about the first place where it is not so. It knows only the keywords that scripts/event-schema.ts writes.
import { Fault } from '../kernel/failure.ts'
import { isObject } from '../view/json.ts'
import { SCHEMAS } from './event-schema.ts'
import type { Schema } from './schema.ts'

type Found = Readonly<Record<string, unknown>>

export function invalid(sentence: string): Fault {
  return new Fault('invalid_input', `This is no session that can be imported: ${sentence}`)
}

const NO_EXPORT =
  'it is not a file that Terret exported. Make one with `terret export SESSION --format json`, or with `exportSession`.'

/** Throws the Fault that says what is wrong, and where. */
export function checkPortable(value: unknown): void {
  if (!isObject(value) || !Object.hasOwn(value, 'version')) throw invalid(NO_EXPORT)
  check({ $ref: '#/$defs/Portable' }, value, '')
}

function check(referred: Schema, value: unknown, at: string): void {
  const schema = named(referred)
  if (schema.anyOf) return check(chosen(schema.anyOf, value), value, at)
  if (schema.oneOf) return checkMember(schema.oneOf, value, at)
  if (schema.properties?.['type']) return checkMember([schema], value, at)
  if (schema.properties) return checkFields(schema, record(value, at), at)
  if (schema.propertyNames) return checkTable(schema, record(value, at), at)
  if (schema.items) return checkList(schema.items, value, at)
  if (!isPlain(schema, value)) throw invalid(`${at} must be ${wordsOf(schema)}.`)
}

function named(schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (SCHEMAS[schema.$ref.slice('#/$defs/'.length)] ?? {})
}

function chosen(schemas: readonly Schema[], value: unknown): Schema {
  const kind = kindOf(value)
  return schemas.find(({ type }) => type === kind) ?? schemas.find(({ $ref }) => $ref !== undefined) ?? schemas[0] ?? {}
}

function checkMember(members: readonly Schema[], value: unknown, at: string): void {
  const found = record(value, at)
  const { type } = found
  const schema = members.find((each) => named(each).properties?.['type']?.const === type)
  if (!schema)
    throw invalid(`${at} has the type ${JSON.stringify(type) ?? 'undefined'}, which this version does not know.`)
  checkFields(named(schema), found, at)
}

function checkFields({ properties = {}, required = [] }: Schema, found: Found, at: string): void {
  const place = (key: string): string => (at === '' ? key : `${at}.${key}`)
  const unknown = Object.keys(found).find((key) => !Object.hasOwn(properties, key))
  if (unknown !== undefined) throw invalid(`${place(unknown)} is not known.`)
  for (const [key, schema] of Object.entries(properties)) {
    if (Object.hasOwn(found, key)) check(schema, found[key], place(key))
    else if (required.includes(key)) throw invalid(`${place(key)} is missing.`)
  }
}

function checkTable({ propertyNames = {}, additionalProperties }: Schema, found: Found, at: string): void {
  for (const [key, stored] of Object.entries(found)) {
    check(propertyNames, key, `the key ${JSON.stringify(key)} of ${at}`)
    check(additionalProperties || {}, stored, `${at}.${key}`)
  }
}

function checkList(items: Schema, value: unknown, at: string): void {
  if (!Array.isArray(value)) throw invalid(`${at} must be a list.`)
  value.forEach((each, i) => check(items, each, `${at}[${i}]`))
}

function isPlain(schema: Schema, value: unknown): boolean {
  const { type, minLength = 0, pattern, minimum = 0, maximum = Number.MAX_VALUE } = schema
  if (schema.enum) return schema.enum.includes(value)
  if (schema.const !== undefined) return value === schema.const
  if (type === 'string') {
    if (typeof value !== 'string' || value.length < minLength) return false
    return pattern === undefined || new RegExp(pattern, 'u').test(value)
  }
  if (type === 'integer' && !Number.isInteger(value)) return false
  if (type === 'integer' || type === 'number') return typeof value === 'number' && value >= minimum && value <= maximum
  // What has no type came out of a JSON text, so it is JSON.
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

function wordsOf({ enum: words, const: word, description, type = '' }: Schema): string {
  if (words) return `one of ${words.join(', ')}`
  return word === undefined ? (description ?? KINDS[type] ?? type) : JSON.stringify(word)
}

function record(value: unknown, at: string): Found {
  if (!isObject(value)) throw invalid(`${at === '' ? 'it' : at} must be an object.`)
  return value
}
