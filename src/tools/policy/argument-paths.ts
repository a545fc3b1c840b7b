// Finds the texts in a call's arguments that are paths, by their field names and their look. Pure. No schema marks
// paths, so in doubt a text counts: a missed path would evade a rule.
import type { Json } from '../../kernel/content.ts'

/** Last words of field names: `output_file`, `newPath` and `file-paths` name paths. */
const NAMES: ReadonlySet<string> = new Set(
  'path paths file files filename filenames filepath filepaths dir dirs directory directories cwd src dst dest source destination'.split(
    ' ',
  ),
)
/** These fields may also hold dates, addresses or words: the text counts only if it looks like a path. */
const PERHAPS: ReadonlySet<string> = new Set(['from', 'to', 'target', 'folder', 'folders'])
/** Fields with content to write, send or search for: the text may begin like a path without being one. */
const TEXTS: ReadonlySet<string> = new Set(
  'content contents text string command pattern regex query prompt prompts message body'.split(' '),
)

const KEY_CHARACTERS_MAX = 64

/** Every text under a field that names a path, at any depth. */
export function pathsIn(args: Json): readonly string[] {
  return collectPaths(args, '', false, [])
}

/** As `pathsIn`, plus every text that can only be a place on this machine, whatever its field is named. */
export function placesIn(args: Json): readonly string[] {
  return collectPaths(args, '', true, [])
}

function collectPaths(value: Json, name: string, anywhere: boolean, found: string[]): readonly string[] {
  if (typeof value === 'string') {
    if (isPath(value, name, anywhere)) found.push(value)
  } else if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) collectPaths(item, name, anywhere, found)
  } else if (value !== null && typeof value === 'object') {
    const fields = value as Readonly<Record<string, Json>>
    for (const key in fields) collectPaths(fields[key] ?? null, lastWord(key), anywhere, found)
  }
  return found
}

function isPath(text: string, name: string, anywhere: boolean): boolean {
  if (NAMES.has(name)) return true
  if (PERHAPS.has(name) && looksLikePath(text)) return true
  return anywhere && !TEXTS.has(name) && /^(\/|~|file:)[^\n]*$/.test(text)
}

/** Does a field of this name always hold a path? */
export function namesPath(key: string): boolean {
  return NAMES.has(lastWord(key))
}

/** The longest name above has 12 letters, so only the end of a key is examined. */
function lastWord(key: string): string {
  return /([A-Z]?[a-z]+|[A-Z]+)\d*$/.exec(key.slice(-KEY_CHARACTERS_MAX))?.[1]?.toLowerCase() ?? ''
}

/** It has a slash, a backslash or a file ending, and is not a date, a number, a web address or an e-mail address. */
function looksLikePath(text: string): boolean {
  if ((/^\d[\d\s.,:/TZ+-]*$/.test(text) && !text.includes('..')) || /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return false
  if (/^[^\s/@]+@[^\s/@]+$/.test(text)) return false
  return /^[^\n]*[/\\]|^~|^\.\.?$|\.\w+$/.test(text)
}
