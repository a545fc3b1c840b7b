// The calls of a job: one asks for its next wake, the other begins a run in a session of its own. Both may be repeated:
// the session of a run has the id of its time, so two workers begin it once.
import type { Fault } from '../kernel/failure.ts'
import type { SharedAgentOptions } from '../sessions/agent.ts'
import type { Sessions } from '../sessions/verbs.ts'
import { AS_WRITTEN } from '../graphs/planner-node.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { output, ToolFailure } from '../tools/core/tool-output.ts'
import { CRON_RUN, CRON_WAKE, type RunArgs, type RunOutcome, type WakeArgs } from './cron-job.ts'
import { findZone, MINUTE_MS } from './zoned-time.ts'

export type CronSessions = Pick<Sessions, 'open' | 'session' | 'list'>

export function wakeTool(): Tool {
  return defineTool({
    name: CRON_WAKE,
    description: 'Looks at the job again at that time.',
    input: AS_WRITTEN,
    effect: 'idempotent',
    execute: (args) => {
      const { due } = args as unknown as WakeArgs
      const wake = { type: 'wake.scheduled', due, reason: 'The next time of the job.', key: `cron:${due}` } as const
      return output({ content: '', follows: [wake] })
    },
  })
}

export function runTool({ sessions }: Pick<SharedAgentOptions, 'sessions'>): Tool {
  return defineTool({
    name: CRON_RUN,
    description: 'Begins a run of the job.',
    input: AS_WRITTEN,
    effect: 'idempotent',
    sequential: true,
    execute: async (args, { session }) => {
      if (!sessions) throw new ToolFailure('Unavailable', 'No sessions can be opened here.')
      const outcome = await beginRun(sessions, session, args as unknown as RunArgs)
      return output({ content: JSON.stringify(outcome) })
    },
  })
}

async function beginRun(sessions: CronSessions, job: string, args: RunArgs): Promise<RunOutcome> {
  const { at, overlap } = args
  const session = tickIdOf(job, args)
  const begun = (await readRootCard(sessions, session)) !== null
  const ended: string[] = []
  const open: string[] = []
  for (const id of args.working) {
    if (id === session) continue
    // An imported job may name runs of another, or any session.
    const isOver = !id.startsWith(`${job}.`) || (await hasEnded(sessions, id))
    if (isOver) ended.push(id)
    else open.push(id)
  }
  const outcome = { at, ended }
  const [first] = open
  if (!begun && first !== undefined && overlap === 'skip')
    return { ...outcome, type: 'skipped', reason: `An earlier run still works: ${first}.` }
  if (!begun && first !== undefined && overlap === 'queue') return { ...outcome, type: 'waits' }
  if (overlap === 'replace')
    for (const id of open) await sessions.session(id, { stored: true }).interrupt('stop', { id: `replaced:${session}` })
  return (await openRun(sessions, job, session, args)) ?? { ...outcome, type: 'began', session }
}

/**
 * The run of a time, such as `cron.nightly.20261119T0300Z`. A run by hand has seconds too, and so has a job of one time that
 * is no whole minute, down to the millisecond.
 */
function tickIdOf(job: string, { at, byHand }: Pick<RunArgs, 'at' | 'byHand'>): string {
  const time = new Date(at).toISOString().replaceAll(/[-:.Z]/g, '')
  const isWholeMinute = at % MINUTE_MS === 0
  return `${job}.${byHand ? time.slice(0, 15) : isWholeMinute ? time.slice(0, 13) : time}Z`
}

export async function readRootCard(sessions: Pick<Sessions, 'list'>, id: string) {
  const { cards } = await sessions.list({ root: id, limit: 1 })
  return cards[0]?.session === id ? cards[0] : null
}

/** A run that waits for a person still works. A session whose first run has ended is never looked at again. */
async function hasEnded(sessions: CronSessions, id: string): Promise<boolean> {
  const card = await readRootCard(sessions, id)
  return card === null || card.outcome !== null || card.status === 'terminated'
}

/** Null once the run's session is there and has its message. It belongs where the job belongs: its folder, its labels. */
async function openRun(
  sessions: CronSessions,
  job: string,
  id: string,
  { at, agent, prompt, input, limits, zone }: RunArgs,
): Promise<RunOutcome | null> {
  const [card, { metadata, labels }] = await Promise.all([
    readRootCard(sessions, job),
    sessions.session(job, { stored: true }).status(),
  ])
  const shown = new Date(findZone(zone).wallAt(at)).toISOString().slice(0, 16).replace('T', ' ')
  const title = `${job.slice(job.lastIndexOf('.') + 1)}, ${shown}`
  const folder = card?.folder === undefined ? {} : { folder: card.folder }
  try {
    const run = await sessions.open({ id, agent, labels, metadata: { ...metadata, title }, ...folder })
    const said = prompt ?? (typeof input === 'string' ? input : JSON.stringify(input))
    await run.send(said, { id: 'cron', ...(limits === undefined ? {} : { limits }) })
    return null
  } catch (error) {
    const { code, message } = error as Fault
    if (code === 'id_reused' || code === 'session_closed')
      return { at, ended: [], type: 'skipped', reason: `The session ${id} is there and is not this run.` }
    throw new ToolFailure('Failed', message)
  }
}
