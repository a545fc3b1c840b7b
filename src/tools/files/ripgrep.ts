// Running ripgrep: which binary, with which environment, and its output record by record. What to search for is the tools'.
import { StringDecoder } from 'node:string_decoder'
import type { Frozen } from '../../kernel/content.ts'
import { ToolFailure } from '../core/output.ts'
import { isErrno } from './paths.ts'
import { findProgram, repositoryAround } from './programs.ts'

/** Left out of searches, unless the pattern or the path names it. */
const IGNORED = ['node_modules', '.git', 'target', 'dist', 'build', 'vendor', '.next', '__pycache__', '.venv']
/** A record longer than this is a line of megabytes: it is counted and dropped, never held. */
const RECORD_CHARS_MAX = 4 * 1024 * 1024
const STDERR_CHARS_MAX = 4000

export type Ripgrep = Frozen<{
  /** A binary of one's own. Otherwise the one of @vscode/ripgrep, else `rg` on the PATH. */
  file: string | null
  args: readonly string[]
  /** Where it runs. A path through /proc/self/fd is the open folder itself. */
  cwd: string
  /** An open file to be searched as standard input, or null. */
  stdin: number | null
  separator: '\n' | '\0'
  signal: AbortSignal
  /** Called for each record. Returning false ends the search: there is enough. */
  record: (text: string) => boolean
}>
/** `code` is null when it was ended early. */
export type Ran = Frozen<{ code: number | null; stderr: string; dropped: number }>

/** Arguments are passed as they are; there is no shell. It resolves when the process has ended and its pipes are closed. */
export async function ripgrep({ file, args, cwd, stdin, separator, signal, record }: Ripgrep): Promise<Ran> {
  const binary = file ?? (await bundled()) ?? findProgram('rg', repositoryAround(cwd, process.env), process.env)
  if (binary === null) throw missing()
  // Loaded when first needed: `import 'terret'` must stay cheap.
  const { spawn } = await import('node:child_process')
  const child = spawn(binary, ['--no-config', ...args], {
    cwd,
    // Nothing of our environment is ripgrep's business.
    env: { PATH: process.env['PATH'] ?? '', SystemRoot: process.env['SystemRoot'] ?? '' },
    stdio: [stdin ?? 'ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  })
  const records = splitter(separator, record, () => child.kill('SIGKILL'))
  let stderr = ''
  child.stdout?.on('data', records.push)
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, STDERR_CHARS_MAX)
  })
  const code = await new Promise<number | null>((done, fail) => {
    // Without a process there is no `close`; with one, `close` comes even after an error.
    child.once('error', (error) => (child.pid === undefined ? fail(unavailable(error)) : undefined))
    child.once('close', done)
  })
  if (signal.aborted) throw new ToolFailure('Interrupted', 'The search was stopped.')
  return { code, stderr: stderr.trim(), dropped: records.dropped() }
}

/** Whether ripgrep itself failed; null if not. Code 2 may come with matches: then they count, and this is a warning. */
export function troubleOf({ code, stderr, dropped }: Ran): string | null {
  if (code !== null && code > 1) return stderr || `ripgrep ended with code ${code}.`
  return dropped > 0 ? `${dropped} matches were in lines too long to show.` : null
}

export function failedSearch(trouble: string): ToolFailure {
  const wrong = /regex parse error|error parsing glob|unrecognized flag/.test(trouble)
  return new ToolFailure(wrong ? 'InvalidInput' : 'Failed', `The search failed. ${trouble}`)
}

/** Globs that leave out the ignored folders, but for those the caller named. */
export function ignoring(named: readonly string[]): readonly string[] {
  const asked = new Set(named.flatMap((text) => text.split(/[/{},]/)))
  return IGNORED.filter((name) => !asked.has(name)).map((name) => `--glob=!**/${name}`)
}

/** Loaded when first needed: it looks for its binary on import, and throws where there is none. */
async function bundled(): Promise<string | null> {
  try {
    return (await import('@vscode/ripgrep')).rgPath
  } catch {
    return null
  }
}

function unavailable(error: Error): Error {
  return isErrno(error, 'ENOENT') || isErrno(error, 'EACCES') ? missing() : error
}

function missing(): ToolFailure {
  const text = 'ripgrep cannot be started. Install the optional parts of @vscode/ripgrep, or put rg on the PATH.'
  return new ToolFailure('Unavailable', text)
}

function splitter(separator: string, record: (text: string) => boolean, stop: () => void) {
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
      // Thrown here it would end our own process: nothing catches an error of a stream's event.
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
  /** What came without its separator was cut off, and is no record. */
  const dropped = (): number => {
    if (failure) throw failure
    return lost
  }
  return { push, dropped }
}
