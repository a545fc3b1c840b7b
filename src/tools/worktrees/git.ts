// Running git for the harness itself: without a shell, and without reading the settings of the repository. Git runs programs that
// settings name (filters, hooks, drivers, monitors), and includes can bring more of them at any time. So git is given a private folder
// as its common folder: the objects and refs in it are links to those of the repository, and its `config` is ours. The few settings
// of a repository that git needs are read one by one and handed on. What is done with git is worktree.ts.
import { spawn } from 'node:child_process'
import { lstat, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { devNull, tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { ToolFailure } from '../core/output.ts'
import { isErrno } from '../files/paths.ts'
import { findProgram, foldersOutside, repositoryAround } from '../files/programs.ts'

export type GitRan = { readonly code: number; readonly stdout: string; readonly stderr: string }

/** A name and its value. The name is in lower case where git does not tell cases apart. */
export type Setting = readonly [name: string, value: string]

/** A working tree, and the repository as git is called in it. */
export type Repository = {
  /** Where git is started: within the working tree. */
  readonly folder: string
  readonly top: string
  readonly gitDir: string
  /** The folder that all worktrees of the repository share. */
  readonly common: string
  /** Those of the repository that git is given. */
  readonly settings: readonly Setting[]
}

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
const STDERR_CHARS_MAX = 4_000
const GIT_MS = 120_000

/** Given to every git, over those of the user too: names of programs, and what would reach the network or ask a person. */
const QUIET: readonly Setting[] = [
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

/** The only settings of a repository that count: how its files are written, and whose commits these are. None names a program. */
const READ_SETTINGS: ReadonlySet<string> = new Set(
  [
    'core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.precomposeunicode core.symlinks',
    'core.trustctime core.checkstat core.longpaths core.sharedrepository core.logallrefupdates',
    'core.sparsecheckout core.sparsecheckoutcone merge.renames merge.directoryrenames merge.renamelimit',
    'user.name user.email user.useconfigonly author.name author.email committer.name committer.email',
  ].flatMap((line) => line.split(' ')),
)
/** How a repository is stored. These must stand in the `config` file itself. */
const FORMAT_SETTINGS: ReadonlySet<string> = new Set([
  'core.repositoryformatversion',
  'extensions.objectformat',
  'extensions.refstorage',
])
/** They ask for nothing that git does here. */
const NEEDLESS_EXTENSIONS: ReadonlySet<string> = new Set([
  'extensions.worktreeconfig',
  'extensions.partialclone',
  'extensions.preciousobjects',
  'extensions.relativeworktrees',
  'extensions.noop',
])

/** What git reads and writes in the common folder. A `config`, hooks and other repositories are not among it. */
const LINKED = ['HEAD', 'info', 'lfs', 'logs', 'objects', 'packed-refs', 'refs', 'reftable', 'shallow', 'worktrees']

/** Those of them that are no folders. */
const FILES: ReadonlySet<string> = new Set(['HEAD', 'packed-refs', 'shallow'])

const VARIABLES = ['HOME', 'XDG_CONFIG_HOME', 'SystemRoot', 'TMPDIR', 'TEMP', 'USERPROFILE']

/** The repository that a folder is in; or why there is none that can be used, as the end of a sentence about the folder. */
export async function openRepository(folder: string): Promise<Repository | string> {
  const asked = ['rev-parse', '--show-toplevel', '--absolute-git-dir', '--git-common-dir']
  // Only this finds out where the repository is, and whose. Of all commands it is the one that runs nothing by any setting.
  const { code, stdout, stderr } = await run(folder, asked, {}, QUIET)
  const [top, gitDir, common] = stdout.split('\n')
  if (/dubious ownership/.test(stderr)) return 'belongs to another user'
  if (code !== 0 || !top || !gitDir || !common) return 'is in no git repository with files'
  const found = { folder, top: await realpath(top), gitDir, common: resolve(folder, common) }
  if (!(await isOwnTop(found))) return 'has a .git of a repository that does not know this folder'
  return { ...found, settings: await settingsOf(found) }
}

type Found = { readonly top: string; readonly gitDir: string; readonly common: string }

/**
 * `core.worktree` may name any folder of the disk as the place of the files, and a `.git` that is a link or a file any repository. Only a
 * repository that lies in this folder counts, or one that names this folder as a worktree or a submodule of its own.
 */
async function isOwnTop({ top, gitDir, common }: Found): Promise<boolean> {
  const dot = join(top, '.git')
  const [own, shared] = [await realpath(gitDir), await realpath(common)]
  const stat = await lstat(dot).catch(() => null)
  if (stat?.isDirectory()) return own === dot && shared === own
  const text = stat?.isFile() ? await readFile(dot, 'utf8').catch(() => '') : ''
  const named = /^gitdir: (.+?)\n*$/s.exec(text)?.[1]
  if (named === undefined || (await realpath(resolve(top, named)).catch(() => null)) !== own) return false
  const back = await readFile(join(own, 'gitdir'), 'utf8').catch(() => '')
  if (back !== '' && (await isAt(dirname(resolve(own, back.trim())), top)))
    return own === join(shared, 'worktrees', basename(own))
  const place = (await settingsIn(top, join(own, 'config'))).findLast(([name]) => name === 'core.worktree')?.[1]
  return place !== undefined && shared === own && (await isAt(resolve(own, place), top))
}

async function isAt(folder: string, top: string): Promise<boolean> {
  return (await realpath(folder).catch(() => null)) === top
}

/** A worktree of the repository, whose git folder is `gitDir`. */
export async function worktreeAt(of: Repository, top: string, gitDir: string): Promise<Repository> {
  return { folder: top, top, gitDir, common: of.common, settings: await settingsOf({ ...of, gitDir }) }
}

type Place = { readonly folder: string; readonly gitDir: string; readonly common: string }

async function settingsOf({ folder, gitDir, common }: Place): Promise<readonly Setting[]> {
  const shared = await settingsIn(folder, join(common, 'config'))
  const isOn = ([name, value]: Setting): boolean =>
    name === 'extensions.worktreeconfig' && !/^(false|no|off|0|)$/i.test(value)
  const own = shared.some(isOn) ? await settingsIn(folder, join(gitDir, 'config.worktree')) : []
  const unknown = shared.find(
    ([name]) => name.startsWith('extensions.') && !FORMAT_SETTINGS.has(name) && !NEEDLESS_EXTENSIONS.has(name),
  )
  if (unknown !== undefined)
    throw trouble(
      'WorktreeExtension',
      `The repository needs ${unknown[0]}, which worktrees do not support. Use isolation "none".`,
    )
  const format = shared.filter(([name]) => FORMAT_SETTINGS.has(name))
  return [...format, ...[...shared, ...own].filter(([name]) => READ_SETTINGS.has(name))]
}

/** Without what it includes, whatever the condition. */
async function settingsIn(folder: string, file: string): Promise<readonly Setting[]> {
  if ((await lstat(file).catch(() => null)) === null) return []
  const args = ['config', '--file', file, '--no-includes', '-z', '--list']
  // No repository is there for this one: it reads nothing but the file.
  const ran = await run(folder, args, { GIT_DIR: devNull }, QUIET)
  if (ran.code !== 0) throw gitFailed(args, ran)
  return ran.stdout.split('\0').flatMap((text): readonly Setting[] => {
    const end = text.indexOf('\n')
    if (text === '') return []
    // A name without a value means yes.
    return end < 0 ? [[text, 'true']] : [[text.slice(0, end), text.slice(end + 1)]]
  })
}

/** Ends with its code, also if that is not 0. Throws if git is not there or takes too long. */
export async function git(at: Repository, args: readonly string[], more: More = {}): Promise<GitRan> {
  const { folder, top, gitDir, common, settings } = at
  const place = await mkdtemp(join(tmpdir(), 'terret-git-')).catch(noPlace)
  try {
    const linked = LINKED.map((name) =>
      symlink(join(common, name), join(place, name), FILES.has(name) ? 'file' : 'junction'),
    )
    await Promise.all([...linked, writeFile(join(place, 'config'), formatText(settings))]).catch(noPlace)
    const where = { GIT_DIR: gitDir, GIT_COMMON_DIR: place, GIT_WORK_TREE: top }
    const given = settings.filter(([name]) => !FORMAT_SETTINGS.has(name))
    return await run(folder, args, where, [...given, ...(more.settings ?? []), ...QUIET])
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

/** What one call is given beside its arguments. */
type More = { readonly settings?: readonly Setting[] }

function noPlace(error: unknown): never {
  if (isErrno(error, 'ENOSPC') || isErrno(error, 'EDQUOT')) throw diskFull()
  const why = error instanceof Error ? error.message : String(error)
  throw trouble('GitFailed', `git was not started, as no links could be made in ${tmpdir()}: ${why}`)
}

function formatText(settings: readonly Setting[]): string {
  const value = (name: string, form: RegExp, or: string): string =>
    settings.findLast(([one, text]) => one === name && form.test(text))?.[1] ?? or
  const version = value('core.repositoryformatversion', /^\d{1,3}$/, '0')
  const extensions = ['objectformat', 'refstorage'].flatMap((name) => {
    const set = value(`extensions.${name}`, /^[a-z0-9]{1,32}$/i, '')
    return set === '' ? [] : [`\t${name} = ${set}\n`]
  })
  return `[core]\n\trepositoryformatversion = ${version}\n\tbare = false\n[extensions]\n${extensions.join('')}`
}

/** Makes the folders of the repository that git would make itself, and cannot make behind a link. */
export async function makeLinkedFolders({ common }: Repository): Promise<void> {
  for (const name of ['logs', 'worktrees']) await mkdir(join(common, name), { recursive: true })
}

function run(
  folder: string,
  args: readonly string[],
  where: Readonly<Record<string, string>>,
  settings: readonly Setting[],
): Promise<GitRan> {
  const root = repositoryAround(folder, process.env)
  const program = findProgram(process.platform === 'win32' ? 'git.exe' : 'git', root, process.env)
  if (program === null) return Promise.reject(unavailable({ code: 'ENOENT' }))
  const env: Record<string, string> = {
    // Never empty: that would mean the current folder.
    PATH: foldersOutside(root, process.env).join(delimiter) || devNull,
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
    timeout: GIT_MS,
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
    child.once('error', (error) => (child.pid === undefined ? reject(unavailable(error)) : undefined))
    child.once('close', (code) => {
      if (code === null) reject(trouble('GitStopped', `git ${args[0]} took too long or printed too much. Try again.`))
      else resolve({ code, stdout: Buffer.concat(chunks).toString(), stderr: stderr.trim() })
    })
  })
}

/** As variables, and not as `-c name=value`: there a name ends at its first `=`, and a name of a filter or a driver may have one. */
function settingsEnvironment(settings: readonly Setting[]): Readonly<Record<string, string>> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) }
  for (const [i, [name, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${i}`] = name
    variables[`GIT_CONFIG_VALUE_${i}`] = value
  }
  return variables
}

/** What it printed, without the last line break. Throws what git said if it failed. */
export async function told(at: Repository, args: readonly string[], more?: More): Promise<string> {
  const ran = await git(at, args, more)
  if (ran.code !== 0) throw gitFailed(args, ran)
  return ran.stdout.replace(/\n$/, '')
}

export function gitFailed(args: readonly string[], { stderr, code }: GitRan): ToolFailure {
  const line = stderr.split('\n').find((text) => /^(fatal|error):/.test(text)) ?? `it ended with code ${code}`
  if (/No space left on device|disk quota exceeded/i.test(stderr)) return diskFull()
  return trouble('GitFailed', `git ${args[0]} failed: ${line.replace(/^(fatal|error): /, '')}`)
}

function diskFull(): ToolFailure {
  return trouble('DiskFull', 'The disk is full, so git could not write. Make room and try again.')
}

/** `code` is stable; the message says what to do. */
export function trouble(code: string, message: string, more: Readonly<Record<string, readonly string[]>> = {}) {
  return new ToolFailure('Failed', message, { error_type: code, ...more })
}

function unavailable(error: { readonly code?: string; readonly message?: string }): ToolFailure {
  if (error.code === 'ENOENT')
    return trouble('GitMissing', 'git is not installed, or the folder is gone. Install git to use worktrees.')
  return trouble('GitFailed', `git could not be started: ${error.message}`)
}
