// The part of a store that live deltas need, in memory, with the owner and the news set by the test. Not a store.
import type { Event } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import type { LiveDelta } from '../../src/live/local-live.ts'

type Listener = (news: readonly Event[] | null) => void

export class Directory implements Pick<CompleteStore, 'announce' | 'address' | 'watch'> {
  /** The worker that drives every session, or null. */
  owner: string | null = null
  readonly addresses = new Map<string, string>()
  /** How often the owner was looked up. */
  looks = 0
  announcements = 0
  readonly #listeners = new Set<Listener>()

  async announce(worker: string, address: string, _ttlMs: number): Promise<void> {
    this.announcements += 1
    this.addresses.set(worker, address)
  }

  async address(_session: string): Promise<string | null> {
    this.looks += 1
    return this.owner === null ? null : (this.addresses.get(this.owner) ?? null)
  }

  watch(_session: string, listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Announces events as if another process had committed them. */
  grow(news: readonly Event[] | null = null): void {
    for (const listener of this.#listeners) listener(news)
  }

  get watched(): number {
    return this.#listeners.size
  }
}

/** What the deltas say by `seq.part`. Throws when one does not start exactly where the one before it ended. */
export function joined(deltas: readonly LiveDelta[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const { seq, part, offset, text } of deltas) {
    const before = texts.get(`${seq}.${part}`) ?? ''
    if (offset !== before.length) throw new Error(`${seq}.${part} goes on at ${offset}, not at ${before.length}`)
    texts.set(`${seq}.${part}`, before + text)
  }
  return texts
}
