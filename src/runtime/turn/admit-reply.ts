// The last step of admission looks at a whole reply: calls withdrawn near a limit, the child that a call would open,
// and the verdicts of hooks on the reply and on refused calls. The outcome is recorded with the reply.
import type { Allow, Gate, Json, Order, Part, Proposal, Verdict } from '../../kernel/content.ts'
import type { AnswerGuard } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import type { Session } from '../../kernel/session.ts'
import type { Reply } from '../../ports/model.ts'
import type { SessionCache } from '../state/session-cache.ts'
import { findChildQuestion } from '../state/session-tree.ts'
import type { FlightContext } from '../state/effect.ts'
import { HookFailed } from '../hooks/hooks.ts'
import type { RunHooks } from '../state/hook-events.ts'
import { validCost, heldBackResult, raceDeadline, LATE_WORD, WITHHELD, hookErrorVerdict } from './landings.ts'
import { tierAllows, tierRule } from '../state/model-tiers.ts'
import { SPAWN, SPAWN_MANY } from '../../tools/agents/order-tools.ts'
import { usdOf } from '../../view/usd.ts'
import { boundsForChildren, isWithinBounds } from './narrowing.ts'
import { countOpenBelow, slowestChildMs } from '../state/children-below.ts'
import { aboutTool, type Tools } from '../state/toolbox.ts'
import type { Services } from '../state/runtime-ports.ts'
import type { Agent } from '../state/agent.ts'
import { shortenText, textOf } from '../../view/shown-text.ts'

export type ReplyAdmission = {
  readonly services: Services
  readonly agent: Agent
  readonly cache: SessionCache
  readonly tools: Tools
  readonly allow: Allow
  /** A hook left only these tools for this request. */
  readonly only?: readonly string[] | undefined
  readonly flight: FlightContext
}
/** The model reads `nudge` when a hook says that its reply must not be the last. */
export type AdmittedReply = {
  readonly calls: readonly Proposal[]
  readonly verdict: Verdict
  readonly nudge?: string
  /** A hook's decision on the answer, and the parts that replace the model's own in the log. */
  readonly guard?: AnswerGuard
  readonly parts?: readonly Part[]
}

/** Refuses the calls that are withdrawn in this request, and marks those that a person will be asked about. */
export function refuseEarly(
  { allow, only, tools }: ReplyAdmission,
  proposed: readonly Proposal[],
): readonly Proposal[] {
  const left = only === undefined ? proposed : proposed.map((call) => refuseLeftOut(call, only))
  const calls = allow === 'all' ? left : left.map((call) => refuseWithdrawn(call, allow, tools))
  return calls.some(({ gate }) => gate?.type === 'ask') ? calls.map(requireClear) : calls
}

/** Whether a hook or a rule on children must be asked. Most harnesses have neither, and this runs in every turn. */
export function needsChecks({ services }: ReplyAdmission, calls: readonly Proposal[]): boolean {
  return services.hooks !== null || calls.some(isForChildren)
}

/** The call starts a child, or is addressed to an existing one. */
export function isForChildren(call: Proposal): boolean {
  const { child, orders, awaits } = outsideOf(call) ?? {}
  return child !== undefined || orders !== undefined || awaits !== undefined
}

/**
 * Admits one call that a person will be asked about: finds the child it would open, and marks it for the hooks that
 * must allow it before it starts.
 */
export async function readmitCall(admitting: ReplyAdmission, call: Proposal): Promise<Proposal> {
  const [placed = call] = await limitTreeSize(admitting, [await prepareCall(admitting, requireClear(call))])
  return placed
}

export async function admitWithChecks(
  admitting: ReplyAdmission,
  proposed: readonly Proposal[],
  judged: Verdict,
  reply: Reply,
): Promise<AdmittedReply> {
  if (judged.type === 'final') {
    const settled =
      reply.calls.length === 0 ? await askContinueHooks(admitting, judged, reply) : { calls: proposed, verdict: judged }
    return guardFinalAnswer(admitting, settled, reply)
  }
  const verdict = await askStopHooks(admitting, judged, reply)
  if (verdict.type !== 'continue') return { calls: proposed, verdict }
  const given =
    admitting.agent.children.length > 0 ? proposed.map((call) => refuseLateHandoff(admitting, call)) : proposed
  const calls = given.map((call, i) => prepareCall(admitting, call, reply.calls[i]?.args))
  return { calls: await limitTreeSize(admitting, refuseConflictingCalls(await Promise.all(calls))), verdict }
}

