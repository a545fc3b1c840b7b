// Rows of an SQLite store as objects, and how they are written: many at once, and the narrowest change that will do.
// It decides nothing: sqlite-batch.ts does.
import type { Card } from '../kernel/ports.ts'
import type { Head } from './plan.ts'
import type { SqlValue, Statement } from './sqlite-driver.ts'
import type { Bulk, Statements } from './sqlite-schema.ts'

/** What is stored of a session. Its last event is at `pos` and has the checksum `sum`; `tail` lists its newest spans. */
export type Row = Head & {
  readonly n: number
  readonly pos: number
  readonly sum: number
  readonly tail: string
  /** How many spans `tail` lists. */
  readonly tailSpans: number
  readonly root: string
  /** The card as last written, if this process wrote it. */
  readonly card: Card | null
}
export type WorkerRow = { readonly until: number; readonly ttl: number; readonly address: string | null }

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
  const { n, due, urgent, tries, trouble, epoch, worker, status, root, card } = row
  const turn = [due, urgent ? 1 : 0, tries, trouble && JSON.stringify(trouble)] as const
  if (was === null) {
    sql.create.get(...turn, epoch, worker, status, root, JSON.stringify(card), session, n)
    return
  }
  const leased = epoch === was.epoch && worker === was.worker
  const waits = due === was.due && urgent === was.urgent && tries === was.tries && trouble === was.trouble
  if (sameCard(card, was.card)) {
    if (!leased) sql.lease.get(...turn, epoch, worker, n)
    else if (!waits) sql.wake.get(...turn, n)
  } else if (leased && status === was.status && root === was.root) sql.describe.get(...turn, JSON.stringify(card), n)
  else sql.replace.get(...turn, epoch, worker, status, root, JSON.stringify(card), n)
}

/** But for seq, at and due, which are kept apart from it. */
function sameCard(a: Card | null, b: Card | null): boolean {
  if (a === b) return true
  if (a === null || b === null) return false
  const { asks, waits } = b
  const alike = a.agent === b.agent && a.root === b.root && a.status === b.status && a.cost === b.cost
  if (!alike || a.wakes !== b.wakes || a.outcome !== b.outcome || a.session !== b.session || a.held !== b.held)
    return false
  if (a.asks.length !== asks.length || a.waits.length !== waits.length) return false
  return a.asks.every((key, i) => key === asks[i]) && a.waits.every((key, i) => key === waits[i])
}
