// Whether a store that lost power has what it promised, and can go on. It compares what is there with the evidence of that moment, drives
// the work on to its end, and compares again. It knows nothing of cuts and disks: those are cut.ts and disk.ts.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Event } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { checkArchive, checkStore } from '../../src/replay.ts'
import type { StoreReader } from '../../src/stores/move/move-rows.ts'
import { Appender, type OracleLine, readLines } from '../crash/evidence.ts'
import { checkJournal } from '../crash/journal-check.ts'
import { Strikes } from '../crash/strike.ts'
import { verify } from '../crash/verify.ts'
import { driveOn } from './drive-on.ts'
import { type EvidenceAt, evidenceWithout } from './evidence-at.ts'

/** What one cut showed. Without `wrong` all is well. */
export type Judgement = {
  /** Whether there is a database at all. */
  readonly isThere: boolean
  /** The code with which the store refused to be opened. */
  readonly refused: string | null
  readonly promised: number
  readonly lost: number
  readonly onceTwice: number
  /** Sessions that were open, and went on. */
  readonly open: number
  /** Calls of which nobody knows whether they happened. */
  readonly unknown: number
  readonly backups: number
  readonly archives: number
  readonly wrong: readonly string[]
}

export type Opening = {
  readonly open: () => Promise<{ readonly store: CompleteStore; readonly reader: () => Promise<StoreReader> }>
  /** Opens a backup. Only a store in a file has some. */
  readonly openBackup: (file: string) => CompleteStore
  readonly beforeBackup: (file: string) => EvidenceAt
  /** Folders of the rebuilt disk. */
  readonly backups: string
  readonly archives: string
  /** A file for the effects, which is not there yet. */
  readonly oracle: string
  /** Sees whether the database itself is sound; sentences. */
  readonly checkDatabase: () => Promise<readonly string[]>
}

/** What was promised and is lost. Nothing is driven on: for a disk of which nothing is expected. */
export async function countLost(store: CompleteStore, evidence: EvidenceAt): Promise<Losses> {
  const gone = await goneOf(store, evidence)
  const left = evidenceWithout(evidence, gone)
  const strikes = new Strikes()
  for (const marks of left.marks.values()) await strikes.compare(store, marks)
  const { lost, wrong } = checkJournal(left.journal, await logsOf(store))
  return { lost: strikes.lost + lost, wrong: [...strikes.wrong, ...wrong], left, reads: strikes.reads }
}

type Losses = {
  readonly lost: number
  readonly wrong: readonly string[]
  /** The evidence without sessions that were removed. */
  readonly left: EvidenceAt
  /** What was read of each log. */
  readonly reads: Strikes['reads']
}

export async function judge(opening: Opening, evidence: EvidenceAt): Promise<Judgement> {
  const { store, reader } = await opening.open()
  const wrong: string[] = []
  try {
    wrong.push(...(await opening.checkDatabase()))
    const losses = await countLost(store, evidence)
    wrong.push(...losses.wrong, ...(await checkRemovals(store, opening.archives, evidence)))
    const open = (await store.list({ limit: 10_000 })).filter(({ due }) => due !== null).length
    const after = await goOn(store, opening, losses)
    wrong.push(...after.wrong)
    wrong.push(...(await checkRows(store, await reader())))
    const backups = await checkBackups(opening, evidence)
    wrong.push(...backups.wrong)
    return {
      isThere: true,
      refused: null,
      promised: 0,
      lost: losses.lost + after.lost,
      onceTwice: after.onceTwice,
      open,
      unknown: after.unknown,
      backups: backups.whole,
      archives: existsSync(opening.archives) ? readdirSync(opening.archives).length : 0,
      wrong: [...new Set(wrong)],
    }
  } finally {
    await store.close()
  }
}

/** As `terret store check` does it. */
async function checkRows(store: CompleteStore, rows: StoreReader): Promise<readonly string[]> {
  try {
    const { problems } = await checkStore(store, rows)
    return problems.map(({ what, text }) => `${what}: ${text}`)
  } finally {
    await rows.close()
  }
}

