// The last step of admission, over a whole reply: what is withdrawn near a limit, which child a call would open, and what hooks
// say of a reply and of calls that were refused. Its outcome is recorded with the reply, like all of admission.
import type { Allow, Gate, Json, Order, Part, Proposal, Verdict } from '../kernel/content.ts'
import type { AnswerGuard } from '../kernel/event.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import type { Reply } from '../ports/model.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { questionOf } from '../riders/children/tree.ts'
import type { FlightContext } from '../engine/flights.ts'
import { HookFailed, type Hooks } from '../riders/hooks/hooks.ts'
import { costOf, heldBack, inTime, LATE_WORD, WITHHELD } from './outcomes.ts'
import { tierAllows, tierRule } from '../sessions/tiers.ts'
import { SPAWN, SPAWN_MANY } from '../tools/agents/orders.ts'
import { usdOf } from '../view/usd.ts'
import { boundsBelow, isWithin } from './narrowing.ts'
import { aboutTool, type Tools } from './toolbox.ts'
import type { Agent, Services } from '../engine/wiring.ts'
import { shortened, textOf } from '../view/text.ts'

export type Admitting = {
  readonly services: Services
  readonly agent: Agent
  readonly cache: SessionCache
  readonly tools: Tools
  readonly allow: Allow
  /** A hook left only these tools for this request. */
  readonly only?: readonly string[] | undefined
  readonly flight: FlightContext
}
/** `nudge` is what the model is told after a reply that was not to be the last. */
export type Settled = {
  readonly calls: readonly Proposal[]
  readonly verdict: Verdict
  readonly nudge?: string
  /** What a hook made of the answer, and what the reply says in place of what the model said. */
  readonly guard?: AnswerGuard
  readonly parts?: readonly Part[]
}

/** A promise only if a hook or a rule must be asked: most harnesses have no hooks and no children, and this stands in every turn. */
export function admitted(
  admitting: Admitting,
  proposed: readonly Proposal[],
  verdict: Verdict,
  reply: Reply,
): Settled | Promise<Settled> {
  const { services, allow, only, tools } = admitting
  const left = only === undefined ? proposed : proposed.map((call) => narrowed(call, only))
  const calls = allow === 'all' ? left : left.map((call) => withdrawn(call, allow, tools))
  const looked = calls.some(({ gate }) => gate?.type === 'ask') ? calls.map(watched) : calls
  const plain = services.hooks === null && !looked.some(isForChildren)
  return plain ? { calls: looked, verdict } : asked(admitting, looked, verdict, reply)
}

/** It starts a child, or is for one that is there. */
export function isForChildren(call: Proposal): boolean {
  const { child, orders, awaits } = outsideOf(call) ?? {}
  return child !== undefined || orders !== undefined || awaits !== undefined
}

/** One call alone that a person will be asked about: which child it would open, and which hooks must allow it before it starts. */
export async function admittedAgain(admitting: Admitting, call: Proposal): Promise<Proposal> {
  const [placed = call] = await withRoom(admitting, [await prepared(admitting, watched(call))])
  return placed
}

async function asked(
  admitting: Admitting,
  proposed: readonly Proposal[],
  judged: Verdict,
  reply: Reply,
): Promise<Settled> {
  if (judged.type === 'final') {
    const settled =
      reply.calls.length === 0 ? await answered(admitting, judged, reply) : { calls: proposed, verdict: judged }
    return guarded(admitting, settled, reply)
  }
  const verdict = await mayGoOn(admitting, judged, reply)
  if (verdict.type !== 'continue') return { calls: proposed, verdict }
  const given = admitting.agent.children.length > 0 ? proposed.map((call) => answerable(admitting, call)) : proposed
  const calls = given.map((call, i) => prepared(admitting, call, reply.calls[i]?.args))
  return { calls: await withRoom(admitting, answeredOnce(await Promise.all(calls))), verdict }
}

