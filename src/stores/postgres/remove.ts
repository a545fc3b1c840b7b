// Removes a session and its children: reads what the plan needs, and takes it out by one guarded statement. What may go is decided by
// removal.ts. The bytes of what was removed stay in the database's files until they are vacuumed, and in its logs and backups.
import type { Removal } from '../../ports/store.ts'
import { isOwnAccount, ownPrefixes } from '../plan/charges.ts'
import { isStoreId } from '../plan/id.ts'
import { isLive } from '../plan/plan.ts'
import { type Ends, type Household, planRemoval } from '../plan/removal.ts'
import { fetch, noWants } from './fetch.ts'
import type { WorkerRow } from './rows.ts'
import type { Sql } from './sql.ts'

/** Its sessions: the one that is named, those that have it as their root, and its own root. */
const FAMILY =
  'select id, root from ~sessions where id = $1 or root = $1 or id = (select root from ~sessions where id = $1)'
const FORKS = 'select f.origin, s.id from ~forks f join ~sessions s on s.n = f.n where f.origin = any($1)'
const ACCOUNTS = `select a.id from unnest($1::text[]) p(prefix) join ~accounts a on a.id >= p.prefix and a.id < p.prefix || chr(1114111)`
const DONE =
  'select session, agent, events, bytes, at, by from ~removals where root = $1 and by = $2 and at = $3 order by n'
const REMOVE =
  'select session, agent, events, bytes, at, by from ~remove_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)'

export type Removing = {
  readonly session: string
  readonly by: string
  readonly now: number
  readonly ends: Ends | undefined
}

/** `again`: it may be done already. */
export async function removeSession(
  sql: Sql,
  { session, by, now, ends }: Removing,
  again: boolean,
): Promise<readonly Removal[]> {
  const [house, heads] = await look(sql, session, now)
  if (again && isStoreId(session) && isStoreId(by) && house.rootOf(session) === null) {
    // It was this very removal, and its answer was lost.
    const done = await sql.ask<Removal>('removed', DONE, [session, by, now])
    if (done.length > 0) return inOrder(done, session)
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
  return inOrder(removed, session)
}

/** The one that was named, then its children by id. Their plan had them in this order, and so have their rows. */
function inOrder(removed: readonly Removal[], session: string): readonly Removal[] {
  const [first, rest] = [
    removed.filter((each) => each.session === session),
    removed.filter((each) => each.session !== session),
  ]
  const byBytes = (a: Removal, b: Removal): number => Buffer.compare(Buffer.from(a.session), Buffer.from(b.session))
  return [...first, ...rest.sort(byBytes)].map((row) => ({ ...row }))
}

/** The present of one family. */
async function look(sql: Sql, session: string, now: number) {
  const family = isStoreId(session) ? await sql.ask<{ id: string; root: string }>('family', FAMILY, [session]) : []
  const wants = noWants()
  for (const { id } of family) {
    wants.sessions.add(id)
    wants.lost.add(id)
  }
  const { view, workers } = await fetch(sql, wants)
  const forks = await sql.ask<{ origin: string; id: string }>('forks', FORKS, [family.map(({ id }) => id)])
  const leaseOf = (id: string): WorkerRow | null => workers.get(view.head(id)?.worker ?? '') ?? null
  const house: Household = {
    account: (id) => view.account(id),
    hold: (key) => view.hold(key),
    holdsOf: (id) => view.holdsOf(id),
    rootOf: (id) => view.heads.get(id)?.root ?? null,
    endOf: (id) => view.heads.get(id)?.seq ?? null,
    family: (root) => family.filter((each) => each.root === root && view.heads.get(each.id)).map(({ id }) => id),
    isDriven: (id) => {
      const lease = leaseOf(id)
      return lease !== null && isLive(lease, now)
    },
    forksOf: (id) => forks.filter(({ origin }) => origin === id).map((fork) => fork.id),
  }
  return [house, view.heads] as const
}
