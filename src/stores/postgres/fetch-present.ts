// Fetches the rows that a batch needs, in one statement without a lock. It decides nothing and remembers nothing:
// write-queue.ts does.
import type { AccountRow } from '../../ports/store.ts'
import type { Hold } from '../plan/plan-charges.ts'
import { isStoreId } from '../plan/store-ids.ts'
import { FetchedView, type PlanNeeds, emptyNeeds } from '../plan/plan-needs.ts'
import { HEAD, type PostgresRow, parseRow, type StoredPostgresRow, type PostgresWorkerRow } from './postgres-rows.ts'
import type { Sql, PostgresValue } from './sql.ts'
import { bitMask } from './schema-texts.ts'

/** The needs of a batch: those of its commits and some more. */
export type BatchNeeds = PlanNeeds & {
  readonly workers: Set<string>
  /** How many numbers for new sessions are needed. */
  numbers: number
}

export function emptyBatchNeeds(): BatchNeeds {
  return Object.assign(emptyNeeds(), { workers: new Set<string>(), numbers: 0 })
}

/** The fetched state for a batch. */
export type BatchPresent = {
  readonly view: FetchedView<PostgresRow>
  readonly workers: Map<string, PostgresWorkerRow | null>
  readonly numbers: number[]
}

export function emptyPresent(now = 0): BatchPresent {
  return { view: new FetchedView<PostgresRow>(now), workers: new Map(), numbers: [] }
}

type QueryPart = { readonly key: string; readonly sql: string; readonly values: readonly PostgresValue[] }

/** The answer of the statement: for each requested part a list of rows, as JSON. */
type FetchAnswer = { readonly now: number } & Readonly<Record<string, string | number | null>>

const WORKER = 'until, ttl as "ttlMs", address, host, pid, started'
const rowsSql = (sql: string): string => `(select json_agg(r) from (${sql}) r)::text`
const HOLDS = 'select h.key, h.amount, h.accounts, h.session from ~holds h where h.key = any($1) or h.session = any($2)'

/** The longest possible log. */
export const SEQ_MAX = 2 ** 30

/** The parts that a batch needs; few batches need more than two. */
function queryParts(wants: BatchNeeds): readonly QueryPart[] {
  const letters = [...wants.letters].flatMap(([session, ids]) => [...ids].map((id) => [session, id] as const))
  const asked = letters.filter(([session, id]) => isStoreId(session) && isStoreId(id))
  const spans = wants.bodies.filter(
    ({ session, after }) => isStoreId(session) && Number.isInteger(after) && Math.abs(after) < SEQ_MAX,
  )
  const ids = (set: ReadonlySet<string>): readonly string[] => [...set].filter(isStoreId)
  const [holds, lost] = [ids(wants.holds), ids(wants.lost)]
  const parts: QueryPart[] = [
    {
      key: 'sessions',
      sql: `select ${HEAD}, e.sum as last, w.until, w.ttl as "ttlMs", w.address, w.host, w.pid, w.started from ~sessions s
        left join ~workers w on w.id = s.worker left join ~events e on e.n = s.n and e.seq = s.seq where s.id = any($1)`,
      values: [ids(wants.sessions)],
    },
    {
      key: 'letters',
      sql: `select s.id as session, i.id, i.seq, e.body from unnest($1::text[], $2::text[]) l(session, id) join ~sessions s on s.id = l.session
        join ~inbox i on i.n = s.n and i.id = l.id left join ~events e on e.n = i.n and e.seq = i.seq`,
      values: [asked.map(([session]) => session), asked.map(([, id]) => id)],
    },
    { key: 'holds', sql: HOLDS, values: [holds, lost] },
    {
      key: 'accounts',
      // `lateral` and `offset 0`: each account is looked up by its key. A plain join is planned as a scan of all of
      // them.
      sql: `select a.* from (select unnest($3::text[]) as id union select json_array_elements_text(h.accounts::json) from (${HOLDS}) h) wanted
        cross join lateral (select a.id, a.cap, a.held, a.spent, a.assumed from ~accounts a where a.id = wanted.id offset 0) a`,
      values: [holds, lost, ids(wants.accounts)],
    },
    {
      key: 'ends',
      sql: 'select session, max(epoch)::float8 as epoch from ~removals where session = any($1) group by session',
      values: [ids(wants.fresh)],
    },
    {
      key: 'bodies',
      sql: `select b.session, b.after, e.seq, e.body from unnest($1::text[], $2::int[], $3::int[]) b(session, after, count)
        join ~sessions s on s.id = b.session join ~events e on e.n = s.n and e.seq > b.after and e.seq <= b.after + b.count order by e.seq`,
      values: [spans.map(({ session }) => session), spans.map(({ after }) => after), spans.map(({ count }) => count)],
    },
    { key: 'workers', sql: `select id, ${WORKER} from ~workers where id = any($1)`, values: [ids(wants.workers)] },
    {
      key: 'numbers',
      sql: `select nextval('~numbers')::float8 as n from generate_series(1, $1::int)`,
      values: wants.numbers === 0 ? [[]] : [wants.numbers],
    },
  ]
  return parts
}

