// JSON Schema for external tools: any draft 2020-12 (or 7) schema becomes a Standard Schema. Patterns and formats are
// checked too. The checker is loaded with the first call that is checked. Compiling and checking take a bounded time.
import { Fault } from '../../kernel/failure.ts'

/** A JSON Schema, as data. */
export type JsonSchema = { readonly [key: string]: unknown }

/**
 * After a check fails, `errors` says why. A type of our own: with the types of Ajv, every user of this package would
 * have to install Ajv.
 */
type CompiledSchema = { (value: unknown): boolean; errors?: readonly SchemaError[] | null }
type SchemaError = {
  readonly instancePath: string
  readonly keyword: string
  readonly params: object
  readonly message?: string
}

const SCHEMA_BYTES_MAX = 256 * 1024
const SCHEMA_DEPTH_MAX = 64

/**
 * The name is for the error message, which names the tool. The schema must describe an object, as arguments are one.
 */
export function fromJsonSchema(schema: JsonSchema, name: string): StandardSchema {
  if (schema['type'] !== undefined && schema['type'] !== 'object')
    throw unusableSchema(name, 'its type must be "object"')
  return fromAnyJsonSchema(schema, name)
}

/** As `fromJsonSchema`, for a value of any type. */
export function fromAnyJsonSchema(schema: JsonSchema, name: string): StandardSchema {
  checkSchemaSize(schema, name)
  let check: CompiledSchema | null = null
  const validate = (value: unknown, ready: CompiledSchema) =>
    ready(value) ? { value } : { issues: (ready.errors ?? []).map(issueOf) }
  return {
    '~standard': {
      jsonSchema: { input: () => structuredClone(schema) },
      validate: (value) => {
        if (check) return validate(value, check)
        return compileSchema(schema, name).then((ready) => {
          check = ready
          return validate(value, ready)
        })
      },
    },
  }
}

/**
 * Compiles a schema early, so that an unusable one is refused when it is first seen. Throws the Fault that its first
 * use would throw.
 */
export async function compileSchema(schema: JsonSchema, name: string): Promise<CompiledSchema> {
  const { compileWithAjv } = await import('./compile-schema.ts')
  try {
    return compileWithAjv(schema)
  } catch (error) {
    throw unusableSchema(name, error instanceof Error ? error.message : 'it does not compile')
  }
}

function issueOf({ instancePath, message, keyword, ...error }: SchemaError) {
  const params = error.params as Readonly<Record<string, unknown>>
  const path = instancePath.split('/').slice(1).map(unescapeStep)
  const field =
    keyword === 'required'
      ? params['missingProperty']
      : keyword === 'additionalProperties'
        ? params['additionalProperty']
        : undefined
  if (typeof field !== 'string') return { message: message ?? 'is not valid', path }
  return { message: keyword === 'required' ? 'is required' : 'is not a field of this tool', path: [...path, field] }
}

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

function checkSchemaSize(schema: JsonSchema, name: string): void {
  if (schemaLength(schema, name) > SCHEMA_BYTES_MAX)
    throw unusableSchema(name, `it is longer than ${SCHEMA_BYTES_MAX} characters`)
  if (isDeeper(schema, SCHEMA_DEPTH_MAX))
    throw unusableSchema(name, `it is nested deeper than ${SCHEMA_DEPTH_MAX} levels`)
}

function schemaLength(schema: JsonSchema, name: string): number {
  try {
    return JSON.stringify(schema).length
  } catch {
    throw unusableSchema(name, 'it is no JSON')
  }
}

function unusableSchema(name: string, why: string): Fault {
  return new Fault('invalid_config', `The input schema of tool "${name}" cannot be used: ${why}.`)
}

function isDeeper(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== 'object') return false
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1))
}

/**
 * The part of the Standard Schema contract that is used here; any library that implements it will do, and none is
 * loaded. `types` carries the input and output types: libraries declare it, and no schema has it at run time. To infer
 * the types from `validate` too would cost the compiler more.
 */
export interface StandardSchema<Output = unknown, Input = unknown> {
  /** The contract itself: `validate` checks a value, and `jsonSchema` gives the JSON Schema for models. */
  readonly '~standard': {
    readonly validate: Validate
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: JsonSchemaSource
  }
}
// Named types, not inline ones: the compiler does not compute these anew for every schema.
type Validate = (value: unknown) => Validation<unknown> | Promise<Validation<unknown>>
type JsonSchemaSource = { readonly input: (options: { target: 'draft-2020-12' }) => Record<string, unknown> }
export type Validation<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }
