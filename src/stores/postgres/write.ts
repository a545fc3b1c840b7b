// The one statement that writes a batch, if everything it was planned on is still so: else nothing is written (22012, a Stale).
// Its parts follow from what the batch holds; few batches have more than three. Rows are locked in this order: sessions, workers,
// accounts, holds. It decides nothing: batch.ts has.
import { Fault } from '../../kernel/failure.ts'
import type { Card } from '../../ports/store.ts'
import { crc32 } from '../plan/checksum.ts'
import { findable } from '../plan/facts.ts'
import { SNAPSHOT_SPAN } from '../plan/snapshots.ts'
import type { Batch, Change } from './batch.ts'
import { type Column, column, columnsOf, type Part, statementOf } from './parts.ts'
import { cardIn, factsSumOf, hourOf, type Row } from './rows.ts'
import { lockKey } from './schema.ts'
import { snapshotSum } from './snapshots.ts'
import type { Sql } from './sql.ts'

/** The end of a log as this process wrote it last. */
export type Witness = { readonly session: string; readonly n: number; readonly seq: number; readonly sum: number }

/** A server takes messages of less than a gigabyte, and ends the connection over a larger one. */
const STATEMENT_BYTES_MAX = 1_000_000_000
const TOO_LARGE =
  'A commit of over 1 GB cannot be written to Postgres: its messages end there. Use smaller files, or fewer at once.'

/** Returns the time of the database. With a witness nothing is written to a database that does not know it: an older copy. */
export async function write(sql: Sql, batch: Batch, witness: Witness | null): Promise<number> {
  const [name, text, values] = statementOf(partsOf(batch, witness))
  const bytes = values.reduce<number>((sum, value) => sum + (value instanceof Uint8Array ? value.byteLength : 0), 0)
  if (bytes > STATEMENT_BYTES_MAX) throw new Fault('invalid_input', TOO_LARGE)
  const [row] = await sql.ask<{ now: number }>(name, text, values)
  return row?.now ?? 0
}

/** `r` is a witness. Its session still ends there, or went on, or was removed. */
const KNOWN = `exists (select 1 from ~sessions s where s.n = r.n and s.seq = r.seq and s.sum = r.sum)
  or exists (select 1 from ~events e where e.n = r.n and e.seq = r.seq and e.sum = r.sum)
  or exists (select 1 from ~removals m where m.n = r.n)`

/** Whether the database has what this process wrote last. */
export async function isKnown(sql: Sql, { n, seq, sum }: Witness): Promise<boolean> {
  const text = `select 1 from (select $1::bigint as n, $2::int as seq, $3::int as sum) r where ${KNOWN}`
  return (await sql.ask('witness', text, [n, seq, sum])).length > 0
}

/** A session that is changed is guarded by its own row. */
function witnessPart({ changes }: Batch, witness: Witness | null): Part {
  const was = witness && changes.get(witness.session)?.was
  const isGuarded = was?.n === witness?.n && was?.seq === witness?.seq && was?.sum === witness?.sum
  const rows = witness === null || isGuarded ? [] : [witness]
  return {
    key: 'witness',
    size: rows.length,
    columns: () => [
      column(rows, 'n', 'bigint', ({ n }) => n),
      column(rows, 'seq', 'int', ({ seq }) => seq),
      column(rows, 'sum', 'int', ({ sum }) => sum),
    ],
    sql: `select 1 from $rows where ${KNOWN}`,
    guards: rows.length,
  }
}

function partsOf(batch: Batch, witness: Witness | null): readonly Part[] {
  return [
    witnessPart(batch, witness),
    ...sessionParts(batch),
    ...workerParts(batch),
    ...moneyParts(batch),
    ...blobParts(batch),
    ...logParts(batch),
    ...snapshotParts(batch),
  ]
}

/** By number: so that two statements lock them in the same order. */
function byNumber(a: { readonly row: Row }, b: { readonly row: Row }): number {
  return a.row.n - b.row.n
}

