// Virtual time and seeded chance: one seed decides every delay, fault, reply and click. Each actor draws from a chance of its own, so that
// another actor moves nothing of what it does. No real clock. Where a store does real I/O, time waits for it at a gate.
import type { Clock } from '../src/ports/system.ts'
import type { Gate } from './gate.ts'

export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not including, 1 (mulberry32). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  yes(share: number): boolean {
    return this.fraction() < share
  }

  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length - 1)] as T
  }
}

type Timer = { readonly at: number; readonly rank: number; readonly fire: () => void; cancelled: boolean }

const START = 1_700_000_000_000

/** One who acts in time: a process, a person, the store. */
export class Actor implements Clock {
  /** Follows from the seed and the actor's name alone. */
  readonly chance: Chance
  readonly #scheduler: Scheduler

  constructor(scheduler: Scheduler, chance: Chance) {
    this.#scheduler = scheduler
    this.chance = chance
  }

  now(): number {
    return this.#scheduler.now()
  }

  elapsed(): number {
    return this.#scheduler.elapsed()
  }

  timer(ms: number, fire: () => void): () => void {
    return this.#scheduler.timer(ms, this.chance.fraction(), fire)
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timer(ms, resolve)
    })
  }
}

/** Fires timers in the order of their time; which of several at the same time comes first is the choice of those who set them. */
export class Scheduler {
  readonly #seed: number
  #now = START
  readonly #heap: Timer[] = []
  readonly #gate: Gate | null

  constructor(seed: number, gate: Gate | null = null) {
    this.#seed = seed
    this.#gate = gate
  }

  /** Two actors must not have one name. */
  actor(name: string): Actor {
    return new Actor(this, new Chance(mixed(this.#seed, name)))
  }

  now(): number {
    return this.#now
  }

  elapsed(): number {
    return this.#now - START
  }

  /** `rank`: which of the timers of one moment comes first. */
  timer(ms: number, rank: number, fire: () => void): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, ms), rank, fire, cancelled: false }
    this.#push(timer)
    return () => {
      timer.cancelled = true
    }
  }

  /** Lets everything that is ready happen. Then the time of the next timer, or null when there is none. */
  async next(): Promise<number | null> {
    await this.still()
    while (this.#heap[0]?.cancelled) this.#pop()
    return this.#heap[0]?.at ?? null
  }

  /** Moves time to the next timer. */
  fire(): void {
    const timer = this.#pop()
    if (!timer) return
    this.#now = Math.max(this.#now, timer.at)
    timer.fire()
  }

  /** When everything that is ready has happened, and the store has nothing more to do. */
  async still(): Promise<void> {
    await settleMicrotasks()
    while (this.#gate?.isBusy) {
      await this.#gate.idle
      await settleMicrotasks()
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let i = heap.push(timer) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!before(timer, heap[parent] as Timer)) break
      heap[i] = heap[parent] as Timer
      i = parent
    }
    heap[i] = timer
  }

  #pop(): Timer | undefined {
    const heap = this.#heap
    const top = heap[0]
    const last = heap.pop()
    if (!top || !last || heap.length === 0) return top
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1] as Timer, heap[child] as Timer)) child += 1
      if (!before(heap[child] as Timer, last)) break
      heap[i] = heap[child] as Timer
      i = child
    }
    heap[i] = last
    return top
  }
}

/** A seed for each name (FNV-1a, and then the last mixing of murmur3), so that near names have chances that are far from each other. */
function mixed(seed: number, name: string): number {
  let h = 0x811c9dc5 ^ seed
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.rank < b.rank)
}

/** How many steps one round of the event loop makes: a round asks the system for input and output, and there is none. */
const ROUND = 256
let waiting: (() => void) | null = null
let immediatesLeft = 0

/** A macrotask: every promise that can settle has settled when it runs. Several stand in line, and between two all promises settle. */
function settleMicrotasks(): Promise<void> {
  return new Promise((resolve) => {
    waiting = resolve
    if (immediatesLeft > 0) return
    immediatesLeft = ROUND
    for (let i = 0; i < ROUND; i++) setImmediate(runStep)
  })
}

function runStep(): void {
  immediatesLeft -= 1
  const resolve = waiting
  waiting = null
  resolve?.()
}
