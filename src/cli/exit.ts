// The exit codes, and the one error a command throws on purpose. main.ts prints it. It imports nothing but a table, so
// that `terret --help` loads almost nothing.
import { CODES } from '../kernel/codes.ts'
import type { FaultCode } from '../kernel/failure.ts'

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  waits: 3,
  limit: 4,
  interrupted: 5,
  missing: 6,
  config: 7,
  store: 8,
  conflict: 9,
  later: 10,
  inconclusive: 11,
} as const

/** Shown by `terret help` and in docs/guide/cli.md. */
export const EXIT_TEXT: Readonly<Record<number, string>> = {
  0: 'done; for `start` also: it waits for the approval it stops at',
  1: 'the run failed or got nowhere; a check found something wrong',
  2: 'the command line or what was given with it is wrong',
  3: 'it waits for a person: an approval, an answer, or a pause',
  4: 'a limit or a budget was met',
  5: 'it was interrupted',
  6: 'there is no such session, call or file',
  7: 'configuration: a file, a model, a key, or trust',
  8: 'the store, the data folder or standard output cannot be used',
  9: 'too late or not now: already decided, busy, closed, or the session of another program',
  10: 'it goes on later by itself, when a worker looks',
  11: 'too many trials of a suite have no verdict, so it says nothing',
}

/** An error with one line that says what to do, and the exit code. */
export class CliError extends Error {
  readonly exit: number
  constructor(exit: number, message: string) {
    super(message)
    this.name = 'Refusal'
    this.exit = exit
  }
}

/** True if the store was replaced by another one. The process then has the wrong data and can only end. */
export function isStoreReplaced(error: unknown): boolean {
  return error instanceof Error && error.name === 'Fault' && 'code' in error && error.code === 'store_replaced'
}

/** True if the disk is full. Then not even a stop can be written. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && error.name === 'Fault' && 'code' in error && error.code === 'disk_full'
}

export const STOPPED_BY_FULL_DISK =
  'The disk is full, so that it is to stop cannot be written down. It is left as it is, and can be resumed when there is room.'

/**
 * The text and exit code of an error. A Fault is recognised by its name, since its class is not loaded here. `isFar`:
 * the command works with a remote server.
 */
export function exitForError(error: unknown, isFar = false): { readonly exit: number; readonly text: string } {
  if (error instanceof CliError) return { exit: error.exit, text: error.message }
  if (!(error instanceof Error)) return { exit: EXIT.failed, text: String(error) }
  if (error.name === 'ServerRefusal' && 'status' in error) {
    const exit = error.status === 0 ? EXIT.store : error.status === 404 ? EXIT.missing : EXIT.config
    return { exit, text: error.message }
  }
  if (error.name === 'Fault' && 'code' in error) {
    // A server of a later version may have a code that is not known here.
    const code = String(error.code)
    const exit = Object.hasOwn(CODES, code) ? CODES[code as FaultCode].exit : EXIT.failed
    return { exit, text: `${error.message} (${code})` }
  }
  if ('syscall' in error && error.syscall === 'uv_cwd')
    return { exit: EXIT.missing, text: 'The working folder was removed. Change to one that is there, such as: cd ~' }
  const said = error.message || error.name
  // A wrong answer of a remote server is not a bug of this program.
  if (isFar)
    return { exit: EXIT.config, text: `The answer of the server cannot be used (${said}). Is it of this version?` }
  return { exit: EXIT.failed, text: `${said} This is a bug of terret: please report it.` }
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
