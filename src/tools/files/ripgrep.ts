// Runs ripgrep: chooses the binary and its environment, and splits its output into records. The tools decide what to
// search for.
import { StringDecoder } from 'node:string_decoder'
import type { Frozen } from '../../kernel/content.ts'
import { ToolFailure } from '../core/tool-output.ts'
import { hasErrnoCode } from './path-guard.ts'
import { findProgram, repositoryAround } from './find-program.ts'

/** Folders left out of searches, unless the pattern or the path names them. */
const IGNORED = ['node_modules', '.git', 'target', 'dist', 'build', 'vendor', '.next', '__pycache__', '.venv']
/** A longer record is a line of megabytes: it is counted and dropped, never held. */
const RECORD_CHARS_MAX = 4 * 1024 * 1024
const STDERR_CHARS_MAX = 4000

export type RipgrepOptions = Frozen<{
  /** Your own binary. Otherwise the one of @vscode/ripgrep, else `rg` on the PATH. */
  file: string | null
  args: readonly string[]
  /** The working folder. A path through /proc/self/fd is the open folder itself. */
  cwd: string
  /** An open file to search as standard input, or null. */
  stdin: number | null
  separator: '\n' | '\0'
  signal: AbortSignal
  /** Called for each record. Returning false ends the search early. */
  record: (text: string) => boolean
}>
/** `code` is null if the process was ended early. */
export type RipgrepResult = Frozen<{ code: number | null; stderr: string; dropped: number }>

/**
 * Runs ripgrep without a shell; arguments are passed unchanged. Resolves when the process has ended and its pipes are
 * closed.
 */
export async function runRipgrep({
  file,
  args,
  cwd,
  stdin,
  separator,
  signal,
  record,
}: RipgrepOptions): Promise<RipgrepResult> {
  const binary = file ?? (await findBundled()) ?? findProgram('rg', repositoryAround(cwd, process.env), process.env)
  if (binary === null) throw missingRipgrep()
  // Loaded when first needed: `import 'terret'` must stay cheap.
  const { spawn } = await import('node:child_process')
  const child = spawn(binary, ['--no-config', ...args], {
    cwd,
    // ripgrep gets nothing else of our environment.
    env: { PATH: process.env['PATH'] ?? '', SystemRoot: process.env['SystemRoot'] ?? '' },
    stdio: [stdin ?? 'ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  })
  const records = splitRecords(separator, record, () => child.kill('SIGKILL'))
  let stderr = ''
  child.stdout?.on('data', records.push)
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, STDERR_CHARS_MAX)
  })
  const code = await new Promise<number | null>((done, fail) => {
    // If no process was started, `close` never comes; otherwise it comes even after an error.
    child.once('error', (error) => (child.pid === undefined ? fail(startFailure(error)) : undefined))
    child.once('close', done)
  })
  if (signal.aborted) throw new ToolFailure('Interrupted', 'The search was stopped.')
  return { code, stderr: stderr.trim(), dropped: records.dropped() }
}

/**
 * Says why ripgrep failed; null if it did not. Code 2 may come with matches: then they count, and this is a warning.
 */
export function ripgrepTrouble({ code, stderr, dropped }: RipgrepResult): string | null {
  if (code !== null && code > 1) return stderr || `ripgrep ended with code ${code}.`
  return dropped > 0 ? `${dropped} matches were in lines too long to show.` : null
}

export function searchFailure(trouble: string): ToolFailure {
  const wrong = /regex parse error|error parsing glob|unrecognized flag/.test(trouble)
  return new ToolFailure(wrong ? 'InvalidInput' : 'Failed', `The search failed. ${trouble}`)
}

/** Globs that leave out the ignored folders, except those that the caller named. */
export function ignoreGlobs(named: readonly string[]): readonly string[] {
  const asked = new Set(named.flatMap((text) => text.split(/[/{},]/)))
  return IGNORED.filter((name) => !asked.has(name)).map((name) => `--glob=!**/${name}`)
}

/** Loaded when first needed: the package looks for its binary on import, and throws if there is none. */
async function findBundled(): Promise<string | null> {
  try {
    return (await import('@vscode/ripgrep')).rgPath
  } catch {
    return null
  }
}

function startFailure(error: Error): Error {
  return hasErrnoCode(error, 'ENOENT') || hasErrnoCode(error, 'EACCES') ? missingRipgrep() : error
}

function missingRipgrep(): ToolFailure {
  const text = 'ripgrep cannot be started. Install the optional parts of @vscode/ripgrep, or put rg on the PATH.'
  return new ToolFailure('Unavailable', text)
}

function splitRecords(separator: string, record: (text: string) => boolean, stop: () => void) {
  const decoder = new StringDecoder('utf8')
  let pending = ''
  let skipping = false
  let stopped = false
  let lost = 0
  let failure: Error | null = null
  const take = (text: string) => {
    try {
      if (stopped || record(text)) return
    } catch (error) {
      // Nothing catches an error of a stream event: thrown here, it would end our own process.
      failure = error instanceof Error ? error : new Error(String(error))
    }
    stopped = true
    stop()
  }
  const push = (chunk: Buffer): void => {
    const parts = (pending + decoder.write(chunk)).split(separator)
    pending = parts.pop() ?? ''
    for (const part of parts) {
      if (skipping) skipping = false
      else take(part)
    }
    if (pending.length <= RECORD_CHARS_MAX) return
    pending = ''
    if (!skipping) lost += 1
    skipping = true
  }
  /** A last record without its separator was cut off, and does not count. */
  const dropped = (): number => {
    if (failure) throw failure
    return lost
  }
  return { push, dropped }
}
