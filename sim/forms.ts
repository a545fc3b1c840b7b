// Sessions whose answers have a schema. Their model answers with the wrong type, with text, twice, or rightly. What ends a run as its
// answer fits, and is what was asked for. Only in some seeds.
import { EMPTY } from '../src/kernel/session.ts'
import type { Model, Reply, ReplyCall, Request } from '../src/ports/model.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { buildAgents } from '../src/sessions/agent.ts'
import { textOf } from '../src/view/shown-text.ts'
import type { Cast } from './cast.ts'
import { NEVER } from './idle-harness.ts'
import type { Stage } from './people.ts'
import type { SimProcess } from './process.ts'
import { OWN } from './programs.ts'
import { Chance } from './scheduler.ts'
import { anything } from './agent.ts'

const FORMER = 'former'
/** The tool by which a model gives an answer that has a schema. */
const FINAL_RESULT = 'final_result'
const SESSION = 'a0'
const SHARE = 0.5
const QUESTIONS = 3

/** Whether this seed has answers with a schema. Its own chance, so that the other seeds are as they were. */
export function hasForms(seed: number, { hooks, outage }: Cast): boolean {
  return hooks === null && outage === null && new Chance(seed ^ 0x7f0a).yes(SHARE)
}

export class Forms {
  readonly tally = { right: 0, wrong: 0, failed: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #chance: Chance

  constructor(stage: Stage) {
    this.#stage = stage
    this.#chance = stage.actor.chance
  }

  agentIn(process: SimProcess): (name: string) => Agent | null {
    const { store, clock } = process
    const former = { description: 'answers', model: this.#modelIn(process), output: { schema: anything } }
    const agents = buildAgents({ model: NEVER }, { store, clock, subagents: { [FORMER]: former } })
    return (name) => (name === FORMER ? (agents.get(name) ?? null) : null)
  }

  #modelIn(process: SimProcess): Model {
    return {
      name: FORMER,
      call: async (request) => {
        await process.sleep(this.#chance.between(0, 40))
        const n = askedIn(request)
        const drawn = this.#chance.fraction()
        if (drawn < 0.5) return this.#answer('right', [`{"n":${n}}`])
        return this.#answer('wrong', drawn < 0.7 ? ['{"n":"x"}'] : drawn < 0.8 ? [] : ['{"n":0}', `{"n":${n}}`])
      },
    }
  }

  #answer(kind: 'right' | 'wrong', answers: readonly string[]): Reply {
    this.tally[kind] += 1
    const calls = answers.map((args, i): ReplyCall => ({ id: `f${i}`, tool: FINAL_RESULT, args }))
    const parts = answers.length === 0 ? ([{ type: 'text', text: 'Seven, I think.' }] as const) : []
    return { type: 'reply', parts, calls, finish: 'stop', usage: null }
  }

  async play(): Promise<void> {
    const { store, actor } = this.#stage
    this.busy += 1
    const created = { type: 'session.created', agent: FORMER, planner: 'model', program: OWN } as const
    await store.commit([ownerWrite(SESSION, EMPTY, [created], { now: store.now(), epoch: 0 })])
    for (let i = 0; i < QUESTIONS; i++) {
      await actor.sleep(this.#chance.between(0, 400))
      const parts = [{ type: 'text', text: `Answer ${10 + i}.` }] as const
      await this.#stage.say(SESSION, { type: 'user.message', id: `a${i}`, parts, when: 'after' })
    }
    this.busy -= 1
  }

  /** At rest: a run that completed has the number that it was asked for, in the form that was asked for. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const { events } = await store.read(SESSION, 0)
    const texts = new Map<number, string>()
    const wrong: string[] = []
    let [asked, given] = ['', '']
    for (const event of events) {
      if (event.type === 'user.message') texts.set(event.seq, textOf(event.parts))
      else if (event.type === 'run.started') asked = /\d+/.exec(texts.get(event.inputs.at(-1) ?? 0) ?? '')?.[0] ?? ''
      else if (event.type === 'agent.message')
        given = event.verdict.type === 'final' ? JSON.stringify(event.verdict.output) : 'no answer'
      else if (event.type === 'run.settled' && event.outcome.type !== 'completed') this.tally.failed += 1
      else if (event.type === 'run.settled' && given !== `{"n":${asked}}`)
        wrong.push(`S1 ${SESSION}@${event.seq} completed with ${given}, and was asked for ${asked}`)
    }
    return wrong
  }
}

function askedIn({ messages }: Request): string {
  const said = messages.flatMap((message) => (message.role === 'user' ? [textOf(message.parts)] : []))
  return said.flatMap((text) => /^Answer (\d+)/.exec(text)?.[1] ?? []).at(-1) ?? ''
}
