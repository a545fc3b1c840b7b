// A cron job as data: its definition, its state, and what a change, a due time and the result of a call make of it. Pure:
// the same state and time give the same answer in any process.
import type { Json, Limits } from '../kernel/content.ts'
import { readSchedule } from './cron-line.ts'
import { MINUTE_MS } from './zoned-time.ts'

/** `skip` drops times that were missed, `once` runs once for all of them, and `all` runs once for each, in order. */
export type MissedRule = 'skip' | 'once' | 'all'
/** What a time does while an earlier run works: nothing, wait for its end, or stop it. */
export type OverlapRule = 'skip' | 'queue' | 'replace'

/** A job: when it runs, which agent, what that is told, and what happens to times that were missed. */
export type CronJob = {
  /** Names the job: 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string
  /** Five fields: minute, hour, day of month, month, day of week. */
  readonly line?: string
  /** In place of a line: once, at this time in ms. */
  readonly at?: number
  /** Such as `Europe/Oslo`. Default `UTC`. */
  readonly zone: string
  /** The agent or workflow that works on each run. */
  readonly agent: string
  /** What the agent is told each time. */
  readonly prompt?: string
  /** In place of a prompt: the input of a workflow, as JSON. Such jobs may fire each minute. */
  readonly input?: Json
  /** What becomes of times at which no worker was there. */
  readonly missed: MissedRule
  /** What becomes of a time at which the run before still works. */
  readonly overlap: OverlapRule
  /** The limits of each run, in place of its agent's. */
  readonly limits?: Partial<Omit<Limits, 'hold'>>
}

/** A run that a job began, or a time at which it began none, with the reason. Times are those of the line, in ms. */
export type CronTick =
  | { readonly at: number; readonly session: string }
  | { readonly at: number; readonly skipped: string; readonly times?: number }

export type CronState = {
  /** Null once it is removed. */
  readonly job: CronJob | null
  readonly on: boolean
  /** All times up to this instant are handled. */
  readonly from: number
  /** The wakes that wait in its session, as far as they are known. */
  readonly wakes: readonly number[]
  /** Runs that may still work, and when they began. */
  readonly working: readonly { readonly session: string; readonly since: number }[]
  /** Times whose run has not begun yet, in order, and when the first of them is tried again. */
  readonly waiting: readonly WaitingTick[]
  readonly triedAgain: number
  /** The last ones, newest last. */
  readonly ticks: readonly CronTick[]
}
/** `queued`: it waits for earlier runs, whatever the job's rule is. */
type WaitingTick = { readonly at: number; readonly tries: number; readonly byHand?: true; readonly queued?: true }

export type CronChange =
  | { readonly action: 'set'; readonly job: CronJob; readonly on: boolean }
  | { readonly action: 'on' | 'off' | 'remove' | 'run' }

export type CronOutcome =
  /** `at`: the time of a run that was asked for. */
  | { readonly type: 'Done'; readonly at?: number }
  | { readonly type: 'Refused'; readonly message: string; readonly code?: 'session_missing' | 'too_many' }

/** A call that a reply asks for. */
export type CronCall =
  | { readonly tool: typeof CRON_WAKE; readonly args: WakeArgs }
  | { readonly tool: typeof CRON_RUN; readonly args: RunArgs }
export const CRON_WAKE = 'cron_wake'
export const CRON_RUN = 'cron_run'
export type WakeArgs = { readonly due: number }
export type RunArgs = Pick<CronJob, 'agent' | 'prompt' | 'input' | 'limits' | 'zone'> & {
  readonly at: number
  readonly byHand?: boolean
  readonly overlap: OverlapRule
  /** Sessions of earlier runs that may still work. */
  readonly working: readonly string[]
}

/** What a call of `cron_run` came to. `ended`: runs that were seen to have ended. */
export type RunOutcome = { readonly at: number; readonly ended: readonly string[] } & (
  | { readonly type: 'began'; readonly session: string }
  | { readonly type: 'skipped'; readonly reason: string }
  | { readonly type: 'waits' }
  | { readonly type: 'failed'; readonly reason: string }
)

export const EMPTY_JOB: CronState = {
  job: null,
  on: false,
  from: 0,
  wakes: [],
  working: [],
  waiting: [],
  triedAgain: 0,
  ticks: [],
}

