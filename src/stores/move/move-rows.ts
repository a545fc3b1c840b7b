// The rows of the portable stream and their order, as types. A store that knows its own tables implements `MoveSource`
// and `MoveTarget` (sqlite-move.ts is one), and move-store.ts moves its rows. portable-tree.ts makes the rows of any other
// store and of files. row-digest.ts is the digest of all of them.
import type { Hash, Moment, Name, Whole } from '../../kernel/content.ts'
import type { Fault } from '../../kernel/failure.ts'
import type { Card, Removal } from '../../ports/store.ts'

/**
 * A session's row. `number` is its position among all sessions ever created in the store, so the order of lists stays
 * the same. `worker` held it under a lease that has ended. `origin` is the session a fork reads before its own log.
 */
export type MoveSessionRow = {
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
  /** The card as its owner wrote it, without the fields that the store keeps beside it (`bareCard`). */
  readonly card: BareCard
}

export type BareCard = Omit<Card, StoreField>
const BESIDE = ['seq', 'at', 'due', 'trouble', 'title', 'created', 'owner', 'tokens'] as const
type StoreField = (typeof BESIDE)[number]

export function bareCard(card: Card): BareCard {
  const beside: ReadonlySet<string> = new Set(BESIDE)
  // Safe: the code omits exactly the fields that the type omits.
  return Object.fromEntries(Object.entries(card).filter(([name]) => !beside.has(name))) as BareCard
}

/**
 * These rows follow their session in this order: inbox ids by seq, blobs it refers to by hash, and its events from the
 * first on.
 */
type MoveInboxRow = { readonly type: 'inbox'; readonly id: string; readonly seq: number }
type MoveRefRow = { readonly type: 'ref'; readonly hash: string }
/** As stored, byte for byte. */
type MoveEventRow = { readonly type: 'event'; readonly body: string }

/** A worker that a session still names. Its lease has ended. */
type MoveWorkerRow = { readonly type: 'worker'; readonly id: string; readonly until: number; readonly ttlMs: number }
export type MoveHoldRow = {
  readonly type: 'hold'
  readonly key: string
  readonly amount: number
  readonly accounts: readonly string[]
  readonly session: string
}
export type MoveAccountRow = {
  readonly type: 'account'
  readonly id: string
  readonly limit: number | null
  readonly held: number
  readonly spent: number
  readonly assumed: number
}
export type MoveBlobRow = {
  readonly type: 'blob'
  readonly hash: string
  readonly media: string
  readonly data: Uint8Array
}
type MoveRemovalRow = Removal & { readonly type: 'removal'; readonly number: number; readonly epoch: number }

/**
 * The order of rows: sessions by number, each followed by its own rows; workers by id; holds by key; accounts by id;
 * blobs by hash; removals by number. Texts are ordered by their UTF-8 bytes (SQLite's BINARY, Postgres' "C"). Snapshots
 * are caches and are not moved.
 */
export type MoveRow =
  | MoveSessionRow
  | MoveInboxRow
  | MoveRefRow
  | MoveEventRow
  | MoveWorkerRow
  | MoveHoldRow
  | MoveAccountRow
  | MoveBlobRow
  | MoveRemovalRow

/**
 * A log in a stream that any store can read. What a store keeps beside a log follows from its events. `origin`: the
 * beginning of a log that a fork of the same tree reads. Its events follow, as many as it says; `digest` is theirs.
 */
export type LogRow = {
  readonly type: 'log'
  readonly session: Name
  readonly part: 'root' | 'child' | 'origin'
  readonly events: Whole
  readonly digest: Hash
}
/** Why the last attempts failed, which is in no log. */
export type TroubleRow = {
  readonly type: 'trouble'
  readonly session: Name
  readonly attempts: Whole
  readonly reason: string
  readonly until: Moment | null
}

/**
 * The order of rows that any store can read: trees one after the other, each with its root, its children by id, the
 * origins of its forks, troubles, accounts, and blobs by hash. Holds count as spent.
 */
export type StreamRow = LogRow | MoveEventRow | TroubleRow | MoveAccountRow | MoveBlobRow

/** The number of rows of each kind by the store's own count, so that a reader that omits some is noticed. */
export type MoveCounts = Readonly<Record<MoveRow['type'], number>>

/** Reads a store as of one moment. */
export interface StoreReader {
  /** The id that the store gave itself. */
  readonly id: string
  /** For people: a path, or an address without a password. */
  readonly name: string
  /**
   * All rows in order, in pieces of bounded size. Rejects with `session_damaged` or `store_damaged` where a checksum
   * does not match.
   */
  rows(): AsyncIterable<readonly MoveRow[]>
  /**
   * The same from the workers on, without the sessions. `damaged` is called for a row that does not match its checksum,
   * and the row is left out.
   */
  shared(damaged: (fault: Fault) => void): AsyncIterable<readonly MoveRow[]>
  counts(): Promise<MoveCounts>
  /** Releases the store. Uncommitted changes are dropped. */
  close(): Promise<void>
}

/** The other store of a move. `text` is the message for writers. */
export type MoveMark = {
  readonly id: string
  readonly name: string
  readonly at: number
  readonly text: string
}

/** No other process writes to it while it is open, so what is read is what is left behind. */
export interface MoveSource extends StoreReader {
  /** Some of the sessions that a worker drives now. */
  driven(): Promise<readonly string[]>
  /** The store it was moved to. */
  movedTo(): Promise<MoveMark | null>
  /** Commits: from now on every write to it is refused, in all processes, with the text of the mark. */
  leave(to: MoveMark): Promise<void>
}

/** `arriving`: a move to it is not finished, and it takes no other writes. */
export type MoveTargetState =
  | { readonly type: 'empty' | 'used' }
  | { readonly type: 'arriving'; readonly from: MoveMark }

export interface MoveTarget extends StoreReader {
  state(): Promise<MoveTargetState>
  /**
   * Writes all rows and the mark in one transaction: until `finish`, every other write is refused with the mark's text.
   */
  fill(from: MoveMark, rows: AsyncIterable<readonly MoveRow[]>): Promise<void>
  /** Removes everything that arrived. */
  clear(): Promise<void>
  /** From now on it is a store like any other. */
  finish(): Promise<void>
}
