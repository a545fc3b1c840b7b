// Compiles a JSON Schema with Ajv, in bounded time, to a check whose own time is bounded too. Loaded by the first schema that is used
// (json-schema.ts): a process whose tools bring their own checks never loads Ajv.
import * as vm from 'node:vm'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats, { type FormatsPlugin } from 'ajv-formats'
import type { JsonSchema } from './json-schema.ts'

/** Throws an Error that says why the schema cannot be used. */
export function compileWithAjv(schema: JsonSchema): ValidateFunction {
  // `loadSchema` is absent, so nothing is ever fetched: a reference to elsewhere does not compile.
  const regExp = Object.assign(patternOf, { code: 'new RegExp' })
  const options = { strict: false, allErrors: false, code: { regExp }, logger: false } as const
  // An asynchronous check would answer with a promise, which reads like yes.
  const { $schema: _, $async: _async, ...body } = schema
  const checker = (): ValidateFunction => {
    if (!meta?.validateSchema(body)) throw new Error(meta?.errorsText(meta.errors, { dataVar: 'schema' }))
    const ajv = new Ajv2020({ ...options, meta: false, validateSchema: false })
    // As a CommonJS module is seen from an ES module, bundled or not.
    const add = formats as unknown as FormatsPlugin | { readonly default: FormatsPlugin }
    ;(typeof add === 'function' ? add : add.default)(ajv)
    return ajv.compile(body)
  }
  try {
    // Compiling the schema of schemas takes twenty times as long as all the rest, so that is done once. A schema itself gets a
    // checker of its own: two of strangers may have the same id.
    if (meta === null) {
      meta = new Ajv2020(options)
      void meta.validateSchema({})
    }
    const check = within(COMPILE_MS_MAX, checker)
    const text = JSON.stringify(body)
    return text.length > SMALL_CHARS_MAX || COSTLY.test(text) ? watched(check) : check
  } catch (error) {
    const late = (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    const why = error instanceof Error ? error.message : 'it does not compile'
    throw new Error(late ? `it takes longer than ${COMPILE_MS_MAX} ms to compile` : why.slice(0, 300))
  }
}

let meta: Ajv2020 | null = null
let room: { readonly context: vm.Context; readonly script: vm.Script } | null = null

const COMPILE_MS_MAX = 3_000
/** A check costs at most its schema times its value, if the schema has none of these. A watch costs a thread, so a small one has none. */
const COSTLY = /"(pattern|patternProperties|format|uniqueItems|\$ref|\$dynamicRef)"/
const SMALL_CHARS_MAX = 4_096
const CHECK_MS_MAX = 250
const CHECK_MS_MIN = 5

/** What work gives or throws; a Node error with the code of a timeout if it takes longer. Only code in a context can be stopped. */
function within<T>(timeout: number, work: () => T): T {
  room ??= { context: vm.createContext({}), script: new vm.Script('work()') }
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
function watched(check: ValidateFunction): ValidateFunction {
  let timeout = CHECK_MS_MAX
  const run = (value: unknown): boolean => {
    try {
      const good = within(timeout, () => check(value))
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
