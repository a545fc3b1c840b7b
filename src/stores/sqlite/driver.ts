// Chooses the SQLite of this process: Node's own if it is new enough, otherwise @photostructure/sqlite, which has the
// same interface. Importing it loads nothing, so a process without a store pays nothing.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Fault } from '../../kernel/failure.ts'

export type SqliteValue = null | number | string | Uint8Array

export interface Statement {
  run(...values: SqliteValue[]): { readonly lastInsertRowid: number | bigint; readonly changes: number | bigint }
  /**
   * The first row. Also the cheapest way to write: `run` builds an object that is not read, which costs as much as a
   * row.
   */
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown[]
}

/** The part of node:sqlite's DatabaseSync that is used here. */
export interface Database {
  readonly isTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export type Driver = new (path: string) => Database

/** Older versions can lose committed data when several processes share a WAL file and one of them resets it. */
const OLDEST = '3.51.3'

export function loadDriver(): Driver {
  const builtIn = process.versions['sqlite']
  const require = createRequire(import.meta.url)
  try {
    if (builtIn !== undefined && isRecent(builtIn)) return (require('node:sqlite') as SqliteModule).DatabaseSync
    // Written out, because tools that trace what a server needs look for such texts.
    return collectingDriver((require('@photostructure/sqlite') as SqliteModule).DatabaseSync)
  } catch (error) {
    throw new Fault('store_unsupported', isLeftBehind(error) ? LEFT_BEHIND : NO_DRIVER, String(error))
  }
}

/** The package is installed for the program, and was not found from this file: a bundler has moved this code away from it. */
function isLeftBehind(error: unknown): boolean {
  // Not one that the package itself needs: the message names in quotes what is missing.
  if (!(error instanceof Error && error.message.startsWith("Cannot find module '@photostructure/sqlite'"))) return false
  try {
    createRequire(join(process.cwd(), 'program.js')).resolve('@photostructure/sqlite')
    return true
  } catch {
    return false
  }
}

type SqliteModule = { readonly DatabaseSync: Driver }

const BUNDLED =
  "If a bundler such as that of Next.js packs this program, leave terret out of the bundle: serverExternalPackages: ['terret'] " +
  'in next.config.mjs, or the list of external packages of another bundler. ' +
  'If the program is copied elsewhere without its packages, as by output: standalone, have @photostructure/sqlite and node-gyp-build ' +
  'copied with it: outputFileTracingIncludes.'
const NO_DRIVER = 'No usable SQLite: install @photostructure/sqlite, or use Node 24 or newer. ' + BUNDLED
const LEFT_BEHIND = '@photostructure/sqlite is installed, and was not found from this program. ' + BUNDLED

/** How many closed databases may wait for the garbage collector. Each has two file descriptors. */
const UNCOLLECTED_MAX = 32

/** For this process, across all its stores. */
let uncollected = 0

/**
 * Version 1 of @photostructure/sqlite, the last one for Node 20, keeps a closed file open until the statements prepared
 * on it are collected, and cannot finalize them. They use so little of the heap that a process may run out of
 * descriptors first. So this collects garbage after some databases were closed.
 */
function collectingDriver(Real: Driver): Driver {
  return class implements Database {
    readonly #db: Database
    #isPrepared = false

    constructor(path: string) {
      this.#db = new Real(path)
    }

    get isTransaction(): boolean {
      return this.#db.isTransaction
    }

    exec(sql: string): void {
      this.#db.exec(sql)
    }

    prepare(sql: string): Statement {
      this.#isPrepared = true
      return this.#db.prepare(sql)
    }

    close(): void {
      this.#db.close()
      if (this.#isPrepared) uncollected += 1
      if (uncollected < UNCOLLECTED_MAX) return
      uncollected = 0
      collectGarbage()
    }
  }
}

/** Node exposes its garbage collector only with this flag. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  collect()
}

export function checkVersion(version: string): void {
  if (isRecent(version)) return
  const text = `SQLite ${version} is too old; ${OLDEST} or newer is needed. Install @photostructure/sqlite, or use Node 24 or newer.`
  throw new Fault('store_unsupported', text)
}

function isRecent(version: string): boolean {
  const given = version.split('.').map(Number)
  for (const [i, part] of OLDEST.split('.').entries()) {
    const difference = (given[i] ?? 0) - Number(part)
    if (difference !== 0) return difference > 0
  }
  return true
}
