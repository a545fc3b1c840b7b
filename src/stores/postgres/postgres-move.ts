// A Postgres store as one side of a move: all its rows in one order, or an empty store that takes them. stores/move/
// moves the rows. A store that was moved, or whose arrival is not finished, refuses every write with triggers, in all
// processes.
import { assert, Fault } from '../../kernel/failure.ts'
import {
  bareCard,
  type MoveBlobRow,
  type MoveAccountRow,
  type MoveCounts,
  type MoveMark,
  type StoreReader,
  type MoveRow,
  type MoveSessionRow,
  type MoveSource,
  type MoveTarget,
  type MoveTargetState,
} from '../move/move-rows.ts'
import { addSum, crc32, logSeed } from '../plan/checksum.ts'
import { CLOCK_SLACK_MS } from '../plan/plan-writes.ts'
import { PostgresConnections } from './connections.ts'
import { PostgresMoveWriter } from './postgres-move-writer.ts'
import { HeldTransaction } from './held-transaction.ts'
import { parseHosts } from './database-hosts.ts'
import { migrate } from './migrate.ts'
import { parseCard, HEAD, parseRow, type StoredPostgresRow } from './postgres-rows.ts'
import { SCHEMA } from './postgres-schema.ts'
import type { Sql, PostgresValue } from './sql.ts'
import { SCHEMA_DEFAULT } from './schema-texts.ts'
import { MOVED_STATE } from './database-trouble.ts'
import { shellCommand } from '../../view/shell-command.ts'
import { shownId } from '../../view/clean.ts'

const PAGE = 500
const PIECE_BYTES = 1024 * 1024

/** All tables of a store's data: every write changes at least one of them. In the order in which writers lock them. */
const WRITTEN = 'sessions workers accounts holds blobs blob_refs events inbox removals snapshots'.split(' ')
const BESIDE = ['labels', 'finds', 'forks', 'meta']
const FUNCTIONS = ['keep_removal', 'remove_sessions', 'make_room', 'keep_event', 'keep_log']

const ONE_MOMENT = 'set transaction isolation level repeatable read'
/** Readers are not blocked. */
const LOCK = `lock table ${WRITTEN.map((table) => `~${table}`).join(', ')} in exclusive mode`
const PLAIN = 'set transaction isolation level read committed'

/** `name` is shown to people: the address without its password. */
export type NamedDatabase = { readonly url: string; readonly name: string }

export async function readPostgres(named: NamedDatabase): Promise<StoreReader> {
  return openSide(named, async (side) => {
    await side.exists()
    await side.hold(ONE_MOMENT)
  })
}

/** Writers of other processes wait until it is closed. */
export async function postgresSource(named: NamedDatabase): Promise<MoveSource> {
  return openSide(named, async (side) => {
    await side.exists()
    // The snapshot is that of the first read, which comes after the lock.
    await side.hold(`${ONE_MOMENT}; ${LOCK}`)
  })
}

/** Created if it does not exist. */
export async function postgresTarget(named: NamedDatabase): Promise<MoveTarget> {
  return openSide(named, (side) => side.make())
}

async function openSide(named: NamedDatabase, begin: (side: PostgresSide) => Promise<void>): Promise<PostgresSide> {
  parseHosts(named.url)
  const side = new PostgresSide(named)
  try {
    await begin(side)
    await side.learn()
    return side
  } catch (error) {
    await side.close()
    throw error
  }
}

class PostgresSide implements MoveSource, MoveTarget {
  readonly name: string
  readonly #connections: PostgresConnections
  #id = ''
  /** The transaction whose snapshot is read; null for a target, where every step is a transaction. */
  #held: HeldTransaction | null = null
  /** The store whose rows are arriving here, or were written by this side. */
  #from: string | null = null

  constructor({ url, name }: NamedDatabase) {
    this.name = name
    this.#connections = new PostgresConnections({ url, hints: false })
  }

  get id(): string {
    return this.#id
  }

  async exists(): Promise<void> {
    const there = await this.#step((sql) => hasTable(sql, 'meta'))
    if (!there) throw new Fault('invalid_input', `There is no store in ${this.name}, so there is nothing to read.`)
  }

  async make(): Promise<void> {
    await this.#step((sql) => migrate(sql, SCHEMA_DEFAULT, (work) => work(sql)))
  }

  async hold(first: string): Promise<void> {
    this.#held = await this.#begin(first)
  }

  async learn(): Promise<void> {
    const [meta] = await this.#step((sql) => sql.ask<{ store: string }>('move id', 'select store from ~meta'))
    this.#id = meta?.store ?? ''
  }

  // ---- Reading ------------------------------------------------------------------------------------------------------

