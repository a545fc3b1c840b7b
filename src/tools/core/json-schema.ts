// JSON Schema for tools from elsewhere: any draft 2020-12 (or 7) schema becomes a Standard Schema. The checker is loaded
// when the first call is checked. Patterns and formats count too. Both compiling and checking take a bounded time.
import { Fault } from '../../kernel/failure.ts'

export type JsonSchema = { readonly [key: string]: unknown }

/** After it said no, `errors` says why. The types of the package that compiles it would have to be installed by every user of ours. */
type CompiledSchema = { (value: unknown): boolean; errors?: readonly SchemaError[] | null }
type SchemaError = {
  readonly instancePath: string
  readonly keyword: string
  readonly params: object
  readonly message?: string
}

const SCHEMA_BYTES_MAX = 256 * 1024
const SCHEMA_DEPTH_MAX = 64

/** The name is for the message: a schema that cannot be used is refused by the name of its tool. Arguments are objects. */
export function fromJsonSchema(schema: JsonSchema, name: string): StandardSchema {
  if (schema['type'] !== undefined && schema['type'] !== 'object') throw unusable(name, 'its type must be "object"')
  return anyJsonSchema(schema, name)
}

/** The same for a value of any type. */
export function anyJsonSchema(schema: JsonSchema, name: string): StandardSchema {
  checkShape(schema, name)
  let check: CompiledSchema | null = null
  const validate = (value: unknown, ready: CompiledSchema) =>
    ready(value) ? { value } : { issues: (ready.errors ?? []).map(issueOf) }
  return {
    '~standard': {
      jsonSchema: { input: () => structuredClone(schema) },
      validate: (value) => {
        if (check) return validate(value, check)
        return compile(schema, name).then((ready) => {
          check = ready
          return validate(value, ready)
        })
      },
    },
  }
}

/** Throws the Fault that a first use would: a schema that cannot be compiled should be refused when it is met. */
export async function compile(schema: JsonSchema, name: string): Promise<CompiledSchema> {
  const { compileWithAjv } = await import('./compile-schema.ts')
  try {
    return compileWithAjv(schema)
  } catch (error) {
    throw unusable(name, error instanceof Error ? error.message : 'it does not compile')
  }
}

function issueOf({ instancePath, message, keyword, ...error }: SchemaError) {
  const params = error.params as Readonly<Record<string, unknown>>
  const path = instancePath.split('/').slice(1).map(unescaped)
  const field =
    keyword === 'required'
      ? params['missingProperty']
      : keyword === 'additionalProperties'
        ? params['additionalProperty']
        : undefined
  if (typeof field !== 'string') return { message: message ?? 'is not valid', path }
  return { message: keyword === 'required' ? 'is required' : 'is not a field of this tool', path: [...path, field] }
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

function checkShape(schema: JsonSchema, name: string): void {
  if (lengthOf(schema, name) > SCHEMA_BYTES_MAX)
    throw unusable(name, `it is longer than ${SCHEMA_BYTES_MAX} characters`)
  if (isDeeper(schema, SCHEMA_DEPTH_MAX)) throw unusable(name, `it is nested deeper than ${SCHEMA_DEPTH_MAX} levels`)
}

function lengthOf(schema: JsonSchema, name: string): number {
  try {
    return JSON.stringify(schema).length
  } catch {
    throw unusable(name, 'it is no JSON')
  }
}

function unusable(name: string, why: string): Fault {
  return new Fault('invalid_config', `The input schema of tool "${name}" cannot be used: ${why}.`)
}

function isDeeper(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== 'object') return false
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1))
}

/**
 * The part of the Standard Schema contract that is used here. Any library that speaks it will do; none is loaded. What it takes and
 * makes is said by `types`, which libraries declare and no schema has: to infer it from `validate` too costs the compiler more.
 */
export interface StandardSchema<Output = unknown, Input = unknown> {
  readonly '~standard': {
    readonly validate: Validate
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: SaysJsonSchema
  }
}
// By name, and not in place: these the compiler does not work out anew for every schema.
type Validate = (value: unknown) => Validation<unknown> | Promise<Validation<unknown>>
type SaysJsonSchema = { readonly input: (options: { target: 'draft-2020-12' }) => Record<string, unknown> }
export type Validation<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }
