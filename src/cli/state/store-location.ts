// The location of the store of a command: `TERRET_STORE`, else `store` of the user's configuration, else the file in
// the data folder. Stores are opened by name only here. Only `url` contains the password: use `shown` for output, logs
// and errors.
import { hash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { nearest } from '../../options.ts'
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import type { SqliteFile } from '../../stores/sqlite/sqlite.ts'
import type { StoreReader, MoveSource, MoveTarget } from '../../stores/move/move-rows.ts'
import { EXIT, CliError } from '../exit.ts'
import { parseFields } from './config.ts'
import type { Environment, Home } from './cli-home.ts'
import { readPlainFile } from './plain-file.ts'
import { readSeenStoreId } from './store-fingerprint.ts'

export type StoreLocation = FileLocation | DatabaseLocation
/** `seen`: the file with the last seen state of this store. */
export type FileLocation = {
  readonly type: 'file'
  readonly shown: string
  readonly file: string
  readonly seen: string
}
/** `seen`: the file with the id of the store that was last in this database. */
export type DatabaseLocation = {
  readonly type: 'postgres'
  readonly shown: string
  readonly url: string
  readonly seen: string
}

export function findStore(home: Home, env: Environment = process.env): StoreLocation {
  const given = env['TERRET_STORE']
  if (given !== undefined) return parseStore(home, given, { what: 'TERRET_STORE' })
  const file = join(home.config, 'config.json')
  const text = readPlainFile(file)
  const set = text === null ? undefined : parseFields(file, text)['store']
  if (set === undefined) return fileLocation(home, home.database)
  const what = `${file}: "store"`
  if (typeof set !== 'string') throw new CliError(EXIT.config, `${what} must be a text: ${FORMS}`)
  const place = parseStore(home, set, { what, from: dirname(file) })
  if (place.type === 'postgres' && passwordIn(place) !== null && (statSync(file).mode & 0o077) !== 0)
    throw new CliError(
      EXIT.config,
      `Other users can read the password in ${file}. Make it yours alone: chmod 600 ${file}`,
    )
  return place
}

const FORMS = 'postgres://USER@HOST/DATABASE, or the path of a file.'
const SCHEMES = ['postgres', 'postgresql']

/** `from`: the folder for a relative path. Without it, the path must be absolute. */
type StoreSource = { readonly what: string; readonly from?: string }

export function parseStore(home: Home, given: string, { what, from }: StoreSource): StoreLocation {
  const text = given.trim()
  if (text === '') throw new CliError(EXIT.config, `${what} is empty. Set it to ${FORMS}`)
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined) {
    const { shown, url } = parseDatabaseUrl(text, scheme, what)
    return { type: 'postgres', shown, url, seen: seenFile(home, shown) }
  }
  // The error does not repeat the text: a malformed address may hold a password.
  if (text.includes('\0') || text.startsWith('//') || /^[^/]*@/.test(text))
    throw new CliError(EXIT.config, `${what} is no path of a file, and does not begin with postgres://`)
  if (from === undefined && !isAbsolute(text))
    throw new CliError(EXIT.config, `${what} is not an absolute path. Set it to ${FORMS}`)
  return fileLocation(home, resolve(from ?? '/', text))
}

function seenFile({ folder }: Home, shown: string): string {
  return join(folder, `store-${hash('sha256', shown).slice(0, 16)}.json`)
}

function fileLocation(home: Home, file: string): FileLocation {
  const own = file === home.database ? home.seen : seenFile(home, file)
  return { type: 'file', shown: file, file, seen: own }
}

