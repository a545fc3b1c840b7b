// The port to a store, as types: what a commit contains, what every store does, and what a store may do beyond that.
// Types only. stores/plan/complete-store.ts fills in what a store cannot do itself.
import type { CallKey, Frozen, Labels, Outcome } from '../kernel/content.ts'
import type { Event, InboxBody, OwnerEvent } from '../kernel/event.ts'

/** The status of a session, and its card: the one derived row that indexes read. view/card.ts makes it. */
export type Status = 'idle' | 'running' | 'rescheduling' | 'requires_action' | 'terminated'

/**
 * One row about a session, derived from its log: the only thing that lists and workers read of sessions they do not
 * drive.
 */
export type Card = Frozen<{
  session: string
  agent: string
  /** The program whose workers drive it. Absent for sessions of older versions. */
  program?: string
  root: string
  /** The parent session. Roots have none. */
  parent?: string
  /** The task the child was started for. Its parent finds it again by this. */
  task?: string
  status: Status
  /** When a worker should look: now while work is open (so a crash is found), later for a wake, null for never. */
  due: number | null
  seq: number
  at: number
  cost: number
  trouble?: Frozen<{ attempts: number; reason: string; until: number | null }>
  /**
   * A provider is unavailable, or (`begins: false`) something the next run needs to begin: why, and how many tries.
   * `due` is the next try.
   */
  outage?: Frozen<{ reason: string; tries: number; begins?: false }>
  asks: readonly CallKey[]
  waits: readonly CallKey[]
  wakes: number
  urgent?: true
  outcome: Outcome['type'] | null
  /** Why the last run was halted or failed. Cards of older versions have no reason for a failure. */
  cause?: string
  /** The limit that ended the last run, if one did: `usd` is money. Cards of older versions do not have it. */
  limit?: Extract<Outcome, { type: 'limit' }>['limit']
  /** How many calls of the last run have an unknown outcome: they may have happened. Absent for none. */
  unknown?: number
  /** It was imported with open work, and no person has resumed it yet. */
  held?: true
  /** The folder of a root. Its children work there too and do not repeat it. */
  folder?: string
  /** The labels its host set. Its children have the same. */
  labels?: Labels
  // The store takes these from the log as it is written, and ignores the card of a write. A damaged card has none of
  // them.
  /**
   * The title its host set (`metadata.title`), or the first words of its first message: one line, at most 80 columns
   * wide.
   */
  title?: string
  /** The time of its first event. */
  created?: number
  /** The owner its host named (`metadata.owner`). */
  owner?: string
  /** Input and output tokens of all its model calls so far. */
  tokens?: number
}>

/**
 * Money moves in the same commit as its event, in millionths of a dollar. The accounts `session:S`, `tree:S` and
 * `run:S:n` are removed with S.
 */
export type Charge = Frozen<
  | { type: 'hold'; key: string; accounts: readonly string[]; amount: number }
  /**
   * `assumed` marks usage that was not reported, settled at the whole hold. `lost` settles all open holds of this
   * session whose key begins with `key` in the same way.
   */
  | { type: 'settle'; key: string; amount: number; assumed?: true }
  | { type: 'free' | 'lost'; key: string }
  | { type: 'limit'; account: string; limit: number | null; raisedBy?: string }
>

/** Bytes that stand beside the logs, by their hash. */
export type Blob = Frozen<{ hash: string; media: string; data: Uint8Array }>
/** A folded session at one event, so that a long log is not read from its beginning. It can be dropped at any time. */
export type Snapshot = Frozen<{ seq: number; version: number; body: string }>

/** A message that one session writes into the inbox of another. The same id twice is the same message. */
export type OutgoingMessage = Frozen<{ session: string; event: InboxBody }>

/**
 * Events of the worker that holds a session, with all that must become true together with them. Refused if the lease
 * was lost or the log has grown.
 */