const PLACE = ['seq', 'at', 'sum', 'epoch', 'worker', 'due', 'urgent', 'tries', 'trouble', 'status', 'card', 'tokens']
/** What seldom changes, and is sent only then. */
const NAMES = ['root', 'agent', 'hour', 'title', 'owner', 'folder', 'parent', 'facts_sum']
const COLUMNS = [...PLACE, ...NAMES].join(', ')
const change = (columns: readonly string[]): string => {
  const sets = columns.map((name) => (name === 'card' ? 'card = coalesce(r.card, s.card)' : `${name} = r.${name}`))
  return `update ~sessions s set v = s.v + 1, ${sets.join(', ')} from $rows
    where s.n = r.n and s.v = r.v and s.sum = r.was_sum returning 1`
}
const GO_ON = change(PLACE)
const CHANGE = change([...PLACE, ...NAMES])
const MAKE = `insert into ~sessions (n, v, id, created, ${COLUMNS}) select n, 1, id, created, ${COLUMNS} from $rows
  on conflict do nothing returning 1`

function isNamedAnew({ row, was }: Change): boolean {
  if (was === null || row === was) return was === null
  const isSame =
    row.root === was.root && row.agent === was.agent && row.folder === was.folder && row.parent === was.parent
  const { facts } = row
  return (
    !isSame || facts.title !== was.facts.title || facts.owner !== was.facts.owner || hourOf(row.at) !== hourOf(was.at)
  )
}

function placeColumns(rows: readonly Change[]): readonly Column[] {
  const of = columnsOf(rows)
  return [
    of('n', 'bigint', ({ row: { n } }) => n),
    of('seq', 'int', ({ row: { seq } }) => seq),
    of('at', 'float8', ({ row: { at } }) => at),
    of('sum', 'int', ({ row: { sum } }) => sum),
    of('epoch', 'bigint', ({ row: { epoch } }) => epoch),
    of('worker', 'text', ({ row: { worker } }) => worker),
    of('due', 'float8', ({ row: { due } }) => due),
    of('urgent', 'boolean', ({ row: { urgent } }) => urgent),
    of('tries', 'int', ({ row: { tries } }) => tries),
    of('trouble', 'text', ({ row: { trouble } }) => trouble && JSON.stringify(trouble)),
    of('status', 'text', ({ row: { status } }) => status),
    // One that stays is not sent again.
    of('card', 'text', ({ row: { card }, was }) => (card === was?.card ? null : card)),
    of('tokens', 'float8', ({ row: { facts } }) => facts.tokens),
  ]
}

function nameColumns(rows: readonly Change[]): readonly Column[] {
  const of = columnsOf(rows)
  return [
    of('root', 'text', ({ row: { root } }) => root),
    of('agent', 'text', ({ row: { agent } }) => agent),
    of('hour', 'bigint', ({ row: { at } }) => hourOf(at)),
    of('title', 'text', ({ row: { facts } }) => facts.title),
    of('owner', 'text', ({ row: { facts } }) => facts.owner),
    of('folder', 'text', ({ row: { folder } }) => folder),
    of('parent', 'text', ({ row: { parent } }) => parent),
    of('facts_sum', 'int', ({ row }) => factsSumOf(row)),
  ]
}

function sessionParts(batch: Batch): readonly Part[] {
  const all = [...batch.changes].map(([id, { row, was }]) => ({ id, row, was })).sort(byNumber)
  const [changed, made] = [all.filter(({ was }) => was !== null), all.filter(({ was }) => was === null)]
  const guards = [...batch.guards.values()].sort((a, b) => a - b)
  const isRenaming = changed.some(isNamedAnew)
  const wasColumns = (): readonly Column[] => [
    column(changed, 'v', 'bigint', ({ was }) => was?.v ?? 0),
    column(changed, 'was_sum', 'int', ({ was }) => was?.sum ?? 0),
  ]
  return [
    {
      key: 'gone_on',
      size: isRenaming ? 0 : changed.length,
      columns: () => [...placeColumns(changed), ...wasColumns()],
      sql: GO_ON,
      guards: changed.length,
    },
    {
      key: 'changed',
      size: isRenaming ? changed.length : 0,
      columns: () => [...placeColumns(changed), ...nameColumns(changed), ...wasColumns()],
      sql: CHANGE,
      guards: changed.length,
    },
    {
      key: 'made',
      size: made.length,
      columns: () => [
        ...placeColumns(made),
        ...nameColumns(made),
        column(made, 'id', 'text', ({ id }) => id),
        column(made, 'created', 'float8', ({ row }) => row.facts.created),
      ],
      sql: MAKE,
      guards: made.length,
    },
    {
      key: 'kept',
      size: guards.length,
      columns: () => [column(guards, 'n', 'bigint', (n) => n)],
      sql: 'select s.n from $rows join ~sessions s on s.n = r.n for key share of s',
      guards: guards.length,
    },
  ]
}

