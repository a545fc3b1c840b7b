// Tasks: work in the background, of any kind, as a view over cards. A task is a session (a graph or an agent) or an open call of one (a
// tool that runs, or work outside that answers it). Nothing is kept here: the orders are the verbs of sessions.
import type { Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Card, CardFilter, Page } from '../ports/store.ts'
import type { Input } from '../sessions/input.ts'
import type { Result } from '../sessions/result.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import { CallLog } from '../view/calls.ts'

/** `agent`: a session of a model that no other session started. */
export type TaskKind = 'graph' | 'agent' | 'sub_agent' | 'tool' | 'external_process'
export type TaskStatus =
  | ('Pending' | 'Running' | 'Awaiting' | 'CancelRequested')
  | ('Completed' | 'Failed' | 'Cancelled' | 'TimedOut' | 'Abandoned')
const ENDED: readonly TaskStatus[] = ['Completed', 'Failed', 'Cancelled', 'TimedOut', 'Abandoned']

/** `id` is that of a session, or `SESSION#CALL`. `what`: what it was started for, or the tool of the call. */
export type TaskRow = Frozen<{
  id: string
  kind: TaskKind
  status: TaskStatus
  agent: string
  parent: string | null
  what: string
  at: number
  costUsd: number
}>

/** What is read: a store has both, and so have the verbs of sessions. */
export type TaskReads = {
  list(filter: CardFilter): Promise<readonly Card[]>
  read(session: string, after: number, limit?: number): Promise<Page>
}

const LIMIT = 100
const PAGE = 500

function taskReads(sessions: Pick<Sessions, 'list' | 'session'>): TaskReads {
  return {
    list: (filter) => sessions.list(filter),
    read: (session, after, limit) => sessions.session(session, { stored: true }).read(after, limit),
  }
}

/** The tasks of one session: its children and its open calls. Without one: the newest roots of the store. */
export async function tasksIn(reads: TaskReads, { parent, limit = LIMIT }: { parent?: string; limit?: number } = {}) {
  const within = parent === undefined ? {} : { parent }
  const cards = await reads.list({ newest: true, limit, ...within })
  const rows = await Promise.all(cards.map((card) => rowOf(reads, card)))
  return parent === undefined ? rows : [...rows, ...(await callsIn(reads, parent))]
}

async function rowOf(reads: TaskReads, card: Card): Promise<TaskRow> {
  const { session: id, agent, at, parent = null, task: what = '', cost } = card
  const [created] = (await reads.read(id, 0, 1)).events
  const isGraph = created?.type === 'session.created' && created.planner !== 'model'
  const kind = isGraph ? 'graph' : parent === null ? 'agent' : 'sub_agent'
  return { id, kind, status: statusOf(card, await lastRun(reads, card)), agent, parent, what, at, costUsd: cost / 1e6 }
}

type Stands = Pick<Card, 'session' | 'seq' | 'status' | 'outcome' | 'due'> & { readonly trouble?: Card['trouble'] }

/** The card says most of it. A stop that was not heard yet, and which limit ended the run, only the log knows. */
function statusOf(card: Stands, run: readonly Event[]): TaskStatus {
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

/** The end of the log, from the beginning of its last run on where that is near. */
async function lastRun(reads: TaskReads, { session, seq }: Stands): Promise<readonly Event[]> {
  const { events } = await reads.read(session, Math.max(0, seq - PAGE), 2 * PAGE)
  const start = events.findLastIndex(({ type }) => type === 'run.started')
  return start < 0 ? events : events.slice(start)
}

async function callsIn(reads: TaskReads, parent: string): Promise<readonly TaskRow[]> {
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

export type TaskSessions = Pick<Sessions, 'open' | 'session' | 'list' | 'status'>
/** What a task came to. `value` is its answer, if it has one. */
export type TaskEnd = {
  readonly id: string
  readonly status: TaskStatus
  readonly value: string
  readonly result: Result
}

/** The verbs. An ended task takes no more orders: that is a Fault with the detail `TaskEnded`. */
export function tasks(sessions: TaskSessions) {
  const reads = taskReads(sessions)
  const status = async (id: string): Promise<TaskStatus> => {
    const card = await sessions.status(id)
    if (card === null) throw new Fault('session_missing', `There is no task "${id}".`)
    return statusOf(card, await lastRun(reads, card))
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
    /** On disk when this resolves; the work goes on by itself. */
    spawn: async (input: Input, options: { readonly agent?: string; readonly id?: string } = {}): Promise<string> => {
      const session = await sessions.open(options)
      await session.send(input)
      return session.id
    },
    /** To its end, or until it waits for a person. After a restart this takes up what was left. */
    await: wait,
    status,
    cancel,
    list: (filter: { readonly parent?: string; readonly limit?: number } = {}) => tasksIn(reads, filter),
    steer: async (id: string, input: Input): Promise<void> => {
      await (await live(id)).send(input)
    },
    /** The first that completes wins, and the others are stopped; what they did stays in their logs. Null: none completed. */
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
