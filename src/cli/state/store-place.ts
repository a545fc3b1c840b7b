// Which store a command works on: `TERRET_STORE`, else `store` of the user's configuration, else the file in the data folder. The one
// place where a store is opened by its name. A password is in `url` alone: what is shown, logged or thrown has `shown`.
import { hash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { nearest } from '../../options.ts'
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import type { SqliteFile } from '../../stores/sqlite/sqlite.ts'
import type { Reader, Source, Target } from '../../stores/move/rows.ts'
import { EXIT, Refusal } from '../exit.ts'
import { parseFields } from './config.ts'
import type { Environment, Home } from './home.ts'
import { readPlain } from './plain-file.ts'
import { seenDatabase } from './store-fingerprint.ts'

export type StorePlace = FilePlace | DatabasePlace
/** `seen`: where the last seen state of this file is kept. */
export type FilePlace = { readonly type: 'file'; readonly shown: string; readonly file: string; readonly seen: string }
/** `seen`: where the id of the store is kept that was there last. */
export type DatabasePlace = {
  readonly type: 'postgres'
  readonly shown: string
  readonly url: string
  readonly seen: string
}

export function storeIn(home: Home, env: Environment = process.env): StorePlace {
  const given = env['TERRET_STORE']
  if (given !== undefined) return storeNamed(home, given, { what: 'TERRET_STORE' })
  const file = join(home.config, 'config.json')
  const text = readPlain(file)
  const set = text === null ? undefined : parseFields(file, text)['store']
  if (set === undefined) return fileAt(home, home.database)
  const what = `${file}: "store"`
  if (typeof set !== 'string') throw new Refusal(EXIT.config, `${what} must be a text: ${FORMS}`)
  const place = storeNamed(home, set, { what, from: dirname(file) })
  if (place.type === 'postgres' && passwordIn(place) !== null && (statSync(file).mode & 0o077) !== 0)
    throw new Refusal(
      EXIT.config,
      `Other users can read the password in ${file}. Make it yours alone: chmod 600 ${file}`,
    )
  return place
}

const FORMS = 'postgres://USER@HOST/DATABASE, or the path of a file.'
const SCHEMES = ['postgres', 'postgresql']

/** `from`: where a relative path begins. Without it, a path must be absolute. */
type Named = { readonly what: string; readonly from?: string }

export function storeNamed(home: Home, given: string, { what, from }: Named): StorePlace {
  const text = given.trim()
  if (text === '') throw new Refusal(EXIT.config, `${what} is empty. Set it to ${FORMS}`)
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined) {
    const { shown, url } = databaseAt(text, scheme, what)
    return { type: 'postgres', shown, url, seen: seenFile(home, shown) }
  }
  // The text is not repeated: an address that is written wrongly may hold a password.
  if (text.includes('\0') || text.startsWith('//') || /^[^/]*@/.test(text))
    throw new Refusal(EXIT.config, `${what} is no path of a file, and does not begin with postgres://`)
  if (from === undefined && !isAbsolute(text))
    throw new Refusal(EXIT.config, `${what} is not an absolute path. Set it to ${FORMS}`)
  return fileAt(home, resolve(from ?? '/', text))
}

function seenFile({ folder }: Home, shown: string): string {
  return join(folder, `store-${hash('sha256', shown).slice(0, 16)}.json`)
}

function fileAt(home: Home, file: string): FilePlace {
  const own = file === home.database ? home.seen : seenFile(home, file)
  return { type: 'file', shown: file, file, seen: own }
}

