// JSON Schema for tools from elsewhere: any draft 2020-12 (or 7) schema becomes a Standard Schema. The checker is loaded
// when the first call is checked. Patterns and formats count too. Both compiling and checking take a bounded time.
import type * as Vm from 'node:vm'
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import type { FormatsPlugin } from 'ajv-formats'
import { Fault } from '../../kernel/failure.ts'

export type JsonSchema = { readonly [key: string]: unknown }

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
  let check: ValidateFunction | null = null
  const validate = (value: unknown, ready: ValidateFunction) =>
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
export async function compile(schema: JsonSchema, name: string): Promise<ValidateFunction> {
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  const [formats, vm] = await Promise.all([import('ajv-formats'), import('node:vm')])
  // `loadSchema` is absent, so nothing is ever fetched: a reference to elsewhere does not compile.
  const regExp = Object.assign(patternOf, { code: 'new RegExp' })
  const options = { strict: false, allErrors: false, code: { regExp }, logger: false } as const
  // An asynchronous check would answer with a promise, which reads like yes.
  const { $schema: _, $async: _async, ...body } = schema
  const compiled = (): ValidateFunction => {
    if (!meta?.validateSchema(body)) throw new Error(meta?.errorsText(meta.errors, { dataVar: 'schema' }))
    const checker = new Ajv2020({ ...options, meta: false, validateSchema: false })
    // As a CommonJS module is seen from an ES module, bundled or not.
    const add = formats.default as unknown as FormatsPlugin | { readonly default: FormatsPlugin }
    ;(typeof add === 'function' ? add : add.default)(checker)
    return checker.compile(body)
  }
  try {
    // Compiling the schema of schemas takes twenty times as long as all the rest, so that is done once. A schema itself gets a
    // checker of its own: two of strangers may have the same id.
    if (meta === null) {
      meta = new Ajv2020(options)
      void meta.validateSchema({})
    }
    const check = within(vm, COMPILE_MS_MAX, compiled)
    const text = JSON.stringify(body)
    return text.length > SMALL_CHARS_MAX || COSTLY.test(text) ? watched(vm, check) : check
  } catch (error) {
    const late = (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    const why = error instanceof Error ? error.message : 'it does not compile'
    throw unusable(name, late ? `it takes longer than ${COMPILE_MS_MAX} ms to compile` : why.slice(0, 300))
  }
}

let meta: Ajv2020 | null = null
let room: { readonly context: Vm.Context; readonly script: Vm.Script } | null = null

const COMPILE_MS_MAX = 3_000
/** A check costs at most its schema times its value, if the schema has none of these. A watch costs a thread, so a small one has none. */
const COSTLY = /"(pattern|patternProperties|format|uniqueItems|\$ref|\$dynamicRef)"/
const SMALL_CHARS_MAX = 4_096
const CHECK_MS_MAX = 250
const CHECK_MS_MIN = 5

/** What work gives or throws; a Node error with the code of a timeout if it takes longer. Only code in a context can be stopped. */
function within<T>({ createContext, Script }: typeof Vm, timeout: number, work: () => T): T {
  room ??= { context: createContext({}), script: new Script('work()') }
  room.context['work'] = work
  try {
    return room.script.runInContext(room.context, { timeout }) as T
  } finally {
    room.context['work'] = undefined
  }
}

/**
 * A pattern, a schema that refers to itself and a comparison of all items can take for ever on a short value, so every check is
 * stopped as a whole. What cannot be decided is not valid. Each stop halves the time that later checks get, so that many calls of
 * one reply do not add up.
 */
function watched(vm: typeof Vm, check: ValidateFunction): ValidateFunction {
  let timeout = CHECK_MS_MAX
  const run = (value: unknown): boolean => {
    try {
      const good = within(vm, timeout, () => check(value))
      run.errors = check.errors ?? null
      return good
    } catch {
      const message = `takes longer than ${timeout} ms to check with this schema. Send a shorter or simpler value`
      run.errors = [{ keyword: 'pattern', instancePath: '', schemaPath: '', params: {}, message }]
      timeout = Math.max(CHECK_MS_MIN, Math.floor(timeout / 2))
      return false
    }
  }
  run.errors = null as ErrorObject[] | null
  return run as ValidateFunction
}

/** Many patterns are written without the flag `u`, which is stricter about what may be escaped. */
function patternOf(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags)
  } catch {
    return new RegExp(source)
  }
}

function issueOf({ instancePath, message, keyword, ...error }: ErrorObject) {
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
