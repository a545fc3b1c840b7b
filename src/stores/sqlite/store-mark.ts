// Marks the state of a store, to tell later whether a file is the same store, another one, or an older copy; and keeps
// a file beside the database that records the last acknowledged state.
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { Fault } from '../../kernel/failure.ts'
import { rowSum } from '../plan/checksum.ts'
import type { MoveMark } from '../move/move-rows.ts'
import type { Database } from './driver.ts'

/** The state of a store at one time, to tell later whether a file is the same store, another one, or an older copy. */
export type Mark = {
  /** The id of the store, which it got when it was made. */
  readonly store: string
  /** How many sessions were removed until then. */
  readonly removals: number
  /** The position of the last event in the store. 0 for an empty store. */
  readonly pos: number
  /** The checksum of that event. 0 for an empty store. */
  readonly sum: number
}

type LastEvent = { readonly pos: number; readonly sum: number }

export function readMark(db: Database): Mark {
  const last = db.prepare('SELECT pos, sum FROM events ORDER BY pos DESC LIMIT 1').get() as LastEvent | undefined
  return { store: storeOf(db), removals: countRemovals(db), pos: last?.pos ?? 0, sum: last?.sum ?? 0 }
}

/** Throws unless this file is the store of the mark and still has everything it had then. */
export function checkMark(db: Database, file: string, mark: Mark): void {
  if (storeOf(db) !== mark.store) throw replacedFault(file, `is not the store it was, but another one. ${ACCEPT}`)
  const removals = countRemovals(db)
  if (removals < mark.removals) throw replacedFault(file, OLDER)
  // The event of the mark may have been removed since.
  if (removals > mark.removals || mark.pos === 0) return
  const kept = db.prepare('SELECT pos, sum FROM events WHERE pos = ?').get(mark.pos) as LastEvent | undefined
  if (!kept) throw replacedFault(file, OLDER)
  if (kept.sum !== mark.sum) throw replacedFault(file, `went on from an older copy. ${ACCEPT}`)
}

const ACCEPT = 'Put the right file back, or accept this one.'
const OLDER = `is older than it was: what was written since is missing. ${ACCEPT}`

export function replacedFault(file: string, what: string): Fault {
  return new Fault('store_replaced', `${file} ${what}`)
}

function storeOf(db: Database): string {
  return (db.prepare('SELECT store FROM meta').get() as { readonly store: string }).store
}

export function countRemovals(db: Database): number {
  return (db.prepare('SELECT count(*) AS n FROM removals').get() as { readonly n: number }).n
}

/**
 * The other store of a move and the direction: this file was moved `to` it, or its arrival `from` it is not complete.
 */
type StoredMove = MoveMark & { readonly way: 'to' | 'from' }

/** Null for nearly all files, because they have no such table. */
export function findMove(db: Database): StoredMove | null {
  if (!db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'moves'`).get()) return null
  const move = db.prepare('SELECT way, id, name, at, text FROM moves').get() as StoredMove | undefined
  return move ? { ...move } : null
}

/** Longer than any mark. A write of this length is complete or absent. */
const MARK_BYTES = 256

function markFileOf(database: string): string {
  return `${database}-mark`
}

/**
 * The mark beside a database. Written after each commit that added events, once these are on disk, and never synced.
 * After a power loss it may be older than the database, which does no harm, or torn, and then it is ignored.
 */
export class MarkFile {
  readonly #db: Database
  readonly #file: string
  #store: string | null = null
  #fd: number | null = null

  constructor({ db, file }: { readonly db: Database; readonly file: string }) {
    this.#db = db
    this.#file = file
  }

  /** The Fault if the database has less than was acknowledged, or null. */
  check(): Fault | null {
    const mark = this.#read()
    // A session that lost its last event is damaged, but the store is not older.
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

  keep({ pos, sum }: LastEvent, removals: number): void {
    this.#store ??= storeOf(this.#db)
    this.#write({ store: this.#store, removals, pos, sum })
  }

  /** After a removal the last event may be another one. */
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
      writeSync(this.#fd, text.padEnd(MARK_BYTES), 0, 'latin1')
    } catch {
      // Without the mark a loss is not noticed, but that is no reason to stop.
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
