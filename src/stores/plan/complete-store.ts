// Fills in what a store cannot do itself, so that the runtime knows one kind of store. Each fallback needs only the core
// of a store; docs/decisions/0145-a-store-is-a-core-and-what-it-may-do.md says what each promises.
import type {
  CompleteStore,
  Deltas,
  Notifications,
  Search,
  Snapshots,
  Store,
  Upkeep,
  Workers,
} from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { countHealth, removalRefused } from './absent-upkeep.ts'
import { checkCount } from './check-count.ts'
import { ListSearch } from './list-search.ts'
import { OwnNews } from './own-news.ts'
import { ProcessLeases } from './process-leases.ts'
import { steadyClock, systemClock } from './system-clock.ts'

/** `clock` is the machine's clock, and `steady` measures durations. */
type CompleteClocks = { readonly clock: Clock; readonly steady: Clock }
const CLOCKS: CompleteClocks = { clock: systemClock, steady: steadyClock }

/** One for each store, so that all harnesses of this process hear of each other's commits. */
const completed = new WeakMap<Store, CompleteStore>()

/** A store that has every capability itself is returned unchanged. */
export function completeStore(store: Store, clocks: CompleteClocks = CLOCKS): CompleteStore {
  if (isComplete(store)) return store
  const known = completed.get(store) ?? fillIn(store, clocks)
  completed.set(store, known)
  completed.set(known, known)
  return known
}

const CAPABILITIES = ['workers', 'notifications', 'snapshots', 'search', 'upkeep', 'deltas'] as const
type Capabilities = (typeof CAPABILITIES)[number]

function isComplete(store: Store): store is CompleteStore {
  const itself: unknown = store
  return CAPABILITIES.every((name) => store[name] === itself)
}

function fillIn(store: Store, { clock, steady }: CompleteClocks): CompleteStore {
  const leases = store.workers ? null : new ProcessLeases(store, clock)
  const workers = store.workers ?? (leases as ProcessLeases)
  const own = store.notifications ? null : new OwnNews(store, workers.reach === 'process' ? null : steady)
  return withCapabilities({
    ...fillCore(store, leases, own),
    ...fillWorkers(workers, own),
    ...fillNotifications(store.notifications ?? (own as OwnNews)),
    ...fillSnapshots(store),
    ...fillSearch(store),
    ...fillUpkeep(store, { leases, own, now: () => workers.now() }),
    ...fillDeltas(store),
    ...(store.moving ? { moving: store.moving } : {}),
  })
}

type CoreMembers = Pick<CompleteStore, Exclude<keyof Store, Capabilities | 'moving'>>

function fillCore(store: Store, leases: ProcessLeases | null, own: OwnNews | null): CoreMembers {
  const claims = leases ?? store
  return {
    open: () => store.open(),
    commit: async (writes) => {
      const receipts = await store.commit(writes)
      leases?.noteCommit(writes)
      own?.tellCommit(writes, receipts)
      return receipts
    },
    read: (session, after, limit, bytesMax) => store.read(session, after, limit, bytesMax),
    claim: (session, worker, ttlMs, process) => claims.claim(session, worker, ttlMs, process),
    release: async (session, epoch, trouble) => {
      await claims.release(session, epoch, trouble)
      own?.tellReleased(session)
    },
    due: (limit, agents) => store.due(limit, agents),
    card: (session) => store.card(session),
    list: (filter) => store.list(filter),
    blob: (hash, of) => store.blob(hash, of),
    account: (id) => store.account(id),
    close: async () => {
      own?.close()
      await store.close()
    },
  }
}

function fillWorkers(workers: Workers, own: OwnNews | null): Workers {
  const take = workers.take?.bind(workers)
  return {
    reach: workers.reach,
    now: () => workers.now(),
    extend: (worker, ttlMs) => workers.extend(worker, ttlMs),
    ...(take ? { take } : {}),
    holders: (host) => workers.holders(host),
    expire: async (worker, process) => {
      const ended = await workers.expire(worker, process)
      if (ended) own?.tellDue()
      return ended
    },
  }
}

function fillNotifications(news: Notifications): Notifications {
  return {
    watch: (session, listener, only) => news.watch(session, listener, only),
    watchCards: (listener) => news.watchCards(listener),
    watchDue: (listener) => news.watchDue(listener),
  }
}

/** Without snapshots a session is folded from the beginning of its log. */
function fillSnapshots({ snapshots }: Store): Snapshots {
  return {
    snapshot: async (session, upTo) => snapshots?.snapshot(session, upTo) ?? null,
    keep: async (session, kept) => snapshots?.keep(session, kept),
  }
}

function fillSearch(store: Store): Search {
  const search: Search = store.search ?? new ListSearch(store)
  const listBelow = search.listBelow?.bind(search)
  const listWaking = search.listWaking?.bind(search)
  return {
    page: (query) => search.page(query),
    sent: (session, id) => search.sent(session, id),
    ...(listBelow ? { listBelow } : {}),
    ...(listWaking ? { listWaking } : {}),
  }
}

type UpkeepParts = { readonly leases: ProcessLeases | null; readonly own: OwnNews | null; readonly now: () => number }

function fillUpkeep(store: Store, { leases, own, now }: UpkeepParts): Upkeep {
  const { upkeep } = store
  return {
    remove: async (session, by, ends) => {
      if (!upkeep) throw removalRefused()
      const removed = await upkeep.remove(session, by, ends)
      for (const each of removed) leases?.noteRemoved(each.session)
      for (const each of removed) own?.tellRemoved(each.session)
      return removed
    },
    removals: async (limit) => {
      checkCount('limit', limit)
      return upkeep?.removals(limit) ?? []
    },
    health: async () =>
      upkeep?.health() ?? { ...(await countHealth(store, now())), ...(leases ? { leases: leases.count } : {}) },
  }
}

/** Without deltas, a follower in another process gets only the events of a session. */
function fillDeltas({ deltas }: Store): Deltas {
  const post = deltas?.post?.bind(deltas)
  return {
    announce: async (worker, address, ttlMs) => deltas?.announce(worker, address, ttlMs),
    address: async (session) => deltas?.address(session) ?? null,
    ...(post ? { post } : {}),
  }
}

/** Each capability of the complete store is the store itself. */
export function withCapabilities(members: Omit<CompleteStore, Capabilities>): CompleteStore {
  // Safe: the code sets exactly the properties that the type omits.
  const itself = Object.fromEntries(CAPABILITIES.map((name) => [name, members])) as unknown
  return Object.assign(members, itself as Pick<CompleteStore, Capabilities>)
}
