// A session with a budget of its own, and a person who raises it when it is used up, or says no first, at harnesses whose processes die.
// Only in some seeds. That the accounts hold what is allowed, no more and no less, is counted in money.ts.
import type { HarnessOptions } from '../src/harness.ts'
import { EMPTY } from '../src/kernel/session.ts'
import type { Model } from '../src/ports/model.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { buildAgents } from '../src/sessions/agent.ts'
import { BUDGET } from '../src/view/pending-calls.ts'
import { PRICED } from './agent.ts'
import { type Cast, COST_MAX } from './cast.ts'
import { Desks, NEVER } from './idle-harness.ts'
import type { Stage } from './people.ts'
import type { SimProcess } from './process.ts'
import { OWN } from './programs.ts'
import { Chance } from './scheduler.ts'
// A harness loads this when it is first needed.
import '../src/sessions/raise.ts'

const SPENDER = 'spender'
const SESSION = 'b0'
const SHARE = 0.6
const MESSAGES = 5
const LOOK_MS = 25
/** For two or three requests. */
const ALLOWED = 3 * COST_MAX
const RAISE = 3 * COST_MAX

/** Whether this seed has a spender. Its own chance, so that the other seeds are as they were. */
export function hasSpender(seed: number, { clocks, hooks, outage }: Cast): boolean {
  return !clocks && hooks === null && outage === null && new Chance(seed ^ 0x5be7).yes(SHARE)
}

export class Spenders {
  readonly violations: string[] = []
  readonly tally = { raised: 0, denied: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #chance: Chance
  readonly #desks: Desks

  constructor(stage: Stage) {
    this.#stage = stage
    this.#chance = stage.actor.chance
    this.#desks = new Desks(stage)
    stage.invariants.money.allow(SESSION, { sessionUsd: ALLOWED / 1_000_000 })
  }

  agentIn(process: SimProcess): (name: string) => Agent | null {
    const { store, clock } = process
    const budget = { sessionUsd: ALLOWED / 1_000_000 }
    const subagents: HarnessOptions['subagents'] = {
      [SPENDER]: { description: 'spends', model: this.#modelIn(process) },
    }
    this.#desks.add(process, { subagents, budget })
    const agents = buildAgents({ model: NEVER }, { store, clock, subagents, budget })
    return (name) => (name === SPENDER ? (agents.get(name) ?? null) : null)
  }

  #modelIn(process: SimProcess): Model {
    const model: Model = {
      name: SPENDER,
      call: async () => {
        await process.sleep(this.#chance.between(0, 30))
        const parts = [{ type: 'text', text: 'Spent.' }] as const
        const usage = { inputTokens: 100, outputTokens: 10 }
        const cost = this.#chance.between(COST_MAX / 2, COST_MAX)
        return { type: 'reply', parts, calls: [], finish: 'stop', usage, cost }
      },
    }
    return { ...model, ...PRICED }
  }

  async play(): Promise<void> {
    const { store } = this.#stage
    this.busy += 1
    const created = { type: 'session.created', agent: SPENDER, planner: 'model', program: OWN } as const
    await store.commit([ownerWrite(SESSION, EMPTY, [created], { now: store.now(), epoch: 0 })])
    for (let i = 0; i < MESSAGES && !this.#stage.over(); i++) {
      const parts = [{ type: 'text', text: `Spend ${i}.` }] as const
      await this.#stage.say(SESSION, { type: 'user.message', id: `b${i}`, parts, when: 'next' })
      await this.#goesOn()
    }
    this.busy -= 1
  }

  /** Until it has answered. What is missing is allowed. */
  async #goesOn(): Promise<void> {
    const { actor, invariants, over } = this.#stage
    while (!over()) {
      await actor.sleep(LOOK_MS)
      const { run, inputs, last } = invariants.sessions().get(SESSION)?.fold ?? EMPTY
      if (run !== null || inputs.length > 0 || last === null) continue
      if (last.type !== 'limit' || last.limit !== 'usd') return
      if (this.#chance.yes(0.3)) await this.#decide(false)
      // Two people, and each at a harness of another process.
      await Promise.all(this.#chance.yes(0.5) ? [this.#decide(true), this.#decide(true)] : [this.#decide(true)])
    }
  }

  /** Who is told that it was raised finds that in the log. */
  async #decide(allow: boolean): Promise<void> {
    const usd = allow ? { usd: RAISE / 1_000_000 } : {}
    const decision = { callId: BUDGET, allow, by: 'a person', ...usd }
    const done = await this.#desks.ask((harness) => harness.session(SESSION).decide(decision))
    if (done === null || this.#stage.over()) return
    // It was raised before, and the answer was lost.
    if ('refused' in done) {
      if (done.refused !== 'decision_stale') this.violations.push(`B2 the budget cannot be raised: ${done.refused}`)
      return
    }
    const { seq } = done.answer
    const { events } = await this.#stage.store.read(SESSION, seq - 2, 3)
    const word = allow ? 'raised the budget' : 'did not raise the budget'
    if (!events.some((event) => event.type === 'note.added' && event.text.includes(word)))
      this.violations.push(`B1 somebody was told that he ${word}, and it is not in the log at ${seq}`)
    this.tally[allow ? 'raised' : 'denied'] += 1
  }

  /** At rest: all that was said was answered. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const { events } = await store.read(SESSION, 0)
    const last = events.findLast((event) => event.type === 'run.settled')
    const raises = events.filter(
      (event) =>
        event.type === 'run.started' || (event.type === 'note.added' && event.text.includes('raised the budget by')),
    )
    const twice = raises.find(({ type }, i) => type === 'note.added' && raises[i + 1]?.type === 'note.added')
    if (twice) return [`B4 the budget is raised twice for one run, the first time at ${twice.seq}`]
    return last?.outcome.type === 'completed' ? [] : [`B3 ${SESSION} was allowed enough, and did not go on`]
  }
}
