// The door to a store, as types: what a commit holds, and what a store promises. Nothing of it runs.
import type { CallKey, Frozen, Labels, Outcome } from '../kernel/content.ts'
import type { Event, InboxBody, OwnerEvent } from '../kernel/event.ts'

/** The status of a session, and its card: the one derived row of it that indexes read. Made by view/card.ts. */
export type Status = 'idle' | 'running' | 'rescheduling' | 'requires_action' | 'terminated'

export type Card = Frozen<{
  session: string
  agent: string
  /** The program whose workers drive it. Absent for sessions of older versions. */
  program?: string
  root: string
  /** The session that a child works for. Roots have none. */
  parent?: string
  /** What the child was started for. Its parent finds it again by that. */
  task?: string
  status: Status
  /** When a worker should look: now while work is open (so a crash is found), later for a wake, null for never. */
  due: number | null
  seq: number
  at: number
  cost: number
  trouble?: Frozen<{ attempts: number; reason: string; until: number | null }>
  /** A provider is away, or (`begins: false`) what the next run needs to begin: why, and the tries. `due` says when the next is. */
  outage?: Frozen<{ reason: string; tries: number; begins?: false }>
  asks: readonly CallKey[]
  waits: readonly CallKey[]
  wakes: number
  urgent?: true
  outcome: Outcome['type'] | null
  /** Why the last run was halted or failed. Cards of older versions have no reason of a failure. */
  cause?: string
  /** Which limit ended the last run, if one did: `usd` is money. Cards of older versions do not say it. */
  limit?: Extract<Outcome, { type: 'limit' }>['limit']
  /** How many calls of the last run have an unknown outcome: they may have happened. Absent for none. */
  unknown?: number
  /** It was imported with something open, and no person has let it go on. */
  held?: true
  /** Where a root works. Its children work there too, and do not say so. */
  folder?: string
  /** What its host lists it by. Its children have the same. */
  labels?: Labels
  // The store reads these from the log as it is written, whatever the card of a write says. A damaged card has none of them.
  /** What its host calls it (`metadata.title`), or the first words of its first message: one line, at most 80 columns wide. */
  title?: string
  /** The time of its first event. */
  created?: number
  /** Who opened it, if its host said so (`metadata.owner`). */
  owner?: string
  /** Of all its model calls so far, input and output. */
  tokens?: number
}>

/** Money moves in the same commit as its event, in millionths of a dollar. Accounts `session:S`, `tree:S`, `run:S:n` go with S. */
export type Charge = Frozen<
  | { type: 'hold'; key: string; accounts: readonly string[]; amount: number }
  /** `assumed` marks usage that was not reported: settled at its full hold. `lost` settles so all open holds of this session under a key. */
  | { type: 'settle'; key: string; amount: number; assumed?: true }
  | { type: 'free' | 'lost'; key: string }
  | { type: 'limit'; account: string; limit: number | null; raisedBy?: string }
>

export type Blob = Frozen<{ hash: string; media: string; data: Uint8Array }>
export type Snapshot = Frozen<{ seq: number; version: number; body: string }>

export type OwnerWrite = Frozen<{
  session: string
  lane: 'owner'
  /** The writer's lease. 0 with `expectedSeq` 0 creates the session. */
  epoch: number
  /** The log must end here, else the commit is refused with `conflict`. */
  expectedSeq: number
  /** Stamped by the owner: contiguous from `expectedSeq + 1`, `at` never before the log's last. */
  events: readonly OwnerEvent[]
  card: Card
  /** Idempotent inbox events for other sessions, in the same transaction. */
  sends?: readonly Frozen<{ session: string; event: InboxBody }>[]
  charges?: readonly Charge[]
  blobs?: readonly Blob[]
  snapshot?: Snapshot
  /** Give the lease back in the same transaction. `gained`: a whole turn was done since it was taken. */
  release?: true
  gained?: true
}>

export type InboxWrite = Frozen<{
  session: string
  lane: 'inbox'
  /** The lease of a worker: refused with `lease_lost` once another has the session. Absent: anybody may write. */
  epoch?: number
  /** Stamped by the store. Makes the session due in the same transaction. */
  events: readonly InboxBody[]
  blobs?: readonly Blob[]
  charges?: readonly Charge[]
}>

export type Write = OwnerWrite | InboxWrite
/** One per write. For the inbox, `seqs[i]` is where event i stands, also when it was there already (`duplicate`). */
export type Receipt = Frozen<{ seqs: readonly number[]; duplicate: boolean }>
/** `damaged` names the first event that failed its checksum; everything before it is good. */
export type Page = Frozen<{ events: readonly Event[]; damaged?: Frozen<{ seq: number; reason: string }> }>

