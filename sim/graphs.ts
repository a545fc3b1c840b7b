// The graphs of the simulation: in a part of the seeds one more root session is driven by one of them. Their agents are played by the
// simulated model, and die, stall and run out of money like all others. What must hold of them is in flows.ts.
import { EMPTY } from '../src/kernel/session.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import { append } from '../src/graphs/channel.ts'
import type { Graph } from '../src/graphs/graph-definition.ts'
import { withState } from '../src/graphs/with-state.ts'
import { END, START } from '../src/graphs/planner-node.ts'
import type { EffectClass } from '../src/kernel/content.ts'
import { councilGraph } from '../src/workflows/council/council.ts'
import { delegateGraph } from '../src/workflows/delegate/delegate-graph.ts'
import { phasesGraph } from '../src/workflows/phases/phases-graph.ts'
import type { Cast, Role } from './cast.ts'
import { PHASES, UNDO } from './flows.ts'
import type { Oracle } from './oracle.ts'
import type { Stage } from './people.ts'
import { OWN } from './programs.ts'
import type { SimProcess } from './process.ts'
import { Chance } from './scheduler.ts'

/** The session that a graph drives. */
const GRAPHED = 'g0'
const KINDS = ['delegate', 'flow', 'council', 'saga'] as const
export type Kind = (typeof KINDS)[number]
const SHARE = 0.4
const WORDS = 4
const LOOK_MS = 60
const UNTIL_MS = 1_500

/** Which graph this seed has. Its own chance, so that the other seeds are as they were. */
export function graphIn(seed: number): Kind | null {
  const chance = new Chance(seed ^ 0x97a9)
  return chance.yes(SHARE) ? chance.pick(KINDS) : null
}

const SEATS = ['one', 'two', 'three']

export function simGraph(name: string, process: SimProcess, oracle: Oracle): Graph | null {
  if (name === 'delegate') return delegateGraph()
  if (name === 'flow')
    return phasesGraph({ id: 'flow', phases: PHASES }, { agents: { hand: { description: 'works' } } })
  if (name === 'council') return councilGraph({ seats: SEATS, chair: 'chair' })
  return name === 'saga' ? saga(process, oracle) : null
}

/** Three nodes that have a compensation, and one that fails more often than not. */
function saga(process: SimProcess, oracle: Oracle): Graph {
  const { node, graph } = withState({ facts: append<string>() })
  const act = (fact: string, effect: EffectClass, fails: number) =>
    node({
      effect,
      timeoutMs: 60,
      run: async (_args, context) => {
        await process.sleep(process.chance.between(0, 15))
        oracle.execute(context.session, context.call, effect)
        await process.sleep(process.chance.between(0, 25))
        if (process.chance.yes(fails)) throw new Error(`${fact} failed`)
        return { facts: [fact] }
      },
    })
  return graph({
    name: 'saga',
    nodes: {
      book: act('book', 'idempotent', 0.05),
      charge: act('charge', 'once', 0.05),
      ship: act('ship', 'idempotent', 0.1),
      check: act('check', 'read', 0.6),
      unbook: act('unbook', 'idempotent', 0.1),
      refund: act('refund', 'idempotent', 0.1),
      recall: act('recall', 'idempotent', 0.1),
    },
    edges: [
      [START, 'book'],
      ['book', 'charge'],
      ['charge', 'ship'],
      ['ship', 'check'],
      ['check', END],
    ],
    input: () => ({}),
    onFailure: UNDO,
  })
}

/** An agent of a graph: like a clerk, but without children, and it answers sooner. */
export function handOf(name: string, { roles }: Cast): Role | null {
  const clerk = roles.get('clerk')
  const reviews = name === 'delegate_reviewer'
  if (!clerk || !/^(delegate|flow-|council|job$)_?/.test(name)) return null
  return { ...clerk, children: [], leads: false, brief: true, ...(reviews ? { reviews } : {}) }
}

/** What a reviewer says: yes, no, or what cannot be used. */
export function reviewOf(chance: Chance): string {
  const drawn = chance.fraction()
  if (drawn < 0.15) return 'I like it.'
  if (drawn < 0.25) return '{"approved":"perhaps"}'
  return JSON.stringify({ approved: drawn > 0.75, findings: drawn > 0.75 ? [] : ['Mend it.'] })
}

/** Who sends a graph its inputs: begins, tries again what failed, stops it, and now and then says more than it needs. */
export class Director {
  busy = 0
  readonly #stage: Stage
  readonly #kind: Kind

  constructor(stage: Stage, kind: Kind) {
    this.#stage = stage
    this.#kind = kind
  }

  async play(): Promise<void> {
    const { store, actor, over } = this.#stage
    const { chance } = actor
    this.busy += 1
    const created = {
      type: 'session.created',
      agent: this.#kind,
      planner: `graph:${this.#kind}`,
      program: OWN,
    } as const
    await store.commit([ownerWrite(GRAPHED, EMPTY, [created], { now: actor.now(), epoch: 0 })])
    await this.#tell(0, 'Begin.')
    for (let n = 1; n < WORDS && !over() && actor.elapsed() < UNTIL_MS; ) {
      await actor.sleep(chance.between(1, LOOK_MS))
      const { run = null, last = null } = this.#stage.invariants.sessions().get(GRAPHED)?.fold ?? {}
      if (run === null && last !== null) {
        const again = last.type !== 'completed' && chance.yes(0.85)
        await this.#tell(n, again ? '{"retry": true}' : `Begin ${n}.`)
        n += 1
      } else if (chance.yes(0.03)) await this.#tell(n++, `And ${n}.`)
      else if (chance.yes(0.15)) await this.#stop(n++)
    }
    this.busy -= 1
  }

  async #tell(n: number, text: string): Promise<void> {
    const parts = [{ type: 'text', text }] as const
    await this.#stage.say(GRAPHED, { type: 'user.message', id: `g${n}`, parts, when: 'next' })
  }

  async #stop(n: number): Promise<void> {
    const mode = this.#stage.actor.chance.yes(0.7) ? 'stop' : 'pause'
    await this.#stage.say(GRAPHED, { type: 'user.interrupt', id: `gi${n}`, mode })
    if (mode === 'stop') return
    await this.#stage.actor.sleep(this.#stage.actor.chance.between(0, 200))
    await this.#stage.say(GRAPHED, { type: 'user.interrupt', id: `go${n}`, mode: 'resume' })
  }
}
