// The caps of a source: deliveries a minute, which the store counts, and runs at once, which each process counts for
// itself. Over a cap a delivery waits; none is refused before a day of minutes is full.
import type { Charge, CompleteStore } from '../ports/store.ts'

export const CAP_WINDOW_MS = 60_000
/** A delivery waits for a free minute of the next day at most. */
const MINUTES_AHEAD_MAX = 24 * 60

/**
 * Which minute a delivery is for. This process gives no minute to more deliveries than the cap, so that the store refuses
 * only those for whose minute other processes were faster.
 */
export class MinuteSlots {
  readonly #open = new Map<string, { readonly minute: number; readonly given: number }>()

  /** The next minute with room; null if a whole day is full. */
  take(source: string, now: number, perMinute: number): number | null {
    const current = Math.floor(now / CAP_WINDOW_MS)
    const known = this.#open.get(source)
    // A minute further ahead was found before the clock was set back.
    const isOpen = known && known.minute >= current && known.minute <= current + MINUTES_AHEAD_MAX
    const { minute, given } = isOpen ? known : { minute: current, given: 0 }
    const slot = given < perMinute ? { minute, given: given + 1 } : { minute: minute + 1, given: 1 }
    if (slot.minute >= current + MINUTES_AHEAD_MAX) return null
    this.#open.set(source, slot)
    return slot.minute
  }

  /** The store refused this minute: it is full. */
  skip(source: string, minute: number): void {
    if (this.#open.get(source)?.minute === minute) this.#open.set(source, { minute: minute + 1, given: 0 })
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
    for (const session of Array.from(this.#working)) {
      const card = await this.#store.card(session)
      if (card?.status !== 'running') this.#working.delete(session)
    }
  }
}