/** `seq`: how far its log went then. `failed`: attempts in a row before it that were lost, or failed, before they had done a whole turn. */
export type Claim = Frozen<{ epoch: number; seq: number; until: number; failed: number }>
/** At most `limit` sessions, only of these `agents`, only those `among` these. `process`: which one the worker is. `fresh`: only those whose claim has `failed` 0. */
export type Taking = Frozen<{
  limit: number
  agents?: readonly string[]
  among?: readonly string[]
  process?: ProcessId
  fresh?: true
}>
/** A process that other processes of its host can find again. `host` is where its numbers count; `started` tells it from a later one. */
export type ProcessId = Frozen<{ host: string; pid: number; started: number }>
/** A worker that holds sessions, and the process it said it is. */
export type Holder = Frozen<{ worker: string; process: ProcessId }>
export type AccountRow = Frozen<{ id: string; limit: number | null; held: number; spent: number; assumed: number }>
/** What is known of a session that was taken out: never what was in it. `bytes` are those of its events and blobs. */
export type Removal = Frozen<{ session: string; agent: string; events: number; bytes: number; at: number; by: string }>
/**
 * How a store stands. `durability` is how a commit is kept: `memory`, or the engine with its settings. `bytes` are those of its file, or
 * of the events and blobs in memory. `leases` are sessions that a living worker holds, `due` those that are due and not driven.
 */