function isPartNeeded({ values }: QueryPart): boolean {
  return values.some((value) => !Array.isArray(value) || value.length > 0)
}

export async function fetchPresent(sql: Sql, wants: BatchNeeds): Promise<BatchPresent> {
  const all = queryParts(wants)
  const parts = all.filter(isPartNeeded)
  const values: PostgresValue[] = []
  const columns = parts.map((part) => {
    const first = values.length
    values.push(...part.values)
    const text = part.sql.replace(/\$(\d)/g, (_, i: string) => `$${first + Number(i)}`)
    return `${rowsSql(text)} as ${part.key}`
  })
  const now = 'extract(epoch from clock_timestamp())::float8 * 1000 as now'
  const [answer] = await sql.ask<FetchAnswer>(
    `fetch ${bitMask(all.map(isPartNeeded))}`,
    `select ${[now, ...columns].join(', ')}`,
    values,
  )
  const present = emptyPresent(answer?.now)
  fillPresent(present, wants, (key) => JSON.parse(String(answer?.[key] ?? '[]')) as never)
  return present
}

/** Fills in every listed row, with null where the store has none. */
function fillPresent(present: BatchPresent, wants: BatchNeeds, rowsOf: <T>(key: string) => readonly T[]): void {
  const { view } = present
  for (const id of wants.sessions) view.heads.set(id, null)
  for (const id of wants.workers) present.workers.set(id, null)
  for (const row of rowsOf<StoredPostgresRow & PostgresWorkerRow & { last: number | null }>('sessions')) {
    view.heads.set(row.id, parseRow(row, row.last))
    if (row.worker !== null) present.workers.set(row.worker, row.until === null ? null : workerOf(row))
  }
  for (const row of rowsOf<PostgresWorkerRow & { id: string }>('workers')) present.workers.set(row.id, workerOf(row))
  for (const [session, ids] of wants.letters)
    view.letters.set(session, new Map([...ids].map((id) => [id, null] as const)))
  for (const { session, id, seq, body } of rowsOf<{ session: string; id: string; seq: number; body: string | null }>(
    'letters',
  ))
    view.letters.get(session)?.set(id, { seq, body: body ?? '{}' })
  fillMoney(view, wants, rowsOf)
  for (const id of wants.fresh) view.ends.set(id, null)
  for (const { session, epoch } of rowsOf<{ session: string; epoch: number }>('ends')) view.ends.set(session, epoch)
  const stored = groupBodies(rowsOf('bodies'))
  for (const { session, after } of wants.bodies) {
    const places = view.stored.get(session) ?? new Map<number, readonly string[]>()
    view.stored.set(session, places.set(after, stored.get(session)?.get(after) ?? []))
  }
  for (const { n } of rowsOf<{ n: number }>('numbers')) present.numbers.push(n)
}

type StoredBody = { readonly session: string; readonly after: number; readonly seq: number; readonly body: string }

/** The same position may be listed with two counts: each event is kept once, in order. */
function groupBodies(found: readonly StoredBody[]): ReadonlyMap<string, ReadonlyMap<number, readonly string[]>> {
  const all = new Map<string, Map<number, string[]>>()
  for (const { session, after, seq, body } of found) {
    const places = all.get(session) ?? new Map<number, string[]>()
    const list = places.get(after) ?? []
    if (list.length === seq - after - 1) list.push(body)
    all.set(session, places.set(after, list))
  }
  return all
}

type StoredHold = { readonly key: string; readonly amount: number; readonly accounts: string; readonly session: string }
type StoredAccount = Omit<AccountRow, 'limit'> & { readonly cap: number | null }

function fillMoney(view: BatchPresent['view'], wants: BatchNeeds, rowsOf: <T>(key: string) => readonly T[]): void {
  for (const key of wants.holds) view.holds.set(key, null)
  for (const id of wants.accounts) view.accounts.set(id, null)
  for (const session of wants.lost) view.lost.add(session)
  for (const { key, amount, accounts, session } of rowsOf<StoredHold>('holds')) {
    const hold: Hold = { amount, accounts: JSON.parse(accounts) as string[], session }
    view.holds.set(key, hold)
    for (const id of hold.accounts) if (!view.accounts.has(id)) view.accounts.set(id, null)
  }
  for (const { id, cap, held, spent, assumed } of rowsOf<StoredAccount>('accounts'))
    view.accounts.set(id, { id, limit: cap, held, spent, assumed })
}

function workerOf({ until, ttlMs, address, host, pid, started }: PostgresWorkerRow): PostgresWorkerRow {
  return { until, ttlMs, address, host, pid, started }
}
