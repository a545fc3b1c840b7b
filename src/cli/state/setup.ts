// The setup of one folder: the user's configuration, narrowed by the folder's own configuration if it is trusted, and keys. Nothing
// of a folder is read before it is known to be trusted.
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import type { Policy } from '../../index.ts'
import { type Mode, MODEL_SETTINGS, readSettings, type Settings, MODES } from './config.ts'
import { EXIT, Refusal } from '../exit.ts'
import { type Environment, type Home, homeOf, realFolder } from './home.ts'
import { type Kept, keptIn } from './kept.ts'
import { refuseOwnFolders } from './own-folders.ts'
import { isInside, readPlain } from './plain-file.ts'
import { storeSecrets } from './store-place.ts'
import { isTrusted } from './trust.ts'
import { visible } from '../../view/invisible.ts'
import { DEFAULT_LIMITS } from '../../kernel/index.ts'
import { typed } from '../present/print.ts'

const DEFAULT_TOOLS = ['read', 'write', 'edit', 'search', 'list', 'glob', 'ask_user']

/** The tools of an agent. Skills are added with their folders unless the configuration names them. */
export function toolNames({ tools, skills }: Settings): readonly string[] {
  return tools ?? [...DEFAULT_TOOLS, ...(skills ? ['skill_read', 'skill_run'] : [])]
}

export type Setup = {
  readonly home: Home
  readonly folder: string
  readonly trusted: boolean
  readonly settings: Settings
  readonly mode: Mode
  /** Includes the rules saved for this folder. */
  readonly policy: Policy
  readonly kept: readonly Kept[]
  /** Files and folders, absolute, that the configuration makes this program obey: policies and skills. */
  readonly obeyed: readonly string[]
  /** The AGENTS.md of a trusted folder, or an empty string. */
  readonly guidance: string
  /** The environment, then the `.env` files. */
  readonly env: Environment
  /** Notes for the user, one line each. */
  readonly notes: readonly string[]
}

export type Wishes = {
  readonly mode?: string | undefined
  readonly onAsk?: string | undefined
  readonly environment?: string | undefined
  readonly patienceMs?: number | undefined
}

/** For commands about the setup: of the current folder. */
export function setupHere(wishes: Wishes = {}): Promise<Setup> {
  return setupFor(homeOf(), realFolder(process.cwd()), wishes)
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
    obeyed: [user.policy, own?.policy, ...(settings.skills ?? [])].filter((path) => path !== undefined),
    guidance: guidance.text,
    env: await environment(home, trusted ? folder : null),
    notes: trusted ? guidance.notes : untrustedNotes(folder),
  }
}

/** The files that trust would make readable. It checks that they exist and reads none. */
function untrustedNotes(folder: string): readonly string[] {
  const found = Object.entries(OWN_FILES).flatMap(([file, name]) => (isThere(join(folder, file)) ? [name] : []))
  if (found.length === 0) return []
  const names = found.length === 1 ? found[0] : `${found.slice(0, -1).join(', ')} and ${found.at(-1)}`
  const verb = found.length === 1 ? 'is' : 'are'
  return [`${folder} is not trusted: its ${names} ${verb} not read. \`${typed`trust`}\` changes that.`]
}

/** The files read of a trusted folder, with their names for people. Its policy is named by its configuration. */
const OWN_FILES = { '.terret/config.json': '.terret', 'AGENTS.md': 'AGENTS.md', '.env': '.env' } as const

/** Also true for a dangling link. */
function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined
}

/** A flag counts like the user's configuration; a workspace can still only narrow it. */
function modeOf(wish: string | undefined, configured: Mode = 'ask', own?: Mode): Mode {
  if (wish === undefined) return configured
  if (wish !== 'plan' && wish !== 'ask' && wish !== 'auto')
    throw new Refusal(EXIT.usage, `--mode must be plan, ask or auto, not "${wish}".`)
  return own ? stricter(wish, own) : wish
}

/** `--environment` wins over the user's configuration. */
function placeOf({ environment }: Wishes): Pick<Settings, 'environment'> {
  if (environment === undefined) return {}
  if (environment.trim() === '') throw new Refusal(EXIT.usage, '--environment is empty. Give a name.')
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
    if (readPlain(file, within) === null)
      throw new Refusal(
        EXIT.config,
        `There is no policy file ${file}. Correct "policy" in the configuration, or create the file.`,
      )
    return loadPolicy(file)
  }
  const written: Policy = user.policy === undefined ? { rules: [] } : load(user.policy)
  const mine = { ...written, rules: [...written.rules, ...kept.map(({ rule }) => rule)] }
  const both = own?.policy === undefined ? mine : narrowedPolicy(mine, load(own.policy, folder), own.policy)
  // Tools resolve relative paths from this folder, so the policy must judge the same paths, whatever its file says.
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