/** A reply that would be the answer. A hook may want more; a hook that fails or hangs does not keep the answer back. */
async function answered(
  { services, agent, cache, flight }: Admitting,
  verdict: Verdict,
  reply: Reply,
): Promise<Settled> {
  const { hooks } = services
  const { requests = 0, limits = agent.limits } = cache.session.run ?? {}
  // With no request left this reply is the answer: no hook is asked.
  const last = requests + 1 >= limits.modelRequests
  if (last || agent.planner || !hooks?.has('continue_turn', agent.name)) return { calls: [], verdict }
  const text = textOf(reply.parts)
  const at = { ...cache.place, text }
  try {
    const asked = hooks.goesOn({ ...at, requests: requests + 1, requestsMax: limits.modelRequests })
    const nudge = await inTime(asked, flight, null, 'timeout')
    return nudge === null ? { calls: [], verdict } : { calls: [], verdict: { type: 'continue' }, nudge }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return { calls: [], verdict: strictly(error) }
  }
}

/** What is the answer is looked at last. A workflow gives its own answers: those of its agents were looked at there. */
async function guarded(admitting: Admitting, settled: Settled, reply: Reply): Promise<Settled> {
  const { services, agent } = admitting
  const { hooks } = services
  if (hooks === null || agent.planner !== null || settled.verdict.type !== 'final') return settled
  const agents = [agent.name, ...(admitting.cache.session.parent?.answersFor ?? [])]
  if (!agents.some((name) => hooks.has('before_answer', name))) return settled
  const { guardAnswer } = await import('./guard-answer.ts')
  return guardAnswer(admitting, settled, reply)
}

/** A strict hook that threw after a reply: the run ends there. */
export function strictly({ message }: HookFailed): Verdict {
  const failure = { kind: 'Failed', message } as const
  return { type: 'stop', reason: message, as: { type: 'failed', reason: 'hook_error', failure } }
}

const NO_WORD = 'A hook did not say in time whether the run may go on.'

/** What stop hooks say of a reply that would be followed by another request. */
async function mayGoOn(
  { services, agent, cache, flight }: Admitting,
  verdict: Verdict,
  reply: Reply,
): Promise<Verdict> {
  const ends = verdict.type === 'final' || verdict.type === 'stop' || verdict.type === 'unexpected'
  if (ends || !services.hooks?.has('stop', agent.name)) return verdict
  const { requests = 0, cost = 0, limits = agent.limits } = cache.session.run ?? {}
  const at = { ...cache.place, model: reply.route ?? agent.model.name }
  const all = cost + (costOf(reply) ?? 0)
  const spent = { requests: requests + 1, requestsMax: limits.modelRequests, cost: all, costUsd: usdOf(all) }
  try {
    const why = await inTime(services.hooks.stopped({ ...at, ...spent }), flight, NO_WORD, 'timeout')
    return why === null ? verdict : { type: 'stop', reason: why }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return strictly(error)
  }
}

async function prepared(admitting: Admitting, call: Proposal, raw = ''): Promise<Proposal> {
  const { services, agent } = admitting
  const placed = isForChildren(call) ? await placedChild(admitting, call) : call
  if (services.hooks === null) return placed
  const { hooks } = services
  if (placed.gate?.type === 'refuse') {
    const held = await heldUnfit(admitting, hooks, placed, raw)
    return held ?? rewritten(admitting, hooks, placed)
  }
  const asked =
    hooks.has('before_tool_call', agent.name, placed.tool) ||
    startedBy(placed).some((child) => hooks.has('before_subagent_run', child, placed.tool))
  return asked ? { ...placed, clear: true } : placed
}

/**
 * A hook may hold back a call whose arguments do not fit, too. Such a call uses no retry, and does not count as a call of the run.
 * Null if no hook holds it.
 */
