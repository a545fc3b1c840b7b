// Queries a Postgres store: logs, verified against their checksums in large pieces, and rows found by indexes. It
// writes nothing, and never returns an event that fails its checksum.
import type { Labels } from '../../kernel/content.ts'
import { LANE_AGENTS } from '../../view/lanes.ts'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type {
  AccountRow,
  Blob,
  Card,
  CardFilter,
  Holder,
  NetworkHealth,
  Page,
  ProcessId,
  Removal,
  StoreHealth,
} from '../../ports/store.ts'
import { addSum, crc32, logSeed } from '../plan/checksum.ts'
import { isStoreId } from '../plan/store-ids.ts'
import { CLOCK_SLACK_MS, isLeaseLive, type Lease, sessionMissingFault } from '../plan/plan-writes.ts'
import { upcast } from '../plan/upcast.ts'
import { SEQ_MAX } from './fetch-present.ts'
import { cardFromRow, HEAD, type StoredPostgresRow } from './postgres-rows.ts'
import { findDetachedTable } from './event-rooms.ts'
import { SCHEMA_VERSION } from './postgres-schema.ts'
import type { Sql, PostgresValue } from './sql.ts'

// ---- Logs ------------------------------------------------------------------------------------------------------------

/** How many events are read as one text: row by row would cost three times as much. */
const PIECE = 1_024

type LogRange = { readonly after: number; readonly limit: number; readonly bytesMax: number | null }
/** `before` is the checksum of the event before the piece; `count` events are in `text`. */
type LogPiece = {
  readonly n: number
  readonly end: number
  readonly end_sum: number
  readonly before: number | null
  readonly count: number
  readonly text: string | null
  readonly sum: number | null
}

const pieceSql = (
  events: string,
): string => `select s.n::float8 as n, s.seq as end, s.sum as end_sum, p.sum as before, c.count, c.text, c.sum
  from ~sessions s left join ~events p on p.n = s.n and p.seq = $2::int
  cross join lateral (
    select count(*)::int as count, string_agg(e.body, ',' order by e.seq) as text, (array_agg(e.sum order by e.seq desc))[1] as sum
    from (${events}) e
  ) c where s.id = $1`
const EVENTS =
  'select seq, sum, body from ~events where n = s.n and seq > $2::int and seq <= $2::int + $3::int order by seq'
const PIECES = pieceSql(EVENTS)
/** At least one event, and then as many as fit. */
const BOUNDED = pieceSql(`select k.seq, k.sum, k.body from (
    select b.*, sum(octet_length(b.body)) over w as bytes, row_number() over w as i from (${EVENTS}) b window w as (order by b.seq)
  ) k where k.bytes <= $4::float8 or k.i = 1`)

/** `away`: the table with its events is currently detached from the store. */
export type LogPage = Page & { readonly n: number; readonly away?: true }

/** A log from `after` on, up to the first damage. With a bound on bytes it is one piece. */
export async function queryLog(sql: Sql, session: string, { after, limit, bytesMax }: LogRange): Promise<LogPage> {
  if (!isStoreId(session)) throw sessionMissingFault(session)
  const pieces: Event[][] = []
  let seq = Math.min(after, SEQ_MAX)
  let begun: { readonly n: number; readonly last: number } | null = null
  for (;;) {
    const wanted = Math.min(PIECE, begun === null ? limit : begun.last - seq)
    const [piece]: readonly LogPiece[] = await (bytesMax === null
      ? sql.ask<LogPiece>('log', PIECES, [session, seq, wanted])
      : sql.ask<LogPiece>('log bounded', BOUNDED, [session, seq, wanted, bytesMax]))
    // The session may have been removed and created again since the last piece.
    if (!piece || (begun !== null && piece.n !== begun.n)) throw sessionMissingFault(session)
    begun ??= { n: piece.n, last: Math.min(piece.end, after + limit) }
    const { n, last } = begun
    if (seq >= last) return { n, events: joinPieces(pieces) }
    const read = await checkPiece(sql, session, seq, piece)
    pieces.push(read.events)
    seq += read.events.length
    const damage = read.damage ?? damageAtEnd(piece, seq, read.sum)
    const table = damage === MISSING && seq === 0 ? await findDetachedTable(sql, n) : null
    if (table !== null) return { n, events: [], damaged: { seq: 1, reason: awayText(table) }, away: true }
    if (damage !== null) return { n, events: joinPieces(pieces), damaged: { seq: seq + 1, reason: damage } }
    if (seq >= last || bytesMax !== null) return { n, events: joinPieces(pieces) }
  }
}

