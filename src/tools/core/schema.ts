// A tiny Standard Schema for the built-in tools: checks and describes plain JSON arguments, and loads no library.
// Not a schema library for users: their tools bring zod, valibot or any other that speaks Standard Schema.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { StandardSchema } from './tool.ts'
import { isObject } from '../../view/json.ts'

export type Issue = { readonly message: string; readonly path: readonly (string | number)[] }
type Checked<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly Issue[] }
type JsonSchema = { readonly [key: string]: Json }

export type Field<T> = Frozen<{ schema: JsonSchema; required: boolean; check: (value: unknown) => Checked<T> }>
type Fields = Readonly<Record<string, Field<unknown>>>
type Maybe<T> = Field<T> & { readonly required: false }

type ValueOf<F> = F extends Field<infer T> ? T : never
type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K]['required'] extends false ? K : never }[keyof F]
type ObjectOf<F extends Fields> = { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: ValueOf<F[K]> } & {
  readonly [K in OptionalKeys<F>]?: ValueOf<F[K]>
}
export type ObjectField<T> = Field<T> & StandardSchema<T>
/** The arguments a schema accepts. */
export type Infer<S> = S extends StandardSchema<infer T> ? T : never

/** An object with exactly these fields: an unknown one is refused by name, so a misspelt option never passes in silence. */
export function object<F extends Fields>(fields: F, description?: string): ObjectField<ObjectOf<F>> {
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

function checkObject<T>(fields: Fields, value: unknown): Checked<T> {
  if (!isObject(value)) return wrong('an object', value)
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

export function optional<T>(field: Field<T>): Maybe<T> {
  return { ...field, required: false }
}

export function text(description: string, { min = 0, max = Number.POSITIVE_INFINITY } = {}): Field<string> {
  const bounds = { ...(min > 0 ? { minLength: min } : {}), ...(Number.isFinite(max) ? { maxLength: max } : {}) }
  return {
    schema: { type: 'string', description, ...bounds },
    required: true,
    check: (value) => {
      if (typeof value !== 'string') return wrong('a string', value)
      if (value.length < min) return refused(min === 1 ? 'must not be empty' : `must have at least ${min} characters`)
      return value.length > max ? refused(`must have at most ${max} characters`) : { value }
    },
  }
}

export function integer(description: string, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}): Field<number> {
  const bounds = max < Number.MAX_SAFE_INTEGER ? { minimum: min, maximum: max } : { minimum: min }
  return {
    schema: { type: 'integer', description, ...bounds },
    required: true,
    check: (value) => {
      if (typeof value !== 'number' || !Number.isSafeInteger(value)) return wrong('an integer', value)
      if (value < min) return refused(`must be at least ${min}`)
      return value > max ? refused(`must be at most ${max}`) : { value }
    },
  }
}

export function flag(description: string): Field<boolean> {
  return {
    schema: { type: 'boolean', description },
    required: true,
    check: (value) => (typeof value === 'boolean' ? { value } : wrong('true or false', value)),
  }
}

/** One of a few words. */
export function choice<const T extends string>(description: string, options: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', description, enum: options },
    required: true,
    check: (value) => {
      const found = options.find((option) => option === value)
      return found === undefined ? refused(`must be one of: ${options.join(', ')}`) : { value: found }
    },
  }
}

export function list<T>(description: string, item: Field<T>, { min = 0, max = 1000 } = {}): Field<readonly T[]> {
  return {
    schema: { type: 'array', description, items: item.schema, minItems: min, maxItems: max },
    required: true,
    check: (value) => {
      if (!Array.isArray(value)) return wrong('a list', value)
      if (value.length < min || value.length > max) return refused(`must have ${min} to ${max} items`)
      const checked = value.map((one: unknown) => item.check(one))
      const issues = checked.flatMap(({ issues: inner = [] }, index) =>
        inner.map((issue) => ({ ...issue, path: [index, ...issue.path] })),
      )
      return issues.length > 0 ? { issues } : { value: checked.map((one) => (one as { readonly value: T }).value) }
    },
  }
}

/** A field with one more check, of values that are of its type. The check names what is wrong, and where. */
export function addCheck<T>(field: Field<T>, issuesIn: (value: T) => readonly Issue[]): Field<T> {
  const check = (value: unknown): Checked<T> => {
    const checked = field.check(value)
    if (checked.issues) return checked
    const issues = issuesIn(checked.value)
    return issues.length > 0 ? { issues } : checked
  }
  return { schema: field.schema, required: field.required, check }
}

function wrong(expected: string, value: unknown): { readonly issues: readonly Issue[] } {
  const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value
  return refused(`must be ${expected}, not ${typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : got}`)
}

function refused(message: string): { readonly issues: readonly Issue[] } {
  return { issues: [{ path: [], message }] }
}
