// The statement that writes a batch if all rows it was planned on are unchanged; otherwise nothing is written (22012, a
// StaleError). Its parts depend on the batch; few batches have more than three. Rows are locked in this order:
// sessions, workers, accounts, holds. It decides nothing: postgres-batch.ts does.
import { Fault } from '../../kernel/failure.ts'
import type { Card } from '../../ports/store.ts'
import { crc32 } from '../plan/checksum.ts'
import { searchableText } from '../plan/log-facts.ts'
import { SNAPSHOT_SPAN } from '../plan/snapshot-span.ts'
import type { PostgresBatch, PostgresChange } from './postgres-batch.ts'
import { type Column, buildColumn, columnsFor, type StatementPart, buildStatement } from './statement-parts.ts'
import { parseCard, factsSumOf, hourOf, type PostgresRow } from './postgres-rows.ts'
import { lockKey } from './postgres-schema.ts'
import { snapshotSum } from './postgres-snapshots.ts'
import type { Sql } from './sql.ts'

/** The end of the log that this process wrote last. */
export type Witness = { readonly session: string; readonly n: number; readonly seq: number; readonly sum: number }

/** A server accepts messages below one gigabyte, and closes the connection over a larger one. */
const STATEMENT_BYTES_MAX = 1_000_000_000
const TOO_LARGE =
  'A commit of over 1 GB cannot be written to Postgres: its messages end there. Use smaller files, or fewer at once.'

/**
 * Returns the time of the database. With a witness nothing is written to a database that lacks it, such as an older
 * copy.
 */
export async function writeBatch(sql: Sql, batch: PostgresBatch, witness: Witness | null): Promise<number> {
  const [name, text, values] = buildStatement(partsOf(batch, witness))
  const bytes = values.reduce<number>((sum, value) => sum + (value instanceof Uint8Array ? value.byteLength : 0), 0)
  if (bytes > STATEMENT_BYTES_MAX) throw new Fault('invalid_input', TOO_LARGE)
  const [row] = await sql.ask<{ now: number }>(name, text, values)
  return row?.now ?? 0
}

/** `r` is a witness. Its session still ends there, or went on, or was removed. */
const KNOWN = `exists (select 1 from ~sessions s where s.n = r.n and s.seq = r.seq and s.sum = r.sum)
  or exists (select 1 from ~events e where e.n = r.n and e.seq = r.seq and e.sum = r.sum)
  or exists (select 1 from ~removals m where m.n = r.n)`

/** Whether the database has the last write of this process. */
export async function isWitnessKnown(sql: Sql, { n, seq, sum }: Witness): Promise<boolean> {
  const text = `select 1 from (select $1::bigint as n, $2::int as seq, $3::int as sum) r where ${KNOWN}`
  return (await sql.ask('witness', text, [n, seq, sum])).length > 0
}

/** A changed session is guarded by its own row. */
function witnessPart({ changes }: PostgresBatch, witness: Witness | null): StatementPart {
  const was = witness && changes.get(witness.session)?.was
  const isGuarded = was?.n === witness?.n && was?.seq === witness?.seq && was?.sum === witness?.sum
  const rows = witness === null || isGuarded ? [] : [witness]
  return {
    key: 'witness',
    size: rows.length,
    columns: () => [
      buildColumn(rows, 'n', 'bigint', ({ n }) => n),
      buildColumn(rows, 'seq', 'int', ({ seq }) => seq),
      buildColumn(rows, 'sum', 'int', ({ sum }) => sum),
    ],
    sql: `select 1 from $rows where ${KNOWN}`,
    guards: rows.length,
  }
}