const MISSING = 'the event is missing'

const awayText = (table: string): string =>
  `its events are in the table ${table}, which is not attached to this store. Attach it again, or restore it from where it is kept`

function damageAtEnd({ end, end_sum: endSum }: LogPiece, seq: number, sum: number): string | null {
  return seq === end && sum !== endSum ? 'the log does not end as its session says' : null
}

/** A page is often one piece; then nothing is copied. */
function joinPieces(pieces: readonly Event[][]): readonly Event[] {
  return pieces.length === 1 ? (pieces[0] ?? []) : ([] as Event[]).concat(...pieces)
}

type CheckedPiece = { readonly events: Event[]; readonly sum: number; readonly damage: string | null }

/** Checked and parsed as one text; one by one only to find the damage. */
async function checkPiece(sql: Sql, session: string, after: number, piece: LogPiece): Promise<CheckedPiece> {
  const before = after === 0 ? logSeed(session) : piece.before
  if (before === null) return { events: [], sum: 0, damage: 'the event before it is missing' }
  const { text, sum, count } = piece
  if (text === null || sum === null) return { events: [], sum: before, damage: MISSING }
  try {
    if (addSum(before, text) === sum) {
      const events = JSON.parse(`[${text}]`) as Event[]
      if (events.length === count && isInOrder(events, after)) return { events: upcastAll(events), sum, damage: null }
    }
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error
  }
  return queryOneByOne(sql, session, { after, before, count })
}

/** Each event's own seq must match its position, because an event between two may be missing. */
function isInOrder(events: readonly Event[], after: number): boolean {
  return events.every(({ seq }, i) => seq === after + 1 + i)
}

/** In place: a copy of the list would live as long as the list. */
function upcastAll(events: Event[]): Event[] {
  for (let i = 0; i < events.length; i++) events[i] = upcast(events[i] as Event)
  return events
}

const ROWS = `select e.seq, e.sum, e.body from ~sessions s join ~events e on e.n = s.n
  where s.id = $1 and e.seq > $2::int order by e.seq limit $3::int`

async function queryOneByOne(
  sql: Sql,
  session: string,
  { after, before, count }: { readonly after: number; readonly before: number; readonly count: number },
): Promise<CheckedPiece> {
  const events: Event[] = []
  let sum = before
  const stop = (damage: string | null): CheckedPiece => ({ events, sum, damage })
  for (const row of await sql.ask<{ seq: number; sum: number; body: string }>('log rows', ROWS, [
    session,
    after,
    count,
  ])) {
    if (row.seq !== after + 1 + events.length) return stop(MISSING)
    if (addSum(sum, row.body) !== row.sum) return stop('the event does not match its checksum')
    try {
      events.push(upcast(JSON.parse(row.body) as Event))
    } catch (error) {
      return stop(`the event cannot be read: ${String(error)}`)
    }
    sum = row.sum
  }
  return stop(events.length < count ? MISSING : null)
}

// ---- Cards -----------------------------------------------------------------------------------------------------------

export async function queryCard(sql: Sql, session: string): Promise<Card | null> {
  if (!isStoreId(session)) return null
  const [row] = await sql.ask<StoredPostgresRow>('card', `select ${HEAD} from ~sessions s where s.id = $1`, [session])
  return row ? cardFromRow(row) : null
}

/** No row can contain a NUL, so nothing equals such a text. */
function hasNul(text: string | undefined): boolean {
  return text?.includes('\0') ?? false
}

/** By id. */
export async function queryCardList(sql: Sql, filter: Omit<CardFilter, 'newest'>): Promise<readonly Card[]> {
  const { status, root, parent, folder, where = {}, after = '', limit, waiting = false } = filter
  const asked = { status, root, parent, folder }
  const labels = Object.entries(where)
  if ([...Object.values(asked), ...labels.flat()].some(hasNul)) return []
  // No id contains a NUL, so the ids after such a text are those after its part before the NUL.
  const values: PostgresValue[] = [after.replace(/\0.*/su, ''), Math.min(limit, SEQ_MAX)]
  const given = Object.entries(asked).filter(([, value]) => value !== undefined)
  const conditions = given.map(([name, value]) => `s.${name} = $${values.push(value ?? null)}`)
  if (labels.length > 0) conditions.push(hasLabelsSql(labels, values))
  if (waiting) conditions.push('s.waiting')
  const kind = waiting ? 'list waiting' : 'list'
  const name = `${kind}:${given.map(([each]) => each).join(',')}${labels.length > 0 ? ':labels' : ''}`
  const rows = await sql.ask<StoredPostgresRow>(
    name,
    `select ${HEAD} from ~sessions s where ${['s.id > $1', ...conditions].join(' and ')} order by s.id limit $2`,
    values,
  )
  return rows.map(cardFromRow)
}

/** The sessions below these roots, by root and then by id. */
export async function queryCardsBelow(sql: Sql, roots: readonly string[], limit: number): Promise<readonly Card[]> {
  const text = `select ${HEAD} from ~sessions s where s.root = any($1::text[]) and s.id <> s.root order by s.root, s.id limit $2`
  const known = roots.filter((root) => !hasNul(root))
  return (await sql.ask<StoredPostgresRow>('list below', text, [known, Math.min(limit, SEQ_MAX)])).map(cardFromRow)
}

/** The free ones come from the index of what is due, once for those that are urgent and once for the others. */
export async function queryWakingCards(sql: Sql, limit: number, where: Labels): Promise<readonly Card[]> {
  const labels = Object.entries(where)
  if (labels.flat().some(hasNul)) return []
  const values: PostgresValue[] = [Math.min(limit, SEQ_MAX)]
  const labelled = labels.length > 0 ? ` and ${hasLabelsSql(labels, values)}` : ''
  const wanted = `s.due is not null and s.status in ('rescheduling', 'running')
    and not starts_with(coalesce(s.agent, ''), '${LANE_AGENTS}')${labelled} order by s.due, s.n limit $1`
  const parts = [
    `select s.n, s.due from ~sessions s where s.worker is null and not s.urgent and ${wanted}`,
    `select s.n, s.due from ~sessions s where s.worker is null and s.urgent and ${wanted}`,
    `select s.n, s.due from ~workers w join ~sessions s on s.worker = w.id where ${wanted}`,
  ]
  const text = `select d.n::float8 as n from ((${parts.join(') union all (')})) d order by d.due, d.n limit $1`
  const rows = await sql.ask<{ n: number }>(`waking${labels.length > 0 ? ' labels' : ''}`, text, values)
  return queryCards(
    sql,
    rows.map(({ n }) => n),
  )
}

/** The condition that a session has all these labels. */
export function hasLabelsSql(labels: readonly (readonly [string, string])[], values: PostgresValue[]): string {
  const first =
    values.push(
      labels.map(([name]) => name),
      labels.map(([, value]) => value),
    ) - 1
  return `s.n in (select l.n from unnest($${first}::text[], $${first + 1}::text[]) w(name, value)
    join ~labels l on l.name = w.name and l.value = w.value group by l.n having count(*) = cardinality($${first}::text[]))`
}

