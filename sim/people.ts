// The people outside: users that write, and operators. Those who decide and answer are in approver.ts. They keep a journal of what was
// acknowledged; losing one of those entries is the worst a store can do.
import { isLaneAgent } from '../src/view/lanes.ts'
import type { InboxBody } from '../src/kernel/event.ts'
import { Fault } from '../src/kernel/failure.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import type { Invariants } from './invariants.ts'
import type { Disk } from './process.ts'
import type { Actor } from './scheduler.ts'

export type Ack = { readonly session: string; readonly seq: number; readonly id: string }

/** How long people come between parents and children. */
export const OVERSEEN_MS = 1_500
/** An operator who finds nothing to do looks less and less often, down to each four seconds. */
const CARE_MS = 250
const CARELESS_MAX = 16
const WHEN = ['next', 'next', 'after', 'now'] as const

export type Stage = {
  readonly actor: Actor
  readonly store: CompleteStore
  readonly disk: Disk
  readonly invariants: Invariants
  readonly over: () => boolean
  /** As `People.say`, by this actor. */
  readonly say: (session: string, event: InboxBody) => Promise<void>
}

export class People {
  readonly acks: Ack[] = []
  readonly refused: string[] = []
  readonly #stageOf: (name: string) => Stage
  /** How many are still going to send something. */
  busy = 0
  /** How often a session that was left alone was taken up again. */
  cared = 0

  constructor(stageOf: (name: string) => Stage) {
    this.#stageOf = stageOf
  }

  /** A user of one session: some messages, now and then the same one twice, now and then an interrupt. */
  async user(session: string): Promise<void> {
    this.busy += 1
    const stage = this.#stageOf(`user ${session}`)
    const { actor, say } = stage
    const { chance } = actor
    for (let i = 0, n = chance.between(2, 4); i < n; i++) {
      await actor.sleep(chance.between(0, 350))
      const id = `m${i}`
      const written = messageOf(id, `${session} ${id}`, chance.pick(WHEN))
      const plain: typeof written = chance.yes(0.2) ? { ...written, pin: true } : written
      // Now and then for a run with instructions of its own, which any process must give it.
      const message: InboxBody = chance.yes(0.2)
        ? { ...plain, when: 'after', options: { instructions: `Simulate ${id}.` }, metadata: { id } }
        : plain
      await say(session, message)
      if (chance.yes(0.2)) await say(session, message)
      // The first session is never interrupted: it is the one that is sure to run every class of effect.
      if (session !== 's0' && chance.yes(0.25)) await this.#interrupt(stage, session, `i${i}`)
    }
    this.busy -= 1
  }

  /**
   * An impatient user: interrupts just when lost work is being looked into, and asks for something else at once; and writes while a
   * context that was cut is asked about again.
   */
  async meddler(): Promise<void> {
    const { actor, invariants, over, say } = this.#stageOf('meddler')
    const { chance } = actor
    let n = 0
    while (!over() && actor.elapsed() < 2_000) {
      await actor.sleep(chance.between(10, 60))
      for (const [session, { fold, cutAt, repliedAt }] of invariants.sessions()) {
        // A stop would switch a cron job off for good, and words for people are no input of a trigger.
        if (isLaneAgent(fold.agent) || /^(cron|trigger)\./.test(session)) continue
        if (fold.run !== null && cutAt > repliedAt && session !== 's0' && chance.yes(0.7)) {
          n += 1
          for (const word of ['and', 'now'])
            await say(session, messageOf(`${word}${n}`, `${session} ${word} this`.padEnd(200, '.'), 'now'))
        }
        const epoch = invariants.leases.get(session)?.epoch ?? 0
        const lost = fold.run?.turn?.open.some((c) => c.state.type === 'running' && c.state.epoch < epoch)
        if (!lost || session === 's0' || chance.yes(0.5)) continue
        n += 1
        await say(session, { type: 'user.interrupt', id: `meddle${n}`, mode: 'stop' })
        await say(session, messageOf(`instead${n}`, 'this instead', 'next'))
      }
    }
  }

