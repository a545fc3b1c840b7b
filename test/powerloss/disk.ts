// What a disk may hold when power is lost after some call of a log. What was synced is there. Of the rest nothing is there, or half
// of it in any order, or such a half of which single sectors are missing, or all of it.
// It models no real disk: writes are not lost after their sync, and nothing rots.
import { dirname } from 'node:path'
import type { Chance } from '../crash/random.ts'
import type { Call } from './call-log.ts'

/** What is kept of what was not synced. `torn`: of each call that is kept, about half of the sectors. */
export const LOSSES = ['none', 'half', 'torn', 'all'] as const
export type Loss = (typeof LOSSES)[number]
/** Which syncs count. A disk that ignores them must be seen to lose something. */
export type Hears = 'syncs' | 'nothing'
/** When a name is sure: once its folder was synced, or also once its file was, as ext4, XFS and Btrfs have it. */
export type NameRule = 'folder' | 'folder or file'

const SECTOR_BYTES = 512

/** A change of a file that no sync has made sure yet; `n` is its place in the log. */
type Change = { readonly n: number; readonly call: Call }
type FileState = {
  readonly sure: Content
  pending: Change[]
  /** By process: where in the log its sync began. */
  readonly syncs: Map<number, number[]>
}
/** What a path leads to: a file, a folder, or nothing. */
type Target = { readonly type: 'file'; readonly file: bigint } | { readonly type: 'folder' } | null
type NameChange = { readonly path: string; readonly to: Target }
/** One call: a rename changes two names at once. */
type NameChanges = { changes: readonly NameChange[] }

/** By path: the bytes of each file, and null for a folder. */
export type Tree = ReadonlyMap<string, Buffer | null>
export type Remains = { readonly tree: Tree; readonly lostChanges: number; readonly lostNames: number }

export class Disk {
  readonly #hears: (call: Call) => boolean
  readonly #names: NameRule
  readonly #files = new Map<bigint, FileState>()
  readonly #sureNames = new Map<string, Target>()
  /** As the programs see them: all calls so far. */
  readonly #seenNames = new Map<string, Target>()
  #pendingNames: NameChanges[] = []
  #n = 0

  /** `hears`: which syncs count. */
  constructor(hears: (call: Call) => boolean, names: NameRule) {
    this.#hears = hears
    this.#names = names
  }

  /** The next call of the log. */
  take(call: Call): void {
    this.#n += 1
    if (call.kind === 'write' || call.kind === 'size' || call.kind === 'grow')
      this.#file(call.file).pending.push({ n: this.#n, call })
    else if (call.kind === 'name') this.#named(call)
    else if (call.kind === 'folder') this.#rename([{ path: call.path, to: { type: 'folder' } }])
    else if (call.kind === 'remove') this.#rename([{ path: call.path, to: null }])
    else if (call.kind === 'rename') this.#renamed(call.path, call.data.toString())
    else if (call.kind === 'folder sync' && this.#hears(call)) this.#syncFolder(call.path)
    else if (call.kind === 'sync begin') this.#syncsOf(call).push(this.#n)
    else if (call.kind === 'sync end') this.#syncFile(call)
  }

  /** What is there when power is lost now. The same chance gives the same answer. */
  remains(loss: Loss, chance: Chance, leavesOut: (path: string) => boolean): Remains {
    const tree = new Map<string, Buffer | null>()
    const { names, lost: lostNames } = this.#keptNames(loss, chance)
    let lostChanges = 0
    for (const [path, target] of names) {
      if (target === null || leavesOut(path) || !isReachable(path, names)) continue
      if (target.type === 'folder') {
        tree.set(path, null)
        continue
      }
      const { sure, pending } = this.#file(target.file)
      const content = sure.copy()
      lostChanges += applySome(content, pending, loss, chance)
      tree.set(path, content.bytes)
    }
    return { tree, lostChanges, lostNames }
  }

  #file(number: bigint): FileState {
    let file = this.#files.get(number)
    if (file === undefined) this.#files.set(number, (file = { sure: new Content(), pending: [], syncs: new Map() }))
    return file
  }

