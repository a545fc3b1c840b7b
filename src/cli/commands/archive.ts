// `terret store archive`: old sessions with nothing left to do go into files, each checked on the disk before it leaves the store.
// `terret store restore`: back again, as they were. Both can be stopped anywhere, and run again.
import { hash } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Archive } from '../../replay.ts'
import { Fault, type Removal, type Store } from '../../kernel/index.ts'
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import { clean, oneLine, safeJson } from '../../view/clean.ts'
import { type Call, person } from '../args.ts'
import { endOf, EXIT, Refusal } from '../exit.ts'
import { counterOn } from '../present/counter.ts'
import { print, printJson, warn, typed } from '../present/print.ts'
import { removeWith, sweep } from '../state/leftovers.ts'
import { inPlace, type Place } from '../state/place.ts'
import { codeOf } from '../state/plain-file.ts'
import { countOf } from './delete.ts'
import { type Kept, keptText, noneKept, oldFamilies, refused } from './prune.ts'

/** A session that stays in the store, because no file of it could be restored. */
type Unwritten = { readonly session: string; readonly why: string }
type Done = { readonly file: string; readonly removed: readonly Removal[] }

export function archive(call: Call): Promise<number> {
  const [days, to] = [call.count('older', 0), call.text('to')]
  if (days === undefined || to === undefined)
    throw new Refusal(EXIT.usage, 'Usage: terret store archive --older DAYS --to DIR')
  return inOwnPlace(async (place) => {
    const kept = noneKept()
    const waves = await oldFamilies(place, { days, all: true, kept })
    const counter = counterOn(process.stderr, call.is('json'))
    const all = waves.flat().length
    if (all > 0) makeFolder(to)
    const done: Done[] = []
    const unwritten: Unwritten[] = []
    try {
      for (const { root } of waves.flat()) {
        counter.show(() => `Archiving ${done.length + 1} of ${countOf(all, 'session')}…`)
        const one = await archiveOne(place, to, root.session, { by: person(call), kept }).catch((error: unknown) =>
          unwrittenOf(root.session, error),
        )
        if (one && 'why' in one) unwritten.push(one)
        else if (one) done.push(one)
      }
    } finally {
      counter.clear()
      await sweep(
        place.home,
        done.flatMap(({ removed }) => removed),
      )
    }
    const freed =
      'freeRooms' in place.store ? await (place.store as PostgresDatabase).freeRooms() : { dropped: [], left: [] }
    return reportArchive(call, { to, done, unwritten, kept, freed })
  })
}

type Freed = Awaited<ReturnType<PostgresDatabase['freeRooms']>>

/** A server has its own data folder. */
function inOwnPlace(act: (place: Place) => Promise<number>): Promise<number> {
  return inPlace((place) => {
    if (place.at !== null) return act(place)
    throw new Refusal(EXIT.usage, 'Sessions are archived and restored where their store is, and not through a server.')
  })
}

type Ways = { readonly by: string; readonly kept: Kept }

/** Null: it went on, or is gone, meanwhile. */
async function archiveOne({ store }: Place, to: string, root: string, { by, kept }: Ways): Promise<Done | null> {
  const { archiveOf, removeArchived } = await import('../../replay.ts')
  const made = await archiveOf(store, root).catch((error: unknown) => missing(error))
  if (made === null) return null
  const file = join(to, nameOf(made))
  await keep(file, `${safeJson(made)}\n`, made.checksum)
  let stays = false
  const removed = await removeWith(store, [root], () =>
    removeArchived(store, made, by).catch((error: unknown) => {
      stays = true
      if (!(error instanceof Fault) || error.code !== 'conflict') return refused(error, kept)
      // It grew, or was forked, since it was looked at.
      kept.running += 1
      return []
    }),
  )
  // It is in the store, and goes on there.
  if (stays) rmSync(file, { force: true })
  return stays ? null : { file, removed }
}

/** What is wrong with one session does not stop the others. Trouble with the disk or the store does. */
function unwrittenOf(session: string, error: unknown): Unwritten {
  const isItsOwn = error instanceof Fault && /^(invalid_input|session_damaged|store_damaged)$/.test(error.code)
  if (!isItsOwn) throw error
  return { session, why: oneLine(error.message, 400) }
}

function missing(error: unknown): null {
  if (error instanceof Fault && error.code === 'session_missing') return null
  throw error
}

/** An id may be used again: each that was archived under it has a file of its own. */
function nameOf({ session, checksum }: Archive): string {
  const plain = /^\w[\w.-]{0,99}$/.test(session) ? session : hash('sha256', session).slice(0, 32)
  return `${plain}.${checksum.slice(0, 16)}.json`
}

/** On the disk, under its name and whole: as it is read back from there. */
async function keep(file: string, text: string, checksum: string): Promise<void> {
  const { checkArchive } = await import('../../replay.ts')
  const part = `${file}.part`
  try {
    writeFileSync(part, text, { mode: 0o600, flush: true })
    const read = await checkArchive(JSON.parse(readFileSync(part, 'utf8')))
    if (read.checksum !== checksum) throw new Fault('io_error', `${file} is not what was written to it.`)
    renameSync(part, file)
    syncFolder(join(file, '..'))
  } catch (error) {
    rmSync(part, { force: true })
    if (error instanceof Fault) throw error
    throw new Refusal(EXIT.store, `${file} cannot be written (${codeOf(error)}). Nothing of that session was removed.`)
  }
}

