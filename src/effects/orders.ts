// What a model orders of its subagents, made into orders that are carried out in the commit that hands the call over (riders/children).
// Whether an order can be carried out is found out here, so that the log has it with the reply. Loaded by the first such call.
import { hash } from 'node:crypto'
import { clockOf } from '../kernel/clock.ts'
import type { Json, Order, Proposal, Within } from '../kernel/content.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Card, Store } from '../ports/store.ts'
import { endedText } from '../riders/children/children.ts'
import { headOf, questionIn } from '../riders/children/tree.ts'
import { CHILD_PAGE, childrenBelow, childStatus } from '../riders/children/status.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { CLOSE, CONTINUE, FORK, LIST, SPAWN, SPAWN_MANY, STEER, TELL, WAIT, WAIT_SECS } from '../tools/agents/orders.ts'
import { LIKE_PARENT } from '../tools/agents/subagent.ts'
import { type Agent, barredModel } from '../engine/wiring.ts'
import { ToolFailure } from '../tools/core/output.ts'
import type { BaseRef } from '../tools/worktrees/worktree.ts'
import { shortened } from '../view/text.ts'
import { usdOf } from '../view/usd.ts'
import { type Admitting, gated, mayStart, refused, WIDER } from './admit-reply.ts'
import { boundsBelow, isWithin } from './narrowing.ts'

