// One cut of a recording: where the power is lost, what the disk then holds, and what the store on it shows. The number of the cut and
// the seed give the same cut of the same log again.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../src/kernel/failure.ts'
import { Chance } from '../crash/random.ts'
import type { Call, CallLog } from './call-log.ts'
import { Disk, type Hears, LOSSES, type Loss, type Remains, type Tree } from './disk.ts'
import { countPromised, Evidence, type EvidenceAt, isEvidence } from './evidence-at.ts'
import { countLost, judge, type Judgement, type Opening } from './judge.ts'
import { DISK } from './record-sqlite.ts'

/** Where power is lost: after so many calls of the log. */
export type Cut = { readonly number: number; readonly after: number; readonly loss: Loss; readonly chance: Chance }
export type Shown = Judgement & { readonly cut: Cut; readonly lostChanges: number; readonly lostNames: number }

/** How a rebuilt disk is opened as a store. `opening` is called once the tree stands in the folder. */
export type Ground = {
  readonly opening: (folder: string) => Omit<Opening, 'beforeBackup'>
  /** What is never kept. */
  readonly leavesOut: (path: string) => boolean
  /** Whether there is a database at all. */
  readonly isThere: (tree: Tree) => boolean
  /** After each cut. */
  readonly end: () => Promise<void>
}

/** All calls of one log, and the places at which a cut shows most. */
export class Recorded {
  readonly log: CallLog
  readonly evidence: Evidence
  readonly #first: number
  readonly #near: readonly number[]
  readonly #names: readonly number[]

  constructor(log: CallLog) {
    this.log = log
    this.evidence = new Evidence(log.calls)
    this.#first = log.calls.findIndex((call) => this.#isRecorded(call))
    this.#near = this.#placesOf((kind) => kind === 'sync begin' || kind === 'sync end')
    this.#names = this.#placesOf((kind) => /^(?:name|rename|remove|folder|folder sync|size)$/.test(kind))
  }

  /** Half of the cuts fall near a sync, a quarter near a change of names, the others anywhere. */
  cut(number: number, seed: number): Cut {
    const chance = new Chance(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b))
    const { length } = this.log.calls
    const places = chance.weighted([
      [this.#near, 2],
      [this.#names, 1],
      [null, 1],
    ] as const)
    const near = places === null ? chance.integer(this.#first, length) : chance.pick(places) + chance.integer(-1, 3)
    const after = Math.min(length, Math.max(this.#first, near))
    return { number, after, loss: LOSSES[number % LOSSES.length] as Loss, chance }
  }

  /** The disk as it is after so many calls. What was there before anything was recorded is on it, whatever it hears. */
  disk(after: number, hears: Hears = 'syncs'): Disk {
    // Postgres does not sync the folders of its tables, and relies on the file system for it.
    const names = this.log.recorded.store === 'postgres' ? 'folder or file' : 'folder'
    const disk = new Disk((call) => hears === 'syncs' || !this.#isRecorded(call), names)
    for (const call of this.log.calls.slice(0, after)) if (!isEvidence(call.path)) disk.take(call)
    return disk
  }

  #isRecorded({ process }: Call): boolean {
    return process !== this.log.recorded.process
  }

  #placesOf(wanted: (kind: Call['kind']) => boolean): readonly number[] {
    return this.log.calls.flatMap((call, n) =>
      this.#isRecorded(call) && !isEvidence(call.path) && wanted(call.kind) ? [n] : [],
    )
  }
}

export type Place = { readonly ground: Ground; readonly folder: string }

/** The store as it is after this cut: compared, driven on and compared again. */
export async function tryCut(recorded: Recorded, cut: Cut, { ground, folder }: Place): Promise<Shown> {
  const evidence = recorded.evidence.at(cut.after)
  const remains = recorded.disk(cut.after).remains(cut.loss, cut.chance, ground.leavesOut)
  const judgement = await opened({ ground, folder }, remains, evidence, (opening) =>
    judge({ ...opening, beforeBackup: (file) => recorded.evidence.beforeBackup(file) }, evidence),
  )
  return { ...judgement, cut, lostChanges: remains.lostChanges, lostNames: remains.lostNames }
}

/** The same on a disk that ignores every sync: how much of what was promised is gone. */
export async function tryDeafCut(recorded: Recorded, cut: Cut, { ground, folder }: Place): Promise<Judgement> {
  const evidence = recorded.evidence.at(cut.after)
  const remains = recorded.disk(cut.after, 'nothing').remains(cut.loss, cut.chance, ground.leavesOut)
  return opened({ ground, folder }, remains, evidence, async (opening) => {
    const { store } = await opening.open()
    try {
      const { lost, wrong } = await countLost(store, evidence)
      return { ...NOTHING, lost, wrong }
    } finally {
      await store.close()
    }
  })
}

const NOTHING: Judgement = {
  isThere: true,
  refused: null,
  promised: 0,
  lost: 0,
  onceTwice: 0,
  open: 0,
  unknown: 0,
  backups: 0,
  archives: 0,
  wrong: [],
}

/** Writes the tree into the folder and opens it. A refusal with a code is an answer, and one that takes what was promised is wrong. */
async function opened(
  { ground, folder }: Place,
  { tree }: Remains,
  evidence: EvidenceAt,
  act: (opening: Omit<Opening, 'beforeBackup'>) => Promise<Judgement>,
): Promise<Judgement> {
  const promised = countPromised(evidence)
  const gone = (why: string) => (promised === 0 ? [] : [`lost: ${promised} acknowledged events: ${why}`])
  if (!ground.isThere(tree))
    return { ...NOTHING, isThere: false, promised, lost: promised, wrong: gone('there is no database') }
  rmSync(folder, { recursive: true, force: true })
  writeTree(folder, tree)
  try {
    return { ...(await act(ground.opening(folder))), promised }
  } catch (error) {
    // Any other error is a violation, also where nothing was promised.
    if (!(error instanceof Fault)) return { ...NOTHING, promised, wrong: [`it ends with an error: ${String(error)}`] }
    const why = `refused with ${error.code}: ${error.message}`
    return { ...NOTHING, promised, refused: error.code, lost: promised, wrong: gone(why) }
  } finally {
    await ground.end()
  }
}

export function writeTree(folder: string, tree: Tree): void {
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  for (const [path, bytes] of [...tree].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (bytes === null) mkdirSync(join(folder, path), { mode: 0o700 })
    else writeFileSync(join(folder, path), bytes, { mode: 0o600 })
  }
}

/** Whether all calls of the log make what the recorder left: a call that was not seen would be believed lost. Sentences. */
export function compareEnd(recorded: Recorded, there: Tree, leavesOut: (path: string) => boolean): readonly string[] {
  const { tree } = recorded.disk(recorded.log.calls.length).remains('all', new Chance(0), leavesOut)
  const wrong: string[] = []
  for (const path of new Set([...tree.keys(), ...there.keys()])) {
    const [made, found] = [tree.get(path), there.get(path)]
    if (made === undefined) wrong.push(`${path} is there, and no call of the log made it`)
    else if (found === undefined) wrong.push(`${path} is not there, and the log says so`)
    else if (made === null ? found !== null : found === null || !made.equals(found))
      wrong.push(`${path} is not what the calls of the log make of it`)
  }
  return wrong.filter((text) => text.includes(DISK))
}
