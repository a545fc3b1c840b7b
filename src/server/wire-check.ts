// Whether an answer is one that this route gives, by its schema: its required fields are there, and fields that are known have their
// type. What a later version says more is left alone. For clients: what answers at an address may be no terret server.
import { ANSWERS } from './wire-answers.ts'
import type { AnswerName, Schema } from './wire-schemas.ts'

const LEVELS_MAX = 16

/** Where an answer is not what it should be, as a path of fields; null if it fits. */
export function answerTrouble(name: AnswerName, value: unknown): string | null {
  return troubleAt(ANSWERS[name], value, '', LEVELS_MAX)
}

function troubleAt(schema: Schema, value: unknown, path: string, levels: number): string | null {
  if (levels === 0) return null
  const { $ref: ref, anyOf, type, required, properties, items } = schema
  if (typeof ref === 'string') {
    const named = (ANSWERS as Readonly<Record<string, Schema>>)[ref.split('/').at(-1) ?? '']
    return named ? troubleAt(named, value, path, levels - 1) : null
  }
  if (Array.isArray(anyOf)) {
    const fits = anyOf.some((each) => troubleAt(each as Schema, value, path, levels - 1) === null)
    return fits ? null : here(path)
  }
  if (typeof type === 'string' && !hasType(value, type)) return here(path)
  if (type === 'array' && items !== undefined) return first(value as readonly unknown[], items as Schema, path, levels)
  if (type !== 'object') return null
  const fields = value as Readonly<Record<string, unknown>>
  for (const name of (required ?? []) as readonly string[])
    if (!Object.hasOwn(fields, name)) return here(`${path}.${name}`)
  for (const [name, each] of Object.entries((properties ?? {}) as Readonly<Record<string, Schema>>)) {
    const wrong = fields[name] === undefined ? null : troubleAt(each, fields[name], `${path}.${name}`, levels - 1)
    if (wrong !== null) return wrong
  }
  return null
}

function first(values: readonly unknown[], items: Schema, path: string, levels: number): string | null {
  for (const [i, value] of values.entries()) {
    const wrong = troubleAt(items, value, `${path}[${i}]`, levels - 1)
    if (wrong !== null) return wrong
  }
  return null
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return value !== null && typeof value === 'object' && !Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

function here(path: string): string {
  return path === '' ? 'the whole answer' : path.replace(/^\./, '')
}
