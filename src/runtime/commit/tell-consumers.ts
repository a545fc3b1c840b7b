// Tells consumers about a settled run: one message for each of them, in the commit that settles the run. A lane that is
// missing is created in that same commit. Loaded by the first root session of a harness with consumers, and by sessions
// that pursue an outcome: the runs of a pursuit are told to one more consumer, which continues it.
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { EMPTY } from '../../kernel/session.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { lifeOf } from '../../stores/plan/plan-writes.ts'
import { harnessId } from '../../stores/plan/store-ids.ts'
import { laneAgent, laneId } from '../../view/lanes.ts'
import { OUTCOMES, PURSUIT } from '../../view/pursuits.ts'
import { UNNAMED } from '../../view/session-program.ts'
import { ownProgramName } from '../state/program.ts'
import type { Services, ToldConsumer } from '../state/runtime-ports.ts'
import type { CommitDraft } from './commit-draft.ts'
import { ownerWrite } from './owner-write.ts'

type Lane = { readonly id: string; readonly agent: string; readonly runs: NonNullable<ToldConsumer['runs']> }

export class ConsumerPart {
  readonly #store: CompleteStore
  readonly #program: string
  readonly #existing: Set<string>
  readonly #report: (error: unknown) => void
  #lanes: readonly Lane[]

  /** `pursues`: one of its runs may be a round of a pursuit. */
  constructor(
    services: Services,
    { told, existing }: NonNullable<Services['consumers']>,
    session: string,
    pursues: boolean,
  ) {
    this.#store = services.store
    this.#existing = existing
    this.#report = (error) => services.report?.('consumers', error)
    this.#program = ownProgramName(services)
    const program = this.#program === UNNAMED ? null : this.#program
    const all: readonly ToldConsumer[] = pursues ? [...told, { name: OUTCOMES }] : told
    this.#lanes = all.map(({ name, runs = 'all' }) => {
      return { id: laneId(name, session, program), agent: laneAgent(name), runs }
    })
  }

  /** Finds out which lanes exist. A session of another agent under a lane's id gets no messages. */
  async open(): Promise<void> {
    for (const lane of this.#lanes) if (!this.#existing.has(lane.id)) await this.#look(lane)
  }

  /** After a refused commit: whether other lanes exist than before, so that the commit can be planned anew. */
  async lookAgain(): Promise<boolean> {
    const before = this.#lanes.map(({ id }) => this.#existing.has(id))
    for (const lane of this.#lanes) await this.#look(lane)
    return this.#lanes.some(({ id }, i) => this.#existing.has(id) !== before[i])
  }

  async #look(lane: Lane): Promise<void> {
    const card = await this.#store.card(lane.id)
    if (card === null) this.#existing.delete(lane.id)
    else if (card.agent === lane.agent && card.status !== 'terminated') this.#existing.add(lane.id)
    else {
      this.#lanes = this.#lanes.filter(({ id }) => id !== lane.id)
      const text = `Session ${lane.id} stands where the lane of a consumer must be. Remove it: until then that consumer is told of no run of this lane.`
      this.#report(new Error(text))
    }
  }

  /** The next event of this commit settles the run that began at `run`. */
  tellSettled(draft: CommitDraft, run: number): void {
    const { id: session, here } = draft
    const seq = draft.session.seq + 1
    const life = lifeOf(here.epoch)
    // The id of a removed session may be used again.
    const key = ['settled', session, seq, ...(life > 0 ? [life] : [])].join(':')
    const text = JSON.stringify({ key, group: session, data: { session, run, seq, life } })
    const event: InboxBody = {
      type: 'user.message',
      id: harnessId(key),
      parts: [{ type: 'text', text }],
      when: 'next',
      by: `session:${session}`,
    }
    const { sends, births } = draft.writesForRelatives()
    const isRound = draft.session.run?.metadata?.[PURSUIT] !== undefined
    const isFirst = draft.session.last === null
    for (const { id, agent, runs } of this.#lanes) {
      if ((agent === laneAgent(OUTCOMES) && !isRound) || (runs === 'first' && !isFirst)) continue
      if (this.#existing.has(id)) sends.push({ session: id, event })
      else {
        const { folder } = draft.session
        const place = folder === undefined ? {} : { folder }
        const created: OwnerBody = { type: 'session.created', agent, planner: agent, ...place, program: this.#program }
        births.push(ownerWrite(id, EMPTY, [created], { now: here.now, epoch: 0 }))
        births.push({ session: id, lane: 'inbox', events: [event] })
      }
    }
  }
}