async function heldUnfit(
  { agent, cache, flight, tools }: Admitting,
  hooks: Hooks,
  call: Proposal,
  raw: string,
): Promise<Proposal | null> {
  const { gate, id, tool, args } = call
  if (gate?.type !== 'refuse' || gate.retryKind === undefined) return null
  if (!hooks.has('before_tool_call', agent.name, tool)) return null
  const at = { ...cache.place, call: id, tool, args, about: aboutTool(tools, tool), raw }
  try {
    const asked = hooks.held('before_tool_call', at, () => flight.clear())
    const why = await inTime(asked, flight, LATE_WORD, 'timeout')
    if (why === null) return null
    const { failure, metadata } = heldBack(id, why, false)
    const held: Gate = { type: 'refuse', status: 'denied', failure: failure ?? gate.failure, metadata: metadata ?? {} }
    return { ...call, gate: held, clear: true }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return { ...call, gate: { ...gate, ends: error.message } }
  }
}

/** An approval may take days, and the other calls of the reply wait with it: the policy is asked again before each starts. */
function watched(call: Proposal): Proposal {
  return call.gate?.type === 'refuse' ? call : { ...call, clear: true }
}

/** The list of tools stays as it is, so that the provider's cache holds, and what a hook left out is refused here. */
function narrowed(call: Proposal, only: readonly string[]): Proposal {
  if (call.gate?.type === 'refuse' || only.includes(call.tool)) return call
  const left = only.length === 0 ? 'No tool could' : `Only these could: ${only.join(', ')}. This one could not`
  return refused(call, 'Denied', `${left} be used in the last request. It did not run.`)
}

/** Near a limit the list of tools stays as it is, and what is withdrawn is refused here. */
function withdrawn(call: Proposal, allow: Allow, tools: Tools): Proposal {
  if (call.gate?.type === 'refuse' || (allow === 'writers' && tools.get(call.tool)?.deliverable)) return call
  const what = allow === 'writers' ? 'Only tools that write the result are left' : 'No tool is left'
  return refused(call, 'Denied', `${what}: the run is near its limit. Finish with what you have.`)
}

/** The answer of a handoff counts as a request of this run. With none left after this reply it would be paid for and not given. */
function answerable({ cache, agent }: Admitting, call: Proposal): Proposal {
  const { requests = 0, limits = agent.limits } = cache.session.run ?? {}
  if (requests + 1 < limits.modelRequests || outsideOf(call)?.handoff !== true) return call
  return refused(call, 'Denied', 'Not handed over: no model request of this run is left for the answer.')
}

/** A call for a child names an agent that is there, and goes no deeper than it may; or it answers a child of its own. */
async function placedChild(admitting: Admitting, call: Proposal): Promise<Proposal> {
  const { services, cache } = admitting
  if (outsideOf(call)?.orders !== undefined) {
    const { placedOrders } = await import('./orders.ts')
    return placedOrders(admitting, call)
  }
  const { session } = call.args as { readonly session?: Json }
  if (typeof session === 'string' && session !== '') {
    const asked = await questionOf(services.store, cache.id, session)
    if (asked === null)
      return refused(
        call,
        'NotFound',
        `No subagent of yours waits for an answer in session "${shortened(session, 64)}".`,
      )
    if (!isWithin(asked.within, boundsBelow(cache)))
      return refused(call, 'Denied', `Subagent ${session} ${WIDER}`, { error_type: 'SubAgentHasMoreTools' })
    return gated(call, { type: 'outside', child: asked.agent, answers: { session, call: asked.call } })
  }
  return mayStart(admitting, call)
}

/** For a child that an earlier run started with tools that this run may not use. */
export const WIDER = 'was started with tools that this run may not use, so it takes nothing from it. Start another one.'

/** The agents that a call would start. */
export function startedBy(call: Proposal): readonly string[] {
  const { child, orders = [] } = outsideOf(call) ?? {}
  if (child !== undefined) return [child]
  return orders.flatMap((order) => (order.type === 'spawn' && order.child !== undefined ? [order.child] : []))
}