const WORKER_KEPT_MS = 24 * 60 * 60 * 1000

function workerParts({ workers, endedLeases, isNewWorker, now }: Batch): readonly Part[] {
  const rows = [...workers].sort(([a], [b]) => (a < b ? -1 : 1))
  const ended = [...endedLeases].filter(([id]) => !workers.has(id))
  return [
    {
      key: 'ended',
      size: ended.length,
      columns: () => [
        column(ended, 'id', 'text', ([id]) => id),
        column(ended, 'until', 'float8', ([, until]) => until),
      ],
      sql: 'select w.id from $rows join ~workers w on w.id = r.id and w.until = r.until for share of w',
      guards: ended.length,
    },
    {
      key: 'workers',
      size: rows.length,
      columns: () => [
        column(rows, 'id', 'text', ([id]) => id),
        column(rows, 'until', 'float8', ([, { until }]) => until),
        column(rows, 'ttl', 'float8', ([, { ttlMs }]) => ttlMs),
        column(rows, 'address', 'text', ([, { address }]) => address),
        column(rows, 'host', 'text', ([, { host }]) => host),
        column(rows, 'pid', 'float8', ([, { pid }]) => pid),
        column(rows, 'started', 'float8', ([, { started }]) => started),
      ],
      // What a worker said of itself stays until it says otherwise.
      sql: `insert into ~workers as w select * from $rows on conflict (id) do update set until = excluded.until, ttl = excluded.ttl,
        address = coalesce(excluded.address, w.address), host = coalesce(excluded.host, w.host),
        pid = coalesce(excluded.pid, w.pid), started = coalesce(excluded.started, w.started)`,
      guards: null,
    },
    {
      key: 'forgotten',
      size: isNewWorker ? 1 : 0,
      columns: () => [['before', 'float8', now - WORKER_KEPT_MS]],
      sql: `delete from ~workers w using $rows where w.until < r.before and w.id <> all(select id from workers_rows)
        and not exists (select 1 from ~sessions s where s.worker = w.id)`,
      guards: null,
    },
  ]
}

/** As it was planned on. */
const SAME =
  'a.held = r.was_held and a.spent = r.was_spent and a.assumed = r.was_assumed and a.cap is not distinct from r.was_cap'
const CAP = 'case when r.sets then r.cap else a.cap end'
const moved = (name: 'held' | 'spent' | 'assumed') =>
  `${name} = case when ${SAME} then r.${name} else a.${name} + (r.${name} - r.was_${name}) end`
const PAY = `update ~accounts a set cap = ${CAP}, ${moved('held')}, ${moved('spent')}, ${moved('assumed')} from $rows
        where a.id = r.id and ((${SAME}) or (not r.exact and (r.asked = 0 or ${CAP} is null or a.held + a.spent + r.asked <= ${CAP})))
        returning 1`

/**
 * An account that others have changed since is changed by the difference, if what is asked for still fits. `exact`: it raised a limit,
 * and must be as it was.
 */