/** The cards with these numbers, in this order. Sessions removed meanwhile are left out. */
export async function queryCards(sql: Sql, numbers: readonly number[]): Promise<readonly Card[]> {
  const text = `select ${HEAD} from ~sessions s where s.n = any($1::bigint[])`
  const rows = new Map((await sql.ask<StoredPostgresRow>('cards', text, [numbers])).map((row) => [row.n, row]))
  return numbers.flatMap((n) => {
    const row = rows.get(n)
    return row ? [cardFromRow(row)] : []
  })
}

// ---- What is due -----------------------------------------------------------------------------------------------------

/** `$1` is now. */
const LOST = `(w.until <= $1::float8 or w.until - w.ttl > $1::float8 + ${CLOCK_SLACK_MS})
  and (s.due <= $1::float8 or (s.due > $1::float8 + ${CLOCK_SLACK_MS} and s.at > $1::float8 + ${CLOCK_SLACK_MS}))`
const ANY_AHEAD = `exists (select 1 from ~workers w where w.until - w.ttl > $1::float8 + ${CLOCK_SLACK_MS})`
const agentsSql = (column: string, n: number): string => `($${n}::text[] is null or ${column} = any($${n}))`
const DUE = `select d.id from (
    (select id, urgent, due, n from ~sessions where worker is null and due <= $1::float8 and n <> all($3::bigint[]) and ${agentsSql('agent', 4)}
      order by urgent desc, due, n limit $2)
    union all
    (select s.id, s.urgent, s.due, s.n from ~workers w join ~sessions s on s.worker = w.id
      where ${LOST} and s.n <> all($3::bigint[]) and ${agentsSql('s.agent', 4)} order by s.urgent desc, s.due, s.n limit $2)
  ) d order by d.urgent desc, d.due, d.n limit $2`

/** Without the sessions with these numbers, and only of these agents. */
type DueConditions = { readonly skip: readonly number[]; readonly agents: readonly string[] | undefined }

/** The database cannot store a NUL, so no agent has one in its name. */
const storableNames = (agents: readonly string[] | undefined): readonly string[] | null =>
  agents?.filter((agent) => !agent.includes('\0')) ?? null

/** Sessions without a worker come from one index, those of lost workers from another; neither reads a log. */
export async function queryDue(
  sql: Sql,
  now: number,
  limit: number,
  { skip, agents }: DueConditions,
): Promise<readonly string[]> {
  const rows = await sql.ask<{ id: string }>('due', DUE, [now, Math.min(limit, SEQ_MAX), skip, storableNames(agents)])
  return rows.map(({ id }) => id)
}

/** The time of the database. */
export async function queryNow(sql: Sql): Promise<number> {
  const [row] = await sql.ask<{ now: number }>(
    'now',
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  )
  return row?.now ?? 0
}

/** Whether some worker's lease has times in the future. */
export async function isAnyLeaseAhead(sql: Sql, now: number): Promise<boolean> {
  const [row] = await sql.ask<{ ahead: boolean }>('any ahead', `select ${ANY_AHEAD} as ahead`, [now])
  return row?.ahead ?? false
}

const AHEAD = `select s.id from ~sessions s left join ~workers w on w.id = s.worker
  where s.due > $1::float8 + ${CLOCK_SLACK_MS} and s.at > $1::float8 + ${CLOCK_SLACK_MS}
    and (s.worker is null or w.until - w.ttl > $1::float8 + ${CLOCK_SLACK_MS})`

/** Sessions whose due time was written by a clock that was ahead. */
export async function queryAhead(sql: Sql, now: number): Promise<readonly string[]> {
  return (await sql.ask<{ id: string }>('ahead', AHEAD, [now])).map(({ id }) => id)
}