  /**
   * An operator: resumes the sessions that were left alone after too many lost workers, and stops those that wait for a child
   * without money, since there is none. Those whose context is full are stopped, or tried once more.
   */
  async caretaker(): Promise<void> {
    const { actor, store, invariants, over, say } = this.#stageOf('caretaker')
    for (let n = 0, careless = 1; !over(); n++) {
      await actor.sleep(CARE_MS * careless)
      const { cared } = this
      for (const [, { fold }] of invariants.sessions()) {
        const { parent, run, inputs, last } = fold
        const broke = run === null && inputs.length === 0 && last?.type === 'limit' && last.limit === 'usd'
        const above = parent && broke ? invariants.sessions().get(parent.session)?.fold.run : null
        if (!parent || !above?.turn?.open.some(({ key }) => key === parent.call)) continue
        await say(parent.session, { type: 'user.interrupt', id: `broke${n}:${parent.call}`, mode: 'stop' })
      }
      for (const [session, { fold, full }] of invariants.sessions()) {
        if (!full || !fold.paused) continue
        this.cared += 1
        const mode = actor.chance.yes(0.6) ? 'stop' : 'resume'
        await say(session, { type: 'user.interrupt', id: `full${n}`, mode })
      }
      for (const { session, trouble } of await store.list({ limit: 1_000 })) {
        if (trouble?.until !== null) continue
        this.cared += 1
        await say(session, { type: 'user.interrupt', id: `care${n}`, mode: 'resume' })
      }
      careless = this.cared > cared ? 1 : Math.min(careless + 1, CARELESS_MAX)
    }
  }

  async #interrupt({ actor, invariants, say }: Stage, session: string, id: string): Promise<void> {
    const { chance } = actor
    await actor.sleep(chance.between(0, 120))
    const mode = chance.yes(0.7) ? 'stop' : 'pause'
    // An interrupt of this very run may come too late.
    const seen = invariants.sessions().get(session)?.fold.run?.seq
    if (chance.yes(0.2)) await actor.sleep(chance.between(0, 60))
    const run = seen !== undefined && chance.yes(0.3) ? { run: seen } : {}
    await say(session, { type: 'user.interrupt', id, mode, ...run })
    if (mode === 'stop') return
    // A paused session is resumed later: by a message or by a resume, which now and then comes twice.
    await actor.sleep(chance.between(0, 200))
    if (chance.yes(0.5)) return say(session, messageOf(`go-${id}`, 'go on', 'next'))
    await say(session, { type: 'user.interrupt', id: `go-${id}`, mode: 'resume' })
    if (chance.yes(0.2)) await say(session, { type: 'user.interrupt', id: `on-${id}`, mode: 'resume' })
  }

  /** A supervisor of children: sends them messages, pauses them, stops them. */
  async overseer(): Promise<void> {
    const stage = this.#stageOf('overseer')
    const { actor, invariants, over, say } = stage
    const { chance } = actor
    this.busy += 1
    for (let n = 0; !over() && actor.elapsed() < OVERSEEN_MS; n++) {
      await actor.sleep(chance.between(20, 90))
      const children = [...invariants.sessions()].filter(([, { fold }]) => fold.parent !== null && fold.run !== null)
      if (children.length === 0 || chance.yes(0.5)) continue
      const [session] = chance.pick(children)
      if (chance.yes(0.6)) await this.#interrupt(stage, session, `over${n}`)
      else await say(session, messageOf(`over${n}`, 'and this', chance.pick(WHEN)))
    }
    this.busy -= 1
  }

  /** Retries with the same id until it is acknowledged, as a careful client does. */
  async say({ actor, store, disk }: Omit<Stage, 'say'>, session: string, event: InboxBody): Promise<void> {
    await actor.sleep(actor.chance.between(0, 3))
    while (disk.fullUntil > actor.now()) await actor.sleep(10)
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
