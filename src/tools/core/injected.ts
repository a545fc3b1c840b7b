// Arguments that the host supplies: taken out of what the model is told and of what it sends, and put back for the handler. They
// are in no event, so they cannot be read; an approval is bound to a hash of them.
import type { Json } from '../../kernel/content.ts'
import type { StandardSchema, Validation } from './standard.ts'
import { isObject } from '../../view/json.ts'

type Values = { readonly [name: string]: Json | (() => Json) }

export type Supplied = {
  /** The schema without them. */
  hidden(schema: Json): Json
  /** Checks the whole, and gives back what the model may know of it. */
  validate(input: StandardSchema): (args: unknown) => Validation<unknown> | Promise<Validation<unknown>>
  whole(args: unknown): unknown
  /** As they are now. */
  values: () => Json
}

export function supply(values: Values | undefined): Supplied | null {
  if (values === undefined) return null
  const names = Object.keys(values)
  const without = (fields: { readonly [key: string]: Json }): { readonly [key: string]: Json } =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
  const whole = (args: unknown): unknown => {
    if (!isObject(args)) return args
    const own = names.map((name) => [name, valueOf(values[name])])
    return { ...without(args), ...Object.fromEntries(own) }
  }
  const known = (checked: Validation<unknown>): Validation<unknown> =>
    checked.issues || !isObject(checked.value) ? checked : { value: without(checked.value) }
  return {
    hidden: (schema) => {
      if (!isObject(schema)) return schema
      const { properties, required } = schema
      return {
        ...schema,
        ...(isObject(properties ?? null)
          ? { properties: without(properties as { readonly [key: string]: Json }) }
          : {}),
        ...(Array.isArray(required) ? { required: required.filter((name) => !names.includes(String(name))) } : {}),
      }
    },
    validate: (input) => (args) => {
      const checked = input['~standard'].validate(whole(args))
      return checked instanceof Promise ? checked.then(known) : known(checked)
    },
    whole,
    values: () => Object.fromEntries(names.map((name) => [name, valueOf(values[name])])),
  }
}

function valueOf(value: Json | (() => Json) | undefined): Json {
  return typeof value === 'function' ? value() : (value ?? null)
}
