// Two tools for a model: `cron` keeps jobs, `schedule` asks for one later look or one later run. Jobs of a model belong to
// the owner of its session, and run as agents that the host allows. An agent has them only if its harness names them.
import { hash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import { countCheck, functionCheck, listCheck, nonEmptyCheck, optionsChecker, requiredCheck } from '../options.ts'
import type { Sessions } from '../sessions/verbs.ts'
import {
  choiceField,
  type Infer,
  integerField,
  objectField,
  optionalField,
  textField,
} from '../tools/core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../tools/core/tool.ts'
import { type Output, output, ToolFailure } from '../tools/core/tool-output.ts'
import { rootIdOf } from '../view/ids.ts'
import { cron, type CronRow, type CronVerbs } from './cron.ts'
import { readRootCard, type CronSessions } from './run-tools.ts'

/** Options of the tool by which a model makes jobs: for which agents, and how many. */
export type CronToolOptions = {
  /** Returns the harness, which is made after this tool. It has `cronPlanner()` among its `graphs`. */
  readonly sessions: () => CronSessions & Pick<Sessions, 'agents'>
  /** Agents that jobs may run as, beside the agent of the session itself. */
  readonly agents?: readonly string[]
  /** How many jobs the sessions of one owner may have. Default 10. */
  readonly jobsMax?: number
}
const checkOptions = optionsChecker<CronToolOptions>('cronTool', {
  sessions: requiredCheck(functionCheck),
  agents: listCheck(nonEmptyCheck),
  jobsMax: countCheck(1, 1_000),
})

const JOBS_MAX = 10
/** The label of a model's jobs and their runs: the owner of its session, or its root session. */
const OF = 'cron_of'

const input = objectField({
  action: choiceField('add a job or change yours of that name, list yours, or remove one.', ['add', 'list', 'remove']),
  name: optionalField(textField('add, remove: letters, digits, "_" and "-".', { min: 1, max: 64 })),
  line: optionalField(
    textField('add: minute, hour, day of month, month, day of week, such as "0 9 * * MON-FRI".', { min: 1, max: 200 }),
  ),
  zone: optionalField(textField('add: the time zone, such as Europe/Oslo. Default UTC.', { min: 1, max: 64 })),
  prompt: optionalField(
    textField('add: the whole task of each run, complete in itself: a run sees nothing of this conversation.', {
      min: 1,
      max: 10_000,
    }),
  ),
  agent: optionalField(textField('add: which agent runs. Default: one like yourself.', { min: 1, max: 64 })),
})
type Args = Infer<typeof input>

/** A person is asked before a job is added: it costs money again and again. */
export function cronTool(options: CronToolOptions): Tool {
  checkOptions(options)
  return defineTool<Args>({
    name: 'cron',
    description: 'Jobs that begin a new session at the times of a cron line, at least five minutes apart.',
    input,
    effect: 'idempotent',
    sequential: true,
    approval: ({ action }) => (action === 'list' ? 'auto' : 'ask'),
    execute: async (args, context) => {
      const own = await ownJobs(options, context)
      if (args.action === 'list') return listOutput(own.rows)
      const { name = '' } = args
      if (args.action === 'add') return addOutput(await addJob(own, { ...args, name }, options))
      const found = own.rows.find((row) => row.name === name)
      if (found === undefined) throw new ToolFailure('NotFound', `You have no job "${name}". ${namesText(own.rows)}`)
      await refuseForModel(own.jobs.remove(found.session))
      return output({ content: `Removed ${name}.` })
    },
  })
}

type OwnJobs = { readonly jobs: CronVerbs; readonly rows: readonly CronRow[]; readonly agent: string }

async function ownJobs({ sessions }: CronToolOptions, { session }: ToolContext): Promise<OwnJobs> {
  const all = sessions()
  const root = rootIdOf(session)
  const [{ labels, metadata, agent }, card] = await Promise.all([
    all.session(session, { stored: true }).status(),
    readRootCard(all, root),
  ])
  const scope = labels['owner'] ?? root
  const { title: _title, ...kept } = metadata
  const folder = card?.folder === undefined ? {} : { folder: card.folder }
  const origin = { labels: { ...labels, [OF]: scope }, metadata: kept, ...folder }
  const jobs = cron(all, { prefix: `${hash('sha256', scope).slice(0, 16)}.`, origin })
  const { jobs: rows } = await jobs.list({ where: { [OF]: scope }, limit: 500 })
  return { jobs, rows, agent }
}

type NewJob = Pick<Args, 'line' | 'zone' | 'prompt' | 'agent'> & { readonly name: string; readonly at?: number }

async function addJob(
  { jobs, rows, agent: own }: OwnJobs,
  { name, line, at, zone, prompt, agent = own }: NewJob,
  { agents = [], jobsMax = JOBS_MAX }: CronToolOptions,
): Promise<CronRow> {
  const may = [own, ...agents]
  if (!may.includes(agent))
    throw new ToolFailure('Denied', `A job of yours cannot run as "${agent}". Choose one of: ${may.join(', ')}.`)
  if (rows.length >= jobsMax && rows.every((row) => row.name !== name))
    throw new ToolFailure('Denied', `You have ${rows.length} jobs, which is the most. ${namesText(rows)}`)
  const times = { ...(line === undefined ? {} : { line }), ...(at === undefined ? {} : { at }) }
  const said = { ...(zone === undefined ? {} : { zone }), ...(prompt === undefined ? {} : { prompt }) }
  return refuseForModel(jobs.add({ name, agent, ...times, ...said }))
}

/** A refusal is for the model: it can call again with other arguments. */
async function refuseForModel<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Fault) throw new ToolFailure('InvalidInput', error.message)
    throw error
  }
}

