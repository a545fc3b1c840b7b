// The principals and their tokens, in a file that only its owner may read. The owner's token is kept as it is, so that
// an open page survives a restart. Of all other tokens only the hash is kept. Another server on the same folder uses
// the same file.
import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '../kernel/index.ts'
import { ANY_ROLE } from '../mcp/caller.ts'
import { skeleton } from '../view/lookalike.ts'
import { tokenRefusal } from './request-checks.ts'
import { HttpRefusal } from './refusals.ts'
import type { Principal, TokenBody, TokenMade, TokenRow } from './wire.ts'

type StoredToken = TokenRow & { readonly hash: string }
/** `dropped`: the names of dropped tokens. Logs and sessions still refer to them. */
type TokenFile = { readonly own: string; readonly others: readonly StoredToken[]; readonly dropped?: readonly string[] }

/** The storage of the token file. `change` excludes changes by other processes. */
type TokenStorage = {
  readonly stamp: () => string
  readonly read: () => TokenFile
  readonly change: (change: (file: TokenFile) => TokenFile) => void
}

/** 256 bits. */
const TOKEN_BYTES = 32

/** Runs `work` while no other process runs anything under the same path. */
export type RunExclusively = <T>(path: string, work: () => T) => T

export class TokenRegistry {
  readonly #owner: Principal
  readonly #place: TokenStorage
  #file: TokenFile
  #stamp: string
  #byHash: ReadonlyMap<string, KnownToken> = new Map()

  /** `owner`: the name of the owner's token in logs. */
  constructor(path: string, owner: string, alone: RunExclusively)
  constructor(place: TokenStorage, owner: string)
  constructor(place: string | TokenStorage, owner: string, alone?: RunExclusively) {
    this.#owner = { name: owner, role: 'admin', roles: [ANY_ROLE], reach: 'all' }
    this.#place = typeof place === 'string' ? createFileStorage(place, alone ?? ((_, work) => work())) : place
    // The stamp is taken before the file is read, so that a change in between is read again.
    this.#stamp = this.#place.stamp()
    this.#file = this.#place.read()
    this.#byHash = this.#index(this.#file)
  }

  /** Keeps tokens in memory: they are gone when the process ends. */
  static inMemory(own: string, owner: string): TokenRegistry {
    let [file, changes]: [TokenFile, number] = [{ own, others: [] }, 0]
    const change = (act: (before: TokenFile) => TokenFile): void => {
      file = act(file)
      changes += 1
    }
    return new TokenRegistry({ stamp: () => String(changes), read: () => file, change }, owner)
  }

  get own(): string {
    return this.#file.own
  }

  /** Looks up the hash, so that timing reveals nothing about tokens. */
  principalOf(token: string, now: number): Principal {
    this.#refresh()
    const found = this.#byHash.get(hashToken(token))
    if (found && !isExpired(found, now)) return found.principal
    throw tokenRefusal()
  }

  /** Whether the token of an admitted principal is still valid, with the same rights. */
  knows(principal: Principal, now: number): boolean {
    this.#refresh()
    for (const found of this.#byHash.values()) if (found.principal === principal) return !isExpired(found, now)
    return false
  }

  list(): readonly TokenRow[] {
    this.#refresh()
    return this.#file.others.map(({ hash: _, ...row }) => row)
  }

  make({ name, role, roles = [], reach = 'all', expiresMs, inherit = false }: TokenBody, now: number): TokenMade {
    const said = name.trim()
    if (!/^[\p{L}\p{N}](?:[\p{L}\p{N} ._@-]{0,98}[\p{L}\p{N}])?$/u.test(said))
      throw new HttpRefusal(
        400,
        'invalid_input',
        'A name has letters and numbers, between them also . _ @ -, at most 100.',
      )
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    const over = expiresMs === undefined ? {} : { expires: now + expiresMs }
    const row = { name: said, role, roles: roles.filter((one) => one !== ANY_ROLE), reach, made: now, ...over }
    this.#change((file) => {
      const { others, dropped = [] } = file
      // Logs and votes identify people by name, so two names must not look alike.
      const looksLike = (one: string): boolean => skeleton(one) === skeleton(said)
      const other = [this.#owner, ...others].find((one) => looksLike(one.name))
      if (other) {
        const text = `${other.name} has a token. Remove it first, or choose a name that looks different.`
        throw new HttpRefusal(409, 'conflict', text)
      }
      const before = dropped.find(looksLike)
      if (before !== undefined && !(inherit && before === said)) throw nameUsedRefusal(before)
      const left = dropped.filter((one) => one !== said)
      return { ...file, others: [...others, { ...row, hash: hashToken(token) }], dropped: left }
    })
    return { ...row, token }
  }