type After = Pick<Judgement, 'lost' | 'onceTwice' | 'unknown' | 'wrong'>

async function goOn(store: CompleteStore, { oracle }: Opening, { left, reads }: Losses): Promise<After> {
  const effects = new Appender<OracleLine>(oracle)
  for (const line of left.oracle) effects.add(line)
  const { journal, errors, restless } = await driveOn(store, oracle)
  const verdict = await verify(store, {
    journal: [...left.journal, ...journal],
    oracle: readLines<OracleLine>(oracle),
    errors: [...left.errors, ...errors],
    reads,
  })
  const { journal: sent, effects: ran } = verdict
  const wrong = [...restless.map((text) => `not settled: ${text}`), ...verdict.violations]
  return { lost: sent.lost, onceTwice: ran.onceTwice, unknown: ran.unknown, wrong }
}

/** Sessions whose removal was asked for, and that are not there. */
async function goneOf(store: CompleteStore, { kept }: EvidenceAt): Promise<ReadonlySet<string>> {
  const gone = new Set<string>()
  for (const line of kept)
    if (line.type === 'remove' && (await store.card(line.session)) === null) gone.add(line.session)
  return gone
}

/** Who was removed does not come back, and who is in an archive is there or in the store. */
async function checkRemovals(store: CompleteStore, archives: string, { kept }: EvidenceAt): Promise<readonly string[]> {
  const wrong: string[] = []
  const removed = new Set(kept.flatMap((line) => (line.type === 'removed' ? [line.session] : [])))
  for (const line of kept) {
    if (line.type !== 'remove') continue
    const isThere = (await store.card(line.session)) !== null
    if (isThere && removed.has(line.session)) wrong.push(`${line.session} was removed, and is there again`)
    if (line.archive === null || isThere) continue
    const why = await archiveFault(join(archives, line.archive), line.session)
    if (why !== null) wrong.push(`lost: ${line.session} left the store for its archive, which is not whole: ${why}`)
  }
  return wrong
}

async function archiveFault(file: string, session: string): Promise<string | null> {
  try {
    const { session: found } = await checkArchive(JSON.parse(readFileSync(file, 'utf8')))
    return found === session ? null : `it is of ${found}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** A backup that was acknowledged is there. The newest has all that was acknowledged before it began, if it has its name. */
async function checkBackups(opening: Opening, evidence: EvidenceAt): Promise<{ wrong: string[]; whole: number }> {
  const named = evidence.kept.flatMap((line) => (line.type === 'backup' ? [line.file] : []))
  const done = evidence.kept.flatMap((line) => (line.type === 'backed up' ? [line.file] : []))
  const there = existsSync(opening.backups) ? readdirSync(opening.backups) : []
  const missing = done.filter((file) => !there.includes(file))
  const wrong = missing.map((file) => `lost: the backup ${file} was acknowledged, and is not there`)
  const newest = named.findLast((file) => there.includes(file))
  if (newest === undefined) return { wrong, whole: 0 }
  const copy = opening.openBackup(join(opening.backups, newest))
  try {
    await copy.open()
    const before = opening.beforeBackup(newest)
    // What was sent meanwhile may be in it too.
    const journal = [...evidence.journal.filter(({ type }) => type === 'try'), ...before.journal]
    const found = await countLost(copy, { ...before, journal, kept: evidence.kept })
    return { wrong: [...wrong, ...found.wrong.map((text) => `the backup ${newest}: ${text}`)], whole: 1 }
  } catch (error) {
    return { wrong: [...wrong, `the backup ${newest} is not whole: ${String(error)}`], whole: 0 }
  } finally {
    await copy.close()
  }
}

async function logsOf(store: CompleteStore): Promise<ReadonlyMap<string, readonly Event[]>> {
  const logs = new Map<string, readonly Event[]>()
  for (const { session } of await store.list({ limit: 10_000 }))
    logs.set(session, (await store.read(session, 0)).events)
  return logs
}
