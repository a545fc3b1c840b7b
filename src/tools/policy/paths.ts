// Which texts of a call's arguments are paths, by the names of their fields and by how they look. Pure. No schema says it, so in
// doubt a text counts: a path that is missed slips past a rule.
import type { Json } from '../../kernel/content.ts'

/** The last word of a field's name: `output_file`, `newPath` and `file-paths` name paths. */
const NAMES: ReadonlySet<string> = new Set(
  'path paths file files filename filenames filepath filepaths dir dirs directory directories cwd src dst dest source destination'.split(
    ' ',
  ),
)
/** These may be dates, addresses or words as well: what stands there counts only if it looks like a path. */
const PERHAPS: ReadonlySet<string> = new Set(['from', 'to', 'target', 'folder', 'folders'])
/** What is written, sent or looked for, not where: it may begin like a path and is none. */
const TEXTS: ReadonlySet<string> = new Set(
  'content contents text string command pattern regex query prompt prompts message body'.split(' '),
)

const KEY_CHARACTERS_MAX = 64

/** Every text under a field that names a path, however deep. */
export function pathsIn(args: Json): readonly string[] {
  return collected(args, '', false, [])
}

/** The same, and every text that can only be a place on this machine, whatever its field is called. */
export function placesIn(args: Json): readonly string[] {
  return collected(args, '', true, [])
}

function collected(value: Json, name: string, anywhere: boolean, found: string[]): readonly string[] {
  if (typeof value === 'string') {
    if (isPath(value, name, anywhere)) found.push(value)
  } else if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) collected(item, name, anywhere, found)
  } else if (value !== null && typeof value === 'object') {
    const fields = value as Readonly<Record<string, Json>>
    for (const key in fields) collected(fields[key] ?? null, lastWord(key), anywhere, found)
  }
  return found
}

function isPath(text: string, name: string, anywhere: boolean): boolean {
  if (NAMES.has(name)) return true
  if (PERHAPS.has(name) && looksLikePath(text)) return true
  return anywhere && !TEXTS.has(name) && /^(\/|~|file:)[^\n]*$/.test(text)
}

/** Does a field of this name hold a path, whatever stands in it? */
export function namesPath(key: string): boolean {
  return NAMES.has(lastWord(key))
}

/** The longest name above has 12 letters: more of a key is not looked at. */
function lastWord(key: string): string {
  return /([A-Z]?[a-z]+|[A-Z]+)\d*$/.exec(key.slice(-KEY_CHARACTERS_MAX))?.[1]?.toLowerCase() ?? ''
}

/** A slash, a backslash or an ending, and neither a date, a number, an address of the web nor one of a mailbox. */
function looksLikePath(text: string): boolean {
  if ((/^\d[\d\s.,:/TZ+-]*$/.test(text) && !text.includes('..')) || /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return false
  if (/^[^\s/@]+@[^\s/@]+$/.test(text)) return false
  return /^[^\n]*[/\\]|^~|^\.\.?$|\.\w+$/.test(text)
}
