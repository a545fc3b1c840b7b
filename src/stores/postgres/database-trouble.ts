// Interprets errors of the database and the network: ask again, the answer is lost, the rows have changed, or a Fault
// with one sentence. It decides nothing about connections (connections.ts), and its texts never contain a password or a
// value of a statement.
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { keepProcessAlive } from '../plan/system-clock.ts'

export type DatabaseTrouble =
  | { readonly type: 'stale' }
  /**
   * The server refused, or was never asked: nothing was done, and a retry may succeed. `drop`: not on this connection.
   */
  | { readonly type: 'again'; readonly fault: Fault; readonly drop: boolean }
  /** Another transaction kept a row locked for too long. Nothing was done. */
  | { readonly type: 'locked'; readonly fault: Fault }
  /** No answer, or an unreliable one. The connection cannot be used any more. */
  | { readonly type: 'lost'; readonly fault: Fault }
  | { readonly type: 'final'; readonly error: Error }

const FIRST_WAIT_MS = 20
const WAIT_MS_MAX = 500

/** Limits how long an operation is retried. One object for all tries of one operation. */
export class Patience {
  readonly #clock: Clock
  readonly #until: number
  #waitMs = FIRST_WAIT_MS

  /** `clock` must be one that cannot be set. */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock
    this.#until = clock.now() + ms
  }

  /** Resolves when the next try is due; rejects with the fault when the time is over. */
  async after(fault: Fault): Promise<void> {
    const left = this.#until - this.#clock.now()
    if (left <= 0) throw fault
    const ms = Math.min(this.#waitMs, left)
    this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MS_MAX)
    // Nothing else may be keeping the process alive meanwhile.
    const release = keepProcessAlive()
    await new Promise<void>((done) => void this.#clock.timer(ms, done))
    release()
  }
}

/** The server for messages, without its password. */
export type DatabasePeer = { readonly host: string; readonly user: string; readonly database: string }

/** The error code of every write to a moved store. Its message is for people. */
export const MOVED_STATE = 'TR001'

const POOLER =
  'If a pooler in transaction mode stands before the server, set the option pooled, or ?pooled=true in its URL.'
const NOTHING = 'Nothing was written; try again.'

type Sentence = readonly [code: FaultCode, text: (peer: DatabasePeer, said: string) => string]

/** Temporary trouble, some of it only on this connection. */
const passing: readonly (readonly [code: RegExp, why: string, drop: boolean])[] = [
  [/^08/, 'the connection broke', true],
  [/^57P0/, 'it is shutting down or starting', true],
  [/^53300$/, 'it has no free connection: raise its max_connections, or use a pooler', true],
  // A standby, or a server that became one: the primary is elsewhere now.
  [/^25006$/, 'it takes no writes', true],
  [/^40001$|^40P01$/, 'other writers were in the way', false],
  [/^57014$/, 'the statement took too long', false],
  [/^25P0[34]$/, 'the transaction waited for too long', true],
  // A new connection has no named statements, and names them again.
  [/^26000$|^42P05$/, `a prepared statement was not there. ${POOLER}`, true],
]

const lasting: Readonly<Record<string, Sentence>> = {
  '53100': ['disk_full', () => 'The disk of the database is full. Nothing was written; make room and try again.'],
  '28P01': ['invalid_config', refusedUserText],
  '28000': ['invalid_config', refusedUserText],
  '3D000': [
    'invalid_config',
    (peer) => `There is no database "${peer.database}" at ${peer.host}. Create it, or correct the URL.`,
  ],
  '42P01': ['store_replaced', tablesGoneText],
  '3F000': ['store_replaced', tablesGoneText],
  '42501': [
    'io_error',
    (peer, said) =>
      `The user "${peer.user}" lacks a right in the database "${peer.database}" (${said}). Grant it, or use another user.`,
  ],
  '58030': ['io_error', () => 'The disk of the database failed. Nothing was written; see the log of the server.'],
  XX001: ['store_damaged', () => 'The database is damaged. Restore it from a backup.'],
  XX002: ['store_damaged', () => 'An index of the database is damaged. Rebuild it with REINDEX.'],
}

function tablesGoneText(peer: DatabasePeer): string {
  return `The tables of the store are gone from the database "${peer.database}" at ${peer.host}. Restore them from a backup, then start again. Nothing was written.`
}

function refusedUserText(peer: DatabasePeer): string {
  return `The server at ${peer.host} refused the user "${peer.user}": check the user and the password of the URL, and its pg_hba.conf.`
}

/** Errors of the machine and the network in between. */
const reach = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'])
const names = new Set(['ENOTFOUND', 'EAI_AGAIN'])