const TICKS_KEPT = 20
/** How many missed times `all` makes up for, and how many may wait. Of more, the newest count. */
const WAITING_MAX = 100
const WAITING_TEXT = `${WAITING_MAX} runs of this job wait already.`
/** A time is missed when the worker comes later than this. */
const LATE_MS = 60_000
const TRIES_MAX = 5
const POLL_MS_MIN = 5_000
const POLL_MS_MAX = 5 * 60_000
/** A clock that was so far ahead was wrong: what it handled is not waited for. */
const AHEAD_MS_MAX = 24 * 60 * 60_000
export function nextTime({ line, at = 0, zone }: CronJob, after: number): number | null {
  if (line === undefined) return at > after ? at : null
  return readSchedule(line, zone).next(after)
}

export function applyCronChange(
  state: CronState,
  change: CronChange,
  now: number,
): { readonly state: CronState; readonly outcome: CronOutcome } {
  const done = (next: CronState) => ({ state: next, outcome: { type: 'Done' } as const })
  if (change.action === 'set') {
    const { job, on } = change
    const isSame = job.line === state.job?.line && job.zone === state.job?.zone && job.at === state.job?.at
    // Times that the old line missed are not those of the new one. A job that was off has missed nothing.
    const from =
      isSame && state.on && on ? state.from : job.line === undefined ? Math.min(now, (job.at ?? now) - 1) : now
    return done({ ...state, job, on, from })
  }
  if (state.job === null)
    return { state, outcome: { type: 'Refused', code: 'session_missing', message: 'There is no such job.' } }
  if (change.action === 'remove') return done({ ...state, job: null, on: false, waiting: [] })
  if (change.action === 'off') return done(dropWaiting({ ...state, on: false }, 'The job was switched off.'))
  if (change.action === 'on') return done(state.on ? state : { ...state, on: true, from: now })
  if (state.waiting.length >= WAITING_MAX)
    return { state, outcome: { type: 'Refused', code: 'too_many', message: WAITING_TEXT } }
  // In whole seconds, so that two requests of one moment are one run.
  const at = Math.floor(now / 1_000) * 1_000
  if (state.waiting.some((tick) => tick.at === at)) return { state, outcome: { type: 'Done', at } }
  return {
    state: { ...state, waiting: [...state.waiting, { at, tries: 0, byHand: true }] },
    outcome: { type: 'Done', at },
  }
}

function dropWaiting(state: CronState, reason: string): CronState {
  return {
    ...noteTicks(
      state,
      state.waiting.map(({ at }) => ({ at, skipped: reason })),
    ),
    waiting: [],
  }
}

function noteTicks(state: CronState, ticks: readonly CronTick[]): CronState {
  return { ...state, ticks: [...state.ticks, ...ticks].slice(-TICKS_KEPT) }
}

/** Adds the times that are due to those that wait, by the rule for missed ones. Each that is left out is noted. */
export function takeDueTimes(before: CronState, now: number): CronState {
  const { job, on } = before
  const from = before.from > now + AHEAD_MS_MAX ? now : before.from
  const state = { ...before, from, wakes: before.wakes.filter((due) => due > now) }
  if (job === null || !on || from >= now) return state
  const times = lastTimes(job, from, now)
  const current = times.filter((at) => now - at <= LATE_MS)
  const missed = times.filter((at) => now - at > LATE_MS)
  const room = WAITING_MAX - state.waiting.length
  const kept = keptTimes(job.missed, missed, current, room)
  const left = missed.filter((at) => !kept.includes(at))
  const noted = noteTicks(state, leftOut(left, MISSED_TEXTS[job.missed]))
  const added = kept.map((at) => ({ at, tries: 0, ...(job.missed === 'all' ? { queued: true as const } : {}) }))
  const late = current.slice(Math.max(0, room - kept.length))
  const full = noteTicks(noted, leftOut(late, WAITING_TEXT))
  // Later times wait behind missed ones, so that all come in order.
  const behind = added.some(({ queued }) => queued) || state.waiting.some(({ queued }) => queued)
  const due = current
    .filter((at) => !late.includes(at))
    .map((at) => ({ at, tries: 0, ...(behind ? { queued: true as const } : {}) }))
  return { ...full, from: now, waiting: [...state.waiting, ...added, ...due] }
}

function keptTimes(
  rule: MissedRule,
  missed: readonly number[],
  current: readonly number[],
  room: number,
): readonly number[] {
  if (rule === 'all') return missed.slice(Math.max(0, missed.length - Math.max(0, room - current.length)))
  return rule === 'once' && current.length === 0 && room > 0 ? missed.slice(-1) : []
}

