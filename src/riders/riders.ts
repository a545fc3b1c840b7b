// The riders of one attempt, in the order in which they speak: guard, step hooks, redaction, money, children. What a session does not need is
// neither in its list nor loaded.
import type { CallKey, Limits, Within } from '../kernel/content.ts'
import type { Session } from '../kernel/session.ts'
import type { Rider } from '../engine/commit.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { type Agent, agentFor, plannerName, type Services } from '../engine/wiring.ts'
import { boundsBelow } from '../effects/narrowing.ts'
import type { Performer } from '../effects/perform.ts'
import { readerIn, type Tools } from '../effects/toolbox.ts'
import { traceparentIn } from '../effects/trace-context.ts'
import { callSpanIdOf } from '../view/spans/span.ts'
import type { Agents } from './children/birth.ts'
import { hasFamily } from './children/tree.ts'
import type { Traits, Window } from './guard/guard.ts'
import { knownWindow } from '../effects/window.ts'

/** Of the worker: makes it look again, and whether it drives a run of another child of this session. */
type Around = { readonly ring: () => void } & Required<Pick<Agents, 'isWorkingBelow'>>

export async function ridersFor(
  services: Services,
  performer: Performer,
  cache: SessionCache,
  { ring, isWorkingBelow }: Around,
): Promise<readonly Rider[]> {
  const { redactor, store, hooks } = services
  const { session } = cache
  if (session.run?.options !== undefined) {
    const { recallOptions } = await import('../effects/run-options.ts')
    await recallOptions(services, cache)
  }
  const agent = session.agent === '' ? null : services.agent(session.agent)
  const riders: Rider[] = []
  // Notices, breakers and limits of tokens are for language models alone.
  if (agent?.planner === null) riders.push(guardRider(services, cache))
  else cache.unguard()
  if (hooks !== null && agent?.planner === null && hooks.has('before_request', agent.name)) {
    const { stepRider } = await import('./hooks/step.ts')
    riders.push(await stepRider({ services, hooks, cache, ring, frameOf: () => performer.frame(cache) }))
  }
  if (!redactor.idle) riders.push({ rewrite: (_commit, body) => redactor.body(body) })
  if (agent !== null && (agent.budget !== null || mayMove(session, agent.limits))) {
    const [{ moneyRider }, allowances] = await Promise.all([import('./money/charges.ts'), performer.allowances()])
    riders.push(moneyRider(cache, await allowances.spending(cache)))
  }
  if (agent !== null && hasFamily(session, agent)) {
    const { childrenRider } = await import('./children/children.ts')
    const plannerOf = (name: string): string => plannerName(services, name)
    const readerOf = (name: string): string | undefined => readerIn(services.agent(name).tools.seen)
    const traceOf = (call: CallKey): string | undefined =>
      traceparentIn(services, cache, () => callSpanIdOf(cache.id, call))
    const charsMaxOf = (name: string): number | undefined => services.agent(name).maxResultChars
    const within = (now: Session): Within | undefined => boundsBelow({ session: now, varied: cache.varied })
    const modelName = (now: Session): string => agentFor(services, { session: now, varied: cache.varied }).model.name
    riders.push(
      childrenRider(cache, store, { plannerOf, readerOf, traceOf, charsMaxOf, isWorkingBelow, within, modelName }),
    )
    // A child must be able to say what it said last, whatever ends it.
    if (session.parent) await cache.transcript()
  }
  if (agent?.planner?.finalizer) {
    const { finalizeRider } = await import('./finalize.ts')
    await cache.transcript()
    riders.push(finalizeRider(services, cache, agent.planner.finalizer))
  }
  return riders
}

/** Money may move in a session without a budget too: where some is held, for an open call or for each request. */
function mayMove({ run }: Session, { hold }: Pick<Limits, 'hold'>): boolean {
  const open = run?.turn?.open.some(({ state }) => state.type === 'running')
  return hold > 0 || open === true || (run !== null && (run.limits.hold > 0 || (run.model?.held ?? 0) > 0))
}

/** Joins the commits of a session that a language model drives: its word before each request, and which calls that may make. */
function guardRider(services: Services, cache: SessionCache): Rider {
  const traits = (): Traits => traitsOf(agentFor(services, cache))
  const window = (): Window => knownWindow(services, agentFor(services, cache).model)
  return {
    rewrite({ session }, body) {
      if (body.type !== 'model.started') return body
      const allow = cache.guard.allow(session, traits())
      return allow === 'all' ? body : { ...body, allow }
    },
    beforeRequest: ({ session }) => cache.guard.beforeRequest(session, traits(), window),
    after: (_commit, event) => cache.guard.take(event),
  }
}

const NO_TRAITS: Traits = { writers: new Set(), pollers: new Set(), finalResult: false, model: '' }
/** By the set of tools, which never changes. */
const TRAITS = new WeakMap<Tools, Traits>()

/** What the guard must know of an agent's tools. The same object while they are the same. */
function traitsOf({ tools, output, model: { name: model } }: Agent): Traits {
  const { seen } = tools
  const finalResult = output?.asked?.mode === 'tool'
  if (seen === null) return { ...NO_TRAITS, finalResult, model }
  const known = TRAITS.get(seen)
  if (known)
    return known.finalResult === finalResult && known.model === model ? known : { ...known, finalResult, model }
  const named = (trait: 'deliverable' | 'polling'): ReadonlySet<string> =>
    new Set([...seen.values()].filter((tool) => tool[trait]).map((tool) => tool.name))
  const traits = { writers: named('deliverable'), pollers: named('polling'), finalResult, model }
  TRAITS.set(seen, traits)
  return traits
}
