// Everybody outside: users who write, approvers who click twice, hosts who answer late, somebody who pulls the plug.
// They keep a journal of what was acknowledged; losing one of those is the worst a store can do.
import type { InboxBody } from '../src/kernel/event.ts'
import { Fault } from '../src/kernel/failure.ts'
import type { Store } from '../src/kernel/ports.ts'
import type { Invariants } from './invariants.ts'
import type { Disk } from './process.ts'
import type { Chance, Scheduler } from './scheduler.ts'

export type Ack = { readonly session: string; readonly seq: number; readonly id: string }

export type Stage = {
  readonly scheduler: Scheduler
  readonly store: Store
  readonly disk: Disk
  readonly invariants: Invariants
  readonly over: () => boolean
}

export class People {
  readonly acks: Ack[] = []
  readonly refused: string[] = []
  readonly #stage: Stage
  readonly #chance: Chance
  /** How many are still going to send something. */
  busy = 0

  constructor(stage: Stage) {
    this.#stage = stage
    this.#chance = stage.scheduler.chance
  }

  /** A user of one session: some messages, now and then the same one twice, now and then an interrupt. */
  async user(session: string): Promise<void> {
    this.busy += 1
    const chance = this.#chance
    for (let i = 0, n = chance.between(2, 4); i < n; i++) {
      await this.#stage.scheduler.sleep(chance.between(0, 350))
      const id = `m${i}`
      const when = chance.pick(['next', 'next', 'after', 'now'] as const)
      const message: InboxBody = { type: 'user.message', id, parts: [{ type: 'text', text: `${session} ${id}` }], when }
      await this.#say(session, message)
      if (chance.yes(0.2)) await this.#say(session, message)
      // Nobody interrupts the first session: it is the one that is sure to run every class of effect.
      if (session !== 's0' && chance.yes(0.25)) await this.#interrupt(session, `i${i}`)
    }
    this.busy -= 1
  }

  /** Somebody impatient: interrupts just when lost work is being looked into, and asks for something else at once. */
  async meddler(): Promise<void> {
    const { scheduler, invariants, over } = this.#stage
    let n = 0
    while (!over() && scheduler.elapsed() < 2_000) {
      await scheduler.sleep(this.#chance.between(10, 60))
      for (const [session, { fold }] of invariants.sessions()) {
        const epoch = invariants.leases.get(session)?.epoch ?? 0
        const lost = fold.run?.turn?.open.some((c) => c.state.type === 'running' && c.state.epoch < epoch)
        if (!lost || session === 's0' || this.#chance.yes(0.5)) continue
        n += 1
        await this.#say(session, { type: 'user.interrupt', id: `meddle${n}`, mode: 'stop' })
        await this.#say(session, {
          type: 'user.message',
          id: `instead${n}`,
          parts: [{ type: 'text', text: 'this instead' }],
          when: 'next',
        })
      }
    }
  }

  async #interrupt(session: string, id: string): Promise<void> {
    await this.#stage.scheduler.sleep(this.#chance.between(0, 120))
    const mode = this.#chance.yes(0.7) ? 'stop' : 'pause'
    await this.#say(session, { type: 'user.interrupt', id, mode })
    if (mode === 'stop') return
    // Somebody who pauses goes on later.
    await this.#stage.scheduler.sleep(this.#chance.between(0, 200))
    await this.#say(session, {
      type: 'user.message',
      id: `go-${id}`,
      parts: [{ type: 'text', text: 'go on' }],
      when: 'next',
    })
  }

  /** Decides what is asked and answers what is owned outside: late, twice, and sometimes for what is no longer there. */
  async approver(): Promise<void> {
    const chance = this.#chance
    let click = 0
    while (!this.#stage.over()) {
      await this.#stage.scheduler.sleep(chance.between(5, 40))
      for (const [session, { fold }] of this.#stage.invariants.sessions()) {
        const waiting = fold.run?.turn?.open.find((c) => c.state.type === 'asked' || c.state.type === 'outside')
        if (!waiting || chance.yes(0.4)) continue
        const { key, state, proposal } = waiting
        click += 1
        if (state.type === 'outside') await this.#answer(session, key, click)
        else await this.#decide(session, key, proposal.digest ?? '', click)
      }
    }
  }

  async #decide(session: string, call: string, digest: string, click: number): Promise<void> {
    const chance = this.#chance
    const decision = { type: 'user.tool_confirmation', call, by: 'sim' } as const
    if (chance.yes(0.15))
      await this.#say(session, { ...decision, id: `w${click}`, digest: 'of another action', allow: true })
    await this.#say(session, { ...decision, id: `d${click}`, digest, allow: chance.yes(0.7) })
    if (chance.yes(0.3)) await this.#say(session, { ...decision, id: `e${click}`, digest, allow: chance.yes(0.5) })
  }

  async #answer(session: string, call: string, click: number): Promise<void> {
    const answer = { type: 'user.custom_tool_result', call, ok: true } as const
    await this.#say(session, { ...answer, id: `a${click}`, content: 'first' })
    if (this.#chance.yes(0.3)) await this.#say(session, { ...answer, id: `b${click}`, content: 'second' })
  }

  /** Retries with the same id until it is acknowledged, as a careful client does. */
  async #say(session: string, event: InboxBody): Promise<void> {
    const { scheduler, store, disk } = this.#stage
    await scheduler.sleep(this.#chance.between(0, 3))
    while (disk.fullUntil > scheduler.now()) await scheduler.sleep(10)
    try {
      const [receipt] = await store.commit([{ session, lane: 'inbox', events: [event] }])
      this.acks.push({ session, seq: receipt?.seqs[0] ?? 0, id: event.id })
    } catch (error) {
      this.refused.push(error instanceof Fault ? error.code : String(error))
    }
  }
}
