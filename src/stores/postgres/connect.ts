// The connections of one store: lane (writes), reader, heartbeat and ear, each opened when it is needed, made anew when it is lost, and no
// reason for the process to stay alive while it is idle. What an error means is trouble.ts, where the server is hosts.ts.
import type pg from 'pg'
import { assert, Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { holdProcess, steadyClock } from '../plan/clock.ts'
import type { ConnectOptions } from './connect-options.ts'
import { type Connected, Hosts, type MakeClient, withOwn } from './hosts.ts'
import { Locked, type Sql, type SqlValue, Stale, Unknown } from './sql.ts'
import { busyFault, closedFault, isUnreplicated, Patience, type Trouble, troubleOf } from './trouble.ts'

const PATIENCE_MS = 10_000
const CONNECT_MS = 3_000
const STATEMENT_MS = 8_000
/** The server gives up first, and says so. One that says nothing is given up this much later. */
const SILENCE_MS = 1_000
/** A statement without an answer for so long is a reason to ask the other hosts. */
const DOUBT_MS = 2_000
const LOCK_MS = 1_000
const IDLE_IN_TRANSACTION_MS = 10_000
/** What a count of all rows or a table that is written again may take. */
const LONG_STATEMENT_MS = 3_600_000
const KEEP_ALIVE_MS = 10_000
const FAREWELL_MS = 1_000

export type AskOptions = {
  /** One for all tries of one thing. Default: a new one. */
  readonly patience?: Patience
  /** Default: the option `statementTimeoutMs`. Only the client's limit: a statement that needs more must also set the server's. */
  readonly timeoutMs?: number
  /** It does not keep the process alive. */
  readonly idle?: boolean
  readonly unsorted?: boolean
  /** A locked row is waited for, also on the lane. */
  readonly waits?: boolean
  /** Of a transaction: neither side limits how long one of its statements takes. */
  readonly isLong?: boolean
}

/**
 * The lane: its lost answers reject with `Unknown`, and locked rows with `Locked`, as they are for its owner to plan anew. The others
 * just ask again.
 */
export type Role = 'lane' | 'reader' | 'heartbeat' | 'ear'

export class Connections {
  readonly lane: Link
  /** Only for reads and hints: it does not wait until what it writes is on a disk. */
  readonly reader: Link
  /** Only for heartbeats: a lease must not end because a write waits for a lock. */
  readonly heartbeat: Link
  /** It listens, and is never in a transaction. Null where nothing can be heard: hints are off, or only a pooler is known. */
  readonly ear: Link | null
  /** Whether hints are sent. */
  readonly hints: boolean
  readonly #clock: Clock
  readonly #options: ConnectOptions
  #id = ''

  /** `given` are checked already, by CONNECT_OPTIONS of hosts.ts. `clock` is one that cannot be set. */
  constructor(given: ConnectOptions, clock: Clock = steadyClock) {
    const options = withOwn(given)
    const { url, direct, pooled = false, hints = true } = options
    const answerMs = options.connectTimeoutMs ?? CONNECT_MS
    const hosts = new Hosts(url, clock, answerMs)
    this.hints = hints
    this.#clock = clock
    this.#options = options
    this.lane = new Link('lane', { options, clock, hosts, pooled })
    this.reader = new Link('reader', { options, clock, hosts, pooled })
    this.heartbeat = new Link('heartbeat', { options, clock, hosts, pooled })
    const heard = direct === undefined ? (pooled ? null : hosts) : new Hosts(direct, clock, answerMs)
    this.ear = hints && heard ? new Link('ear', { options, clock, hosts: heard, pooled: false }) : null
  }

  /** As no other calls itself: for its own hints and channels. Known from the first `open` on. */
  get id(): string {
    return this.#id
  }

  /** Connects the lane, and refuses what cannot be used, before anything is written. May be called again. */
  async open(): Promise<void> {
    const text = "select replace(gen_random_uuid()::text, '-', '') as id"
    const patience = this.patience()
    for (;;) {
      try {
        const [row] = await this.lane.ask<{ id: string }>('terret_open', text, [], { patience })
        this.#id ||= row?.id ?? ''
        return
      } catch (error) {
        if (!(error instanceof Unknown)) throw error
        await patience.after(error.fault)
      }
    }
  }

  /** How many connections were made so far. */
  get made(): number {
    return this.lane.made + this.reader.made + this.heartbeat.made + (this.ear?.made ?? 0)
  }

  get patienceMs(): number {
    return this.#options.patienceMs ?? PATIENCE_MS
  }

  patience(): Patience {
    return new Patience(this.#clock, this.patienceMs)
  }

  /** What was asked is waited for; what is asked from now on is refused with `store_closed`. */
  async close(): Promise<void> {
    await Promise.all([this.lane.close(), this.reader.close(), this.heartbeat.close(), this.ear?.close()])
  }
}

type Setting = {
  readonly options: ConnectOptions
  readonly clock: Clock
  readonly hosts: Hosts
  readonly pooled: boolean
}

type Wire = Connected & {
  /** Of what was sent and not answered, the oldest first: a notice is about that one. */
  readonly waiting: Waiting[]
  broken: boolean
}

type Waiting = { unreplicated: boolean; readonly end: (error: Error | null, answer?: Answer) => void }
type Rows = readonly object[]
type Answer = { readonly rows: Rows; readonly command: string }
type Statement = {
  readonly name: string
  readonly text: string
  readonly values: readonly SqlValue[]
  readonly timeoutMs: number
}
type Opened = { readonly type: 'wire'; readonly wire: Wire } | { readonly type: 'none'; readonly trouble: Trouble }

/** The statement failed inside of a transaction, which must be begun again, or whose end is not known. */
class Interrupted extends Error {
  readonly trouble: Trouble
  constructor(trouble: Trouble) {
    super('The transaction was interrupted.')
    this.trouble = trouble
  }
}

export class Link implements Sql {
  readonly #role: Role
  readonly #set: Setting
  readonly #statementMs: number
  /** What each transaction begins with where settings cannot last: behind a pooler the next one is another server process's. */
  readonly #begin: string
  #opening: Promise<Opened> | null = null
  #wire: Wire | null = null
  /** A transaction is under way: others wait until it is over. */
  #alone: Promise<void> | null = null
  #held = 0
  #letGo: () => void = () => {}
  #onIdle: () => void = () => {}
  #closed = false
  /** How many connections it made. */
  made = 0
  /** Called when a connection was made, before anything else is asked on it; and when it is gone. */
  onConnect: (run: (text: string) => Promise<unknown>) => Promise<void> = async () => {}
  onLost: () => void = () => {}
  onNotification: (channel: string, payload: string) => void = () => {}

  constructor(role: Role, set: Setting) {
    const { pooled, options, hosts } = set
    this.#role = role
    this.#set = set
    this.#statementMs = options.statementTimeoutMs ?? STATEMENT_MS
    const local = { ...limits(this.#statementMs), ...SETTINGS[role] }
    const settings = Object.entries(local).map(([name, value]) => `; set local ${name} = ${value}`)
    this.#begin = pooled ? `begin${settings.join('')}` : 'begin'
    hosts.whenNewer((timeline) => {
      if (this.#wire && this.#wire.timeline < timeline) this.#drop(this.#wire)
    })
  }

  /**
   * Rows of one statement, asked again while the trouble is one that passes. On the lane a statement whose answer was lost rejects
   * with `Unknown`: the store plans anew. Elsewhere it is simply asked again, so only statements that may run twice belong there.
   */
  async ask<Row extends object>(
    name: string,
    text: string,
    values: readonly SqlValue[] = [],
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
          // The caller names what its statement gives: nothing here could check that.
          return rows as readonly Row[]
        } catch (error) {
          await this.#afterTrouble(this.#troubleOf(error, wire), patience, options)
        }
      }
    })
  }

  /**
   * Several statements as one transaction, alone on this connection. `work` runs again, from its beginning, when the trouble is one
   * that passes and nothing of it is done; a commit whose answer was lost rejects with `Unknown`. It asks by `sql` alone: whatever
   * else is asked on this connection waits until the transaction is over.
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

  /** Whether another host is the primary by now; if so the connection to the older one is dropped. Never rejects. */
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
    const release = holdProcess()
    const cut = this.#set.clock.timer(FAREWELL_MS, wire.end)
    await wire.client.end().catch(() => {})
    cut()
    release()
  }

  async #attempt<T>(wire: Wire, work: (sql: Sql) => Promise<T>, options: AskOptions): Promise<Ended<T>> {
    const { isLong = false } = options
    const timeoutMs = isLong ? LONG_STATEMENT_MS : (options.timeoutMs ?? this.#statementMs)
    let committing = false
    const run = async (name: string, text: string, values: readonly SqlValue[] = []): Promise<Answer> => {
      try {
        return await this.#send(wire, { name, text, values, timeoutMs })
      } catch (error) {
        const trouble = this.#troubleOf(error, wire)
        if (trouble.type === 'stale') throw new Stale()
        throw trouble.type === 'final' ? trouble.error : new Interrupted(trouble)
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
      // What had failed inside and was passed over by `work` makes a rollback of it.
      assert(command === 'COMMIT', 'a transaction goes on after one of its statements failed')
      return { done }
    } catch (error) {
      if (!wire.broken && !committing) await run('', 'rollback').catch(() => this.#drop(wire))
      if (error instanceof Interrupted) return { trouble: error.trouble, committing }
      throw error
    }
  }

  /** Resolves when it is to be tried again. */
  async #afterTrouble(trouble: Trouble, patience: Patience, options: After): Promise<void> {
    const { committing = this.#role === 'lane', waits = false } = options
    if (trouble.type === 'stale') throw new Stale()
    if (trouble.type === 'final') throw trouble.error
    if (trouble.type === 'lost' && committing) throw new Unknown(trouble.fault)
    if (trouble.type === 'locked' && this.#role === 'lane' && !waits) throw new Locked(trouble.fault)
    await patience.after(trouble.fault)
  }

  #troubleOf(error: unknown, wire: Wire): Trouble {
    const trouble = troubleOf(error, wire.host, { sent: true, broken: wire.broken })
    if (trouble.type === 'lost' || (trouble.type === 'again' && trouble.drop)) this.#drop(wire)
    return trouble
  }

  /** As one transaction, in one round trip: for settings that must not last. */
  async #wrapped(wire: Wire, statement: Statement, { unsorted = false }: AskOptions): Promise<Answer> {
    const plain = { name: '', values: [], timeoutMs: statement.timeoutMs }
    const [begun, asked, ended] = await Promise.allSettled([
      this.#send(wire, { ...plain, text: unsorted ? `${this.#begin}; set local enable_sort = off` : this.#begin }),
      this.#send(wire, statement),
      this.#send(wire, { ...plain, text: 'commit' }),
    ])
    for (const one of [begun, asked, ended]) if (one.status === 'rejected') throw one.reason
    return asked.status === 'fulfilled' ? asked.value : { rows: [], command: '' }
  }

  #send(wire: Wire, { name, text, values, timeoutMs }: Statement): Promise<Answer> {
    const { pooled, clock, hosts } = this.#set
    return new Promise<Answer>((resolve, reject) => {
      const silent = clock.timer(timeoutMs + SILENCE_MS, () => this.#drop(wire))
      const doubt = hosts.all.length > 1 ? clock.timer(DOUBT_MS, () => void this.look()) : null
      const waiting: Waiting = {
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
      // By a callback, so that it has left the list when a notice about the next one comes in the same packet.
      wire.client.query(
        { name: pooled ? '' : name, text, values: [...values] },
        (error: Error | null, result?: pg.QueryResult<object>) => waiting.end(error, result),
      )
    })
  }

  /** The write is on this server, and perhaps on no other. Whoever is the primary is asked anew. */
  #unreplicated(wire: Wire): Error {
    this.#drop(wire)
    return Object.assign(new Error('the wait for synchronous replication was cancelled'), { code: '08006' })
  }

  async #connected(patience: Patience): Promise<Wire> {
    for (;;) {
      if (this.#closed && this.#held === 0) throw closedFault()
      const opening = (this.#opening ??= this.#open())
      const opened = await opening
      if (opened.type === 'wire' && !opened.wire.broken) return opened.wire
      if (this.#opening === opening) this.#opening = null
      if (opened.type === 'wire') continue
      const { trouble } = opened
      if (trouble.type === 'final') throw trouble.error
      await patience.after('fault' in trouble ? trouble.fault : busyFault(this.#set.hosts.peer, 'it did not answer'))
    }
  }

  async #open(): Promise<Opened> {
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
      return { type: 'none', trouble: { type: 'final', error: closedFault() } }
    }
    const wire: Wire = { ...connected, waiting: [], broken: false }
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
      const run = (text: string): Promise<Answer> =>
        this.#send(wire, { name: '', text, values: [], timeoutMs: this.#statementMs })
      const settings = pooled ? null : settingsText(this.#role)
      if (settings !== null) await run(settings)
      await this.onConnect(run)
      return { type: 'wire', wire }
    } catch (error) {
      this.#drop(wire)
      return { type: 'none', trouble: troubleOf(error, wire.host, { sent: false, broken: true }) }
    }
  }

  #drop(wire: Wire): void {
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
    const { Client, types } = await load()
    const { Socket } = process.getBuiltinModule('node:net')
    const { pooled } = this.#set
    const own = pooled ? {} : limits(this.#statementMs)
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
        types: { getTypeParser: (oid, format): unknown => parserOf(oid) ?? types.getTypeParser(oid, format) },
        ...own,
      })
      // One that nobody waits for any more may still fail.
      client.on('error', () => {})
      return { client, socket }
    }
  }

  #patience(): Patience {
    return new Patience(this.#set.clock, this.#set.options.patienceMs ?? PATIENCE_MS)
  }

  /** The process lives while this is under way, and `close` waits for it. */
  async #holding<T>(idle: boolean, work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw closedFault()
    if (idle) return work()
    this.#held += 1
    if (this.#held === 1) this.#letGo = holdProcess()
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

type After = { readonly committing?: boolean; readonly waits?: boolean }

type Ended<T> = { readonly done: T } | { readonly trouble: Trouble; readonly committing: boolean }

/**
 * The statements of the lane find few rows by keys: planned once, and never by reading a whole table, which is what is planned
 * while a table is small and would be kept while it grows. No statement of a store is worth compiling (`jit`): it finds few rows, and a
 * switched-off way to plan it counts as an enormous cost, over which a server would compile it for seconds.
 */
const SETTINGS: Readonly<Record<Role, Readonly<Record<string, string>>>> = {
  lane: { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off', jit: 'off' },
  reader: { synchronous_commit: 'off', jit: 'off' },
  heartbeat: { jit: 'off' },
  ear: {},
}

function settingsText(role: Role): string | null {
  const set = Object.entries(SETTINGS[role]).map(([name, value]) => `set_config('${name}', '${value}', false)`)
  return set.length > 0 ? `select ${set.join(', ')}` : null
}

function limits(statementMs: number): Readonly<Record<string, number>> {
  return {
    statement_timeout: Math.ceil(statementMs),
    lock_timeout: Math.min(LOCK_MS, Math.ceil(statementMs)),
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
  }
}

/** An optional peer: loaded with the first connection. */
async function load(): Promise<typeof pg> {
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

function parserOf(oid: number): ((text: string) => unknown) | null {
  if (oid === BIGINT) return numberOf
  if (oid === BIGINTS) return (text) => text.slice(1, -1).split(',').filter(Boolean).map(numberOf)
  return null
}

function numberOf(text: string): number {
  const number = Number(text)
  if (Number.isSafeInteger(number)) return number
  throw new Fault(
    'store_damaged',
    'The database holds a number beyond 2^53, which no writer wrote. Restore it from a backup.',
  )
}
