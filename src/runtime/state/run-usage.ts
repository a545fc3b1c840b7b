// Usage and cost of a run, counted from events: of its own session, and of the children that its calls started, at any
// depth. It reads logs and moves no money.
import type { CallKey, Frozen, Json, Usage } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { childId } from '../../view/ids.ts'
import type { Store } from '../../ports/store.ts'
import { usdOf } from '../../view/usd.ts'

/** Input tokens include those read from and written to a cache; output tokens include those spent on reasoning. */
export type UsageCounts = {
  inputTokens: number
  outputTokens: number
  cachedTokens: number
  cacheWriteTokens: number
  reasoningTokens: number
  modelRequests: number
  toolCalls: number
  cancelledToolCalls: number
  outputRetries: number
  toolRetries: Readonly<Record<string, number>>
}

/** `cost` is in millionths of a dollar. */
export type Spending = Frozen<{ usage: Frozen<UsageCounts>; cost: number }>

/** What something cost. */
export type Cost = Frozen<{
  /** In dollars, with the children below it. */
  usd: number
  /** In dollars, without those children. */
  ownUsd: number
  /** `usd` in millionths of a dollar, as the log counts it. */
  micros: number
}>

export function costOf(micros: number, ownMicros: number): Cost {
  return { usd: usdOf(micros), ownUsd: usdOf(ownMicros), micros }
}

const ZERO: UsageCounts = {
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  modelRequests: 0,
  toolCalls: 0,
  cancelledToolCalls: 0,
  outputRetries: 0,
  toolRetries: {},
}

type ReplyEvent = Extract<Event, { type: 'agent.message' }>

/** A call that only gives the answer is no call of a tool, and an invalid reply has none. */
export function countSpending(events: readonly Event[]): Spending {
  const counts = { ...ZERO }
  let calls: ReplyEvent['calls'] = []
  const retries: Record<string, number> = {}
  let cost = 0
  let corrected = false
  let batch = 0
  for (const event of events) {
    if ('cost' in event) cost += event.cost ?? 0
    if ('usage' in event) addUsage(counts, event.usage ?? null)
    if (event.type === 'agent.message') {
      counts.modelRequests += 1
      batch = event.verdict.type === 'continue' ? event.calls.length : 0
      counts.toolCalls += batch
      corrected = event.verdict.type === 'retry_tool_output' || event.verdict.type === 'retry_user_message'
      calls = event.calls
    } else if (event.type === 'run.settled' && event.outcome.type === 'limit' && event.outcome.limit === 'tool_calls') {
      // The batch was too large, so none of it ran.
      counts.toolCalls -= batch
    } else if (event.type === 'model.started' && corrected) {
      counts.outputRetries += 1
      corrected = false
    } else if (event.type === 'agent.tool_result') {
      if (event.retryKind !== undefined) {
        const { tool = '' } = calls[Number(event.call.slice(event.call.indexOf('.') + 1))] ?? {}
        retries[tool] = (retries[tool] ?? 0) + 1
      }
      if (isHeldBack(event)) {
        counts.cancelledToolCalls += 1
        counts.toolCalls -= 1
      }
    }
  }
  return { usage: { ...counts, toolRetries: retries }, cost }
}

/** The same count as the fold's: a call that was held back right before it started is not counted. */
const HELD_BACK = ['CancelledByHook', 'SubAgentCancelled', 'DeniedByPolicy']

function isHeldBack({ status, metadata }: Extract<Event, { type: 'agent.tool_result' }>): boolean {
  if (status !== 'denied' || metadata === undefined) return false
  const { error_type } = metadata as { readonly error_type?: Json }
  return typeof error_type === 'string' && HELD_BACK.includes(error_type)
}

function addUsage(counts: UsageCounts, usage: Usage | null): void {
  counts.inputTokens += usage?.inputTokens ?? 0
  counts.outputTokens += usage?.outputTokens ?? 0
  counts.cachedTokens += usage?.cachedTokens ?? 0
  counts.cacheWriteTokens += usage?.cacheWriteTokens ?? 0
  counts.reasoningTokens += usage?.reasoningTokens ?? 0
}

export function addSpending(one: Spending, other: Spending): Spending {
  const usage: UsageCounts = { ...one.usage }
  for (const [name, count] of Object.entries(other.usage)) {
    if (typeof count === 'number') usage[name as Exclude<keyof UsageCounts, 'toolRetries'>] += count
  }
  const retries: Record<string, number> = { ...one.usage.toolRetries }
  for (const [tool, count] of Object.entries(other.usage.toolRetries)) retries[tool] = (retries[tool] ?? 0) + count
  return { usage: { ...usage, toolRetries: retries }, cost: one.cost + other.cost }
}

/**
 * The spending of the children that these events started, and of those below them. Null if they started none: then
 * nothing is read.
 */
export async function countSpendingBelow(
  store: Pick<Store, 'read'>,
  session: string,
  events: readonly Event[],
): Promise<Spending | null> {
  let sum: Spending | null = null
  for (const { child, call } of startedChildren(session, events)) {
    const own = await readWorkForCall(store, child, session, call)
    const below = await countSpendingBelow(store, child, own)
    const spent = below === null ? countSpending(own) : addSpending(countSpending(own), below)
    sum = sum === null ? spent : addSpending(sum, spent)
  }
  return sum
}

type StartedChild = { readonly child: string; readonly call: CallKey }

/** The children that were started, or went on with an answer, and the call they work for since then. */
function startedChildren(session: string, events: readonly Event[]): readonly StartedChild[] {
  const started: StartedChild[] = []
  let calls: ReplyEvent['calls'] = []
  for (const event of events) {
    if (event.type === 'agent.message') calls = event.calls
    if (event.type !== 'agent.custom_tool_use') continue
    const { call } = event
    const proposal = calls[Number(call.slice(call.indexOf('.') + 1))]
    const { child, answers } = (proposal && outsideOf(proposal)) ?? {}
    if (answers) started.push({ child: answers.session, call })
    else if (child !== undefined) started.push({ child: childId(session, call), call })
  }
  return started
}

const PAGE = 1_000

/** The events of a child while it worked for this call: an answer to its question moves it to the call that answered. */
async function readWorkForCall(
  store: Pick<Store, 'read'>,
  child: string,
  parent: string,
  call: CallKey,
): Promise<readonly Event[]> {
  const events: Event[] = []
  let current: CallKey | null = null
  for (let after = 0; ; ) {
    const page = await store.read(child, after, PAGE).catch(emptyIfMissing)
    for (const event of page.events) {
      if (event.type === 'session.created') current = event.parent?.session === parent ? event.parent.call : null
      else if (event.type === 'user.custom_tool_result' && event.parent !== undefined) current = event.parent
      if (current === call) events.push(event)
    }
    if (page.events.length < PAGE) return events
    after += page.events.length
  }
}

/** An import may come without the children of its history. */
function emptyIfMissing(error: unknown): { readonly events: readonly Event[] } {
  if (error instanceof Fault && error.code === 'session_missing') return { events: [] }
  throw error
}
