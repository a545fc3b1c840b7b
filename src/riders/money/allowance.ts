// What the sessions of one worker and their tools may spend, found out only where there is a budget. What moves the money is
// charges.ts and budgeted-model.ts.
import { outputTokensOf } from '../../models/http/hosted.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { type Agent, agentFor, type Services } from '../../engine/wiring.ts'
import type { Model } from '../../ports/model.ts'
import type { FrozenRun, FrozenRuns } from '../../effects/frozen-run.ts'
import type { Tools } from '../../effects/toolbox.ts'
import { rootAgentOf } from '../children/tree.ts'
import { type Rate, rateOf, SpendingLimits, UNKNOWN_RATE } from './spending-limits.ts'

const UNPRICED = new SpendingLimits('', {}, null)

export class Allowances {
  readonly #services: Services
  readonly #frozen: FrozenRuns
  readonly #rates = new WeakMap<Model, Rate>()
  readonly #told = new WeakMap<object, number>()

  constructor(services: Services, frozen: FrozenRuns) {
    this.#services = services
    this.#frozen = frozen
  }

  /** What calls of this session's model may cost. Planning costs nothing. */
  async spending(cache: SessionCache): Promise<SpendingLimits> {
    const { agent } = cache.session
    return agent === '' || this.#services.agent(agent).planner ? UNPRICED : this.allowance(cache)
  }

  /** What its tools may spend. Only with a budget does anything have to be found out for it. */
  async allowance(cache: SessionCache): Promise<SpendingLimits> {
    const agent = agentFor(this.#services, cache)
    if (agent.budget === null) return UNPRICED
    await cache.count()
    await this.learn(agent)
    const { session } = cache
    if (session.run && !this.#frozen.known(cache)) await this.#frozen.of(cache)
    const payer = await rootAgentOf(session, this.#services.store)
    const rate = (): Rate => this.#rate(agentFor(this.#services, cache))
    const baseChars = (): number => this.#baseChars(cache, agentFor(this.#services, cache))
    return new SpendingLimits(payer, agent.budget, { rate, baseChars })
  }

  #rate({ model, settings }: Agent): Rate {
    const rate = this.#rates.get(model) ?? UNKNOWN_RATE
    return settings === undefined ? rate : { ...rate, outputTokensMax: outputTokensOf(model, settings) }
  }

  /** What the model of this agent costs, before anything is held for it. */
  async learn({ model }: Agent): Promise<void> {
    if (!this.#rates.has(model)) this.#rates.set(model, await rateOf(model))
  }

  /** What stands before the conversation: as the run froze it, or as the run that begins just now will. */
  #baseChars(cache: SessionCache, agent: Agent): number {
    const frozen = this.#frozen.known(cache)
    if (frozen !== null) return this.#charsIn(frozen, agent)
    // It will show what it has, or what an earlier run had.
    const { frame, seen } = { frame: cache.frame?.frame ?? null, seen: agent.tools.seen }
    const before = frame === null ? 0 : this.#charsIn(frame, agent)
    return Math.max(before, seen === null ? agent.instructions.length : this.#charsIn(seen, agent))
  }

  #charsIn(told: FrozenRun | Tools, agent: Agent): number {
    const known = this.#told.get(told) ?? baseOf(told, agent)
    this.#told.set(told, known)
    return known
  }
}

function baseOf(told: FrozenRun | Tools, { instructions, output }: Agent): number {
  const asked = output?.asked ? JSON.stringify(output.asked.schema).length : 0
  if ('definitions' in told) return asked + told.instructions.length + JSON.stringify(told.tools).length
  const tools = [...told.values()].map(({ name, description, parameters, instructions: said }) => {
    return name.length + description.length + JSON.stringify(parameters).length + said.length
  })
  return tools.reduce((sum, chars) => sum + chars, asked + instructions.length)
}
