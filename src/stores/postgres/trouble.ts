// What an error of the database or of the network means: ask again, the answer is lost, the present has moved, or a Fault with one
// sentence. It decides nothing about connections (connect.ts), and no text of it ever holds a password or a value of a statement.
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { holdProcess } from '../plan/clock.ts'

export type Trouble =
  | { readonly type: 'stale' }
  /** The server said no, or was never asked: nothing was done, and it may be soon. `drop`: not on this connection. */
  | { readonly type: 'again'; readonly fault: Fault; readonly drop: boolean }
  /** Another transaction kept a row locked for too long. Nothing was done. */
  | { readonly type: 'locked'; readonly fault: Fault }
  /** No answer, or one that cannot be relied on. The connection is of no more use. */
  | { readonly type: 'lost'; readonly fault: Fault }
  | { readonly type: 'final'; readonly error: Error }

const FIRST_WAIT_MS = 20
const WAIT_MS_MAX = 500

/** Asks again for a while, and then no more. One for all tries of one thing. */
export class Patience {
  readonly #clock: Clock
  readonly #until: number
  #waitMs = FIRST_WAIT_MS

  /** `clock` must be one that cannot be set. */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock
    this.#until = clock.now() + ms
  }

  /** Resolves when the next try is due; rejects with the fault when there is none. */
  async after(fault: Fault): Promise<void> {
    const left = this.#until - this.#clock.now()
    if (left <= 0) throw fault
    const ms = Math.min(this.#waitMs, left)
    this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MS_MAX)
    // Nothing else may keep the process alive while it waits here.
    const release = holdProcess()
    await new Promise<void>((done) => void this.#clock.timer(ms, done))
    release()
  }
}

/** Who is asked, for sentences. Never its password. */
export type Peer = { readonly host: string; readonly user: string; readonly database: string }

/** What a store that was moved answers to every write. Its message is for people. */
export const MOVED_STATE = 'TR001'

const POOLER =
  'If a pooler in transaction mode stands before the server, set the option pooled, or ?pooled=true in its URL.'
const NOTHING = 'Nothing was written; try again.'

type Sentence = readonly [code: FaultCode, text: (peer: Peer, said: string) => string]

/** Trouble that passes by itself, or by the next connection. */
const passing: readonly (readonly [code: RegExp, why: string, drop: boolean])[] = [
  [/^08/, 'the connection broke', true],
  [/^57P0/, 'it is shutting down or starting', true],
  [/^53300$/, 'it has no free connection: raise its max_connections, or use a pooler', true],
  // A standby, or a server that was made one: the primary is elsewhere by now.
  [/^25006$/, 'it takes no writes', true],
  [/^40001$|^40P01$/, 'other writers were in the way', false],
  [/^57014$/, 'the statement took too long', false],
  [/^25P0[34]$/, 'the transaction waited for too long', true],
  // A new connection knows no named statement, and names it again.
  [/^26000$|^42P05$/, `a prepared statement was not there. ${POOLER}`, true],
]