export type OwnerWrite = Frozen<{
  session: string
  lane: 'owner'
  /** The writer's lease. 0 with `expectedSeq` 0 creates the session. */
  epoch: number
  /** The log must end here, otherwise the commit is refused with `conflict`. */
  expectedSeq: number
  /** Stamped by the owner: contiguous from `expectedSeq + 1`, `at` never before the log's last. */
  events: readonly OwnerEvent[]
  card: Card
  /** Idempotent inbox events for other sessions, in the same transaction. */
  sends?: readonly OutgoingMessage[]
  charges?: readonly Charge[]
  blobs?: readonly Blob[]
  snapshot?: Snapshot
  /** Returns the lease in the same transaction. `gained`: a complete turn was done since the lease was taken. */
  release?: true
  gained?: true
}>

/** Events from outside. They need no lease, and an id that is there already is not written again. */
export type InboxWrite = Frozen<{
  session: string
  lane: 'inbox'
  /**
   * The lease of a worker: refused with `lease_lost` once another worker has the session. Absent: any caller may write.
   */
  epoch?: number
  /** Stamped by the store. Makes the session due in the same transaction. */
  events: readonly InboxBody[]
  blobs?: readonly Blob[]
  charges?: readonly Charge[]
}>

/** One write to one session. A store writes several as one, or none. */
export type Write = OwnerWrite | InboxWrite
/**
 * One for each write. For the inbox, `seqs[i]` is the position of event i, also if it existed already (`duplicate`).
 */
export type Receipt = Frozen<{ seqs: readonly number[]; duplicate: boolean }>
/** `damaged` names the first event that fails its checksum; everything before it is good. */
export type Page = Frozen<{ events: readonly Event[]; damaged?: Frozen<{ seq: number; reason: string }> }>

/**
 * `seq`: the end of its log then. `failed`: how many attempts in a row before this one were lost or failed before they
 * completed a turn.
 */
export type Claim = Frozen<{ epoch: number; seq: number; until: number; failed: number }>
/**
 * At most `limit` sessions, only of these `agents`, only `among` these. `process` is the worker's process. `fresh`:
 * only sessions whose claim has `failed` 0.
 */
export type TakeOptions = Frozen<{
  /** How many sessions at most. */
  limit: number
  /** Only sessions of these agents. */
  agents?: readonly string[]
  /** Only these sessions. */
  among?: readonly string[]
  /** Which process the worker is, so that others of its host see when it is gone. */
  process?: ProcessId
  /** Leaves out sessions whose last attempt failed. */
  fresh?: true
}>
/**
 * A process that other processes on its host can find again. `host` is where its pid counts; `started` tells it from a
 * later process with the same pid.
 */
export type ProcessId = Frozen<{ host: string; pid: number; started: number }>
/** A worker that holds sessions, and the process it named. */
export type Holder = Frozen<{ worker: string; process: ProcessId }>
/** One account of money: what was spent, and what is held for calls that are at work. */
export type AccountRow = Frozen<{ id: string; limit: number | null; held: number; spent: number; assumed: number }>
/** The record of a removed session, without its content. `bytes` are those of its events and blobs. */
export type Removal = Frozen<{ session: string; agent: string; events: number; bytes: number; at: number; by: string }>
/**
 * The condition of a store. `durability` is how a commit is kept: `memory`, or the engine with its settings. `bytes` is
 * the size of its file, or of the events and blobs in memory. `leases` counts sessions held by a living worker, `due`
 * those that are due and not driven. Without `bytes` or `leases` they are not known.
 */
