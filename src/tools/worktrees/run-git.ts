// Runs git for the harness itself, without a shell and without reading the settings of the repository. Settings can
// name programs that git runs (filters, hooks, drivers, monitors), and includes can add more at any time. So git gets a
// private folder as its common folder: its objects and refs are links to those of the repository, and its `config` is
// ours. The few settings that git needs are read one by one and passed on. worktree.ts decides what git does.
import { spawn } from 'node:child_process'
import { lstat, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { devNull, tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { ToolFailure } from '../core/tool-output.ts'
import { hasErrnoCode } from '../files/path-guard.ts'
import { findProgram, pathFoldersOutside, repositoryAround } from '../files/find-program.ts'

export type GitResult = { readonly code: number; readonly stdout: string; readonly stderr: string }

/** A name and its value. The name is in lower case where git ignores case. */
export type GitSetting = readonly [name: string, value: string]

/** A working tree, and its repository as git is called there. */
export type GitRepository = {
  /** The working folder of git, within the working tree. */
  readonly folder: string
  readonly top: string
  readonly gitDir: string
  /** The folder that all worktrees of the repository share. */
  readonly common: string
  /** The repository's settings that git is given. */
  readonly settings: readonly GitSetting[]
}

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
const STDERR_CHARS_MAX = 4_000
const GIT_MS = 120_000

/**
 * Given to every git process, over the user's own settings: names of programs, and settings that would use the network
 * or ask a person.
 */
const QUIET: readonly GitSetting[] = [
  ['core.hooksPath', devNull],
  ['core.fsmonitor', 'false'],
  ['core.pager', 'cat'],
  ['core.editor', 'true'],
  ['core.askPass', 'true'],
  ['core.sshCommand', 'false'],
  ['credential.helper', ''],
  ['commit.gpgSign', 'false'],
  ['merge.verifySignatures', 'false'],
  ['log.showSignature', 'false'],
  ['rerere.enabled', 'false'],
  ['submodule.recurse', 'false'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['protocol.allow', 'never'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
]

/**
 * The only settings of a repository that count: how its files are written, and the names of authors. None names a
 * program.
 */
const READ_SETTINGS: ReadonlySet<string> = new Set(
  [
    'core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.precomposeunicode core.symlinks',
    'core.trustctime core.checkstat core.longpaths core.sharedrepository core.logallrefupdates',
    'core.sparsecheckout core.sparsecheckoutcone merge.renames merge.directoryrenames merge.renamelimit',
    'user.name user.email user.useconfigonly author.name author.email committer.name committer.email',
  ].flatMap((line) => line.split(' ')),
)
/** The storage format of a repository. These must stand in the `config` file itself. */
const FORMAT_SETTINGS: ReadonlySet<string> = new Set([
  'core.repositoryformatversion',
  'extensions.objectformat',
  'extensions.refstorage',
])
/** Extensions that the commands used here do not need. */
const NEEDLESS_EXTENSIONS: ReadonlySet<string> = new Set([
  'extensions.worktreeconfig',
  'extensions.partialclone',
  'extensions.preciousobjects',
  'extensions.relativeworktrees',
  'extensions.noop',
])

/**
 * The entries of the common folder that git reads and writes. A `config`, hooks and other repositories are not among
 * them.
 */
const LINKED = ['HEAD', 'info', 'lfs', 'logs', 'objects', 'packed-refs', 'refs', 'reftable', 'shallow', 'worktrees']

/** The entries that are files. */
const FILES: ReadonlySet<string> = new Set(['HEAD', 'packed-refs', 'shallow'])

const VARIABLES = ['HOME', 'XDG_CONFIG_HOME', 'SystemRoot', 'TMPDIR', 'TEMP', 'USERPROFILE']

/**
 * Opens the repository that a folder is in; or says why none can be used, as the end of a sentence about the folder.
 */
export async function openRepository(folder: string, timeoutMs = GIT_MS): Promise<GitRepository | string> {
  const asked = ['rev-parse', '--show-toplevel', '--absolute-git-dir', '--git-common-dir']
  // Only this command finds the repository and its owner. Of all commands it is the one that no setting makes run a
  // program.
  const { code, stdout, stderr } = await spawnGit(folder, asked, {}, QUIET, timeoutMs)
  const [top, gitDir, common] = stdout.split('\n')
  if (/dubious ownership/.test(stderr)) return 'belongs to another user'
  if (code !== 0 || !top || !gitDir || !common) return 'is in no git repository with files'
  const found = { folder, top: await realpath(top), gitDir, common: resolve(folder, common) }
  if (!(await isOwnTop(found))) return 'has a .git of a repository that does not know this folder'
  return { ...found, settings: await readGitSettings(found) }
}

type FoundRepository = { readonly top: string; readonly gitDir: string; readonly common: string }

/**
 * `core.worktree` may name any folder of the disk as the working tree, and a `.git` link or file may name any
 * repository. A repository counts only if it lies in this folder, or lists this folder as one of its worktrees or
 * submodules.
 */
async function isOwnTop({ top, gitDir, common }: FoundRepository): Promise<boolean> {
  const dot = join(top, '.git')
  const [own, shared] = [await realpath(gitDir), await realpath(common)]
  const stat = await lstat(dot).catch(() => null)
  if (stat?.isDirectory()) return own === dot && shared === own
  const text = stat?.isFile() ? await readFile(dot, 'utf8').catch(() => '') : ''
  const named = /^gitdir: (.+?)\n*$/s.exec(text)?.[1]
  if (named === undefined || (await realpath(resolve(top, named)).catch(() => null)) !== own) return false
  const back = await readFile(join(own, 'gitdir'), 'utf8').catch(() => '')
  if (back !== '' && (await isFolderAt(dirname(resolve(own, back.trim())), top)))
    return own === join(shared, 'worktrees', basename(own))
  const place = (await readSettingsFile(top, join(own, 'config'))).findLast(([name]) => name === 'core.worktree')?.[1]
  return place !== undefined && shared === own && (await isFolderAt(resolve(own, place), top))
}

async function isFolderAt(folder: string, top: string): Promise<boolean> {
  return (await realpath(folder).catch(() => null)) === top
}

/** A worktree of the repository, whose git folder is `gitDir`. */
export async function worktreeAt(of: GitRepository, top: string, gitDir: string): Promise<GitRepository> {
  return { folder: top, top, gitDir, common: of.common, settings: await readGitSettings({ ...of, gitDir }) }
}

type GitPlace = { readonly folder: string; readonly gitDir: string; readonly common: string }

async function readGitSettings({ folder, gitDir, common }: GitPlace): Promise<readonly GitSetting[]> {
  const shared = await readSettingsFile(folder, join(common, 'config'))
  const isOn = ([name, value]: GitSetting): boolean =>
    name === 'extensions.worktreeconfig' && !/^(false|no|off|0|)$/i.test(value)
  const own = shared.some(isOn) ? await readSettingsFile(folder, join(gitDir, 'config.worktree')) : []
  const unknown = shared.find(
    ([name]) => name.startsWith('extensions.') && !FORMAT_SETTINGS.has(name) && !NEEDLESS_EXTENSIONS.has(name),
  )
  if (unknown !== undefined)
    throw worktreeFailure(
      'WorktreeExtension',
      `The repository needs ${unknown[0]}, which worktrees do not support. Use isolation "none".`,
    )
  const format = shared.filter(([name]) => FORMAT_SETTINGS.has(name))
  return [...format, ...[...shared, ...own].filter(([name]) => READ_SETTINGS.has(name))]
}

/** Reads the settings of a file without any includes. */
async function readSettingsFile(folder: string, file: string): Promise<readonly GitSetting[]> {
  if ((await lstat(file).catch(() => null)) === null) return []
  const args = ['config', '--file', file, '--no-includes', '-z', '--list']
  // This process has no repository: it reads nothing but the file.
  const ran = await spawnGit(folder, args, { GIT_DIR: devNull }, QUIET)
  if (ran.code !== 0) throw gitFailure(args, ran)
  return ran.stdout.split('\0').flatMap((text): readonly GitSetting[] => {
    const end = text.indexOf('\n')
    if (text === '') return []
    // A name without a value means true.
    return end < 0 ? [[text, 'true']] : [[text.slice(0, end), text.slice(end + 1)]]
  })
}

/** Returns the exit code, even if it is not 0. Throws if git is missing or takes too long. */
export async function runGit(
  at: GitRepository,
  args: readonly string[],
  more: GitCallOptions = {},
): Promise<GitResult> {
  const { folder, top, gitDir, common, settings } = at
  const place = await mkdtemp(join(tmpdir(), 'terret-git-')).catch(failWithoutPlace)
  try {
    const linked = LINKED.map((name) =>
      symlink(join(common, name), join(place, name), FILES.has(name) ? 'file' : 'junction'),
    )
    await Promise.all([...linked, writeFile(join(place, 'config'), formatConfig(settings))]).catch(failWithoutPlace)
    const where = { GIT_DIR: gitDir, GIT_COMMON_DIR: place, GIT_WORK_TREE: top }
    const given = settings.filter(([name]) => !FORMAT_SETTINGS.has(name))
    return await spawnGit(folder, args, where, [...given, ...(more.settings ?? []), ...QUIET], more.timeoutMs)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

/** Options of one call beside its arguments. */
type GitCallOptions = { readonly settings?: readonly GitSetting[]; readonly timeoutMs?: number }

function failWithoutPlace(error: unknown): never {
  if (hasErrnoCode(error, 'ENOSPC') || hasErrnoCode(error, 'EDQUOT')) throw diskFullFailure()
  const why = error instanceof Error ? error.message : String(error)
  throw worktreeFailure('GitFailed', `git was not started, as no links could be made in ${tmpdir()}: ${why}`)
}

function formatConfig(settings: readonly GitSetting[]): string {
  const value = (name: string, form: RegExp, or: string): string =>
    settings.findLast(([one, text]) => one === name && form.test(text))?.[1] ?? or
  const version = value('core.repositoryformatversion', /^\d{1,3}$/, '0')
  const extensions = ['objectformat', 'refstorage'].flatMap((name) => {
    const set = value(`extensions.${name}`, /^[a-z0-9]{1,32}$/i, '')
    return set === '' ? [] : [`\t${name} = ${set}\n`]
  })
  return `[core]\n\trepositoryformatversion = ${version}\n\tbare = false\n[extensions]\n${extensions.join('')}`
}

/** Makes the folders of the repository that git would make itself, but cannot make behind a link. */
export async function makeLinkedFolders({ common }: GitRepository): Promise<void> {
  for (const name of ['logs', 'worktrees']) await mkdir(join(common, name), { recursive: true })
}

function spawnGit(
  folder: string,
  args: readonly string[],
  where: Readonly<Record<string, string>>,
  settings: readonly GitSetting[],
  timeoutMs = GIT_MS,
): Promise<GitResult> {
  const root = repositoryAround(folder, process.env)
  const program = findProgram(process.platform === 'win32' ? 'git.exe' : 'git', root, process.env)
  if (program === null) return Promise.reject(gitUnavailable({ code: 'ENOENT' }))
  const env: Record<string, string> = {
    // Never empty: an empty PATH would mean the current folder.
    PATH: pathFoldersOutside(root, process.env).join(delimiter) || devNull,
    GIT_TERMINAL_PROMPT: '0',
    GIT_EDITOR: 'true',
    GIT_NO_LAZY_FETCH: '1',
    LC_ALL: 'C',
    ...where,
    ...settingsEnvironment(settings),
  }
  for (const name of VARIABLES) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  const child = spawn(program, ['--no-pager', '--no-optional-locks', ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  const chunks: Buffer[] = []
  let bytes = 0
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > OUTPUT_BYTES_MAX) child.kill('SIGKILL')
    else chunks.push(chunk)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, STDERR_CHARS_MAX)
  })
  return new Promise((resolve, reject) => {
    child.once('error', (error) => (child.pid === undefined ? reject(gitUnavailable(error)) : undefined))
    child.once('close', (code) => {
      if (code === null)
        reject(worktreeFailure('GitStopped', `git ${args[0]} took too long or printed too much. Try again.`))
      else resolve({ code, stdout: Buffer.concat(chunks).toString(), stderr: stderr.trim() })
    })
  })
}

/**
 * Passes settings as variables instead of `-c name=value`: there a name ends at its first `=`, and the name of a filter
 * or a driver may contain one.
 */
function settingsEnvironment(settings: readonly GitSetting[]): Readonly<Record<string, string>> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) }
  for (const [i, [name, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${i}`] = name
    variables[`GIT_CONFIG_VALUE_${i}`] = value
  }
  return variables
}

/** Returns the output without the last line break. Throws git's message if it failed. */
export async function gitOutput(at: GitRepository, args: readonly string[], more?: GitCallOptions): Promise<string> {
  const ran = await runGit(at, args, more)
  if (ran.code !== 0) throw gitFailure(args, ran)
  return ran.stdout.replace(/\n$/, '')
}

export function gitFailure(args: readonly string[], { stderr, code }: GitResult): ToolFailure {
  const line = stderr.split('\n').find((text) => /^(fatal|error):/.test(text)) ?? `it ended with code ${code}`
  if (/No space left on device|disk quota exceeded/i.test(stderr)) return diskFullFailure()
  return worktreeFailure('GitFailed', `git ${args[0]} failed: ${line.replace(/^(fatal|error): /, '')}`)
}

function diskFullFailure(): ToolFailure {
  return worktreeFailure('DiskFull', 'The disk is full, so git could not write. Make room and try again.')
}

/** `code` is stable; the message says what to do. */
export function worktreeFailure(code: string, message: string, more: Readonly<Record<string, readonly string[]>> = {}) {
  return new ToolFailure('Failed', message, { error_type: code, ...more })
}

function gitUnavailable(error: { readonly code?: string; readonly message?: string }): ToolFailure {
  if (error.code === 'ENOENT')
    return worktreeFailure('GitMissing', 'git is not installed, or the folder is gone. Install git to use worktrees.')
  return worktreeFailure('GitFailed', `git could not be started: ${error.message}`)
}
