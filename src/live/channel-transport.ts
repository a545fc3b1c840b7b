// Transports live deltas between machines, as short texts through the store's DeltaChannel. A reader asks the owner and
// renews its request now and then. The owner sends the text so far, then new text in small batches. A message may be
// lost: the reader sees the gap by the offsets and asks again. One address serves both ends of a process.
import type { DeltaChannel } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import type { LiveDelta, LocalLive } from './local-live.ts'
import type { DeltaEndpoint, DeltaHandlers, DeltaTransport } from './delta-transport.ts'

/** Deltas within this time are one message: each message wakes every process of the store. */
const BATCH_MS = 100
/**
 * A reader asks again soon, because the first request may be lost, and then seldom. An owner drops a reader after a
 * longer silence.
 */
const ASK_MS = 1_000
const ASK_MS_MAX = 20_000
const FORGET_MS = 60_000
/** How much may wait for a reader before it is dropped. The reader then finds a gap and asks again. */
const BACKLOG_CHARS_MAX = 1024 * 1024
const READERS_MAX = 1_000
const NUMBERS_MAX = 100
const SESSION_LENGTH_MAX = 2_048
const ADDRESS_LENGTH_MAX = 200

export class ChannelTransport implements DeltaTransport {
  readonly #post: DeltaChannel
  readonly #clock: Clock
  /** The subscriptions of this process, by request number. */
  readonly #following = new Map<number, ChannelFollower>()
  #owner: ChannelOwner | null = null
  #opening: Promise<string | null> | null = null
  #numbers = 0

  constructor(post: DeltaChannel, clock: Clock) {
    this.#post = post
    this.#clock = clock
  }

  async open(local: LocalLive): Promise<DeltaEndpoint | null> {
    const address = await this.#open()
    if (address === null) return null
    const owner = new ChannelOwner(local, this.#post, this.#clock)
    this.#owner = owner
    return { address, settle: (session) => owner.flush(session), close: async () => owner.close() }
  }

  follow(address: string, session: string, ends: DeltaHandlers): () => void {
    const follower = new ChannelFollower({ address, session, ends }, this)
    return () => follower.close()
  }

  /** Deltas with this number are for this follower. */
  number(follower: ChannelFollower): number {
    this.#numbers += 1
    this.#following.set(this.#numbers, follower)
    return this.#numbers
  }

  forget(n: number): void {
    this.#following.delete(n)
  }

  timer(ms: number, fire: () => void): () => void {
    return this.#clock.timer(ms, fire)
  }

  async send(address: string, texts: (to: string) => readonly object[]): Promise<void> {
    const to = await this.#open()
    if (to === null) return
    await this.#post.send(
      address,
      texts(to).map((text) => JSON.stringify(text)),
    )
  }

  close(): void {
    this.#following.clear()
    this.#post.close()
  }

  async #open(): Promise<string | null> {
    this.#opening ??= this.#post.open((text) => this.#hear(text))
    const address = await this.#opening
    // The next caller that needs it tries again.
    if (address === null) this.#opening = null
    return address
  }

  #hear(text: string): void {
    const heard = parseChannelMessage(text)
    if (heard?.type === 'ask') this.#owner?.join(heard)
    if (heard?.type === 'leave') this.#owner?.leave(heard)
    if (heard?.type !== 'said') return
    for (const n of heard.ns) for (const delta of heard.deltas) this.#following.get(n)?.read(n, delta)
  }
}

/**
 * One subscription. It asks with its own number, and with a new number after a loss, so that late messages are
 * recognised by the old one.
 */
class ChannelFollower {
  readonly #at: { readonly address: string; readonly session: string; readonly ends: DeltaHandlers }
  readonly #way: ChannelTransport
  #n: number
  #waitMs = ASK_MS
  #lost = false
  #cancel: () => void = () => {}

  constructor(at: { address: string; session: string; ends: DeltaHandlers }, way: ChannelTransport) {
    this.#at = at
    this.#way = way
    this.#n = way.number(this)
    this.#ask()
  }

