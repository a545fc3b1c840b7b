// What a parent orders of its children, carried out in the commit that hands the call over: births, words, ends, and the call's result.
import type { CallKey, Json, Order } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { type Call, outsideOf } from '../../kernel/ledger.ts'
import type { Session } from '../../kernel/session.ts'
import { childId, ownId } from '../../stores/plan/id.ts'
import { type Family, openCall } from '../../engine/commit.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { birth, type Known, taskOf } from './birth.ts'

/** Each order as a birth, a word or an end. What is done here is on disk with the call's result, or not at all. */
export function commanded(
  family: Family,
  { id, session }: Pick<SessionCache, 'id' | 'session'>,
  { key, proposal }: Call,
  orders: readonly Order[],
  known: Known,
): void {
  orders.forEach((order, i) => {
    const { type, session: to = '', child } = order
    const task = taskOf(taskIn(proposal.args, i))
    const born = bornOf(id, key, orders, i)
    if (type === 'spawn' && child !== undefined)
      family.births.push(
        ...birth({ id, session, key, born, order: { ...order, child, detached: true }, task, ...known }),
      )
    else if (type === 'say') family.sends.push({ session: to, event: wordOf(id, key, order, task) })
    else if (type === 'close')
      family.sends.push({
        session: to,
        event: { type: 'user.interrupt', id: ownId('parent', 'close', key), mode: 'stop', closes: true },
      })
  })
}

/** One of several has a number of its own. */
function bornOf(id: string, key: CallKey, orders: readonly Order[], i: number): string {
  return childId(id, key, orders.length > 1 ? i : null)
}

function taskIn(args: Json, i: number): Json {
  const { tasks } = args as { readonly tasks?: readonly Json[] }
  return tasks?.[i] ?? args
}

/** What a parent says to a child that is there: the answer to its question, or a message. */
function wordOf(id: string, key: CallKey, { call, options, session: to = '' }: Order, text: string): InboxBody {
  const by = `session:${id}`
  if (call !== undefined)
    return { type: 'user.custom_tool_result', id: ownId('answer', call, key), call, ok: true, content: text, by }
  const parts = [{ type: 'text', text }] as const
  // A session that is no child of this one may be told by another under the same key.
  const named = to.startsWith(`${id}~`) ? ownId('task', key) : ownId('task', id, key)
  return { type: 'user.message', id: named, parts, when: 'next', by, ...(options ? { options } : {}) }
}

type Result = Extract<OwnerBody, { type: 'agent.tool_result' }>

/** The result of a call whose orders were carried out, or that waited for a report. */
export function carriedOut(id: string, session: Session, body: Result): Result {
  const call = body.status === 'ok' ? openCall(session, body.call) : undefined
  const { orders, awaits } = (call && outsideOf(call.proposal)) ?? {}
  if (!call || call.state.type !== 'outside' || (orders === undefined && awaits === undefined)) return body
  if (orders === undefined) return { ...body, content: waitedText(session, awaits ?? '') }
  const rows = orders.map((order, i) => rowOf(id, call, orders, order, i))
  const { tasks } = call.proposal.args as { readonly tasks?: Json }
  const [row] = rows
  return { ...body, content: typeof row === 'string' ? row : JSON.stringify(tasks === undefined ? row : rows) }
}

function waitedText({ inputs }: Session, awaits: string): string {
  const came = inputs.some(({ report }) => report?.by === `session:${awaits}`)
  if (came) return `Subagent ${awaits} has reported. Its report is in the message after this.`
  return `Subagent ${awaits} is still running. Its report comes as a message when it has ended: go on, or wait again.`
}

/** What the model reads of one order. */
function rowOf(id: string, { key }: Call, orders: readonly Order[], order: Order, i: number): Json {
  const { type, decision, why = '' } = order
  if (type === 'none') return decision === undefined ? why : { status: decision, error: why }
  const session = order.session ?? bornOf(id, key, orders, i)
  const row = { subagent_session_id: session, task_id: session.slice(id.length + 1) }
  if (decision !== undefined) return { ...row, decision, note: STARTED }
  return { ...row, status: type === 'close' ? 'closed' : 'told' }
}

const STARTED = 'It works on its own. Its report comes to you as a message.'
