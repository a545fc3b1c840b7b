// What scorers see of one trial. All of it is read from the logs of its session and of the sessions below it, so a
// recorded session can be scored like one that just ran. It drives nothing.
import type { CallKey, CallStatus, Frozen, Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { readChildren } from '../archive/replay-refold.ts'
import type { Harness } from '../harness.ts'
import type { CompleteStore } from '../ports/store.ts'
import { readTextBlob } from '../runtime/state/content-blobs.ts'
import type { Result } from '../runtime/state/run-result.ts'
import { countSpending } from '../runtime/state/run-usage.ts'
import { CallLog, contentOf, decisionsIn, type LoggedCall } from '../view/call-log.ts'
import { readLog } from '../view/session-log.ts'
import { usdOf } from '../view/usd.ts'
import type { EvalCase } from './eval-case.ts'

/** One call of the session or of one below it, as its model asked for it. */
export type TrialCall = Frozen<{
  /** The agents from the session down to the one that made the call: empty for a call of the session itself. */
  path: readonly string[]
  /** The session that made the call. */
  session: string
  /** The key of the call in that session. */
  callId: CallKey
  /** The name of the tool. */
  tool: string
  /** The arguments that it ran with, if a person changed them. */
  args: Json
  /** Null while it is open. */
  status: CallStatus | null
  /** Whether it was begun. A call that was refused or denied was not. */
  ran: boolean
  /** The person who allowed it. Null: nobody was asked, or nobody allowed it. */
  allowedBy: string | null
  /** What the model read as the result. Empty while the call is open. */
  content: string
}>

/** One run of the agent on one case, as scorers see it: its answer, calls, cost and whole log. */
export type Trial = Frozen<{
  /** The case that the agent worked on. */
  case: EvalCase
  /** Tells the trials of a case apart. */
  n: number
  /** The session of the trial. */
  session: string
  /** How its last run ended, or that it waits. */
  status: Result['status']
  /** The last answer as text, and as JSON where the agent has a form for it. */
  text: string
  /** The last answer as JSON: the same text where the agent has no form for it. Null if there is no answer. */
  output: Json
  /** Calls of children stand behind the call that started them. */
  calls: readonly TrialCall[]
  /** Replies of models, tokens and dollars, those of children included. */
  turns: number
  /** Input and output tokens, those of children included. */
  tokens: number
  /** What it cost with its children, in dollars. */
  usd: number
  /** From its first event to its last. */
  ms: number
}> & {
  /** The log of the session. */
  readonly events: readonly Event[]
  /** The logs of the sessions below it, by their ids. */
  readonly children: ReadonlyMap<string, readonly Event[]>
}

/** Where the logs of a trial are. `harness` only reads. */
export type TrialLogs = { readonly harness: Harness; readonly store: CompleteStore }

/** Null: there is nothing to score, because the session has no run that ended or waits. */
export async function readTrial(
  { harness, store }: TrialLogs,
  { of, n, session }: { readonly of: EvalCase; readonly n: number; readonly session: string },
  known?: Result,
): Promise<Trial | null> {
  const result = known ?? (await harness.session(session, { stored: true }).result())
  if (result === null) return null
  const events = await readLog(store, session)
  const children = await readChildren(store, session)
  const logs = [events, ...children.values()]
  const { usage, cost } = countSpending(logs.flat())
  return {
    case: of,
    n,
    session,
    status: result.status,
    text: result.text,
    output: 'output' in result ? (result.output ?? null) : null,
    calls: await readCalls(store, { session, events, path: [] }, children),
    turns: logs.flat().filter(({ type }) => type === 'agent.message').length,
    tokens: usage.inputTokens + usage.outputTokens,
    usd: usdOf(cost),
    ms: (events.at(-1)?.at ?? 0) - (events[0]?.at ?? 0),
    events,
    children,
  }
}

/** All calls so far of a session and of those below it, also while it is open. None if it is not there. */
export async function readTrialCalls(store: CompleteStore, session: string): Promise<readonly TrialCall[]> {
  if ((await store.card(session)) === null) return []
  const events = await readLog(store, session)
  return readCalls(store, { session, events, path: [] }, await readChildren(store, session))
}

type CallSource = { readonly session: string; readonly events: readonly Event[]; readonly path: readonly string[] }

async function readCalls(
  store: CompleteStore,
  { session, events, path }: CallSource,
  children: ReadonlyMap<string, readonly Event[]>,
): Promise<readonly TrialCall[]> {
  const log = new CallLog()
  for (const event of events) log.take(event)
  const decisions = decisionsIn(events)
  const below = childrenOf(session, children)
  const calls: TrialCall[] = []
  for (const call of log.all.filter(({ reply }) => reply.verdict.type === 'continue')) {
    const { decided = null } = decisions.get(call.key) ?? {}
    const allowedBy = decided?.allow ? decided.by : null
    calls.push(await trialCall(store, call, { session, path, allowedBy }))
    for (const child of below.filter((each) => each.call === call.key))
      calls.push(...(await readCalls(store, { ...child, path: [...path, child.agent] }, children)))
  }
  return calls
}

type ChildLog = Omit<CallSource, 'path'> & { readonly agent: string; readonly call: CallKey }

function childrenOf(session: string, children: ReadonlyMap<string, readonly Event[]>): readonly ChildLog[] {
  return [...children].flatMap(([id, events]) => {
    const [created] = events
    if (created?.type !== 'session.created' || created.parent?.session !== session) return []
    return [{ session: id, events, agent: created.agent, call: created.parent.call }]
  })
}

async function trialCall(
  store: CompleteStore,
  call: LoggedCall,
  of: Pick<TrialCall, 'session' | 'path' | 'allowedBy'>,
): Promise<TrialCall> {
  const { key, proposal, edit, intent, result } = call
  const stored = contentOf(call)
  const content = typeof stored === 'string' ? stored : ((await readTextBlob(store, stored.hash)) ?? '')
  const args = edit?.args ?? proposal.args
  return {
    ...of,
    callId: key,
    tool: proposal.tool,
    args,
    status: result?.status ?? null,
    ran: intent !== null,
    content,
  }
}