/** One task, as a model gives it. */
type Task = {
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
type Named = { readonly id: string; readonly timeout_secs?: number }

/** The call with its orders, or refused. */
export async function placedOrders(admitting: Admitting, call: Proposal): Promise<Proposal> {
  const { cache, services } = admitting
  const args = call.args as never
  switch (call.tool) {
    case SPAWN:
      return spawned(admitting, call, args)
    case SPAWN_MANY:
      return spawnedMany(admitting, call, (args as { readonly tasks: readonly Task[] }).tasks)
    case LIST:
      return ordered(call, [{ type: 'none', why: await listed(services.store, cache.id) }])
    case TELL: {
      const { session } = args as { readonly session: string }
      const gone = (await services.store.card(session)) === null
      return ordered(call, [gone ? { type: 'none', why: `There is no session ${session}.` } : { type: 'say', session }])
    }
    default: {
      const found = await ownChild(services.store, cache.id, (args as Named).id)
      if (found === null) return refused(call, 'NotFound', strangerText(args))
      return toChild(admitting, call, found).catch((error: unknown) => refusedBy(call, error))
    }
  }
}

/** What becomes of an order to one child that is there. */
async function toChild(admitting: Admitting, call: Proposal, card: Card): Promise<Proposal> {
  const { services, cache } = admitting
  const { session, agent } = card
  const status = childStatus(card)
  const head = await headOf(services.store, session)
  const gone = head.closed || head.closing === true
  if ((call.tool === STEER || call.tool === CONTINUE) && !isWithin(head.within, boundsBelow(cache)))
    return refused(call, 'Denied', `Subagent ${session} ${WIDER}`, { error_type: 'SubAgentHasMoreTools' })
  switch (call.tool) {
    case WAIT: {
      if (gone) return ordered(call, [{ type: 'none', why: closedText(session) }])
      if (status !== 'running') return ordered(call, [{ type: 'none', why: await endedText(services.store, session) }])
      const { timeout_secs: secs = WAIT_SECS } = call.args as Named
      const since = cache.now()
      return gated(call, { type: 'outside', awaits: session, since, until: since + secs * 1_000 })
    }
    case STEER:
      return gone ? refused(call, 'Denied', closedText(session)) : ordered(call, [{ type: 'say', session }])
    case CONTINUE: {
      if (gone) return refused(call, 'Denied', closedText(session))
      await inItsPlace(admitting, card)
      const asked = questionIn(head)
      if (asked && !head.parent?.detached)
        return gated(call, { type: 'outside', child: agent, answers: { session, call: asked.key } })
      return ordered(call, [{ type: 'say', session, ...(asked ? { call: asked.key } : {}) }])
    }
    case CLOSE:
      return gone
        ? ordered(call, [{ type: 'none', why: closedText(session) }])
        : ordered(call, [{ type: 'close', session }])
    default:
      throw new TypeError(`There is no order "${call.tool}" of session ${cache.id}.`)
  }
}

/** Why the child that an order is for cannot take it any more, if it was closed or answered since the call was made; else null. */
export async function tooLate(store: Store, call: Proposal): Promise<string | null> {
  const { orders = [], awaits } = outsideOf(call) ?? {}
  const told: Pick<Order, 'session' | 'call'>[] = orders.filter(({ type }) => type === 'say')
  if (awaits !== undefined) told.push({ session: awaits })
  for (const { session = '', call: question } of told) {
    const head = await headOf(store, session)
    if (head.closed || head.closing === true) return closedText(session)
    if (question !== undefined && questionIn(head)?.key !== question)
      return `Subagent ${session} does not wait for this answer any more. Call ${LIST} to see how it stands.`
  }
  return null
}

async function spawned(admitting: Admitting, call: Proposal, task: Task): Promise<Proposal> {
  const refusal = await refusedSpawn(admitting, call, task)
  if (refusal !== null) return refusal
  try {
    if (!task.blocking) return ordered(call, [await spawn(admitting, task)])
    const child = agentOf(task, admitting.agent)
    return gated(call, {
      type: 'outside',
      child,
      ...forkOf(task),
      ...(await optionsOf(admitting, task)),
      ...(await placeOf(admitting, task)),
    })
  } catch (error) {
    return refusedBy(call, error)
  }
}

/** What the engine of worktrees, or a toolkit that is not there, says of a task. */
function refusedBy(call: Proposal, error: unknown): Proposal {
  if (!(error instanceof ToolFailure)) throw error
  return refused(call, error.kind === 'NotFound' ? 'NotFound' : 'Denied', error.message, error.metadata)
}

async function spawnedMany(admitting: Admitting, call: Proposal, tasks: readonly Task[]): Promise<Proposal> {
  const barred = await Promise.all(tasks.map((task) => refusedSpawn(admitting, call, task)))
  const owned = await ownershipOf(admitting, tasks, barred)
  const orders: Order[] = []
  for (const [i, task] of tasks.entries()) {
    const own = owned[i] ?? {}
    const { gate } = barred[i] ?? {}
    if (gate?.type === 'refuse') orders.push(failedRow(gate.failure.message))
    else if ('refused' in own) orders.push(failedRow(own.refused))
    else orders.push(await spawn(admitting, task, own).catch((error: unknown) => failedBy(error)))
  }
  return ordered(call, orders)
}

function failedRow(why: string): Order {
  return { type: 'none', decision: 'failed', why }
}

function failedBy(error: unknown): Order {
  if (!(error instanceof ToolFailure)) throw error
  return failedRow(error.message)
}

/** The paths that each task may write. A task that cannot start anyway has none. */
async function ownershipOf(admitting: Admitting, tasks: readonly Task[], barred: readonly (Proposal | null)[]) {
  const { ownedBy } = await import('./child-place.ts')
  const writing = tasks.map((task, i) => {
    const { ownership, isolation } = task
    const apart = isolation === 'worktree'
    const child = agentOf(task, admitting.agent)
    return barred[i] ? null : { child, apart, ...(ownership ? { ownership } : {}) }
  })
  return ownedBy(admitting, writing)
}

/** The folder of a task that works apart from its parent. */
async function placeOf(admitting: Admitting, { isolation, base_ref: base }: Task): Promise<Pick<Order, 'folder'>> {
  if (isolation !== 'worktree') return {}
  const { newWorktree } = await import('./child-place.ts')
  return { folder: await newWorktree(admitting, base) }
}

/** What its runs have instead of what its agent has. */
async function optionsOf(admitting: Admitting, task: Task): Promise<Pick<Order, 'options'>> {
  const { model, toolkit, prompt } = task
  if (model === undefined && toolkit === undefined) return {}
  const chosen = model === undefined ? {} : { model }
  if (toolkit === undefined) return { options: chosen }
  const { toolkitFor } = await import('./child-place.ts')
  return { options: { ...chosen, tools: await toolkitFor(admitting, agentOf(task, admitting.agent), toolkit, prompt) } }
}

/** What keeps this task from starting a child; null if nothing does. */
async function refusedSpawn(admitting: Admitting, call: Proposal, task: Task): Promise<Proposal | null> {
  const barred = task.model === undefined ? null : barredModel(admitting.services, task.model)
  if (barred !== null) return refused(call, 'NotFound', barred, { error_type: 'UnknownModel' })
  const asked = gated(call, { type: 'outside', child: agentOf(task, admitting.agent) })
  const placed = await mayStart(admitting, asked)
  return placed.gate?.type === 'refuse' ? placed : null
}

/** The child that is found again, or a new one. */
async function spawn(admitting: Admitting, task: Task, own: Pick<Order, 'owns'> = {}): Promise<Order> {
  const { services, cache, agent } = admitting
  const child = agentOf(task, agent)
  const { task_key: key, fresh = false } = task
  const options = await optionsOf(admitting, task)
  const name = key === undefined ? {} : { task: taskName(key, selectorOf(task, child)) }
  const bounds = boundsBelow(cache)
  const again = fresh || name.task === undefined ? null : await reusable(services.store, cache.id, name.task, bounds)
  if (again === null) {
    const decision = fresh && key !== undefined ? 'forced_fresh' : 'spawned_new'
    const place = await placeOf(admitting, task)
    return { type: 'spawn', child, ...name, decision, ...options, ...forkOf(task), ...own, ...place }
  }
  await inItsPlace(admitting, again)
  const decision = childStatus(again) === 'running' ? 'reused_running' : 'reused_idle'
  return { type: 'say', session: again.session, child, decision, ...(decision === 'reused_idle' ? options : {}) }
}

async function inItsPlace(admitting: Admitting, card: Card): Promise<void> {
  if (card.folder === undefined) return
  const { restored } = await import('./child-place.ts')
  await restored(admitting, card)
}

function forkOf({ agent_id: named }: Task): Pick<Order, 'fork'> {
  return named === FORK ? { fork: true } : {}
}

/** All of this must be equal for a child to be used again, beside its parent. */
function selectorOf({ toolkit = '', model = '', isolation }: Task, agent: string): Json {
  return { agent, toolkit, model, ...(isolation === 'worktree' ? { isolation } : {}) }
}

const KEY_CHARS_MAX = 96
const HASH_CHARS = 12

/** A task key as a name: letters, digits and dashes, and what tells it from others that read the same. */
export function taskName(key: string, selector: Json): string {
  const slug = key
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, KEY_CHARS_MAX)
    .replace(/\p{Cs}/gu, '')
  return `${slug}#${hash('sha256', canonicalJson({ key, selector })).slice(0, HASH_CHARS)}`
}

