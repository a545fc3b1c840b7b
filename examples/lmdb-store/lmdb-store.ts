// A store of one's own: sessions in LMDB, a key-value engine whose files lie in one folder. It has the core of a store
// and no capability, so one process uses it, and Terret does the rest. What a commit does is decided by `planWrites`;
// this file only reads and writes rows. The guide about stores explains it.
import { resolve } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import {
  type AccountRow,
  type Blob,
  type Card,
  type CardFilter,
  cardOfRecord,
  changesByClaim,
  changesByRelease,
  checkCount,
  checkId,
  type Claim,
  type Clock,
  type DueSessions,
  type Event,
  Fault,
  type Hold,
  matchesFilter,
  type Page,
  planWrites,
  type Receipt,
  type SessionChange,
  type SessionRecord,
  sessionMissingFault,
  type SessionTrouble,
  type Store,
  type StoreView,
  systemClock,
  upcast,
  type Write,
  type WritePlan,
} from 'terret/store'

export type LmdbOptions = {
  /** Default: the clock of the machine. */
  readonly clock?: Clock
}

/** The folder is opened, and made if it is not there, by `open` or the first use. */
export function lmdb(folder: string, { clock = systemClock }: LmdbOptions = {}): Store {
  return new LmdbStore(resolve(folder), clock)
}

/** A session. `n` numbers the sessions in the order in which they were made; `card` is as its owner wrote it. */
type Row = SessionRecord & { readonly n: number; readonly card: Card }

/** One database of LMDB for each kind of row, each ordered by its key. */
type Tables = {
  readonly root: RootDatabase<number, string>
  readonly sessions: Database<Row, string>
  /** The JSON of each event, by the number of its session and its seq. */
  readonly events: Database<string, [n: number, seq: number]>
  /** The seq of each inbox event, by its id. */
  readonly inbox: Database<number, [n: number, id: string]>
  /** The sessions that are due at some time: those with input or open work (0), and those with wakes (1). */
  readonly due: Database<string, [calm: number, due: number, n: number]>
  readonly accounts: Database<AccountRow, string>
  readonly holds: Database<Hold, string>
  readonly blobs: Database<{ readonly media: string; readonly data: Uint8Array }, string>
  /** Which trees refer to which blobs. */
  readonly refs: Database<boolean, [root: string, hash: string]>
}

/** No two stores of this process share a folder: each knows only its own leases. */
const openFolders = new Set<string>()

class LmdbStore implements Store {
  readonly #folder: string
  readonly #clock: Clock
  #tables: Tables | null = null
  #closed = false
  /**
   * Which worker holds which session. It is not written down: when the process ends, its leases have ended. The row
   * keeps the worker's name, so that the next claim knows that an attempt was lost.
   */
  readonly #held = new Map<string, string>()

  constructor(folder: string, clock: Clock) {
    this.#folder = folder
    this.#clock = clock
  }

  async open(): Promise<void> {
    this.#opened()
  }

  async commit(writes: readonly Write[]): Promise<readonly Receipt[]> {
    const plan = this.#write((tables) => {
      const planned = planWrites(writes, viewOf(tables, this.#clock.now()))
      applyPlan(tables, planned)
      return planned
    })
    for (const { session, worker } of plan.drafts) if (worker === null) this.#held.delete(session)
    return plan.receipts
  }

  async read(
    session: string,
    after: number,
    limit = Number.MAX_SAFE_INTEGER,
    bytesMax = Number.MAX_SAFE_INTEGER,
  ): Promise<Page> {
    checkCount('after', after)
    checkCount('limit', limit)
    checkCount('bytesMax', bytesMax)
    const tables = this.#opened()
    const { n } = rowOf(tables, session)
    const events: Event[] = []
    let bytes = 0
    for (const { value } of tables.events.getRange({ start: [n, after + 1], end: [n + 1, 0] })) {
      bytes += value.length
      // One event at least, however long it is.
      if (events.length >= limit || (bytes > bytesMax && events.length > 0)) break
      events.push(upcast(JSON.parse(value) as Event))
    }
    return { events }
  }

