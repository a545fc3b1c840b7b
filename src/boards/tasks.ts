// Tasks: background work of any kind, as a view over cards. A task is a session (a graph or an agent), or an open call
// of one (a running tool, or work outside that will answer it). It stores nothing: its commands are the verbs of
// sessions.
import type { Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Card, Page } from '../ports/store.ts'
import type { Input } from '../sessions/input.ts'
import type { Result } from '../runtime/state/run-result.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import { CallLog } from '../view/call-log.ts'
import { readSessionCard } from './session-card.ts'

/** `agent`: a session of a model that no other session started. */
export type TaskKind = 'graph' | 'agent' | 'sub_agent' | 'tool' | 'external_process'
/** How a task that a session started stands. */
export type TaskStatus =
  | ('Pending' | 'Running' | 'Awaiting' | 'CancelRequested')
  | ('Completed' | 'Failed' | 'Cancelled' | 'TimedOut' | 'Abandoned')
const ENDED: readonly TaskStatus[] = ['Completed', 'Failed', 'Cancelled', 'TimedOut', 'Abandoned']

/** One piece of background work. */
export type TaskRow = Frozen<{
  /** The id of a session, or `SESSION#CALL` for a call of one. */
  id: string
  /** What kind of work it is. */
  kind: TaskKind
  /** How it stands. */
  status: TaskStatus
  /** The agent that works on it; for a call that of its session. */
  agent: string
  /** The session that started it. Null for a root. */
  parent: string | null
  /** Its purpose, or the tool of the call. May be empty. */
  what: string
  /** The time of the last event about it, in ms since 1970. */
  at: number
  /** What the session itself has spent, in dollars. */
  costUsd: number
}>

/** The reads that tasks need. `list`: roots, or the children of one `parent`, the newest first. */
export type TaskReads = {
  /** Cards of roots, or of the children of one `parent`, the newest first. */
  list(filter: { readonly limit: number; readonly parent?: string }): Promise<readonly Card[]>
  /** Events of a session after one of them, in order. */
  read(session: string, after: number, limit?: number): Promise<Page>
}

const LIMIT = 100
const PAGE = 500

function taskReads(sessions: Pick<Sessions, 'list' | 'session'>): TaskReads {
  return {
    list: async (filter) => (await sessions.list({ ...filter, order: 'newest' })).cards,
    read: (session, after, limit = PAGE) => sessions.session(session, { stored: true }).events({ after, limit }),
  }
}

/** The tasks of one session: its children and its open calls. Without one: the newest roots of the store. */
export async function tasksIn(reads: TaskReads, { parent, limit = LIMIT }: { parent?: string; limit?: number } = {}) {
  const within = parent === undefined ? {} : { parent }
  const cards = await reads.list({ limit, ...within })
  const rows = await Promise.all(cards.map((card) => taskRowOf(reads, card)))
  return parent === undefined ? rows : [...rows, ...(await openCallRows(reads, parent))]
}

async function taskRowOf(reads: TaskReads, card: Card): Promise<TaskRow> {
  const { session: id, agent, at, parent = null, task: what = '', cost } = card
  const [created] = (await reads.read(id, 0, 1)).events
  const isGraph = created?.type === 'session.created' && created.planner !== 'model'
  const kind = isGraph ? 'graph' : parent === null ? 'agent' : 'sub_agent'
  return {
    id,
    kind,
    status: statusOf(card, await readLastRunEvents(reads, card)),
    agent,
    parent,
    what,
    at,
    costUsd: cost / 1e6,
  }
}

type TaskCard = Pick<Card, 'session' | 'seq' | 'status' | 'outcome' | 'due'> & { readonly trouble?: Card['trouble'] }

/**
 * Most of the status is on the card. Only the log has a stop that was not handled yet, and the limit that ended the
 * run.
 */
function statusOf(card: TaskCard, run: readonly Event[]): TaskStatus {
  const { status, outcome, trouble, due } = card
  if (trouble?.until === null) return 'Abandoned'
  const ended = run.findLast((event) => event.type === 'run.settled')
  const open = status === 'running' || status === 'rescheduling' || status === 'requires_action'
  if (open || (due !== null && status !== 'terminated')) {
    if (run.some((event) => event.type === 'user.interrupt' && event.mode === 'stop' && event.seq > (ended?.seq ?? 0)))
      return 'CancelRequested'
    if (status === 'requires_action') return 'Awaiting'
    return outcome === null && !run.some(({ type }) => type === 'run.started') ? 'Pending' : 'Running'
  }
  if (outcome === null) return status === 'terminated' ? 'Cancelled' : 'Pending'
  if (outcome === 'completed') return 'Completed'
  if (outcome === 'interrupted') return 'Cancelled'
  const over = ended?.type === 'run.settled' && ended.outcome.type === 'limit' && ended.outcome.limit === 'active_ms'
  return over ? 'TimedOut' : 'Failed'
}