function namesText(rows: readonly CronRow[]): string {
  return rows.length === 0 ? 'You have none.' : `Yours are: ${rows.map(({ name }) => name).join(', ')}.`
}

function addOutput({ name, next }: CronRow): Output {
  const [at] = next
  const when = at === undefined ? '' : ` It runs next at ${new Date(at).toISOString()}.`
  return output({ content: `The job ${name} is set.${when}`, metadata: { job: name, next: [...next] } })
}

function listOutput(rows: readonly CronRow[]): Output {
  const lines = rows.map(({ name, line, at, zone, on, next, last }) => {
    const when = line === undefined ? new Date(at ?? 0).toISOString() : `${line} ${zone}`
    const [first] = next
    const coming = first === undefined ? 'no next time' : `next ${new Date(first).toISOString()}`
    return `${name}: ${when}, ${on ? 'on' : 'off'}, ${coming}, last ${last === null ? 'never' : (last.outcome ?? 'works')}`
  })
  return output({ content: lines.join('\n') || 'You have no jobs.' })
}

const AHEAD_MS_MAX = 366 * 24 * 60 * 60_000

const scheduleInput = objectField({
  note: textField('What is to be done then, complete in itself.', { min: 1, max: 10_000 }),
  at: optionalField(textField('When, with its zone, such as 2026-11-20T09:00:00+01:00.', { min: 1, max: 40 })),
  in_minutes: optionalField(integerField('In place of at: in so many minutes.', { min: 0, max: 366 * 24 * 60 })),
  where: optionalField(
    choiceField('this: this session goes on then (default). new: a new session begins, which knows only the note.', [
      'this',
      'new',
    ]),
  ),
  agent: optionalField(textField('new: which agent. Default: one like yourself.', { min: 1, max: 64 })),
})
type ScheduleArgs = Infer<typeof scheduleInput>

/** One later look at this session, or one new session at a time. */
export function scheduleTool(options: CronToolOptions): Tool {
  checkOptions(options)
  return defineTool<ScheduleArgs>({
    name: 'schedule',
    description: 'Goes on at a later time: this session, or a new one.',
    input: scheduleInput,
    effect: 'idempotent',
    sequential: true,
    approval: ({ where }) => (where === 'new' ? 'ask' : 'auto'),
    execute: async ({ note, where, agent, ...when }, context) => {
      const now = context.now?.() ?? context.clock.now()
      const at = timeOf(when, now)
      const text = new Date(at).toISOString()
      if (where === 'new') {
        const name = `once-${hash('sha256', context.key).slice(0, 12)}`
        const job = { name, at, prompt: note, ...(agent === undefined ? {} : { agent }) }
        await addJob(await ownJobs(options, context), job, options)
        return output({ content: `A new session begins at ${text}. To take it back: cron, remove, ${name}.` })
      }
      const wake = { type: 'wake.scheduled', due: at, reason: note, key: `schedule:${context.call}` } as const
      return output({ content: `This session goes on at ${text}.`, follows: [wake] })
    },
  })
}

/** A time in the past is now. */
function timeOf({ at, in_minutes }: Pick<ScheduleArgs, 'at' | 'in_minutes'>, now: number): number {
  if ((at === undefined) === (in_minutes === undefined)) throw new ToolFailure('InvalidInput', 'Give at or in_minutes.')
  const zoned = at === undefined || /^\d{4}-\d\d-\d\dT\d\d:\d\d.*(?:Z|[+-]\d\d:\d\d)$/.test(at)
  const time = at === undefined ? now + (in_minutes ?? 0) * 60_000 : Date.parse(at)
  if (!zoned || Number.isNaN(time))
    throw new ToolFailure('InvalidInput', `"${at}" is no time with a zone. Write it as 2026-11-20T09:00:00Z.`)
  if (time > now + AHEAD_MS_MAX) throw new ToolFailure('InvalidInput', 'That is more than a year ahead.')
  return Math.max(time, now)
}
