// `terret store archive` moves old sessions with nothing left to do to files. Each file is checked on disk before the
// session leaves the store. `terret store restore` brings them back as they were. Both can be stopped anywhere and run
// again.
import { countNoun } from '../../view/shown-text.ts'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Archive } from '../../replay.ts'
import { Fault, type Removal, type CompleteStore } from '../../kernel/index.ts'
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import { makeFolder } from '../../stores/plan/make-folder.ts'
import { syncPath } from '../../stores/plan/sync-path.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { exitForError, EXIT, CliError } from '../exit.ts'
import { openCounter } from '../present/counter.ts'
import { print, printJson, warn, terretCommand } from '../present/print.ts'
import { removeAndReport, sweepFiles } from '../state/leftovers.ts'
import { withStore, type CommandContext } from '../state/command-context.ts'
import { fileErrorCode } from '../state/plain-file.ts'
import { type KeptCounts, keptCountsText, emptyKeptCounts, findOldFamilies, countRefusal } from './prune-command.ts'

/** A session that stays in the store, because its file could not be restored. */
type UnarchivedSession = { readonly session: string; readonly why: string }
type ArchivedFile = { readonly file: string; readonly removed: readonly Removal[] }

export function archiveSessions(call: CommandArgs): Promise<number> {
  const [days, to] = [call.count('older', 0), call.text('to')]
  if (days === undefined || to === undefined)
    throw new CliError(EXIT.usage, 'Usage: terret store archive --older DAYS --to DIR')
  return withLocalStore(async (place) => {
    const kept = emptyKeptCounts()
    const waves = await findOldFamilies(place, { days, all: true, kept })
    const counter = openCounter(process.stderr, call.is('json'))
    const all = waves.flat().length
    if (all > 0) makeArchiveFolder(to)
    const done: ArchivedFile[] = []
    const unwritten: UnarchivedSession[] = []
    try {
      for (const { root } of waves.flat()) {
        counter.show(() => `Archiving ${done.length + 1} of ${countNoun(all, 'session')}…`)
        const one = await archiveOne(place, to, root.session, { by: actorName(call), kept }).catch((error: unknown) =>
          unarchivedSession(root.session, error),
        )
        if (one && 'why' in one) unwritten.push(one)
        else if (one) done.push(one)
      }
    } finally {
      counter.clear()
      await sweepFiles(
        place.home,
        done.flatMap(({ removed }) => removed),
      )
    }
    const freed =
      'freeRooms' in place.store ? await (place.store as PostgresDatabase).freeRooms() : { dropped: [], left: [] }
    return reportArchive(call, { to, done, unwritten, kept, freed })
  })
}

type FreedSpace = Awaited<ReturnType<PostgresDatabase['freeRooms']>>

/** Refuses a remote server, which has its own data folder. */
function withLocalStore(act: (place: CommandContext) => Promise<number>): Promise<number> {
  return withStore((place) => {
    if (place.at !== null) return act(place)
    throw new CliError(EXIT.usage, 'Sessions are archived and restored where their store is, and not through a server.')
  })
}

type ArchiveSettings = { readonly by: string; readonly kept: KeptCounts }

/** Null: the session went on or was removed in the meantime. */
async function archiveOne(
  { store }: CommandContext,
  to: string,
  root: string,
  { by, kept }: ArchiveSettings,
): Promise<ArchivedFile | null> {
  const { archiveOf, removeArchived } = await import('../../replay.ts')
  const made = await archiveOf(store, root).catch((error: unknown) => nullIfMissing(error))
  if (made === null) return null
  const file = join(to, archiveName(made))
  await writeArchive(file, made)
  let stays = false
  const removed = await removeAndReport(store, [root], () =>
    removeArchived(store, made, by).catch((error: unknown) => {
      stays = true
      if (!(error instanceof Fault) || error.code !== 'conflict') return countRefusal(error, kept)
      // It grew, or was forked, after it was read.
      kept.running += 1
      return []
    }),
  )
  // The session stays in the store, so its file is not needed.
  if (stays) rmSync(file, { force: true })
  return stays ? null : { file, removed }
}

/** A problem of one session does not stop the others. A problem of the disk or the store does. */
function unarchivedSession(session: string, error: unknown): UnarchivedSession {
  const isItsOwn = error instanceof Fault && /^(invalid_input|session_damaged|store_damaged)$/.test(error.code)
  if (!isItsOwn) throw error
  return { session, why: oneLine(error.message, 400) }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Fault && error.code === 'session_missing') return null
  throw error
}

/** An id may be used again, so each archived session with this id has its own file. */
export function archiveName({ session, digest }: Archive): string {
  const plain = /^\w[\w.-]{0,99}$/.test(session) ? session : hash('sha256', session).slice(0, 32)
  return `${plain}.${digest.slice(0, 16)}.json`
}

