// Compiles a JSON Schema with Ajv, in bounded time, to a check whose own time is bounded too. json-schema.ts loads this
// file with the first schema that is used: a process whose tools bring their own checks never loads Ajv.
import * as vm from 'node:vm'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats, { type FormatsPlugin } from 'ajv-formats'
import type { JsonSchema } from './json-schema.ts'

/** Throws an Error that says why the schema cannot be used. */
export function compileWithAjv(schema: JsonSchema): ValidateFunction {
  // `loadSchema` is absent, so nothing is ever fetched: a reference to another document does not compile.
  const regExp = Object.assign(patternOf, { code: 'new RegExp' })
  const options = { strict: false, allErrors: false, code: { regExp }, logger: false } as const
  // An asynchronous check would return a promise, which is truthy.
  const { $schema: _, $async: _async, ...body } = schema
  const checker = (): ValidateFunction => {
    if (!meta?.validateSchema(body)) throw new Error(meta?.errorsText(meta.errors, { dataVar: 'schema' }))
    const ajv = new Ajv2020({ ...options, meta: false, validateSchema: false })
    // Ajv-formats is a CommonJS module: its export looks different depending on the bundling.
    const add = formats as unknown as FormatsPlugin | { readonly default: FormatsPlugin }
    ;(typeof add === 'function' ? add : add.default)(ajv)
    return ajv.compile(body)
  }
  try {
    // Compiling the meta-schema takes twenty times as long as the rest, so it is done once. Each schema gets an Ajv of
    // its own: two schemas from strangers may have the same id.
    if (meta === null) {
      meta = new Ajv2020(options)
      void meta.validateSchema({})
    }
    const check = runInTime(COMPILE_MS_MAX, checker)
    const text = JSON.stringify(body)
    return text.length > SMALL_CHARS_MAX || COSTLY.test(text) ? limitCheckTime(check) : check
  } catch (error) {
    const late = (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    const why = error instanceof Error ? error.message : 'it does not compile'
    throw new Error(late ? `it takes longer than ${COMPILE_MS_MAX} ms to compile` : why.slice(0, 300))
  }
}

let meta: Ajv2020 | null = null
let timedContext: { readonly context: vm.Context; readonly script: vm.Script } | null = null

const COMPILE_MS_MAX = 3_000
/**
 * Without these keywords, the cost of a check is bounded by the size of the schema times that of the value. A watched
 * check costs a thread, so small schemas without them are not watched.
 */
const COSTLY = /"(pattern|patternProperties|format|uniqueItems|\$ref|\$dynamicRef)"/
const SMALL_CHARS_MAX = 4_096
const CHECK_MS_MAX = 250
const CHECK_MS_MIN = 5

/**
 * Returns or throws what `work` does; throws Node's timeout error if it takes longer. Only code in a VM context can be
 * stopped.
 */
function runInTime<T>(timeout: number, work: () => T): T {
  timedContext ??= { context: vm.createContext({}), script: new vm.Script('work()') }
  timedContext.context['work'] = work
  try {
    return timedContext.script.runInContext(timedContext.context, { timeout }) as T
  } finally {
    timedContext.context['work'] = undefined
  }
}

/**
 * A pattern, a recursive schema or a comparison of all items can take for ever on a short value, so every check is
 * stopped as a whole. An undecided value is invalid. Each stop halves the time for later checks, so that many calls of
 * one reply do not add up.
 */
function limitCheckTime(check: ValidateFunction): ValidateFunction {
  let timeout = CHECK_MS_MAX
  const run = (value: unknown): boolean => {
    try {
      const good = runInTime(timeout, () => check(value))
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

/** Many patterns are written without the flag `u`, whose rules for escapes are stricter. */
function patternOf(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags)
  } catch {
    return new RegExp(source)
  }
}
