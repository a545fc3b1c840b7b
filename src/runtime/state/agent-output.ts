// The form of an answer: the option of a host, and the schema that a model is asked for.
import type { Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { isPriced } from '../../models/http/hosted-model.ts'
import { FINAL_RESULT, type OutputMode, type OutputPlan, planOutput } from '../../models/structured-output.ts'
import { type Check, oneOf, optionsCheck, requiredCheck } from '../../options.ts'
import type { Model } from '../../ports/model.ts'
import { fromAnyJsonSchema, type StandardSchema } from '../../tools/core/json-schema.ts'
import { schemaCheck } from '../../tools/core/tool.ts'
import { toJsonSchema } from '../../tools/core/to-json-schema.ts'
import type { AnySchema } from '../../tools/core/tool-types.ts'

/** A schema for the final answer, and how it is asked for. Default mode: `auto`. */
export type HarnessOutput<Schema extends AnySchema = AnySchema, Mode extends OutputMode = OutputMode> = {
  /** What the answer must be: a Standard Schema of any library, or a JSON Schema. */
  readonly schema: Schema
  /** How the answer is asked for. Default `auto`: in the way that the model supports best. */
  readonly mode?: Mode
}

const MODES = oneOf<OutputMode>({ auto: true, native: true, tool: true, prompted: true, text: true })
const withSchema = optionsCheck<HarnessOutput>({ schema: requiredCheck(schemaCheck), mode: MODES })
/** Callers often give the schema itself instead. */
export const outputCheck: Check = (value, name, of) => {
  const bare = typeof value === 'function' || (typeof value === 'object' && value !== null && !('schema' in value))
  return bare ? 'has no schema: write output: { schema }' : withSchema(value, name, of)
}

export function planAnswer({ schema, mode }: HarnessOutput, model: Model): OutputPlan | null {
  const standard = '~standard' in schema ? (schema as StandardSchema) : fromAnyJsonSchema(schema, FINAL_RESULT)
  const shape = schemaOfAnswer(schema)
  const able = isPriced(model) ? model.able : { name: model.name, native: 'no' as const }
  const validate = (value: unknown) => standard['~standard'].validate(value)
  return planOutput({ schema: shape, validate, ...(mode === undefined ? {} : { mode }) }, able)
}

/** A schema for an answer, as JSON Schema. */
export function schemaOfAnswer(schema: HarnessOutput['schema']): Json {
  if (!('~standard' in schema)) return schema as Json
  const shape = toJsonSchema(schema as StandardSchema, 'The output schema')
  if (shape) return shape as Json
  throw new Fault('invalid_config', 'The output schema cannot say its JSON Schema. Use a library that can.')
}
