// Orders of a parent to its children, carried out in the commit that hands the call over: new children, messages,
// closes, and the call's result.
import type { CallKey, Json, Order } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { type Call, outsideOf } from '../../kernel/ledger.ts'
import type { Session } from '../../kernel/session.ts'
import { harnessId } from '../../stores/plan/store-ids.ts'
import { childId } from '../../view/ids.ts'
import { openCall } from '../../kernel/landing.ts'
import type { CommitDraft } from './commit-draft.ts'
import { createChild, type ChildContext, taskFromArgs } from './create-child.ts'

/**
 * Carries out each order: creates a child, sends a message, or closes a child. All of it is on disk with the call's
 * result, or none of it.
 */
export function carryOutOrders(
  draft: CommitDraft,
  { key, proposal }: Call,
  orders: readonly Order[],
  known: ChildContext,
): void {
  const { id, session } = draft
  const { births, sends } = draft.writesForRelatives()
  orders.forEach((order, i) => {
    const { type, session: to = '', child } = order
    const task = taskFromArgs(taskArgs(proposal.args, i))
    const born = orderedChildId(id, key, orders, i)
    if (type === 'spawn' && child !== undefined)
      births.push(
        ...createChild({ id, session, key, born, order: { ...order, child, detached: true }, task, ...known }),
      )
    else if (type === 'say') sends.push({ session: to, event: buildChildMessage(id, key, order, task) })
    else if (type === 'close')
      sends.push({
        session: to,
        event: { type: 'user.interrupt', id: harnessId('parent', 'close', key), mode: 'stop', closes: true },
      })
  })
}

/** If a call has several orders, each child's id contains the position of its order. */
function orderedChildId(id: string, key: CallKey, orders: readonly Order[], i: number): string {
  return childId(id, key, orders.length > 1 ? i : null)
}

function taskArgs(args: Json, i: number): Json {
  const { tasks } = args as { readonly tasks?: readonly Json[] }
  return tasks?.[i] ?? args
}

/** The message of a parent to an existing child: the answer to its question, or a task. */
function buildChildMessage(
  id: string,
  key: CallKey,
  { call, options, session: to = '' }: Order,
  text: string,
): InboxBody {
  const by = `session:${id}`
  if (call !== undefined)
    return { type: 'user.custom_tool_result', id: harnessId('answer', call, key), call, ok: true, content: text, by }
  const parts = [{ type: 'text', text }] as const
  // A session that is no child of this one may get a message from another session under the same key.
  const named = to.startsWith(`${id}~`) ? harnessId('task', key) : harnessId('task', id, key)
  return { type: 'user.message', id: named, parts, when: 'next', by, ...(options ? { options } : {}) }
}

type ToolResultBody = Extract<OwnerBody, { type: 'agent.tool_result' }>

/** The result of a call whose orders were carried out, or that waited for a report. */
export function orderResult(id: string, session: Session, body: ToolResultBody): ToolResultBody {
  const call = body.status === 'ok' ? openCall(session, body.call) : undefined
  const { orders, awaits } = (call && outsideOf(call.proposal)) ?? {}
  if (!call || call.state.type !== 'outside' || (orders === undefined && awaits === undefined)) return body
  if (orders === undefined) return { ...body, content: awaitedReportText(session, awaits ?? '') }
  const rows = orders.map((order, i) => orderRow(id, call, orders, order, i))
  const { tasks } = call.proposal.args as { readonly tasks?: Json }
  const [row] = rows
  return { ...body, content: typeof row === 'string' ? row : JSON.stringify(tasks === undefined ? row : rows) }
}

function awaitedReportText({ inputs }: Session, awaits: string): string {
  const came = inputs.some(({ report }) => report?.by === `session:${awaits}`)
  if (came) return `Subagent ${awaits} has reported. Its report is in the message after this.`
  return `Subagent ${awaits} is still running. Its report comes as a message when it has ended: go on, or wait again.`
}

/** The result of one order, for the model. */
function orderRow(id: string, { key }: Call, orders: readonly Order[], order: Order, i: number): Json {
  const { type, decision, why = '' } = order
  if (type === 'none') return decision === undefined ? why : { status: decision, error: why }
  const session = order.session ?? orderedChildId(id, key, orders, i)
  const row = { subagent_session_id: session, task_id: session.slice(id.length + 1) }
  if (decision !== undefined) return { ...row, decision, note: STARTED }
  return { ...row, status: type === 'close' ? 'closed' : 'told' }
}

const STARTED = 'It works on its own. Its report comes to you as a message.'