/** The call that would start a child, or refused: it was stopped, it goes too deep, or there is no such agent. */
export async function mayStart({ services, agent, cache }: Admitting, call: Proposal): Promise<Proposal> {
  const outside = outsideOf(call)
  if (cache.session.stop > 0) return refused(call, 'Denied', 'The run is being stopped. Nothing more is started.')
  // One that works on by itself is not waited for: its report opens a run of its own.
  const late = isBlocking(call) ? await lateText(services, cache) : null
  if (late !== null) return refused(call, 'Denied', late, { error_type: 'SpawnTooLate' })
  const most = cache.session.run?.limits.depth ?? 0
  const barred = barredStart({ services, agent, id: cache.id, parent: cache.session.parent, most }, outside?.child)
  if (barred !== null) {
    const { text, hint = '', as } = barred
    const about = as === undefined ? undefined : { error_type: as }
    return refused(call, as === UNKNOWN ? 'NotFound' : 'Denied', text + hint, about)
  }
  return call
}

/** The calls of a reply, without the children that the tree has no room for. Trees that grow at the same moment may pass the bound by a few. */
async function withRoom({ services, cache }: Admitting, calls: readonly Proposal[]): Promise<readonly Proposal[]> {
  const { run, parent } = cache.session
  const most = run?.limits.children
  if (most === undefined || !calls.some((call) => startedBy(call).length > 0)) return calls
  const { countBelow } = await import('../riders/children/status.ts')
  let room = most - (await countBelow(services.store, parent?.root ?? cache.id, most))
  return calls.map((call) => {
    const wanted = startedBy(call).length
    if (wanted <= room) {
      room -= wanted
      return call
    }
    const { orders } = outsideOf(call) ?? {}
    if (orders === undefined || orders.length === 1 || room <= 0)
      return refused(call, 'Denied', crowdedText(most), { error_type: 'TreeTooLarge' })
    const kept = orders.map((order): Order => {
      if (order.type !== 'spawn' || room-- > 0) return order
      return { type: 'none', decision: 'failed', why: crowdedText(most) }
    })
    return gated(call, { type: 'outside', orders: kept })
  })
}

function crowdedText(most: number): string {
  return `This tree of sessions may have ${most} subagents that are not closed, and has them. Do the task yourself, or close subagents that are done.`
}

type Starting = {
  readonly services: Pick<Services, 'agent'>
  readonly agent: Agent
  readonly id: string
  readonly parent: Session['parent']
  /** How deep children may be. */
  readonly most: number
}
/** `hint` is what a model does instead. */
type Barred = { readonly text: string; readonly hint?: string; readonly as?: string }
const UNKNOWN = 'UnknownSubAgent'
const YOURSELF = ' Do the task yourself.'

/** Why this session may not start this agent (depth, tier or list), for a model as for a host; null if it may. */
export function barredStart({ services, agent, id, parent, most }: Starting, child: string | undefined): Barred | null {
  const { depth = 0 } = parent ?? {}
  if (depth + 1 > most) {
    const text = `Subagents may be ${most} deep, and this is depth ${depth}.`
    return { text, hint: YOURSELF, as: 'SpawnDepthExceeded' }
  }
  if (id.length > PARENT_CHARS_MAX)
    return { text: 'The name of this session is too long for one below it.', hint: YOURSELF }
  if (child === undefined) return null
  const tier = agent.tier === undefined ? undefined : tierIn(services, child)
  if (agent.tier !== undefined && !tierAllows(agent.tier, tier)) {
    const text = `"${child}" is a ${tier} agent, and ${tierRule(agent.tier)}.`
    return { text, hint: ' Do the task yourself, or choose another.', as: 'SpawnTierRefused' }
  }
  if (agent.children.includes(child)) return null
  const listed =
    agent.children.length === 0 ? 'none can be started here' : `choose one of: ${agent.children.join(', ')}`
  return { text: `There is no agent "${shortened(child, 64)}"; ${listed}`, as: UNKNOWN }
}

/** Undefined for an agent that has no tier, or is not there: then the list refuses it. */
function tierIn({ agent }: Pick<Services, 'agent'>, name: string): Agent['tier'] {
  try {
    return agent(name).tier
  } catch {
    return undefined
  }
}

