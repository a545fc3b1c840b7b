// Connects the guard of a run (guard/guard.ts) to the commits of its session: it adds the traits of the agent that
// answers now.
import type { OwnerBody, OwnerEvent } from '../../kernel/event.ts'
import type { RequestAdvice } from '../../kernel/landing.ts'
import type { Session } from '../../kernel/session.ts'
import { type GuardTraits, isNearEnd } from '../guard/guard.ts'
import { knownWindow } from '../state/model-window.ts'
import type { Services } from '../state/runtime-ports.ts'
import { type Agent, agentOfRun } from '../state/agent.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Tools } from '../state/toolbox.ts'

type RequestBody = Extract<OwnerBody, { type: 'model.started' }>

export class RunGuard {
  readonly #services: Services
  readonly #cache: SessionCache

  constructor(services: Services, cache: SessionCache) {
    this.#services = services
    this.#cache = cache
  }

  /** The last requests of a run may make fewer calls, or none. */
  limitCalls(session: Session, body: RequestBody): RequestBody {
    if (!isNearEnd(session)) return body
    const allow = this.#cache.guard.allow(session, readGuardTraits(agentOfRun(this.#services, this.#cache)))
    return allow === 'all' ? body : { ...body, allow }
  }

  adviseRequest(session: Session): RequestAdvice | null {
    const agent = agentOfRun(this.#services, this.#cache)
    const window = () => knownWindow(this.#services, agent.model)
    return this.#cache.guard.beforeRequest(session, readGuardTraits(agent), window)
  }

  watchProgress(event: OwnerEvent): void {
    this.#cache.guard.take(event)
  }
}

const NO_TRAITS: GuardTraits = { writers: new Set(), pollers: new Set(), finalResult: false, model: '' }
/** Keyed by the set of tools, which never changes. */
const TRAITS_BY_TOOLS = new WeakMap<Tools, GuardTraits>()

/** Traits of an agent's tools for the guard. The same object is returned while they are the same. */
function readGuardTraits({ tools, output, model: { name: model } }: Agent): GuardTraits {
  const { seen } = tools
  const finalResult = output?.asked?.mode === 'tool'
  if (seen === null) return { ...NO_TRAITS, finalResult, model }
  const known = TRAITS_BY_TOOLS.get(seen)
  if (known)
    return known.finalResult === finalResult && known.model === model ? known : { ...known, finalResult, model }
  const named = (trait: 'deliverable' | 'polling'): ReadonlySet<string> =>
    new Set([...seen.values()].filter((tool) => tool[trait]).map((tool) => tool.name))
  const traits = { writers: named('deliverable'), pollers: named('polling'), finalResult, model }
  TRAITS_BY_TOOLS.set(seen, traits)
  return traits
}
