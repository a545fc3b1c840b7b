// How far a store was seen, to tell later whether a file is the same store, another one, or an older copy; and the file
// beside a database that says how far it was acknowledged.
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { Fault } from '../../kernel/failure.ts'
import { rowSum } from '../plan/checksum.ts'
import type { MoveMark } from '../move/rows.ts'
import type { Database } from './driver.ts'

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

/** The other store of a move, and which way it went: this file was moved `to` it, or what arrives `from` it is not complete. */
type StoredMove = MoveMark & { readonly way: 'to' | 'from' }

/** Null for nearly all files: they have no such table. */
export function moveIn(db: Database): StoredMove | null {
  if (!db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'moves'`).get()) return null
  const move = db.prepare('SELECT way, id, name, at, text FROM moves').get() as StoredMove | undefined
  return move ? { ...move } : null
}

/** More than a mark ever has. One write of this length is whole or not there. */
const MARK_BYTES = 256
const BLANK = 0x20

function markFileOf(database: string): string {
  return `${database}-mark`
}

/**
 * The mark beside a database. Written after each commit that added events, when these are on disk already, and never synced: after a
 * power loss it may be older than the database, which is no harm, or torn, and then it says nothing.
 */
export class MarkFile {
  readonly #db: Database
  readonly #file: string
  readonly #bytes = Buffer.alloc(MARK_BYTES)
  #store: string | null = null
  #fd: number | null = null

  constructor({ db, file }: { readonly db: Database; readonly file: string }) {
    this.#db = db
    this.#file = file
  }

  /** What is to be said if the database has less than was acknowledged, or null. */
  check(): Fault | null {
    const mark = this.#read()
    // One session that lost its last event is damaged, and the store is not older for it.
    if (mark === null || this.#knows(mark)) return null
    try {
      checkMark(this.#db, this.#file, mark)
      return null
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return new Fault(error.code, `${error.message} To accept it, remove ${markFileOf(this.#file)}.`, error.detail)
    }
  }

  #knows({ store, pos }: Mark): boolean {
    if (storeOf(this.#db) !== store || this.#db.prepare('SELECT 1 FROM events WHERE pos = ?').get(pos)) return false
    return this.#db.prepare('SELECT 1 FROM heads WHERE pos >= ?').get(pos) !== undefined
  }

  keep({ pos, sum }: Last, removals: number): void {
    this.#store ??= storeOf(this.#db)
    this.#write({ store: this.#store, removals, pos, sum })
  }

  /** After a removal the last event may be another. */
  keepAll(): void {
    this.#write(readMark(this.#db))
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }

  #write(mark: Mark): void {
    const { store, removals, pos, sum } = mark
    try {
      this.#fd ??= openSync(markFileOf(this.#file), constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
      const text = JSON.stringify({ store, removals, pos, sum, check: rowSum(store, removals, pos, sum) })
      this.#bytes.fill(BLANK, this.#bytes.write(text, 'latin1'))
      writeSync(this.#fd, this.#bytes, 0, MARK_BYTES, 0)
    } catch {
      // Without it a loss is not noticed, and that is no reason to stop.
    }
  }

  #read(): Mark | null {
    try {
      const { check, ...mark } = JSON.parse(readFileSync(markFileOf(this.#file), 'utf8')) as Mark & { check: number }
      const { store, removals, pos, sum } = mark
      return rowSum(store, removals, pos, sum) === check ? mark : null
    } catch {
      return null
    }
  }
}
