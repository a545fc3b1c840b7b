// When two calls do the same, however they are spelled: for knowing a call again that a person denied. Pure. In doubt they do the
// same: that costs one more question, while a miss would run what a person refused.
import { hash } from 'node:crypto'
import { posix } from 'node:path'
import type { Json } from '../../kernel/content.ts'
import { sorted } from '../core/canonical.ts'
import { namesPath } from './paths.ts'

/** `base` is the folder that relative paths start from, if it is known. */
export function likenessOf(tool: string, args: Json, base = ''): string {
  return hash('sha256', JSON.stringify([tool, sorted(plain(args, '', base) ?? null)]))
}

/** Without blanks that matter little, detours in paths, and fields that hold nothing. */
function plain(value: Json, field: string, base: string): Json | undefined {
  if (typeof value === 'string')
    return namesPath(field) ? pathOf(value.trim(), base) : plainWords(value, base) || undefined
  if (Array.isArray(value)) return value.map((item: Json) => plain(item, field, base) ?? null)
  if (value === null || value === false) return undefined
  if (typeof value !== 'object') return value
  const fields = Object.entries(value as Readonly<Record<string, Json>>)
  return Object.fromEntries(fields.map(([key, item]) => [key, plain(item, key, base)])) as Json
}

/** Word by word: in a command any of them may be a path. */
function plainWords(text: string, base: string): string {
  const words = text.normalize('NFC').trim().split(/\s+/)
  return words.map((word) => (/[/.]/.test(word) ? pathOf(word, base) : word)).join(' ')
}

function pathOf(path: string, base: string): string {
  const local = path.normalize('NFC').replace(/^file:\/\/(?=\/)/, '')
  const whole = base === '' || /^[a-z][a-z0-9+.-]*:/i.test(local) ? posix.normalize(local) : posix.resolve(base, local)
  const short = whole.length > 1 && whole.endsWith('/') ? whole.slice(0, -1) : whole
  return base !== '' && short.startsWith(`${base}/`) ? short.slice(base.length + 1) : short
}
