// How much the sessions of one worker and their tools may spend, found out only where there is a budget. charges.ts and
// budgeted-model.ts move the money.
import { outputTokensOf } from '../../models/http/hosted-model.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { type Agent, agentOfRun } from '../state/agent.ts'
import type { Model } from '../../ports/model.ts'
import type { FrozenRun, FrozenRuns } from '../state/frozen-run.ts'
import type { Tools } from '../state/toolbox.ts'
import { rootAgentOf } from '../state/session-tree.ts'
import { type ModelRate, readModelRate, SpendingLimits, UNKNOWN_RATE } from './spending-limits.ts'

const UNPRICED = new SpendingLimits('', {}, null)

export class Allowances {
  readonly #services: Services
  readonly #frozen: FrozenRuns
  readonly #rates = new WeakMap<Model, ModelRate>()
  readonly #told = new WeakMap<object, number>()

  constructor(services: Services, frozen: FrozenRuns) {
    this.#services = services
    this.#frozen = frozen
  }

  /** Limits for the calls of this session's model. Planning without a model costs nothing. */
  async spending(cache: SessionCache): Promise<SpendingLimits> {
    const { agent } = cache.session
    return agent === '' || this.#services.agent(agent).planner ? UNPRICED : this.allowance(cache)
  }

  /** Limits for the session's tools. Only with a budget must anything be found out. */
  async allowance(cache: SessionCache): Promise<SpendingLimits> {
    const agent = agentOfRun(this.#services, cache)
    const { session } = cache
    const { dayBudgets } = this.#services
    if (agent.budget === null && !dayBudgets) return UNPRICED
    const payer = await rootAgentOf(session, this.#services.store)
    // A day is paid by the root's agent, so its limit is that agent's.
    const day = dayBudgets?.get(payer)
    const budget = day ? { ...agent.budget, ...day } : agent.budget
    if (budget === null) return UNPRICED
    await cache.count()
    await this.learn(agent)
    if (session.run && !this.#frozen.known(cache)) await this.#frozen.of(cache)
    const rate = (): ModelRate => this.#rate(agentOfRun(this.#services, cache))
    const baseChars = (): number => this.#baseChars(cache, agentOfRun(this.#services, cache))
    return new SpendingLimits(payer, budget, { rate, baseChars })
  }

  #rate({ model, settings }: Agent): ModelRate {
    const rate = this.#rates.get(model) ?? UNKNOWN_RATE
    return settings === undefined ? rate : { ...rate, outputTokensMax: outputTokensOf(model, settings) }
  }

  /** Reads the price of this agent's model, before anything is held for it. */
  async learn({ model }: Agent): Promise<void> {
    if (!this.#rates.has(model)) this.#rates.set(model, await readModelRate(model))
  }

  /**
   * The length of all that stands before the conversation: as the run froze it, or as the run that is about to begin
   * will.
   */
  #baseChars(cache: SessionCache, agent: Agent): number {
    const frozen = this.#frozen.known(cache)
    if (frozen !== null) return this.#charsIn(frozen, agent)
    // The run will show the current tools, or those of an earlier run.
    const { frame, seen } = { frame: cache.frozenRun?.frozen ?? null, seen: agent.tools.seen }
    const before = frame === null ? 0 : this.#charsIn(frame, agent)
    return Math.max(before, seen === null ? agent.instructions.length : this.#charsIn(seen, agent))
  }

  #charsIn(told: FrozenRun | Tools, agent: Agent): number {
    const known = this.#told.get(told) ?? countBaseChars(told, agent)
    this.#told.set(told, known)
    return known
  }
}

function countBaseChars(told: FrozenRun | Tools, { instructions, output }: Agent): number {
  const asked = output?.asked ? JSON.stringify(output.asked.schema).length : 0
  if ('definitions' in told) return asked + told.instructions.length + JSON.stringify(told.tools).length
  const tools = [...told.values()].map(({ name, description, parameters, instructions: said }) => {
    return name.length + description.length + JSON.stringify(parameters).length + said.length
  })
  return tools.reduce((sum, chars) => sum + chars, asked + instructions.length)
}
