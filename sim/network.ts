// A simulated network between a process and its store: it loses answers, is cut for a while, delivers requests late, and silences
// listeners without an error. The store behind it never fails.
import { Fault } from '../src/kernel/failure.ts'
import { type Actor, Chance } from './scheduler.ts'

export type NetworkFaults = {
  /** It was done, and the one who asked hears that the store is busy. */
  readonly lostAnswer: number
  /** Nothing comes through for a while: shorter than a lease, or longer. */
  readonly dark: number
  /** What was asked in the dark arrives when the way is free again, long after its sender gave up. */
  readonly late: number
  /** A listener hears nothing for a while. */
  readonly deaf: number
}

export const NETWORK_FAULTS: NetworkFaults = { lostAnswer: 0.03, dark: 0.004, late: 0.5, deaf: 0.02 }

/** What a seed's world is like. Drawn beside its other chances, so that a world without a network is as it ever was. */
export type World = {
  /** The store is on another machine. */
  readonly networked: boolean
  /** The store finds and claims in one step. */
  readonly takes: boolean
}

export function worldOf(seed: number): World {
  const chance = new Chance(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995)
  return { networked: chance.yes(0.5), takes: chance.yes(0.5) }
}

/** A lease of a simulated worker is 120 ms, where a real one is 10 s: 60 ms are 5 s, and 180 ms are 15 s. */
const DARK_MS = [60, 180, 400] as const
/** A real store gives up after 10 s. */
const TIMEOUT_MS = 60
/** News are never missing for longer than this: the contract of `watch`. */
const NEWS_MS_MAX = 1_000

export type NetworkTally = { lostAnswers: number; darkened: number; latePackets: number; deafened: number }

/** The network of one process. It is an actor of its own. */
export class Network {
  readonly #actor: Actor
  readonly #chance: Chance
  readonly #faults: () => NetworkFaults | null
  readonly #tally: NetworkTally
  #darkUntil = 0
  #deafUntil = 0

  constructor(actor: Actor, faults: () => NetworkFaults | null, tally: NetworkTally) {
    this.#actor = actor
    this.#chance = actor.chance
    this.#faults = faults
    this.#tally = tally
  }

  /** Asks something that changes the store. `act` is done once at most. */
  async ask<T>(sleep: (ms: number) => Promise<void>, act: () => Promise<T>): Promise<T> {
    const faults = this.#faults()
    if (!faults) return act()
    if (this.#chance.yes(faults.dark)) {
      this.#tally.darkened += 1
      this.#darkUntil = this.#actor.now() + this.#chance.pick(DARK_MS)
    }
    if (this.#darkUntil > this.#actor.now()) {
      const late = this.#darkUntil - this.#actor.now() + this.#chance.between(0, 30)
      const arrives = this.#chance.yes(faults.late)
      // The request is carried out although its sender has given up, or has been killed.
      if (arrives) this.#actor.timer(late, () => void this.#arrive(act))
      await sleep(Math.min(TIMEOUT_MS, late))
      throw new Fault('store_busy', 'The store does not answer.')
    }
    const answer = await act()
    if (!this.#chance.yes(faults.lostAnswer)) return answer
    this.#tally.lostAnswers += 1
    throw new Fault('store_busy', 'The store did the work, and its answer was lost.')
  }

  /** A lost read changes nothing in the store: the caller repeats it. */
  async read<T>(sleep: (ms: number) => Promise<void>, act: () => Promise<T>): Promise<T> {
    if (this.#faults() && this.#darkUntil > this.#actor.now()) {
      await sleep(Math.min(TIMEOUT_MS, this.#darkUntil - this.#actor.now()))
      throw new Fault('store_busy', 'The store does not answer.')
    }
    return act()
  }

  /** After how long a listener hears the news, if not at once. */
  hears(delayMs: number): number {
    const faults = this.#faults()
    if (faults && this.#chance.yes(faults.deaf)) {
      this.#tally.deafened += 1
      this.#deafUntil = this.#actor.now() + this.#chance.between(100, NEWS_MS_MAX)
    }
    return Math.max(delayMs, this.#deafUntil - this.#actor.now())
  }

  async #arrive(act: () => Promise<unknown>): Promise<void> {
    this.#tally.latePackets += 1
    await act().catch(() => {})
  }
}