/** The end of the log, from the start of its last run if that is near. */
async function readLastRunEvents(reads: TaskReads, { session, seq }: TaskCard): Promise<readonly Event[]> {
  const { events } = await reads.read(session, Math.max(0, seq - PAGE), 2 * PAGE)
  const start = events.findLastIndex(({ type }) => type === 'run.started')
  return start < 0 ? events : events.slice(start)
}

async function openCallRows(reads: TaskReads, parent: string): Promise<readonly TaskRow[]> {
  const log = new CallLog()
  let [agent, from] = ['', 0]
  for (;;) {
    const { events } = await reads.read(parent, from, PAGE)
    for (const event of events) {
      if (event.type === 'session.created') agent = event.agent
      log.take(event)
      from = event.seq
    }
    if (events.length < PAGE) break
  }
  return log.all.flatMap(({ key, proposal, intent, result }): readonly TaskRow[] => {
    const outside = outsideOf(proposal)
    if (intent === null || result !== null || outside?.child !== undefined) return []
    const kind = outside === null || outside === undefined ? 'tool' : 'external_process'
    const status = kind === 'tool' ? 'Running' : 'Awaiting'
    return [{ id: `${parent}#${key}`, kind, status, agent, parent, what: proposal.tool, at: intent.at, costUsd: 0 }]
  })
}

/** The verbs that `tasks` needs, of a harness or a client. */
export type TaskSessions = Pick<Sessions, 'open' | 'session' | 'list'>
/** The end of a task. */
export type TaskEnd = {
  /** The id of the task. */
  readonly id: string
  /** How it ended, or that it waits. */
  readonly status: TaskStatus
  /** Its answer as text. Empty if it has none. */
  readonly value: string
  /** The result of its last run. */
  readonly result: Result
}

/** The verbs of tasks. An ended task takes no more commands: they fail with a Fault with the detail `TaskEnded`. */
export function tasks(sessions: TaskSessions) {
  const reads = taskReads(sessions)
  const status = async (id: string): Promise<TaskStatus> => {
    const card = await readSessionCard(sessions, id)
    if (card === null) throw new Fault('session_missing', `There is no task "${id}".`)
    return statusOf(card, await readLastRunEvents(reads, card))
  }
  const live = async (id: string): Promise<Session> => {
    const is = await status(id)
    if (!ENDED.includes(is)) return sessions.session(id, { stored: true })
    throw new Fault(
      'invalid_input',
      `Task ${id} has ended (${is}) and takes no more orders. Start another.`,
      'TaskEnded',
    )
  }
  const wait = async (id: string): Promise<TaskEnd> => {
    const result = await sessions.session(id, { stored: true }).run()
    return { id, status: await status(id), value: result.text, result }
  }
  const cancel = async (id: string): Promise<void> => {
    await (await live(id)).interrupt()
  }
  return {
    /** The task is on disk when this resolves; the work goes on by itself. */
    spawn: async (input: Input, options: { readonly agent?: string; readonly id?: string } = {}): Promise<string> => {
      const session = await sessions.open(options)
      await session.send(input)
      return session.id
    },
    /** Waits for the end, or until a person is needed. After a restart it takes up unfinished work. */
    await: wait,
    status,
    cancel,
    list: (filter: { readonly parent?: string; readonly limit?: number } = {}) => tasksIn(reads, filter),
    steer: async (id: string, input: Input): Promise<void> => {
      await (await live(id)).send(input)
    },
    /**
     * The first task that completes wins, and the others are stopped; their work stays in their logs. Null: none
     * completed.
     */
    race: async (ids: readonly string[]): Promise<TaskEnd | null> => {
      const winner = await Promise.any(
        ids.map(async (id) => {
          const end = await wait(id)
          if (end.status !== 'Completed') throw new Fault('invalid_input', `Task ${id} did not complete.`)
          return end
        }),
      ).catch((error: unknown) => {
        if (error instanceof AggregateError && error.errors.every((one) => one instanceof Fault)) return null
        throw error
      })
      if (winner === null) return null
      const losers = ids.filter((id) => id !== winner.id)
      await Promise.all(
        losers.map(async (id) => {
          if (!ENDED.includes(await status(id))) await sessions.session(id, { stored: true }).interrupt()
        }),
      )
      return winner
    },
  }
}
