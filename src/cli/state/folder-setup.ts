// The setup of one folder: the user's configuration, narrowed by the folder's own configuration if it is trusted, and keys. Nothing
// of a folder is read before it is known to be trusted.
import { lstatSync, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { parseEnv } from 'node:util'
import type { Policy } from '../../index.ts'
import { type Mode, MODEL_SETTINGS, readSettings, type CliSettings, MODES } from './config.ts'
import { EXIT, CliError } from '../exit.ts'
import { type Environment, type Home, findHome } from './cli-home.ts'
import { filesOfHooks, type FolderHook } from './config-hooks.ts'
import { type KeptRule, readKeptRules } from './kept-rules.ts'
import { refuseOwnFolders } from './own-folders.ts'
import { isInside, readPlainFile } from './plain-file.ts'
import { storeSecrets } from './store-location.ts'
import { isTrusted } from './trusted-folders.ts'
import { removeInvisible } from '../../view/invisible.ts'
import { DEFAULT_LIMITS } from '../../kernel/index.ts'
import { terretCommand } from '../present/print.ts'
import { oneLine } from '../../view/clean.ts'
import { startFolder, workspaceFolder } from './workspace.ts'

const DEFAULT_TOOLS = ['read', 'write', 'edit', 'search', 'list', 'glob', 'ask_user']

/** The tools of an agent. Folders of skills add the skill tools unless the configuration names the tools. */
export function toolNames({ tools, skills }: CliSettings): readonly string[] {
  return tools ?? [...DEFAULT_TOOLS, ...(skills ? ['skill_read', 'skill_run'] : [])]
}

export type FolderSetup = {
  readonly home: Home
  readonly folder: string
  /** Where in the folder the person works: the AGENTS.md files down to it count. */
  readonly start: string
  readonly trusted: boolean
  readonly settings: CliSettings
  readonly mode: Mode
  /** Includes the rules saved for this folder. */
  readonly policy: Policy
  readonly kept: readonly KeptRule[]
  /** The user's hooks, and then those of a trusted folder. */
  readonly hooks: readonly FolderHook[]
  /** Absolute paths of files and folders that this program obeys by configuration: policies, skills and what hooks name. */
  readonly obeyed: readonly string[]
  /** The AGENTS.md files of a trusted folder, or an empty string. */
  readonly guidance: string
  /** The environment, then the `.env` files. */
  readonly env: Environment
  /** Notes for the user, one line each. */
  readonly notes: readonly string[]
}

export type SetupFlags = {
  readonly mode?: string | undefined
  readonly onAsk?: string | undefined
  readonly environment?: string | undefined
  readonly patienceMs?: number | undefined
  /** A folder within the workspace. Default: the workspace itself. */
  readonly start?: string
}

/** The setup of the current folder, for commands about the setup. */
export function readSetupHere(wishes: SetupFlags = {}): Promise<FolderSetup> {
  const folder = workspaceFolder()
  return readSetup(findHome(), folder, { start: startFolder(folder), ...wishes })
}

export async function readSetup(home: Home, folder: string, wishes: SetupFlags = {}): Promise<FolderSetup> {
  refuseOwnFolders(home, folder)
  const userFile = join(home.config, 'config.json')
  const read = readSettings(userFile)
  const { patienceMs } = wishes
  const limits = patienceMs === undefined ? {} : { limits: { ...read?.limits, patienceMs } }
  const user = { ...read, ...environmentFlag(wishes, read), ...limits }
  const trusted = isTrusted(home, folder)
  const file = join(folder, '.terret', 'config.json')
  const own = trusted ? readSettings(file, folder) : null
  const settings = own ? narrowSettings(user, own, { file, userFile, defaultTools: toolNames(user) }) : user
  const { start = folder } = wishes
  const guidance = trusted ? readGuidance(folder, start) : { text: '', notes: [] }
  const kept = await readKeptRules(home, folder)
  const hooks = [...hooksIn(user, userFile), ...hooksIn(own, file)]
  return {
    home,
    folder,
    start,
    trusted,
    settings,
    mode: effectiveMode(wishes.mode, settings.mode, own?.mode),
    policy: await effectivePolicy(user, own, { folder, kept, onAsk: wishes.onAsk }),
    kept,
    hooks,
    obeyed: [
      ...[user.approvals?.policy, own?.approvals?.policy, ...(settings.skills ?? [])].filter(
        (path) => path !== undefined,
      ),
      ...filesOfHooks(folder, hooks),
    ],
    guidance: guidance.text,
    env: await readEnvironment(home, trusted ? folder : null),
    notes: trusted ? guidance.notes : untrustedNotes(folder),
  }
}

function hooksIn(settings: CliSettings | null, file: string): readonly FolderHook[] {
  return (settings?.hooks ?? []).map((hook) => ({ ...hook, file }))
}

/** A note about files that are read only in a trusted folder. It checks that they exist and reads none. */
function untrustedNotes(folder: string): readonly string[] {
  const files = Object.entries(OWN_FILES).flatMap(([file, name]) => (isThere(join(folder, file)) ? [name] : []))
  const isSecond = files.includes('AGENTS.md')
  const found = [...new Set(files)].filter((name) => name !== 'CLAUDE.md' || !isSecond)
  if (found.length === 0) return []
  const names = found.length === 1 ? found[0] : `${found.slice(0, -1).join(', ')} and ${found.at(-1)}`
  const verb = found.length === 1 ? 'is' : 'are'
  return [`${folder} is not trusted: its ${names} ${verb} not read. \`${terretCommand`trust`}\` changes that.`]
}

/** The files that are read in a trusted folder, with their names for people. Its configuration names its policy. */
const OWN_FILES = {
  '.terret/config.json': '.terret',
  '.terret/commands': '.terret',
  'AGENTS.md': 'AGENTS.md',
  'CLAUDE.md': 'CLAUDE.md',
  '.env': '.env',
} as const

/** Also true for a dangling link. */
function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined
}