export type StoreHealth = Frozen<{
  durability: string
  schema: number | null
  bytes?: number
  sessions: number
  leases?: number
  due: number
  /** How long the longest waiting of these has been due. */
  waitedMs: number
  /** Why it takes no writes although it can be read: it was moved, or has lost acknowledged writes. */
  problem?: string
  /** Only for a store that is shared over the network. */
  network?: NetworkHealth
}>
/** The counts of this process since it opened the store, and the condition of the database server. */
export type NetworkHealth = Frozen<{
  /**
   * `written`: statements that wrote. `moved`: how often the state had changed before the write. `lost`: how often an
   * answer was lost. Both are tried again. `connects`: connections made.
   */
  written: number
  moved: number
  lost: number
  connects: number
  /** Sessions asked for, and those that another worker had. */
  claims: Frozen<{ asked: number; vain: number }>
  /**
   * How often it heard of commits of other processes, and the delay in ms, in total and at most. `missed`: commits
   * without a hint, found by looking.
   */
  news: Frozen<{ heard: number; missed: number; lagMs: number; lagMsMax: number }>
  /**
   * Of the database: connections and their maximum. Of the session table: updated rows, updates within the page, dead
   * rows.
   */
  server: Frozen<{
    connections: number
    connectionsMax: number
    updated: number
    updatedInPage: number
    deadRows: number
    /** Transactions since the oldest row was frozen: autovacuum must keep it far below two thousand million. */
    frozenAge: number
  }>
}>
/**
 * Lists sessions by id, from `after` on. `waiting`: only sessions that may wait for a person, judged by their cards.
 */
export type CardFilter = Frozen<
  CardConditions & {
    /** Only the sessions of this tree. */
    root?: string
    after?: string
    /** Only sessions that may wait for a person. */
    waiting?: true
    /** How many at most. */
    limit: number
  }
>
type CardConditions = {
  /** Only sessions with this status. */
  status?: Status
  /** Only the children of this session. */
  parent?: string
  /** Only sessions that work in this folder. */
  folder?: string
  /** Only sessions that have all these labels. */
  where?: Labels
}
/**
 * How the last run of a session ended. `unknown`: some call of it may have happened, however the run ended.
 * `quarantined`: workers leave the session alone, however its last run ended.
 */
export type CardOutcome = Outcome['type'] | 'unknown' | 'quarantined'
/**
 * Finds roots, or the children of one `parent`. All conditions must hold. `q`: each of its words is in the title,
 * agent, id or labels. `outcome`: one of these. `since`, `until`: the last event is at or after the first time and
 * before the second.
 */
export type CardQuery = Frozen<
  CardConditions & {
    /** Without it, lanes of consumers are left out. `consumer:` alone: the lanes of all consumers. */
    agent?: string
    owner?: string
    q?: string
    outcome?: readonly CardOutcome[]
    since?: number
    until?: number
    order: CardOrder
    limit: number
  }
> & {
  readonly behind?: CardPlace
}
/** `newest`: by the last event. `made`: by creation in this store. Newest first in both. */
export type CardOrder = 'newest' | 'made'
/** The end of a page, as numbers of the store, for the next page of the same query. */
export type CardPlace = Frozen<{ at: number; n: number }>
/** `next` is null when nothing follows. A session that grows meanwhile moves to the front and is not on later pages. */
export type CardPage = Frozen<{ cards: readonly Card[]; next: CardPlace | null }>

/**
 * The due sessions that were asked for, and when the next of all sessions becomes due, or null. `next` may be too early,
 * which costs one look; with a limit of 0 it is the first due time of any session that is not driven.
 */
export type DueSessions = Frozen<{ sessions: readonly string[]; next: number | null }>

/**
 * Short texts between the processes that have a store open. A text may be lost, late or doubled, so nothing may depend
 * on it.
 */
export interface DeltaChannel {
  /** The maximum length of one text in bytes. */
  readonly bytesMax: number
  /**
   * Returns the address of this process; the listener receives the texts sent there. Null where that is impossible.
   * Never rejects.
   */
  open(listener: (text: string) => void): Promise<string | null>
  /** Sends in order. Resolves when the texts have left or are lost; later texts wait. Never rejects. */
  send(address: string, texts: readonly string[]): Promise<void>
  close(): void
}

