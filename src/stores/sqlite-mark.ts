// How far a store was seen, so that whoever comes back can tell one that went on from another one, or from an older copy. Read from
// what is there anyway: nothing is written for it, and no commit pays.
import { Fault } from '../kernel/failure.ts'
import type { Database } from './sqlite-driver.ts'

/** Of the last event: where it lies, and its checksum. `removals` counts the sessions that were taken out until then. */
export type Mark = {
  readonly store: string
  readonly removals: number
  readonly pos: number
  readonly sum: number
}

type Last = { readonly pos: number; readonly sum: number }

export function readMark(db: Database): Mark {
  const last = db.prepare('SELECT pos, sum FROM events ORDER BY pos DESC LIMIT 1').get() as Last | undefined
  return { store: storeOf(db), removals: removalsIn(db), pos: last?.pos ?? 0, sum: last?.sum ?? 0 }
}

/** Throws unless this file is the store of the mark, and has all that it had. */
export function checkMark(db: Database, file: string, mark: Mark): void {
  if (storeOf(db) !== mark.store) throw replaced(file, `is not the store it was, but another one. ${ACCEPT}`)
  const removals = removalsIn(db)
  if (removals < mark.removals) throw replaced(file, OLDER)
  // What was removed since may be what the mark names.
  if (removals > mark.removals || mark.pos === 0) return
  const kept = db.prepare('SELECT pos, sum FROM events WHERE pos = ?').get(mark.pos) as Last | undefined
  if (!kept) throw replaced(file, OLDER)
  if (kept.sum !== mark.sum) throw replaced(file, `went on from an older copy. ${ACCEPT}`)
}

const ACCEPT = 'Put the right file back, or accept this one.'
const OLDER = `is older than it was: what was written since is missing. ${ACCEPT}`

export function replaced(file: string, what: string): Fault {
  return new Fault('store_replaced', `${file} ${what}`)
}

function storeOf(db: Database): string {
  return (db.prepare('SELECT store FROM meta').get() as { readonly store: string }).store
}

export function removalsIn(db: Database): number {
  return (db.prepare('SELECT count(*) AS n FROM removals').get() as { readonly n: number }).n
}
