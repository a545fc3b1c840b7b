// The reading end of live deltas: one subscriber, following one session from owner to owner by whatever way leads there (way.ts). It
// has no timer and never polls: it looks for the owner when it starts, when the session grows, and when a connection that was of
// use ends. Its failures are not reported: the log has everything anyway.
import type { Store } from '../ports/store.ts'
import type { LiveDelta } from './live.ts'
import { type Listener, tell } from './live.ts'
import type { Heard, Way } from './way.ts'

type Following = {
  readonly store: Pick<Store, 'address' | 'watch'>
  readonly session: string
  readonly listener: Listener
  readonly way: Way
  /** This process's own address, whose deltas come without a connection. */
  readonly own: () => string | null
}

type Wire = { readonly address: string; close: () => void; useful: boolean }

export class LiveClient {
  readonly #following: Following
  readonly #seam = new Seam()
  #wire: Wire | null = null
  #unwatch = () => {}
  #looking = false
  #again = false
  #closed = false

  constructor(following: Following) {
    this.#following = following
  }

  start(): void {
    const { store, session } = this.#following
    // Watch before looking, so that an owner that comes in between is not missed.
    this.#unwatch = store.watch(session, (news) => {
      // Only a model call brings deltas. What another process committed is not known here, so it may be one.
      if (news === null || news.some((event) => event.type === 'model.started')) void this.#look()
    })
    void this.#look()
  }

  /** Hands on what is new in a delta. Returns what became of it. */
  hear(delta: LiveDelta): Exclude<Heard, 'nonsense'> {
    if (this.#closed) return 'known'
    const heard = this.#seam.join(delta)
    if (heard === 'gap' || heard === 'known') return heard
    tell(this.#following.listener, heard)
    return 'new'
  }

  close(): void {
    this.#closed = true
    this.#unwatch()
    this.#detach()
  }

  async #look(): Promise<void> {
    this.#again = true
    if (this.#looking) return
    this.#looking = true
    while (this.#again && !this.#closed) {
      this.#again = false
      try {
        this.#attach(await this.#following.store.address(this.#following.session))
      } catch {
        // The store is closed or in trouble. If it recovers, the session's growth brings us back.
      }
    }
    this.#looking = false
  }

  #attach(address: string | null): void {
    // With no owner the last one stays connected: it may well be the next.
    if (this.#closed || address === null || address === this.#wire?.address) return
    this.#detach()
    if (address === this.#following.own()) return
    const { way, session } = this.#following
    const wire: Wire = { address, close: () => {}, useful: false }
    this.#wire = wire
    const ends = { read: (delta: unknown) => this.#read(wire, delta), ended: () => this.#ended(wire) }
    const close = way.follow(address, session, ends)
    if (close) wire.close = close
    else this.#wire = null
  }

  #detach(): void {
    const wire = this.#wire
    this.#wire = null
    wire?.close()
  }

  #ended(wire: Wire): void {
    if (this.#wire !== wire) return
    this.#wire = null
    // Only a connection that brought something is worth another at once: an owner that is gone is not polled.
    if (wire.useful) void this.#look()
  }

  #read(wire: Wire, read: unknown): Heard {
    // A listener may have unsubscribed, or this owner may have been left for another.
    if (this.#wire !== wire) return 'known'
    const delta = deltaOf(read)
    const heard = delta ? this.hear(delta) : 'nonsense'
    if (heard === 'new') wire.useful = true
    if (heard === 'nonsense') wire.useful = false
    return heard
  }
}

/** Joins what comes by several ways, some of it twice, into each part of the newest call once and in order. */
class Seam {
  #seq = 0
  /** How many characters of each part are known. */
  readonly #known = new Map<number, number>()

  join(delta: LiveDelta): LiveDelta | 'known' | 'gap' {
    const { seq, part, offset, text } = delta
    if (seq < this.#seq) return 'known'
    if (seq > this.#seq) {
      this.#seq = seq
      this.#known.clear()
    }
    const known = this.#known.get(part)
    const overlap = (known ?? 0) - offset
    if (overlap < 0) return 'gap'
    if (known !== undefined && overlap >= text.length) return 'known'
    this.#known.set(part, offset + text.length)
    return overlap === 0 ? delta : { ...delta, offset: offset + overlap, text: text.slice(overlap) }
  }
}

const kinds: readonly unknown[] = ['text', 'reasoning', 'arguments', 'output'] satisfies readonly LiveDelta['kind'][]

function deltaOf(read: unknown): LiveDelta | null {
  const delta = read as LiveDelta | null | undefined
  const numbers = [delta?.seq, delta?.part, delta?.offset]
  const whole = numbers.every(Number.isSafeInteger) && typeof delta?.text === 'string' && kinds.includes(delta.kind)
  const { tool, index } = delta?.proposed ?? { tool: '', index: 0 }
  return whole && typeof tool === 'string' && Number.isSafeInteger(index) ? delta : null
}
