// Converts the schema of a library to the JSON Schema that a model reads. JSON has no dates, maps or instances. A type
// that also accepts a text becomes that text; any other is refused with the path of its field.
import { Fault } from '../../kernel/failure.ts'
import { isObject } from '../../view/untrusted-json.ts'
import type { JsonSchema, StandardSchema } from './json-schema.ts'

/**
 * Returns null if the library has no JSON Schema. `what` begins an error message, such as `The input schema of tool
 * "look"`. `recorded`: the schema's output is written to the log, as arguments are, so it must not turn texts into
 * dates.
 */
export function toJsonSchema(schema: StandardSchema, what: string, recorded = false): JsonSchema | null {
  const { jsonSchema } = schema['~standard']
  if (!jsonSchema) return null
  try {
    return jsonSchema.input({ target: 'draft-2020-12' })
  } catch (error) {
    return convertWithOverride(jsonSchema.input, { what, recorded, error })
  }
}

/** The argument that Zod gives its option `override` for each schema inside a schema. */
type OverriddenSchema = {
  readonly zodSchema?: unknown
  readonly jsonSchema: Record<string, unknown>
  readonly path?: unknown
}

/**
 * Calls Zod again and describes each type that it could not convert. Other libraries ignore these options and throw
 * again.
 */
function convertWithOverride(
  input: (options: { target: 'draft-2020-12' }) => JsonSchema,
  { what, recorded, error }: { readonly what: string; readonly recorded: boolean; readonly error: unknown },
): JsonSchema {
  let isTold = false
  const override = ({ zodSchema, jsonSchema, path }: OverriddenSchema): void => {
    const def = zodDefinition(zodSchema)
    const type = String(def['type'])
    const text = def['coerce'] === true && !recorded ? TEXTS[type] : undefined
    isTold ||= text !== undefined
    if (text) Object.assign(jsonSchema, text)
    else if (isOutsideJson(type, def))
      throw unsupportedType(what, (recorded ? HANDLED[type] : undefined) ?? NAMES[type] ?? type, path)
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

/** The text form of types that convert their input. */
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

/** The same hints, for a schema whose output is recorded. */
const HANDLED: Readonly<Record<string, string>> = {
  date: 'a date, which JSON does not have. Use z.iso.datetime(), and make the date of the text in the handler',
  bigint: 'a bigint, which JSON does not have. Use z.string(), and make the bigint of the text in the handler',
}

function isOutsideJson(type: string, { values }: Readonly<Record<string, unknown>>): boolean {
  if (type !== 'literal') return type in NAMES
  return Array.isArray(values) && values.some((value) => typeof value === 'bigint' || value === undefined)
}

function zodDefinition(schema: unknown): Readonly<Record<string, unknown>> {
  const internals = isObject(schema) ? schema['_zod'] : undefined
  const definition = isObject(internals) ? internals['def'] : undefined
  return isObject(definition) ? definition : {}
}

function unsupportedType(what: string, text: string, path: unknown): Fault {
  const [name, ...hint] = text.split('. ')
  const place = describeField(Array.isArray(path) ? path.map(String) : [])
  return new Fault('invalid_config', [`${what} has ${name} (${place})`, ...hint].join('. ') + '.')
}

/** Turns the path in a JSON Schema into the path of the field in a value. */
function describeField(path: readonly string[]): string {
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