function isBlocking({ tool, args }: Proposal): boolean {
  const { blocking = false } = args as { readonly blocking?: Json }
  return blocking === true || (tool !== SPAWN && tool !== SPAWN_MANY)
}

/** Why no child is started any more: the slowest of this run took longer than what is left of its time. */
async function lateText({ store }: Services, { id, session }: SessionCache): Promise<string | null> {
  const { run } = session
  if (run === null || run.toolCalls === 0) return null
  const { slowestChild } = await import('./orders.ts')
  const slowest = await slowestChild(store, id, run.seq)
  const left = run.limits.activeMs - run.activeMs
  if (slowest <= left) return null
  return `This run has ${Math.ceil(left / 1_000)} s left, and its slowest subagent took ${Math.ceil(slowest / 1_000)} s. Finish with what you have.`
}

/** What stores take as a name has 512 characters, and a child's name begins with its parent's. */
const PARENT_CHARS_MAX = 440

/**
 * What the calls of one reply must not say of one child: two answers to its question, since it has one end to give; words beside its
 * close, which it would not read, and a wait, which would not end; and two births under one task key.
 */
function answeredOnce(calls: readonly Proposal[]): readonly Proposal[] {
  const orders = calls.flatMap((call) => outsideOf(call)?.orders ?? [])
  const closed = new Set(orders.flatMap(({ type, session }) => (type === 'close' ? session : [])))
  const taken = new Set<string>()
  return calls.map((call) => {
    const { answers, awaits, orders: [order] = [] } = outsideOf(call) ?? {}
    const to = order?.type === 'say' ? order.session : awaits
    if (to !== undefined && closed.has(to))
      return refused(
        call,
        'Denied',
        'Another call beside this one closes that subagent: it reads and reports nothing more.',
      )
    const answered = answers?.session ?? (order?.call === undefined ? undefined : order.session)
    const started = order?.type === 'spawn' && order.decision === 'spawned_new' ? order.task : undefined
    const once = answered ?? started
    if (once === undefined) return call
    if (taken.has(once)) return refused(call, 'Denied', answered === undefined ? SAME_TASK : SAME_QUESTION)
    taken.add(once)
    return call
  })
}

const SAME_QUESTION = 'Another call beside this one answers the same subagent. Give it one answer.'
const SAME_TASK =
  'Another call beside this one starts a subagent with the same task_key. Steer that one, or set "fresh".'

export function gated(call: Proposal, outside: Extract<Gate, { type: 'outside' }>): Proposal {
  return { ...call, gate: call.gate?.type === 'ask' ? { ...call.gate, outside } : outside }
}

export function refused(call: Proposal, kind: 'Denied' | 'NotFound', message: string, metadata?: Json): Proposal {
  const { digest: _digest, same: _same, clear: _clear, ...rest } = call
  const status = kind === 'Denied' ? ({ status: 'denied' } as const) : {}
  const about = metadata === undefined ? {} : { metadata }
  const gate: Gate = { type: 'refuse', ...status, failure: { kind, message }, ...about }
  return { ...rest, gate }
}

/** A call that the model must correct is a result that hooks see, like one that ran. They cannot change that it counts. */
async function rewritten({ cache, flight, tools }: Admitting, hooks: Hooks, call: Proposal): Promise<Proposal> {
  const { gate, tool, args } = call
  if (gate?.type !== 'refuse' || gate.retryKind === undefined) return call
  const metadata = (gate.metadata ?? {}) as Readonly<Record<string, Json>>
  const output = { ok: false, content: gate.failure.message, metadata }
  // The reply has no place in the log yet, so the call has no key; its provider's id stands for it.
  const at = { ...cache.place, call: call.id, tool, args, about: aboutTool(tools, tool), refused: true } as const
  try {
    const said = await inTime(hooks.rewritten(at, output), flight, WITHHELD, 'timeout')
    const failure = { ...gate.failure, message: said.content || gate.failure.kind }
    return { ...call, gate: { ...gate, failure, metadata: said.metadata } }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return { ...call, gate: { ...gate, ends: error.message } }
  }
}
