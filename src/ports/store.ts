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
  /** The id of the session. */
  session: string
  /** The name of its agent or workflow. */
  agent: string
  /** The program whose workers drive it. Absent for sessions of older versions. */
  program?: string
  /** The root of its tree. For a root its own id. */
  root: string
  /** The parent session. Roots have none. */
  parent?: string
  /** The task the child was started for. Its parent finds it again by this. */
  task?: string
  /** What the session does: nothing, work, a wait for a time or for a person, or it is closed. */
  status: Status
  /** When a worker should look: now while work is open (so a crash is found), later for a wake, null for never. */
  due: number | null
  /** The seq of its last event. */
  seq: number
  /** The time of its last event, by the store's clock in ms since 1970. */
  at: number
  /** What the session itself has spent, without its children, in millionths of a dollar. */
  cost: number
  /** Attempts in a row that failed, with the last reason. Workers leave it alone until `until`; null: until it gets a message. */
  trouble?: Frozen<{ attempts: number; reason: string; until: number | null }>
  /**
   * A provider is unavailable, or (`begins: false`) something the next run needs to begin: why, and how many tries.
   * `due` is the next try.
   */
  outage?: Frozen<{ reason: string; tries: number; begins?: false }>
  /** The calls that wait for a person's decision. */
  asks: readonly CallKey[]
  /** The calls that are answered from outside: by a program, a person or a child. */
  waits: readonly CallKey[]
  /** How many wakes wait for their time. */
  wakes: number
  /** The wake that is due next comes before other wakes of its time. Absent for no such wake. */
  urgent?: true
  /** How the last run ended. Null before the first run has settled. */
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
export type Blob = Frozen<{
  /** The SHA-256 of the bytes, in hexadecimal. */
  hash: string
  /** The media type of the bytes, such as `image/png`. */
  media: string
  /** The bytes themselves. */
  data: Uint8Array
}>
/** A folded session at one event, so that a long log is not read from its beginning. It can be dropped at any time. */
export type Snapshot = Frozen<{
  /** The last event that it contains. */
  seq: number
  /** The version of the fold that made it. A fold of another version does not use it. */
  version: number
  /** The folded session, as JSON. */
  body: string
}>

/** A message that one session writes into the inbox of another. The same id twice is the same message. */
export type OutgoingMessage = Frozen<{
  /** The session whose inbox gets the message. */
  session: string
  /** The message. Its id makes it idempotent. */
  event: InboxBody
}>

/**
 * Events of the worker that holds a session, with all that must become true together with them. Refused if the lease
 * was lost or the log has grown.
 */
export type OwnerWrite = Frozen<{
  /** The session that the events belong to. */
  session: string
  /** Tells this write from one to the inbox. */
  lane: 'owner'
  /** The writer's lease. 0 with `expectedSeq` 0 creates the session. */
  epoch: number
  /** The log must end here, otherwise the commit is refused with `conflict`. */
  expectedSeq: number
  /** Stamped by the owner: contiguous from `expectedSeq + 1`, `at` never before the log's last. */
  events: readonly OwnerEvent[]
  /** The card after these events. */
  card: Card
  /** Idempotent inbox events for other sessions, in the same transaction. */
  sends?: readonly OutgoingMessage[]
  /** What moves between accounts of money with these events. */
  charges?: readonly Charge[]
  /** Bytes that the events refer to. Those that the store has already are not stored again. */
  blobs?: readonly Blob[]
  /** The folded session after one of these events, so that the log before it need not be read again. */
  snapshot?: Snapshot
  /** Returns the lease in the same transaction. */
  release?: true
  /** A complete turn was done since the lease was taken, so earlier lost attempts no longer count. */
  gained?: true
}>

/** Events from outside. They need no lease, and an id that is there already is not written again. */
export type InboxWrite = Frozen<{
  /** The session that gets the events. */
  session: string
  /** Tells this write from one of the owner. */
  lane: 'inbox'
  /**
   * The lease of a worker: refused with `lease_lost` once another worker has the session. Absent: any caller may write.
   */
  epoch?: number
  /** Stamped by the store. Makes the session due in the same transaction. */
  events: readonly InboxBody[]
  /** Bytes that the events refer to. Those that the store has already are not stored again. */
  blobs?: readonly Blob[]
  /** What moves between accounts of money with these events. */
  charges?: readonly Charge[]
}>

/** One write to one session. A store writes several as one, or none. */
export type Write = OwnerWrite | InboxWrite
/**
 * One for each write. For the inbox, `seqs[i]` is the position of event i, also if it existed already (`duplicate`).
 */
export type Receipt = Frozen<{
  /** For each event of the write its position in the log, also if it was there before. */
  seqs: readonly number[]
  /** True if all events of the write were there before, so nothing was written. */
  duplicate: boolean
}>
/** `damaged` names the first event that fails its checksum; everything before it is good. */
export type Page = Frozen<{
  /** The events in the order of the log. Empty at its end. */
  events: readonly Event[]
  /** The first event that fails its checksum, and why. Absent if all events that were read are whole. */
  damaged?: Frozen<{ seq: number; reason: string }>
}>

