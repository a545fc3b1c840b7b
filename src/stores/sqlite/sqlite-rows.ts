// Rows of an SQLite store as objects, and how they are written: many at once, with the narrowest change that suffices.
// It decides nothing: sqlite-batch.ts does.
import type { Card } from '../../ports/store.ts'
import { isSound, rowSum } from '../plan/checksum.ts'
import { type LogFacts, searchableText } from '../plan/log-facts.ts'
import type { SessionRecord, Lease } from '../plan/plan-writes.ts'
import type { SqliteValue, Statement } from './driver.ts'
import type { BulkInsert, SqliteStatements } from './sqlite-schema.ts'

/** The stored row of a session. Its last event is at `pos` with the checksum `sum`; `tail` lists its newest spans. */
export type SqliteRow = SessionRecord & {
  readonly n: number
  readonly pos: number
  readonly sum: number
  readonly tail: string
  /** How many spans `tail` lists. */
  readonly tailSpans: number
  readonly root: string
  readonly folder: string | null
  readonly parent: string | null
  readonly agent: string
  /** The last written card, if this process wrote it. */
  readonly card: Card | null
}
/** `host`, `pid` and `started` identify its process, if the worker gave them. */
export type SqliteWorkerRow = Lease & {
  readonly address: string | null
  readonly host: string | null
  readonly pid: number | null
  readonly started: number | null
}

/** Returns the position of the last row. */
export function insertEvents(bulk: BulkInsert, values: readonly SqliteValue[]): number {
  let last = 0
  forEachPart(bulk, values, (statement, part) => {
    last = Number(statement.run(...part).lastInsertRowid)
  })
  return last
}

export function insertAll(bulk: BulkInsert, values: readonly SqliteValue[]): void {
  forEachPart(bulk, values, (statement, part) => void statement.get(...part))
}

function forEachPart({ width, sizes }: BulkInsert, values: readonly SqliteValue[], insert: InsertPart): void {
  let from = 0
  for (const size of sizes) {
    for (const length = size.rows * width; values.length - from >= length; from += length) {
      insert(size.statement, length === values.length ? values : values.slice(from, from + length))
    }
  }
}

type InsertPart = (statement: Statement, part: readonly SqliteValue[]) => void

/** Uses the narrowest statement that suffices: a column that is not named costs no index. */
export function writeSession(sql: SqliteStatements, session: string, row: SqliteRow, was: SqliteRow | null): void {
  const { n, due, urgent, tries, trouble, epoch, worker, status, root, folder, parent, card } = row
  const turn = turnValues(row)
  const shown = (): readonly [string, number] => {
    const text = JSON.stringify(card)
    return [text, rowSum(n, session, text)]
  }
  if (was === null) {
    sql.create.get(...turn, epoch, worker, status, root, folder, parent, ...shown(), ...factValues(row), session, n)
    for (const [name, value] of Object.entries(card?.labels ?? {})) sql.label.get(name, value, n)
    return writeSearchText(sql, session, row)
  }
  const leased = epoch === was.epoch && worker === was.worker
  const waits = due === was.due && urgent === was.urgent && tries === was.tries && trouble === was.trouble
  if (hasSameCard(card, was.card)) {
    if (!leased) sql.lease.get(...turn, epoch, worker, n)
    else if (!waits) sql.wake.get(...turn, n)
  } else if (leased && status === was.status && root === was.root) sql.describe.get(...turn, ...shown(), n)
  else sql.replace.get(...turn, epoch, worker, status, root, ...shown(), n)
  if (folder !== was.folder || parent !== was.parent) sql.move.get(folder, parent, n)
  if (row.facts.title === was.facts.title && row.facts.owner === was.facts.owner && row.agent === was.agent) return
  sql.name.get(...factValues(row), n)
  writeSearchText(sql, session, row)
}

/**
 * The facts from the log and their checksum. The number of tokens is stored among the columns that every commit
 * changes.
 */
function factValues({ n, agent, facts: { created, title, owner } }: SqliteRow): readonly SqliteValue[] {
  return [agent, created, title, owner, rowSum(n, agent, created, title, owner)]
}