  async claim(session: string, worker: string): Promise<Claim | null> {
    checkId('worker id', worker)
    const claim = this.#write((tables): Claim | null => {
      const row = rowOf(tables, session)
      if ((this.#held.get(session) ?? worker) !== worker) return null
      const epoch = row.epoch + 1
      putRow(tables, session, row, { ...row, ...changesByClaim(row, this.#clock.now()), worker, epoch })
      return { epoch, seq: row.seq, until: Number.MAX_SAFE_INTEGER, failed: row.tries }
    })
    if (claim) this.#held.set(session, worker)
    return claim
  }

  async release(session: string, epoch: number, trouble?: SessionTrouble): Promise<void> {
    const released = this.#write((tables) => {
      const row = tables.sessions.get(session)
      if (row?.epoch !== epoch || row.worker === null) return false
      putRow(tables, session, row, { ...row, ...changesByRelease(row, trouble, this.#clock.now()), worker: null })
      return true
    })
    if (released) this.#held.delete(session)
  }

  async due(limit: number, agents?: readonly string[]): Promise<DueSessions> {
    checkCount('limit', limit)
    const tables = this.#opened()
    const now = this.#clock.now()
    const sessions: string[] = []
    let next: number | null = null
    for (const calm of [0, 1])
      for (const { key, value: session } of tables.due.getRange({
        start: [calm, -Infinity, 0],
        end: [calm + 1, -Infinity, 0],
      })) {
        if (this.#held.has(session)) continue
        const [, due] = key
        next = Math.min(next ?? due, due)
        if (due > now || sessions.length >= limit) break
        if (agents?.includes(rowOf(tables, session).card.agent) ?? true) sessions.push(session)
      }
    return { sessions, next }
  }

  async card(session: string): Promise<Card | null> {
    const row = this.#opened().sessions.get(session)
    return row ? cardOfRecord(row.card, row) : null
  }

  async list(filter: CardFilter): Promise<readonly Card[]> {
    checkCount('limit', filter.limit)
    const { sessions } = this.#opened()
    const cards: Card[] = []
    for (const { key, value } of sessions.getRange(filter.after ? { start: filter.after } : {})) {
      if (cards.length >= filter.limit) break
      const card = cardOfRecord(value.card, value)
      if (key !== filter.after && matchesFilter(card, filter)) cards.push(card)
    }
    return cards
  }

  async blob(hash: string, of?: string): Promise<Blob | null> {
    const tables = this.#opened()
    if (of !== undefined) {
      const row = tables.sessions.get(of)
      if (!row || !tables.refs.doesExist([row.card.root, hash])) return null
    }
    const blob = tables.blobs.get(hash)
    return blob ? { hash, media: blob.media, data: Uint8Array.from(blob.data) } : null
  }

  async account(id: string): Promise<AccountRow | null> {
    return this.#opened().accounts.get(id) ?? null
  }

  async close(): Promise<void> {
    this.#closed = true
    const tables = this.#tables
    this.#tables = null
    if (!tables) return
    // LMDB waits for ever if it is closed in the same turn of the event loop as a transaction.
    await new Promise(setImmediate)
    await tables.root.close()
    openFolders.delete(this.#folder)
  }

  #opened(): Tables {
    if (this.#closed) throw new Fault('store_closed', 'The store is closed.')
    this.#tables ??= openTables(this.#folder)
    return this.#tables
  }

  /** All of it or nothing: what throws, or is not on the disk, has changed nothing. */
  #write<T>(act: (tables: Tables) => T): T {
    const tables = this.#opened()
    try {
      return tables.root.transactionSync(() => act(tables))
    } catch (error) {
      throw error instanceof Error && 'code' in error ? faultOf(error) : error
    }
  }
}

/** Trouble of the engine has a number as its code; a refusal of the plan has the code of a Fault. */
function faultOf(error: Error & { readonly code?: unknown }): Error {
  if (typeof error.code !== 'number') return error
  const isFull = error.code === ENOSPC || error.code === MAP_FULL
  const text = isFull ? 'The disk is full. Make room, and try again.' : 'The store could not be written. Try again.'
  return new Fault(isFull ? 'disk_full' : 'io_error', text, error.message)
}
const ENOSPC = 28
const MAP_FULL = -30_792

function openTables(folder: string): Tables {
  if (openFolders.has(folder)) throw busyFault(folder, 'This process')
  // Without this LMDB would answer before a commit is on the disk.
  const root = open<number, string>({ path: folder, maxDbs: 16, overlappingSync: false, encoding: 'json' })
  const tables: Tables = {
    root,
    sessions: root.openDB({ name: 'sessions', encoding: 'json' }),
    events: root.openDB({ name: 'events', encoding: 'string' }),
    inbox: root.openDB({ name: 'inbox', encoding: 'json' }),
    due: root.openDB({ name: 'due', encoding: 'json' }),
    accounts: root.openDB({ name: 'accounts', encoding: 'json' }),
    holds: root.openDB({ name: 'holds', encoding: 'json' }),
    blobs: root.openDB({ name: 'blobs', encoding: 'msgpack' }),
    refs: root.openDB({ name: 'refs', encoding: 'json' }),
  }
  const other = findOtherProcess(root)
  if (other !== null) {
    void root.close()
    throw busyFault(folder, `Process ${other}`)
  }
  openFolders.add(folder)
  return tables
}

/**
 * LMDB keeps a table of the processes that read, with their ids and a lock of each, so it can drop those that died.
 * Two that open at the same moment see each other, and both are refused.
 */
function findOtherProcess(root: RootDatabase<number, string>): number | null {
  // Reading enters this process into the table, where it stays until the store is closed.
  root.get('made')
  root.readerCheck()
  const ids = [...root.readerList().matchAll(/^\s*(\d+)\s/gm)].map(([, id]) => Number(id))
  return ids.find((id) => id !== process.pid) ?? null
}

function busyFault(folder: string, who: string): Fault {
  return new Fault('store_busy', `${who} has the store in ${folder} open. One process at a time can use it.`)
}

function rowOf({ sessions }: Tables, session: string): Row {
  const row = sessions.get(session)
  if (!row) throw sessionMissingFault(session)
  return row
}

/** The rows that a plan asks for. Nothing is ever removed, so no id was used before. */
function viewOf({ sessions, events, inbox, accounts, holds }: Tables, now: number): StoreView {
  return {
    now,
    head: (session) => sessions.get(session) ?? null,
    admitted: (session, id) => {
      const { n } = sessions.get(session) ?? { n: -1 }
      const seq = inbox.get([n, id])
      return seq === undefined ? null : { seq, body: events.get([n, seq]) ?? '' }
    },
    ended: () => null,
    bodies: (session, after, count) => {
      const { n } = sessions.get(session) ?? { n: -1 }
      return [...events.getRange({ start: [n, after + 1], end: [n, after + 1 + count] })].map(({ value }) => value)
    },
    account: (id) => accounts.get(id) ?? null,
    hold: (key) => holds.get(key) ?? null,
    holdsOf: (session) => {
      const own = [...holds.getRange()].filter(({ value }) => value.session === session)
      return new Map(own.map(({ key, value }) => [key, value]))
    },
  }
}

function applyPlan(tables: Tables, { drafts, book, blobs, refs }: WritePlan): void {
  for (const draft of drafts) applyChange(tables, draft)
  for (const [id, account] of book?.accounts ?? []) tables.accounts.putSync(id, account)
  for (const [key, hold] of book?.holds ?? []) {
    if (hold) tables.holds.putSync(key, hold)
    else tables.holds.removeSync(key)
  }
  for (const { session, blob } of blobs) {
    const { hash, media, data } = blob
    if (!tables.blobs.doesExist(hash)) tables.blobs.putSync(hash, { media, data })
    tables.refs.putSync([rowOf(tables, session).card.root, hash], true)
  }
  for (const { session, hash } of refs) tables.refs.putSync([rowOf(tables, session).card.root, hash], true)
}

/** One session as the commit leaves it, and the events that it adds. */
function applyChange(tables: Tables, draft: SessionChange): void {
  const { session, bodies, ids, seq, at, epoch, worker, due, urgent, status, tries, trouble, facts } = draft
  const was = tables.sessions.get(session)
  const card = draft.card ?? was?.card
  if (!card) throw new Fault('invalid_input', `Session ${session} is created without a card.`)
  const n = was?.n ?? nextNumber(tables)
  const kept = { seq, at, epoch, worker, due, urgent, status, tries, trouble, facts }
  putRow(tables, session, was, { ...kept, n, card })
  const first = seq - bodies.length + 1
  for (const [i, body] of bodies.entries()) tables.events.putSync([n, first + i], body)
  for (const entry of ids) tables.inbox.putSync([n, entry.id], entry.seq)
}

function nextNumber({ root }: Tables): number {
  const n = root.get('made') ?? 0
  root.putSync('made', n + 1)
  return n
}

function putRow({ sessions, due }: Tables, session: string, was: Row | undefined, row: Row): void {
  if (was && was.due !== null) due.removeSync([was.urgent ? 0 : 1, was.due, was.n])
  if (row.due !== null) due.putSync([row.urgent ? 0 : 1, row.due, row.n], session)
  sessions.putSync(session, row)
}