const NEXT = `select least(
    (select s.due from ~sessions s where s.worker is null and s.due is not null and s.urgent and s.n <> all($2::bigint[]) and ${agentsSql('s.agent', 3)} order by s.due limit 1),
    (select s.due from ~sessions s where s.worker is null and s.due is not null and not s.urgent and s.n <> all($2::bigint[]) and ${agentsSql('s.agent', 3)} order by s.due limit 1),
    (select min(greatest(s.due, w.until)) from ~workers w join ~sessions s on s.worker = w.id where s.due is not null and s.n <> all($2::bigint[]) and ${agentsSql('s.agent', 3)})
  ) as due, ${ANY_AHEAD} as ahead`

/**
 * When `due` will find something: a session's due time, or the end of the lease that hides it. A lease with times in
 * the future hides nothing.
 */
export async function queryNextDue(sql: Sql, now: number, { skip, agents }: DueConditions): Promise<number | null> {
  const [row] = await sql.ask<{ due: number | null; ahead: boolean }>('next due', NEXT, [
    now,
    skip,
    storableNames(agents),
  ])
  return row?.ahead ? now : (row?.due ?? null)
}

// ---- The rest --------------------------------------------------------------------------------------------------------

const HOLDERS = `select id, until, ttl as "ttlMs", host, pid, started from ~workers w
  where host = $1 and until > $2::float8 and exists (select 1 from ~sessions s where s.worker = w.id)`

/** A worker that did not give its complete process identity has no host in its row, and is not found. */
export async function queryHolders(sql: Sql, host: string, now: number): Promise<readonly Holder[]> {
  if (hasNul(host)) return []
  const rows = await sql.ask<ProcessId & Lease & { readonly id: string }>('holders', HOLDERS, [host, now])
  const live = rows.filter((row) => isLeaseLive(row, now))
  return live.map(({ id, pid, started }) => ({ worker: id, process: { host, pid, started } }))
}

const ADDRESS =
  'select w.address, w.until, w.ttl as "ttlMs" from ~sessions s join ~workers w on w.id = s.worker where s.id = $1'

export async function queryAddress(sql: Sql, session: string, now: number): Promise<string | null> {
  if (!isStoreId(session)) return null
  const [row] = await sql.ask<Lease & { readonly address: string | null }>('address', ADDRESS, [session])
  return row && isLeaseLive(row, now) ? row.address : null
}

export async function queryInboxSeq(sql: Sql, session: string, id: string): Promise<number | null> {
  if (!isStoreId(session) || !isStoreId(id)) return null
  const text = 'select i.seq from ~sessions s join ~inbox i on i.n = s.n where s.id = $1 and i.id = $2'
  const [row] = await sql.ask<{ seq: number }>('sent', text, [session, id])
  return row?.seq ?? null
}

/** The last seq of these sessions and its time. Missing sessions are left out. */
export async function queryEnds(sql: Sql, sessions: readonly string[]): Promise<ReadonlyMap<string, LogEnd>> {
  if (sessions.length === 0) return new Map()
  const text = 'select id, seq, at from ~sessions where id = any($1)'
  const rows = await sql.ask<LogEnd & { readonly id: string }>('ends', text, [sessions.filter(isStoreId)])
  return new Map(rows.map(({ id, seq, at }) => [id, { seq, at }]))
}

type LogEnd = { readonly seq: number; readonly at: number }

const GROWN = `select id from ~sessions where hour >= $2::bigint and at >= $1::float8
  union all select session from ~removals where at >= $1::float8`

/** Sessions that grew or were removed since then. */
export async function queryGrown(sql: Sql, since: number, hour: number): Promise<readonly string[]> {
  return (await sql.ask<{ id: string }>('grown', GROWN, [since, hour])).map(({ id }) => id)
}

export async function queryAccount(sql: Sql, id: string): Promise<AccountRow | null> {
  if (!isStoreId(id)) return null
  const text = 'select id, cap as "limit", held, spent, assumed from ~accounts where id = $1'
  const [row] = await sql.ask<AccountRow>('account', text, [id])
  return row ? { ...row } : null
}

const REFERS = `exists (select 1 from ~blob_refs r join ~sessions s on s.n = r.n
  where r.hash = b.hash and s.root = (select root from ~sessions where id = $2))`

