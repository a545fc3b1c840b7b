// A question with fields, as `ask_user` asks it: reads the fields, parses a person's input, and checks an answer. The
// answer is one JSON object. Pure.
import type { Json } from '../kernel/content.ts'
import { isObject, type JsonObject, asList, parseJson, asString } from './untrusted-json.ts'

export const FIELD_TYPES = ['text', 'number', 'yes_no', 'choice'] as const

export type FormField = {
  readonly name: string
  readonly description: string
  readonly type: (typeof FIELD_TYPES)[number]
  /** The possible choices. Empty for other types. */
  readonly choices: readonly string[]
  readonly optional: boolean
}

/**
 * The fields of a question; none if any text answers it. Invalid fields are left out. So that every question can be
 * answered, even one from an earlier version: of two fields with the same name the first counts, and a choice without
 * choices becomes a text.
 */
export function fieldsIn(args: Json): readonly FormField[] {
  const { fields } = isObject(args) ? args : {}
  const named = new Map<string, FormField>()
  for (const field of asList(fields)) {
    const name = isObject(field) ? asString(field['name']) : ''
    if (isObject(field) && name !== '' && !named.has(name)) named.set(name, fieldOf(name, field))
  }
  return [...named.values()]
}

function fieldOf(name: string, { type: given, choices: listed, description, optional }: JsonObject): FormField {
  const choices = given === 'choice' ? asList(listed).map(asString) : []
  const known = FIELD_TYPES.find((each) => each === given) ?? 'text'
  const type = known === 'choice' && choices.length === 0 ? 'text' : known
  return { name, description: asString(description), type, choices, optional: optional === true }
}

/** One line for people: the field, and what it may contain. */
export function fieldLine({ name, description, type, choices, optional }: FormField): string {
  const what = type === 'choice' ? choices.join(' | ') : type === 'yes_no' ? 'yes | no' : type
  const about = description === '' ? '' : `: ${description}`
  return `${name} (${what}${optional ? ', may be empty' : ''})${about}`
}

/**
 * Parses a person's input for this field. Undefined if it is empty. Invalid input stays a text, which the check
 * refuses.
 */
export function readField({ type, choices }: FormField, typed: string): Json | undefined {
  const said = typed.trim()
  if (said === '') return undefined
  if (type === 'number') return Number.isFinite(Number(said)) ? Number(said) : said
  if (type === 'yes_no') return /^(y|yes|true)$/i.test(said) ? true : /^(n|no|false)$/i.test(said) ? false : said
  return type === 'choice' && !choices.includes(said) ? (choices[Number(said) - 1] ?? said) : said
}

/** Why an answer is invalid, one line for each field; null if it is valid. */
export function whyFormRefused(fields: readonly FormField[], content: string): string | null {
  if (fields.length === 0) return null
  const value = parseJson(content)
  if (!isObject(value)) return `- answer with one JSON object: ${fields.map(fieldLine).join('; ')}`
  const unknown = Object.keys(value).filter((name) => !fields.some((field) => field.name === name))
  const lines = [
    ...fields.flatMap(
      (field) => whyFieldRefused(field, Object.hasOwn(value, field.name) ? value[field.name] : undefined) ?? [],
    ),
    ...unknown.map((name) => `${JSON.stringify(name.slice(0, 64))} is not asked for`),
  ]
  return lines.length === 0 ? null : lines.map((line) => `- ${line}`).join('\n')
}

function whyFieldRefused({ name, type, choices, optional }: FormField, value: Json | undefined): string | null {
  if (value === undefined || value === null || value === '') return optional ? null : `${name} is missing`
  if (type === 'number') return Number.isFinite(value) ? null : `${name} must be a number`
  if (type === 'yes_no') return typeof value === 'boolean' ? null : `${name} must be true or false`
  if (typeof value !== 'string') return `${name} must be a text`
  return type !== 'choice' || choices.includes(value) ? null : `${name} must be one of: ${choices.join(', ')}`
}
