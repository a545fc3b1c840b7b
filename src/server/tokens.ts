// Who may ask: principals by their tokens, in a file that only its owner may read. The owner's own token is kept as it is, so that a page
// survives a restart; of all others only the hash is kept. Another server on the same folder reads the same file.
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
import { Fault } from '../kernel/index.ts'
import { ANY_ROLE } from '../mcp/caller.ts'
import { skeleton } from '../view/lookalike.ts'
import { unauthorized } from './checks.ts'
import { Refused } from './refusals.ts'
import type { Principal, TokenBody, TokenMade, TokenRow } from './wire.ts'

type Kept = TokenRow & { readonly hash: string }
/** `dropped`: names whose tokens were taken away. Logs and sessions still name them. */
type File = { readonly own: string; readonly others: readonly Kept[]; readonly dropped?: readonly string[] }

/** Where the file is kept. `change` lets no other process change it meanwhile. */
type Place = {
  readonly stamp: () => string
  readonly read: () => File
  readonly change: (change: (file: File) => File) => void
}

/** 256 bits. */
const TOKEN_BYTES = 32

/** Runs `work` while no other process runs anything under the same path. */
export type Alone = <T>(path: string, work: () => T) => T

export class Tokens {
  readonly #owner: Principal
  readonly #place: Place
  #file: File
  #stamp: string
  #byHash: ReadonlyMap<string, Known> = new Map()

  /** `owner`: the name that the owner's token stands for in logs. */
  constructor(path: string, owner: string, alone: Alone)
  constructor(place: Place, owner: string)
  constructor(place: string | Place, owner: string, alone?: Alone) {
    this.#owner = { name: owner, role: 'admin', roles: [ANY_ROLE], reach: 'all' }
    this.#place = typeof place === 'string' ? placeOf(place, alone ?? ((_, work) => work())) : place
    // Before the file is read: what changes meanwhile is read again.
    this.#stamp = this.#place.stamp()
    this.#file = this.#place.read()
    this.#byHash = this.#index(this.#file)
  }

  /** Of this process alone: what is made here is gone with it. */
  static inMemory(own: string, owner: string): Tokens {
    let [file, changes]: [File, number] = [{ own, others: [] }, 0]
    const change = (act: (before: File) => File): void => {
      file = act(file)
      changes += 1
    }
    return new Tokens({ stamp: () => String(changes), read: () => file, change }, owner)
  }

  get own(): string {
    return this.#file.own
  }

  /** By the hash, so that how long it takes says nothing. */
  principalOf(token: string, now: number): Principal {
    this.#refresh()
    const found = this.#byHash.get(hashOf(token))
    if (found && !isOver(found, now)) return found.principal
    throw unauthorized()
  }

  /** Whether the token of a principal that was let in before is still good, with the same rights. */
  knows(principal: Principal, now: number): boolean {
    this.#refresh()
    for (const found of this.#byHash.values()) if (found.principal === principal) return !isOver(found, now)
    return false
  }

  list(): readonly TokenRow[] {
    this.#refresh()
    return this.#file.others.map(({ hash: _, ...row }) => row)
  }

  make({ name, role, roles = [], reach = 'all', expiresMs, inherit = false }: TokenBody, now: number): TokenMade {
    const said = name.trim()
    if (!/^[\p{L}\p{N}](?:[\p{L}\p{N} ._@-]{0,98}[\p{L}\p{N}])?$/u.test(said))
      throw new Refused(400, 'invalid_input', 'A name has letters and numbers, between them also . _ @ -, at most 100.')
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    const over = expiresMs === undefined ? {} : { expires: now + expiresMs }
    const row = { name: said, role, roles: roles.filter((one) => one !== ANY_ROLE), reach, made: now, ...over }
    this.#change((file) => {
      const { others, dropped = [] } = file
      // Names stand in logs and are counted as people: one must not be taken for another.
      const looksLike = (one: string): boolean => skeleton(one) === skeleton(said)
      const other = [this.#owner, ...others].find((one) => looksLike(one.name))
      if (other) {
        const text = `${other.name} has a token. Remove it first, or choose a name that looks different.`
        throw new Refused(409, 'conflict', text)
      }
      const before = dropped.find(looksLike)
      if (before !== undefined && !(inherit && before === said)) throw wasUsed(before)
      const left = dropped.filter((one) => one !== said)
      return { ...file, others: [...others, { ...row, hash: hashOf(token) }], dropped: left }
    })
    return { ...row, token }
  }