/**
 * The reply would be the final answer. A hook may ask for more. A hook that fails or hangs does not hold the answer
 * back, unless it is strict.
 */
async function askContinueHooks(
  { services, agent, cache, flight }: ReplyAdmission,
  verdict: Verdict,
  reply: Reply,
): Promise<AdmittedReply> {
  const { hooks } = services
  const { requests = 0, limits = agent.limits } = cache.session.run ?? {}
  // With no request left this reply is the answer, so no hook is asked.
  const last = requests + 1 >= limits.modelRequests
  if (last || agent.planner || !hooks?.has('continue_turn', agent.name)) return { calls: [], verdict }
  const text = textOf(reply.parts)
  const at = { ...cache.runIdentity, text }
  try {
    const asked = hooks.continueText({ ...at, requests: requests + 1, requestsMax: limits.modelRequests })
    const nudge = await raceDeadline(asked, flight, null, 'timeout')
    return nudge === null ? { calls: [], verdict } : { calls: [], verdict: { type: 'continue' }, nudge }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return { calls: [], verdict: hookErrorVerdict(error) }
  }
}

/**
 * The `before_answer` hooks look at the answer last. A workflow gives its own answers; those of its agents were checked
 * in their sessions.
 */
async function guardFinalAnswer(
  admitting: ReplyAdmission,
  settled: AdmittedReply,
  reply: Reply,
): Promise<AdmittedReply> {
  const { services, agent } = admitting
  const { hooks } = services
  if (hooks === null || agent.planner !== null || settled.verdict.type !== 'final') return settled
  const agents = [agent.name, ...(admitting.cache.session.parent?.answersFor ?? [])]
  if (!agents.some((name) => hooks.has('before_answer', name))) return settled
  const { guardAnswer } = await import('./guard-answer.ts')
  return guardAnswer(admitting, settled, reply)
}

const NO_WORD = 'A hook did not say in time whether the run may go on.'

/** Asks the stop hooks about a reply that would be followed by another request. */
async function askStopHooks(
  { services, agent, cache, flight }: ReplyAdmission,
  verdict: Verdict,
  reply: Reply,
): Promise<Verdict> {
  const ends = verdict.type === 'final' || verdict.type === 'stop' || verdict.type === 'unexpected'
  if (ends || !services.hooks?.has('stop', agent.name)) return verdict
  const { requests = 0, cost = 0, limits = agent.limits } = cache.session.run ?? {}
  const at = { ...cache.runIdentity, model: reply.route ?? agent.model.name }
  const all = cost + (validCost(reply) ?? 0)
  const spent = { requests: requests + 1, requestsMax: limits.modelRequests, cost: all, costUsd: usdOf(all) }
  try {
    const why = await raceDeadline(services.hooks.whyStopped({ ...at, ...spent }), flight, NO_WORD, 'timeout')
    return why === null ? verdict : { type: 'stop', reason: why }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return hookErrorVerdict(error)
  }
}

async function prepareCall(admitting: ReplyAdmission, call: Proposal, raw = ''): Promise<Proposal> {
  const { services, agent } = admitting
  const placed = isForChildren(call) ? await admitChildCall(admitting, call) : call
  if (services.hooks === null) return placed
  const { hooks } = services
  if (placed.gate?.type === 'refuse') {
    const held = await holdUnfitCall(admitting, hooks, placed, raw)
    return held ?? rewriteRefusal(admitting, hooks, placed)
  }
  const asked =
    hooks.has('before_tool_call', agent.name, placed.tool) ||
    childrenStartedBy(placed).some((child) => hooks.has('before_subagent_run', child, placed.tool))
  return asked ? { ...placed, clear: true } : placed
}

/**
 * A hook may also hold back a call whose arguments do not fit. Such a call uses no retry, and does not count as a call
 * of the run. Returns null if no hook holds it.
 */
