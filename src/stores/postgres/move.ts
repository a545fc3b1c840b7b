// A Postgres store as a side of a move: all its rows in one order, or an empty store that takes them. What a move is, is stores/move/.
// A store that was moved, and one that a move has not finished, refuse every write by triggers: so do other processes that use it.
import { assert, Fault } from '../../kernel/failure.ts'
import {
  bareCard,
  type BlobRow,
  type AccountRow,
  type Counts,
  type MoveMark,
  type Reader,
  type Row,
  type SessionRow,
  type Source,
  type Target,
  type TargetState,
} from '../move/rows.ts'
import { addSum, crc32, seedOf } from '../plan/checksum.ts'
import { CLOCK_SLACK_MS } from '../plan/plan.ts'
import { Connections } from './connect.ts'
import { Filling } from './filling.ts'
import { Held } from './held.ts'
import { hostsOf } from './hosts.ts'
import { migrate } from './migrate.ts'
import { cardIn, HEAD, rowOf, type StoredRow } from './rows.ts'
import { SCHEMA } from './schema.ts'
import type { Sql, SqlValue } from './sql.ts'
import { SCHEMA_DEFAULT } from './texts.ts'
import { MOVED_STATE } from './trouble.ts'
import { shellCommand } from '../../view/shell.ts'
import { shownId } from '../../view/clean.ts'

const PAGE = 500
const PIECE_BYTES = 1024 * 1024

/** All that a store keeps, and every write to one changes at least one of these. In the order in which writers lock them. */
const WRITTEN = 'sessions workers accounts holds blobs blob_refs events inbox removals snapshots'.split(' ')
const BESIDE = ['labels', 'finds', 'forks', 'meta']
const FUNCTIONS = ['keep_removal', 'remove_sessions', 'make_room', 'keep_event', 'keep_log']

const ONE_MOMENT = 'set transaction isolation level repeatable read'
/** Readers go on. */
const LOCK = `lock table ${WRITTEN.map((table) => `~${table}`).join(', ')} in exclusive mode`
const PLAIN = 'set transaction isolation level read committed'

/** `name` is shown: the address without its password. */
export type Named = { readonly url: string; readonly name: string }

export async function readPostgres(named: Named): Promise<Reader> {
  return opened(named, async (side) => {
    await side.exists()
    await side.hold(ONE_MOMENT)
  })
}

/** Writers of other processes wait until it is closed. */
export async function postgresSource(named: Named): Promise<Source> {
  return opened(named, async (side) => {
    await side.exists()
    // The moment is that of the first read, which comes after the lock.
    await side.hold(`${ONE_MOMENT}; ${LOCK}`)
  })
}

/** Made if it is not there. */
export async function postgresTarget(named: Named): Promise<Target> {
  return opened(named, (side) => side.make())
}