function partsOf(batch: PostgresBatch, witness: Witness | null): readonly StatementPart[] {
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

/** By number, so that two statements lock rows in the same order. */
function byNumber(a: { readonly row: PostgresRow }, b: { readonly row: PostgresRow }): number {
  return a.row.n - b.row.n
}

const PLACE = ['seq', 'at', 'sum', 'epoch', 'worker', 'due', 'urgent', 'tries', 'trouble', 'status', 'card', 'tokens']
/** Columns that seldom change, and are sent only then. */
const NAMES = ['root', 'agent', 'hour', 'title', 'owner', 'folder', 'parent', 'facts_sum']
const COLUMNS = [...PLACE, ...NAMES].join(', ')
const changeSql = (columns: readonly string[]): string => {
  const sets = columns.map((name) => (name === 'card' ? 'card = coalesce(r.card, s.card)' : `${name} = r.${name}`))
  return `update ~sessions s set v = s.v + 1, ${sets.join(', ')} from $rows
    where s.n = r.n and s.v = r.v and s.sum = r.was_sum returning 1`
}
const GO_ON = changeSql(PLACE)
const CHANGE = changeSql([...PLACE, ...NAMES])
const MAKE = `insert into ~sessions (n, v, id, created, ${COLUMNS}) select n, 1, id, created, ${COLUMNS} from $rows
  on conflict do nothing returning 1`

function changesNames({ row, was }: PostgresChange): boolean {
  if (was === null || row === was) return was === null
  const isSame =
    row.root === was.root && row.agent === was.agent && row.folder === was.folder && row.parent === was.parent
  const { facts } = row
  return (
    !isSame || facts.title !== was.facts.title || facts.owner !== was.facts.owner || hourOf(row.at) !== hourOf(was.at)
  )
}

function placeColumns(rows: readonly PostgresChange[]): readonly Column[] {
  const of = columnsFor(rows)
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
    // An unchanged card is not sent again.
    of('card', 'text', ({ row: { card }, was }) => (card === was?.card ? null : card)),
    of('tokens', 'float8', ({ row: { facts } }) => facts.tokens),
  ]
}

function nameColumns(rows: readonly PostgresChange[]): readonly Column[] {
  const of = columnsFor(rows)
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

function sessionParts(batch: PostgresBatch): readonly StatementPart[] {
  const all = [...batch.changes].map(([id, { row, was }]) => ({ id, row, was })).sort(byNumber)
  const [changed, made] = [all.filter(({ was }) => was !== null), all.filter(({ was }) => was === null)]
  const guards = [...batch.guards.values()].sort((a, b) => a - b)
  const isRenaming = changed.some(changesNames)
  const wasColumns = (): readonly Column[] => [
    buildColumn(changed, 'v', 'bigint', ({ was }) => was?.v ?? 0),
    buildColumn(changed, 'was_sum', 'int', ({ was }) => was?.sum ?? 0),
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
        buildColumn(made, 'id', 'text', ({ id }) => id),
        buildColumn(made, 'created', 'float8', ({ row }) => row.facts.created),
      ],
      sql: MAKE,
      guards: made.length,
    },
    {
      key: 'kept',
      size: guards.length,
      columns: () => [buildColumn(guards, 'n', 'bigint', (n) => n)],
      sql: 'select s.n from $rows join ~sessions s on s.n = r.n for key share of s',
      guards: guards.length,
    },
  ]
}

const WORKER_KEPT_MS = 24 * 60 * 60 * 1000