/**
 * The only source of truth: what every store does, and by name what it may do beyond that. Every promise resolves only
 * after the commit with its effect has returned. Refusals are Faults: `lease_lost`, `conflict`, `over_budget`,
 * `disk_full`, `session_missing`, `session_closed`, `id_reused`… A store without `workers` is for one process: where it
 * can know that another process has it open, `open` refuses with `store_busy`.
 */
export interface Store {
  /** Prepares the store: connects, updates its tables, reads its clock. May be called again. */
  open(): Promise<void>
  /** The only write. Atomic over all named sessions: all of it or nothing. */
  commit(writes: readonly Write[]): Promise<readonly Receipt[]>
  /**
   * Events after `after`, at most `limit`, in order. With `bytesMax` about that many bytes of them, but at least one
   * event.
   */
  read(session: string, after: number, limit?: number, bytesMax?: number): Promise<Page>
  /**
   * Returns a lease, or null while another worker's lease lives. The epoch only grows, also when the id of a removed
   * session is used again. `process` is the worker's process. In a store without `workers` a lease has no end: it lives
   * until it is released, or until the store is opened by a later process.
   */
  claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Promise<Claim | null>

  /** Returns the lease before its end. Ignored if another worker has the session now. `trouble` is stored on the card. */
  release(session: string, epoch: number, trouble?: Card['trouble']): Promise<void>
  /**
   * Sessions that are due and not driven: first those with input or open work, then those with wakes, the longest
   * waiting first. `agents`: only theirs; `next` may also count others.
   */
  due(limit: number, agents?: readonly string[]): Promise<DueSessions>

  /** The card of the session as of its last commit. Null if there is no such session. */
  card(session: string): Promise<Card | null>

  /** Cards that meet all conditions, ordered by the id of their session. */
  list(filter: CardFilter): Promise<readonly Card[]>
  /**
   * With `of`, only a blob that this session or another of its tree refers to: in a commit with it, or in a message.
   */
  blob(hash: string, of?: string): Promise<Blob | null>

  /** One account of money by its id, such as `session:S`. Null if no charge has named it yet. */
  account(id: string): Promise<AccountRow | null>

  /** Closes the store. Later calls are refused with `store_closed`. */
  close(): Promise<void>

  /** Leases with an end, for several workers. Absent: only one process can use the store. */
  readonly workers?: Workers

  /** News of commits. Absent: callers hear of commits of this process, and look for others each second. */
  readonly notifications?: Notifications

  /** Stored folds of long logs. Absent: each log is folded from its beginning. */
  readonly snapshots?: Snapshots

  /** An index of sessions. Absent: callers read the cards with `list`. */
  readonly search?: Search

  /** Removal of sessions, and the store's health. Absent: no session can be removed, and the health is counted from the cards. */
  readonly upkeep?: Upkeep

  /** Addresses for the live text of other processes. Absent: live text stays in the process that drives the session. */
  readonly deltas?: Deltas

  /** Whether the store was moved to another one. Absent: it cannot be moved. */
  readonly moving?: Moving
}

/** Several workers at once: leases that end by a shared clock, so that another worker goes on where one was lost. */
export interface Workers {
  /** Which processes may have the store open: only this one, those on this machine, or those anywhere. */
  readonly reach: 'process' | 'machine' | 'network'
  /**
   * The store's clock in ms, shared by all its workers. `open` is awaited before the first call. It may be set, so
   * durations are measured by a Clock of the process.
   */
  now(): number
  /**
   * One heartbeat for all sessions of a worker; returns those it still holds. It waits for no write, so it is not
   * ordered with other requests: a claim in progress may be missing in the answer.
   */
  extend(worker: string, ttlMs: number): Promise<ReadonlyMap<string, number>>
  /**
   * `due` and `claim` in one step, in the order of `due`, limited to a share for each tree while others wait. No
   * session is given to two workers. Without this method callers use `due` and `claim`.
   */
  take?(worker: string, ttlMs: number, wanted: TakeOptions): Promise<ReadonlyMap<string, Claim>>
  /** The workers on a host that hold sessions under a living lease. */
  holders(host: string): Promise<readonly Holder[]>
  /**
   * Ends a worker's lease early because its process is gone. Its epochs stay. If the worker is alive after all, it goes
   * on wherever no other worker claimed. False: the worker now names another process.
   */
  expire(worker: string, process: ProcessId): Promise<boolean>
}