  async *rows(): AsyncGenerator<readonly MoveRow[]> {
    const held = this.#held ?? (await this.#begin(ONE_MOMENT))
    try {
      for await (const page of readPages<StoredSession>(held, 'sessions', SESSIONS, 0, ({ n }) => n))
        for (const stored of page) yield* sessionRows(held, stored)
      yield* sharedRows(held, (fault) => {
        throw fault
      })
    } finally {
      if (held !== this.#held) await held.undo()
    }
  }

  async *shared(damaged: (fault: Fault) => void): AsyncGenerator<readonly MoveRow[]> {
    const held = this.#held ?? (await this.#begin(ONE_MOMENT))
    try {
      yield* sharedRows(held, damaged)
    } finally {
      if (held !== this.#held) await held.undo()
    }
  }

  async counts(): Promise<MoveCounts> {
    const count = (kind: MoveRow['type'], from: string): string => `(select count(*) from ${from})::float8 as "${kind}"`
    const all = [
      count('session', '~sessions'),
      count('inbox', '~inbox'),
      count('ref', '~blob_refs'),
      count('event', '~events'),
      count('worker', `~workers w where ${NAMED}`),
      count('hold', '~holds'),
      count('account', '~accounts'),
      count('blob', '~blobs'),
      count('removal', '~removals'),
    ]
    const [counts] = await this.#step((sql) => sql.ask<MoveCounts>('move counts', `select ${all.join(', ')}`))
    if (!counts) throw new Fault('store_damaged', `${this.name} does not say how much it holds.`)
    return counts
  }

  // ---- As a source --------------------------------------------------------------------------------------------------

  async driven(): Promise<readonly string[]> {
    const rows = await this.#step((sql) => sql.ask<{ id: string }>('move driven', DRIVEN))
    return rows.map(({ id }) => id)
  }

  async movedTo(): Promise<MoveMark | null> {
    return this.#step((sql) => readMoveMark(sql, 'to'))
  }

  async leave(to: MoveMark): Promise<void> {
    const held = this.#held
    assert(held, 'what is left was read and locked')
    this.#held = null
    try {
      await closeWithMark(held, 'to', to)
      await held.commit()
    } finally {
      await held.undo()
    }
  }

  // ---- As a target --------------------------------------------------------------------------------------------------

  async state(): Promise<MoveTargetState> {
    const [from, used] = await this.#step(async (sql) => [await readMoveMark(sql, 'from'), await isUsed(sql)] as const)
    this.#from = from?.id ?? null
    return from ? { type: 'arriving', from } : { type: used ? 'used' : 'empty' }
  }

  async fill(from: MoveMark, rows: AsyncIterable<readonly MoveRow[]>): Promise<void> {
    await this.#alone(async (sql) => {
      if (await isUsed(sql)) throw new Fault('conflict', `Another process has begun to use ${this.name}. Name another.`)
      const filling = new PostgresMoveWriter(sql)
      for await (const piece of rows) for (const row of piece) await filling.add(row)
      await filling.end()
      await closeWithMark(sql, 'from', from)
    })
    this.#from = from.id
  }

  /** Recreates the tables, because events are never deleted one by one. Rows from another move stay. */
  async clear(): Promise<void> {
    await this.#alone(async (sql) => {
      const from = await readMoveMark(sql, 'from')
      if (from === null || from.id !== this.#from) return
      const tables = [...WRITTEN, ...BESIDE, 'moves'].map((table) => `~${table}`)
      await sql.ask('', `drop table ${tables.join(', ')} cascade; drop sequence ~numbers`)
      await sql.ask('', `drop function if exists ${[...FUNCTIONS, 'moved'].map((each) => `~${each}`).join(', ')}`)
      await sql.ask('', SCHEMA)
      await sql.ask('move keep id', 'update ~meta set store = $1', [this.#id])
    })
  }

  async finish(): Promise<void> {
    await this.#alone(async (sql) => {
      if (await hasTable(sql, 'moves')) await sql.ask('', 'drop table ~moves; drop function ~moved cascade')
    })
  }

  async close(): Promise<void> {
    await this.#held?.undo()
    this.#held = null
    await this.#connections.close()
  }

  #begin(first: string): Promise<HeldTransaction> {
    return HeldTransaction.begin(this.#connections.lane, SCHEMA_DEFAULT, first)
  }

  /** Runs in the held transaction, or as a transaction of its own. */
  async #step<T>(act: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#held ? act(this.#held) : this.#transaction(PLAIN, act)
  }

  async #alone(act: (sql: Sql) => Promise<void>): Promise<void> {
    await this.#transaction(LOCK, act)
  }

  async #transaction<T>(first: string, act: (sql: Sql) => Promise<T>): Promise<T> {
    const held = await this.#begin(first)
    try {
      const done = await act(held)
      await held.commit()
      return done
    } finally {
      await held.undo()
    }
  }
}

