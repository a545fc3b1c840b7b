// Finds the jobs that need a row which another transaction keeps locked. It waits for nothing and changes nothing.
// write-queue.ts decides what happens to such a job.
import type { BatchNeeds } from './fetch-present.ts'
import { isStoreId } from '../plan/store-ids.ts'
import type { Sql, PostgresValue } from './sql.ts'

/**
 * Locks every row for an instant and skips rows that are locked already: the missing ones are locked. It takes the same
 * lock as a write. A job names its accounts, or holds that name them.
 */
const FIND_LOCKED = `with
  wanted_sessions as (select w.job, s.n from unnest($1::int[], $2::text[]) w(job, id) join ~sessions s on s.id = w.id),
  free_sessions as (select s.n from ~sessions s where s.n in (select n from wanted_sessions) for no key update skip locked),
  wanted_holds as (
    select w.job, h.key, h.accounts from unnest($5::int[], $6::text[]) w(job, key) join ~holds h on h.key = w.key
    union all select w.job, h.key, h.accounts from unnest($7::int[], $8::text[]) w(job, session) join ~holds h on h.session = w.session),
  free_holds as (select h.key from ~holds h where h.key in (select key from wanted_holds) for no key update skip locked),
  wanted_accounts as (
    select w.job, w.id from unnest($3::int[], $4::text[]) w(job, id) join ~accounts a on a.id = w.id
    union select w.job, json_array_elements_text(w.accounts::json) from wanted_holds w),
  free_accounts as (select a.id from ~accounts a where a.id in (select id from wanted_accounts) for no key update skip locked)
  select distinct job from (
    select job from wanted_sessions where n not in (select n from free_sessions)
    union all select job from wanted_holds where key not in (select key from free_holds)
    union all select w.job from wanted_accounts w join ~accounts a on a.id = w.id where w.id not in (select id from free_accounts)
  ) found`

/** Returns the indexes of the jobs that need a locked row. */
export async function findLocked(sql: Sql, jobs: readonly BatchNeeds[]): Promise<ReadonlySet<number>> {
  const pairsOf = (idsOf: (wants: BatchNeeds) => ReadonlySet<string>): readonly [PostgresValue, PostgresValue] => {
    const pairs = jobs.flatMap((wants, job) => [...idsOf(wants)].filter(isStoreId).map((id) => ({ job, id })))
    return [pairs.map(({ job }) => job), pairs.map(({ id }) => id)]
  }
  const values = [
    ...pairsOf(({ sessions }) => sessions),
    ...pairsOf(({ accounts }) => accounts),
    ...pairsOf(({ holds }) => holds),
    ...pairsOf(({ lost }) => lost),
  ]
  const rows = await sql.ask<{ job: number }>('find locked', FIND_LOCKED, values)
  return new Set(rows.map(({ job }) => job))
}
