// Checks the definition of a job. It may come from a host, a request, a model, or a message to the job's session.
import { Fault } from '../kernel/failure.ts'
import type { Json } from '../kernel/content.ts'
import {
  anyCheck,
  type Check,
  describeValue,
  flagCheck,
  inputChecker,
  nonEmptyCheck,
  oneOf,
  optionsCheck,
  requiredCheck,
  textCheck,
  withoutUndefined,
} from '../options.ts'
import { LIMITS } from '../runtime/state/limits.ts'
import { firstNonJson } from '../tools/core/plain-values.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { CronChange, CronJob, CronState, MissedRule, OverlapRule } from './cron-job.ts'
import { checkApart, readSchedule } from './cron-line.ts'

/** A job as it is given: the rest has defaults. */
export type CronJobOptions = Omit<CronJob, 'zone' | 'agent' | 'missed' | 'overlap'> &
  Partial<Pick<CronJob, 'zone' | 'agent' | 'missed' | 'overlap'>> & {
    /** Default true. A job that is off fires at no time, and can be run by hand. */
    readonly on?: boolean
  }

const PROMPT_CHARS_MAX = 10_000
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const nameCheck: Check = (value) =>
  typeof value === 'string' && NAME.test(value)
    ? null
    : 'must be 1 to 64 letters, digits, "_" or "-", and begin with a letter or a digit'
const promptCheck: Check = (value, name, of) =>
  typeof value === 'string' && value.length > PROMPT_CHARS_MAX
    ? `has ${value.length} characters, and at most ${PROMPT_CHARS_MAX} fit. Put the rest into the instructions of its agent, or into a file that it reads`
    : nonEmptyCheck(value, name, of)
/** Times are written as ISO dates, in ids too, so a year has four digits. */
const TIME_MAX = Date.UTC(9_999, 11, 31)
const timeCheck: Check = (value) =>
  isTime(value) && value >= 0 && Number.isInteger(value)
    ? null
    : `must be a time in ms, from 1970 to the year 9999, not ${describeValue(value)}`
const LEVELS_MAX = 64
const inputCheck: Check = (value) => {
  const lost = firstNonJson(value, LEVELS_MAX)
  if (lost !== null) return `must be plain JSON, and holds ${lost}`
  const length = JSON.stringify(value)?.length ?? 0
  return length <= PROMPT_CHARS_MAX ? null : `has ${length} characters of JSON, and at most ${PROMPT_CHARS_MAX} fit`
}

const { hold: _hold, ...RUN_LIMITS } = LIMITS
const checkJob = inputChecker<CronJobOptions>('a cron job', {
  name: requiredCheck(nameCheck, 'Give it one, such as "nightly".'),
  line: textCheck,
  at: timeCheck,
  zone: nonEmptyCheck,
  agent: nonEmptyCheck,
  prompt: promptCheck,
  input: inputCheck,
  missed: oneOf<MissedRule>({ skip: true, once: true, all: true }),
  overlap: oneOf<OverlapRule>({ skip: true, queue: true, replace: true }),
  limits: optionsCheck<NonNullable<CronJob['limits']>>(RUN_LIMITS),
  on: anyCheck,
})

/** The job with its defaults. Throws a Fault that says what to do. */
export function readCronJob(given: CronJobOptions): CronJob {
  checkJob(given)
  const { on: _on, ...own } = withoutUndefined(given)
  const job: CronJob = { zone: 'UTC', agent: 'default', missed: 'once', overlap: 'skip', ...own }
  const whose = `The cron job "${job.name}"`
  if ((job.line === undefined) === (job.at === undefined))
    throw new Fault('invalid_input', `${whose} needs a line, such as "0 3 * * *", or a time "at" for one run.`)
  if ((job.prompt === undefined) === (job.input === undefined))
    throw new Fault('invalid_input', `${whose} needs a prompt for its agent, or an input for its workflow.`)
  if (job.missed === 'all' && job.overlap === 'replace')
    throw new Fault(
      'invalid_input',
      `${whose} makes up for all missed times and lets each run replace the one before. Use "overlap": "queue", or "missed": "once".`,
    )
  return job
}

/** Throws a Fault for a line or a zone that cannot be used, and for times that are too close. */
export function checkJobTimes({ line, zone, input }: CronJob): void {
  readSchedule(line ?? '0 0 * * *', zone)
  if (line !== undefined && input === undefined) checkApart(line)
}

/** A change under an id of its sender. `again`: it was sent before, and an earlier reply may have its outcome. */
export type CronMessage = { readonly id: string; readonly cron: CronChange; readonly again?: true }

/** A message to a job's session. Anyone may have sent it, so all of it is checked. */
export function readCronMessage(value: Json | undefined): CronMessage {
  checkMessage(value)
  const { id, cron, again } = value as unknown as CronMessage
  const sent = again ? ({ id, again } as const) : { id }
  checkChange(cron)
  if (cron.action !== 'set') return { ...sent, cron: { action: cron.action } }
  const read = readCronJob(cron.job)
  checkJobTimes(read)
  return { ...sent, cron: { action: 'set', job: read, on: cron.on !== false } }
}

const checkMessage = inputChecker<CronMessage>('a message to a cron job', {
  id: requiredCheck(nonEmptyCheck),
  again: flagCheck,
  cron: requiredCheck((value) => (typeof value === 'object' && value !== null ? null : 'must be an object')),
})
const checkChange = inputChecker<{ action: CronChange['action']; job?: unknown; on?: unknown }>(
  'a change of a cron job',
  {
    action: requiredCheck(oneOf<CronChange['action']>({ set: true, on: true, off: true, remove: true, run: true })),
    job: anyCheck,
    on: anyCheck,
  },
)

/** The state in a reply. Null if it is none: an imported log may hold anything. */
export function readCronState(value: Json | undefined): CronState | null {
  if (!isObject(value) || typeof value['on'] !== 'boolean') return null
  const { from, triedAgain, wakes, working, waiting, ticks, job } = value
  const isState =
    [from, triedAgain].every(isTime) &&
    isListOf(wakes, isTime) &&
    isListOf(working, (run) => isObject(run) && typeof run['session'] === 'string' && isTime(run['since'])) &&
    isListOf(waiting, (tick) => isObject(tick) && isTime(tick['at']) && typeof tick['tries'] === 'number') &&
    isListOf(
      ticks,
      (tick) => isObject(tick) && isTime(tick['at']) && typeof (tick['session'] ?? tick['skipped']) === 'string',
    )
  if (!isState) return null
  try {
    return { ...(value as unknown as CronState), job: job === null ? null : readCronJob(job as unknown as CronJob) }
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= TIME_MAX
}

function isListOf(value: unknown, isItem: (item: Json) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem)
}