/**
 * Interprets an error of a statement. `sent`: it was sent, so it may have been done even if the connection broke.
 * `broken`: the connection cannot be used any more, whatever the error says.
 */
export function classifyTrouble(
  error: unknown,
  peer: DatabasePeer,
  { sent, broken }: { sent: boolean; broken: boolean },
): DatabaseTrouble {
  const { code, message, routine } = errorShape(error)
  if (error instanceof Fault) return { type: 'final', error }
  if (code === '22012') return { type: 'stale' }
  if (code === MOVED_STATE) return { type: 'final', error: new Fault('store_replaced', message) }
  // Another process has changed the tables under a named statement.
  if (routine === 'RevalidateCachedQuery')
    return {
      type: 'again',
      fault: databaseBusyFault(peer, 'its tables were changed', faultDetail(code, message)),
      drop: true,
    }
  if (code === '55P03')
    return {
      type: 'locked',
      fault: databaseBusyFault(peer, 'others kept their locks for too long', faultDetail(code, message)),
    }
  const known = lasting[code]
  if (known) return { type: 'final', error: new Fault(known[0], known[1](peer, message), faultDetail(code, message)) }
  const found = passing.find(([pattern]) => pattern.test(code))
  const why = found?.[1] ?? (code === '' || reach.has(code) || names.has(code) ? 'it did not answer' : null)
  const ended = broken || reach.has(code) || names.has(code)
  if (found === undefined && !ended) return { type: 'final', error: bareError(error, code, message) }
  const gone = ended || (found !== undefined && /^08|^57P0/.test(code))
  if (sent && gone) return { type: 'lost', fault: lostFault(peer, faultDetail(code, message)) }
  return {
    type: 'again',
    fault: databaseBusyFault(peer, why ?? 'it did not answer', faultDetail(code, message)),
    drop: gone || found?.[2] === true,
  }
}

/** Interprets a failed connection. `first`: none succeeded before, so an unknown host name counts as a mistake. */
export function classifyConnectTrouble(error: unknown, peer: DatabasePeer, first: boolean): DatabaseTrouble {
  if (error instanceof Fault) return { type: 'final', error }
  const { code, message } = errorShape(error)
  if (first && names.has(code)) {
    const text = `The host of ${peer.host} is not known. Correct the URL of the database.`
    return { type: 'final', error: new Fault('invalid_config', text, faultDetail(code, message)) }
  }
  if (/startup parameter/.test(message)) {
    const text = `The server at ${peer.host} refused how it was asked. ${POOLER}`
    return { type: 'final', error: new Fault('invalid_config', text, faultDetail(code, message)) }
  }
  // A server of another kind, or an untrusted certificate: waiting does not help.
  const file = error instanceof Error && 'syscall' in error && error.syscall === 'open'
  const stranger = file || (code !== '' && !reach.has(code) && !names.has(code) && !isState(code))
  if (stranger || /SSL/.test(message)) {
    const text = `No safe connection to the server at ${peer.host} could be made (${message}). Check sslmode and its certificates.`
    return { type: 'final', error: new Fault('invalid_config', text, code) }
  }
  return classifyTrouble(error, peer, { sent: false, broken: true })
}

/**
 * Waiting for the replica of a write was cut off: the server reports success, and its next primary may lack the write.
 */
export function isUnreplicated(notice: { readonly routine?: string | undefined }): boolean {
  return notice.routine === 'SyncRepWaitForLSN'
}

function lostFault(peer: DatabasePeer, said: string): Fault {
  const text = `The database at ${peer.host} did not answer, and it is not known whether the write was done. The same write again is safe.`
  return new Fault('store_busy', text, said)
}

export function databaseBusyFault(peer: DatabasePeer, why: string, said = ''): Fault {
  return new Fault('store_busy', `The database at ${peer.host} could not be used: ${why}. ${NOTHING}`, said)
}

export function closedStoreFault(): Fault {
  return new Fault('store_closed', 'The store is closed. Open a new one.')
}

function isState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code)
}

function faultDetail(code: string, message: string): string {
  return code === '' ? message : `${code}: ${message}`
}

/** An error in this program, without the server's details, which may contain values. */
function bareError(error: unknown, code: string, message: string): Error {
  return isState(code) || !(error instanceof Error) ? new Error(faultDetail(code, message)) : error
}

function errorShape(error: unknown): { readonly code: string; readonly message: string; readonly routine: string } {
  if (!(error instanceof Error)) return { code: '', message: String(error), routine: '' }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const routine = 'routine' in error && typeof error.routine === 'string' ? error.routine : ''
  // The first error where all addresses of one name were tried.
  const inner = error instanceof AggregateError ? (error.errors as readonly unknown[])[0] : null
  return inner instanceof Error && code === '' ? errorShape(inner) : { code, message: error.message || code, routine }
}
