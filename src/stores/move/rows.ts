// What a move takes from one store to another, as types: the rows, and their one order. A store implements `Source` and `Target`
// (sqlite/move.ts is one); what is done with them is move.ts, and how they are compared is digest.ts.
import type { Fault } from '../../kernel/failure.ts'
import type { Card, Removal } from '../../ports/store.ts'

/**
 * A session as it stands. `number` is its place among all that were made in the store, removed ones counted: it stays the same, and so
 * does the order of lists. `worker` holds it under a lease that has ended. `origin` is the session that a fork reads before its own log.
 */
export type SessionRow = {
  readonly type: 'session'
  readonly number: number
  readonly id: string
  readonly seq: number
  readonly at: number
  readonly epoch: number
  readonly worker: string | null
  readonly due: number | null
  readonly urgent: boolean
  readonly tries: number
  readonly trouble: NonNullable<Card['trouble']> | null
  readonly status: Card['status']
  readonly root: string
  readonly folder: string | null
  readonly parent: string | null
  readonly agent: string
  readonly created: number
  readonly tokens: number
  readonly title: string | null
  readonly owner: string | null
  readonly origin: string | null
  /** As its owner wrote it, without what the store keeps beside it (`bareCard`). */
  readonly card: BareCard
}

export type BareCard = Omit<Card, Beside>
const BESIDE = ['seq', 'at', 'due', 'trouble', 'title', 'created', 'owner', 'tokens'] as const
type Beside = (typeof BESIDE)[number]

export function bareCard(card: Card): BareCard {
  const beside: ReadonlySet<string> = new Set(BESIDE)
  // Safe: what is left out is exactly what the type leaves out.
  return Object.fromEntries(Object.entries(card).filter(([name]) => !beside.has(name))) as BareCard
}

/** Of the session before it, in this order: ids of its inbox by seq, blobs it refers to by hash, and its events from the first on. */
type InboxRow = { readonly type: 'inbox'; readonly id: string; readonly seq: number }
type RefRow = { readonly type: 'ref'; readonly hash: string }
/** As stored, byte for byte. */
type EventRow = { readonly type: 'event'; readonly body: string }

/** A worker that a session still names. Its lease has ended. */
type WorkerRow = { readonly type: 'worker'; readonly id: string; readonly until: number; readonly ttlMs: number }
export type HoldRow = {
  readonly type: 'hold'
  readonly key: string
  readonly amount: number
  readonly accounts: readonly string[]
  readonly session: string
}
export type AccountRow = {
  readonly type: 'account'
  readonly id: string
  readonly limit: number | null
  readonly held: number
  readonly spent: number
  readonly assumed: number
}
export type BlobRow = {
  readonly type: 'blob'
  readonly hash: string
  readonly media: string
  readonly data: Uint8Array
}
type RemovalRow = Removal & { readonly type: 'removal'; readonly number: number; readonly epoch: number }

/**
 * In this order: sessions by number, each with its own rows behind it; workers by id; holds by key; accounts by id; blobs by hash;
 * removals by number. Texts are ordered by their UTF-8 bytes (SQLite's BINARY, Postgres' "C"). Snapshots are caches, and stay.
 */
export type Row = SessionRow | InboxRow | RefRow | EventRow | WorkerRow | HoldRow | AccountRow | BlobRow | RemovalRow

/** How many rows of each kind a store has by its own count, so that a reader that leaves some out is noticed. */
export type Counts = Readonly<Record<Row['type'], number>>

/** Reads a store as it was at one moment. */
export interface Reader {
  /** Which store it is, by the id it gave itself. */
  readonly id: string
  /** For people: a path, or an address without a password. */
  readonly name: string
  /** Rows in their order, in pieces of bounded size. Rejects with `session_damaged` or `store_damaged` where a checksum does not match. */
  rows(): AsyncIterable<readonly Row[]>
  /** The same from the workers on, without the sessions. `damaged` is told of a row that does not match its checksum, which is left out. */
  shared(damaged: (fault: Fault) => void): AsyncIterable<readonly Row[]>
  counts(): Promise<Counts>
  /** Lets go. What was not committed did not happen. */
  close(): Promise<void>
}

/** The other store of a move. `text`: what is said to those who want to write. */
export type MoveMark = {
  readonly id: string
  readonly name: string
  readonly at: number
  readonly text: string
}

/** Nobody else writes to it while it is open: what is read, is what is left behind. */
export interface Source extends Reader {
  /** Sessions that a worker drives now: a few of them. */
  driven(): Promise<readonly string[]>
  /** Where it was moved to. */
  movedTo(): Promise<MoveMark | null>
  /** Commits: from now on every write to it is refused, in this process and in all others, with the text of the mark. */
  leave(to: MoveMark): Promise<void>
}

/** `arriving`: a move to it was not finished, and it takes no other writes. */
export type TargetState = { readonly type: 'empty' | 'used' } | { readonly type: 'arriving'; readonly from: MoveMark }

export interface Target extends Reader {
  state(): Promise<TargetState>
  /** Writes all rows in one transaction, and the mark with them: until `finish`, every other write is refused with its text. */
  fill(from: MoveMark, rows: AsyncIterable<readonly Row[]>): Promise<void>
  /** Takes everything out that arrived. */
  clear(): Promise<void>
  /** From now on it is a store like any other. */
  finish(): Promise<void>
}
