// A schema of a library as JSON Schema, which is what a model is told. JSON has no dates, maps or instances: a type that takes a text
// instead of one is told as that text, and any other is refused with the field it stands at.
import { Fault } from '../../kernel/failure.ts'
import { isObject } from '../../view/json.ts'
import type { JsonSchema, StandardSchema } from './json-schema.ts'

/**
 * Null if the library cannot say any. `what` begins a refusal, such as `The input schema of tool "look"`. `recorded`: what the schema
 * makes is written to the log, as the arguments of a call are, so it must not make dates of texts.
 */
export function toJsonSchema(schema: StandardSchema, what: string, recorded = false): JsonSchema | null {
  const { jsonSchema } = schema['~standard']
  if (!jsonSchema) return null
  try {
    return jsonSchema.input({ target: 'draft-2020-12' })
  } catch (error) {
    return toldAgain(jsonSchema.input, { what, recorded, error })
  }
}

/** What Zod gives its option `override` for each schema inside a schema. */
type Inside = { readonly zodSchema?: unknown; readonly jsonSchema: Record<string, unknown>; readonly path?: unknown }

/** Zod is asked again, and says each type that it could not tell. Other libraries ignore these options, and throw again. */
function toldAgain(
  input: (options: { target: 'draft-2020-12' }) => JsonSchema,
  { what, recorded, error }: { readonly what: string; readonly recorded: boolean; readonly error: unknown },
): JsonSchema {
  let isTold = false
  const override = ({ zodSchema, jsonSchema, path }: Inside): void => {
    const def = definitionOf(zodSchema)
    const type = String(def['type'])
    const text = def['coerce'] === true && !recorded ? TEXTS[type] : undefined
    isTold ||= text !== undefined
    if (text) Object.assign(jsonSchema, text)
    else if (isOutsideJson(type, def))
      throw refusal(what, (recorded ? HANDLED[type] : undefined) ?? NAMES[type] ?? type, path)
  }
  const options = { target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any', override } } as const
  try {
    const told = input(options)
    if (isTold) return told
  } catch (again) {
    if (again instanceof Fault) throw again
  }
  const said = error instanceof Error ? error.message : String(error)
  throw new Fault('invalid_config', `${what} cannot be told to a model: ${said}`)
}

/** What a type that converts its input takes. */
const TEXTS: Readonly<Record<string, object>> = {
  date: { type: 'string', format: 'date-time' },
  bigint: { type: 'string', pattern: '^-?[0-9]+$' },
}

const NAMES: Readonly<Record<string, string>> = {
  date: 'a date, which JSON does not have. Use z.coerce.date(), which takes a text',
  bigint: 'a bigint, which JSON does not have. Use z.coerce.bigint(), which takes a text',
  map: 'a map, which JSON does not have. Use z.record()',
  set: 'a set, which JSON does not have. Use z.array()',
  custom: 'a type of your own, of which no model can be told. Use a type that JSON has, and transform it',
  transform: 'a transform that does not say what it takes. Use it in z.pipe() behind a type that JSON has',
  function: 'a function, which JSON does not have',
  symbol: 'a symbol, which JSON does not have',
  undefined: 'undefined, which JSON does not have. Use z.optional() or z.null()',
  void: 'void, which JSON does not have. Use z.null()',
  nan: 'NaN, which JSON does not have',
  literal: 'a literal that JSON does not have. Use a text or a number',
}

/** The same where what a schema makes is recorded. */
const HANDLED: Readonly<Record<string, string>> = {
  date: 'a date, which JSON does not have. Use z.iso.datetime(), and make the date of the text in the handler',
  bigint: 'a bigint, which JSON does not have. Use z.string(), and make the bigint of the text in the handler',
}

function isOutsideJson(type: string, { values }: Readonly<Record<string, unknown>>): boolean {
  if (type !== 'literal') return type in NAMES
  return Array.isArray(values) && values.some((value) => typeof value === 'bigint' || value === undefined)
}

function definitionOf(schema: unknown): Readonly<Record<string, unknown>> {
  const internals = isObject(schema) ? schema['_zod'] : undefined
  const definition = isObject(internals) ? internals['def'] : undefined
  return isObject(definition) ? definition : {}
}

function refusal(what: string, text: string, path: unknown): Fault {
  const [name, ...hint] = text.split('. ')
  const place = fieldAt(Array.isArray(path) ? path.map(String) : [])
  return new Fault('invalid_config', [`${what} has ${name} (${place})`, ...hint].join('. ') + '.')
}

/** The path in a JSON Schema, as the path of the field in a value. */
function fieldAt(path: readonly string[]): string {
  let field = ''
  for (let i = 0; i < path.length; i++) {
    const word = path[i]
    if (word === 'items') field += '[]'
    else if (word === 'prefixItems') field += `[${path[++i]}]`
    else if (word === 'additionalProperties') field += '.*'
    else if (word === 'properties') field += `${field === '' ? '' : '.'}${path[++i]}`
    else i += 1
  }
  return field === '' ? 'at its root' : `at "${field}"`
}
