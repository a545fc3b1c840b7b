// The changes that a person made to the arguments of a call, field by field, for a terminal, a page or a file. Pure.
import type { Json } from '../kernel/content.ts'
import { isObject } from './untrusted-json.ts'

/** A field that a person changed. */
export type ArgChange = {
  /** The name of the field. Empty if the arguments are not an object. */
  readonly field: string
  /** The value of the model. Absent: it did not have the field. */
  readonly before?: Json
  /** The value of the person. Absent: the field was removed. */
  readonly after?: Json
}

/** The fields that differ, in the order of the call and then of the edit. */
export function argChanges(before: Json, after: Json): readonly ArgChange[] {
  if (!isObject(before) || !isObject(after)) return isSameValue(before, after) ? [] : [{ field: '', before, after }]
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...fields].flatMap((field): readonly ArgChange[] => {
    const [old, fresh] = [ownField(before, field), ownField(after, field)]
    if (isSameValue(old, fresh)) return []
    return [{ field, ...(old === undefined ? {} : { before: old }), ...(fresh === undefined ? {} : { after: fresh }) }]
  })
}

/** One line: `cents: 500 → 50, note: "a" → (none)`. It contains text of others: clean it before showing it. */
export function changesText(before: Json, after: Json): string {
  const changes = argChanges(before, after).map(({ field, before: old, after: fresh }) => {
    return `${field === '' ? '' : `${field}: `}${valueText(old)} → ${valueText(fresh)}`
  })
  return changes.join(', ')
}

/** Both as indented JSON with their fields in the same order, so that a line diff shows only the changes. */
export function editTexts(before: Json, after: Json): { readonly before: string; readonly after: string } {
  return { before: `${pretty(before)}\n`, after: `${pretty(orderedLike(after, before))}\n` }
}

function pretty(value: Json): string {
  return JSON.stringify(value, null, 2)
}

function orderedLike(value: Json, model: Json): Json {
  if (!isObject(value) || !isObject(model)) return value
  const fields = [...Object.keys(model).filter((key) => Object.hasOwn(value, key)), ...Object.keys(value)]
  return Object.fromEntries(
    [...new Set(fields)].map((key) => [key, orderedLike(value[key] ?? null, ownField(model, key) ?? null)]),
  )
}

function ownField(value: { readonly [key: string]: Json }, field: string): Json | undefined {
  return Object.hasOwn(value, field) ? value[field] : undefined
}

function valueText(value: Json | undefined): string {
  return value === undefined ? '(none)' : JSON.stringify(value)
}

function isSameValue(a: Json | undefined, b: Json | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return JSON.stringify(a) === JSON.stringify(orderedLike(b, a))
}
