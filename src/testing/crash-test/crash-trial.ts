// A run under test in this process: on a store in memory, in one life, or in two with a crash between them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault, memory } from '../../index.ts'
import type { Json } from '../../kernel/content.ts'
import type { CrashLife, TrialRecord } from './agent-of-life.ts'
import { liveOnce, readLogs } from './crash-life.ts'
import { checkCrashWorld, type CrashTestOptions, type CrashWorld } from './crash-options.ts'
import { JumpingClock } from './jumping-clock.ts'
import type { CrashNote, CrashTrial } from './notes.ts'
import { type CrashPoint, LifePoints, NO_CRASH } from './points.ts'
import { findDifference, LASTING, lookAtWorld } from './same-world.ts'
import { thrownText } from '../../view/shown-text.ts'

/** How long handlers of a dead life may go on. A killed process would have no such time, but here they cannot be stopped. */
const REST_MS = 100
export const TIMEOUT_MS = 30_000

/** `names`: the points that the first life passed, in order. */
export type CrashTrialReport = { readonly trial: CrashTrial; readonly names: readonly string[] }
/** Runs the agent, with a crash at the point if one is given. */
export type RunTrial = (point: CrashPoint | null) => Promise<CrashTrialReport>

export function trialsInMemory(test: CrashTestOptions): RunTrial {
  let isFirst = true
  return async (point) => {
    let made: string | null = null
    const place = {
      get folder(): string {
        made ??= mkdtempSync(join(tmpdir(), 'terret-crash-'))
        return made
      },
    }
    const world = checkCrashWorld(await withinLimit(test, 'world()', test.world(place)))
    try {
      const clock = new JumpingClock({ jumps: test.time === 'jumps', isFirst })
      isFirst = false
      return await runTrial({ test, world, clock, point })
    } finally {
      await world.close?.()
      if (made !== null) rmSync(made, { recursive: true, force: true })
    }
  }
}

type TrialInput = {
  readonly test: CrashTestOptions
  readonly world: CrashWorld
  readonly clock: JumpingClock
  readonly point: CrashPoint | null
}

async function runTrial({ test, world, clock, point }: TrialInput): Promise<CrashTrialReport> {
  const store = memory({ clock })
  const notes: CrashNote[] = []
  const trial = trialRecord(world, (note) => notes.push(note))
  const live = async (nth: 1 | 2, at: string | null): Promise<{ trouble: string | null; points: LifePoints }> => {
    let died = (): void => {}
    const death = new Promise<null>((resolve) => {
      died = () => resolve(null)
    })
    const points = new LifePoints(at, died)
    const life: CrashLife = { points, clock, trial, sources: new Set() }
    const trouble = await withinTime(Promise.race([liveOnce({ test, store, life, nth }), death]), test, point)
    if (points.dead) await Promise.allSettled([...life.sources].map((source) => source.close()))
    points.dead = true
    clock.clear()
    return { trouble, points }
  }
  const first = await live(1, point?.name ?? null)
  const reached = point === null || first.points.names.at(-1) === point.name
  if (point !== null && reached) await awaitHandlers(trial)
  const { trouble } = point !== null && reached ? await live(2, null) : first
  const logs = await readLogs(store)
  const held = await worldAtEnd(test, world, point === null)
  return {
    trial: { point: point ?? NO_CRASH, reached, notes, trouble, logs, world: held },
    names: first.points.names,
  }
}

export function trialRecord(world: CrashWorld, note: TrialRecord['note']): TrialRecord {
  return { world, note, begun: new Set(), ended: new Set(), handlers: { running: 0, began: 0 } }
}

/** Why the life did not settle, or null. Without a crash an error is the caller's to see. */
async function withinTime(
  life: Promise<string | null>,
  { timeoutMs = TIMEOUT_MS }: CrashTestOptions,
  point: CrashPoint | null,
): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`it has not settled after ${timeoutMs / 1_000} s`), timeoutMs)
  })
  try {
    return await Promise.race([life, late])
  } catch (error) {
    if (point === null) throw error
    return `it ended with an error: ${thrownText(error)}`
  } finally {
    clearTimeout(timer)
  }
}

/** What the test's own code gives, which has to come in the time that a run may take. */
async function withinLimit<T>(
  { timeoutMs = TIMEOUT_MS }: CrashTestOptions,
  what: string,
  given: T | Promise<T>,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const text = `${what} of crashTest has not returned after ${timeoutMs / 1_000} s. Find out what it waits for.`
    timer = setTimeout(() => reject(new Fault('invalid_config', text)), timeoutMs)
  })
  try {
    return await Promise.race([given, late])
  } finally {
    clearTimeout(timer)
  }
}

async function awaitHandlers({ handlers }: TrialRecord): Promise<void> {
  const until = performance.now() + REST_MS
  while (handlers.running > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 1))
}

/** What the world holds at the end. After a crash a world that cannot be looked at is another world. */
export async function worldAtEnd(test: CrashTestOptions, world: CrashWorld, isClean: boolean): Promise<Json> {
  if (isClean) return withinLimit(test, 'look()', lookTwice(world))
  try {
    return await withinLimit(test, 'look()', lookAtWorld(world))
  } catch (error) {
    return { 'look() failed': thrownText(error) }
  }
}

async function lookTwice(world: CrashWorld): Promise<Json> {
  const held = await lookAtWorld(world)
  const difference = findDifference(held, await lookAtWorld(world))
  if (difference === null) return held
  throw new Fault('invalid_config', `world.look() differs by itself: ${difference}. ${LASTING}`)
}
