// The reading end of the live socket: one subscriber, following one session from owner to owner. It has no timer and
// never polls: it looks for the owner when it starts, when the session grows, and when a connection that was of use
// ends. Its failures are not reported: the log has everything anyway.
import type { Socket } from 'node:net'
import type { Store } from '../ports/store.ts'
import type { LiveDelta } from './live.ts'
import { type Listener, tell } from './live.ts'
import { UNIX } from './server.ts'

type Following = {
  readonly store: Pick<Store, 'address' | 'watch'>
  readonly session: string
  readonly listener: Listener
  /** This process's own address, whose deltas come without a socket. */
  readonly own: () => string | null
}

type Wire = { readonly address: string; readonly socket: Socket; rest: string; useful: boolean }

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
  hear(delta: LiveDelta): 'new' | 'known' | 'gap' {
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
    if (address === this.#following.own() || !address.startsWith(UNIX)) return
    const socket = process.getBuiltinModule('node:net').connect(address.slice(UNIX.length))
    const wire: Wire = { address, socket, rest: '', useful: false }
    this.#wire = wire
    socket.unref()
    socket.setEncoding('utf8')
    socket.on('error', () => {})
    socket.on('data', (chunk: string) => this.#read(wire, chunk))
    socket.on('close', () => {
      if (this.#wire !== wire) return
      this.#wire = null
      // Only a connection that brought something is worth another at once: an owner that is gone is not polled.
      if (wire.useful) void this.#look()
    })
    socket.write(`${JSON.stringify({ session: this.#following.session })}\n`)
  }

  #detach(): void {
    const wire = this.#wire
    this.#wire = null
    wire?.socket.destroy()
  }

  #read(wire: Wire, chunk: string): void {
    const end = chunk.lastIndexOf('\n')
    if (end === -1) {
      wire.rest += chunk
      return
    }
    const lines = (wire.rest + chunk.slice(0, end)).split('\n')
    wire.rest = chunk.slice(end + 1)
    for (const line of lines) {
      // A listener may have unsubscribed, or this owner may have been left for another.
      if (this.#wire !== wire || wire.socket.destroyed) return
      const delta = deltaOf(line)
      const heard = delta ? this.hear(delta) : 'nonsense'
      if (heard === 'new') wire.useful = true
      if (heard === 'nonsense') wire.useful = false
      // After a gap a fresh connection starts with a catch-up.
      if (heard === 'gap' || heard === 'nonsense') wire.socket.destroy()
    }
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

function deltaOf(line: string): LiveDelta | null {
  try {
    const delta = JSON.parse(line) as LiveDelta | null
    const numbers = [delta?.seq, delta?.part, delta?.offset]
    const whole = numbers.every(Number.isSafeInteger) && typeof delta?.text === 'string' && kinds.includes(delta.kind)
    return whole ? delta : null
  } catch {
    return null
  }
}