const lasting: Readonly<Record<string, Sentence>> = {
  '53100': ['disk_full', () => 'The disk of the database is full. Nothing was written; make room and try again.'],
  '28P01': ['invalid_config', refused],
  '28000': ['invalid_config', refused],
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

function tablesGoneText(peer: Peer): string {
  return `The tables of the store are gone from the database "${peer.database}" at ${peer.host}. Restore them from a backup, then start again. Nothing was written.`
}

function refused(peer: Peer): string {
  return `The server at ${peer.host} refused the user "${peer.user}": check the user and the password of the URL, and its pg_hba.conf.`
}

/** Of the machine and the network between. */
const reach = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'])
const names = new Set(['ENOTFOUND', 'EAI_AGAIN'])

/**
 * What an error of a statement means. `sent`: it had left, so a connection that broke may have done it. `broken`: the connection is
 * of no more use, whatever the error says.
 */
export function troubleOf(error: unknown, peer: Peer, { sent, broken }: { sent: boolean; broken: boolean }): Trouble {
  const { code, message, routine } = shape(error)
  if (error instanceof Fault) return { type: 'final', error }
  if (code === '22012') return { type: 'stale' }
  if (code === MOVED_STATE) return { type: 'final', error: new Fault('store_replaced', message) }
  // Another process has changed the tables under a named statement.
  if (routine === 'RevalidateCachedQuery')
    return { type: 'again', fault: busyFault(peer, 'its tables were changed', detail(code, message)), drop: true }
  if (code === '55P03')
    return { type: 'locked', fault: busyFault(peer, 'others kept their locks for too long', detail(code, message)) }
  const known = lasting[code]
  if (known) return { type: 'final', error: new Fault(known[0], known[1](peer, message), detail(code, message)) }
  const found = passing.find(([pattern]) => pattern.test(code))
  const why = found?.[1] ?? (code === '' || reach.has(code) || names.has(code) ? 'it did not answer' : null)
  const ended = broken || reach.has(code) || names.has(code)
  if (found === undefined && !ended) return { type: 'final', error: bare(error, code, message) }
  const gone = ended || (found !== undefined && /^08|^57P0/.test(code))
  if (sent && gone) return { type: 'lost', fault: lostFault(peer, detail(code, message)) }
  return {
    type: 'again',
    fault: busyFault(peer, why ?? 'it did not answer', detail(code, message)),
    drop: gone || found?.[2] === true,
  }
}

/** Of a connection that could not be made. `first`: none was made before, so a name that is unknown is taken for a wrong one. */
export function connectTroubleOf(error: unknown, peer: Peer, first: boolean): Trouble {
  if (error instanceof Fault) return { type: 'final', error }
  const { code, message } = shape(error)
  if (first && names.has(code)) {
    const text = `The host of ${peer.host} is not known. Correct the URL of the database.`
    return { type: 'final', error: new Fault('invalid_config', text, detail(code, message)) }
  }
  if (/startup parameter/.test(message)) {
    const text = `The server at ${peer.host} refused how it was asked. ${POOLER}`
    return { type: 'final', error: new Fault('invalid_config', text, detail(code, message)) }
  }
  // A server that is not one, a certificate that is not believed: waiting does not help.
  const file = error instanceof Error && 'syscall' in error && error.syscall === 'open'
  const stranger = file || (code !== '' && !reach.has(code) && !names.has(code) && !isState(code))
  if (stranger || /SSL/.test(message)) {
    const text = `No safe connection to the server at ${peer.host} could be made (${message}). Check sslmode and its certificates.`
    return { type: 'final', error: new Fault('invalid_config', text, code) }
  }
  return troubleOf(error, peer, { sent: false, broken: true })
}

/** The wait for the copy of a write was cut off: the server says done, and its next primary may know nothing of it. */
export function isUnreplicated(notice: { readonly routine?: string | undefined }): boolean {
  return notice.routine === 'SyncRepWaitForLSN'
}

function lostFault(peer: Peer, said: string): Fault {
  const text = `The database at ${peer.host} did not answer, and it is not known whether the write was done. The same write again is safe.`
  return new Fault('store_busy', text, said)
}

export function busyFault(peer: Peer, why: string, said = ''): Fault {
  return new Fault('store_busy', `The database at ${peer.host} could not be used: ${why}. ${NOTHING}`, said)
}

export function closedFault(): Fault {
  return new Fault('store_closed', 'The store is closed. Open a new one.')
}

function isState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code)
}

function detail(code: string, message: string): string {
  return code === '' ? message : `${code}: ${message}`
}

/** A mistake of ours. Without what the server adds to it, which may hold values. */
function bare(error: unknown, code: string, message: string): Error {
  return isState(code) || !(error instanceof Error) ? new Error(detail(code, message)) : error
}

function shape(error: unknown): { readonly code: string; readonly message: string; readonly routine: string } {
  if (!(error instanceof Error)) return { code: '', message: String(error), routine: '' }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const routine = 'routine' in error && typeof error.routine === 'string' ? error.routine : ''
  // Of several addresses of one name that were all tried.
  const inner = error instanceof AggregateError ? (error.errors as readonly unknown[])[0] : null
  return inner instanceof Error && code === '' ? shape(inner) : { code, message: error.message || code, routine }
}
