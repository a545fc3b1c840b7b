// The actors outside: users that write, approvers that click twice, hosts that answer late, and operators.
// They keep a journal of what was acknowledged; losing one of those entries is the worst a store can do.
import { isLaneAgent } from '../src/view/lanes.ts'
import type { Proposal } from '../src/kernel/content.ts'
import type { ArgumentsEdit, InboxBody } from '../src/kernel/event.ts'
import { Fault } from '../src/kernel/failure.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { digestOf } from '../src/tools/core/admit.ts'
import type { Invariants } from './invariants.ts'
import type { Disk } from './process.ts'
import type { Chance, Scheduler } from './scheduler.ts'
import { isForChild } from './watched.ts'

export type Ack = { readonly session: string; readonly seq: number; readonly id: string }

/** How long people come between parents and children. */
const OVERSEEN_MS = 1_500
const CARE_MS = 250
const WHEN = ['next', 'next', 'after', 'now'] as const

export type Stage = {
  readonly scheduler: Scheduler
  readonly store: CompleteStore
  readonly disk: Disk
  readonly invariants: Invariants
  readonly over: () => boolean
}

export class People {
  readonly acks: Ack[] = []
  readonly refused: string[] = []
  readonly #stage: Stage
  readonly #chance: Chance
  /** The call of the last approval for a whole run, by session. */
  readonly #wide = new Map<string, { readonly call: string; ended: boolean }>()
  /** How many are still going to send something. */
  busy = 0
  /** How often a session that was left alone was taken up again. */
  cared = 0

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
      const written = messageOf(id, `${session} ${id}`, chance.pick(WHEN))
      const plain: typeof written = chance.yes(0.2) ? { ...written, pin: true } : written
      // Now and then for a run with instructions of its own, which any process must give it.
      const message: InboxBody = chance.yes(0.2)
        ? { ...plain, when: 'after', options: { instructions: `Simulate ${id}.` }, metadata: { id } }
        : plain
      await this.say(session, message)
      if (chance.yes(0.2)) await this.say(session, message)
      // The first session is never interrupted: it is the one that is sure to run every class of effect.
      if (session !== 's0' && chance.yes(0.25)) await this.#interrupt(session, `i${i}`)
    }
    this.busy -= 1
  }

  /**
   * An impatient user: interrupts just when lost work is being looked into, and asks for something else at once; and writes while a
   * context that was cut is asked about again.
   */
  async meddler(): Promise<void> {
    const { scheduler, invariants, over } = this.#stage
    let n = 0
    while (!over() && scheduler.elapsed() < 2_000) {
      await scheduler.sleep(this.#chance.between(10, 60))
      for (const [session, { fold, cutAt, repliedAt }] of invariants.sessions()) {
        // A stop would switch a cron job off for good, and words for people are no input of a trigger.
        if (isLaneAgent(fold.agent) || /^(cron|trigger)\./.test(session)) continue
        if (fold.run !== null && cutAt > repliedAt && session !== 's0' && this.#chance.yes(0.7)) {
          n += 1
          for (const word of ['and', 'now'])
            await this.say(session, messageOf(`${word}${n}`, `${session} ${word} this`.padEnd(200, '.'), 'now'))
        }
        const epoch = invariants.leases.get(session)?.epoch ?? 0
        const lost = fold.run?.turn?.open.some((c) => c.state.type === 'running' && c.state.epoch < epoch)
        if (!lost || session === 's0' || this.#chance.yes(0.5)) continue
        n += 1
        await this.say(session, { type: 'user.interrupt', id: `meddle${n}`, mode: 'stop' })
        await this.say(session, messageOf(`instead${n}`, 'this instead', 'next'))
      }
    }
  }

  /**
   * An operator: resumes the sessions that were left alone after too many lost workers, and stops those that wait for a child
   * without money, since there is none. Those whose context is full are stopped, or tried once more.
   */
  async caretaker(): Promise<void> {
    const { scheduler, store, invariants, over } = this.#stage
    for (let n = 0; !over(); n++) {
      await scheduler.sleep(CARE_MS)
      for (const [, { fold }] of invariants.sessions()) {
        const { parent, run, inputs, last } = fold
        const broke = run === null && inputs.length === 0 && last?.type === 'limit' && last.limit === 'usd'
        const above = parent && broke ? invariants.sessions().get(parent.session)?.fold.run : null
        if (!parent || !above?.turn?.open.some(({ key }) => key === parent.call)) continue
        await this.say(parent.session, { type: 'user.interrupt', id: `broke${n}:${parent.call}`, mode: 'stop' })
      }
      for (const [session, { fold, full }] of invariants.sessions()) {
        if (!full || !fold.paused) continue
        this.cared += 1
        const mode = this.#chance.yes(0.6) ? 'stop' : 'resume'
        await this.say(session, { type: 'user.interrupt', id: `full${n}`, mode })
      }
      for (const { session, trouble } of await store.list({ limit: 1_000 })) {
        if (trouble?.until !== null) continue
        this.cared += 1
        await this.say(session, { type: 'user.interrupt', id: `care${n}`, mode: 'resume' })
      }
    }
  }

  async #interrupt(session: string, id: string): Promise<void> {
    await this.#stage.scheduler.sleep(this.#chance.between(0, 120))
    const mode = this.#chance.yes(0.7) ? 'stop' : 'pause'
    // An interrupt of this very run may come too late.
    const seen = this.#stage.invariants.sessions().get(session)?.fold.run?.seq
    if (this.#chance.yes(0.2)) await this.#stage.scheduler.sleep(this.#chance.between(0, 60))
    const run = seen !== undefined && this.#chance.yes(0.3) ? { run: seen } : {}
    await this.say(session, { type: 'user.interrupt', id, mode, ...run })
    if (mode === 'stop') return
    // A paused session is resumed later: by a message or by a resume, which now and then comes twice.
    await this.#stage.scheduler.sleep(this.#chance.between(0, 200))
    if (this.#chance.yes(0.5)) return this.say(session, messageOf(`go-${id}`, 'go on', 'next'))
    await this.say(session, { type: 'user.interrupt', id: `go-${id}`, mode: 'resume' })
    if (this.#chance.yes(0.2)) await this.say(session, { type: 'user.interrupt', id: `on-${id}`, mode: 'resume' })
  }

  /** A supervisor of children: sends them messages, pauses them, stops them. */
  async overseer(): Promise<void> {
    const { scheduler, invariants, over } = this.#stage
    this.busy += 1
    for (let n = 0; !over() && scheduler.elapsed() < OVERSEEN_MS; n++) {
      await scheduler.sleep(this.#chance.between(20, 90))
      const children = [...invariants.sessions()].filter(([, { fold }]) => fold.parent !== null && fold.run !== null)
      if (children.length === 0 || this.#chance.yes(0.5)) continue
      const [session] = this.#chance.pick(children)
      if (this.#chance.yes(0.6)) await this.#interrupt(session, `over${n}`)
      else await this.say(session, messageOf(`over${n}`, 'and this', this.#chance.pick(WHEN)))
    }
    this.busy -= 1
  }

  /** Decides what is asked and answers what is owned outside: late, twice, and sometimes for what is no longer there. */
  async approver(): Promise<void> {
    const chance = this.#chance
    let click = 0
    while (!this.#stage.over()) {
      await this.#stage.scheduler.sleep(chance.between(5, 40))
      for (const [session, { fold }] of this.#stage.invariants.sessions()) {
        // Questions first: a call that is asked about again may wait beside one that was handed out before.
        const open = fold.run?.turn?.open ?? []
        const waiting =
          open.find(({ state }) => state.type === 'asked') ??
          open.find(({ state, proposal }) => state.type === 'outside' && !isForChild(proposal))
        if (!waiting || chance.yes(0.4)) continue
        if (waiting.state.type === 'outside' && fold.parent !== null && !this.#comesBetween(session)) continue
        const { key, state, proposal } = waiting
        click += 1
        if (state.type === 'outside') await this.#answer(session, key, click)
        else await this.#decide(session, key, proposal, click)
      }
    }
  }

  /** What a child asks is its parent's to answer; people do it where the parent does not, and now and then before it can. */
  #comesBetween(session: string): boolean {
    const early = this.#stage.scheduler.elapsed() < OVERSEEN_MS
    // What is no model cannot answer.
    if (this.#stage.invariants.sessions().get(session)?.fold.parent?.parks) return this.#chance.yes(0.5)
    return this.#stage.invariants.awaited(session) ? early && this.#chance.yes(0.1) : this.#chance.yes(0.08)
  }

  async #decide(session: string, call: string, proposal: Proposal, click: number): Promise<void> {
    const chance = this.#chance
    const { digest = '' } = proposal
    const decision = { type: 'user.tool_confirmation', call, by: 'sim' } as const
    if (chance.yes(0.15))
      await this.say(session, { ...decision, id: `w${click}`, digest: 'of another action', allow: true })
    // A decision that refers to an approval for the run, which may be valid, have ended, or never have existed.
    const wide = this.#wide.get(session)
    if (wide !== undefined && chance.yes(wide.ended ? 0.8 : 0.4))
      await this.say(session, { ...decision, id: `u${click}`, digest, allow: true, under: wide.call })
    const allow = chance.yes(wide && !wide.ended ? 0.4 : 0.7)
    const scope = allow && chance.yes(0.4) ? ({ scope: 'run', remember: { effect: 'allow' } } as const) : {}
    if ('scope' in scope) this.#wide.set(session, { call, ended: false })
    else if (!allow && wide) wide.ended = true
    // Not by chance, which would change every seed: each third yes has other arguments.
    const edit = allow && click % 3 === 0 ? this.#edited(proposal, click) : {}
    await this.say(session, { ...decision, id: `d${click}`, digest, allow, ...scope, ...edit })
    if (chance.yes(0.3)) await this.say(session, { ...decision, id: `e${click}`, digest, allow: chance.yes(0.5) })
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
    const answer = { type: 'user.custom_tool_result', call, ok: true } as const
    await this.say(session, { ...answer, id: `a${click}`, content: 'first' })
    if (this.#chance.yes(0.3)) await this.say(session, { ...answer, id: `b${click}`, content: 'second' })
  }

  /** Retries with the same id until it is acknowledged, as a careful client does. */
  async say(session: string, event: InboxBody): Promise<void> {
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

function messageOf(
  id: string,
  text: string,
  when: (typeof WHEN)[number],
): Extract<InboxBody, { type: 'user.message' }> {
  return { type: 'user.message', id, parts: [{ type: 'text', text }], when }
}