/** The environment first, then the user's `.env`, then the keys in `.env` of a trusted workspace, and nothing else of it. */
async function environment(home: Home, trustedFolder: string | null): Promise<Environment> {
  const mine = { ...over(variablesIn(join(home.config, '.env')), process.env), ...storeSecrets(home) }
  const given = trustedFolder === null ? {} : variablesIn(join(trustedFolder, '.env'), trustedFolder)
  if (Object.keys(given).length === 0) return mine
  const { endpoints } = await import('../../index.ts')
  const keys = new Set(Object.values(endpoints).flatMap((endpoint) => endpoint.keys))
  const theirs = Object.fromEntries(Object.entries(given).filter(([name]) => keys.has(name)))
  return over(theirs, mine)
}

/** An empty variable does not hide another one. */
function over(below: Environment, above: Environment): Environment {
  const set = Object.entries(above).filter(([name, value]) => value !== '' || below[name] === undefined)
  return { ...below, ...Object.fromEntries(set) }
}

function variablesIn(file: string, within?: string): Environment {
  const text = readPlain(file, within)
  return text === null ? {} : parseEnv(text)
}

// A workspace may only narrow the user's settings. It may not choose a model, an address, a key, a server, a program, a place for
// traces or the environment name: that is how keys are stolen, so such a workspace is refused.

const NOT_ITS_OWN = [
  'model',
  'routes',
  'agents',
  ...MODEL_SETTINGS,
  'endpoints',
  'store',
  'mcp',
  'skills',
  'tracing',
  'environment',
  'prefix',
  'compression',
  'compaction',
] as const

type Narrowing = { readonly file: string; readonly userFile: string; readonly defaultTools: readonly string[] }

/** The user's settings, narrowed by the workspace. Instructions of both are used, the user's first. */
function narrowed(user: Settings, own: Settings, { file, userFile, defaultTools }: Narrowing): Settings {
  const forbidden = NOT_ITS_OWN.find((field) => own[field] !== undefined)
  if (forbidden !== undefined) throw notIts(file, forbidden, userFile)
  for (const field of ['bash', 'memory', 'subagents', 'board', 'worktrees'] as const)
    if (own[field]) throw notIts(file, field, userFile)
  const { tools = defaultTools } = user
  return {
    ...user,
    ...(own.tools ? { tools: tools.filter((name) => own.tools?.includes(name)) } : {}),
    ...(own.bash === false ? { bash: false } : {}),
    ...(own.memory === false ? { memory: false } : {}),
    ...(own.subagents === false ? { subagents: false } : {}),
    ...(own.board === false ? { board: false } : {}),
    ...(own.worktrees === false ? { worktrees: false } : {}),
    ...(own.mode ? { mode: stricter(user.mode ?? 'ask', own.mode) } : {}),
    ...(own.limits ? { limits: lower({ ...DEFAULT_LIMITS, ...user.limits }, own.limits) } : {}),
    ...(own.budget ? { budget: lower(user.budget ?? {}, own.budget) } : {}),
    ...(own.instructions
      ? { instructions: [user.instructions ?? '', own.instructions].filter((text) => text !== '').join('\n\n') }
      : {}),
  }
}

function notIts(file: string, field: string, userFile: string): Refusal {
  const text = `${file}: "${field}" is not for a workspace to choose. Remove it there; your own is in ${userFile}.`
  return new Refusal(EXIT.config, text)
}

/** The stricter of two modes; the first mode of the list is the strictest. */
function stricter(one: Mode, other: Mode): Mode {
  return MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))] ?? 'plan'
}

type Amounts<T = number> = Readonly<Record<string, T>>

/** Null means no limit. */
function lower(user: Amounts<number | null>, own: Amounts): Amounts {
  const entries = Object.entries(own).map(([name, most]) => [name, Math.min(user[name] ?? most, most)] as const)
  const set = Object.entries(user).filter((entry): entry is [string, number] => entry[1] !== null)
  return { ...Object.fromEntries(set), ...Object.fromEntries(entries) }
}

/** Both policies apply. The workspace may deny and ask, but allow nothing. */
function narrowedPolicy(user: Policy, own: Policy, file: string): Policy {
  const allows = own.rules.findIndex(({ effect }) => effect === 'allow')
  const refused = (what: string): Refusal => new Refusal(EXIT.config, `${file}: ${what} A workspace may only narrow.`)
  if (allows >= 0) throw refused(`rule ${allows + 1} allows something.`)
  const outside = own.writeRoots?.find((root) => user.writeRoots?.some((mine) => isInside(mine, root)) === false)
  if (outside !== undefined)
    throw refused(`"writeRoots" names ${outside}, where your own policy lets nothing be written.`)
  return {
    ...user,
    ...(own.writeRoots ? { writeRoots: own.writeRoots } : {}),
    ...least(user, own),
    // The user's rules first: if both ask about a call, the user's question is asked.
    rules: [...user.rules, ...own.rules],
    ...(user.onAsk === 'deny' || own.onAsk === 'deny' ? { onAsk: 'deny' } : user.onAsk ? { onAsk: user.onAsk } : {}),
  }
}

function least(user: Policy, own: Policy): Partial<Policy> {
  const both = (['actionsPerHour', 'asksPerHour'] as const).flatMap((name) => {
    const given = [user[name], own[name]].filter((each) => each !== undefined)
    return given.length > 0 ? [[name, Math.min(...given)] as const] : []
  })
  return Object.fromEntries(both)
}
