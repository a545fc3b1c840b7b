// The input history of the chats of one folder: one line each, in a private file of the data folder. Input that
// contains a known secret is not stored.
import { hash } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Secrets } from '../../index.ts'
import { makeFolder } from '../../stores/plan/make-folder.ts'
import { type Home, replaceFile } from '../state/cli-home.ts'

const ENTRIES_MAX = 1_000

export type InputHistory = {
  /** The oldest entry comes first. */
  readonly entries: readonly string[]
  add(text: string): void
}

export function openInputHistory(home: Home, folder: string, secrets: Secrets): InputHistory {
  const file = join(home.folder, 'history', `${hash('sha256', folder).slice(0, 32)}.jsonl`)
  const read = readEntries(file)
  const entries = read.slice(-ENTRIES_MAX)
  // The file is shortened rarely, because another chat of this folder may be writing to it.
  if (read.length > 2 * ENTRIES_MAX) ignoreErrors(() => replaceFile(file, entries.map(entryLine).join('')))
  return {
    entries,
    add: (text) => {
      if (text.trim() === '' || entries.at(-1) === text) return
      entries.push(text)
      if (entries.length > ENTRIES_MAX) entries.shift()
      if (Object.values(secrets).some((secret) => text.includes(secret))) return
      ignoreErrors(() => {
        makeFolder(join(home.folder, 'history'))
        appendFileSync(file, entryLine(text), { mode: 0o600 })
      })
    },
  }
}

const entryLine = (text: string): string => `${JSON.stringify(text)}\n`

function readEntries(file: string): string[] {
  let text = ''
  ignoreErrors(() => {
    text = readFileSync(file, 'utf8')
  })
  return text.split('\n').flatMap((line) => {
    try {
      const entry: unknown = JSON.parse(line)
      return typeof entry === 'string' ? [entry] : []
    } catch {
      return []
    }
  })
}

/** A history that cannot be read or written must not end a chat. */
function ignoreErrors(act: () => void): void {
  try {
    act()
  } catch {}
}
