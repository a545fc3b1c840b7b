// Running git for the harness itself: without a shell, and without the programs that the settings of a repository name.
// What is done with it is worktree.ts.
import { spawn } from 'node:child_process'
import { ToolFailure } from '../core/output.ts'

export type GitRan = { readonly code: number; readonly stdout: string; readonly stderr: string }

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
const STDERR_CHARS_MAX = 4_000
const GIT_MS = 120_000

/** Names of programs, and what would reach the network or ask a person. */
const QUIET = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.pager=cat',
  'commit.gpgSign=false',
  'merge.verifySignatures=false',
  'submodule.recurse=false',
  'protocol.allow=never',
  'gc.auto=0',
  'maintenance.auto=false',
].flatMap((setting) => ['-c', setting])

const VARIABLES = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'SystemRoot', 'TMPDIR', 'TEMP', 'USERPROFILE']

/** A repository as git is called in it: `more` switches off the filters and merge programs that its own settings name. */
export type Repository = { readonly folder: string; readonly more: readonly string[] }

export async function repositoryAt(folder: string): Promise<Repository> {
  const bare = { folder, more: [] }
  const told = await git(bare, ['config', '--show-scope', '--includes', '-z', '--get-regexp', PROGRAMS])
  return { folder, more: told.stdout.split('\0').flatMap(withoutProgram) }
}

const PROGRAMS = '^(filter\\..*\\.(smudge|clean|process|required)|merge\\..*\\.driver)$'

/** With -z the scopes and the settings come in turns; a setting is its name, a line break and its value. Those of the user are kept. */
function withoutProgram(text: string, index: number, all: readonly string[]): readonly string[] {
  const scope = all[index - 1]
  if (index % 2 === 0 || scope === 'global' || scope === 'system' || scope === 'command') return []
  const name = text.split('\n', 1)[0] ?? ''
  // A merge program that fails is a conflict; an empty filter changes nothing.
  const value = name.startsWith('merge.') ? 'false' : name.endsWith('.required') ? 'false' : ''
  return name === '' ? [] : ['-c', `${name}=${value}`]
}

/** Ends with its code, also if that is not 0. Throws if git is not there or takes too long. */
export function git({ folder, more }: Repository, args: readonly string[], gitDir?: string): Promise<GitRan> {
  const env: Record<string, string> = {
    GIT_TERMINAL_PROMPT: '0',
    GIT_EDITOR: 'true',
    GIT_NO_LAZY_FETCH: '1',
    LC_ALL: 'C',
  }
  for (const name of VARIABLES) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  const place = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, `--work-tree=${folder}`]
  const child = spawn('git', [...QUIET, ...more, '--no-pager', '--no-optional-locks', ...place, ...args], {
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

/** What it printed, without the last line break. Throws what git said if it failed. */
export async function told(at: Repository, args: readonly string[], gitDir?: string): Promise<string> {
  const ran = await git(at, args, gitDir)
  if (ran.code !== 0) throw gitFailed(args, ran)
  return ran.stdout.replace(/\n$/, '')
}

export function gitFailed(args: readonly string[], { stderr, code }: GitRan): ToolFailure {
  const line = stderr.split('\n').find((text) => /^(fatal|error):/.test(text)) ?? `it ended with code ${code}`
  if (/No space left on device|disk quota exceeded/i.test(stderr))
    return trouble('DiskFull', 'The disk is full, so git could not write. Make room and try again.')
  return trouble('GitFailed', `git ${args[0]} failed: ${line.replace(/^(fatal|error): /, '')}`)
}

/** `code` is stable; the message says what to do. */
export function trouble(code: string, message: string, more: Readonly<Record<string, readonly string[]>> = {}) {
  return new ToolFailure('Failed', message, { error_type: code, ...more })
}

function unavailable(error: Error): ToolFailure {
  const missing = 'code' in error && error.code === 'ENOENT'
  if (missing)
    return trouble('GitMissing', 'git is not installed, or the folder is gone. Install git to use worktrees.')
  return trouble('GitFailed', `git could not be started: ${error.message}`)
}
