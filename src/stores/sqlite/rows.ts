// Rows of an SQLite store as objects, and how they are written: many at once, and the narrowest change that will do.
// It decides nothing: batch.ts does.
import type { Card } from '../../ports/store.ts'
import { isSound, rowSum } from '../plan/checksum.ts'
import { type Facts, findable } from '../plan/facts.ts'
import type { Head, Lease } from '../plan/plan.ts'
import type { SqlValue, Statement } from './driver.ts'
import type { Bulk, Statements } from './schema.ts'

/** What is stored of a session. Its last event is at `pos` and has the checksum `sum`; `tail` lists its newest spans. */
export type Row = Head & {
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
  /** The card as last written, if this process wrote it. */
  readonly card: Card | null
}
/** `host`, `pid` and `started` are its process, if it said which one it is. */
export type WorkerRow = Lease & {
  readonly address: string | null
  readonly host: string | null
  readonly pid: number | null
  readonly started: number | null
}

/** Returns where the last row went. */
export function insertEvents(bulk: Bulk, values: readonly SqlValue[]): number {
  let last = 0
  forEachPart(bulk, values, (statement, part) => {
    last = Number(statement.run(...part).lastInsertRowid)
  })
  return last
}

export function insertAll(bulk: Bulk, values: readonly SqlValue[]): void {
  forEachPart(bulk, values, (statement, part) => void statement.get(...part))
}

function forEachPart({ width, sizes }: Bulk, values: readonly SqlValue[], insert: Insert): void {
  let from = 0
  for (const size of sizes) {
    for (const length = size.rows * width; values.length - from >= length; from += length) {
      insert(size.statement, length === values.length ? values : values.slice(from, from + length))
    }
  }
}

type Insert = (statement: Statement, part: readonly SqlValue[]) => void

/** The narrowest statement that will do: a column that is not named costs no index. */
export function writeSession(sql: Statements, session: string, row: Row, was: Row | null): void {
  const { n, due, urgent, tries, trouble, epoch, worker, status, root, folder, parent, card } = row
  const turn = turnOf(row)
  const shown = (): readonly [string, number] => {
    const text = JSON.stringify(card)
    return [text, rowSum(n, session, text)]
  }
  if (was === null) {
    sql.create.get(...turn, epoch, worker, status, root, folder, parent, ...shown(), ...toldOf(row), session, n)
    for (const [name, value] of Object.entries(card?.labels ?? {})) sql.label.get(name, value, n)
    return writeFind(sql, session, row)
  }
  const leased = epoch === was.epoch && worker === was.worker
  const waits = due === was.due && urgent === was.urgent && tries === was.tries && trouble === was.trouble
  if (sameCard(card, was.card)) {
    if (!leased) sql.lease.get(...turn, epoch, worker, n)
    else if (!waits) sql.wake.get(...turn, n)
  } else if (leased && status === was.status && root === was.root) sql.describe.get(...turn, ...shown(), n)
  else sql.replace.get(...turn, epoch, worker, status, root, ...shown(), n)
  if (folder !== was.folder || parent !== was.parent) sql.move.get(folder, parent, n)
  if (row.facts.title === was.facts.title && row.facts.owner === was.facts.owner && row.agent === was.agent) return
  sql.name.get(...toldOf(row), n)
  writeFind(sql, session, row)
}

/** What the log says of itself, and the sum of that. How many tokens it took is with what every commit changes. */
function toldOf({ n, agent, facts: { created, title, owner } }: Row): readonly SqlValue[] {
  return [agent, created, title, owner, rowSum(n, agent, created, title, owner)]
}

/** Of a session that is named later, its labels are not known if another process made it. */
function writeFind(sql: Statements, session: string, { n, agent, facts, card }: Row): void {
  const labels = card?.labels ?? labelsOf(sql, n)
  const text = findable({ session, agent, title: facts.title, labels })
  sql.find.get(n, text)
}

function labelsOf(sql: Statements, n: number): Readonly<Record<string, string>> {
  const rows = sql.labelsOf.all(n) as { name: string; value: string }[]
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

/** When a worker should look, and the sum of all in the row that is not its card. */
function turnOf({ n, epoch, worker, due, urgent, tries, trouble, status, root, folder }: Row): readonly SqlValue[] {
  const [rush, told] = [urgent ? 1 : 0, trouble && JSON.stringify(trouble)]
  return [due, rush, tries, told, rowSum(n, epoch, worker, due, rush, tries, told, status, root, ...placeIn(folder))]
}

/** Rows from before there were folders keep their sums. */
function placeIn(folder: string | null): readonly string[] {
  return folder === null ? [] : [folder]
}

/** A row of a session as it lies in the file, without its card. */
export type StoredRow = Pick<
  Row,
  'n' | 'seq' | 'at' | 'pos' | 'tail' | 'epoch' | 'worker' | 'due' | 'status' | 'tries' | 'root' | 'folder' | 'parent'
> & {
  readonly urgent: number
  readonly trouble: string | null
} & StoredFacts

/** Null where a damaged row was brought up to date: it stays as it was. */
type StoredFacts = {
  readonly agent: string | null
  readonly created: number | null
  readonly title: string | null
  readonly owner: string | null
  readonly factsSum: number | null
  readonly tokens: number | null
}

export function factsIn({ created, title, owner, tokens }: StoredFacts): Facts {
  return { created: created ?? 0, title, owner, tokens: tokens ?? 0, words: title }
}

/** The sum of a head. One from before tokens were counted has none. */
export function headSumOf({ n, seq, at, pos, tail, tokens }: HeadRow): number {
  return rowSum(n, seq, at, pos, tail, ...(tokens === null ? [] : [tokens]))
}
type HeadRow = Pick<StoredRow, 'n' | 'seq' | 'at' | 'pos' | 'tail' | 'tokens'>

/** What is wrong with it, or null. */
export function damageOf(row: StoredRow, turnSum: number | null, headSum: number | null): string | null {
  const { n, epoch, worker, due, urgent, tries, trouble, status, root, folder } = row
  const { agent, created, title, owner, factsSum } = row
  const sound = isSound(turnSum, n, epoch, worker, due, urgent, tries, trouble, status, root, ...placeIn(folder))
  const told = isSound(factsSum, n, agent, created, title, owner)
  return sound && told && (headSum === null || headSum === headSumOf(row)) ? null : DAMAGED
}
export const DAMAGED = 'what is kept beside its log does not match its checksum'

/** But for seq, at and due, which are kept apart from it. */
function sameCard(a: Card | null, b: Card | null): boolean {
  if (a === b) return true
  if (a === null || b === null) return false
  const { asks, waits } = b
  if (a.session !== b.session || a.root !== b.root || a.folder !== b.folder) return false
  if (a.parent !== b.parent || a.task !== b.task || a.program !== b.program) return false
  if (a.unknown !== b.unknown || a.limit !== b.limit) return false
  const alike = a.agent === b.agent && a.status === b.status && a.cost === b.cost && a.held === b.held
  if (!alike || a.wakes !== b.wakes || a.outcome !== b.outcome || a.cause !== b.cause) return false
  if (a.urgent !== b.urgent || !sameJson(a.outage, b.outage) || !sameJson(a.labels, b.labels)) return false
  if (a.asks.length !== asks.length || a.waits.length !== waits.length) return false
  return a.asks.every((key, i) => key === asks[i]) && a.waits.every((key, i) => key === waits[i])
}

/** Most cards have neither of what this compares, or the same object. */
function sameJson(a: Card['outage' | 'labels'], b: Card['outage' | 'labels']): boolean {
  return a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b))
}