export async function queryBlob(sql: Sql, hash: string, of?: string): Promise<Blob | null> {
  if (hasNul(hash) || hasNul(of)) return null
  const text = `select media, sum, data from ~blobs b where b.hash = $1 and ($2::text is null or ${REFERS})`
  const [row] = await sql.ask<{ media: string; sum: number; data: Uint8Array }>('blob', text, [hash, of ?? null])
  if (!row) return null
  if ((crc32(row.data) | 0) === row.sum) return { hash, media: row.media, data: new Uint8Array(row.data) }
  throw new Fault('store_damaged', `The blob ${hash} does not match its checksum. Restore the database from a backup.`)
}

export async function queryRemovals(sql: Sql, limit: number): Promise<readonly Removal[]> {
  const text = 'select session, agent, events, bytes, at, by from ~removals order by at desc, n desc limit $1'
  return (await sql.ask<Removal>('removals', text, [Math.min(limit, SEQ_MAX)])).map((row) => ({ ...row }))
}

type HealthRow = { readonly version: string; readonly sync: string } & HealthCounts & NetworkHealth['server']
type HealthCounts = Required<Pick<StoreHealth, 'bytes' | 'sessions' | 'leases'>> & {
  readonly free: DueCount
  readonly lost: DueCount
}
/** `since` is the earliest due time. */
type DueCount = { readonly count: number; readonly since: number | null }

const HEALTH = `select current_setting('server_version') as version, current_setting('synchronous_commit') as sync,
  pg_database_size(current_database())::float8 as bytes, (select count(*) from ~sessions)::float8 as sessions,
  (select count(*) from ~workers w join ~sessions s on s.worker = w.id
    where w.until > $1::float8 and w.until - w.ttl <= $1::float8 + ${CLOCK_SLACK_MS})::float8 as leases,
  (select json_build_object('count', count(*), 'since', min(due)) from ~sessions where worker is null and due <= $1::float8) as free,
  (select json_build_object('count', count(*), 'since', min(greatest(s.due, w.until)))
    from ~workers w join ~sessions s on s.worker = w.id where ${LOST}) as lost,
  (select numbackends from pg_stat_database where datname = current_database())::float8 as connections,
  current_setting('max_connections')::float8 as "connectionsMax",
  coalesce(pg_stat_get_tuples_updated('~sessions'::regclass), 0)::float8 as updated,
  coalesce(pg_stat_get_tuples_hot_updated('~sessions'::regclass), 0)::float8 as "updatedInPage",
  coalesce(pg_stat_get_dead_tuples('~sessions'::regclass), 0)::float8 as "deadRows",
  (select age(datfrozenxid) from pg_database where datname = current_database())::float8 as "frozenAge"`

/** Asks the server how it keeps a commit. */
export async function queryHealth(sql: Sql, now: number, met: ConnectionHealth): Promise<StoreHealth> {
  const [row] = await sql.ask<HealthRow>('health', HEALTH, [now])
  const { version, sync, bytes, sessions, leases, free, lost, ...server } = row as HealthRow
  return {
    durability: `postgres ${version}, synchronous_commit ${sync}`,
    schema: SCHEMA_VERSION,
    bytes,
    sessions,
    leases,
    due: free.count + lost.count,
    waitedMs: Math.max(0, now - Math.min(free.since ?? now, lost.since ?? now)),
    network: { ...met, server },
  }
}

type ConnectionHealth = Omit<NetworkHealth, 'server'>

/**
 * The message for writers if the store was moved, or if its arrival is not complete. Nearly no store has this table.
 */
export async function queryMoved(sql: Sql): Promise<string | null> {
  const [known] = await sql.ask<{ there: boolean }>('moved', `select to_regclass('~moves') is not null as there`)
  if (known?.there !== true) return null
  const [move] = await sql.ask<{ text: string }>('moved text', 'select text from ~moves')
  return move?.text ?? null
}
