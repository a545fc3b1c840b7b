// The public entry `terret/store`, for writing a store of your own: the port as types, the plans that decide what a
// commit does, and `completeStore`. docs/guide/stores.md tells how.
export { Fault, type FaultCode } from '../kernel/failure.ts'
export type { Event } from '../kernel/event.ts'
export type {
  AccountRow,
  Blob,
  Card,
  CardFilter,
  CardPage,
  CardQuery,
  Claim,
  CompleteStore,
  DeltaChannel,
  Deltas,
  DueSessions,
  Holder,
  Moving,
  Notifications,
  Page,
  ProcessId,
  Receipt,
  Removal,
  Search,
  Snapshot,
  Snapshots,
  Store,
  StoreHealth,
  TakeOptions,
  Upkeep,
  Workers,
  Write,
} from '../ports/store.ts'
export type { Clock } from '../ports/system.ts'
export { matchesFilter } from './plan/card-query.ts'
export { checkCount } from './plan/check-count.ts'
export { completeStore } from './plan/complete-store.ts'
export { Listeners } from './plan/listeners.ts'
export type { LogFacts } from './plan/log-facts.ts'
export type { AccountBook, AccountChanges, Hold } from './plan/plan-charges.ts'
export { type RemovalPlan, type RemovalView, planRemoval } from './plan/plan-removal.ts'
export {
  becomesDue,
  cardOfRecord,
  changesByClaim,
  changesByRelease,
  planWrites,
  SessionChange,
  type SessionRecord,
  type SessionTrouble,
  sessionMissingFault,
  type StoreView,
  type WritePlan,
} from './plan/plan-writes.ts'
export { checkId, compareIds } from './plan/store-ids.ts'
export { systemClock } from './plan/system-clock.ts'
export { upcast } from './plan/upcast.ts'
