// An actor that moves sessions between stores: exports one with open calls, sometimes forges the file, imports it beside the
// original, and resumes it later; or forks one. A decision in one session must decide nothing in the other.
import type { Mutable, Proposal } from '../src/kernel/content.ts'
import type { InboxBody, OwnerBody } from '../src/kernel/event.ts'
import { Fault } from '../src/kernel/failure.ts'
import { EMPTY } from '../src/kernel/session.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import { findForkPoint } from '../src/sessions/fork.ts'
import { exportSession, importSession, type Portable } from '../src/archive/portable.ts'
import { forgeFile } from './forge-file.ts'
import type { Stage } from './people.ts'

const UNTIL_MS = 1_400
const COPIES_MAX = 2

export class Elsewhere {
  readonly tally = { imports: 0, forged: 0, forks: 0, let: 0 }
  /** How many are still held, or about to be. */
  busy = 0
  readonly #stage: Stage

  constructor(stage: Stage) {
    this.#stage = stage
  }

  async traveller(): Promise<void> {
    const { actor, over } = this.#stage
    const { chance } = actor
    if (chance.yes(0.4)) return
    this.busy += 1
    for (let n = 0; n < COPIES_MAX && !over() && actor.elapsed() < UNTIL_MS; ) {
      await actor.sleep(chance.between(5, 40))
      const found = this.#open()
      if (found === null) continue
      n += 1
      await (chance.yes(0.6) ? this.#import(found, `i${n}`) : this.#fork(found, `f${n}`))
    }
    this.busy -= 1
  }

  /** A root session with open calls. One with a call that is allowed and not yet begun is preferred. */
  #open(): string | null {
    const found = [...this.#stage.invariants.sessions()].filter(([id, { fold: state }]) => {
      const calls = state.run?.turn?.open ?? []
      return (
        state.parent === null &&
        /^s\d/.test(id) &&
        calls.length > 0 &&
        calls.every((call) => call.proposal.tool !== 'broken')
      )
    })
    const ready = found.filter(([, { fold: state }]) =>
      state.run?.turn?.open.some((call) => call.state.type === 'ready'),
    )
    const [id] = this.#stage.actor.chance.pick(ready.length > 0 ? ready : found) ?? []
    return id ?? null
  }

  async #import(from: string, id: string): Promise<void> {
    const { store, actor } = this.#stage
    const { chance } = actor
    try {
      const value = await exportSession(store, from)
      const forges = chance.yes(0.5)
      await importSession(store, forges ? forged(value) : value, { id })
      this.tally.imports += 1
      if (forges) this.tally.forged += 1
    } catch (error) {
      // It waits for a child.
      if (error instanceof Fault && error.code === 'invalid_input') return
      throw error
    }
    await actor.sleep(chance.between(0, 120))
    if (chance.yes(0.5)) await this.#stage.say(id, messageOf(`to-${id}`))
    await actor.sleep(chance.between(0, 200))
    await this.#stage.say(id, { type: 'user.interrupt', id: `let-${id}`, mode: chance.yes(0.8) ? 'resume' : 'stop' })
    this.tally.let += 1
  }

  async #fork(from: string, id: string): Promise<void> {
    const { store, invariants, actor } = this.#stage
    const { fold: state } = invariants.sessions().get(from) ?? {}
    if (!state) return
    const { agent, seq } = state
    const taken = await findForkPoint(store, from, seq)
    const fork = { session: from, seq: taken.seq }
    const bodies: readonly OwnerBody[] = [{ type: 'session.created', agent, planner: 'model', fork }, ...taken.events]
    await store.commit([ownerWrite(id, EMPTY, bodies, { now: actor.now(), epoch: 0 })])
    this.tally.forks += 1
  }
}

/** Forged so that its calls would run without approval. */
function forged(value: Portable): Portable {
  return forgeFile(value, ({ events }) => {
    for (const event of events) if (event.type === 'agent.message') for (const call of event.calls) bare(call)
  })
}

function bare(call: Mutable<Proposal>): void {
  if (call.gate?.type === 'refuse' || (call.gate?.type === 'ask' && call.gate.outside)) return
  delete call.digest
  delete call.place
  delete call.clear
  if (call.gate?.type === 'ask') delete call.gate
}

function messageOf(id: string): InboxBody {
  return { type: 'user.message', id, parts: [{ type: 'text', text: 'and this' }], when: 'next' }
}