/** For a session that is named later: its labels are unknown if another process created it. */
function writeSearchText(sql: SqliteStatements, session: string, { n, agent, facts, card }: SqliteRow): void {
  const labels = card?.labels ?? labelsOf(sql, n)
  const text = searchableText({ session, agent, title: facts.title, labels })
  sql.find.get(n, text)
}

function labelsOf(sql: SqliteStatements, n: number): Readonly<Record<string, string>> {
  const rows = sql.labelsOf.all(n) as { name: string; value: string }[]
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

/** When a worker should look, and the checksum of the row without its card. */
function turnValues({
  n,
  epoch,
  worker,
  due,
  urgent,
  tries,
  trouble,
  status,
  root,
  folder,
}: SqliteRow): readonly SqliteValue[] {
  const [rush, told] = [urgent ? 1 : 0, trouble && JSON.stringify(trouble)]
  return [
    due,
    rush,
    tries,
    told,
    rowSum(n, epoch, worker, due, rush, tries, told, status, root, ...folderValues(folder)),
  ]
}

/** Rows from before there were folders keep their checksums. */
function folderValues(folder: string | null): readonly string[] {
  return folder === null ? [] : [folder]
}

/** A session's row as stored in the file, without its card. */
export type StoredSqliteRow = Pick<
  SqliteRow,
  'n' | 'seq' | 'at' | 'pos' | 'tail' | 'epoch' | 'worker' | 'due' | 'status' | 'tries' | 'root' | 'folder' | 'parent'
> & {
  readonly urgent: number
  readonly trouble: string | null
} & StoredFacts

/** Null where a damaged row was migrated: it stays as it was. */
type StoredFacts = {
  readonly agent: string | null
  readonly created: number | null
  readonly title: string | null
  readonly owner: string | null
  readonly factsSum: number | null
  readonly tokens: number | null
}

export function factsOfRow({ created, title, owner, tokens }: StoredFacts): LogFacts {
  return { created: created ?? 0, title, owner, tokens: tokens ?? 0, words: title }
}

/** The checksum of a head. Heads from before tokens were counted do not include them. */
export function headSumOf({ n, seq, at, pos, tail, tokens }: HeadRow): number {
  return rowSum(n, seq, at, pos, tail, ...(tokens === null ? [] : [tokens]))
}
type HeadRow = Pick<StoredSqliteRow, 'n' | 'seq' | 'at' | 'pos' | 'tail' | 'tokens'>

/** The damage, or null. */
export function damageOf(row: StoredSqliteRow, turnSum: number | null, headSum: number | null): string | null {
  const { n, epoch, worker, due, urgent, tries, trouble, status, root, folder } = row
  const { agent, created, title, owner, factsSum } = row
  const sound = isSound(turnSum, n, epoch, worker, due, urgent, tries, trouble, status, root, ...folderValues(folder))
  const told = isSound(factsSum, n, agent, created, title, owner)
  return sound && told && (headSum === null || headSum === headSumOf(row)) ? null : DAMAGED
}
export const DAMAGED = 'what is kept beside its log does not match its checksum'

/** Ignores seq, at and due, which are stored apart from the card. */
function hasSameCard(a: Card | null, b: Card | null): boolean {
  if (a === b) return true
  if (a === null || b === null) return false
  const { asks, waits } = b
  if (a.session !== b.session || a.root !== b.root || a.folder !== b.folder) return false
  if (a.parent !== b.parent || a.task !== b.task || a.program !== b.program) return false
  if (a.unknown !== b.unknown || a.limit !== b.limit) return false
  const alike = a.agent === b.agent && a.status === b.status && a.cost === b.cost && a.held === b.held
  if (!alike || a.wakes !== b.wakes || a.outcome !== b.outcome || a.cause !== b.cause) return false
  if (a.urgent !== b.urgent || !hasSameJson(a.outage, b.outage) || !hasSameJson(a.labels, b.labels)) return false
  if (a.asks.length !== asks.length || a.waits.length !== waits.length) return false
  return a.asks.every((key, i) => key === asks[i]) && a.waits.every((key, i) => key === waits[i])
}

/** Most cards have neither of these fields, or the same object. */
function hasSameJson(a: Card['outage' | 'labels'], b: Card['outage' | 'labels']): boolean {
  return a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b))
}
