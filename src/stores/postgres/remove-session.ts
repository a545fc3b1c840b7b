// Removes a session and its children: reads what the plan needs, and removes them with one guarded statement.
// plan-removal.ts decides what may go. The bytes stay in the database's files until they are vacuumed, and in its logs
// and backups.
import type { Removal } from '../../ports/store.ts'
import { isOwnAccount, ownPrefixes } from '../plan/plan-charges.ts'
import { isStoreId } from '../plan/store-ids.ts'
import { isLeaseLive } from '../plan/plan-writes.ts'
import { type ExpectedEnds, type RemovalView, planRemoval } from '../plan/plan-removal.ts'
import { fetchPresent, emptyBatchNeeds } from './fetch-present.ts'
import type { PostgresWorkerRow } from './postgres-rows.ts'
import type { Sql } from './sql.ts'

/** The named session, all sessions with it as their root, and its own root. */
const FAMILY =
  'select id, root from ~sessions where id = $1 or root = $1 or id = (select root from ~sessions where id = $1)'
const FORKS = 'select f.origin, s.id from ~forks f join ~sessions s on s.n = f.n where f.origin = any($1)'
const ACCOUNTS = `select a.id from unnest($1::text[]) p(prefix) join ~accounts a on a.id >= p.prefix and a.id < p.prefix || chr(1114111)`
const DONE =
  'select session, agent, events, bytes, at, by from ~removals where root = $1 and by = $2 and at = $3 order by n'
const REMOVE =
  'select session, agent, events, bytes, at, by from ~remove_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)'

export type RemovalRequest = {
  readonly session: string
  readonly by: string
  readonly now: number
  readonly ends: ExpectedEnds | undefined
}

/** `again`: it may be done already. */
export async function removeSessionRows(
  sql: Sql,
  { session, by, now, ends }: RemovalRequest,
  again: boolean,
): Promise<readonly Removal[]> {
  const [house, heads] = await fetchRemovalView(sql, session, now)
  if (again && isStoreId(session) && isStoreId(by) && house.rootOf(session) === null) {
    // This very removal was done, and its answer was lost.
    const done = await sql.ask<Removal>('removed', DONE, [session, by, now])
    if (done.length > 0) return sortRemovals(done, session)
  }
  const { sessions: gone, book } = planRemoval(session, by, house, ends)
  const rows = gone.map((id) => heads.get(id))
  const prefixes = gone.flatMap(ownPrefixes)
  const found = await sql.ask<{ id: string }>('own accounts', ACCOUNTS, [prefixes])
  const own = found.map(({ id }) => id).filter((id) => gone.some((each) => isOwnAccount(each, id)))
  const accounts = [...(book?.accounts.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1))
  const was = (id: string) => house.account(id) ?? { held: 0, spent: 0, assumed: 0 }
  const removed = await sql.ask<Removal>('remove', REMOVE, [
    rows.map((row) => row?.n ?? 0),
    rows.map((row) => row?.v ?? 0),
    session,
    now,
    by,
    [...(book?.holds.keys() ?? [])],
    accounts.map(({ id }) => id),
    accounts.map(({ id, held }) => was(id).held - held),
    accounts.map(({ id, spent }) => spent - was(id).spent),
    accounts.map(({ id, assumed }) => assumed - was(id).assumed),
    own,
  ])
  return sortRemovals(removed, session)
}

/** The named session first, then its children by id: the order of the plan, and so of the rows. */
function sortRemovals(removed: readonly Removal[], session: string): readonly Removal[] {
  const [first, rest] = [
    removed.filter((each) => each.session === session),
    removed.filter((each) => each.session !== session),
  ]
  const byBytes = (a: Removal, b: Removal): number => Buffer.compare(Buffer.from(a.session), Buffer.from(b.session))
  return [...first, ...rest.sort(byBytes)].map((row) => ({ ...row }))
}

/** The present state of one tree. */
async function fetchRemovalView(sql: Sql, session: string, now: number) {
  const family = isStoreId(session) ? await sql.ask<{ id: string; root: string }>('family', FAMILY, [session]) : []
  const wants = emptyBatchNeeds()
  for (const { id } of family) {
    wants.sessions.add(id)
    wants.lost.add(id)
  }
  const { view, workers } = await fetchPresent(sql, wants)
  const forks = await sql.ask<{ origin: string; id: string }>('forks', FORKS, [family.map(({ id }) => id)])
  const leaseOf = (id: string): PostgresWorkerRow | null => workers.get(view.head(id)?.worker ?? '') ?? null
  const house: RemovalView = {
    account: (id) => view.account(id),
    hold: (key) => view.hold(key),
    holdsOf: (id) => view.holdsOf(id),
    rootOf: (id) => view.heads.get(id)?.root ?? null,
    endOf: (id) => view.heads.get(id)?.seq ?? null,
    family: (root) => family.filter((each) => each.root === root && view.heads.get(each.id)).map(({ id }) => id),
    isDriven: (id) => {
      const lease = leaseOf(id)
      return lease !== null && isLeaseLive(lease, now)
    },
    forksOf: (id) => forks.filter(({ origin }) => origin === id).map((fork) => fork.id),
  }
  return [house, view.heads] as const
}