function moneyParts(batch: Batch): readonly Part[] {
  const all = [...batch.accounts.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  const pairs = all.map((row) => ({ row, was: batch.was('accounts', row.id) }))
  const [known, fresh] = [
    pairs.flatMap(({ row, was }) => (was ? [{ row, was }] : [])),
    all.filter((row) => !batch.was('accounts', row.id)),
  ]
  const raised = [...batch.raised].flatMap((id) => {
    const was = batch.accounts.has(id) ? null : batch.was('accounts', id)
    return was ? [was] : []
  })
  const of = columnsOf(known)
  return [
    {
      key: 'accounts',
      size: known.length,
      columns: () => [
        of('id', 'text', ({ row }) => row.id),
        of('sets', 'boolean', ({ row, was }) => row.limit !== was.limit),
        of('cap', 'float8', ({ row }) => row.limit),
        of('held', 'float8', ({ row }) => row.held),
        of('spent', 'float8', ({ row }) => row.spent),
        of('assumed', 'float8', ({ row }) => row.assumed),
        of('was_cap', 'float8', ({ was }) => was.limit),
        of('was_held', 'float8', ({ was }) => was.held),
        of('was_spent', 'float8', ({ was }) => was.spent),
        of('was_assumed', 'float8', ({ was }) => was.assumed),
        of('asked', 'float8', ({ row }) => batch.asked.get(row.id) ?? 0),
        of('exact', 'boolean', ({ row }) => batch.raised.has(row.id)),
      ],
      sql: PAY,
      guards: known.length,
    },
    {
      key: 'opened',
      size: fresh.length,
      columns: () => [
        column(fresh, 'id', 'text', ({ id }) => id),
        column(fresh, 'cap', 'float8', ({ limit }) => limit),
        column(fresh, 'held', 'float8', ({ held }) => held),
        column(fresh, 'spent', 'float8', ({ spent }) => spent),
        column(fresh, 'assumed', 'float8', ({ assumed }) => assumed),
      ],
      sql: 'insert into ~accounts select * from $rows on conflict do nothing returning 1',
      guards: fresh.length,
    },
    {
      key: 'raised',
      size: raised.length,
      columns: () => [
        column(raised, 'id', 'text', ({ id }) => id),
        column(raised, 'spent', 'float8', ({ spent }) => spent),
      ],
      sql: 'select a.id from $rows join ~accounts a on a.id = r.id and a.spent = r.spent for share of a',
      guards: raised.length,
    },
    ...holdParts(batch),
  ]
}

function holdParts(batch: Batch): readonly Part[] {
  const rows = [...batch.holds].map(([key, hold]) => ({ key, hold, was: batch.was('holds', key) }))
  const live = rows.flatMap(({ key, hold, was }) => (hold ? [{ key, hold, was }] : []))
  const columnsOf = (some: typeof live): readonly Column[] => [
    column(some, 'key', 'text', ({ key }) => key),
    column(some, 'amount', 'float8', ({ hold }) => hold.amount),
    column(some, 'accounts', 'text', ({ hold }) => JSON.stringify(hold.accounts)),
    column(some, 'session', 'text', ({ hold }) => hold.session),
  ]
  const [made, changed] = [live.filter(({ was }) => !was), live.filter(({ was, hold }) => was && was !== hold)]
  const closed = rows.filter(({ hold, was }) => hold === null && was !== null)
  return [
    {
      key: 'held',
      size: made.length,
      columns: () => columnsOf(made),
      sql: 'insert into ~holds select * from $rows on conflict do nothing returning 1',
      guards: made.length,
    },
    {
      key: 'reheld',
      size: changed.length,
      columns: () => columnsOf(changed),
      sql: `update ~holds h set amount = r.amount, accounts = r.accounts, session = r.session from $rows where h.key = r.key returning 1`,
      guards: changed.length,
    },
    {
      key: 'closed',
      size: closed.length,
      columns: () => [column(closed, 'key', 'text', ({ key }) => key)],
      sql: 'delete from ~holds h using $rows where h.key = r.key returning 1',
      guards: closed.length,
    },
  ]
}

/** Removal takes the same lock for itself alone: what is referred to stays, or is not there any more when it is referred to. */
function blobParts({ blobs, refs }: Batch): readonly Part[] {
  const rows = [...blobs.values()]
  return [
    {
      key: 'locked',
      size: Math.min(1, refs.length),
      columns: () => [['one', 'int', 1]],
      sql: `select pg_advisory_xact_lock_shared(${lockKey('blobs')}) from $rows`,
      guards: 1,
    },
    {
      key: 'blobs',
      size: rows.length,
      columns: () => [
        column(rows, 'hash', 'text', ({ hash }) => hash),
        column(rows, 'media', 'text', ({ media }) => media),
        column(rows, 'sum', 'int', ({ data }) => crc32(data) | 0),
        column(rows, 'data', 'bytea', ({ data }) => data),
      ],
      sql: 'insert into ~blobs select * from $rows on conflict do nothing',
      guards: null,
    },
    {
      key: 'refs',
      size: refs.length,
      columns: () => [column(refs, 'hash', 'text', ({ hash }) => hash), column(refs, 'n', 'bigint', ({ n }) => n)],
      sql: 'insert into ~blob_refs select distinct * from $rows on conflict do nothing',
      guards: null,
    },
  ]
}

/** What no other statement can write: its session is guarded. Done after all guards were found good. */
function logParts(batch: Batch): readonly Part[] {
  const { events, letters, forks } = batch
  const made = [...batch.changes.values()].filter(({ was }) => was === null)
  const labels = made.flatMap(({ row }) =>
    Object.entries(cardIn(row.card)?.labels ?? {}).map((label) => [row.n, ...label] as const),
  )
  const found = [...batch.changes].filter(([, { row, was }]) => was === null || isRenamed(row, was))
  return [
    {
      key: 'events',
      size: events.length,
      columns: () => [
        column(events, 'n', 'bigint', ({ n }) => n),
        column(events, 'seq', 'int', ({ seq }) => seq),
        column(events, 'sum', 'int', ({ sum }) => sum),
        column(events, 'body', 'text', ({ body }) => body),
      ],
      sql: 'insert into ~events select * from $rows',
      guards: null,
    },
    {
      key: 'letters',
      size: letters.length,
      columns: () => [
        column(letters, 'n', 'bigint', ({ n }) => n),
        column(letters, 'id', 'text', ({ id }) => id),
        column(letters, 'seq', 'int', ({ seq }) => seq),
      ],
      sql: 'insert into ~inbox select * from $rows',
      guards: null,
    },
    {
      key: 'forks',
      size: forks.length,
      columns: () => [
        column(forks, 'n', 'bigint', ({ n }) => n),
        column(forks, 'origin', 'text', ({ origin }) => origin),
      ],
      sql: 'insert into ~forks select * from $rows',
      guards: null,
    },
    {
      key: 'labels',
      size: labels.length,
      columns: () => [
        column(labels, 'name', 'text', ([, name]) => name),
        column(labels, 'value', 'text', ([, , value]) => value),
        column(labels, 'n', 'bigint', ([n]) => n),
      ],
      sql: 'insert into ~labels select * from $rows',
      guards: null,
    },
    {
      key: 'finds',
      size: found.length,
      columns: () => [
        column(found, 'n', 'bigint', ([, { row }]) => row.n),
        column(found, 'text', 'text', ([session, { row }]) => foundText(session, row, cardIn(row.card))),
      ],
      sql: 'insert into ~finds select * from $rows on conflict (n) do update set text = excluded.text',
      guards: null,
    },
  ]
}

/** The one before it goes, unless it is needed to reach events in the middle of the log. */
function snapshotParts(batch: Batch): readonly Part[] {
  const snapshots = [...batch.snapshots]
  return [
    {
      key: 'snapshots',
      size: snapshots.length,
      columns: () => [
        column(snapshots, 'n', 'bigint', ([, { n }]) => n),
        column(snapshots, 'seq', 'int', ([, { seq }]) => seq),
        column(snapshots, 'version', 'float8', ([, { version }]) => version),
        column(snapshots, 'sum', 'int', ([session, each]) => snapshotSum(session, each)),
        column(snapshots, 'body', 'text', ([, { body }]) => body),
      ],
      sql: `insert into ~snapshots select n, seq, true, version, sum, body from $rows
        on conflict (n, seq) do update set own = true, version = excluded.version, sum = excluded.sum, body = excluded.body`,
      guards: null,
    },
    {
      key: 'spare',
      size: snapshots.length,
      columns: () => [
        column(snapshots, 'n', 'bigint', ([, { n }]) => n),
        column(snapshots, 'seq', 'int', ([, { seq }]) => seq),
      ],
      sql: `delete from ~snapshots p using $rows where p.n = r.n and p.own
        and p.seq = (select max(l.seq) from ~snapshots l where l.n = r.n and l.own and l.seq < r.seq)
        and r.seq - coalesce((select max(b.seq) from ~snapshots b where b.n = r.n and b.own and b.seq < p.seq), 0) <= ${SNAPSHOT_SPAN}`,
      guards: null,
    },
  ]
}

function isRenamed(row: Row, was: Row): boolean {
  return row.facts.title !== was.facts.title || row.facts.owner !== was.facts.owner || row.agent !== was.agent
}

function foundText(session: string, { agent, facts }: Row, card: Card | null): string {
  return findable({ session, agent, title: facts.title, labels: card?.labels ?? {} })
}
