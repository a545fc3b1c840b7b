// Where a kill fell, from the evidence: what the worker had claimed and begun (its marks), what had happened (the oracle) and
// what is on disk (the logs). All logs are read right after each kill, and what was read is remembered, so that the end can
// show that nothing was changed or taken back. It judges single kills; the comparison at the end is verify.ts.
import type { Card } from '../../src/ports/store.ts'
import type { Event } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { EMPTY, type Session } from '../../src/kernel/session.ts'
import { digestOf, type MarkLine, type OracleLine, type Written } from './evidence.ts'

/**
 * before: a run is open, or about to be, and no intent of its turn is on disk.   between: an intent is on disk, its result is not.
 * after: the results of a turn are on disk, and the next request is open.   commit: a commit was begun and had not returned.
 * A worker drives many sessions, so one kill can fall into several of these, once for each.
 */
export type KillClass = 'before' | 'between' | 'after' | 'commit'

export type Struck = {
  readonly kills: Record<KillClass, number>
  /** Kills that found the worker with nothing in hand. */
  idle: number
  readonly sessions: Record<Exclude<KillClass, 'commit'>, number>
  /** Of the intents without a result: had the effect begun, had it ended? */
  readonly effects: { not: number; begun: number; ended: number }
  /** Of the commits that had not returned: were they on disk? */
  readonly commits: { whole: number; none: number }
}

/** A log as it was read after some kill. */
type Read = { state: Session; results: number; readonly digests: string[] }

export class Strikes {
  readonly struck: Struck = {
    kills: { before: 0, between: 0, after: 0, commit: 0 },
    idle: 0,
    sessions: { before: 0, between: 0, after: 0 },
    effects: { not: 0, begun: 0, ended: 0 },
    commits: { whole: 0, none: 0 },
  }
  readonly wrong: string[] = []
  /** Events of commits that returned to a worker, and how many of them were then not there. */
  acknowledged = 0
  lost = 0
  /** By session: the digests of the events read so far. */
  readonly reads = new Map<string, Read>()

  /** Judges one kill. */
  async judge(store: CompleteStore, marks: readonly MarkLine[], oracle: readonly OracleLine[]): Promise<void> {
    await this.#catchUp(store)
    const classes = new Set<KillClass>()
    for (const card of await store.list({ limit: 10_000 })) {
      const found = this.#classOf(card, marks, oracle)
      if (found === null) continue
      classes.add(found)
      this.struck.sessions[found] += 1
    }
    if (this.#commits(marks)) classes.add('commit')
    for (const found of classes) this.struck.kills[found] += 1
    if (classes.size === 0) this.struck.idle += 1
  }

  /** What a worker was promised that ended by itself. */
  async compare(store: CompleteStore, marks: readonly MarkLine[]): Promise<void> {
    await this.#catchUp(store)
    this.#commits(marks)
  }

  async #catchUp(store: CompleteStore): Promise<void> {
    for (const { session } of await store.list({ limit: 10_000 })) {
      const read = this.reads.get(session) ?? { state: EMPTY, results: 0, digests: [] }
      this.reads.set(session, read)
      const page = await store.read(session, read.state.seq)
      if (page.damaged) this.wrong.push(`${session}: event ${page.damaged.seq} is damaged: ${page.damaged.reason}`)
      for (const event of page.events) take(read, event)
    }
  }

  #classOf(card: Card, marks: readonly MarkLine[], oracle: readonly OracleLine[]): keyof Struck['sessions'] | null {
    const read = this.reads.get(card.session)
    const claim = marks.findLast((mark) => mark.type === 'claim' && mark.session === card.session)
    if (!read || claim?.type !== 'claim') return null
    const { epoch } = claim
    const { state, results } = read
    const open = state.run?.turn?.open ?? []
    const running = open.filter((call) => call.state.type === 'running' && call.state.epoch === epoch)
    for (const { key } of running) this.#effect(`${card.session}:${key}`, oracle)
    if (running.length > 0) return 'between'
    if (state.run?.model?.epoch === epoch) return results > 0 ? 'after' : 'before'
    // Claimed, with something to do, and nothing of it written yet.
    return state.epoch < epoch && card.due !== null ? 'before' : null
  }

  #effect(key: string, oracle: readonly OracleLine[]): void {
    const phases = oracle.filter((line) => line.key === key).map((line) => line.phase)
    if (phases.includes('end')) this.struck.effects.ended += 1
    else if (phases.includes('start')) this.struck.effects.begun += 1
    else this.struck.effects.not += 1
  }

  /** A commit that returned is a promise; one that did not may have happened or not. Was one of the latter open? */
  #commits(marks: readonly MarkLine[]): boolean {
    const ends = new Map(marks.flatMap((mark) => (mark.type === 'end' ? [[mark.n, mark.ok] as const] : [])))
    let open = false
    for (const mark of marks) {
      if (mark.type !== 'begin') continue
      const ok = ends.get(mark.n)
      open ||= ok === undefined
      for (const written of mark.writes) {
        if (ok === true) this.#promised(written)
        else if (ok === undefined && written.digests.length > 0) {
          this.struck.commits[this.#missing(written) === 0 ? 'whole' : 'none'] += 1
        }
      }
    }
    return open
  }

  #promised(written: Written): void {
    const missing = this.#missing(written)
    this.acknowledged += written.digests.length
    this.lost += missing
    if (missing > 0)
      this.wrong.push(`lost: ${missing} events of ${written.session} from ${written.seq}, promised to a worker`)
  }

  #missing({ session, seq, digests }: Written): number {
    const there = this.reads.get(session)?.digests ?? []
    return digests.filter((digest, i) => there[seq - 1 + i] !== digest).length
  }
}

/** A log that does not fold stops the whole run here: there is nothing to compare after that. */
function take(read: Read, event: Event): void {
  read.state = fold(read.state, event)
  read.digests.push(digestOf(event))
  if (event.type === 'run.started') read.results = 0
  else if (event.type === 'agent.tool_result') read.results += 1
}