// ---- Rows as stored in the tables -------------------------------------------------------------------------------

type StoredSession = StoredPostgresRow & { readonly origin: string | null }
type StoredEvent = { readonly seq: number; readonly sum: number; readonly body: string }

const SESSIONS = `select ${HEAD}, f.origin from ~sessions s left join ~forks f on f.n = s.n where s.n > $1 order by s.n limit $2`
const INBOX = 'select id, seq from ~inbox where n = $3 and seq > $1 order by seq limit $2'
const REFS = 'select hash from ~blob_refs where n = $3 and hash > $1 order by hash limit $2'
/** As many events as fit into a piece: the sizes of bodies are known without reading them. */
const EVENTS = `select seq, sum, body from (
    select seq, sum, body, sum(octet_length(body)) over (order by seq) - octet_length(body) as earlier
    from (select seq, sum, body from ~events where n = $1 and seq > $2 and seq <= $3 order by seq limit ${PAGE}) e
  ) e where earlier < ${PIECE_BYTES} order by seq`
const NAMED = 'exists (select 1 from ~sessions s where s.worker = w.id)'
const WORKERS = `select id, until, ttl as "ttlMs" from ~workers w where ${NAMED} and id > $1 order by id limit $2`
const HOLDS = 'select key, amount, accounts, session from ~holds where key > $1 order by key limit $2'
const ACCOUNTS = 'select id, cap as "limit", held, spent, assumed from ~accounts where id > $1 order by id limit $2'
const BLOBS = 'select hash, media, sum, data from ~blobs where hash > $1 order by hash limit $2'
const REMOVED = `select n as number, session, epoch, agent, events, bytes, at, by from ~removals where n > $1 order by n limit $2`
const DRIVEN = `with t as materialized (select extract(epoch from clock_timestamp())::float8 * 1000 as now)
  select s.id from t, ~workers w join ~sessions s on s.worker = w.id
  where w.until > t.now and w.until - w.ttl <= t.now + ${CLOCK_SLACK_MS} order by s.id limit 3`

/** Reads all rows of a statement whose parameters are a start key and a count. */
async function* readPages<T extends object>(
  sql: Sql,
  name: string,
  text: string,
  from: string | number,
  keyOf: (row: T) => string | number,
  { size = PAGE, of }: { readonly size?: number; readonly of?: number } = {},
): AsyncGenerator<readonly T[]> {
  for (let after = from; ; ) {
    const values: PostgresValue[] = [after, size, ...(of === undefined ? [] : [of])]
    const rows = await sql.ask<T>(`move ${name}`, text, values)
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (rows.length < size || last === undefined) return
    after = keyOf(last)
  }
}

async function* sessionRows(sql: Sql, stored: StoredSession): AsyncGenerator<readonly MoveRow[]> {
  const { n, id, seq } = stored
  const of = { of: n }
  yield [sessionRowOf(stored)]
  for await (const page of readPages<{ id: string; seq: number }>(sql, 'inbox', INBOX, 0, (last) => last.seq, of))
    yield page.map((each) => ({ type: 'inbox', ...each }))
  for await (const page of readPages<{ hash: string }>(sql, 'refs', REFS, '', ({ hash }) => hash, of))
    yield page.map((each) => ({ type: 'ref', ...each }))
  let [sum, last] = [logSeed(id), 0]
  while (last < seq) {
    const events = await sql.ask<StoredEvent>('move events', EVENTS, [n, last, seq])
    for (const event of events) {
      if (event.seq !== last + 1) break
      last = event.seq
      sum = addSum(sum, event.body)
      if (sum !== event.sum) throw damagedSessionFault(id, `event ${last} is damaged`)
    }
    if (events.length === 0 || events.at(-1)?.seq !== last)
      throw damagedSessionFault(id, `event ${last + 1} is missing`)
    yield events.map(({ body }) => ({ type: 'event', body }))
  }
  if (sum !== stored.sum) throw damagedSessionFault(id, 'its log does not end as its session says')
}

function sessionRowOf(stored: StoredSession): MoveSessionRow {
  const { n: number, id, seq, at, epoch, worker, due, urgent, tries, status, root, folder, parent, agent } = stored
  const { created, tokens, title, owner, origin } = stored
  const { trouble, damage } = parseRow(stored)
  const card = parseCard(stored.card)
  if (damage !== null || card === null) throw damagedSessionFault(id, damage ?? 'its card cannot be read')
  const turn = { seq, at, epoch, worker, due, urgent, tries, trouble, status }
  const facts = { root, folder, parent, agent, created, tokens, title, owner, origin }
  return { type: 'session', number, id, ...turn, ...facts, card: bareCard(card) }
}

