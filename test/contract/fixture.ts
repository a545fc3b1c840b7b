// What the store's contract is tested with: a clock that stands still, and short ways to write. No expectations here.
import type { Card } from '../../src/ports/store.ts'
import type { InboxBody, OwnerBody, OwnerEvent } from '../../src/kernel/event.ts'
import { Fault } from '../../src/kernel/failure.ts'
import type { OwnerWrite, Receipt, CompleteStore } from '../../src/ports/store.ts'
import type { Clock } from '../../src/ports/system.ts'

export const START = 1_700_000_000_000
export const TTL = 30_000

/** A clock that is moved by hand, and says when the next of its timers will fire. */
export class StillClock implements Clock {
  time = START
  readonly #timers = new Map<() => void, number>()

  now(): number {
    return this.time
  }

  timer(ms: number, fire: () => void): () => void {
    const own = () => fire()
    this.#timers.set(own, this.time + ms)
    return () => void this.#timers.delete(own)
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.size
  }

  /** When each of its timers will fire. */
  get timers(): readonly number[] {
    return [...this.#timers.values()]
  }

  get next(): number | null {
    return this.#timers.size > 0 ? Math.min(...this.#timers.values()) : null
  }

  advance(ms: number): void {
    this.time += ms
    for (const [fire, at] of this.#timers) {
      if (at > this.time) continue
      this.#timers.delete(fire)
      fire()
    }
  }

  /** The machine sleeps: time goes on, and no timer fires for it. */
  suspend(ms: number): void {
    this.time += ms
    for (const [fire, at] of this.#timers) this.#timers.set(fire, at + ms)
  }
}

export type Fixture = { readonly store: CompleteStore; readonly clock: StillClock }
export type MakeFixture = () => Promise<Fixture>

/** What a store may do beyond the core. */
export const CAPABILITIES = ['workers', 'notifications', 'snapshots', 'search', 'upkeep', 'deltas'] as const
export type Capability = (typeof CAPABILITIES)[number]
export function card(session: string, over: Partial<Card> = {}): Card {
  const still = { agent: 'a', root: session, status: 'idle', due: null, cost: 0, wakes: 0, outcome: null } as const
  return { session, ...still, seq: 0, at: 0, asks: [], waits: [], ...over }
}

export function note(text: string): OwnerBody {
  return { type: 'note.added', kind: 'nudge', text }
}

export function message(id: string, text = 'hello'): InboxBody {
  return { type: 'user.message', id, parts: [{ type: 'text', text }], when: 'next' }
}

/** Where an owner stands: what the driver keeps between its commits. */
export type Owner = { readonly session: string; readonly worker: string; readonly epoch: number; seq: number }

export function ownerWrite(
  store: CompleteStore,
  owner: Owner,
  bodies: readonly OwnerBody[],
  over: Partial<OwnerWrite> = {},
): OwnerWrite {
  const { session, epoch, seq } = owner
  const at = store.now()
  const events = bodies.map((body, i): OwnerEvent => ({ ...body, seq: seq + 1 + i, at, epoch }))
  return { session, lane: 'owner', epoch, expectedSeq: seq, events, card: card(session), ...over }
}

export function creation(store: CompleteStore, session: string, over: Partial<OwnerWrite> = {}): OwnerWrite {
  const body: OwnerBody = { type: 'session.created', agent: 'a', planner: 'model' }
  return ownerWrite(store, { session, worker: '', epoch: 0, seq: 0 }, [body], over)
}

export async function create(store: CompleteStore, session: string, over: Partial<Card> = {}): Promise<void> {
  await store.commit([creation(store, session, { card: card(session, over) })])
}

export async function claim(store: CompleteStore, session: string, worker: string): Promise<Owner> {
  const claimed = await store.claim(session, worker, TTL)
  if (!claimed) throw new Error(`${worker} cannot claim ${session}`)
  const { seq } = (await store.card(session)) ?? { seq: 0 }
  return { session, worker, epoch: claimed.epoch, seq }
}

/** A session with one event, held by a worker. */
export async function begin(store: CompleteStore, session: string, worker = 'w1'): Promise<Owner> {
  await create(store, session)
  return claim(store, session, worker)
}

/** Commits as the owner, and moves it on. */
export async function write(
  store: CompleteStore,
  owner: Owner,
  bodies: readonly OwnerBody[],
  over: Partial<OwnerWrite> = {},
): Promise<void> {
  await store.commit([ownerWrite(store, owner, bodies, over)])
  owner.seq += bodies.length
}

export async function admit(store: CompleteStore, session: string, ...events: InboxBody[]): Promise<Receipt> {
  const [receipt] = await store.commit([{ session, lane: 'inbox', events }])
  if (!receipt) throw new Error('no receipt')
  return receipt
}

/** The code of the Fault that a promise ends with, or 'ok'. Anything else is not a refusal and is thrown. */
export async function outcome(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'ok'
  } catch (error) {
    if (error instanceof Fault) return error.code
    throw error
  }
}

export async function seqs(store: CompleteStore, session: string): Promise<readonly number[]> {
  return (await store.read(session, 0)).events.map((event) => event.seq)
}
