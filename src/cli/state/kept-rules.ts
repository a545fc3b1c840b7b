// Rules saved by answering "always". They are stored by folder in the user's data folder, never in a workspace. Each allows one exact
// action; rules that deny or ask still win.
import type { Rule } from '../../index.ts'
import { EXIT, CliError } from '../exit.ts'
import { type Home, makeHome, replaceFile } from './cli-home.ts'
import { PLAIN_FILE_BYTES_MAX, readPlainFile } from './plain-file.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { terretCommand } from '../present/print.ts'

export type KeptRule = { readonly rule: Rule; readonly by: string; readonly at: string }
type RulesByFolder = Readonly<Record<string, readonly KeptRule[]>>

export async function readKeptRules(home: Home, folder: string): Promise<readonly KeptRule[]> {
  const kept = readRules(home)[folder] ?? []
  if (kept.length === 0) return []
  const { parsePolicy } = await import('../../index.ts')
  parsePolicy({ rules: kept.map(({ rule }) => rule) })
  return kept
}

export function keepRule(home: Home, folder: string, kept: KeptRule): void {
  const folders = readRules(home)
  const known = folders[folder] ?? []
  const text = JSON.stringify(kept.rule)
  if (known.some(({ rule }) => JSON.stringify(rule) === text)) return
  saveRules(home, { ...folders, [folder]: [...known, kept] })
}

/** Removes a rule by its number, as `terret policy` shows it. */
export function forgetRule(home: Home, folder: string, number: number): KeptRule {
  const folders = readRules(home)
  const known = folders[folder] ?? []
  const gone = known[number - 1]
  if (!gone) {
    const there =
      known.length === 0 ? 'No rule was kept in this folder.' : `There are the kept rules 1 to ${known.length}.`
    throw new CliError(EXIT.missing, `${there} \`${terretCommand`policy`}\` shows them.`)
  }
  saveRules(home, { ...folders, [folder]: known.filter((each) => each !== gone) })
  return gone
}

function readRules({ rules }: Home): RulesByFolder {
  const text = readPlainFile(rules)
  if (text === null) return {}
  try {
    const { version, folders } = JSON.parse(text) as { readonly version: unknown; readonly folders: unknown }
    if (version === 1 && isObject(folders) && Object.values(folders).every(isKeptRuleList))
      return folders as RulesByFolder
  } catch {}
  throw new CliError(EXIT.config, `${rules} cannot be read. Repair it, or remove it to keep rules anew.`)
}

function isKeptRuleList(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => isObject(each) && isObject(each['rule']) && isText(each['by']))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function saveRules(home: Home, folders: RulesByFolder): void {
  const text = `${JSON.stringify({ version: 1, folders }, null, 2)}\n`
  if (Buffer.byteLength(text) > PLAIN_FILE_BYTES_MAX)
    throw new CliError(
      EXIT.config,
      `${home.rules} would be too long. Forget some of its rules: ${terretCommand`policy forget N`}`,
    )
  makeHome(home)
  replaceFile(home.rules, text)
}
