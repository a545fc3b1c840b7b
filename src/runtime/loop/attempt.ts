// The parts of the commits of one attempt, frozen when the attempt begins. A part that its session does not need is
// null, and is not loaded.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CallKey, Limits, Narrowing, Outcome } from '../../kernel/content.ts'
import type { Session } from '../../kernel/session.ts'
import { WORKTREES } from '../../tools/files/harness-folders.ts'
import { isLaneAgent } from '../../view/lanes.ts'
import { isGraderAgent, PURSUIT } from '../../view/pursuits.ts'
import { callSpanIdOf } from '../../view/spans/span.ts'
import type { RunHooks } from '../state/hook-events.ts'
import type { CommitParts } from '../commit/add-event.ts'
import type { AgentFacts } from '../commit/create-child.ts'
import { RunGuard } from '../commit/run-guard.ts'
import type { Services } from '../state/runtime-ports.ts'
import { type Agent, agentOfRun, plannerName } from '../state/agent.ts'
import type { SessionCache } from '../state/session-cache.ts'
import { hasRelatives } from '../state/session-tree.ts'
import { readerName } from '../state/toolbox.ts'
import { traceparentIn } from '../state/trace-context.ts'
import { boundsForChildren } from '../turn/narrowing.ts'
import { recallOptions } from '../turn/run-options.ts'
import type { Performer } from '../turn/perform-effect.ts'

/**
 * Two functions of the worker: one makes the attempt look again; one says whether it drives a run of another child of
 * this session.
 */
type WorkerView = { readonly ring: () => void } & Required<Pick<AgentFacts, 'isWorkingBelow'>>

export async function loadParts(
  services: Services,
  performer: Performer,
  cache: SessionCache,
  worker: WorkerView,
): Promise<CommitParts> {
  const { redactor, hooks } = services
  const { session } = cache
  if (session.run?.options !== undefined) {
    await recallOptions(services, cache)
  }
  const agent = session.agent === '' ? null : services.agent(session.agent)
  // Notices, breakers and token limits are for language models alone.
  const guard = agent?.planner === null ? new RunGuard(services, cache) : null
  if (guard === null) cache.unguard()
  const asked = guard !== null && hooks?.has('before_request', session.agent) ? hooks : null
  const requestHooks = asked && (await loadRequestHooks({ services, hooks: asked, performer, cache, worker }))
  const money = agent === null ? null : await loadMoney(services, agent, performer, cache)
  const family = agent !== null && hasRelatives(session, agent) ? await loadFamily(services, cache, worker) : null
  const consumers =
    services.consumers && isTold(session) ? await loadConsumers(services, services.consumers, cache) : null
  const hasEndWork = (now: Session, outcome: Outcome): boolean =>
    (outcome.type === 'interrupted' && agent?.planner?.finalizer !== undefined) || mayHaveWorktrees(services, now)
  return { guard, requestHooks, redactor: redactor.idle ? null : redactor, money, family, consumers, hasEndWork }
}

type Hooked = {
  readonly services: Services
  readonly hooks: RunHooks
  readonly performer: Performer
  readonly cache: SessionCache
  readonly worker: WorkerView
}

async function loadRequestHooks({ services, hooks, performer, cache, worker: { ring } }: Hooked) {
  const { openRequestHooks } = await import('../commit/request-hooks.ts')
  return openRequestHooks({ services, hooks, cache, ring, readFrozenRun: () => performer.frozenRun(cache) })
}

async function loadMoney(
  { dayBudgets }: Services,
  agent: Agent,
  performer: Performer,
  cache: SessionCache,
): Promise<CommitParts['money']> {
  if (agent.budget === null && !dayBudgets && !mayMoveMoney(cache.session, agent.limits)) return null
  const [{ MoneyPart }, allowances] = await Promise.all([import('../commit/charges.ts'), performer.allowances()])
  return new MoneyPart(cache, await allowances.spending(cache))
}

async function loadFamily(
  services: Services,
  cache: SessionCache,
  { isWorkingBelow }: WorkerView,
): Promise<CommitParts['family']> {
  const { FamilyPart } = await import('../commit/family.ts')
  const facts: AgentFacts = {
    plannerOf: (name) => plannerName(services, name),
    readerOf: (name) => readerName(services.agent(name).tools.seen),
    traceOf: (call: CallKey) => traceparentIn(services, cache, () => callSpanIdOf(cache.id, call)),
    charsMaxOf: (name) => services.agent(name).maxResultChars,
    unfinishedOf: (name) => services.agent(name).planner?.describeUnfinished,
    isWorkingBelow,
    within: (now): Narrowing | undefined => boundsForChildren({ session: now, varied: cache.varied }),
    modelName: (now) => agentOfRun(services, { session: now, varied: cache.varied }).model.name,
  }
  // A child reports its last text however it ends, so the transcript must be read.
  if (cache.session.parent) await cache.transcript()
  return new FamilyPart(cache, services.store, facts)
}

/** Consumers are told about roots. A lane's own runs would never end otherwise. */
function isTold({ parent, agent }: Session): boolean {
  return parent === null && !isLaneAgent(agent)
}

async function loadConsumers(
  services: Services,
  consumers: NonNullable<Services['consumers']>,
  { id, session }: SessionCache,
): Promise<CommitParts['consumers']> {
  const pursues = mayBePursued(session)
  const told = consumers.told.filter(({ runs }) => runs !== 'first' || session.last === null)
  if (told.length === 0 && !pursues) return null
  const { ConsumerPart } = await import('../commit/tell-consumers.ts')
  const part = new ConsumerPart(services, { ...consumers, told }, id, pursues)
  await part.open()
  return part
}

/** The message of a round is written while no attempt drives the session, so an attempt finds it when it begins. */
function mayBePursued({ run, inputs, agent }: Session): boolean {
  const chosen = run?.metadata?.[PURSUIT] !== undefined || inputs.some(({ chooses }) => chooses)
  return chosen || isGraderAgent(agent)
}

/** Whether the session works in a worktree, or its children may have left some. */
function mayHaveWorktrees({ worktrees }: Services, { folder, parent, agent }: Session): boolean {
  if (folder === undefined || isLaneAgent(agent)) return false
  if (parent !== null && folder.includes(WORKTREES)) return true
  return worktrees ? worktrees.exist(folder) : existsSync(join(folder, WORKTREES))
}

/** Money may move in a session without a budget too: where some is held for an open call, or for each request. */
function mayMoveMoney({ run }: Session, { hold }: Pick<Limits, 'hold'>): boolean {
  const open = run?.turn?.open.some(({ state }) => state.type === 'running')
  return hold > 0 || open === true || (run !== null && (run.limits.hold > 0 || (run.model?.held ?? 0) > 0))
}