  drop(name: string): void {
    this.#change((file) => {
      const { others, dropped = [] } = file
      const left = others.filter((one) => one.name !== name)
      if (left.length < others.length) return { ...file, others: left, dropped: [...dropped, name] }
      throw new HttpRefusal(404, 'not_found', 'Nobody of that name has a token.')
    })
  }

  /** Changes the stored file, not the copy in memory, so that a token dropped by another server does not come back. */
  #change(change: (file: TokenFile) => TokenFile): void {
    this.#place.change(change)
    this.#refresh()
  }

  /** Checks the file's stamp on each request, so that a token dropped by another process is refused here too. */
  #refresh(): void {
    const stamp = this.#place.stamp()
    if (stamp === this.#stamp) return
    this.#file = this.#place.read()
    this.#byHash = this.#index(this.#file)
    this.#stamp = stamp
  }

  /** An unchanged token keeps its principal object, by which `knows` tells it from another token of the same name. */
  #index({ own, others }: TokenFile): ReadonlyMap<string, KnownToken> {
    const rows = others.map(({ hash, name, role, roles, reach, expires = null }) => {
      return [hash, { principal: { name, role, roles, reach }, expires }] as const
    })
    const before = this.#byHash
    return new Map(
      [...rows, [hashToken(own), { principal: { ...this.#owner }, expires: null }] as const].map(([hash, now]) => {
        const was = before.get(hash)
        return [hash, was && JSON.stringify(was) === JSON.stringify(now) ? was : now]
      }),
    )
  }
}

/** Refuses a name that had a token before: that token's sessions and decisions keep the name. */
export function nameUsedRefusal(name: string): HttpRefusal {
  const text = `${name} was the name of another token, and what that one opened and decided stays under it. Choose another name, or say inherit: the new token then has its sessions.`
  return new HttpRefusal(409, 'conflict', text)
}

type KnownToken = { readonly principal: Principal; readonly expires: number | null }

function isExpired({ expires }: KnownToken, now: number): boolean {
  return expires !== null && expires <= now
}

function createFileStorage(path: string, alone: RunExclusively): TokenStorage {
  const lock = `${path}.lock`
  return {
    stamp: () => fileStamp(path),
    read: () => readTokenFile(path) ?? alone(lock, () => readTokenFile(path) ?? createTokenFile(path)),
    change: (change) => alone(lock, () => replaceTokenFile(path, change(readTokenFile(path) ?? createTokenFile(path)))),
  }
}

function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function fileStamp(path: string): string {
  try {
    const { mtimeMs, ino, size } = statSync(path)
    return `${mtimeMs} ${ino} ${size}`
  } catch {
    return 'gone'
  }
}

/** Call it only while holding the lock. */
function createTokenFile(path: string): TokenFile {
  const file = { own: randomBytes(TOKEN_BYTES).toString('base64url'), others: [] }
  replaceTokenFile(path, file)
  return file
}

function readTokenFile(path: string): TokenFile | null {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw unusableTokensFault(path, 'cannot be read, or is a link')
  }
  try {
    const { mode, uid } = fstatSync(file)
    if ((mode & 0o077) !== 0 || uid !== (process.getuid?.() ?? uid))
      throw unusableTokensFault(path, 'can be read or changed by other users of this machine')
    const { own, others, dropped = [] } = JSON.parse(readFileSync(file, 'utf8')) as Partial<TokenFile>
    const named = Array.isArray(dropped) && dropped.every((name) => typeof name === 'string')
    if (typeof own !== 'string' || own.length < 43 || !Array.isArray(others) || !others.every(isStoredToken) || !named)
      throw unusableTokensFault(path, 'is damaged')
    return { own, others, dropped }
  } catch (error) {
    throw error instanceof Fault ? error : unusableTokensFault(path, 'is damaged')
  } finally {
    closeSync(file)
  }
}

function isStoredToken(row: Partial<StoredToken> | null): boolean {
  const { hash, name, role, roles, reach, made: at, expires = 0 } = row ?? {}
  const texts = [hash, name, role, reach].every((each) => typeof each === 'string')
  return (
    texts &&
    typeof at === 'number' &&
    typeof expires === 'number' &&
    Array.isArray(roles) &&
    roles.every((each) => typeof each === 'string')
  )
}

function unusableTokensFault(path: string, why: string): Fault {
  return new Fault('invalid_config', `${path} ${why}, so the tokens in it are not used. Remove it: new ones are made.`)
}

/** Writes the whole file or nothing. A temporary file that a killed process left is removed first. */
function replaceTokenFile(path: string, file: TokenFile): void {
  const beside = `${path}.tmp`
  rmSync(beside, { force: true })
  const handle = openSync(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeFileSync(handle, `${JSON.stringify(file)}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(beside, path)
  // Until the folder is synced, a power loss may bring the file of before back, and a token that was revoked with it.
  const folder = openSync(dirname(path), constants.O_RDONLY)
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