  read(n: number, delta: unknown): void {
    if (n !== this.#n || this.#lost || this.#at.ends.read(delta) !== 'gap') return
    this.#lost = true
    // Not at once: many messages with the same gap may follow.
    this.#cancel()
    this.#cancel = this.#way.timer(BATCH_MS, () => this.#anew())
  }

  close(): void {
    this.#cancel()
    this.#way.forget(this.#n)
    const { address, session } = this.#at
    void this.#way.send(address, (to) => [{ leave: session, n: this.#n, to }])
  }

  /** A lost answer looks like silence, so it asks again, less and less often. */
  #ask(): void {
    const { address, session } = this.#at
    this.#cancel = this.#way.timer(this.#waitMs, () => this.#ask())
    this.#waitMs = Math.min(this.#waitMs * 2, ASK_MS_MAX)
    void this.#way.send(address, (to) => [{ ask: session, n: this.#n, to }])
  }

  #anew(): void {
    const { address, session } = this.#at
    const old = this.#n
    this.#way.forget(old)
    this.#n = this.#way.number(this)
    this.#lost = false
    void this.#way.send(address, (to) => [{ leave: session, n: old, to }])
    this.#ask()
  }
}

/** The driving end: which processes read which session. */
class ChannelOwner {
  readonly #local: LocalLive
  readonly #post: DeltaChannel
  readonly #clock: Clock
  readonly #rooms = new Map<string, SessionReaders>()
  #readers = 0

  constructor(local: LocalLive, post: DeltaChannel, clock: Clock) {
    this.#local = local
    this.#post = post
    this.#clock = clock
  }