/** The newest that works or rests, and has no tool that these bounds leave out. */
export async function reusable(store: Store, parent: string, task: string, bounds?: Within): Promise<Card | null> {
  let newest: Card | null = null
  for await (const card of childrenBelow(store, parent)) {
    const status = childStatus(card)
    const fits = card.task === task && (status === 'running' || status === 'idle')
    if (!fits || (newest !== null && card.at < newest.at)) continue
    const { closing, within } = await headOf(store, card.session)
    if (!closing && isWithin(within, bounds)) newest = card
  }
  return newest
}

function agentOf({ agent_id: named }: Task, agent: Agent): string {
  return namedBy(agent, named)
}

/** One like itself, unless another is named. Whether it may be started is checked by `barredStart`. */
export function namedBy({ name, children }: Agent, named: string | undefined): string {
  const like = children.includes(name) ? name : LIKE_PARENT
  return named === undefined || named === FORK || named === 'default' ? like : named
}

/** By its session id, or by the id of its task: the call that started it. Null for what is no child of this parent. */
async function ownChild(store: Store, parent: string, id: string): Promise<Card | null> {
  const session = id.startsWith(`${parent}~`) ? id : `${parent}~${id}`
  const card = await store.card(session)
  return card?.parent === parent ? card : null
}

async function listed(store: Store, parent: string): Promise<string> {
  const rows: Json[] = []
  for await (const card of childrenBelow(store, parent)) {
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

/** How long the slowest child of this run took, from its order to its answer or report. */
export async function slowestChild(store: Store, id: string, began: number): Promise<number> {
  const handed = new Map<string, number>()
  let slowest = 0
  for (let after = began; ; ) {
    const { events } = await store.read(id, after, LOG_PAGE)
    for (const event of events) {
      if (event.type === 'agent.custom_tool_use') handed.set(event.call, clockOf(event))
      const from =
        'by' in event && (event.by?.startsWith(`session:${id}~`) ?? false) ? event.by?.split('~').at(-1) : null
      const [, key = ''] = /^(\d+\.\d+)/.exec(from ?? '') ?? []
      const since = handed.get(key)
      if (since !== undefined) slowest = Math.max(slowest, clockOf(event) - since)
    }
    const last = events.at(-1)
    if (last === undefined || events.length < LOG_PAGE) return slowest
    after = last.seq
  }
}
const LOG_PAGE = 1_000

function ordered(call: Proposal, orders: readonly Order[]): Proposal {
  return gated(call, { type: 'outside', orders })
}

function strangerText({ id }: { readonly id: string }): string {
  return `You have no subagent "${shortened(id, 64)}". Call ${LIST} to see yours.`
}

function closedText(session: string): string {
  return `Subagent ${session} is closed. Start another with ${SPAWN}.`
}