/** Writes the file and gives it its name only after reading it back unchanged. */
export async function writeArchive(file: string, { records, digest }: Archive): Promise<void> {
  const { checkArchive, portableText } = await import('../../replay.ts')
  const part = `${file}.part`
  try {
    writeFileSync(part, portableText(records), { mode: 0o600, flush: true })
    const read = await checkArchive(JSON.parse(readFileSync(part, 'utf8')))
    if (read.digest !== digest) throw new Fault('io_error', `${file} is not what was written to it.`)
    renameSync(part, file)
    syncPath(join(file, '..'))
  } catch (error) {
    rmSync(part, { force: true })
    if (error instanceof Fault) throw error
    throw new CliError(
      EXIT.store,
      `${file} cannot be written (${fileErrorCode(error)}). Nothing of that session was removed.`,
    )
  }
}

export function makeArchiveFolder(folder: string): void {
  try {
    makeFolder(folder)
  } catch (error) {
    throw new CliError(EXIT.usage, `${folder} cannot be made (${fileErrorCode(error)}). Name another folder.`)
  }
}

type ArchiveReport = {
  readonly to: string
  readonly done: readonly ArchivedFile[]
  readonly unwritten: readonly UnarchivedSession[]
  readonly kept: KeptCounts
  readonly freed: FreedSpace
}

function reportArchive(call: CommandArgs, { to, done, unwritten, kept, freed }: ArchiveReport): number {
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
  const what = `Archived ${countNoun(removed.length, 'session')} with ${countNoun(events, 'event')} in ${countNoun(done.length, 'file')} of ${to}.`
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
  if (keptCountsText(kept) !== '') warn(keptCountsText(kept).trim())
  return code
}

// ---- Restore
// ---------------------------------------------------------------------------------------------------------

type RestoreReport = { restored: string[]; there: string[]; refused: { file: string; why: string }[] }

export function restoreSessions(call: CommandArgs): Promise<number> {
  const [, from = ''] = call.words
  if (from === '') throw new CliError(EXIT.usage, 'Usage: terret store restore DIR (or one FILE of it)')
  const files = archiveFilesIn(from)
  return withLocalStore(async ({ store }) => {
    const so: RestoreReport = { restored: [], there: [], refused: [] }
    const removedBy = await findRemovers(store)
    // A fork is restored after the session that it was forked from.
    for (let left = files; left.length > 0; ) {
      const later: string[] = []
      for (const file of left) if (!(await restoreFile(store, file, removedBy, so))) later.push(file)
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
        so.there.length > 0 ? ` ${countNoun(so.there.length, 'file')} had sessions that are there already.` : ''
      print(`Restored ${countNoun(so.restored.length, 'session')}.${known}`)
    }
    return so.refused.length === 0 ? EXIT.ok : EXIT.failed
  })
}

function archiveFilesIn(from: string): readonly string[] {
  try {
    if (statSync(from).isFile()) return [from]
    const names = readdirSync(from).filter((name) => name.endsWith('.json'))
    return names.sort().map((name) => join(from, name))
  } catch (error) {
    throw new CliError(
      EXIT.missing,
      `${from} cannot be read (${fileErrorCode(error)}). Name a folder of \`${terretCommand`store archive`}\`.`,
    )
  }
}

/** For each removed session, the person who removed it last. */
async function findRemovers(store: CompleteStore): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const { session, by } of await store.removals(Number.MAX_SAFE_INTEGER))
    if (!found.has(session)) found.set(session, by)
  return found
}

/** False: the session was forked from one that is not in the store yet. */
async function restoreFile(
  store: CompleteStore,
  file: string,
  removedBy: ReadonlyMap<string, string>,
  so: RestoreReport,
): Promise<boolean> {
  const { checkArchive, restoreArchive } = await import('../../replay.ts')
  try {
    const archive = await checkArchive(readArchive(file))
    const { session, tree } = archive
    if ((await store.card(session)) !== null) so.there.push(file)
    else {
      await restoreArchive(store, archive, removedBy.get(session) ?? null)
      so.restored.push(...tree.logs.map((log) => log.session))
    }
    return true
  } catch (error) {
    if (error instanceof Fault && error.code === 'session_missing') return false
    if (!(error instanceof Fault || error instanceof CliError) || isStoreTrouble(error)) throw error
    so.refused.push({ file, why: oneLine(exitForError(error).text, 400) })
    return true
  }
}

/** True for an error that every other file would meet too. */
function isStoreTrouble(error: Error): boolean {
  return error instanceof Fault && /^(store_|disk_full|io_error)/.test(error.code)
}

function readArchive(file: string): unknown {
  let text = ''
  try {
    text = readFileSync(file, 'utf8')
    return JSON.parse(text)
  } catch (error) {
    const isCut = text.startsWith('[') && !text.trimEnd().endsWith(']')
    const why = isCut ? 'it was cut off' : 'no JSON'
    throw new CliError(EXIT.usage, `It cannot be read (${error instanceof SyntaxError ? why : fileErrorCode(error)}).`)
  }
}