function databaseAt(text: string, scheme: string, what: string): Pick<DatabasePlace, 'shown' | 'url'> {
  const refused = (why: string): Refusal => new Refusal(EXIT.config, `${what} ${why}`)
  if (!SCHEMES.includes(scheme)) {
    const near = nearest(scheme, SCHEMES)
    const hint = near === null ? `A store is ${FORMS}` : `Did you mean ${near}://?`
    throw refused(`begins with "${scheme}:", which no store has. ${hint}`)
  }
  const [, rest] = /^[a-z]+:\/\/(.*)$/is.exec(text) ?? []
  if (rest === undefined) throw refused(`must begin with ${scheme}://`)
  // Behind the last "@": a password may hold one, and no part of it may be taken for a host that is shown.
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
export function passwordIn({ url }: DatabasePlace): string | null {
  const user = url.slice(url.indexOf('//') + 2, Math.max(url.lastIndexOf('@'), url.indexOf('//') + 2))
  const within = /^[^:]*:(.+)$/s.exec(user)?.[1]
  return within ?? /[?&](?:ssl)?password=([^&]+)/.exec(url)?.[1] ?? null
}

/** For what is redacted: the password as it is written, and as the database gets it. */
export function storeSecrets(home: Home): Environment {
  const place = storeIn(home)
  const written = place.type === 'postgres' ? passwordIn(place) : null
  if (written === null) return {}
  return { TERRET_STORE_PASSWORD: decoded(written), TERRET_STORE_PASSWORD_ENCODED: written }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The data folder as a command sees it: with the file that it works on. */
export function homeWith(home: Home, place: StorePlace): Home {
  return place.type === 'file' ? { ...home, database: place.file, seen: place.seen } : home
}

// Opening. Each kind of store is loaded when it is used. Not from the index: a command that only reads loads no harness.

export async function openStore(place: StorePlace): Promise<SqliteFile | PostgresDatabase> {
  return place.type === 'file' ? openFile(place) : openDatabase(place)
}

/** Where a store was seen before, no other one is taken for it, and no new one is made. */
export async function openDatabase(place: DatabasePlace): Promise<PostgresDatabase> {
  const { postgres } = await import('../../stores/postgres/postgres.ts')
  const expects = seenDatabase(place)
  return postgres({ url: place.url, ...(expects === null ? {} : { expects }) })
}

export async function openFile({ file }: FilePlace): Promise<SqliteFile> {
  return (await import('../../stores/sqlite/sqlite.ts')).sqlite(file)
}

/** For what only reads a store: opening an empty file would make a store in it. */
export async function refuseNoStore({ file, shown }: FilePlace): Promise<void> {
  if (!existsSync(file)) throw new Refusal(EXIT.missing, `There is no store ${shown}. Check the path.`)
  const { hasTables } = await import('../../stores/sqlite/open.ts')
  const { loadDriver } = await import('../../stores/sqlite/driver.ts')
  if (!hasTables(file, loadDriver()))
    throw new Refusal(EXIT.missing, `${shown} is empty: this is no store. Check the path.`)
}

/** The sides of a move, and the reader of a check. */
export async function openSource(place: StorePlace): Promise<Source> {
  if (place.type === 'postgres') return (await import('../../stores/postgres/move.ts')).postgresSource(named(place))
  return (await import('../../stores/sqlite/move.ts')).sqliteSource(place.file)
}

export async function openTarget(place: StorePlace): Promise<Target> {
  if (place.type === 'postgres') return (await import('../../stores/postgres/move.ts')).postgresTarget(named(place))
  return (await import('../../stores/sqlite/move.ts')).sqliteTarget(place.file)
}

/** The reader of a store that is open. */
export async function openReader(place: StorePlace, store: SqliteFile | PostgresDatabase): Promise<Reader> {
  if (place.type === 'postgres') return (await import('../../stores/postgres/move.ts')).readPostgres(named(place))
  const { SqliteStore } = await import('../../stores/sqlite/store.ts')
  return store instanceof SqliteStore
    ? store.reader()
    : (await import('../../stores/sqlite/move.ts')).readSqlite(place.file)
}

function named({ url, shown }: DatabasePlace): { readonly url: string; readonly name: string } {
  return { url, name: shown }
}
