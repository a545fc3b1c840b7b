// A tiny Standard Schema for the built-in tools: checks and describes plain JSON arguments, and loads no library. It is
// not for users: their tools bring zod, valibot or any other library of Standard Schema.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { StandardSchema } from './tool.ts'
import { isObject } from '../../view/untrusted-json.ts'

export type Issue = { readonly message: string; readonly path: readonly (string | number)[] }
type FieldResult<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly Issue[] }
type JsonSchema = { readonly [key: string]: Json }

export type Field<T> = Frozen<{ schema: JsonSchema; required: boolean; check: (value: unknown) => FieldResult<T> }>
type Fields = Readonly<Record<string, Field<unknown>>>
type OptionalField<T> = Field<T> & { readonly required: false }

type ValueOf<F> = F extends Field<infer T> ? T : never
type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K]['required'] extends false ? K : never }[keyof F]
type ObjectOf<F extends Fields> = { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: ValueOf<F[K]> } & {
  readonly [K in OptionalKeys<F>]?: ValueOf<F[K]>
}
export type ObjectField<T> = Field<T> & StandardSchema<T>
/** The type of the arguments that a schema accepts. */
export type Infer<S> = S extends StandardSchema<infer T> ? T : never

/** An object with exactly these fields. An unknown field is refused by name, so a misspelt option is never ignored. */
export function objectField<F extends Fields>(fields: F, description?: string): ObjectField<ObjectOf<F>> {
  const required = Object.keys(fields).filter((key) => fields[key]?.required)
  const schema = {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.schema])),
    required,
    additionalProperties: false,
  }
  const check = (value: unknown) => checkObject<ObjectOf<F>>(fields, value)
  const jsonSchema = { input: () => schema as Record<string, unknown> }
  return { schema, required: true, check, '~standard': { validate: check, jsonSchema } }
}

function checkObject<T>(fields: Fields, value: unknown): FieldResult<T> {
  if (!isObject(value)) return wrongType('an object', value)
  const given = value as Readonly<Record<string, unknown>>
  const issues: Issue[] = []
  const checked: Record<string, unknown> = {}
  for (const key of Object.keys(given)) {
    if (Object.hasOwn(fields, key)) continue
    issues.push({ path: [key], message: `unknown field; the fields are ${Object.keys(fields).join(', ')}` })
  }
  for (const [key, field] of Object.entries(fields)) {
    if (!Object.hasOwn(given, key) || given[key] === undefined) {
      if (field.required) issues.push({ path: [key], message: 'required' })
      continue
    }
    const inner = field.check(given[key])
    if (inner.issues) issues.push(...inner.issues.map((issue) => ({ ...issue, path: [key, ...issue.path] })))
    else checked[key] = inner.value
  }
  // Sound: every required field was checked by the very field its type comes from.
  return issues.length > 0 ? { issues } : { value: checked as T }
}

export function optionalField<T>(field: Field<T>): OptionalField<T> {
  return { ...field, required: false }
}

export function textField(description: string, { min = 0, max = Number.POSITIVE_INFINITY } = {}): Field<string> {
  const bounds = { ...(min > 0 ? { minLength: min } : {}), ...(Number.isFinite(max) ? { maxLength: max } : {}) }
  return {
    schema: { type: 'string', description, ...bounds },
    required: true,
    check: (value) => {
      if (typeof value !== 'string') return wrongType('a string', value)
      if (value.length < min)
        return rejectValue(min === 1 ? 'must not be empty' : `must have at least ${min} characters`)
      return value.length > max ? rejectValue(`must have at most ${max} characters`) : { value }
    },
  }
}

export function integerField(description: string, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}): Field<number> {
  const bounds = max < Number.MAX_SAFE_INTEGER ? { minimum: min, maximum: max } : { minimum: min }
  return {
    schema: { type: 'integer', description, ...bounds },
    required: true,
    check: (value) => {
      if (typeof value !== 'number' || !Number.isSafeInteger(value)) return wrongType('an integer', value)
      if (value < min) return rejectValue(`must be at least ${min}`)
      return value > max ? rejectValue(`must be at most ${max}`) : { value }
    },
  }
}

export function flagField(description: string): Field<boolean> {
  return {
    schema: { type: 'boolean', description },
    required: true,
    check: (value) => (typeof value === 'boolean' ? { value } : wrongType('true or false', value)),
  }
}

/** A field whose value is one of a few words. */
export function choiceField<const T extends string>(description: string, options: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', description, enum: options },
    required: true,
    check: (value) => {
      const found = options.find((option) => option === value)
      return found === undefined ? rejectValue(`must be one of: ${options.join(', ')}`) : { value: found }
    },
  }
}

export function listField<T>(description: string, item: Field<T>, { min = 0, max = 1000 } = {}): Field<readonly T[]> {
  return {
    schema: { type: 'array', description, items: item.schema, minItems: min, maxItems: max },
    required: true,
    check: (value) => {
      if (!Array.isArray(value)) return wrongType('a list', value)
      if (value.length < min || value.length > max) return rejectValue(`must have ${min} to ${max} items`)
      const checked = value.map((one: unknown) => item.check(one))
      const issues = checked.flatMap(({ issues: inner = [] }, index) =>
        inner.map((issue) => ({ ...issue, path: [index, ...issue.path] })),
      )
      return issues.length > 0 ? { issues } : { value: checked.map((one) => (one as { readonly value: T }).value) }
    },
  }
}

/** A field with one more check, for values that already have its type. The check says what is wrong, and where. */
export function addCheck<T>(field: Field<T>, issuesIn: (value: T) => readonly Issue[]): Field<T> {
  const check = (value: unknown): FieldResult<T> => {
    const checked = field.check(value)
    if (checked.issues) return checked
    const issues = issuesIn(checked.value)
    return issues.length > 0 ? { issues } : checked
  }
  return { schema: field.schema, required: field.required, check }
}

function wrongType(expected: string, value: unknown): { readonly issues: readonly Issue[] } {
  const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value
  return rejectValue(`must be ${expected}, not ${typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : got}`)
}

function rejectValue(message: string): { readonly issues: readonly Issue[] } {
  return { issues: [{ path: [], message }] }
}