  join({ session, n, to }: FollowRequest): void {
    this.#forget()
    const known = this.#rooms.get(session)?.renew(to, n, this.#clock.now() + FORGET_MS)
    if (known || this.#readers >= READERS_MAX) return
    let room = this.#rooms.get(session)
    if (!room) {
      room = new SessionReaders(session, this.#local, this.#post, this.#clock)
      this.#rooms.set(session, room)
    }
    if (room.join(to, n, this.#clock.now() + FORGET_MS)) this.#readers += 1
  }

  leave({ session, n, to }: FollowRequest): void {
    this.#lose(session, (room) => room.leave(to, n))
  }

  flush(session: string): void {
    this.#rooms.get(session)?.flush()
  }

  close(): void {
    for (const room of this.#rooms.values()) room.close()
    this.#rooms.clear()
  }

  /** Drops readers that have not asked again for long: their processes may be gone. */
  #forget(): void {
    for (const session of this.#rooms.keys()) this.#lose(session, (room) => room.forget(this.#clock.now()))
  }

  #lose(session: string, part: (room: SessionReaders) => number): void {
    const room = this.#rooms.get(session)
    if (!room) return
    this.#readers -= part(room)
    if (!room.empty) return
    room.close()
    this.#rooms.delete(session)
  }
}

type DeltaBatch = { readonly ns: readonly number[]; readonly deltas: readonly LiveDelta[]; readonly chars: number }
/** A process that reads a session: when each of its subscriptions expires, and what waits to be sent. */
type RemoteReader = { readonly ns: Map<number, number>; waiting: DeltaBatch[]; sending: boolean }

/** One session and the processes that read it. */
class SessionReaders {
  readonly #session: string
  readonly #local: LocalLive
  readonly #post: DeltaChannel
  readonly #clock: Clock
  readonly #readers = new Map<string, RemoteReader>()
  readonly #unlisten: () => void
  #batch: LiveDelta[] = []
  #cancel: (() => void) | null = null

  constructor(session: string, local: LocalLive, post: DeltaChannel, clock: Clock) {
    this.#session = session
    this.#local = local
    this.#post = post
    this.#clock = clock
    this.#unlisten = local.listen(session, (delta) => this.#hear(delta))
  }

  get empty(): boolean {
    return this.#readers.size === 0
  }

  /** Returns true if the subscription was known. */
  renew(to: string, n: number, until: number): boolean {
    const ns = this.#readers.get(to)?.ns
    if (!ns?.has(n)) return false
    ns.set(n, until)
    return true
  }

  join(to: string, n: number, until: number): boolean {
    const reader = this.#readers.get(to) ?? { ns: new Map<number, number>(), waiting: [], sending: false }
    if (reader.ns.size >= NUMBERS_MAX) return false
    this.#readers.set(to, reader)
    reader.ns.set(n, until)
    // Deltas waiting in the batch are in the catch-up too and arrive twice; the reader cuts the overlap.
    this.#put(to, reader, [n], this.#local.said(this.#session))
    return true
  }

  /** Returns how many left. */
  leave(to: string, n: number): number {
    const reader = this.#readers.get(to)
    const left = reader?.ns.delete(n) ? 1 : 0
    if (reader?.ns.size === 0) this.#readers.delete(to)
    return left
  }

  forget(now: number): number {
    let left = 0
    for (const [to, { ns }] of this.#readers) for (const [n, until] of ns) if (until < now) left += this.leave(to, n)
    return left
  }

  flush(): void {
    this.#cancel?.()
    this.#cancel = null
    const deltas = this.#batch
    this.#batch = []
    for (const [to, reader] of this.#readers) this.#put(to, reader, [...reader.ns.keys()], deltas)
  }

  close(): void {
    this.#unlisten()
    this.#cancel?.()
    this.#readers.clear()
  }

  #hear(delta: LiveDelta): void {
    const last = this.#batch.at(-1)
    const goesOn = last?.seq === delta.seq && last.part === delta.part && last.kind === delta.kind
    if (last && goesOn) this.#batch[this.#batch.length - 1] = { ...last, text: last.text + delta.text }
    else this.#batch.push(delta)
    this.#cancel ??= this.#clock.timer(BATCH_MS, () => this.flush())
  }

  #put(to: string, reader: RemoteReader, ns: readonly number[], deltas: readonly LiveDelta[]): void {
    if (deltas.length === 0) return
    const chars = deltas.reduce((sum, { text }) => sum + text.length, 0)
    const waiting = reader.waiting.reduce((sum, parcel) => sum + parcel.chars, 0)
    // A long catch-up is not the reader's fault, so it is sent at any length. The backlog behind it is limited.
    if (waiting > BACKLOG_CHARS_MAX) reader.waiting = []
    else reader.waiting.push({ ns, deltas, chars })
    if (!reader.sending) void this.#send(to, reader)
  }

  async #send(to: string, reader: RemoteReader): Promise<void> {
    reader.sending = true
    for (let parcel = reader.waiting.shift(); parcel; parcel = reader.waiting.shift())
      await this.#post.send(to, packetsIn(parcel, this.#post.bytesMax))
    reader.sending = false
  }
}

/** The messages of a batch, none longer than the channel allows: deltas are gathered, and long ones are cut. */
function packetsIn({ ns, deltas }: DeltaBatch, bytesMax: number): readonly string[] {
  const room = bytesMax - Buffer.byteLength(JSON.stringify({ n: ns, said: [] }))
  const packets: LiveDelta[][] = [[]]
  let bytes = 0
  for (const delta of deltas.flatMap((one) => cutDelta(one, room))) {
    const size = deltaBytes(delta)
    if (bytes + size > room) {
      packets.push([])
      bytes = 0
    }
    bytes += size
    packets.at(-1)?.push(delta)
  }
  return packets.map((said) => JSON.stringify({ n: ns, said }))
}

function cutDelta(delta: LiveDelta, room: number): readonly LiveDelta[] {
  const pieces: LiveDelta[] = []
  for (let rest = delta; ; ) {
    let chars = Math.min(rest.text.length, room)
    while (deltaBytes({ ...rest, text: rest.text.slice(0, chars) }) > room) chars = Math.floor(chars / 2)
    pieces.push({ ...rest, text: rest.text.slice(0, chars) })
    if (chars === rest.text.length) return pieces
    rest = { ...rest, offset: rest.offset + chars, text: rest.text.slice(chars) }
  }
}

function deltaBytes(delta: LiveDelta): number {
  return Buffer.byteLength(JSON.stringify(delta)) + 1
}

type FollowRequest = { readonly session: string; readonly n: number; readonly to: string }
type ChannelMessage =
  | (FollowRequest & { readonly type: 'ask' | 'leave' })
  | { readonly type: 'said'; readonly ns: readonly number[]; readonly deltas: readonly unknown[] }

/** Anybody with access to the database may write here, so nothing in a message is trusted. */
function parseChannelMessage(text: string): ChannelMessage | null {
  try {
    const { ask, leave, n, to, said } = JSON.parse(text) as Readonly<Record<string, unknown>>
    if (Array.isArray(said) && Array.isArray(n))
      return { type: 'said', ns: n.filter((one) => typeof one === 'number'), deltas: said }
    const session = ask ?? leave
    if (typeof session !== 'string' || typeof to !== 'string' || typeof n !== 'number') return null
    if (session.length > SESSION_LENGTH_MAX || to.length > ADDRESS_LENGTH_MAX || !Number.isSafeInteger(n)) return null
    return { type: ask === undefined ? 'leave' : 'ask', session, n, to }
  } catch {
    return null
  }
}