  drop(name: string): void {
    this.#change((file) => {
      const { others, dropped = [] } = file
      const left = others.filter((one) => one.name !== name)
      if (left.length < others.length) return { ...file, others: left, dropped: [...dropped, name] }
      throw new Refused(404, 'not_found', 'Nobody of that name has a token.')
    })
  }

  /** A token that another server took away does not come back with what is written here. */
  #change(change: (file: File) => File): void {
    this.#place.change(change)
    this.#refresh()
  }

  /** One look at the file's time for each request: what another process took away must not be good here. */
  #refresh(): void {
    const stamp = this.#place.stamp()
    if (stamp === this.#stamp) return
    this.#file = this.#place.read()
    this.#byHash = this.#index(this.#file)
    this.#stamp = stamp
  }

  /** A token that stayed as it was keeps its principal, by which `knows` tells it from another one of the same name. */
  #index({ own, others }: File): ReadonlyMap<string, Known> {
    const rows = others.map(({ hash, name, role, roles, reach, expires = null }) => {
      return [hash, { principal: { name, role, roles, reach }, expires }] as const
    })
    const before = this.#byHash
    return new Map(
      [...rows, [hashOf(own), { principal: { ...this.#owner }, expires: null }] as const].map(([hash, now]) => {
        const was = before.get(hash)
        return [hash, was && JSON.stringify(was) === JSON.stringify(now) ? was : now]
      }),
    )
  }
}

/** A name that had a token before. What that one opened and decided stays under it. */
export function wasUsed(name: string): Refused {
  const text = `${name} was the name of another token, and what that one opened and decided stays under it. Choose another name, or say inherit: the new token then has its sessions.`
  return new Refused(409, 'conflict', text)
}

type Known = { readonly principal: Principal; readonly expires: number | null }

function isOver({ expires }: Known, now: number): boolean {
  return expires !== null && expires <= now
}

function placeOf(path: string, alone: Alone): Place {
  const lock = `${path}.lock`
  return {
    stamp: () => stampOf(path),
    read: () => read(path) ?? alone(lock, () => read(path) ?? made(path)),
    change: (change) => alone(lock, () => replace(path, change(read(path) ?? made(path)))),
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, ino, size } = statSync(path)
    return `${mtimeMs} ${ino} ${size}`
  } catch {
    return 'gone'
  }
}

/** Only by who is alone with it. */
function made(path: string): File {
  const file = { own: randomBytes(TOKEN_BYTES).toString('base64url'), others: [] }
  replace(path, file)
  return file
}

function read(path: string): File | null {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw unusable(path, 'cannot be read, or is a link')
  }
  try {
    const { mode, uid } = fstatSync(file)
    if ((mode & 0o077) !== 0 || uid !== (process.getuid?.() ?? uid))
      throw unusable(path, 'can be read or changed by other users of this machine')
    const { own, others, dropped = [] } = JSON.parse(readFileSync(file, 'utf8')) as Partial<File>
    const named = Array.isArray(dropped) && dropped.every((name) => typeof name === 'string')
    if (typeof own !== 'string' || own.length < 43 || !Array.isArray(others) || !others.every(isKept) || !named)
      throw unusable(path, 'is damaged')
    return { own, others, dropped }
  } catch (error) {
    throw error instanceof Fault ? error : unusable(path, 'is damaged')
  } finally {
    closeSync(file)
  }
}

function isKept(row: Partial<Kept> | null): boolean {
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

function unusable(path: string, why: string): Fault {
  return new Fault('invalid_config', `${path} ${why}, so the tokens in it are not used. Remove it: new ones are made.`)
}

/** Whole or not at all. What a process left that was killed here is taken away. */
function replace(path: string, file: File): void {
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
}
