// How a child is made: its log, and its task as its first message, written in one commit with the parent's events.
import type { CallKey, Json, Order, Within } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { EMPTY, type Session } from '../../kernel/session.ts'
import type { InboxWrite, OwnerWrite } from '../../ports/store.ts'
import { ownId } from '../../stores/plan/id.ts'
import { ownerWrite } from '../../engine/card.ts'

/** What a birth must know of the agents: what answers their turns, and the tool with which they read kept texts. */
export type Agents = {
  readonly plannerOf: (agent: string) => string
  readonly readerOf: (agent: string) => string | undefined
  /** How many characters of an agent's answer its parent reads. Absent: as many as of any. */
  readonly charsMaxOf?: (agent: string) => number | undefined
  /** The name of the model that answers in the open run of the session. */
  readonly modelName?: (session: Session) => string
  /** Whether this process drives a run of another child of this session. It need not know of all that do. */
  readonly isWorkingBelow?: (parent: string, but: string) => boolean
  /** The trace context of a call of this session: its child is in the same trace. */
  readonly traceOf: (call: CallKey) => string | undefined
  /** The bounds of what the session starts now, if a run of it or above it was narrowed. */
  readonly within: (session: Session) => Within | undefined
}
export type Known = Agents & { readonly at: number }

type Wanted = Pick<Order, 'task' | 'options' | 'fork' | 'folder' | 'owns'>

type Bonds = { readonly detached?: true; readonly tells?: string; readonly handoff?: true }

export type Born = Known & {
  readonly id: string
  readonly session: Session
  /** The call it is made for, and its name. */
  readonly key: CallKey
  readonly born: string
  readonly order: Wanted & Bonds & { readonly child: string }
  readonly task: string
}

export function birth({
  id,
  session,
  key,
  born,
  order,
  task,
  at,
  plannerOf,
  readerOf,
  traceOf,
  within: boundsOf,
}: Born): readonly (OwnerWrite | InboxWrite)[] {
  const { root = id, depth = 0 } = session.parent ?? {}
  // A model can be told of a question and answer it; what is no model can only wait.
  const { detached, options, fork, handoff } = order
  // What is started in a worktree, or with paths of its own, starts others there, and with no more than that.
  const above = session.parent === null ? {} : { folder: session.folder, owns: session.parent.owns }
  const { folder = above.folder, owns = order.folder === undefined ? above.owns : undefined } = order
  // One that goes on from here is the same agent: its requests begin with the bytes of its parent's.
  const child = fork ? session.agent : order.child
  const parks: { readonly parks?: true } = plannerOf(session.agent) === 'model' ? {} : { parks: true }
  const reader = readerOf(session.agent)
  // What is the answer of the run is not cut for a model that could read on.
  const reads = reader === undefined || parks.parks || handoff ? {} : { reader }
  const bond = {
    ...parks,
    ...(detached ? { detached } : {}),
    ...(order.task === undefined ? {} : { task: order.task }),
    ...(owns ? { owns } : {}),
    ...(order.tells === undefined ? {} : { tells: order.tells }),
    ...(handoff ? { answersFor: [session.agent, ...(session.parent?.answersFor ?? [])] } : {}),
  }
  const parent = { session: id, call: key, root, depth: depth + 1, ...bond, ...reads }
  const planner = plannerOf(child)
  const { labels, run, program } = session
  const said = {
    ...(run?.metadata ? { metadata: run.metadata } : {}),
    ...(labels ? { labels } : {}),
    ...(program === undefined ? {} : { program }),
  }
  const from = {
    ...(fork || handoff ? { fork: { session: id, seq: shownAt(session) } } : {}),
    ...(folder ? { folder } : {}),
  }
  const bounds = boundsOf(session)
  const within = bounds === undefined ? {} : { within: bounds }
  const created: OwnerBody = { type: 'session.created', agent: child, planner, parent, ...from, ...said, ...within }
  const parts = [{ type: 'text', text: task }] as const
  const traceparent = traceOf(key)
  const trace = traceparent === undefined ? {} : { traceparent }
  const message: InboxBody = {
    type: 'user.message',
    id: ownId('task'),
    parts,
    when: 'next',
    by: `session:${id}`,
    ...(options ? { options } : {}),
    ...trace,
  }
  return [
    ownerWrite(born, EMPTY, [created], { now: at, epoch: 0 }),
    { session: born, lane: 'inbox', events: [message] },
  ]
}

/** The words of a task, whichever of the tools gave it. */
export function taskOf(args: Json): string {
  const { task, prompt, context, message, answer } = args as Readonly<Record<string, Json | undefined>>
  const said = [task, prompt, message, answer].find((text) => typeof text === 'string')
  if (typeof said !== 'string') return JSON.stringify(args)
  return typeof context === 'string' && context.trim() !== '' ? `${said}\n\nContext:\n${context}` : said
}

/** The last event before the reply whose calls are open: a provider takes no call without its result. */
function shownAt({ run, seq }: Session): number {
  return run?.turn && run.turn.open.length > 0 ? run.turn.seq - 1 : seq
}