/** A flag counts like the user's configuration; a workspace can still only narrow it. */
function effectiveMode(wish: string | undefined, configured: Mode = 'ask', own?: Mode): Mode {
  if (wish === undefined) return configured
  if (wish !== 'plan' && wish !== 'ask' && wish !== 'auto')
    throw new CliError(EXIT.usage, `--mode must be plan, ask or auto, not "${wish}".`)
  return own ? stricter(wish, own) : wish
}

/** `--environment` wins over the user's configuration. */
function environmentFlag({ environment }: SetupFlags, read: CliSettings | null): Pick<CliSettings, 'approvals'> {
  if (environment === undefined) return {}
  if (environment.trim() === '') throw new CliError(EXIT.usage, '--environment is empty. Give a name.')
  return { approvals: { ...read?.approvals, environment } }
}

async function effectivePolicy(
  user: CliSettings,
  own: CliSettings | null,
  { folder, kept, onAsk }: Pick<FolderSetup, 'folder' | 'kept'> & Pick<SetupFlags, 'onAsk'>,
): Promise<Policy> {
  if (onAsk !== undefined && onAsk !== 'park' && onAsk !== 'deny')
    throw new CliError(EXIT.usage, `--on-ask must be park or deny, not "${onAsk}".`)
  const { loadPolicy } = await import('../../index.ts')
  const load = (file: string, within?: string): Policy => {
    if (readPlainFile(file, within) === null)
      throw new CliError(
        EXIT.config,
        `There is no policy file ${file}. Correct "approvals.policy" in the configuration, or create the file.`,
      )
    return loadPolicy(file)
  }
  const [mineFile, ownFile] = [user.approvals?.policy, own?.approvals?.policy]
  const written: Policy = mineFile === undefined ? { rules: [] } : load(mineFile)
  const mine = { ...written, rules: [...written.rules, ...kept.map(({ rule }) => rule)] }
  const both = ownFile === undefined ? mine : narrowPolicy(mine, load(ownFile, folder), ownFile)
  // Tools resolve relative paths from this folder, so the policy must judge the same paths, whatever its file says.
  const placed = both.rules.length > 0 || both.writeRoots ? { ...both, base: folder } : both
  return onAsk === 'deny' ? { ...placed, onAsk } : placed
}

