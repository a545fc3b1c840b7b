// Creating a child: its log, and its task as its first message, written in one commit with the parent's events.
import type { CallKey, Json, Order, Narrowing } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { EMPTY, type Session } from '../../kernel/session.ts'
import type { InboxWrite, OwnerWrite } from '../../ports/store.ts'
import { harnessId } from '../../stores/plan/store-ids.ts'
import type { Planner } from '../state/agent.ts'
import { ownerWrite } from './owner-write.ts'

/** Lookups about agents and the worker, for a commit that creates children. */
export type AgentFacts = {
  readonly plannerOf: (agent: string) => string
  readonly readerOf: (agent: string) => string | undefined
  /** How many characters of an agent's answer its parent reads. Absent: no own limit. */
  readonly charsMaxOf?: (agent: string) => number | undefined
  /** How an agent's planner says what a run without an answer had so far. */
  readonly unfinishedOf?: (agent: string) => Planner['describeUnfinished']
  /** The name of the model that answers in the open run of the session. */
  readonly modelName?: (session: Session) => string
  /** Whether this process drives a run of another child of this session. Other processes may drive more. */
  readonly isWorkingBelow?: (parent: string, but: string) => boolean
  /** The trace context of a call of this session: its child is in the same trace. */
  readonly traceOf: (call: CallKey) => string | undefined
  /** The bounds of whatever the session starts now, if its run or one above it was narrowed. */
  readonly within: (session: Session) => Narrowing | undefined
}
export type ChildContext = AgentFacts & { readonly at: number }

type OrderTerms = Pick<Order, 'task' | 'options' | 'fork' | 'folder' | 'owns'>

type ChildLinkOptions = { readonly detached?: true; readonly tells?: string; readonly handoff?: true }

export type NewChild = ChildContext & {
  readonly id: string
  readonly session: Session
  /** The call that the child works on, and the child's id. */
  readonly key: CallKey
  readonly born: string
  readonly order: OrderTerms & ChildLinkOptions & { readonly child: string }
  readonly task: string
}

export function createChild({
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
}: NewChild): readonly (OwnerWrite | InboxWrite)[] {
  const { root = id, depth = 0 } = session.parent ?? {}
  // A model can be told of a question and answer it; any other planner can only wait.
  const { detached, options, fork, handoff } = order
  // A child that was started in a worktree, or with paths of its own, starts its own children there, and with no more
  // than that.
  const above = session.parent === null ? {} : { folder: session.folder, owns: session.parent.owns }
  const { folder = above.folder, owns = order.folder === undefined ? above.owns : undefined } = order
  // A fork is the same agent: its requests begin with the bytes of its parent's.
  const child = fork ? session.agent : order.child
  const parks: { readonly parks?: true } = plannerOf(session.agent) === 'model' ? {} : { parks: true }
  const reader = readerOf(session.agent)
  // The answer of a handoff is the answer of the run, so it is never cut. Other answers are cut for a parent that can
  // read the rest.
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
    ...(fork || handoff ? { fork: { session: id, seq: forkSeq(session) } } : {}),
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
    id: harnessId('task'),
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

/** The text of a task, from the arguments of any of the tools. */
export function taskFromArgs(args: Json): string {
  const { task, prompt, context, message, answer } = args as Readonly<Record<string, Json | undefined>>
  const said = [task, prompt, message, answer].find((text) => typeof text === 'string')
  if (typeof said !== 'string') return JSON.stringify(args)
  return typeof context === 'string' && context.trim() !== '' ? `${said}\n\nContext:\n${context}` : said
}

/** The last event before the reply whose calls are open: a provider accepts no call without its result. */
function forkSeq({ run, seq }: Session): number {
  return run?.turn && run.turn.open.length > 0 ? run.turn.seq - 1 : seq
}