async function holdUnfitCall(
  { agent, cache, flight, tools }: ReplyAdmission,
  hooks: RunHooks,
  call: Proposal,
  raw: string,
): Promise<Proposal | null> {
  const { gate, id, tool, args } = call
  if (gate?.type !== 'refuse' || gate.retryKind === undefined) return null
  if (!hooks.has('before_tool_call', agent.name, tool)) return null
  const at = { ...cache.runIdentity, call: id, tool, args, about: aboutTool(tools, tool), raw }
  try {
    const asked = hooks.whyCancelled('before_tool_call', at, () => flight.clear())
    const why = await raceDeadline(asked, flight, LATE_WORD, 'timeout')
    if (why === null) return null
    const { failure, metadata } = heldBackResult(id, why, false)
    const held: Gate = { type: 'refuse', status: 'denied', failure: failure ?? gate.failure, metadata: metadata ?? {} }
    return { ...call, gate: held, clear: true }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return { ...call, gate: { ...gate, ends: error.message } }
  }
}

/**
 * An approval may take days, and the other calls of the reply wait with it. So the policy is asked again before each
 * call starts.
 */
function requireClear(call: Proposal): Proposal {
  return call.gate?.type === 'refuse' ? call : { ...call, clear: true }
}

/**
 * The list of tools stays as it is, so that the provider's cache still holds. A tool that a hook left out is refused
 * here.
 */
function refuseLeftOut(call: Proposal, only: readonly string[]): Proposal {
  if (call.gate?.type === 'refuse' || only.includes(call.tool)) return call
  const left = only.length === 0 ? 'No tool could' : `Only these could: ${only.join(', ')}. This one could not`
  return refuseCall(call, 'Denied', `${left} be used in the last request. It did not run.`)
}

/** Near a limit the list of tools stays as it is, and calls of withdrawn tools are refused here. */
function refuseWithdrawn(call: Proposal, allow: Allow, tools: Tools): Proposal {
  if (call.gate?.type === 'refuse' || (allow === 'writers' && tools.get(call.tool)?.deliverable)) return call
  const what = allow === 'writers' ? 'Only tools that write the result are left' : 'No tool is left'
  return refuseCall(call, 'Denied', `${what}: the run is near its limit. Finish with what you have.`)
}

/**
 * The answer of a handoff counts as a request of this run. If this reply uses the last request, the answer would be
 * paid for and never given.
 */
function refuseLateHandoff({ cache, agent }: ReplyAdmission, call: Proposal): Proposal {
  const { requests = 0, limits = agent.limits } = cache.session.run ?? {}
  if (requests + 1 < limits.modelRequests || outsideOf(call)?.handoff !== true) return call
  return refuseCall(call, 'Denied', 'Not handed over: no model request of this run is left for the answer.')
}

/**
 * A call for a child must name an existing agent and respect the depth limit, or it answers a question of its own
 * child.
 */
async function admitChildCall(admitting: ReplyAdmission, call: Proposal): Promise<Proposal> {
  const { services, cache } = admitting
  if (outsideOf(call)?.orders !== undefined) {
    const { planOrders } = await import('./child-orders.ts')
    return planOrders(admitting, call)
  }
  const { session } = call.args as { readonly session?: Json }
  if (typeof session === 'string' && session !== '') {
    const asked = await findChildQuestion(services.store, cache.id, session)
    if (asked === null)
      return refuseCall(
        call,
        'NotFound',
        `No subagent of yours waits for an answer in session "${shortenText(session, 64)}".`,
      )
    if (!isWithinBounds(asked.within, boundsForChildren(cache)))
      return refuseCall(call, 'Denied', `Subagent ${session} ${WIDER}`, { error_type: 'SubAgentHasMoreTools' })
    return setOutsideGate(call, { type: 'outside', child: asked.agent, answers: { session, call: asked.call } })
  }
  return admitChildStart(admitting, call)
}

/** For a child that an earlier run started with tools that this run may not use. */
export const WIDER = 'was started with tools that this run may not use, so it takes nothing from it. Start another one.'

/** The agents that a call would start. */
export function childrenStartedBy(call: Proposal): readonly string[] {
  const { child, orders = [] } = outsideOf(call) ?? {}
  if (child !== undefined) return [child]
  return orders.flatMap((order) => (order.type === 'spawn' && order.child !== undefined ? [order.child] : []))
}

/**
 * Returns the call that would start a child, or refuses it: the run is being stopped, the child would be too deep, or
 * the agent does not exist.
 */