function workerParts({ workers, endedLeases, isNewWorker, now }: PostgresBatch): readonly StatementPart[] {
  const rows = [...workers].sort(([a], [b]) => (a < b ? -1 : 1))
  const ended = [...endedLeases].filter(([id]) => !workers.has(id))
  return [
    {
      key: 'ended',
      size: ended.length,
      columns: () => [
        buildColumn(ended, 'id', 'text', ([id]) => id),
        buildColumn(ended, 'until', 'float8', ([, until]) => until),
      ],
      sql: 'select w.id from $rows join ~workers w on w.id = r.id and w.until = r.until for share of w',
      guards: ended.length,
    },
    {
      key: 'workers',
      size: rows.length,
      columns: () => [
        buildColumn(rows, 'id', 'text', ([id]) => id),
        buildColumn(rows, 'until', 'float8', ([, { until }]) => until),
        buildColumn(rows, 'ttl', 'float8', ([, { ttlMs }]) => ttlMs),
        buildColumn(rows, 'address', 'text', ([, { address }]) => address),
        buildColumn(rows, 'host', 'text', ([, { host }]) => host),
        buildColumn(rows, 'pid', 'float8', ([, { pid }]) => pid),
        buildColumn(rows, 'started', 'float8', ([, { started }]) => started),
      ],
      // The worker's data stays until the worker gives other data.
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

/** The row is as it was planned on. */
const SAME =
  'a.held = r.was_held and a.spent = r.was_spent and a.assumed = r.was_assumed and a.cap is not distinct from r.was_cap'
const CAP = 'case when r.sets then r.cap else a.cap end'
const moveAmountSql = (name: 'held' | 'spent' | 'assumed') =>
  `${name} = case when ${SAME} then r.${name} else a.${name} + (r.${name} - r.was_${name}) end`
const PAY = `update ~accounts a set cap = ${CAP}, ${moveAmountSql('held')}, ${moveAmountSql('spent')}, ${moveAmountSql('assumed')} from $rows
        where a.id = r.id and ((${SAME}) or (not r.exact and (r.asked = 0 or ${CAP} is null or a.held + a.spent + r.asked <= ${CAP})))
        returning 1`

/**
 * An account that others have changed since is changed by the difference, if the requested hold still fits. `exact`: it
 * raised a limit, and must be unchanged.
 */
function moneyParts(batch: PostgresBatch): readonly StatementPart[] {
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
  const of = columnsFor(known)
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
        buildColumn(fresh, 'id', 'text', ({ id }) => id),
        buildColumn(fresh, 'cap', 'float8', ({ limit }) => limit),
        buildColumn(fresh, 'held', 'float8', ({ held }) => held),
        buildColumn(fresh, 'spent', 'float8', ({ spent }) => spent),
        buildColumn(fresh, 'assumed', 'float8', ({ assumed }) => assumed),
      ],
      sql: 'insert into ~accounts select * from $rows on conflict do nothing returning 1',
      guards: fresh.length,
    },
    {
      key: 'raised',
      size: raised.length,
      columns: () => [
        buildColumn(raised, 'id', 'text', ({ id }) => id),
        buildColumn(raised, 'spent', 'float8', ({ spent }) => spent),
      ],
      sql: 'select a.id from $rows join ~accounts a on a.id = r.id and a.spent = r.spent for share of a',
      guards: raised.length,
    },
    ...holdParts(batch),
  ]
}

function holdParts(batch: PostgresBatch): readonly StatementPart[] {
  const rows = [...batch.holds].map(([key, hold]) => ({ key, hold, was: batch.was('holds', key) }))
  const live = rows.flatMap(({ key, hold, was }) => (hold ? [{ key, hold, was }] : []))
  const columnsOf = (some: typeof live): readonly Column[] => [
    buildColumn(some, 'key', 'text', ({ key }) => key),
    buildColumn(some, 'amount', 'float8', ({ hold }) => hold.amount),
    buildColumn(some, 'accounts', 'text', ({ hold }) => JSON.stringify(hold.accounts)),
    buildColumn(some, 'session', 'text', ({ hold }) => hold.session),
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
      columns: () => [buildColumn(closed, 'key', 'text', ({ key }) => key)],
      sql: 'delete from ~holds h using $rows where h.key = r.key returning 1',
      guards: closed.length,
    },
  ]
}

/**
 * A removal takes the same lock exclusively: a blob that is referred to stays, or is already gone when it is referred
 * to.
 */
function blobParts({ blobs, refs }: PostgresBatch): readonly StatementPart[] {
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
        buildColumn(rows, 'hash', 'text', ({ hash }) => hash),
        buildColumn(rows, 'media', 'text', ({ media }) => media),
        buildColumn(rows, 'sum', 'int', ({ data }) => crc32(data) | 0),
        buildColumn(rows, 'data', 'bytea', ({ data }) => data),
      ],
      sql: 'insert into ~blobs select * from $rows on conflict do nothing',
      guards: null,
    },
    {
      key: 'refs',
      size: refs.length,
      columns: () => [
        buildColumn(refs, 'hash', 'text', ({ hash }) => hash),
        buildColumn(refs, 'n', 'bigint', ({ n }) => n),
      ],
      sql: 'insert into ~blob_refs select distinct * from $rows on conflict do nothing',
      guards: null,
    },
  ]
}