const MISSED_TEXTS: Readonly<Record<MissedRule, string>> = {
  skip: 'No worker was there at the time.',
  once: 'No worker was there at the time: one run makes up for all.',
  all: `No worker was there at the time, and no more than ${WAITING_MAX} runs are made up for.`,
}

function leftOut(times: readonly number[], skipped: string): readonly CronTick[] {
  const [at] = times
  if (at === undefined) return []
  return [{ at, skipped, ...(times.length > 1 ? { times: times.length } : {}) }]
}

const HOUR_MS = 60 * MINUTE_MS

/** The last times up to now: a few more than may wait, however long nobody looked. */
function lastTimes(job: CronJob, from: number, now: number): readonly number[] {
  if (job.line === undefined) return [job.at ?? 0].filter((at) => at > from && at <= now)
  const { next } = readSchedule(job.line, job.zone)
  for (let span = 2 * HOUR_MS; ; span *= 4) {
    const times: number[] = []
    const begin = Math.max(from, now - span)
    for (let at = next(begin); at !== null && at <= now; at = next(at)) times.push(at)
    if (begin === from || times.length > WAITING_MAX) return times
  }
}

/** The calls that the state asks for now. None: nothing is left to do before the next wake. */
export function planCronCalls(state: CronState, now: number): readonly CronCall[] {
  const { job, on, waiting, triedAgain, working } = state
  if (job === null) return []
  const head = triedAgain <= now ? waiting[0] : undefined
  const tick = waiting.find(({ queued, tries }) => ruleOf(job, queued) !== 'queue' && tries === 0) ?? head
  const next = on ? nextTime(job, Math.max(state.from, now)) : null
  const dues = [next, tick === undefined && waiting.length > 0 ? triedAgain : null].filter((due) => due !== null)
  const due = Math.min(...dues)
  const calls: CronCall[] = []
  // An earlier wake looks too, and then asks for the next one.
  if (dues.length > 0 && !state.wakes.some((wake) => wake <= due)) calls.push({ tool: CRON_WAKE, args: { due } })
  if (tick === undefined) return calls
  const { agent, zone, prompt, input, limits } = job
  const { at, byHand = false, queued } = tick
  const overlap = ruleOf(job, queued)
  const said = { ...(prompt === undefined ? {} : { prompt }), ...(input === undefined ? {} : { input }) }
  const args = { at, byHand, agent, zone, overlap, working: working.map(({ session }) => session), ...said }
  return [...calls, { tool: CRON_RUN, args: limits === undefined ? args : { ...args, limits } }]
}

function ruleOf({ overlap }: CronJob, queued: true | undefined): OverlapRule {
  return queued ? 'queue' : overlap
}

/** A job of one time is over when its run began, or was given up. Its session and its run stay. */
export function applyRunOutcome(before: CronState, outcome: RunOutcome, now: number): CronState {
  const state = settleTick(before, outcome, now)
  const isOver = state.job?.at === outcome.at && state.waiting.every(({ at }) => at !== outcome.at)
  return isOver ? { ...state, job: null, on: false, waiting: [] } : state
}

function settleTick(before: CronState, outcome: RunOutcome, now: number): CronState {
  const { at, ended } = outcome
  const state = { ...before, working: before.working.filter(({ session }) => !ended.includes(session)) }
  const own = state.waiting.find((tick) => tick.at === at)
  const waiting = state.waiting.filter((tick) => tick !== own)
  if (outcome.type === 'waits') return { ...state, triedAgain: now + pollMs(now - (state.working[0]?.since ?? now)) }
  if (outcome.type === 'failed') {
    const tries = (own?.tries ?? 0) + 1
    const triedAgain = now + pollMs(POLL_MS_MIN * 4 ** tries)
    if (own && tries < TRIES_MAX) return { ...state, triedAgain, waiting: [{ ...own, tries }, ...waiting] }
    return noteTicks({ ...state, waiting }, [{ at, skipped: `It could not be begun: ${outcome.reason}` }])
  }
  if (outcome.type === 'skipped') return noteTicks({ ...state, waiting }, [{ at, skipped: outcome.reason }])
  const { session } = outcome
  if (state.working.some((run) => run.session === session)) return { ...state, waiting }
  return noteTicks({ ...state, waiting, working: [...state.working, { session, since: now }] }, [{ at, session }])
}

/** Half as long as the earlier run has worked, so that a long run is looked at rarely. */
function pollMs(workedMs: number): number {
  return Math.min(Math.max(workedMs / 2, POLL_MS_MIN), POLL_MS_MAX)
}