function parseDatabaseUrl(text: string, scheme: string, what: string): Pick<DatabaseLocation, 'shown' | 'url'> {
  const refused = (why: string): CliError => new CliError(EXIT.config, `${what} ${why}`)
  if (!SCHEMES.includes(scheme)) {
    const near = nearest(scheme, SCHEMES)
    const hint = near === null ? `A store is ${FORMS}` : `Did you mean ${near}://?`
    throw refused(`begins with "${scheme}:", which no store has. ${hint}`)
  }
  const [, rest] = /^[a-z]+:\/\/(.*)$/is.exec(text) ?? []
  if (rest === undefined) throw refused(`must begin with ${scheme}://`)
  // Splits at the last "@": a password may contain one, and no part of it may be shown as a host.
  const at = rest.lastIndexOf('@')
  const [user, tail] = [rest.slice(0, Math.max(at, 0)), rest.slice(at + 1)]
  if (/[/?#\s]/.test(user))
    throw refused('has a /, ?, # or space before its "@". In a name or password write them as %2F, %3F, %23 and %20.')
  const [, host = '', database = ''] = /^([^/?#\s]*)(?:\/([^/?#\s]*))?(?:\?[^#\s]*)?$/.exec(tail) ?? []
  if (host === '' && database === '' && tail !== '' && tail !== '/')
    throw refused(`cannot be read. A store is ${FORMS}`)
  if (database === '') throw refused(`names no database. Write ${scheme}://USER@HOST/DATABASE`)
  const name = user.split(':')[0] ?? ''
  return { shown: `postgres://${name === '' ? '' : `${name}@`}${host}/${database}`, url: text }
}

/** The password of an address, as it is written there; null if it has none. */
export function passwordIn({ url }: DatabaseLocation): string | null {
  const user = url.slice(url.indexOf('//') + 2, Math.max(url.lastIndexOf('@'), url.indexOf('//') + 2))
  const within = /^[^:]*:(.+)$/s.exec(user)?.[1]
  return within ?? /[?&](?:ssl)?password=([^&]+)/.exec(url)?.[1] ?? null
}

/** The password for redaction: as it is written, and as the database gets it. */
export function storeSecrets(home: Home): Environment {
  const place = findStore(home)
  const written = place.type === 'postgres' ? passwordIn(place) : null
  if (written === null) return {}
  return { TERRET_STORE_PASSWORD: decodePassword(written), TERRET_STORE_PASSWORD_ENCODED: written }
}

function decodePassword(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The data folder with the database file that the command uses. */
export function homeWithStore(home: Home, place: StoreLocation): Home {
  return place.type === 'file' ? { ...home, database: place.file, seen: place.seen } : home
}

// Opening stores. Each kind is loaded when it is used, and not from the index: a command that only reads loads no
// harness.

export async function openStore(place: StoreLocation): Promise<SqliteFile | PostgresDatabase> {
  return place.type === 'file' ? openStoreFile(place) : openDatabase(place)
}

/** If a store was seen here before, no other one is accepted and no new one is created. */
export async function openDatabase(place: DatabaseLocation): Promise<PostgresDatabase> {
  const { postgres } = await import('../../stores/postgres/postgres.ts')
  const expects = readSeenStoreId(place)
  return postgres({ url: place.url, ...(expects === null ? {} : { expects }) })
}

export async function openStoreFile({ file }: FileLocation): Promise<SqliteFile> {
  return (await import('../../stores/sqlite/sqlite.ts')).sqlite(file)
}

/** For commands that only read a store: opening an empty file would create a store in it. */
export async function refuseNoStore({ file, shown }: FileLocation): Promise<void> {
  if (!existsSync(file)) throw new CliError(EXIT.missing, `There is no store ${shown}. Check the path.`)
  const { hasTables } = await import('../../stores/sqlite/open-file.ts')
  const { loadDriver } = await import('../../stores/sqlite/driver.ts')
  if (!hasTables(file, loadDriver()))
    throw new CliError(EXIT.missing, `${shown} is empty: this is no store. Check the path.`)
}

/** The two sides of a move. */
export async function openSource(place: StoreLocation): Promise<MoveSource> {
  if (place.type === 'postgres')
    return (await import('../../stores/postgres/postgres-move.ts')).postgresSource(namedDatabase(place))
  return (await import('../../stores/sqlite/sqlite-move.ts')).sqliteSource(place.file)
}

export async function openTarget(place: StoreLocation): Promise<MoveTarget> {
  if (place.type === 'postgres')
    return (await import('../../stores/postgres/postgres-move.ts')).postgresTarget(namedDatabase(place))
  return (await import('../../stores/sqlite/sqlite-move.ts')).sqliteTarget(place.file)
}

/** Opens a reader of a store that is open. */
export async function openReader(place: StoreLocation, store: SqliteFile | PostgresDatabase): Promise<StoreReader> {
  if (place.type === 'postgres')
    return (await import('../../stores/postgres/postgres-move.ts')).readPostgres(namedDatabase(place))
  const { SqliteStore } = await import('../../stores/sqlite/sqlite-store.ts')
  return store instanceof SqliteStore
    ? store.reader()
    : (await import('../../stores/sqlite/sqlite-move.ts')).readSqlite(place.file)
}

function namedDatabase({ url, shown }: DatabaseLocation): { readonly url: string; readonly name: string } {
  return { url, name: shown }
}
