// A store with some of its capabilities taken away: what is left is the core, and the fallbacks of completeStore.
import type { CompleteStore, Store } from '../../src/ports/store.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import type { Capability, Fixture } from './fixture.ts'

const FOREVER_MS = 1e15

export function without({ store, clock }: Fixture, ...absent: readonly Capability[]): Fixture {
  return { clock, store: completeStore(coreOf(store, absent), { clock, steady: clock }) }
}

export function coreOf(store: CompleteStore, absent: readonly Capability[]): Store {
  const has = (name: Capability): boolean => !absent.includes(name)
  const core: Store = {
    open: () => store.open(),
    commit: (writes) => store.commit(writes),
    read: (session, after, limit, bytesMax) => store.read(session, after, limit, bytesMax),
    claim: (session, worker, ttlMs, process) =>
      store.claim(session, worker, has('workers') ? ttlMs : FOREVER_MS, process),
    release: (session, epoch, trouble) => store.release(session, epoch, trouble),
    due: (limit, agents) => store.due(limit, agents),
    card: (session) => store.card(session),
    list: (filter) => store.list(filter),
    blob: (hash, of) => store.blob(hash, of),
    account: (id) => store.account(id),
    close: () => store.close(),
  }
  const kept = (['workers', 'notifications', 'snapshots', 'search', 'upkeep', 'deltas'] as const).filter(has)
  return { ...core, ...Object.fromEntries(kept.map((name) => [name, store])) }
}
