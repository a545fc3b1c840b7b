// Turns calls that address subagents into orders. The commit that hands the call over carries them out. Whether an
// order is possible is found out here, so that the log has it with the reply. Loaded by the first such call.
import { hash } from 'node:crypto'
import type { Json, Order, Proposal, Narrowing } from '../../kernel/content.ts'
import type { Card, CompleteStore } from '../../ports/store.ts'
import { restingChildText } from './parent-messages.ts'
import { readSessionHead, findOutsideQuestion } from '../state/session-tree.ts'
import { CHILD_PAGE, listChildren, childStatus, childClosedText } from '../state/children-below.ts'
import { canonicalJson } from '../../tools/core/canonical-json.ts'
import {
  CLOSE,
  CONTINUE,
  FORK,
  LIST,
  SPAWN,
  SPAWN_MANY,
  STEER,
  TELL,
  WAIT,
  WAIT_SECS,
} from '../../tools/agents/order-tools.ts'
import { LIKE_PARENT } from '../../tools/agents/subagent.ts'
import { whyModelRefused } from '../state/runtime-ports.ts'
import type { Agent } from '../state/agent.ts'
import { ToolFailure } from '../../tools/core/tool-output.ts'
import type { BaseRef } from '../../tools/worktrees/worktree.ts'
import { shortenText } from '../../view/shown-text.ts'
import { usdOf } from '../../view/usd.ts'
import { type ReplyAdmission, setOutsideGate, admitChildStart, refuseCall, WIDER } from './admit-reply.ts'
import { boundsForChildren, isWithinBounds } from './narrowing.ts'

/** A task with the argument names that a model uses. */
type ChildTask = {
  readonly agent_id?: string
  readonly prompt: string
  readonly context?: string
  readonly toolkit?: string
  readonly model?: string
  readonly blocking?: boolean
  readonly task_key?: string
  readonly fresh?: boolean
  readonly isolation?: 'none' | 'worktree'
  readonly base_ref?: BaseRef
  readonly ownership?: readonly string[]
}
type NamedChild = { readonly id: string; readonly timeout_secs?: number }

/** Returns the call with its orders, or refuses it. */
export async function planOrders(admitting: ReplyAdmission, call: Proposal): Promise<Proposal> {
  const { cache, services } = admitting
  const args = call.args as never
  switch (call.tool) {
    case SPAWN:
      return planSpawn(admitting, call, args)
    case SPAWN_MANY:
      return planSpawnMany(admitting, call, (args as { readonly tasks: readonly ChildTask[] }).tasks)
    case LIST:
      return gateOrders(call, [{ type: 'none', why: await listChildrenText(services.store, cache.id) }])
    case TELL: {
      const { session } = args as { readonly session: string }
      const gone = (await services.store.card(session)) === null
      return gateOrders(call, [
        gone ? { type: 'none', why: `There is no session ${session}.` } : { type: 'say', session },
      ])
    }
    default: {
      const found = await findOwnChild(services.store, cache.id, (args as NamedChild).id)
      if (found === null) return refuseCall(call, 'NotFound', notYourChildText(args))
      return planChildOrder(admitting, call, found).catch((error: unknown) => refuseForFailure(call, error))
    }
  }
}

/** Plans an order to one existing child. */
async function planChildOrder(admitting: ReplyAdmission, call: Proposal, card: Card): Promise<Proposal> {
  const { services, cache } = admitting
  const { session, agent } = card
  const status = childStatus(card)
  const head = await readSessionHead(services.store, session)
  const gone = head.closed || head.closing === true
  if ((call.tool === STEER || call.tool === CONTINUE) && !isWithinBounds(head.within, boundsForChildren(cache)))
    return refuseCall(call, 'Denied', `Subagent ${session} ${WIDER}`, { error_type: 'SubAgentHasMoreTools' })
  switch (call.tool) {
    case WAIT: {
      if (gone) return gateOrders(call, [{ type: 'none', why: childClosedText(session) }])
      if (status !== 'running')
        return gateOrders(call, [{ type: 'none', why: await restingChildText(services.store, session) }])
      const { timeout_secs: secs = WAIT_SECS } = call.args as NamedChild
      const since = cache.now()
      return setOutsideGate(call, { type: 'outside', awaits: session, since, until: since + secs * 1_000 })
    }
    case STEER:
      return gone ? refuseCall(call, 'Denied', childClosedText(session)) : gateOrders(call, [{ type: 'say', session }])
    case CONTINUE: {
      if (gone) return refuseCall(call, 'Denied', childClosedText(session))
      await restoreFolder(admitting, card)
      const asked = findOutsideQuestion(head)
      if (asked && !head.parent?.detached)
        return setOutsideGate(call, { type: 'outside', child: agent, answers: { session, call: asked.key } })
      return gateOrders(call, [{ type: 'say', session, ...(asked ? { call: asked.key } : {}) }])
    }
    case CLOSE:
      return gone
        ? gateOrders(call, [{ type: 'none', why: childClosedText(session) }])
        : gateOrders(call, [{ type: 'close', session }])
    default:
      throw new TypeError(`There is no order "${call.tool}" of session ${cache.id}.`)
  }
}