async function opened(named: Named, begin: (side: PostgresSide) => Promise<void>): Promise<PostgresSide> {
  hostsOf(named.url)
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

class PostgresSide implements Source, Target {
  readonly name: string
  readonly #connections: Connections
  #id = ''
  /** The one moment that is read; null for a target, whose every step is a transaction. */
  #held: Held | null = null
  /** The store whose rows this side has seen arriving, or has written. */
  #from: string | null = null

  constructor({ url, name }: Named) {
    this.name = name
    this.#connections = new Connections({ url, hints: false })
  }

  get id(): string {
    return this.#id
  }

  async exists(): Promise<void> {
    const there = await this.#step((sql) => isThere(sql, 'meta'))
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

  async *rows(): AsyncGenerator<readonly Row[]> {
    const held = this.#held ?? (await this.#begin(ONE_MOMENT))
    try {
      for await (const page of pages<StoredSession>(held, 'sessions', SESSIONS, 0, ({ n }) => n))
        for (const stored of page) yield* sessionRows(held, stored)
      yield* sharedRows(held, (fault) => {
        throw fault
      })
    } finally {
      if (held !== this.#held) await held.undo()
    }
  }

  async *shared(damaged: (fault: Fault) => void): AsyncGenerator<readonly Row[]> {
    const held = this.#held ?? (await this.#begin(ONE_MOMENT))
    try {
      yield* sharedRows(held, damaged)
    } finally {
      if (held !== this.#held) await held.undo()
    }
  }

  async counts(): Promise<Counts> {
    const count = (kind: Row['type'], from: string): string => `(select count(*) from ${from})::float8 as "${kind}"`
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
    const [counts] = await this.#step((sql) => sql.ask<Counts>('move counts', `select ${all.join(', ')}`))
    if (!counts) throw new Fault('store_damaged', `${this.name} does not say how much it holds.`)
    return counts
  }

  // ---- As a source --------------------------------------------------------------------------------------------------

  async driven(): Promise<readonly string[]> {
    const rows = await this.#step((sql) => sql.ask<{ id: string }>('move driven', DRIVEN))
    return rows.map(({ id }) => id)
  }

  async movedTo(): Promise<MoveMark | null> {
    return this.#step((sql) => markIn(sql, 'to'))
  }

  async leave(to: MoveMark): Promise<void> {
    const held = this.#held
    assert(held, 'what is left was read and locked')
    this.#held = null
    try {
      await closeStore(held, 'to', to)
      await held.commit()
    } finally {
      await held.undo()
    }
  }

  // ---- As a target --------------------------------------------------------------------------------------------------

  async state(): Promise<TargetState> {
    const [from, used] = await this.#step(async (sql) => [await markIn(sql, 'from'), await isUsed(sql)] as const)
    this.#from = from?.id ?? null
    return from ? { type: 'arriving', from } : { type: used ? 'used' : 'empty' }
  }

  async fill(from: MoveMark, rows: AsyncIterable<readonly Row[]>): Promise<void> {
    await this.#alone(async (sql) => {
      if (await isUsed(sql)) throw new Fault('conflict', `Another process has begun to use ${this.name}. Name another.`)
      const filling = new Filling(sql)
      for await (const piece of rows) for (const row of piece) await filling.add(row)
      await filling.end()
      await closeStore(sql, 'from', from)
    })
    this.#from = from.id
  }

  /** The tables are made anew: events are never deleted one by one. What another move has brought stays. */
  async clear(): Promise<void> {
    await this.#alone(async (sql) => {
      const from = await markIn(sql, 'from')
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
      if (await isThere(sql, 'moves')) await sql.ask('', 'drop table ~moves; drop function ~moved cascade')
    })
  }

  async close(): Promise<void> {
    await this.#held?.undo()
    this.#held = null
    await this.#connections.close()
  }

  #begin(first: string): Promise<Held> {
    return Held.begin(this.#connections.lane, SCHEMA_DEFAULT, first)
  }

  /** Of the moment that is held, or as one transaction. */
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

// ---- Rows as they lie in the tables -----------------------------------------------------------------------------------

type StoredSession = StoredRow & { readonly origin: string | null }
type StoredEvent = { readonly seq: number; readonly sum: number; readonly body: string }

const SESSIONS = `select ${HEAD}, f.origin from ~sessions s left join ~forks f on f.n = s.n where s.n > $1 order by s.n limit $2`
const INBOX = 'select id, seq from ~inbox where n = $3 and seq > $1 order by seq limit $2'
const REFS = 'select hash from ~blob_refs where n = $3 and hash > $1 order by hash limit $2'
/** As many as make a piece: the sizes of bodies are known without reading them. */
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

/** All rows of a statement that takes where to go on from, and how many. */
async function* pages<T extends object>(
  sql: Sql,
  name: string,
  text: string,
  from: string | number,
  keyOf: (row: T) => string | number,
  { size = PAGE, of }: { readonly size?: number; readonly of?: number } = {},
): AsyncGenerator<readonly T[]> {
  for (let after = from; ; ) {
    const values: SqlValue[] = [after, size, ...(of === undefined ? [] : [of])]
    const rows = await sql.ask<T>(`move ${name}`, text, values)
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (rows.length < size || last === undefined) return
    after = keyOf(last)
  }
}

async function* sessionRows(sql: Sql, stored: StoredSession): AsyncGenerator<readonly Row[]> {
  const { n, id, seq } = stored
  const of = { of: n }
  yield [sessionOf(stored)]
  for await (const page of pages<{ id: string; seq: number }>(sql, 'inbox', INBOX, 0, (last) => last.seq, of))
    yield page.map((each) => ({ type: 'inbox', ...each }))
  for await (const page of pages<{ hash: string }>(sql, 'refs', REFS, '', ({ hash }) => hash, of))
    yield page.map((each) => ({ type: 'ref', ...each }))
  let [sum, last] = [seedOf(id), 0]
  while (last < seq) {
    const events = await sql.ask<StoredEvent>('move events', EVENTS, [n, last, seq])
    for (const event of events) {
      if (event.seq !== last + 1) break
      last = event.seq
      sum = addSum(sum, event.body)
      if (sum !== event.sum) throw damagedSession(id, `event ${last} is damaged`)
    }
    if (events.length === 0 || events.at(-1)?.seq !== last) throw damagedSession(id, `event ${last + 1} is missing`)
    yield events.map(({ body }) => ({ type: 'event', body }))
  }
  if (sum !== stored.sum) throw damagedSession(id, 'its log does not end as its session says')
}

function sessionOf(stored: StoredSession): SessionRow {
  const { n: number, id, seq, at, epoch, worker, due, urgent, tries, status, root, folder, parent, agent } = stored
  const { created, tokens, title, owner, origin } = stored
  const { trouble, damage } = rowOf(stored)
  const card = cardIn(stored.card)
  if (damage !== null || card === null) throw damagedSession(id, damage ?? 'its card cannot be read')
  const turn = { seq, at, epoch, worker, due, urgent, tries, trouble, status }
  const facts = { root, folder, parent, agent, created, tokens, title, owner, origin }
  return { type: 'session', number, id, ...turn, ...facts, card: bareCard(card) }
}

async function* sharedRows(sql: Sql, damaged: (fault: Fault) => void): AsyncGenerator<readonly Row[]> {
  type Of<T extends Row['type']> = Omit<Extract<Row, { type: T }>, 'type'>
  for await (const page of pages<Of<'worker'>>(sql, 'workers', WORKERS, '', ({ id }) => id))
    yield page.map((each) => ({ type: 'worker', ...each }))
  type StoredHold = Omit<Of<'hold'>, 'accounts'> & { readonly accounts: string }
  for await (const page of pages<StoredHold>(sql, 'holds', HOLDS, '', ({ key }) => key))
    yield page.flatMap((each) => {
      const accounts = namesIn(each.accounts)
      if (accounts === null) damaged(unsound(`The hold ${each.key}`))
      return accounts === null ? [] : [{ type: 'hold', ...each, accounts }]
    })
  for await (const page of pages<Omit<AccountRow, 'type'>>(sql, 'accounts', ACCOUNTS, '', ({ id }) => id))
    yield page.map((each) => ({ type: 'account', ...each }))
  // One at a time: a blob may be large.
  type StoredBlob = Omit<BlobRow, 'type'> & { readonly sum: number }
  for await (const page of pages<StoredBlob>(sql, 'blobs', BLOBS, '', ({ hash }) => hash, { size: 1 }))
    for (const { sum, ...blob } of page) {
      if ((crc32(blob.data) | 0) !== sum) damaged(unsound(`The blob ${blob.hash}`))
      else yield [{ type: 'blob', ...blob }]
    }
  for await (const page of pages<Of<'removal'>>(sql, 'removals', REMOVED, 0, ({ number }) => number))
    yield page.map((each) => ({ type: 'removal', ...each }))
}

function namesIn(text: string): readonly string[] | null {
  try {
    const names: unknown = JSON.parse(text)
    return Array.isArray(names) && names.every((name): name is string => typeof name === 'string') ? names : null
  } catch {
    return null
  }
}

function unsound(what: string): Fault {
  return new Fault('store_damaged', `${what} does not match its checksum. Restore the database from a backup.`)
}

function damagedSession(id: string, what: string): Fault {
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

/** No write after this one, by anybody. */
async function closeStore(sql: Sql, way: 'to' | 'from', { id, name, at, text }: MoveMark): Promise<void> {
  await sql.ask('', MARK)
  await sql.ask('move mark', 'insert into ~moves (way, id, name, at, text) values ($1, $2, $3, $4, $5)', [
    way,
    id,
    name,
    at,
    text,
  ])
}

/** Nearly no store has such a table. */
async function markIn(sql: Sql, way: 'to' | 'from'): Promise<MoveMark | null> {
  if (!(await isThere(sql, 'moves'))) return null
  const text = 'select id, name, at, text from ~moves where way = $1'
  const [mark] = await sql.ask<MoveMark>('move marked', text, [way])
  return mark ?? null
}

async function isThere(sql: Sql, table: string): Promise<boolean> {
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
  return found?.used === true || (await isThere(sql, 'moves'))
}
