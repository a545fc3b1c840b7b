// The worker: holds leases and drives sessions, one attempt a session at a time. It decides nothing about a session;
// it only looks when asked (`wake`) or when something is due (`start`).
import { Fault } from '../kernel/failure.ts'
import type { Waiting } from '../kernel/next.ts'
import { Bell } from './bell.ts'
import { Book } from './book.ts'
import type { Leash } from './draft.ts'
import { drive, type Ended } from './drive.ts'
import { abandon, deadlineOf, Performer } from './perform.ts'
import { sleep } from './sleep.ts'
import type { World } from './world.ts'

export type WorkerOptions = {
  readonly id: string
  readonly leaseMs?: number
  readonly graceMs?: number
  readonly lingerMs?: number
  readonly patienceMs?: number
  /** How many sessions this worker drives at once when it looks for due ones itself. */
  readonly width?: number
  /** Called with what an attempt threw: a Fault of the store, or a Bug. */
  readonly onError?: (session: string, error: unknown) => void
}

export type Looked =
  | { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
  /** Another worker drives it. */
  | { readonly type: 'contended' }
  | { readonly type: 'lost' }
  | { readonly type: 'stopped' }

type Attempt = { readonly leash: Leash; epoch: number; again: boolean; readonly ended: Promise<Looked> }

const BOOKS_KEPT = 32
/** How long a claim may take before the same session is looked at again. */
const CLAIM_MS = 100

export class Worker {
  readonly id: string
  readonly #world: World
  readonly #options: Required<Omit<WorkerOptions, 'id' | 'onError'>> & Pick<WorkerOptions, 'onError'>
  readonly #performer: Performer
  readonly #attempts = new Map<string, Attempt>()
  readonly #books = new Map<string, Book>()
  #until = 0
  #cancelBeat: (() => void) | null = null
  #extending = false
  #closing = false
  #loop: { readonly bell: Bell; readonly done: Promise<void> } | null = null

  constructor(world: World, options: WorkerOptions) {
    this.id = options.id
    this.#world = world
    this.#performer = new Performer(world)
    this.#options = { leaseMs: 30_000, graceMs: 5_000, lingerMs: 30_000, patienceMs: 60_000, width: 64, ...options }
  }

  /** Look at a session, and drive it until it rests. Coalescing: a look during an attempt is part of that attempt. */
  wake(session: string): Promise<Looked> {
    if (this.#closing) return Promise.resolve({ type: 'stopped' })
    const running = this.#attempts.get(session)
    if (running) {
      running.again = true
      return running.ended
    }
    const leash: Leash = { pull: null, ring: () => {} }
    const ended = this.#attempt(session, leash).finally(() => this.#left(session))
    this.#attempts.set(session, { leash, epoch: 0, again: false, ended })
    return ended
  }

  /** Drive whatever becomes due, until `close`. Sleeps exactly to the next due time. */
  start(): void {
    if (this.#loop) return
    const bell = new Bell(this.#world.clock)
    const unwatch = this.#world.store.watchDue(bell.ring)
    const done = this.#patrol(bell).finally(() => {
      unwatch()
      bell.close()
    })
    this.#loop = { bell, done }
  }

  /** Abort what is in flight, write down what it came to, and give every session back. */
  async close(): Promise<void> {
    this.#closing = true
    this.#loop?.bell.ring()
    for (const { leash } of this.#attempts.values()) {
      leash.pull ??= 'stopped'
      leash.ring()
    }
    await Promise.allSettled([...this.#attempts.values()].map((attempt) => attempt.ended))
    this.#cancelBeat?.()
    await this.#loop?.done
  }

  /** A worker that drives nothing has no heartbeat, and keeps no process alive. */
  #left(session: string): void {
    this.#attempts.delete(session)
    if (this.#attempts.size > 0) return
    this.#cancelBeat?.()
    this.#cancelBeat = null
  }

  async #attempt(session: string, leash: Leash): Promise<Looked> {
    const { store, live } = this.#world
    for (;;) {
      // Whoever follows looks for the address when the first event of this attempt is committed.
      await live.serve(this.id, this.#options.leaseMs)
      const begun = store.now()
      const claim = await store.claim(session, this.id, this.#options.leaseMs)
      if (!claim) return { type: 'contended' }
      const attempt = this.#attempts.get(session)
      if (attempt) attempt.epoch = claim.epoch
      this.#renew(begun + this.#options.leaseMs)
      this.#beat()
      const ended = await this.#drive(session, claim.epoch, leash)
      if (ended.type !== 'rested' || !attempt?.again || this.#closing) return ended
      // Somebody looked while this attempt was ending: go on only if there is something to see.
      attempt.again = false
      const card = await store.card(session)
      const due = card?.due ?? null
      if (due === null || due > store.now()) return ended
    }
  }

  async #drive(session: string, epoch: number, leash: Leash): Promise<Ended> {
    const { store, clock, redactor } = this.#world
    const { graceMs, lingerMs, patienceMs, leaseMs } = this.#options
    let book: Book | null = null
    try {
      book = await this.#open(session)
      const held = (): boolean => store.now() < this.#until
      const { perform, fail } = this.#performer.for(book)
      const flights = { perform, fail, abandon, deadlineOf, graceMs, held }
      const renewed = (at: number): void => this.#renew(at + (leaseMs * 2) / 3)
      const purse = await this.#performer.purse(book)
      const job = { book, epoch, store, clock, flights, purse, redactor, renewed, lingerMs, patienceMs }
      const ended = await drive(job, leash)
      // Only a clean rest leaves the book as the log is; anything else may have taken what was never committed.
      if (ended.type !== 'rested') this.#books.delete(session)
      return ended
    } catch (error) {
      this.#books.delete(session)
      await store.release(session, epoch).catch(() => {})
      throw error
    } finally {
      if (book && this.#books.size > BOOKS_KEPT) this.#books.delete(this.#books.keys().next().value ?? session)
    }
  }

  /** The book this process has read before is only brought up to date: the log never changes behind it. */
  async #open(session: string): Promise<Book> {
    const known = this.#books.get(session)
    this.#books.delete(session)
    const book = known ?? new Book(session, this.#world.store)
    await (known ? book.catchUp() : book.open())
    this.#books.set(session, book)
    return book
  }

  #renew(until: number): void {
    this.#until = Math.max(this.#until, until)
  }

  /** One heartbeat for all sessions of this worker, and none while it drives nothing. */
  #beat(): void {
    if (this.#cancelBeat) return
    this.#cancelBeat = this.#world.clock.timer(this.#options.leaseMs / 3, () => {
      this.#cancelBeat = null
      if (this.#attempts.size === 0) return
      // A heartbeat that does not come through must not be waited for: the lease ends by the clock.
      if (this.#world.store.now() >= this.#until) this.#lose(() => true)
      else this.#extend()
      this.#beat()
    })
  }

  #extend(): void {
    if (this.#extending) return
    this.#extending = true
    const { store } = this.#world
    const begun = store.now()
    store
      .extend(this.id, this.#options.leaseMs)
      .then((held) => {
        this.#renew(begun + this.#options.leaseMs)
        this.#lose((session, epoch) => epoch !== 0 && held.get(session) !== epoch)
      })
      .catch(() => {
        // The lease ends by the clock if no heartbeat comes through.
      })
      .finally(() => {
        this.#extending = false
      })
  }

  #lose(lost: (session: string, epoch: number) => boolean): void {
    for (const [session, { leash, epoch }] of this.#attempts) {
      if (!lost(session, epoch)) continue
      leash.pull ??= 'lost'
      leash.ring()
    }
  }

  async #patrol(bell: Bell): Promise<void> {
    const { store, clock } = this.#world
    while (!this.#closing) {
      try {
        const free = this.#options.width - this.#attempts.size
        const due = free > 0 ? await store.due(free) : []
        for (const session of due) this.#look(session, bell)
        await bell.wait(free > 0 ? await this.#nextLook(due.length > 0) : Number.POSITIVE_INFINITY)
      } catch (error) {
        this.#options.onError?.('', error)
        await sleep(clock, 1_000)
      }
    }
  }

  /** The next due time. What was just looked at may still stand there as due: it gets a moment to be claimed. */
  async #nextLook(busy: boolean): Promise<number> {
    const { store } = this.#world
    const next = await store.nextDue()
    if (next === null) return Number.POSITIVE_INFINITY
    return busy ? Math.max(next, store.now() + CLAIM_MS) : next
  }

  #look(session: string, bell: Bell): void {
    this.wake(session).then(bell.ring, (error) => {
      this.#options.onError?.(session, error)
      if (!(error instanceof Fault && error.code === 'store_closed')) bell.ring()
    })
  }
}
