// The last seen state of the database, in a small file of the data folder. A database that is gone, was replaced or is
// an older copy must not be written to silently, because actions since then would be repeated.
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import type { Mark, SqliteFile } from '../../stores/sqlite/sqlite.ts'
import { EXIT, CliError } from '../exit.ts'
import { terretCommand } from '../present/print.ts'
import { type Home, replaceHomeFile } from './cli-home.ts'
import { readPlainFile } from './plain-file.ts'

/** Null before the first write, or after a missing database was accepted. */
export function readSeenMark({ seen }: Home): Mark | null {
  const text = readPlainFile(seen)
  if (text === null) return null
  try {
    const { store, removals, pos, sum } = JSON.parse(text) as Partial<Mark>
    if (typeof store === 'string' && [removals, pos, sum].every(Number.isSafeInteger))
      return { store, removals, pos, sum } as Mark
  } catch {}
  throw new CliError(EXIT.store, `${seen} cannot be read, so the database cannot be verified. ${describeAccept()}`)
}

export function describeAccept(): string {
  return `To accept what is there: ${terretCommand`doctor --accept-store`}`
}

/** Why this is not the database that was last seen, or null. */
export async function whyStoreDiffers(store: SqliteFile, seen: Mark): Promise<string | null> {
  try {
    await store.verify(seen)
    return null
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'store_replaced')
      return `${error.message} ${describeAccept()}`
    throw error
  }
}

/** The id of the store that was last in this database. Null: none was seen, or its loss was accepted. */
export function readSeenStoreId({ seen }: { readonly seen: string }): string | null {
  const text = readPlainFile(seen)
  if (text === null) return null
  try {
    const { store } = JSON.parse(text) as { readonly store?: unknown }
    if (typeof store === 'string' && store !== '') return store
  } catch {}
  throw new CliError(EXIT.store, `${seen} cannot be read, so the database cannot be verified. ${describeAccept()}`)
}

/** It protects later commands, so failing to write it must not fail this one. */
export async function saveStoreId(
  home: Home,
  { seen }: { readonly seen: string },
  store: Pick<PostgresDatabase, 'id'>,
): Promise<void> {
  const id = await store.id()
  if (readPlainFile(seen) !== null) return
  try {
    replaceHomeFile(home, seen, `${JSON.stringify({ store: id })}\n`)
  } catch {}
}

export function databaseGone({ database }: Home): CliError {
  const text = `${database} is gone, and with it every session. Put it back. ${describeAccept()}`
  return new CliError(EXIT.store, text)
}

/** Saves the state, unless another command has saved a newer one. */
export async function saveSeenMark(home: Home, store: SqliteFile): Promise<void> {
  const mark = await store.mark()
  const known = readSeenMark(home)
  if (known === null || known.store !== mark.store || isBefore(known, mark)) writeSeenMark(home, mark)
}

function isBefore(known: Mark, mark: Mark): boolean {
  return known.removals === mark.removals ? known.pos < mark.pos : known.removals < mark.removals
}

export function writeSeenMark(home: Home, mark: Mark): void {
  replaceHomeFile(home, home.seen, `${JSON.stringify(mark)}\n`)
}
