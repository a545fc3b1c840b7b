// What holds for work in one folder: the user's configuration, narrowed by the folder's own if that folder is trusted, and keys.
// Before the trust of a folder is known to be given, not one byte of it is read.
import { lstatSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import type { Policy } from '../../index.ts'
import { type Mode, readSettings, type Settings } from './config.ts'
import { EXIT, Refusal } from '../exit.ts'
import type { Environment, Home } from './home.ts'
import { type Kept, keptIn } from './kept.ts'
import { narrowed, narrowedPolicy, stricter } from './narrow.ts'
import { isInside, readPlain } from './plain-file.ts'
import { isTrusted } from './trust.ts'
import { visible } from '../present/clean.ts'

const DEFAULT_TOOLS = ['read', 'write', 'edit', 'search', 'list', 'glob', 'ask_user']

/** What an agent gets. Unless the configuration names them, skills come with their folders. */
export function toolNames({ tools, skills }: Settings): readonly string[] {
  return tools ?? [...DEFAULT_TOOLS, ...(skills ? ['skill_read', 'skill_run'] : [])]
}

export type Setup = {
  readonly home: Home
  readonly folder: string
  readonly trusted: boolean
  readonly settings: Settings
  readonly mode: Mode
  /** With the rules that were kept for this folder. */
  readonly policy: Policy
  readonly kept: readonly Kept[]
  /** What AGENTS.md of a trusted folder says, or nothing. */
  readonly guidance: string
  /** The environment, and below it what `.env` files say. */
  readonly env: Environment
  /** What whoever started it should know, a line each. */
  readonly notes: readonly string[]
}

export type Wishes = {
  readonly mode?: string | undefined
  readonly onAsk?: string | undefined
  readonly environment?: string | undefined
  readonly patienceMs?: number | undefined
}

export async function setupFor(home: Home, folder: string, wishes: Wishes = {}): Promise<Setup> {
  refuseOwnFolders(home, folder)
  const userFile = join(home.config, 'config.json')
  const read = readSettings(userFile)
  const { patienceMs } = wishes
  const limits = patienceMs === undefined ? {} : { limits: { ...read?.limits, patienceMs } }
  const user = { ...read, ...placeOf(wishes), ...limits }
  const trusted = isTrusted(home, folder)
  const file = join(folder, '.terret', 'config.json')
  const own = trusted ? readSettings(file, folder) : null
  const settings = own ? narrowed(user, own, { file, userFile, defaultTools: toolNames(user) }) : user
  const guidance = trusted ? guidanceIn(folder) : { text: '', notes: [] }
  const kept = await keptIn(home, folder)
  return {
    home,
    folder,
    trusted,
    settings,
    mode: modeOf(wishes.mode, settings.mode, own?.mode),
    policy: await policyOf(user, own, { folder, kept, onAsk: wishes.onAsk }),
    kept,
    guidance: guidance.text,
    env: await environment(home, trusted ? folder : null),
    notes: trusted ? guidance.notes : untrustedNotes(folder),
  }
}

/** What trust would change here. Whether files are there is looked at; nothing in them is. */
function untrustedNotes(folder: string): readonly string[] {
  const found = Object.entries(OWN_FILES).flatMap(([file, name]) => (isThere(join(folder, file)) ? [name] : []))
  if (found.length === 0) return []
  const names = found.length === 1 ? found[0] : `${found.slice(0, -1).join(', ')} and ${found.at(-1)}`
  const verb = found.length === 1 ? 'is' : 'are'
  return [`${folder} is not trusted: its ${names} ${verb} not read. \`terret trust\` changes that.`]
}

/** What is read of a trusted folder, and how it is called. Its policy is named by its configuration. */
const OWN_FILES = { '.terret/config.json': '.terret', 'AGENTS.md': 'AGENTS.md', '.env': '.env' } as const

/** Also a link that leads nowhere. */
function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined
}

