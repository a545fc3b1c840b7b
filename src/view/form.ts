// A question with fields, as `ask_user` asks it: what is asked for, how a typed word is read, and whether an answer fits. The answer is
// one JSON object. Pure.
import type { Json } from '../kernel/content.ts'
import { isObject, type JsonObject, listOf, parsed, stringOf } from './json.ts'

export const FIELD_TYPES = ['text', 'number', 'yes_no', 'choice'] as const

export type FormField = {
  readonly name: string
  readonly description: string
  readonly type: (typeof FIELD_TYPES)[number]
  /** What may be chosen. Empty for the other types. */
  readonly choices: readonly string[]
  readonly optional: boolean
}

/**
 * The fields of a question; none if any text answers it. What is no field is left out. So that every question can be answered, also one
 * that an earlier version let pass: of two fields with one name the first counts, and a choice without choices is a text.
 */
export function fieldsIn(args: Json): readonly FormField[] {
  const { fields } = isObject(args) ? args : {}
  const named = new Map<string, FormField>()
  for (const field of listOf(fields)) {
    const name = isObject(field) ? stringOf(field['name']) : ''
    if (isObject(field) && name !== '' && !named.has(name)) named.set(name, fieldOf(name, field))
  }
  return [...named.values()]
}

function fieldOf(name: string, { type: given, choices: listed, description, optional }: JsonObject): FormField {
  const choices = given === 'choice' ? listOf(listed).map(stringOf) : []
  const known = FIELD_TYPES.find((each) => each === given) ?? 'text'
  const type = known === 'choice' && choices.length === 0 ? 'text' : known
  return { name, description: stringOf(description), type, choices, optional: optional === true }
}

/** One line for people: what the field is, and what may stand in it. */
export function fieldLine({ name, description, type, choices, optional }: FormField): string {
  const what = type === 'choice' ? choices.join(' | ') : type === 'yes_no' ? 'yes | no' : type
  const about = description === '' ? '' : `: ${description}`
  return `${name} (${what}${optional ? ', may be empty' : ''})${about}`
}

/** What a person typed, as the field has it. Undefined if it is empty. What does not fit stays a text, which the check refuses. */
export function readField({ type, choices }: FormField, typed: string): Json | undefined {
  const said = typed.trim()
  if (said === '') return undefined
  if (type === 'number') return Number.isFinite(Number(said)) ? Number(said) : said
  if (type === 'yes_no') return /^(y|yes|true)$/i.test(said) ? true : /^(n|no|false)$/i.test(said) ? false : said
  return type === 'choice' && !choices.includes(said) ? (choices[Number(said) - 1] ?? said) : said
}

/** Why an answer does not fit, a line for each field; null if it fits. */
export function formTrouble(fields: readonly FormField[], content: string): string | null {
  if (fields.length === 0) return null
  const value = parsed(content)
  if (!isObject(value)) return `- answer with one JSON object: ${fields.map(fieldLine).join('; ')}`
  const unknown = Object.keys(value).filter((name) => !fields.some((field) => field.name === name))
  const lines = [
    ...fields.flatMap(
      (field) => fieldTrouble(field, Object.hasOwn(value, field.name) ? value[field.name] : undefined) ?? [],
    ),
    ...unknown.map((name) => `${JSON.stringify(name.slice(0, 64))} is not asked for`),
  ]
  return lines.length === 0 ? null : lines.map((line) => `- ${line}`).join('\n')
}

function fieldTrouble({ name, type, choices, optional }: FormField, value: Json | undefined): string | null {
  if (value === undefined || value === null || value === '') return optional ? null : `${name} is missing`
  if (type === 'number') return Number.isFinite(value) ? null : `${name} must be a number`
  if (type === 'yes_no') return typeof value === 'boolean' ? null : `${name} must be true or false`
  if (typeof value !== 'string') return `${name} must be a text`
  return type !== 'choice' || choices.includes(value) ? null : `${name} must be one of: ${choices.join(', ')}`
}