/** News of commits. That of other processes may be late or spurious, but never missing for more than a second. */
export interface Notifications {
  /**
   * Calls back after each commit that grew the session, by this process (with the events, or null) or by another (with
   * null). `inbox` is for the session's driver, which need not hear its own writes.
   */
  watch(session: string, listener: (news: readonly Event[] | null) => void, only?: 'inbox'): () => void
  /**
   * Calls back with each session whose card may have changed, or that was removed, in any process. It may name a
   * session that has not changed.
   */
  watchCards(listener: (session: string) => void): () => void
  /** Calls back when some session may have become due, in any process. */
  watchDue(listener: () => void): () => void
}

/** Folded sessions, so that a long log is not folded from its beginning. */
export interface Snapshots {
  /**
   * The newest snapshot that the owner wrote. With `upTo`: the newest at or before that event, also one stored by
   * `keep`.
   */
  snapshot(session: string, upTo?: number): Promise<Snapshot | null>
  /**
   * Stores snapshots that a reader made, for `snapshot(session, upTo)`. `at` is the time of each last event; snapshots
   * of another log are dropped.
   */
  keep(session: string, snapshots: readonly (Snapshot & { readonly at: number })[]): Promise<void>
}

/** Finds sessions and messages by an index. */
export interface Search {
  /** A page of cards, read in bounded pieces so that other callers are served in between. */
  page(query: CardQuery): Promise<CardPage>
  /**
   * The sessions below these roots at any depth, by root and then by id. Without this method callers list one tree
   * after the other.
   */
  listBelow?(roots: readonly string[], limit: number): Promise<readonly Card[]>
  /** The position of the event with this id in its inbox; null if it has none. Reads no log. */
  sent(session: string, id: string): Promise<number | null>
}

/** Removing sessions, and the condition of the store. */
export interface Upkeep {
  /**
   * Removes a root and its children for good; open holds count as spent. `session_busy`: a worker drives one of them.
   * `conflict`: a fork reads one of them, or with `ends` a log does not end where expected.
   */
  remove(session: string, by: string, ends?: ReadonlyMap<string, number>): Promise<readonly Removal[]>
  /**
   * The records of removals, newest first. Watchers of a removed session get null, and then read that it is missing.
   */
  removals(limit: number): Promise<readonly Removal[]>
  /** Only reads. Whether a commit is possible is known only by writing. */
  health(): Promise<StoreHealth>
}

/** Where the live deltas of a session come from, while another process drives it. */
export interface Deltas {
  /**
   * `announce` stores where other processes receive this worker's live deltas; `address` finds that of the session's
   * owner.
   */
  announce(worker: string, address: string, ttlMs: number): Promise<void>
  address(session: string): Promise<string | null>
  /** A channel for live deltas to other machines, one for each caller. Stores within one machine have none. */
  post?(): DeltaChannel
}

/** A store that can be moved to another one. stores/move/ moves it. */
export interface Moving {
  /** Why it takes no writes: it was moved to another store, or a move to it is not complete. Null: it takes writes. */
  moved(): Promise<string | null>
}

/**
 * A store with all members in one object, as the runtime uses it: each capability but `moving` is the store itself.
 * `completeStore` makes one of any store.
 */
export interface CompleteStore extends Store, Workers, Notifications, Snapshots, Search, Upkeep, Deltas {
  readonly workers: this
  readonly notifications: this
  readonly snapshots: this
  readonly search: this
  readonly upkeep: this
  readonly deltas: this
}
