// Checks an answer against its route's schema, for clients: another program than terret may answer at an address.
// Required fields must exist and known fields must have their type. Unknown fields are ignored, since later versions
// may add them.
import { ANSWER_SCHEMAS } from './wire-answers.ts'
import type { AnswerName, WireSchema } from './wire-schemas.ts'

const LEVELS_MAX = 16

/** The path of the first field that does not match the schema; null if the answer fits. */
export function findAnswerMismatch(name: AnswerName, value: unknown): string | null {
  return findMismatch(ANSWER_SCHEMAS[name], value, '', LEVELS_MAX)
}

function findMismatch(schema: WireSchema, value: unknown, path: string, levels: number): string | null {
  if (levels === 0) return null
  const { $ref: ref, anyOf, type, required, properties, items } = schema
  if (typeof ref === 'string') {
    const named = (ANSWER_SCHEMAS as Readonly<Record<string, WireSchema>>)[ref.split('/').at(-1) ?? '']
    return named ? findMismatch(named, value, path, levels - 1) : null
  }
  if (Array.isArray(anyOf)) {
    const fits = anyOf.some((each) => findMismatch(each as WireSchema, value, path, levels - 1) === null)
    return fits ? null : mismatchPath(path)
  }
  if (typeof type === 'string' && !hasType(value, type)) return mismatchPath(path)
  if (type === 'array' && items !== undefined)
    return findItemMismatch(value as readonly unknown[], items as WireSchema, path, levels)
  if (type !== 'object') return null
  const fields = value as Readonly<Record<string, unknown>>
  for (const name of (required ?? []) as readonly string[])
    if (!Object.hasOwn(fields, name)) return mismatchPath(`${path}.${name}`)
  for (const [name, each] of Object.entries((properties ?? {}) as Readonly<Record<string, WireSchema>>)) {
    const wrong = fields[name] === undefined ? null : findMismatch(each, fields[name], `${path}.${name}`, levels - 1)
    if (wrong !== null) return wrong
  }
  return null
}

function findItemMismatch(values: readonly unknown[], items: WireSchema, path: string, levels: number): string | null {
  for (const [i, value] of values.entries()) {
    const wrong = findMismatch(items, value, `${path}[${i}]`, levels - 1)
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

function mismatchPath(path: string): string {
  return path === '' ? 'the whole answer' : path.replace(/^\./, '')
}
