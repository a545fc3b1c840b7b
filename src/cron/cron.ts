// The verbs of cron jobs for hosts, on the verbs of sessions: of a harness, or of a client of a server. Each change is a
// message to the job's session, and its outcome is in the reply.
import { Fault } from '../kernel/failure.ts'
import type { Outcome } from '../kernel/content.ts'
import { nonEmptyCheck, optionsChecker, countCheck } from '../options.ts'
import { systemRandom } from '../runtime/state/machine.ts'
import type { ListedCard } from '../sessions/meter.ts'
import type { OriginOptions } from '../sessions/origin.ts'
import type { Sessions } from '../sessions/verbs.ts'
import { textOf } from '../view/shown-text.ts'
import { type CronChange, type CronJob, type CronState, type CronTick, nextTime } from './cron-job.ts'
import { CRON, cronReplyIn, type CronReply } from './cron-planner.ts'
import { readSchedule } from './cron-line.ts'
import { checkJobTimes, type CronJobOptions, readCronJob } from './read-job.ts'
import { readRootCard, type CronSessions } from './run-tools.ts'

/** A job as it stands. Times are in ms. */
export type CronRow = CronJob & {
  /** Its session. */
  readonly session: string
  /** It fires at its times. A job whose session was stopped is off. */
  readonly on: boolean
  /** The next five times; none while it is off. */
  readonly next: readonly number[]
  /** The last run that began, and how it ended: null while it works. */
  readonly last: { readonly session: string; readonly at: number; readonly outcome: Outcome['type'] | null } | null
  /** How many of its times wait for an earlier run. */
  readonly waiting: number
  /** The last runs and left-out times, newest first. */
  readonly ticks: readonly CronTick[]
}

/** What began at the request; `skipped` says why nothing did. */
export type CronRun = { readonly session: string } | { readonly skipped: string } | { readonly waits: true }

/** Options of `cron`: how the sessions of its jobs are named, and what they are opened with. */
export type CronOptions = {
  /** The ids of the jobs' sessions begin with this: for a token that may choose only ids with its name. */
  readonly prefix?: string
  /** The origin of new jobs: their runs are in the same folder, and have the same labels and metadata. */
  readonly origin?: Pick<OriginOptions, 'folder' | 'labels' | 'metadata'>
}
const checkOptions = optionsChecker<CronOptions>('cron', {
  prefix: nonEmptyCheck,
  origin: (value) => (typeof value === 'object' && value !== null ? null : 'must be an object'),
})

/** Which jobs are listed, a page at a time. */
export type CronListOptions = {
  /** How many jobs a page has at most. */
  readonly limit?: number
  /** The `next` of the page before. */
  readonly cursor?: string
  /** Only jobs in this folder, or with these labels. */
  readonly folder?: string
  /** Only jobs that have all these labels. */
  readonly where?: Readonly<Record<string, string>>
}
const checkList = optionsChecker<CronListOptions>('cron list', {
  limit: countCheck(1, 500),
  cursor: nonEmptyCheck,
  folder: nonEmptyCheck,
  where: (value) => (typeof value === 'object' && value !== null ? null : 'must be an object'),
})

/** The name of a job, or the id of its session, such as `cron.nightly`. An id without a dot is given as `{ session }`. */
export type CronName = string | { readonly session: string }

/** Everything that is done with jobs: add, list, run now, switch on and off, remove. */
export type CronVerbs = {
  /** Adds the job, or changes the one of this name. It is on disk, and fires from now on, when this resolves. */
  add(job: CronJobOptions): Promise<CronRow>
  /** The jobs, a page at a time: continue with `cursor: next` until `next` is null. */
  list(options?: CronListOptions): Promise<{ readonly jobs: readonly CronRow[]; readonly next: string | null }>
  /** Null if there is none. */
  get(name: CronName): Promise<CronRow | null>
  /** Begins a run now, whatever the line says. The rule for runs that overlap holds. */
  run(name: CronName): Promise<CronRun>
  /** Its next time is the first one from now on. An imported job is released; what was open in its log is dropped. */
  on(name: CronName): Promise<CronRow>
  /** A run that works goes on; times that wait are dropped. */
  off(name: CronName): Promise<CronRow>
  /** The job is gone; its runs and its log stay. */
  remove(name: CronName): Promise<void>
}