/** An agent that may write here must not reach its own records, its own trust or the user's keys. */
function refuseOwnFolders({ folder: data, config }: Home, folder: string): void {
  const held = [data, config].map(realOr).find((own) => isInside(folder, own) || isInside(own, folder))
  if (held === undefined) return
  const text = `${folder} and Terret's own folder ${held} lie in each other. Work in a folder of its own.`
  throw new Refusal(EXIT.config, text)
}

function realOr(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** A wish of the command line counts for the user's word; a workspace can still only narrow it. */
function modeOf(wish: string | undefined, configured: Mode = 'ask', own?: Mode): Mode {
  if (wish === undefined) return configured
  if (wish !== 'plan' && wish !== 'ask' && wish !== 'auto')
    throw new Refusal(EXIT.usage, `--mode must be plan, ask or auto, not "${wish}".`)
  return own ? stricter(wish, own) : wish
}

/** What the command line calls this place counts before what the user's configuration does. */
function placeOf({ environment }: Wishes): Pick<Settings, 'environment'> {
  if (environment === undefined) return {}
  if (environment.trim() === '') throw new Refusal(EXIT.usage, '--environment must not be empty.')
  return { environment }
}

async function policyOf(
  user: Settings,
  own: Settings | null,
  { folder, kept, onAsk }: Pick<Setup, 'folder' | 'kept'> & Pick<Wishes, 'onAsk'>,
): Promise<Policy> {
  if (onAsk !== undefined && onAsk !== 'park' && onAsk !== 'deny')
    throw new Refusal(EXIT.usage, `--on-ask must be park or deny, not "${onAsk}".`)
  const { loadPolicy } = await import('../../index.ts')
  const load = (file: string, within?: string): Policy => {
    if (readPlain(file, within) === null) throw new Refusal(EXIT.config, `There is no policy file ${file}.`)
    return loadPolicy(file)
  }
  const written: Policy = user.policy === undefined ? { rules: [] } : load(user.policy)
  const mine = { ...written, rules: [...written.rules, ...kept.map(({ rule }) => rule)] }
  const both = own?.policy === undefined ? mine : narrowedPolicy(mine, load(own.policy, folder), own.policy)
  // The tools take relative paths from this folder, whatever a file says: judged must be what is written.
  const placed = both.rules.length > 0 || both.writeRoots ? { ...both, base: folder } : both
  return onAsk === 'deny' ? { ...placed, onAsk } : placed
}

function guidanceIn(folder: string): { readonly text: string; readonly notes: readonly string[] } {
  const found = readPlain(join(folder, 'AGENTS.md'), folder)
  if (found === null) return { text: '', notes: [] }
  const { text, removed } = visible(found)
  const note = `AGENTS.md has ${removed} invisible characters; they were taken out before the model reads it.`
  return { text: `Instructions of this workspace (AGENTS.md):\n\n${text}`, notes: removed > 0 ? [note] : [] }
}

/** What is set counts first, then the user's `.env`, then keys of a trusted workspace. Nothing else of a workspace is taken. */
async function environment(home: Home, trustedFolder: string | null): Promise<Environment> {
  const mine = over(variablesIn(join(home.config, '.env')), process.env)
  const given = trustedFolder === null ? {} : variablesIn(join(trustedFolder, '.env'), trustedFolder)
  if (Object.keys(given).length === 0) return mine
  const { endpoints } = await import('../../index.ts')
  const keys = new Set(Object.values(endpoints).flatMap((endpoint) => endpoint.keys))
  const theirs = Object.fromEntries(Object.entries(given).filter(([name]) => keys.has(name)))
  return over(theirs, mine)
}

/** One that is set to nothing hides no other. */
function over(below: Environment, above: Environment): Environment {
  const set = Object.entries(above).filter(([name, value]) => value !== '' || below[name] === undefined)
  return { ...below, ...Object.fromEntries(set) }
}

function variablesIn(file: string, within?: string): Environment {
  const text = readPlain(file, within)
  return text === null ? {} : parseEnv(text)
}
