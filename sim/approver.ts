// Those who decide what is asked and answer what is owned outside: late, twice, and sometimes for what is no longer there. They sleep until
// somebody asks.
import type { Proposal } from '../src/kernel/content.ts'
import type { ArgumentsEdit } from '../src/kernel/event.ts'
import { digestOf } from '../src/tools/core/admit.ts'
import { waitingIn } from './invariants.ts'
import { OVERSEEN_MS, type Stage } from './people.ts'

/** How often they come between a parent and its child in one look. After the time of the overseer nobody else would. */
const BETWEEN = { early: 0.08, late: 0.3 } as const

export class Approver {
  readonly #stage: Stage
  /** The call of the last approval for a whole run, by session. */
  readonly #wide = new Map<string, { readonly call: string; ended: boolean }>()

  constructor(stage: Stage) {
    this.#stage = stage
  }

  async play(): Promise<void> {
    const { actor, invariants, over } = this.#stage
    const { chance } = actor
    for (let click = 0; !over(); ) {
      while (this.#answerable().length === 0) await invariants.nextCommit()
      await actor.sleep(chance.between(5, 40))
      for (const session of this.#answerable()) {
        const { fold } = invariants.sessions().get(session) ?? {}
        const waiting = fold && waitingIn(fold)
        if (!waiting || chance.yes(0.4)) continue
        if (waiting.state.type === 'outside' && fold.parent !== null && !this.#comesBetween(session)) continue
        const { key, state, proposal } = waiting
        click += 1
        if (state.type === 'outside') await this.#answer(session, key, click)
        else await this.#decide(session, key, proposal, click)
      }
    }
  }

  /** Without the children whose parents must answer: after a while people leave that to them. */
  #answerable(): readonly string[] {
    const { actor, invariants } = this.#stage
    const early = actor.elapsed() < OVERSEEN_MS
    return [...invariants.asking].filter((session) => {
      const { fold } = invariants.sessions().get(session) ?? {}
      if (early || !fold?.parent || fold.parent.parks || !invariants.awaited(session)) return true
      return waitingIn(fold)?.state.type === 'asked'
    })
  }

  /** What a child asks is its parent's to answer; people do it where the parent does not, and now and then before it can. */
  #comesBetween(session: string): boolean {
    const { actor, invariants } = this.#stage
    const early = actor.elapsed() < OVERSEEN_MS
    // What is no model cannot answer.
    if (invariants.sessions().get(session)?.fold.parent?.parks) return actor.chance.yes(0.5)
    if (invariants.awaited(session)) return early && actor.chance.yes(0.1)
    return actor.chance.yes(early ? BETWEEN.early : BETWEEN.late)
  }

  async #decide(session: string, call: string, proposal: Proposal, click: number): Promise<void> {
    const { actor, say } = this.#stage
    const { chance } = actor
    const { digest = '' } = proposal
    const decision = { type: 'user.tool_confirmation', call, by: 'sim' } as const
    if (chance.yes(0.15)) await say(session, { ...decision, id: `w${click}`, digest: 'of another action', allow: true })
    // A decision that refers to an approval for the run, which may be valid, have ended, or never have existed.
    const wide = this.#wide.get(session)
    if (wide !== undefined && chance.yes(wide.ended ? 0.8 : 0.4))
      await say(session, { ...decision, id: `u${click}`, digest, allow: true, under: wide.call })
    const allow = chance.yes(wide && !wide.ended ? 0.4 : 0.7)
    const scope = allow && chance.yes(0.4) ? ({ scope: 'run', remember: { effect: 'allow' } } as const) : {}
    if ('scope' in scope) this.#wide.set(session, { call, ended: false })
    else if (!allow && wide) wide.ended = true
    // Not by chance, which would change every seed: each third yes has other arguments.
    const edit = allow && click % 3 === 0 ? this.#edited(proposal, click) : {}
    await say(session, { ...decision, id: `d${click}`, digest, allow, ...scope, ...edit })
    if (chance.yes(0.3)) await say(session, { ...decision, id: `e${click}`, digest, allow: chance.yes(0.5) })
  }

  /** Other arguments for a call; now and then with a digest that is not of them, so that it must be asked about again. */
  #edited({ tool, place }: Proposal, click: number): { readonly edit?: ArgumentsEdit } {
    const definition = this.#stage.invariants.definitionOf(tool)
    if (definition === undefined) return {}
    const args = { n: 1_000 + click }
    return {
      edit: { args, digest: digestOf({ name: tool, definition }, { args: click % 9 === 0 ? {} : args, place }) },
    }
  }

  async #answer(session: string, call: string, click: number): Promise<void> {
    const { actor, say } = this.#stage
    const answer = { type: 'user.custom_tool_result', call, ok: true } as const
    await say(session, { ...answer, id: `a${click}`, content: 'first' })
    if (actor.chance.yes(0.3)) await say(session, { ...answer, id: `b${click}`, content: 'second' })
  }
}