/** The cron jobs of a harness, which has `cronPlanner()` among its `graphs`, or of a client of its server. */
export function cron(sessions: CronSessions & Pick<Sessions, 'agents'>, options: CronOptions = {}): CronVerbs {
  checkOptions(options)
  const { prefix = '', origin = {} } = options
  // The name of a job has no dot.
  const idOf = (name: CronName): string => {
    if (typeof name === 'object') return name.session
    return name.includes('.') ? name : `${prefix}${CRON}.${name}`
  }
  const rowOf = async (session: string): Promise<CronRow | null> => (await findJob(sessions, session))?.row ?? null
  const change = async (name: CronName, asked: CronChange): Promise<ChangedJob> => {
    const session = idOf(name)
    const { row = null, job = null, isStopped = false, isHeld = false } = (await findJob(sessions, session)) ?? {}
    if (row === null && asked.action !== 'set') throw missingFault(session)
    if (row !== null && (asked.action === 'on' || asked.action === 'run')) {
      checkJobTimes(row)
      await checkAgent(sessions, row)
    }
    if (isHeld) await sessions.session(session, { stored: true }).interrupt('stop')
    // The last changes of an imported log may not be in its job yet. So the job is set to what people were shown.
    const shown = isHeld && job !== null ? [{ action: 'set', job, on: false } as const] : []
    // A job that was stopped is off, and misses no times, whatever else is changed.
    const off = isStopped ? [{ action: 'off' } as const] : []
    const outcomes = await tellJob(sessions, session, [...shown, ...off, asked])
    return { row: await rowOf(session), at: outcomes.at(-1) }
  }
  return {
    add: async (given) => {
      const job = readCronJob(given)
      checkJobTimes(job)
      await checkAgent(sessions, job)
      await openJob(sessions, idOf(job.name), job.name, origin)
      const { row } = await change(job.name, { action: 'set', job, on: given.on !== false })
      // The only time of the job may have come already.
      return row ?? { ...job, session: idOf(job.name), on: false, next: [], last: null, waiting: 0, ticks: [] }
    },
    list: async (wanted = {}) => {
      checkList(wanted)
      const { cards, next } = await sessions.list({ ...wanted, agent: CRON, order: 'made' })
      const found = await Promise.all(cards.map((card) => readJob(sessions, card)))
      return { jobs: found.flatMap(({ row }) => row ?? []), next }
    },
    get: (name) => rowOf(idOf(name)),
    run: async (name) => {
      const { row, at } = await change(name, { action: 'run' })
      const tick = row?.ticks.find((each) => each.at === at)
      if (tick === undefined) return { waits: true }
      return 'session' in tick ? { session: tick.session } : { skipped: tick.skipped }
    },
    on: async (name) => requireRow(idOf(name), (await change(name, { action: 'on' })).row),
    off: async (name) => requireRow(idOf(name), (await change(name, { action: 'off' })).row),
    remove: async (name) => void (await change(name, { action: 'remove' })),
  }
}

type ChangedJob = { readonly row: CronRow | null; readonly at: number | undefined }

function requireRow(session: string, row: CronRow | null): CronRow {
  if (row === null) throw missingFault(session)
  return row
}

function missingFault(session: string): Fault {
  const name = session.slice(session.lastIndexOf('.') + 1)
  return new Fault('session_missing', `There is no cron job "${name.slice(0, 64)}". Add it first.`)
}

/** A job of this name in another folder is another job, and is not changed from here. */
async function openJob(
  sessions: CronSessions,
  id: string,
  name: string,
  origin: NonNullable<CronOptions['origin']>,
): Promise<void> {
  const card = await readRootCard(sessions, id)
  if (card === null) {
    await sessions.open({ ...origin, metadata: { ...origin.metadata, title: `Cron job ${name}` }, id, agent: CRON })
    return
  }
  if (card.agent !== CRON || (origin.folder !== undefined && card.folder !== origin.folder))
    throw new Fault(
      'id_reused',
      `There is a cron job "${name}" already${card.folder === undefined ? '' : `, in the folder ${card.folder}`}. Choose another name.`,
    )
  if (card.status === 'terminated')
    throw new Fault(
      'session_closed',
      `The session ${id} of the cron job was closed. Choose another name, or delete it.`,
    )
}

/** The runs of a job need an agent, and an input needs a workflow. */
async function checkAgent(sessions: Pick<Sessions, 'agents'>, { name, agent, input }: CronJob): Promise<void> {
  const agents = (await sessions.agents()).filter((row) => row.name !== CRON)
  const found = agents.find((row) => row.name === agent)
  const names = agents.map((row) => row.name).join(', ')
  if (found === undefined)
    throw new Fault('invalid_input', `The cron job "${name}" names the agent "${agent}", which is none of: ${names}.`)
  if (input !== undefined && found.planner === 'model')
    throw new Fault(
      'invalid_input',
      `The cron job "${name}" has an input, which is for workflows. Give its agent a prompt.`,
    )
}