async function* sharedRows(sql: Sql, damaged: (fault: Fault) => void): AsyncGenerator<readonly MoveRow[]> {
  type Of<T extends MoveRow['type']> = Omit<Extract<MoveRow, { type: T }>, 'type'>
  for await (const page of readPages<Of<'worker'>>(sql, 'workers', WORKERS, '', ({ id }) => id))
    yield page.map((each) => ({ type: 'worker', ...each }))
  type StoredHold = Omit<Of<'hold'>, 'accounts'> & { readonly accounts: string }
  for await (const page of readPages<StoredHold>(sql, 'holds', HOLDS, '', ({ key }) => key))
    yield page.flatMap((each) => {
      const accounts = parseNames(each.accounts)
      if (accounts === null) damaged(unsoundFault(`The hold ${each.key}`))
      return accounts === null ? [] : [{ type: 'hold', ...each, accounts }]
    })
  for await (const page of readPages<Omit<MoveAccountRow, 'type'>>(sql, 'accounts', ACCOUNTS, '', ({ id }) => id))
    yield page.map((each) => ({ type: 'account', ...each }))
  // One at a time: a blob may be large.
  type StoredBlob = Omit<MoveBlobRow, 'type'> & { readonly sum: number }
  for await (const page of readPages<StoredBlob>(sql, 'blobs', BLOBS, '', ({ hash }) => hash, { size: 1 }))
    for (const { sum, ...blob } of page) {
      if ((crc32(blob.data) | 0) !== sum) damaged(unsoundFault(`The blob ${blob.hash}`))
      else yield [{ type: 'blob', ...blob }]
    }
  for await (const page of readPages<Of<'removal'>>(sql, 'removals', REMOVED, 0, ({ number }) => number))
    yield page.map((each) => ({ type: 'removal', ...each }))
}

function parseNames(text: string): readonly string[] | null {
  try {
    const names: unknown = JSON.parse(text)
    return Array.isArray(names) && names.every((name): name is string => typeof name === 'string') ? names : null
  } catch {
    return null
  }
}

function unsoundFault(what: string): Fault {
  return new Fault('store_damaged', `${what} does not match its checksum. Restore the database from a backup.`)
}

function damagedSessionFault(id: string, what: string): Fault {
  const next = `\`terret store check\` finds all that is damaged; \`${shellCommand`terret delete ${id}`}\` takes it out.`
  return new Fault('session_damaged', `Session ${shownId(id)} cannot be moved: ${what}. ${next}`)
}

// ---- The mark of a move -----------------------------------------------------------------------------------------------

const MARK = `create table ~moves (way text not null, id text not null, name text not null, at float8 not null, text text not null);
  create function ~moved() returns trigger language plpgsql as $fn$
    begin
      raise exception using errcode = '${MOVED_STATE}', message = (select m.text from ~moves m);
    end $fn$;
  ${WRITTEN.map((table) => `create trigger moved before insert or update or delete or truncate on ~${table} for each statement execute function ~moved();`).join('\n  ')}`

/** Every later write is refused, in all processes. */
async function closeWithMark(sql: Sql, way: 'to' | 'from', { id, name, at, text }: MoveMark): Promise<void> {
  await sql.ask('', MARK)
  await sql.ask('move mark', 'insert into ~moves (way, id, name, at, text) values ($1, $2, $3, $4, $5)', [
    way,
    id,
    name,
    at,
    text,
  ])
}

/** Nearly no store has this table. */
async function readMoveMark(sql: Sql, way: 'to' | 'from'): Promise<MoveMark | null> {
  if (!(await hasTable(sql, 'moves'))) return null
  const text = 'select id, name, at, text from ~moves where way = $1'
  const [mark] = await sql.ask<MoveMark>('move marked', text, [way])
  return mark ?? null
}

async function hasTable(sql: Sql, table: string): Promise<boolean> {
  const [found] = await sql.ask<{ there: boolean }>(
    'move is there',
    `select exists (select 1 from pg_class c join pg_namespace s on s.oid = c.relnamespace
      where s.nspname = '~schema~' and c.relname = $1) as there`,
    [table],
  )
  return found?.there === true
}

async function isUsed(sql: Sql): Promise<boolean> {
  const any = WRITTEN.map((table) => `exists (select 1 from ~${table})`).join(' or ')
  const [found] = await sql.ask<{ used: boolean }>('move used', `select (${any}) as used`)
  return found?.used === true || (await hasTable(sql, 'moves'))
}
