// The input history of the chats of one folder: one line each, in a private file of the data folder. Lines with a known secret are
// not stored.
import { hash } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Secrets } from '../../index.ts'
import { makeFolder } from '../../stores/plan/folder.ts'
import { type Home, replaceFile } from '../state/home.ts'

const ENTRIES_MAX = 1_000

export type History = {
  /** Oldest first. */
  readonly entries: readonly string[]
  add(text: string): void
}

export function openHistory(home: Home, folder: string, secrets: Secrets): History {
  const file = join(home.folder, 'history', `${hash('sha256', folder).slice(0, 32)}.jsonl`)
  const read = entriesIn(file)
  const entries = read.slice(-ENTRIES_MAX)
  // Not at every start: another chat of this folder may be writing.
  if (read.length > 2 * ENTRIES_MAX) quietly(() => replaceFile(file, entries.map(lineOf).join('')))
  return {
    entries,
    add: (text) => {
      if (text.trim() === '' || entries.at(-1) === text) return
      entries.push(text)
      if (entries.length > ENTRIES_MAX) entries.shift()
      if (Object.values(secrets).some((secret) => text.includes(secret))) return
      quietly(() => {
        makeFolder(join(home.folder, 'history'))
        appendFileSync(file, lineOf(text), { mode: 0o600 })
      })
    },
  }
}

const lineOf = (text: string): string => `${JSON.stringify(text)}\n`

function entriesIn(file: string): string[] {
  let text = ''
  quietly(() => {
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

/** A history that cannot be written must not end a chat. */
function quietly(act: () => void): void {
  try {
    act()
  } catch {}
}
