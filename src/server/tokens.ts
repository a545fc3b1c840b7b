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
type File = { readonly own: string; readonly others: readonly Kept[] }

/** 256 bits. */
const TOKEN_BYTES = 32

/** Runs `work` while no other process runs anything under the same path. */
export type Alone = <T>(path: string, work: () => T) => T

export class Tokens {
  readonly #path: string
  readonly #owner: Principal
  readonly #alone: Alone
  #file: File
  #stamp: string
  #byHash: ReadonlyMap<string, Principal> = new Map()

  /** `owner`: the name that the owner's token stands for in logs. */
  constructor(path: string, owner: string, alone: Alone) {
    this.#path = path
    this.#owner = { name: owner, role: 'admin', roles: [ANY_ROLE], reach: 'all' }
    this.#alone = alone
    // Before the file is read: what changes meanwhile is read again.
    this.#stamp = stampOf(path)
    this.#file = this.#read()
    this.#byHash = this.#index(this.#file)
  }

  get own(): string {
    return this.#file.own
  }

  /** By the hash, so that how long it takes says nothing. */
  principalOf(token: string): Principal {
    this.#refresh()
    const found = this.#byHash.get(hashOf(token))
    if (!found) throw unauthorized()
    return found
  }

  /** Whether the token of a principal that was let in before is still there, with the same rights. */
  knows(principal: Principal): boolean {
    this.#refresh()
    return [...this.#byHash.values()].includes(principal)
  }

  list(): readonly TokenRow[] {
    this.#refresh()
    return this.#file.others.map(({ hash: _, ...row }) => row)
  }

  make({ name, role, roles = [], reach = 'all' }: TokenBody, now: number): TokenMade {
    const said = name.trim()
    if (!/^[\p{L}\p{N}](?:[\p{L}\p{N} ._@-]{0,98}[\p{L}\p{N}])?$/u.test(said))
      throw new Refused(400, 'invalid_input', 'A name has letters and numbers, between them also . _ @ -, at most 100.')
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    const row = { name: said, role, roles: roles.filter((one) => one !== ANY_ROLE), reach, made: now }
    this.#change((others) => {
      // Names stand in logs and are counted as people: one must not be taken for another.
      const other = [this.#owner, ...others].find((one) => skeleton(one.name) === skeleton(said))
      if (!other) return [...others, { ...row, hash: hashOf(token) }]
      const text = `${other.name} has a token. Remove it first, or choose a name that looks different.`
      throw new Refused(409, 'conflict', text)
    })
    return { ...row, token }
  }

  drop(name: string): void {
    this.#change((others) => {
      const left = others.filter((one) => one.name !== name)
      if (left.length < others.length) return left
      throw new Refused(404, 'not_found', 'Nobody of that name has a token.')
    })
  }

  /** A token that another server took away does not come back with what is written here. */
  #change(change: (others: readonly Kept[]) => readonly Kept[]): void {
    this.#alone(`${this.#path}.lock`, () => {
      const file = read(this.#path) ?? made(this.#path)
      replace(this.#path, { ...file, others: change(file.others) })
    })
    this.#refresh()
  }

  #read(): File {
    return read(this.#path) ?? this.#alone(`${this.#path}.lock`, () => read(this.#path) ?? made(this.#path))
  }

  /** One look at the file's time for each request: what another process took away must not be good here. */
  #refresh(): void {
    const stamp = stampOf(this.#path)
    if (stamp === this.#stamp) return
    this.#file = this.#read()
    this.#byHash = this.#index(this.#file)
    this.#stamp = stamp
  }

  /** A token that stayed as it was keeps its principal, by which `knows` tells it from another one of the same name. */
  #index({ own, others }: File): ReadonlyMap<string, Principal> {
    const rows = others.map(({ hash, name, role, roles, reach }) => [hash, { name, role, roles, reach }] as const)
    const before = this.#byHash
    return new Map(
      [...rows, [hashOf(own), { ...this.#owner }] as const].map(([hash, now]) => {
        const was = before.get(hash)
        return [hash, was && JSON.stringify(was) === JSON.stringify(now) ? was : now]
      }),
    )
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
    const { own, others } = JSON.parse(readFileSync(file, 'utf8')) as Partial<File>
    if (typeof own !== 'string' || own.length < 43 || !Array.isArray(others) || !others.every(isKept))
      throw unusable(path, 'is damaged')
    return { own, others }
  } catch (error) {
    throw error instanceof Fault ? error : unusable(path, 'is damaged')
  } finally {
    closeSync(file)
  }
}

function isKept(row: Partial<Kept> | null): boolean {
  const { hash, name, role, roles, reach, made: at } = row ?? {}
  const texts = [hash, name, role, reach].every((each) => typeof each === 'string')
  return texts && typeof at === 'number' && Array.isArray(roles) && roles.every((each) => typeof each === 'string')
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
