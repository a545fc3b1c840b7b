// The connections of one store: lane (writes), reader, heartbeat and ear (notifications). Each opens when it is needed,
// reconnects when it is lost, and does not keep an idle process alive. database-trouble.ts interprets errors,
// database-hosts.ts finds the server.
import type pg from 'pg'
import { assert, Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { keepProcessAlive, steadyClock } from '../plan/system-clock.ts'
import type { ConnectOptions } from './connect-options.ts'
import { type PrimaryConnection, DatabaseHosts, type MakeClient, withUrlOptions } from './database-hosts.ts'
import { LockedError, type Sql, type PostgresValue, StaleError, UnknownOutcomeError } from './sql.ts'
import {
  databaseBusyFault,
  closedStoreFault,
  isUnreplicated,
  Patience,
  type DatabaseTrouble,
  classifyTrouble,
} from './database-trouble.ts'

const PATIENCE_MS = 10_000
const CONNECT_MS = 3_000
const STATEMENT_MS = 8_000
/** The server times out first and reports it. A silent server is given up this much later. */
const SILENCE_MS = 1_000
/** After this long without an answer the other hosts are asked. */
const DOUBT_MS = 2_000
const LOCK_MS = 1_000
const IDLE_IN_TRANSACTION_MS = 10_000
/** How long a count of all rows, or rewriting a table, may take. */
const LONG_STATEMENT_MS = 3_600_000
const KEEP_ALIVE_MS = 10_000
const FAREWELL_MS = 1_000

export type AskOptions = {
  /** Shared by all tries of one operation. Default: a new one. */
  readonly patience?: Patience
  /**
   * Default: the option `statementTimeoutMs`. This is only the client's limit: a longer statement must also raise the
   * server's.
   */
  readonly timeoutMs?: number
  /** The statement does not keep the process alive. */
  readonly idle?: boolean
  readonly unsorted?: boolean
  /** Waits for a locked row, also on the lane. */
  readonly waits?: boolean
  /** For a transaction: neither side limits the time of its statements. */
  readonly isLong?: boolean
}

/**
 * On the lane a lost answer rejects with `UnknownOutcomeError`, and a locked row with `LockedError`, because its owner
 * must plan again. The other connections just ask again.
 */
export type ConnectionRole = 'lane' | 'reader' | 'heartbeat' | 'ear'

export class PostgresConnections {
  readonly lane: DatabaseConnection
  /** Only for reads and hints: it does not wait until its writes are on a disk. */
  readonly reader: DatabaseConnection
  /** Only for heartbeats: a lease must not end because a write waits for a lock. */
  readonly heartbeat: DatabaseConnection
  /** Listens, and is never in a transaction. Null without a way to listen: hints are off, or only a pooler is known. */
  readonly ear: DatabaseConnection | null
  /** Whether hints are sent. */
  readonly hints: boolean
  readonly #clock: Clock
  readonly #options: ConnectOptions
  #id = ''

  /** CONNECT_OPTIONS has checked `given` already. `clock` must be one that cannot be set. */
  constructor(given: ConnectOptions, clock: Clock = steadyClock) {
    const options = withUrlOptions(given)
    const { url, direct, pooled = false, hints = true } = options
    const answerMs = options.connectTimeoutMs ?? CONNECT_MS
    const hosts = new DatabaseHosts(url, clock, answerMs)
    this.hints = hints
    this.#clock = clock
    this.#options = options
    this.lane = new DatabaseConnection('lane', { options, clock, hosts, pooled })
    this.reader = new DatabaseConnection('reader', { options, clock, hosts, pooled })
    this.heartbeat = new DatabaseConnection('heartbeat', { options, clock, hosts, pooled })
    const heard = direct === undefined ? (pooled ? null : hosts) : new DatabaseHosts(direct, clock, answerMs)
    this.ear = hints && heard ? new DatabaseConnection('ear', { options, clock, hosts: heard, pooled: false }) : null
  }

  /** A unique id for this process's own hints and channels. Known after the first `open`. */
  get id(): string {
    return this.#id
  }

  /** Connects the lane and refuses an unusable server before anything is written. May be called again. */
  async open(): Promise<void> {
    const text = "select replace(gen_random_uuid()::text, '-', '') as id"
    const patience = this.patience()
    for (;;) {
      try {
        const [row] = await this.lane.ask<{ id: string }>('terret_open', text, [], { patience })
        this.#id ||= row?.id ?? ''
        return
      } catch (error) {
        if (!(error instanceof UnknownOutcomeError)) throw error
        await patience.after(error.fault)
      }
    }
  }

  /** The number of connections made so far. */
  get made(): number {
    return this.lane.made + this.reader.made + this.heartbeat.made + (this.ear?.made ?? 0)
  }

  get patienceMs(): number {
    return this.#options.patienceMs ?? PATIENCE_MS
  }

  patience(): Patience {
    return new Patience(this.#clock, this.patienceMs)
  }

  /** Finishes earlier requests; later ones are refused with `store_closed`. */
  async close(): Promise<void> {
    await Promise.all([this.lane.close(), this.reader.close(), this.heartbeat.close(), this.ear?.close()])
  }
}

type ConnectionSetup = {
  readonly options: ConnectOptions
  readonly clock: Clock
  readonly hosts: DatabaseHosts
  readonly pooled: boolean
}

type OpenConnection = PrimaryConnection & {
  /** The statements sent and not answered, the oldest first: a notice belongs to that one. */
  readonly waiting: PendingStatement[]
  broken: boolean
}

type PendingStatement = { unreplicated: boolean; readonly end: (error: Error | null, answer?: StatementAnswer) => void }
type ResultRows = readonly object[]
type StatementAnswer = { readonly rows: ResultRows; readonly command: string }
type Statement = {
  readonly name: string
  readonly text: string
  readonly values: readonly PostgresValue[]
  readonly timeoutMs: number
}
type OpenResult =
  | { readonly type: 'wire'; readonly wire: OpenConnection }
  | { readonly type: 'none'; readonly trouble: DatabaseTrouble }

/** A statement failed inside a transaction, which must start again, or has an unknown end. */
class TransactionInterrupted extends Error {
  readonly trouble: DatabaseTrouble
  constructor(trouble: DatabaseTrouble) {
    super('The transaction was interrupted.')
    this.trouble = trouble
  }
}

export class DatabaseConnection implements Sql {
  readonly #role: ConnectionRole
  readonly #set: ConnectionSetup
  readonly #statementMs: number
  /**
   * The settings at the start of each transaction where they cannot last: a pooler may use another server process for
   * the next one.
   */
  readonly #begin: string
  #opening: Promise<OpenResult> | null = null
  #wire: OpenConnection | null = null
  /** A transaction is in progress: other requests wait until it is over. */
  #alone: Promise<void> | null = null
  #held = 0
  #letGo: () => void = () => {}
  #onIdle: () => void = () => {}
  #closed = false
  /** The number of connections it has made. */
  made = 0
  /** `onConnect` is called after connecting, before any other statement; `onLost` when the connection is gone. */
  onConnect: (run: (text: string) => Promise<unknown>) => Promise<void> = async () => {}
  onLost: () => void = () => {}
  onNotification: (channel: string, payload: string) => void = () => {}

  constructor(role: ConnectionRole, set: ConnectionSetup) {
    const { pooled, options, hosts } = set
    this.#role = role
    this.#set = set
    this.#statementMs = options.statementTimeoutMs ?? STATEMENT_MS
    const local = { ...timeoutSettings(this.#statementMs), ...SETTINGS[role] }
    const settings = Object.entries(local).map(([name, value]) => `; set local ${name} = ${value}`)
    this.#begin = pooled ? `begin${settings.join('')}` : 'begin'
    hosts.whenNewer((timeline) => {
      if (this.#wire && this.#wire.timeline < timeline) this.#drop(this.#wire)
    })
  }

  /**
   * Returns the rows of one statement, and asks again while the trouble is temporary. On the lane a lost answer rejects
   * with `UnknownOutcomeError`, and the store plans again. Elsewhere the statement is simply repeated, so only
   * repeatable statements belong there.
   */
  async ask<Row extends object>(
    name: string,
    text: string,
    values: readonly PostgresValue[] = [],
    options: AskOptions = {},
  ): Promise<readonly Row[]> {
    const patience = options.patience ?? this.#patience()
    const statement = { name, text, values, timeoutMs: options.timeoutMs ?? this.#statementMs }
    return this.#holding(options.idle === true, async () => {
      for (;;) {
        const wire = await this.#connected(patience)
        if (this.#alone) {
          await this.#alone
          continue
        }
        try {
          const isWrapped = this.#set.pooled || options.unsorted === true
          const { rows } = await (isWrapped ? this.#wrapped(wire, statement, options) : this.#send(wire, statement))
          // The caller states the row type; nothing here can check it.
          return rows as readonly Row[]
        } catch (error) {
          await this.#afterTrouble(this.#troubleOf(error, wire), patience, options)
        }
      }
    })
  }

  /**
   * Runs several statements as one transaction, alone on this connection. `work` starts again from its beginning after
   * temporary trouble if nothing of it is done; a lost answer to the commit rejects with `UnknownOutcomeError`. `work`
   * must use only `sql`: other requests on this connection wait until the transaction is over.
   */
  async transaction<T>(work: (sql: Sql) => Promise<T>, options: AskOptions = {}): Promise<T> {
    const patience = options.patience ?? this.#patience()
    return this.#holding(false, async () => {
      while (this.#alone) await this.#alone
      let over = (): void => {}
      this.#alone = new Promise((resolve) => void (over = resolve))
      try {
        for (;;) {
          const wire = await this.#connected(patience)
          const ended = await this.#attempt(wire, work, options)
          if ('done' in ended) return ended.done
          await this.#afterTrouble(ended.trouble, patience, { ...options, committing: ended.committing })
        }
      } finally {
        this.#alone = null
        over()
      }
    })
  }

  /** If another host has become the primary, drops the connection to the older one. Never rejects. */
  async look(): Promise<void> {
    const { hosts } = this.#set
    if (hosts.all.length > 1 && !this.#closed) await this.#maker().then((make) => hosts.look(make))
  }

  /** The next statement gets a new connection. */
  drop(): void {
    if (this.#wire) this.#drop(this.#wire)
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#held > 0) await new Promise<void>((done) => void (this.#onIdle = done))
    const wire = this.#wire
    this.#wire = null
    if (!wire) return
    const release = keepProcessAlive()
    const cut = this.#set.clock.timer(FAREWELL_MS, wire.end)
    await wire.client.end().catch(() => {})
    cut()
    release()
  }

  async #attempt<T>(
    wire: OpenConnection,
    work: (sql: Sql) => Promise<T>,
    options: AskOptions,
  ): Promise<TransactionEnd<T>> {
    const { isLong = false } = options
    const timeoutMs = isLong ? LONG_STATEMENT_MS : (options.timeoutMs ?? this.#statementMs)
    let committing = false
    const run = async (name: string, text: string, values: readonly PostgresValue[] = []): Promise<StatementAnswer> => {
      try {
        return await this.#send(wire, { name, text, values, timeoutMs })
      } catch (error) {
        const trouble = this.#troubleOf(error, wire)
        if (trouble.type === 'stale') throw new StaleError()
        throw trouble.type === 'final' ? trouble.error : new TransactionInterrupted(trouble)
      }
    }
    try {
      await run('', isLong ? `${this.#begin}; set local statement_timeout = 0` : this.#begin)
      const done = await work({
        ask: async <Row extends object>(...[name, text, values]: Parameters<Sql['ask']>) =>
          (await run(name, text, values)).rows as readonly Row[],
      })
      committing = true
      const { command } = await run('', 'commit')
      // A statement that failed inside, ignored by `work`, turns the commit into a rollback.
      assert(command === 'COMMIT', 'a transaction goes on after one of its statements failed')
      return { done }
    } catch (error) {
      if (!wire.broken && !committing) await run('', 'rollback').catch(() => this.#drop(wire))
      if (error instanceof TransactionInterrupted) return { trouble: error.trouble, committing }
      throw error
    }
  }

  /** Resolves when the next try is due. */
  async #afterTrouble(trouble: DatabaseTrouble, patience: Patience, options: RetryOptions): Promise<void> {
    const { committing = this.#role === 'lane', waits = false } = options
    if (trouble.type === 'stale') throw new StaleError()
    if (trouble.type === 'final') throw trouble.error
    if (trouble.type === 'lost' && committing) throw new UnknownOutcomeError(trouble.fault)
    if (trouble.type === 'locked' && this.#role === 'lane' && !waits) throw new LockedError(trouble.fault)
    await patience.after(trouble.fault)
  }

  #troubleOf(error: unknown, wire: OpenConnection): DatabaseTrouble {
    const trouble = classifyTrouble(error, wire.host, { sent: true, broken: wire.broken })
    if (trouble.type === 'lost' || (trouble.type === 'again' && trouble.drop)) this.#drop(wire)
    return trouble
  }

  /** Runs a transaction in one round trip, for settings that must not last. */
  async #wrapped(
    wire: OpenConnection,
    statement: Statement,
    { unsorted = false }: AskOptions,
  ): Promise<StatementAnswer> {
    const plain = { name: '', values: [], timeoutMs: statement.timeoutMs }
    const [begun, asked, ended] = await Promise.allSettled([
      this.#send(wire, { ...plain, text: unsorted ? `${this.#begin}; set local enable_sort = off` : this.#begin }),
      this.#send(wire, statement),
      this.#send(wire, { ...plain, text: 'commit' }),
    ])
    for (const one of [begun, asked, ended]) if (one.status === 'rejected') throw one.reason
    return asked.status === 'fulfilled' ? asked.value : { rows: [], command: '' }
  }

  #send(wire: OpenConnection, { name, text, values, timeoutMs }: Statement): Promise<StatementAnswer> {
    const { pooled, clock, hosts } = this.#set
    return new Promise<StatementAnswer>((resolve, reject) => {
      const silent = clock.timer(timeoutMs + SILENCE_MS, () => this.#drop(wire))
      const doubt = hosts.all.length > 1 ? clock.timer(DOUBT_MS, () => void this.look()) : null
      const waiting: PendingStatement = {
        unreplicated: false,
        end: (error, answer = { rows: [], command: '' }) => {
          silent()
          doubt?.()
          const place = wire.waiting.indexOf(waiting)
          if (place >= 0) wire.waiting.splice(place, 1)
          if (error) reject(error)
          else if (waiting.unreplicated) reject(this.#unreplicated(wire))
          else resolve(answer)
        },
      }
      wire.waiting.push(waiting)
      // By a callback, so that it has left the list before a notice about the next statement arrives in the same
      // packet.
      wire.client.query(
        { name: pooled ? '' : name, text, values: [...values] },
        (error: Error | null, result?: pg.QueryResult<object>) => waiting.end(error, result),
      )
    })
  }

  /** The write is on this server, and perhaps on no other. Reconnecting asks for the primary again. */
  #unreplicated(wire: OpenConnection): Error {
    this.#drop(wire)
    return Object.assign(new Error('the wait for synchronous replication was cancelled'), { code: '08006' })
  }

  async #connected(patience: Patience): Promise<OpenConnection> {
    for (;;) {
      if (this.#closed && this.#held === 0) throw closedStoreFault()
      const opening = (this.#opening ??= this.#open())
      const opened = await opening
      if (opened.type === 'wire' && !opened.wire.broken) return opened.wire
      if (this.#opening === opening) this.#opening = null
      if (opened.type === 'wire') continue
      const { trouble } = opened
      if (trouble.type === 'final') throw trouble.error
      await patience.after(
        'fault' in trouble ? trouble.fault : databaseBusyFault(this.#set.hosts.peer, 'it did not answer'),
      )
    }
  }

  async #open(): Promise<OpenResult> {
    const { hosts, pooled } = this.#set
    const make = await this.#maker().catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    )
    if (make instanceof Error) return { type: 'none', trouble: { type: 'final', error: make } }
    const found = await hosts.connect(make)
    if (found.type === 'none') return found
    const { connected } = found
    if (this.#closed && this.#held === 0) {
      connected.end()
      return { type: 'none', trouble: { type: 'final', error: closedStoreFault() } }
    }
    const wire: OpenConnection = { ...connected, waiting: [], broken: false }
    const gone = (): void => this.#drop(wire)
    wire.client.on('error', gone)
    wire.client.on('end', gone)
    wire.client.on('notice', (notice) => {
      const [first] = wire.waiting
      if (first && isUnreplicated(notice)) first.unreplicated = true
    })
    wire.client.on('notification', ({ channel, payload = '' }) => this.onNotification(channel, payload))
    this.#wire = wire
    this.made += 1
    try {
      const run = (text: string): Promise<StatementAnswer> =>
        this.#send(wire, { name: '', text, values: [], timeoutMs: this.#statementMs })
      const settings = pooled ? null : settingsText(this.#role)
      if (settings !== null) await run(settings)
      await this.onConnect(run)
      return { type: 'wire', wire }
    } catch (error) {
      this.#drop(wire)
      return { type: 'none', trouble: classifyTrouble(error, wire.host, { sent: false, broken: true }) }
    }
  }

  #drop(wire: OpenConnection): void {
    if (wire.broken) return
    wire.broken = true
    wire.end()
    for (const waiting of wire.waiting.splice(0)) waiting.end(new Error('the connection was dropped'))
    if (this.#wire !== wire) return
    this.#wire = null
    this.#opening = null
    this.onLost()
  }

  async #maker(): Promise<MakeClient> {
    const { Client, types } = await loadPg()
    const { Socket } = process.getBuiltinModule('node:net')
    const { pooled } = this.#set
    const own = pooled ? {} : timeoutSettings(this.#statementMs)
    return (host) => {
      const socket = new Socket()
      socket.unref()
      const client = new Client({
        application_name: `terret ${this.#role}`,
        connectionString: host.url,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
        pipeline: true,
        stream: () => socket,
        types: { getTypeParser: (oid, format): unknown => typeParser(oid) ?? types.getTypeParser(oid, format) },
        ...own,
      })
      // A client that is no longer awaited may still fail.
      client.on('error', () => {})
      return { client, socket }
    }
  }

  #patience(): Patience {
    return new Patience(this.#set.clock, this.#set.options.patienceMs ?? PATIENCE_MS)
  }

  /** Keeps the process alive while this runs, and `close` waits for it. */
  async #holding<T>(idle: boolean, work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw closedStoreFault()
    if (idle) return work()
    this.#held += 1
    if (this.#held === 1) this.#letGo = keepProcessAlive()
    try {
      return await work()
    } finally {
      this.#held -= 1
      if (this.#held === 0) {
        this.#letGo()
        this.#onIdle()
      }
    }
  }
}

type RetryOptions = { readonly committing?: boolean; readonly waits?: boolean }

type TransactionEnd<T> = { readonly done: T } | { readonly trouble: DatabaseTrouble; readonly committing: boolean }

/**
 * The lane's statements find few rows by keys. They are planned once, and never with a full table scan, which the
 * planner prefers for small tables and would keep as they grow. No statement of a store is worth compiling (`jit`): it
 * finds few rows, but a disabled plan type counts as an enormous cost, for which the server would compile for seconds.
 */
const SETTINGS: Readonly<Record<ConnectionRole, Readonly<Record<string, string>>>> = {
  lane: { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off', jit: 'off' },
  reader: { synchronous_commit: 'off', jit: 'off' },
  heartbeat: { jit: 'off' },
  ear: {},
}

function settingsText(role: ConnectionRole): string | null {
  const set = Object.entries(SETTINGS[role]).map(([name, value]) => `set_config('${name}', '${value}', false)`)
  return set.length > 0 ? `select ${set.join(', ')}` : null
}

function timeoutSettings(statementMs: number): Readonly<Record<string, number>> {
  return {
    statement_timeout: Math.ceil(statementMs),
    lock_timeout: Math.min(LOCK_MS, Math.ceil(statementMs)),
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
  }
}

/** An optional peer dependency, loaded with the first connection. */
async function loadPg(): Promise<typeof pg> {
  const { default: found } = await import('pg').catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
    throw new Fault('invalid_config', 'A store in Postgres needs a package of its own. Run: npm install pg')
  })
  if (!('pipeline' in new found.Client({ host: 'localhost' })))
    throw new Fault('invalid_config', 'The package pg is too old for a store. Run: npm install pg@^8.23')
  return found
}

const BIGINT = 20
const BIGINTS = 1016

function typeParser(oid: number): ((text: string) => unknown) | null {
  if (oid === BIGINT) return parseBigint
  if (oid === BIGINTS) return (text) => text.slice(1, -1).split(',').filter(Boolean).map(parseBigint)
  return null
}

function parseBigint(text: string): number {
  const number = Number(text)
  if (Number.isSafeInteger(number)) return number
  throw new Fault(
    'store_damaged',
    'The database holds a number beyond 2^53, which no writer wrote. Restore it from a backup.',
  )
}