/** So that the new name is there after a power loss. */
function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new Refusal(EXIT.usage, `${folder} cannot be made (${codeOf(error)}). Name another folder.`)
  }
}

type Told = {
  readonly to: string
  readonly done: readonly Done[]
  readonly unwritten: readonly Unwritten[]
  readonly kept: Kept
  readonly freed: Freed
}

function reportArchive(call: Call, { to, done, unwritten, kept, freed }: Told): number {
  const code = unwritten.length === 0 ? EXIT.ok : EXIT.failed
  const removed = done.flatMap((one) => one.removed)
  const events = removed.reduce((sum, each) => sum + each.events, 0)
  if (call.is('json')) {
    printJson({
      to,
      sessions: removed.map(({ session }) => session),
      files: done.map(({ file }) => file),
      events,
      kept,
      unwritten,
      freed,
    })
    return code
  }
  const what = `Archived ${countOf(removed.length, 'session')} with ${countOf(events, 'event')} in ${countOf(done.length, 'file')} of ${to}.`
  print(done.length === 0 ? 'There was no session to archive that is as old.' : clean(what))
  for (const { session, why } of unwritten)
    warn(clean(`Session ${session} stays in the store, as it cannot be archived: ${why}`))
  if (freed.dropped.length > 0) print(`Gave back the space of ${freed.dropped.join(', ')}.`)
  for (const { table, why } of freed.left)
    warn(
      why === 'busy'
        ? `The table ${table} is empty, and could not be dropped while others use the store. The next archive tries again.`
        : `The table ${table} is empty. Only its owner can drop it: run this as the owner of the store's tables.`,
    )
  if (keptText(kept) !== '') warn(keptText(kept).trim())
  return code
}

// ---- Back again ------------------------------------------------------------------------------------------------------

type Restored = { restored: string[]; there: string[]; refused: { file: string; why: string }[] }

export function restore(call: Call): Promise<number> {
  const [, from = ''] = call.words
  if (from === '') throw new Refusal(EXIT.usage, 'Usage: terret store restore DIR (or one FILE of it)')
  const files = filesIn(from)
  return inOwnPlace(async ({ store }) => {
    const so: Restored = { restored: [], there: [], refused: [] }
    const removedBy = await removersIn(store)
    // A fork comes after the session that it was forked from.
    for (let left = files; left.length > 0; ) {
      const later: string[] = []
      for (const file of left) if (!(await restoreOne(store, file, removedBy, so))) later.push(file)
      if (later.length === left.length) {
        for (const file of later) so.refused.push({ file, why: 'It was forked from a session that is not here.' })
        break
      }
      left = later
    }
    if (call.is('json')) printJson(so)
    else {
      for (const { file, why } of so.refused) warn(clean(`${file}: ${why}`))
      const known =
        so.there.length > 0 ? ` ${countOf(so.there.length, 'file')} had sessions that are there already.` : ''
      print(`Restored ${countOf(so.restored.length, 'session')}.${known}`)
    }
    return so.refused.length === 0 ? EXIT.ok : EXIT.failed
  })
}

function filesIn(from: string): readonly string[] {
  try {
    if (statSync(from).isFile()) return [from]
    const names = readdirSync(from).filter((name) => name.endsWith('.json'))
    return names.sort().map((name) => join(from, name))
  } catch (error) {
    throw new Refusal(
      EXIT.missing,
      `${from} cannot be read (${codeOf(error)}). Name a folder of \`${typed`store archive`}\`.`,
    )
  }
}

/** Of each session that was removed, who said so last. */
async function removersIn(store: Store): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const { session, by } of await store.removals(Number.MAX_SAFE_INTEGER))
    if (!found.has(session)) found.set(session, by)
  return found
}

/** False: not yet, as it was forked from one that is not there. */
async function restoreOne(
  store: Store,
  file: string,
  removedBy: ReadonlyMap<string, string>,
  so: Restored,
): Promise<boolean> {
  const { checkArchive, restoreArchive } = await import('../../replay.ts')
  try {
    const { session, sessions } = await checkArchive(read(file))
    if ((await store.card(session)) !== null) so.there.push(file)
    else {
      await restoreArchive(store, read(file), removedBy.get(session) ?? null)
      so.restored.push(...sessions.map((each) => each.session))
    }
    return true
  } catch (error) {
    if (error instanceof Fault && error.code === 'session_missing') return false
    if (!(error instanceof Fault || error instanceof Refusal) || isStoreTrouble(error)) throw error
    so.refused.push({ file, why: oneLine(endOf(error).text, 400) })
    return true
  }
}

/** It would be the same for every file. */
function isStoreTrouble(error: Error): boolean {
  return error instanceof Fault && /^(store_|disk_full|io_error)/.test(error.code)
}

function read(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Refusal(EXIT.usage, `It cannot be read (${error instanceof SyntaxError ? 'no JSON' : codeOf(error)}).`)
  }
}