export async function admitChildStart(
  { services, agent, cache, tools }: ReplyAdmission,
  call: Proposal,
): Promise<Proposal> {
  const outside = outsideOf(call)
  if (cache.session.stop > 0) return refuseCall(call, 'Denied', 'The run is being stopped. Nothing more is started.')
  // Only a child that blocks its parent can be too late. A detached child's report opens a run of its own.
  const late = isBlocking(call) ? await whyNoTimeLeft(services, cache) : null
  if (late !== null) return refuseCall(call, 'Denied', late, { error_type: 'SpawnTooLate' })
  const most = cache.session.run?.limits.depth ?? 0
  const { starts } = tools.get(call.tool) ?? {}
  const start = { services, agent, id: cache.id, parent: cache.session.parent, most, starts }
  const barred = whyNoChild(start, outside?.child)
  if (barred !== null) {
    const { text, hint = '', as } = barred
    const about = as === undefined ? undefined : { error_type: as }
    return refuseCall(call, as === UNKNOWN ? 'NotFound' : 'Denied', text + hint, about)
  }
  return call
}

/**
 * Refuses the children that the tree of sessions has no room for. Trees that grow at the same moment may exceed the
 * limit by a few.
 */
async function limitTreeSize(
  { services, cache }: ReplyAdmission,
  calls: readonly Proposal[],
): Promise<readonly Proposal[]> {
  const { run, parent } = cache.session
  const most = run?.limits.children
  if (most === undefined || !calls.some((call) => childrenStartedBy(call).length > 0)) return calls
  let room = most - (await countOpenBelow(services.store, parent?.root ?? cache.id, most))
  return calls.map((call) => {
    const wanted = childrenStartedBy(call).length
    if (wanted <= room) {
      room -= wanted
      return call
    }
    const { orders } = outsideOf(call) ?? {}
    if (orders === undefined || orders.length === 1 || room <= 0)
      return refuseCall(call, 'Denied', treeFullText(most), { error_type: 'TreeTooLarge' })
    const kept = orders.map((order): Order => {
      if (order.type !== 'spawn' || room-- > 0) return order
      return { type: 'none', decision: 'failed', why: treeFullText(most) }
    })
    return setOutsideGate(call, { type: 'outside', orders: kept })
  })
}

function treeFullText(most: number): string {
  return `This tree of sessions may have ${most} subagents that are not closed, and has them. Do the task yourself, or close subagents that are done.`
}

type ChildStart = {
  readonly services: Pick<Services, 'agent'>
  readonly agent: Agent
  readonly id: string
  /** The agent that the tool of the call may start, whatever its own agent may. */
  readonly starts?: string | undefined
  readonly parent: Session['parent']
  /** How deep children may be. */
  readonly most: number
}
/** `hint` tells a model what to do instead. */
type ChildRefusal = { readonly text: string; readonly hint?: string; readonly as?: string }
const UNKNOWN = 'UnknownSubAgent'
const YOURSELF = ' Do the task yourself.'

/**
 * Why this session may not start this agent (depth, tier or list); null if it may. The rule is the same for a model and
 * for a host.
 */
export function whyNoChild(
  { services, agent, id, parent, most, starts }: ChildStart,
  child: string | undefined,
): ChildRefusal | null {
  const { depth = 0 } = parent ?? {}
  if (depth + 1 > most) {
    const text = `Subagents may be ${most} deep, and this is depth ${depth}.`
    return { text, hint: YOURSELF, as: 'SpawnDepthExceeded' }
  }
  if (id.length > PARENT_CHARS_MAX)
    return { text: 'The name of this session is too long for one below it.', hint: YOURSELF }
  if (child === undefined) return null
  const tier = agent.tier === undefined ? undefined : agentTier(services, child)
  if (agent.tier !== undefined && !tierAllows(agent.tier, tier)) {
    const text = `"${child}" is a ${tier} agent, and ${tierRule(agent.tier)}.`
    return { text, hint: ' Do the task yourself, or choose another.', as: 'SpawnTierRefused' }
  }
  if (child === starts || agent.children.includes(child)) return null
  const listed =
    agent.children.length === 0 ? 'none can be started here' : `choose one of: ${agent.children.join(', ')}`
  return { text: `There is no agent "${shortenText(child, 64)}"; ${listed}`, as: UNKNOWN }
}