type Guidance = { readonly text: string; readonly notes: readonly string[] }

/**
 * The AGENTS.md of each folder from the workspace down to `start`, or its CLAUDE.md where it has none. The last one is
 * nearest to the work. A folder of another user is passed over, because nobody trusted that user.
 */
function readGuidance(folder: string, start: string): Guidance {
  const parts = relative(folder, start).split(sep)
  const below = parts.map((_, i) => join(folder, ...parts.slice(0, i + 1)))
  const { uid } = statSync(folder)
  const found = [folder, ...(start === folder ? [] : below)]
    .filter((each) => statSync(each, { throwIfNoEntry: false })?.uid === uid)
    .map((each) => readGuidanceFile(folder, each))
  return {
    text: found.flatMap(({ text }) => (text === '' ? [] : [text])).join('\n\n'),
    notes: found.flatMap(({ notes }) => notes),
  }
}

function readGuidanceFile(folder: string, at: string): Guidance {
  for (const file of GUIDANCE_FILES) {
    const found = readPlainFile(join(at, file), folder)
    if (found === null) continue
    const name = relative(folder, join(at, file))
    const { text, removed } = removeInvisible(found)
    const note = `${name} has ${removed} invisible characters; they were taken out before the model reads it.`
    const title =
      at === folder
        ? `Instructions of this workspace (${name})`
        : `Instructions for ${oneLine(relative(folder, at))}/ (${oneLine(name)})`
    return { text: `${title}:\n\n${text}`, notes: removed > 0 ? [note] : [] }
  }
  return { text: '', notes: [] }
}

const GUIDANCE_FILES = ['AGENTS.md', 'CLAUDE.md'] as const

/** The user's environment, without that of any folder. */
export function readUserEnvironment(home: Home): Promise<Environment> {
  return readEnvironment(home, null)
}

/** The environment first, then the user's `.env`, then only the keys in `.env` of a trusted workspace. */
async function readEnvironment(home: Home, trustedFolder: string | null): Promise<Environment> {
  const mine = { ...overlayVariables(readVariables(join(home.config, '.env')), process.env), ...storeSecrets(home) }
  const given = trustedFolder === null ? {} : readVariables(join(trustedFolder, '.env'), trustedFolder)
  if (Object.keys(given).length === 0) return mine
  const { endpoints } = await import('../../index.ts')
  const keys = new Set(Object.values(endpoints).flatMap((endpoint) => endpoint.keys))
  const theirs = Object.fromEntries(Object.entries(given).filter(([name]) => keys.has(name)))
  return overlayVariables(theirs, mine)
}

/** An empty variable does not hide another one. */
function overlayVariables(below: Environment, above: Environment): Environment {
  const set = Object.entries(above).filter(([name, value]) => value !== '' || below[name] === undefined)
  return { ...below, ...Object.fromEntries(set) }
}

function readVariables(file: string, within?: string): Environment {
  const text = readPlainFile(file, within)
  return text === null ? {} : parseEnv(text)
}

// A workspace may only narrow the user's settings. It may not choose a model, an address, a key, a server, a program, a
// location for traces or the environment name: that is how keys are stolen, so such a workspace is refused.

const NOT_ITS_OWN = [
  'model',
  'models',
  'agents',
  ...MODEL_SETTINGS,
  'endpoints',
  'triggers',
  'store',
  'mcp',
  'skills',
  'tracing',
  'results',
  'context',
  'bell',
  'vim',
] as const

type NarrowingFiles = { readonly file: string; readonly userFile: string; readonly defaultTools: readonly string[] }