  #named({ path, file }: Call): void {
    const before = this.#seenNames.get(path)
    if (before?.type !== 'file' || before.file !== file) this.#rename([{ path, to: { type: 'file', file } }])
  }

  #renamed(from: string, to: string): void {
    const below = [...this.#seenNames].filter(([path]) => path === from || path.startsWith(`${from}/`))
    this.#rename(
      below.flatMap(([path, target]) => [
        { path, to: null },
        { path: to + path.slice(from.length), to: target },
      ]),
    )
  }

  #rename(changes: readonly NameChange[]): void {
    for (const { path, to } of changes) this.#seenNames.set(path, to)
    this.#pendingNames.push({ changes })
  }

  #syncsOf({ file, process }: Call): number[] {
    const { syncs } = this.#file(file)
    const begun = syncs.get(process) ?? []
    syncs.set(process, begun)
    return begun
  }

  /** Threads of one process may sync one file at once: the sync that began first is taken as ended, which makes less sure. */
  #syncFile(call: Call): void {
    const begun = this.#syncsOf(call).shift()
    if (begun === undefined || !this.#hears(call)) return
    const file = this.#file(call.file)
    for (const change of file.pending) if (change.n < begun) file.sure.apply(change.call)
    file.pending = file.pending.filter(({ n }) => n > begun)
    if (this.#names === 'folder or file') this.#syncNames(call.file)
  }

  /** What was done to these names before is over with it. */
  #syncNames(file: bigint): void {
    const isOf = ({ changes }: NameChanges) => changes.some(({ to }) => to?.type === 'file' && to.file === file)
    const last = this.#pendingNames.findLastIndex(isOf)
    const sure = this.#pendingNames.filter(isOf).flatMap(({ changes }) => changes)
    const paths = new Set(sure.map(({ path }) => path))
    for (const { path, to } of sure) setName(this.#sureNames, path, to)
    this.#pendingNames = this.#pendingNames.flatMap((pending, i) => {
      if (i > last) return [pending]
      const left = pending.changes.filter(({ path }) => !paths.has(path))
      return isOf(pending) || left.length === 0 ? [] : [{ changes: left }]
    })
  }

  #syncFolder(folder: string): void {
    const inFolder = ({ path }: NameChange) => folderOf(path) === folder
    for (const pending of this.#pendingNames) {
      for (const { path, to } of pending.changes.filter(inFolder)) setName(this.#sureNames, path, to)
      pending.changes = pending.changes.filter((change) => !inFolder(change))
    }
    this.#pendingNames = this.#pendingNames.filter(({ changes }) => changes.length > 0)
  }

  /** A file system with a journal keeps a first part of the changes, another one any of them. */
  #keptNames(loss: Loss, chance: Chance): { readonly names: ReadonlyMap<string, Target>; readonly lost: number } {
    const all = this.#pendingNames
    const first = chance.integer(0, all.length)
    const isJournal = chance.happens(0.5)
    const kept = all.filter((_, i) => {
      if (loss === 'none' || loss === 'all') return loss === 'all'
      return isJournal ? i < first : chance.happens(0.5)
    })
    const names = new Map(this.#sureNames)
    for (const { changes } of kept) for (const { path, to } of changes) setName(names, path, to)
    return { names, lost: all.length - kept.length }
  }
}

function setName(names: Map<string, Target>, path: string, to: Target): void {
  if (to === null) names.delete(path)
  else names.set(path, to)
}

function folderOf(path: string): string {
  const folder = dirname(path)
  return folder === '.' ? '' : folder
}

/** Whether every folder above it is there. */
function isReachable(path: string, names: ReadonlyMap<string, Target>): boolean {
  const folder = folderOf(path)
  return folder === '' || (names.get(folder)?.type === 'folder' && isReachable(folder, names))
}

/** Returns how many changes are missing, in whole or in part. */
function applySome(content: Content, pending: readonly Change[], loss: Loss, chance: Chance): number {
  if (loss === 'none') return pending.length
  if (loss === 'all') {
    for (const { call } of pending) content.apply(call)
    return 0
  }
  const kept = shuffle(
    pending.filter(() => chance.happens(0.5)),
    chance,
  )
  let torn = 0
  for (const { call } of kept) {
    if (loss === 'torn' && call.kind === 'write') torn += content.tear(call, chance) ? 1 : 0
    else content.apply(call)
  }
  return pending.length - kept.length + torn
}

function shuffle<T>(list: T[], chance: Chance): readonly T[] {
  for (let i = list.length - 1; i > 0; i--) {
    const j = chance.integer(0, i)
    ;[list[i], list[j]] = [list[j] as T, list[i] as T]
  }
  return list
}

/** The bytes of a file, which may grow. */
class Content {
  #buffer = Buffer.alloc(0)
  #size = 0

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size)
  }

  copy(): Content {
    const other = new Content()
    other.#buffer = Buffer.from(this.bytes)
    other.#size = this.#size
    return other
  }

  apply({ kind, offset, data }: Call): void {
    if (kind === 'write') this.#put(data, offset)
    else if (kind === 'size') this.#resize(offset)
    else if (kind === 'grow') this.#resize(Math.max(offset, this.#size))
  }

  /** Writes about half of the sectors. False: by chance it wrote them all. */
  tear({ offset, data }: Call, chance: Chance): boolean {
    let missing = false
    for (let at = 0; at < data.length; ) {
      const end = Math.min(data.length, at + SECTOR_BYTES - ((offset + at) % SECTOR_BYTES))
      if (chance.happens(0.5)) this.#put(data.subarray(at, end), offset + at)
      else missing = true
      at = end
    }
    return missing
  }

  #put(data: Buffer, offset: number): void {
    this.#resize(Math.max(this.#size, offset + data.length))
    data.copy(this.#buffer, offset)
  }

  #resize(size: number): void {
    if (size > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(size, this.#buffer.length * 2))
      this.#buffer.copy(larger, 0, 0, this.#size)
      this.#buffer = larger
    }
    if (size < this.#size) this.#buffer.fill(0, size, this.#size)
    this.#size = size
  }
}
