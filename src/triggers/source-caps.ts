// The caps of a source: deliveries a minute, which the store counts, and runs at once, which each process counts for
// itself. Over a cap a delivery waits; none is refused before a day of minutes is full.
import type { Charge, CompleteStore } from '../ports/store.ts'

export const MINUTE_MS = 60_000
/** A delivery waits for a free minute of the next day at most. */
const MINUTES_AHEAD_MAX = 24 * 60

/** The first minute of each source that may have room. It saves asking the store for minutes that are full. */
export class MinuteSlots {
  readonly #first = new Map<string, number>()

  /** The next minute to try; null if a whole day is full. */
  next(source: string, now: number): number | null {
    const current = Math.floor(now / MINUTE_MS)
    const known = this.#first.get(source) ?? current
    // A minute further ahead was found before the clock was set back.
    const minute = known > current + MINUTES_AHEAD_MAX ? current : Math.max(current, known)
    return minute < current + MINUTES_AHEAD_MAX ? minute : null
  }

  markFull(source: string, minute: number): void {
    this.#first.set(source, Math.max(this.#first.get(source) ?? 0, minute + 1))
  }
}

/** Counts one delivery in this minute. The store refuses the commit if the minute is full. */
export function minuteCharges(source: string, minute: number, perMinute: number, key: string): readonly Charge[] {
  const account = `${MINUTES}${source}:${minute}`
  return [
    { type: 'limit', account, limit: perMinute },
    { type: 'hold', key, accounts: [account], amount: 1 },
    { type: 'settle', key, amount: 1 },
  ]
}

const MINUTES = 'triggers:'

/** Whether a commit was refused because a minute is full. */
export function isMinuteFull(detail: string): boolean {
  return detail.startsWith(MINUTES)
}

const LOOK_MS = 250

/** The triggers of one source that work in this process. One that has ended unseen is found by its card. */
export class RunsAtOnce {
  readonly #max: number
  readonly #store: Pick<CompleteStore, 'card'>
  readonly #working = new Set<string>()
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(max: number, store: Pick<CompleteStore, 'card'>) {
    this.#max = max
    this.#store = store
  }

  /** False: as many as may work at once do. */
  async enter(session: string, now: number): Promise<boolean> {
    if (this.#isFull(session) && Math.abs(now - this.#lookedAt) >= LOOK_MS) {
      this.#lookedAt = now
      await this.#dropEnded()
    }
    if (this.#isFull(session)) return false
    this.#working.add(session)
    return true
  }

  leave(session: string): void {
    this.#working.delete(session)
  }

  #isFull(session: string): boolean {
    return this.#working.size >= this.#max && !this.#working.has(session)
  }

  async #dropEnded(): Promise<void> {
    for (const session of [...this.#working]) {
      const card = await this.#store.card(session)
      if (card?.status !== 'running') this.#working.delete(session)
    }
  }
}
