// The last seen state of the database, in a small file of the data folder. A database that is gone, replaced or an older copy must not be
// written to silently: actions done since then would be repeated.
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import type { Mark, SqliteFile } from '../../stores/sqlite/sqlite.ts'
import { EXIT, Refusal } from '../exit.ts'
import { typed } from '../present/print.ts'
import { type Home, replaceOwn } from './home.ts'
import { readPlain } from './plain-file.ts'

/** Null before the first write, or after a missing database was accepted. */
export function seenIn({ seen }: Home): Mark | null {
  const text = readPlain(seen)
  if (text === null) return null
  try {
    const { store, removals, pos, sum } = JSON.parse(text) as Partial<Mark>
    if (typeof store === 'string' && [removals, pos, sum].every(Number.isSafeInteger))
      return { store, removals, pos, sum } as Mark
  } catch {}
  throw new Refusal(EXIT.store, `${seen} cannot be read, so the database cannot be verified. ${describeAccept()}`)
}

export function describeAccept(): string {
  return `To accept what is there: ${typed`doctor --accept-store`}`
}

/** The problem of this database, or null. */
export async function unlike(store: SqliteFile, seen: Mark): Promise<string | null> {
  try {
    await store.verify(seen)
    return null
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'store_replaced')
      return `${error.message} ${describeAccept()}`
    throw error
  }
}

/** The id of the store that was in this database last. Null: none was seen, or its end was accepted. */
export function seenDatabase({ seen }: { readonly seen: string }): string | null {
  const text = readPlain(seen)
  if (text === null) return null
  try {
    const { store } = JSON.parse(text) as { readonly store?: unknown }
    if (typeof store === 'string' && store !== '') return store
  } catch {}
  throw new Refusal(EXIT.store, `${seen} cannot be read, so the database cannot be verified. ${describeAccept()}`)
}

/** Protects later commands; that it cannot be written must not fail this one. */
export async function keepSeenDatabase(
  home: Home,
  { seen }: { readonly seen: string },
  store: Pick<PostgresDatabase, 'id'>,
): Promise<void> {
  const id = await store.id()
  if (readPlain(seen) !== null) return
  try {
    replaceOwn(home, seen, `${JSON.stringify({ store: id })}\n`)
  } catch {}
}

export function gone({ database }: Home): Refusal {
  const text = `${database} is gone, and with it every session. Put it back. ${describeAccept()}`
  return new Refusal(EXIT.store, text)
}

/** Keeps a newer state written by another command. */
export async function keepSeen(home: Home, store: SqliteFile): Promise<void> {
  const mark = await store.mark()
  const known = seenIn(home)
  if (known === null || known.store !== mark.store || isBefore(known, mark)) writeSeen(home, mark)
}

function isBefore(known: Mark, mark: Mark): boolean {
  return known.removals === mark.removals ? known.pos < mark.pos : known.removals < mark.removals
}

export function writeSeen(home: Home, mark: Mark): void {
  replaceOwn(home, home.seen, `${JSON.stringify(mark)}\n`)
}
