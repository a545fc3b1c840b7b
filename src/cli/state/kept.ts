// Rules saved by answering "always". They are stored by folder in the user's data folder, never in a workspace. Each allows one exact
// action; rules that deny or ask still win.
import type { Rule } from '../../index.ts'
import { EXIT, Refusal } from '../exit.ts'
import { type Home, makeHome, replaceFile } from './home.ts'
import { BYTES_MAX, readPlain } from './plain-file.ts'
import { isObject } from '../../view/json.ts'
import { typed } from '../present/print.ts'

export type Kept = { readonly rule: Rule; readonly by: string; readonly at: string }
type Folders = Readonly<Record<string, readonly Kept[]>>

export async function keptIn(home: Home, folder: string): Promise<readonly Kept[]> {
  const kept = foldersOf(home)[folder] ?? []
  if (kept.length === 0) return []
  const { parsePolicy } = await import('../../index.ts')
  parsePolicy({ rules: kept.map(({ rule }) => rule) })
  return kept
}

export function keepRule(home: Home, folder: string, kept: Kept): void {
  const folders = foldersOf(home)
  const known = folders[folder] ?? []
  const text = JSON.stringify(kept.rule)
  if (known.some(({ rule }) => JSON.stringify(rule) === text)) return
  save(home, { ...folders, [folder]: [...known, kept] })
}

/** By its number, as `terret policy` shows it. */
export function forgetRule(home: Home, folder: string, number: number): Kept {
  const folders = foldersOf(home)
  const known = folders[folder] ?? []
  const gone = known[number - 1]
  if (!gone) {
    const there =
      known.length === 0 ? 'No rule was kept in this folder.' : `There are the kept rules 1 to ${known.length}.`
    throw new Refusal(EXIT.missing, `${there} \`${typed`policy`}\` shows them.`)
  }
  save(home, { ...folders, [folder]: known.filter((each) => each !== gone) })
  return gone
}

function foldersOf({ rules }: Home): Folders {
  const text = readPlain(rules)
  if (text === null) return {}
  try {
    const { version, folders } = JSON.parse(text) as { readonly version: unknown; readonly folders: unknown }
    if (version === 1 && isObject(folders) && Object.values(folders).every(isKeptList)) return folders as Folders
  } catch {}
  throw new Refusal(EXIT.config, `${rules} cannot be read. Repair it, or remove it to keep rules anew.`)
}

function isKeptList(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => isObject(each) && isObject(each['rule']) && isText(each['by']))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function save(home: Home, folders: Folders): void {
  const text = `${JSON.stringify({ version: 1, folders }, null, 2)}\n`
  if (Buffer.byteLength(text) > BYTES_MAX)
    throw new Refusal(
      EXIT.config,
      `${home.rules} would be too long. Forget some of its rules: ${typed`policy forget N`}`,
    )
  makeHome(home)
  replaceFile(home.rules, text)
}