/**
 * `row`: null for a session that is no job, or a removed one. `isStopped`: its session was stopped, paused or imported,
 * but the job itself still says that it is on. `isHeld`: its session was imported, and nobody has resumed it.
 */
type FoundJob = {
  readonly row: CronRow | null
  readonly job: CronJob | null
  readonly isStopped: boolean
  readonly isHeld: boolean
}

async function findJob(sessions: CronSessions, session: string): Promise<FoundJob | null> {
  const card = await readRootCard(sessions, session)
  return card?.agent === CRON ? readJob(sessions, card) : null
}

async function readJob(sessions: CronSessions, card: ListedCard): Promise<FoundJob> {
  const state = await readState(sessions, card)
  if (state === null) return { row: null, job: null, isStopped: false, isHeld: card.held === true }
  const row = await readRow(sessions, card, state)
  const isHeld = card.held === true
  return { row, job: row && state.job, isStopped: row !== null && (isHeld || (state.on && !row.on)), isHeld }
}

async function readRow(sessions: CronSessions, card: ListedCard, state: CronState): Promise<CronRow | null> {
  const { job, ticks } = state
  if (job === null || !canFire(job)) return null
  const { session, status, wakes, due } = card
  // An interrupt has dropped its wakes. While it works it may not have asked for the next one yet. One that is paused or was
  // imported is held.
  const isHeld = status === 'terminated' || status === 'requires_action'
  const isStopped = isHeld || (wakes === 0 && due === null && nextTime(job, state.from) !== null)
  const on = state.on && !isStopped
  const next: number[] = []
  for (let at = on ? nextTime(job, state.from) : null; at !== null && next.length < NEXT_SHOWN; at = nextTime(job, at))
    next.push(at)
  const began = ticks.findLast((tick) => 'session' in tick)
  const run = began && 'session' in began ? await readRootCard(sessions, began.session) : null
  const last = run && began ? { session: run.session, at: began.at, outcome: run.outcome } : null
  return { ...job, session, on, next, last, waiting: state.waiting.length, ticks: ticks.toReversed() }
}

/** An imported log may hold any line. */
function canFire({ line = '* * * * *', zone }: CronJob): boolean {
  try {
    readSchedule(line, zone)
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

const NEXT_SHOWN = 5
const PAGE = 200

/** The state in the last reply. A reply holds all of it, so the end of the log is read first. */
async function readState(sessions: Pick<Sessions, 'session'>, { session, seq }: ListedCard): Promise<CronState | null> {
  for (const after of seq > PAGE ? [seq - PAGE, 0] : [0]) {
    const last = (await repliesAfter(sessions, session, after)).at(-1)
    if (last !== undefined) return last.state
  }
  return null
}

async function repliesAfter(
  sessions: Pick<Sessions, 'session'>,
  session: string,
  after: number,
): Promise<readonly CronReply[]> {
  const replies: CronReply[] = []
  for (let from: number | null = after; from !== null; ) {
    const page = await sessions.session(session, { stored: true }).events({ after: from, limit: PAGE })
    for (const event of page.events) {
      const reply = event.type === 'agent.message' ? cronReplyIn(textOf(event.parts)) : null
      if (reply !== null) replies.push(reply)
    }
    from = page.next
  }
  return replies
}

const TRIES = 10

/** Sends the changes, and waits for their outcomes: the times of runs that were asked for. A refusal is a Fault. */
async function tellJob(
  sessions: Pick<Sessions, 'session'>,
  session: string,
  changes: readonly CronChange[],
): Promise<readonly (number | undefined)[]> {
  const handle = sessions.session(session, { stored: true })
  const ids = changes.map(() => systemRandom.id())
  let seq: number | null = null
  for (let i = 0; i < TRIES; i++) {
    // An interrupt may have dropped the messages before they were read. A change that is sent again is the same.
    for (const [n, cron] of (i === 1 ? [] : changes).entries()) {
      const sent = await handle.send(JSON.stringify({ id: ids[n], cron, ...(i > 0 ? { again: true } : {}) }))
      seq ??= sent.seq
    }
    await handle.run()
    const replies = await repliesAfter(sessions, session, (seq ?? 1) - 1)
    const answers = ids.map((id) => replies.find(({ answers: all }) => Object.hasOwn(all, id))?.answers[id])
    const refused = answers.find((answer) => answer?.type === 'Refused')
    if (refused?.type === 'Refused') throw new Fault(refused.code ?? 'invalid_input', refused.message)
    if (!answers.includes(undefined)) return answers.map((answer) => (answer?.type === 'Done' ? answer.at : undefined))
  }
  throw new Fault('session_busy', `The cron job ${session} has not answered. Try again.`)
}