export type StoreHealth = Frozen<{
  durability: string
  schema: number | null
  bytes: number
  sessions: number
  leases: number
  due: number
  /** How long the one that waits longest of these has been due. */
  waitedMs: number
  /** Why it takes no writes, though it can be read: it was moved, or lost what it had acknowledged. */
  problem?: string
  /** Only of a store that processes anywhere share. */
  network?: NetworkHealth
}>
/** What this process met since it opened the store, and how the server of the store stands. */
export type NetworkHealth = Frozen<{
  /** Statements that wrote; how often the present had moved by then, or an answer was lost: both are asked again. Connections that were made. */
  written: number
  moved: number
  lost: number
  connects: number
  /** Sessions that were asked for, and those of them that another worker had. */
  claims: Frozen<{ asked: number; vain: number }>
  /**
   * How often it heard of what other processes wrote, how long after that, in ms: in all, and at most. `missed`: those of which no hint
   * came, and which a look found.
   */
  news: Frozen<{ heard: number; missed: number; lagMs: number; lagMsMax: number }>
  /** Of its database: connections, and how many there can be. Of its sessions: updated rows, those that stayed in their page, dead rows. */
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
/** `waiting`: only sessions that may wait for a person, by their cards; it has no effect with `newest`. */
export type CardFilter = Frozen<
  Wanted & { root?: string; after?: string; newest?: true | 'made'; waiting?: true; limit: number }
>
type Wanted = {
  status?: Status
  /** Only the children of this session. `newest` then orders them, and not roots. */
  parent?: string
  folder?: string
  /** Only those that have all these labels. */
  where?: Labels
}
/**
 * How the last run of a session ended. `unknown`: a call of it may have happened, however the run ended. `quarantined`: workers leave the
 * session alone, however its last run ended.
 */
export type CardOutcome = Outcome['type'] | 'unknown' | 'quarantined'
/**
 * Roots, or the children of one `parent`. All that is given must hold. `q`: each of its words is in the title, agent, id or labels.
 * `outcome`: one of these. `since`, `until`: the last event was at or after the first time, and before the second.
 */
export type CardQuery = Frozen<
  Wanted & {
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
/** `newest`: the last event first. `made`: the last that was made in this store first. */
export type CardOrder = 'newest' | 'made'
/** Where a page ended. Numbers of the store, for the next page of the same query. */
export type CardPlace = Frozen<{ at: number; n: number }>
/** `next` is null when nothing follows. A session that grows meanwhile moves to the front, and is not on later pages. */
export type CardPage = Frozen<{ cards: readonly Card[]; next: CardPlace | null }>

/** Short texts between the processes that have a store open. One may be lost, late or doubled: nothing may rest on it. */
export interface Post {
  /** The most bytes of one text. */
  readonly bytesMax: number
  /** Where this process is reached from now on: the listener hears what is sent there. Null where nothing can be heard. Never rejects. */
  open(listener: (text: string) => void): Promise<string | null>
  /** In order. Resolves when they have left, or are lost: what is sent meanwhile waits. Never rejects. */
  send(address: string, texts: readonly string[]): Promise<void>
  close(): void
}

/**
 * The one truth. Every promise resolves only after the commit that holds its effect returned.
 * Refusals are Faults: `lease_lost`, `conflict`, `over_budget`, `disk_full`, `session_missing`, `session_closed`, `id_reused`…
 */
export interface Store {
  /** Who else may have it open: nobody, processes of this machine, or processes anywhere. */
  readonly reach: 'process' | 'machine' | 'network'
  /** Makes it ready: connects, brings its tables up to date, reads its clock. Awaited before `now` is first asked; may be called again. */
  open(): Promise<void>
  /** The store's clock, in ms, which all its workers read. It may be set: what lasts is measured by a Clock of the process. */
  now(): number
  /** The only write. Atomic over all sessions named: all of it or none of it. */
  commit(writes: readonly Write[]): Promise<readonly Receipt[]>
  /** Events after `after`, at most `limit`, in order. With `bytesMax` no more than about so many bytes of them, but at least one. */
  read(session: string, after: number, limit?: number, bytesMax?: number): Promise<Page>
  /** Where its inbox has an event with this id; null if nowhere. It reads no log. */
  sent(session: string, id: string): Promise<number | null>
  /** The newest that its owner wrote. With `upTo`: the newest at or before that event, also one that was kept by `keep`. */
  snapshot(session: string, upTo?: number): Promise<Snapshot | null>
  /** Snapshots that a reader made of the log, for `snapshot(session, upTo)`. `at`: the times of their last events. Those of another log are not kept. */
  keep(session: string, snapshots: readonly (Snapshot & { readonly at: number })[]): Promise<void>
  /**
   * Called after each commit that grew the session, by this process (with the events) or by another (with null). News of others, here and
   * in the two below, may be late or spurious, and is never missing for more than a second. `inbox` is for
   * the session's driver: it need not be told what it wrote itself.
   */
  watch(session: string, listener: (news: readonly Event[] | null) => void, only?: 'inbox'): () => void
  /** Called with each session whose card may have changed, or that was removed, by this process or by another. May tell one that has not. */
  watchCards(listener: (session: string) => void): () => void
  /** Called when some session may have become due, in this process or in another. */
  watchDue(listener: () => void): () => void
  /** A lease, or null while another worker's lives. The epoch only grows, also when the id of a removed session is used again. `process`: which one the worker is. */
  claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Promise<Claim | null>
  /**
   * One heartbeat for all of a worker's sessions; returns what it still holds. It waits for no write, so it has no order with what is
   * asked in the same moment: a claim that is under way may be missing in the answer.
   */
  extend(worker: string, ttlMs: number): Promise<ReadonlyMap<string, number>>
  /** Workers of a host that hold sessions under a lease that lives. */
  holders(host: string): Promise<readonly Holder[]>
  /** Ends a worker's lease before its time: its process is gone. Its epochs stay, and if it lives after all it goes on where no other claimed. False: it is another process by now. */
  expire(worker: string, process: ProcessId): Promise<boolean>
  release(session: string, epoch: number, trouble?: Card['trouble']): Promise<void>
  card(session: string): Promise<Card | null>
  /** Sessions that are due and not driven: those with input or open work before those with wakes, the longest waiting first. `agents`: only theirs. */
  due(limit: number, agents?: readonly string[]): Promise<readonly string[]>
  /** When the next session becomes due, or null. `agents`: it may count only theirs; a time that is too early costs one look. */
  nextDue(agents?: readonly string[]): Promise<number | null>
  /** `due` and `claim` in one step, in the order of `due`, of one tree a share while others wait: no session is given to two workers. A store without it is asked for both. */
  take?(worker: string, ttlMs: number, wanted: Taking): Promise<ReadonlyMap<string, Claim>>
  list(filter: CardFilter): Promise<readonly Card[]> // by id, from `after` on; or the roots (with `parent`: its children), `newest` last event first, or the last `made` in this store
  /** The sessions below these roots, at any depth, by root and then by id. A store without it is asked for one tree after the other. */
  listBelow?(roots: readonly string[], limit: number): Promise<readonly Card[]>
  /** A page of cards, in bounded pieces of work: other callers are served between them. */
  page(query: CardQuery): Promise<CardPage>
  /** With `of`, only one that this session or another of its tree refers to: in a commit with it, or in a message. */
  blob(hash: string, of?: string): Promise<Blob | null>
  account(id: string): Promise<AccountRow | null>
  /** Where other processes reach this worker's live deltas, and where this session's owner is reached. */
  announce(worker: string, address: string, ttlMs: number): Promise<void>
  address(session: string): Promise<string | null>
  /** A way for live deltas to other machines, one for each caller. A store whose processes share a machine has none. */
  post?(): Post
  /**
   * A root and its children, out for good; what is held is spent. `session_busy`: one is driven; `conflict`: a fork reads one, or with
   * `ends` its log, or that of a child, does not end there.
   */
  remove(session: string, by: string, ends?: ReadonlyMap<string, number>): Promise<readonly Removal[]>
  /** What was removed, newest first. Its watchers were told null, and read that it is missing. */
  removals(limit: number): Promise<readonly Removal[]>
  /** It only reads. Whether a commit can be made, only a write tells. */
  health(): Promise<StoreHealth>
  close(): Promise<void>
}
