// The reading end of live deltas: one subscriber that follows a session from owner to owner through a transport
// (delta-transport.ts). It has no timer and never polls: it looks for the owner when it starts, when the session grows,
// and when a connection that delivered something ends. It reports no failures, because the log has everything anyway.
import type { CompleteStore } from '../ports/store.ts'
import type { LiveDelta } from './local-live.ts'
import { type DeltaListener, notifyListener } from './local-live.ts'
import type { DeltaReception, DeltaTransport } from './delta-transport.ts'

type LiveClientOptions = {
  readonly store: Pick<CompleteStore, 'address' | 'watch'>
  readonly session: string
  readonly listener: DeltaListener
  readonly transport: () => Promise<DeltaTransport>
  /** This process's own address; its deltas need no connection. */
  readonly own: () => string | null
}

type OwnerConnection = { readonly address: string; close: () => void; useful: boolean }

export class LiveClient {
  readonly #following: LiveClientOptions
  readonly #seam = new DeltaJoiner()
  #wire: OwnerConnection | null = null
  #unwatch = () => {}
  #looking = false
  #again = false
  #closed = false

  constructor(following: LiveClientOptions) {
    this.#following = following
  }

  start(): void {
    const { store, session } = this.#following
    // Watch before looking, so that an owner that appears in between is not missed.
    this.#unwatch = store.watch(session, (news) => {
      // Only a model call brings deltas. The commits of another process are not known here, so each may be one.
      if (news === null || news.some((event) => event.type === 'model.started')) void this.#look()
    })
    void this.#look()
  }

  /** Passes on the new part of a delta. Returns how the delta was received. */
  hear(delta: LiveDelta): Exclude<DeltaReception, 'nonsense'> {
    if (this.#closed) return 'known'
    const heard = this.#seam.join(delta)
    if (heard === 'gap' || heard === 'known') return heard
    notifyListener(this.#following.listener, heard)
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
        const { store, session, transport } = this.#following
        const address = await store.address(session)
        // Without an owner the last connection stays: that worker may well be the next owner.
        if (address !== null) this.#attach(address, await transport())
      } catch {
        // The store is closed or in trouble. If it recovers, the session's growth triggers another look.
      }
    }
    this.#looking = false
  }

  #attach(address: string, transport: DeltaTransport): void {
    if (this.#closed || address === this.#wire?.address) return
    this.#detach()
    if (address === this.#following.own()) return
    const { session } = this.#following
    const wire: OwnerConnection = { address, close: () => {}, useful: false }
    this.#wire = wire
    const ends = { read: (delta: unknown) => this.#read(wire, delta), ended: () => this.#ended(wire) }
    const close = transport.follow(address, session, ends)
    if (close) wire.close = close
    else this.#wire = null
  }

  #detach(): void {
    const wire = this.#wire
    this.#wire = null
    wire?.close()
  }

  #ended(wire: OwnerConnection): void {
    if (this.#wire !== wire) return
    this.#wire = null
    // Reconnect at once only if the connection brought something: an owner that is gone is not polled.
    if (wire.useful) void this.#look()
  }

  #read(wire: OwnerConnection, read: unknown): DeltaReception {
    // The listener may have unsubscribed, or this owner may have been replaced.
    if (this.#wire !== wire) return 'known'
    const delta = parseDelta(read)
    const heard = delta ? this.hear(delta) : 'nonsense'
    if (heard === 'new') wire.useful = true
    if (heard === 'nonsense') wire.useful = false
    return heard
  }
}

/**
 * Merges deltas that arrive several ways, some of them twice, so that each part of the newest call is seen once and in
 * order.
 */
class DeltaJoiner {
  #seq = 0
  /** The number of known characters of each part. */
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

function parseDelta(read: unknown): LiveDelta | null {
  const delta = read as LiveDelta | null | undefined
  const numbers = [delta?.seq, delta?.part, delta?.offset]
  const whole = numbers.every(Number.isSafeInteger) && typeof delta?.text === 'string' && kinds.includes(delta.kind)
  const { tool, index } = delta?.proposed ?? { tool: '', index: 0 }
  return whole && typeof tool === 'string' && Number.isSafeInteger(index) ? delta : null
}
