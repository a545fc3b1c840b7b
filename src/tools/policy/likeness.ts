// A hash that is equal for calls that do the same, however they are spelled. It recognizes a call that a person denied.
// Pure. In doubt two calls are the same: that costs one more question, while a miss would run a denied call.
import { hash } from 'node:crypto'
import { posix } from 'node:path'
import type { Json } from '../../kernel/content.ts'
import { sortKeys } from '../core/canonical-json.ts'
import { namesPath } from './argument-paths.ts'

/** `base` is the folder that relative paths start from, if known. */
export function likenessOf(tool: string, args: Json, base = ''): string {
  return hash('sha256', JSON.stringify([tool, sortKeys(normaliseValue(args, '', base) ?? null)]))
}

/** Removes unimportant blanks, detours in paths, and empty fields. */
function normaliseValue(value: Json, field: string, base: string): Json | undefined {
  if (typeof value === 'string')
    return namesPath(field) ? normalisePath(value.trim(), base) : normaliseWords(value, base) || undefined
  if (Array.isArray(value)) return value.map((item: Json) => normaliseValue(item, field, base) ?? null)
  if (value === null || value === false) return undefined
  if (typeof value !== 'object') return value
  const fields = Object.entries(value as Readonly<Record<string, Json>>)
  return Object.fromEntries(fields.map(([key, item]) => [key, normaliseValue(item, key, base)])) as Json
}

/** Normalises word by word: in a command any word may be a path. */
function normaliseWords(text: string, base: string): string {
  const words = text.normalize('NFC').trim().split(/\s+/)
  return words.map((word) => (/[/.]/.test(word) ? normalisePath(word, base) : word)).join(' ')
}

function normalisePath(path: string, base: string): string {
  const local = path.normalize('NFC').replace(/^file:\/\/(?=\/)/, '')
  const whole = base === '' || /^[a-z][a-z0-9+.-]*:/i.test(local) ? posix.normalize(local) : posix.resolve(base, local)
  const short = whole.length > 1 && whole.endsWith('/') ? whole.slice(0, -1) : whole
  return base !== '' && short.startsWith(`${base}/`) ? short.slice(base.length + 1) : short
}