/** The user's settings, narrowed by the workspace. Instructions of both are used, the user's first. */
function narrowSettings(
  user: CliSettings,
  own: CliSettings,
  { file, userFile, defaultTools }: NarrowingFiles,
): CliSettings {
  const forbidden = NOT_ITS_OWN.find((field) => own[field] !== undefined)
  if (forbidden !== undefined) throw notForWorkspace(file, forbidden, userFile)
  if (own.approvals?.environment !== undefined) throw notForWorkspace(file, 'approvals.environment', userFile)
  for (const field of ['bash', 'memory', 'titles', 'subagents', 'board', 'worktrees'] as const)
    if (own[field]) throw notForWorkspace(file, field, userFile)
  if (own.scripts !== undefined && own.scripts !== 'off') throw notForWorkspace(file, 'scripts', userFile)
  const { tools = defaultTools } = user
  return {
    ...user,
    ...(own.tools ? { tools: tools.filter((name) => own.tools?.includes(name)) } : {}),
    ...(own.bash === false ? { bash: false } : {}),
    ...(own.memory === false ? { memory: false } : {}),
    ...(own.titles === false ? { titles: false } : {}),
    ...(own.subagents === false ? { subagents: false } : {}),
    ...(own.scripts === 'off' ? { scripts: 'off' } : {}),
    ...(own.board === false ? { board: false } : {}),
    ...(own.worktrees === false ? { worktrees: false } : {}),
    ...(own.mode ? { mode: stricter(user.mode ?? 'ask', own.mode) } : {}),
    ...(own.limits ? { limits: lowerLimits({ ...DEFAULT_LIMITS, ...user.limits }, own.limits) } : {}),
    ...(own.budget ? { budget: lowerLimits(user.budget ?? {}, own.budget) } : {}),
    ...(own.instructions
      ? { instructions: [user.instructions ?? '', own.instructions].filter((text) => text !== '').join('\n\n') }
      : {}),
  }
}

function notForWorkspace(file: string, field: string, userFile: string): CliError {
  const text = `${file}: "${field}" is not for a workspace to choose. Remove it there; your own is in ${userFile}.`
  return new CliError(EXIT.config, text)
}

/** The stricter of two modes; the first mode of the list is the strictest. */
function stricter(one: Mode, other: Mode): Mode {
  return MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))] ?? 'plan'
}

type Amounts<T = number> = Readonly<Record<string, T>>

/** Null means no limit. */
function lowerLimits(user: Amounts<number | null>, own: Amounts): Amounts {
  const entries = Object.entries(own).map(([name, most]) => [name, Math.min(user[name] ?? most, most)] as const)
  const set = Object.entries(user).filter((entry): entry is [string, number] => entry[1] !== null)
  return { ...Object.fromEntries(set), ...Object.fromEntries(entries) }
}

/** Both policies apply. The workspace may deny and ask, but allow nothing. */
function narrowPolicy(user: Policy, own: Policy, file: string): Policy {
  const allows = own.rules.findIndex(({ effect }) => effect === 'allow')
  const refused = (what: string): CliError => new CliError(EXIT.config, `${file}: ${what} A workspace may only narrow.`)
  if (allows >= 0) throw refused(`rule ${allows + 1} allows something.`)
  const outside = own.writeRoots?.find((root) => user.writeRoots?.some((mine) => isInside(mine, root)) === false)
  if (outside !== undefined)
    throw refused(`"writeRoots" names ${outside}, where your own policy lets nothing be written.`)
  return {
    ...user,
    ...(own.writeRoots ? { writeRoots: own.writeRoots } : {}),
    ...lowerRates(user, own),
    // The user's rules first: if both ask about a call, the user's question is asked.
    rules: [...user.rules, ...own.rules],
    ...(user.onAsk === 'deny' || own.onAsk === 'deny' ? { onAsk: 'deny' } : user.onAsk ? { onAsk: user.onAsk } : {}),
  }
}

function lowerRates(user: Policy, own: Policy): Partial<Policy> {
  const both = (['actionsPerHour', 'asksPerHour'] as const).flatMap((name) => {
    const given = [user[name], own[name]].filter((each) => each !== undefined)
    return given.length > 0 ? [[name, Math.min(...given)] as const] : []
  })
  return Object.fromEntries(both)
}