/** Undefined for an agent without a tier, and for one that does not exist: the list of children refuses that one. */
function agentTier({ agent }: Pick<Services, 'agent'>, name: string): Agent['tier'] {
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

/**
 * Why no more children are started: the slowest child of this run took longer than the time that is left. Null if there
 * is time.
 */
async function whyNoTimeLeft({ store }: Services, { id, session }: SessionCache): Promise<string | null> {
  const { run } = session
  if (run === null || run.toolCalls === 0) return null
  const slowest = await slowestChildMs(store, id, run.seq)
  const left = run.limits.activeMs - run.activeMs
  if (slowest <= left) return null
  return `This run has ${Math.ceil(left / 1_000)} s left, and its slowest subagent took ${Math.ceil(slowest / 1_000)} s. Finish with what you have.`
}

/** Stores accept names of up to 512 characters, and a child's name begins with its parent's. */
const PARENT_CHARS_MAX = 440

/**
 * Refuses calls of one reply that contradict each other about one child: two answers to its one question, a message to
 * or a wait for a child that another call closes, and two new children under one task key.
 */
function refuseConflictingCalls(calls: readonly Proposal[]): readonly Proposal[] {
  const orders = calls.flatMap((call) => outsideOf(call)?.orders ?? [])
  const closed = new Set(orders.flatMap(({ type, session }) => (type === 'close' ? session : [])))
  const taken = new Set<string>()
  return calls.map((call) => {
    const { answers, awaits, orders: [order] = [] } = outsideOf(call) ?? {}
    const to = order?.type === 'say' ? order.session : awaits
    if (to !== undefined && closed.has(to))
      return refuseCall(
        call,
        'Denied',
        'Another call beside this one closes that subagent: it reads and reports nothing more.',
      )
    const answered = answers?.session ?? (order?.call === undefined ? undefined : order.session)
    const started = order?.type === 'spawn' && order.decision === 'spawned_new' ? order.task : undefined
    const once = answered ?? started
    if (once === undefined) return call
    if (taken.has(once)) return refuseCall(call, 'Denied', answered === undefined ? SAME_TASK : SAME_QUESTION)
    taken.add(once)
    return call
  })
}

const SAME_QUESTION = 'Another call beside this one answers the same subagent. Give it one answer.'
const SAME_TASK =
  'Another call beside this one starts a subagent with the same task_key. Steer that one, or set "fresh".'

export function setOutsideGate(call: Proposal, outside: Extract<Gate, { type: 'outside' }>): Proposal {
  return { ...call, gate: call.gate?.type === 'ask' ? { ...call.gate, outside } : outside }
}

export function refuseCall(call: Proposal, kind: 'Denied' | 'NotFound', message: string, metadata?: Json): Proposal {
  const { digest: _digest, same: _same, clear: _clear, ...rest } = call
  const status = kind === 'Denied' ? ({ status: 'denied' } as const) : {}
  const about = metadata === undefined ? {} : { metadata }
  const gate: Gate = { type: 'refuse', ...status, failure: { kind, message }, ...about }
  return { ...rest, gate }
}

/**
 * Hooks see a call that the model must correct as a result, like the result of a call that ran. They cannot change that
 * it counts as a failed try.
 */
async function rewriteRefusal(
  { cache, flight, tools }: ReplyAdmission,
  hooks: RunHooks,
  call: Proposal,
): Promise<Proposal> {
  const { gate, tool, args } = call
  if (gate?.type !== 'refuse' || gate.retryKind === undefined) return call
  const metadata = (gate.metadata ?? {}) as Readonly<Record<string, Json>>
  const output = { ok: false, content: gate.failure.message, metadata }
  // The reply has no place in the log yet, so the call has no key. The provider's id stands for it.
  const at = { ...cache.runIdentity, call: call.id, tool, args, about: aboutTool(tools, tool), refused: true } as const
  try {
    const said = await raceDeadline(hooks.rewriteResult(at, output), flight, WITHHELD, 'timeout')
    const failure = { ...gate.failure, message: said.content || gate.failure.kind }
    return { ...call, gate: { ...gate, failure, metadata: said.metadata } }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return { ...call, gate: { ...gate, ends: error.message } }
  }
}