async function planSpawn(admitting: ReplyAdmission, call: Proposal, task: ChildTask): Promise<Proposal> {
  const refusal = await refuseSpawn(admitting, call, task)
  if (refusal !== null) return refusal
  try {
    if (!task.blocking) return gateOrders(call, [await buildSpawnOrder(admitting, task)])
    const child = taskAgent(task, admitting.agent)
    return setOutsideGate(call, {
      type: 'outside',
      child,
      ...forkField(task),
      ...(await taskOptions(admitting, task)),
      ...(await makeTaskFolder(admitting, task)),
    })
  } catch (error) {
    return refuseForFailure(call, error)
  }
}

/** Turns a failure of the worktree code, or a missing toolkit, into a refusal of the call. */
function refuseForFailure(call: Proposal, error: unknown): Proposal {
  if (!(error instanceof ToolFailure)) throw error
  return refuseCall(call, error.kind === 'NotFound' ? 'NotFound' : 'Denied', error.message, error.metadata)
}

async function planSpawnMany(
  admitting: ReplyAdmission,
  call: Proposal,
  tasks: readonly ChildTask[],
): Promise<Proposal> {
  const barred = await Promise.all(tasks.map((task) => refuseSpawn(admitting, call, task)))
  const owned = await assignOwnership(admitting, tasks, barred)
  const orders: Order[] = []
  for (const [i, task] of tasks.entries()) {
    const own = owned[i] ?? {}
    const { gate } = barred[i] ?? {}
    if (gate?.type === 'refuse') orders.push(failedOrder(gate.failure.message))
    else if ('refused' in own) orders.push(failedOrder(own.refused))
    else orders.push(await buildSpawnOrder(admitting, task, own).catch((error: unknown) => orderFromFailure(error)))
  }
  return gateOrders(call, orders)
}

function failedOrder(why: string): Order {
  return { type: 'none', decision: 'failed', why }
}

function orderFromFailure(error: unknown): Order {
  if (!(error instanceof ToolFailure)) throw error
  return failedOrder(error.message)
}

/** The paths that each task may write. A task that cannot start anyway owns none. */
async function assignOwnership(
  admitting: ReplyAdmission,
  tasks: readonly ChildTask[],
  barred: readonly (Proposal | null)[],
) {
  const { assignOwnedPaths } = await import('./child-place.ts')
  const writing = tasks.map((task, i) => {
    const { ownership, isolation } = task
    const apart = isolation === 'worktree'
    const child = taskAgent(task, admitting.agent)
    return barred[i] ? null : { child, apart, ...(ownership ? { ownership } : {}) }
  })
  return assignOwnedPaths(admitting, writing)
}

/** Makes the worktree of a task that works apart from its parent. */
async function makeTaskFolder(
  admitting: ReplyAdmission,
  { isolation, base_ref: base }: ChildTask,
): Promise<Pick<Order, 'folder'>> {
  if (isolation !== 'worktree') return {}
  const { services, cache } = admitting
  const { place } = services.worktrees ?? {}
  const { folder } = cache.session
  if (place && folder !== undefined) return { folder: place(folder) }
  const { createChildWorktree } = await import('./child-place.ts')
  return { folder: await createChildWorktree(admitting, base) }
}

/** The options of the child's runs that replace those of its agent. */
async function taskOptions(admitting: ReplyAdmission, task: ChildTask): Promise<Pick<Order, 'options'>> {
  const { model, toolkit, prompt } = task
  if (model === undefined && toolkit === undefined) return {}
  const chosen = model === undefined ? {} : { model }
  if (toolkit === undefined) return { options: chosen }
  const { pickToolkitTools } = await import('./child-place.ts')
  return {
    options: { ...chosen, tools: await pickToolkitTools(admitting, taskAgent(task, admitting.agent), toolkit, prompt) },
  }
}

/** Refuses the call if this task must not start a child; null if it may. */
async function refuseSpawn(admitting: ReplyAdmission, call: Proposal, task: ChildTask): Promise<Proposal | null> {
  const barred = task.model === undefined ? null : whyModelRefused(admitting.services, task.model)
  if (barred !== null) return refuseCall(call, 'NotFound', barred, { error_type: 'UnknownModel' })
  const asked = setOutsideGate(call, { type: 'outside', child: taskAgent(task, admitting.agent) })
  const placed = await admitChildStart(admitting, asked)
  return placed.gate?.type === 'refuse' ? placed : null
}