/** Rows that no other statement can write, because their session is guarded. They are written after all guards held. */
function logParts(batch: PostgresBatch): readonly StatementPart[] {
  const { events, letters, forks } = batch
  const made = [...batch.changes.values()].filter(({ was }) => was === null)
  const labels = made.flatMap(({ row }) =>
    Object.entries(parseCard(row.card)?.labels ?? {}).map((label) => [row.n, ...label] as const),
  )
  const found = [...batch.changes].filter(([, { row, was }]) => was === null || isRenamed(row, was))
  return [
    {
      key: 'events',
      size: events.length,
      columns: () => [
        buildColumn(events, 'n', 'bigint', ({ n }) => n),
        buildColumn(events, 'seq', 'int', ({ seq }) => seq),
        buildColumn(events, 'sum', 'int', ({ sum }) => sum),
        buildColumn(events, 'body', 'text', ({ body }) => body),
      ],
      sql: 'insert into ~events select * from $rows',
      guards: null,
    },
    {
      key: 'letters',
      size: letters.length,
      columns: () => [
        buildColumn(letters, 'n', 'bigint', ({ n }) => n),
        buildColumn(letters, 'id', 'text', ({ id }) => id),
        buildColumn(letters, 'seq', 'int', ({ seq }) => seq),
      ],
      sql: 'insert into ~inbox select * from $rows',
      guards: null,
    },
    {
      key: 'forks',
      size: forks.length,
      columns: () => [
        buildColumn(forks, 'n', 'bigint', ({ n }) => n),
        buildColumn(forks, 'origin', 'text', ({ origin }) => origin),
      ],
      sql: 'insert into ~forks select * from $rows',
      guards: null,
    },
    {
      key: 'labels',
      size: labels.length,
      columns: () => [
        buildColumn(labels, 'name', 'text', ([, name]) => name),
        buildColumn(labels, 'value', 'text', ([, , value]) => value),
        buildColumn(labels, 'n', 'bigint', ([n]) => n),
      ],
      sql: 'insert into ~labels select * from $rows',
      guards: null,
    },
    {
      key: 'finds',
      size: found.length,
      columns: () => [
        buildColumn(found, 'n', 'bigint', ([, { row }]) => row.n),
        buildColumn(found, 'text', 'text', ([session, { row }]) => searchTextFor(session, row, parseCard(row.card))),
      ],
      sql: 'insert into ~finds select * from $rows on conflict (n) do update set text = excluded.text',
      guards: null,
    },
  ]
}

/** Deletes the owner's last snapshot, unless it is needed to reach events in the middle of the log. */
function snapshotParts(batch: PostgresBatch): readonly StatementPart[] {
  const snapshots = [...batch.snapshots]
  return [
    {
      key: 'snapshots',
      size: snapshots.length,
      columns: () => [
        buildColumn(snapshots, 'n', 'bigint', ([, { n }]) => n),
        buildColumn(snapshots, 'seq', 'int', ([, { seq }]) => seq),
        buildColumn(snapshots, 'version', 'float8', ([, { version }]) => version),
        buildColumn(snapshots, 'sum', 'int', ([session, each]) => snapshotSum(session, each)),
        buildColumn(snapshots, 'body', 'text', ([, { body }]) => body),
      ],
      sql: `insert into ~snapshots select n, seq, true, version, sum, body from $rows
        on conflict (n, seq) do update set own = true, version = excluded.version, sum = excluded.sum, body = excluded.body`,
      guards: null,
    },
    {
      key: 'spare',
      size: snapshots.length,
      columns: () => [
        buildColumn(snapshots, 'n', 'bigint', ([, { n }]) => n),
        buildColumn(snapshots, 'seq', 'int', ([, { seq }]) => seq),
      ],
      sql: `delete from ~snapshots p using $rows where p.n = r.n and p.own
        and p.seq = (select max(l.seq) from ~snapshots l where l.n = r.n and l.own and l.seq < r.seq)
        and r.seq - coalesce((select max(b.seq) from ~snapshots b where b.n = r.n and b.own and b.seq < p.seq), 0) <= ${SNAPSHOT_SPAN}`,
      guards: null,
    },
  ]
}

function isRenamed(row: PostgresRow, was: PostgresRow): boolean {
  return row.facts.title !== was.facts.title || row.facts.owner !== was.facts.owner || row.agent !== was.agent
}

function searchTextFor(session: string, { agent, facts }: PostgresRow, card: Card | null): string {
  return searchableText({ session, agent, title: facts.title, labels: card?.labels ?? {} })
}