/**
 * `seq`: the end of its log then. `failed`: how many attempts in a row before this one were lost or failed before they
 * completed a turn.
 */
export type Claim = Frozen<{
  /** The number of the attempt. It grows with each claim, and fences the writes of earlier workers. */
  epoch: number
  /** The end of the session's log at the time of the claim. */
  seq: number
  /** When the lease ends unless it is extended, by the store's clock in ms since 1970. */
  until: number
  /** How many attempts in a row before this one were lost or failed before they completed a turn. */
  failed: number
}>
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
export type ProcessId = Frozen<{
  /** Names the machine or container in which `pid` counts. */
  host: string
  /** The number of the process on its host. */
  pid: number
  /** When the process started: it tells this process from a later one with the same pid. */
  started: number
}>
/** A worker that holds sessions, and the process it named. */
export type Holder = Frozen<{
  /** The name of the worker. */
  worker: string
  /** The process that the worker named when it claimed sessions. */
  process: ProcessId
}>
/** One account of money, in millionths of a dollar: what was spent, and what is held for calls that are at work. */
export type AccountRow = Frozen<{
  /** The id of the account, such as `session:S` or `run:S:n`. */
  id: string
  /** The most that may be spent and held together. Null for no limit. */
  limit: number | null
  /** Reserved for calls that are at work. */
  held: number
  /** What was spent so far, with the assumed part. */
  spent: number
  /** The part of `spent` that no provider reported: the whole reservation of such a call was taken. */
  assumed: number
}>
/** The record of a removed session, without its content. `bytes` are those of its events and blobs. */
export type Removal = Frozen<{
  /** The id that the session had. */
  session: string
  /** The agent that the session had. */
  agent: string
  /** How many events its log had. */
  events: number
  /** The size of its events and blobs, in bytes. */
  bytes: number
  /** When it was removed, in ms since 1970. */
  at: number
  /** Who removed it, as its remover named itself. */
  by: string
}>
/** The condition of a store. */
export type StoreHealth = Frozen<{
  /** How a commit is kept: `memory`, `unknown`, or the engine with its settings. */
  durability: string
  /** The version of its tables. Null for a store without tables. */
  schema: number | null
  /** The size of its file, or of the events and blobs in memory. Absent if it is not known. */
  bytes?: number
  /** How many sessions it has, children included. */
  sessions: number
  /** How many sessions a living worker holds. Absent if it is not known. */
  leases?: number
  /** How many sessions are due and not driven. */
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
  /** How many statements wrote. */
  written: number
  /** How often the state had changed before a write, so that it was tried again. */
  moved: number
  /** How often the answer to a write was lost, so that it was tried again. */
  lost: number
  /** How many connections this process made. */
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
    /** Only sessions whose id sorts after this one: the last id of the page before. Absent: from the first. */
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
    /** Children too, and not only roots. */
    children?: true
    /** Only sessions of this owner, which is `metadata.owner` of the session. */
    owner?: string
    /** Only sessions with each of these words in the title, the agent, the id or the labels, ignoring case. */
    q?: string
    /** Only sessions whose last run ended in one of these ways. */
    outcome?: readonly CardOutcome[]
    /** Only sessions whose last event is at this time or later, in ms since 1970. */
    since?: number
    /** Only sessions whose last event is before this time, in ms since 1970. */
    until?: number
    /** Which sessions come first. */
    order: CardOrder
    /** How many cards a page has at most. */
    limit: number
  }
> & {
  /** The place after which the page begins: `next` of the page before. Absent: the first page. */
  readonly behind?: CardPlace
}
/** `newest`: by the last event. `made`: by creation in this store. Newest first in both. */
export type CardOrder = 'newest' | 'made'
/** The end of a page, as numbers of the store, for the next page of the same query. */
export type CardPlace = Frozen<{
  /** The last card's place in the order of the query, as the store counts it. */
  at: number
  /** Tells cards with the same `at` apart. */
  n: number
}>
/** `next` is null when nothing follows. A session that grows meanwhile moves to the front and is not on later pages. */
export type CardPage = Frozen<{
  /** The cards of this page, in the order of the query. */
  cards: readonly Card[]
  /** The place from which the next page goes on. Null when nothing follows. */
  next: CardPlace | null
}>

/**
 * The due sessions that were asked for, and when the next of all sessions becomes due, or null. `next` may be too early,
 * which costs one look; with a limit of 0 it is the first due time of any session that is not driven.
 */
export type DueSessions = Frozen<{
  /** The ids of sessions that are due and not driven, the most urgent first. */
  sessions: readonly string[]
  /** When the next session becomes due, in ms since 1970. It may be too early. Null for never. */
  next: number | null
}>

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
  /** Closes the channel. Texts that were not sent yet are lost. */
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
  /**
   * The sessions with a due time, roots and children, the earliest due first, without lanes of consumers. `where`: only
   * those with all these labels. Without this method callers read all cards.
   */
  listWaking?(limit: number, where?: Labels): Promise<readonly Card[]>
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
  /** Where the process that drives the session receives its live deltas. Null if nobody drives it, or it announced no address. */
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