/** Reuses a child with the same task key, or orders a new one. */
async function buildSpawnOrder(
  admitting: ReplyAdmission,
  task: ChildTask,
  own: Pick<Order, 'owns'> = {},
): Promise<Order> {
  const { services, cache, agent } = admitting
  const child = taskAgent(task, agent)
  const { task_key: key, fresh = false } = task
  const options = await taskOptions(admitting, task)
  const name = key === undefined ? {} : { task: taskName(key, taskSelector(task, child)) }
  const bounds = boundsForChildren(cache)
  const again =
    fresh || name.task === undefined ? null : await findReusableChild(services.store, cache.id, name.task, bounds)
  if (again === null) {
    const decision = fresh && key !== undefined ? 'forced_fresh' : 'spawned_new'
    const place = await makeTaskFolder(admitting, task)
    return { type: 'spawn', child, ...name, decision, ...options, ...forkField(task), ...own, ...place }
  }
  await restoreFolder(admitting, again)
  const decision = childStatus(again) === 'running' ? 'reused_running' : 'reused_idle'
  return { type: 'say', session: again.session, child, decision, ...(decision === 'reused_idle' ? options : {}) }
}

async function restoreFolder(admitting: ReplyAdmission, card: Card): Promise<void> {
  if (card.folder === undefined || admitting.services.worktrees?.place) return
  const { restoreChildWorktree } = await import('./child-place.ts')
  await restoreChildWorktree(admitting, card)
}

function forkField({ agent_id: named }: ChildTask): Pick<Order, 'fork'> {
  return named === FORK ? { fork: true } : {}
}

/** Beside the parent, all of these must be equal for a child to be reused. */
function taskSelector({ toolkit = '', model = '', isolation }: ChildTask, agent: string): Json {
  return { agent, toolkit, model, ...(isolation === 'worktree' ? { isolation } : {}) }
}

const KEY_CHARS_MAX = 96
const HASH_CHARS = 12

/** A task key as a name: letters, digits and dashes, with a hash that tells apart keys that read the same. */
export function taskName(key: string, selector: Json): string {
  const slug = key
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, KEY_CHARS_MAX)
    .replace(/\p{Cs}/gu, '')
  return `${slug}#${hash('sha256', canonicalJson({ key, selector })).slice(0, HASH_CHARS)}`
}

/** The newest running or idle child whose tools are all within these bounds. */
export async function findReusableChild(
  store: CompleteStore,
  parent: string,
  task: string,
  bounds?: Narrowing,
): Promise<Card | null> {
  let newest: Card | null = null
  for await (const card of listChildren(store, parent)) {
    const status = childStatus(card)
    const fits = card.task === task && (status === 'running' || status === 'idle')
    if (!fits || (newest !== null && card.at < newest.at)) continue
    const { closing, within } = await readSessionHead(store, card.session)
    if (!closing && isWithinBounds(within, bounds)) newest = card
  }
  return newest
}

function taskAgent({ agent_id: named }: ChildTask, agent: Agent): string {
  return childAgentName(agent, named)
}

/** An agent like the parent, unless another is named. `whyNoChild` checks whether it may be started. */
export function childAgentName({ name, children }: Agent, named: string | undefined): string {
  const like = children.includes(name) ? name : LIKE_PARENT
  return named === undefined || named === FORK || named === 'default' ? like : named
}

/**
 * Finds a child by its session id, or by the id of its task: the key of the call that started it. Null if it is not a
 * child of this parent.
 */
async function findOwnChild(store: CompleteStore, parent: string, id: string): Promise<Card | null> {
  const session = id.startsWith(`${parent}~`) ? id : `${parent}~${id}`
  const card = await store.card(session)
  return card?.parent === parent ? card : null
}

async function listChildrenText(store: CompleteStore, parent: string): Promise<string> {
  const rows: Json[] = []
  for await (const card of listChildren(store, parent)) {
    if (rows.length === CHILD_PAGE) break
    const { session, agent, task, cost } = card
    rows.push({
      subagent_session_id: session,
      task_id: session.slice(parent.length + 1),
      agent_id: agent,
      status: childStatus(card),
      ...(task === undefined ? {} : { task_key: task.slice(0, task.lastIndexOf('#')) }),
      cost_usd: usdOf(cost),
    })
  }
  return JSON.stringify(rows)
}

function gateOrders(call: Proposal, orders: readonly Order[]): Proposal {
  return setOutsideGate(call, { type: 'outside', orders })
}

function notYourChildText({ id }: { readonly id: string }): string {
  return `You have no subagent "${shortenText(id, 64)}". Call ${LIST} to see yours.`
}
