// A network that can be hurt, between a client and a Postgres server: it cuts, delays, goes dark in one direction or both, hands on
// late what it held, and loses the answers of statements that happened. It reads the protocol only as far as that needs.
import { connect, createServer, type Server, type Socket } from 'node:net'

/** `up` is to the server, `down` to the client. */
type Direction = 'up' | 'down'
type Chunk = Buffer | 'end'

export class Proxy {
  readonly #target: number
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  readonly dark = new Set<Direction>()
  delayMs = 0
  refuses = false
  /** Which statements lose their answer, by text. The connection is cut when the server has answered. */
  loses: (text: string) => boolean = () => false
  /** A text in the server's answers that is replaced by one of the same length. */
  replaced: readonly [string, string] | null = null
  lost = 0
  /** All statements that clients have asked. */
  readonly asked: string[] = []

  static async to(target: number): Promise<Proxy> {
    const proxy = new Proxy(target)
    await new Promise<void>((done) => proxy.#server.listen(0, '127.0.0.1', done))
    return proxy
  }

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => this.#accept(client))
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#pairs.size
  }

  /** What waits to be handed on. */
  get held(): number {
    return [...this.#pairs].reduce((sum, pair) => sum + pair.held, 0)
  }

  /** All connections end at once, for both sides. */
  cut(): void {
    for (const pair of this.#pairs) pair.cut()
  }

  /** Nothing passes any more, in these directions. New connections are taken, and hear nothing. */
  goDark(...directions: readonly Direction[]): void {
    for (const one of directions.length > 0 ? directions : (['up', 'down'] as const)) this.dark.add(one)
  }

  /** The connections that are open now go dark for good; new ones do not. */
  freeze(): void {
    for (const pair of this.#pairs) pair.frozen = true
  }

  /** What was held arrives now, in order, also what a client sent that has gone since. */
  goLight(): void {
    this.dark.clear()
    for (const pair of this.#pairs) pair.flow()
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise((done) => this.#server.close(done))
  }

  #accept(client: Socket): void {
    if (this.refuses) {
      client.destroy()
      return
    }
    const pair = new Pair(this, client, connect(this.#target, '127.0.0.1'), () => this.#pairs.delete(pair))
    this.#pairs.add(pair)
  }
}

class Pair {
  readonly #proxy: Proxy
  readonly #ends: { readonly up: Socket; readonly down: Socket }
  readonly #held: { readonly up: Chunk[]; readonly down: Chunk[] } = { up: [], down: [] }
  readonly #over: () => void
  readonly #asked = new Asked()
  readonly #answers = new Messages(false)
  frozen = false
  #ready = 0
  #losing: number | null = null

  constructor(proxy: Proxy, client: Socket, server: Socket, over: () => void) {
    this.#proxy = proxy
    this.#ends = { up: server, down: client }
    this.#over = over
    client.setNoDelay(true)
    server.setNoDelay(true)
    this.#pass(client, 'up')
    this.#pass(server, 'down')
  }

  get held(): number {
    return this.#held.up.length + this.#held.down.length
  }

  cut(): void {
    this.#ends.up.destroy()
    this.#ends.down.destroy()
    this.#over()
  }

  /** Hands on what is held, in the directions that are light. */
  flow(): void {
    for (const direction of ['up', 'down'] as const) {
      if (this.frozen || this.#proxy.dark.has(direction)) continue
      for (const chunk of this.#held[direction].splice(0)) this.#hand(direction, chunk)
    }
  }

  #pass(from: Socket, direction: Direction): void {
    from.on('error', () => {})
    from.on('data', (chunk: Buffer) => this.#take(direction, chunk))
    from.on('close', () => this.#take(direction, 'end'))
  }

  #take(direction: Direction, chunk: Chunk): void {
    const queue = () => {
      this.#held[direction].push(chunk)
      this.flow()
    }
    if (this.#proxy.delayMs > 0) setTimeout(queue, this.#proxy.delayMs)
    else queue()
  }

  #hand(direction: Direction, chunk: Chunk): void {
    const to = this.#ends[direction]
    if (chunk === 'end') {
      to.end()
      if (direction === 'down' || this.#ends.up.destroyed) this.cut()
      return
    }
    if (direction === 'up') {
      for (const { text, ready } of this.#asked.statements(chunk)) {
        this.#proxy.asked.push(text)
        if (this.#proxy.loses(text)) this.#losing ??= ready
      }
      to.write(chunk)
      return
    }
    this.#ready += this.#answers.of(chunk).filter(({ type }) => type === 'Z').length
    if (this.#losing === null) to.write(this.#changed(chunk))
    // The answer is whole with its "ready": the statement has happened by then, and nobody hears of it.
    else if (this.#ready >= this.#losing) {
      this.#proxy.lost += 1
      this.cut()
    }
  }

  #changed(chunk: Buffer): Buffer {
    if (this.#proxy.replaced === null) return chunk
    const [from, to] = this.#proxy.replaced
    return Buffer.from(chunk.toString('latin1').replaceAll(from, to), 'latin1')
  }
}

/** What a client asks for: each text once, a named one by the text it was named with, and the number of its answer's "ready". */
class Asked {
  readonly #messages = new Messages(true)
  readonly #named = new Map<string, string>()
  /** The server says "ready" once before it was asked anything. */
  #ready = 1

  statements(chunk: Buffer): readonly { readonly text: string; readonly ready: number }[] {
    const found: { text: string; ready: number }[] = []
    for (const { type, body } of this.#messages.of(chunk)) {
      const [first = '', second = ''] = body.toString('utf8').split('\0')
      if (type === 'P') this.#named.set(first, second)
      if (type === 'B') found.push({ text: this.#named.get(second) ?? '', ready: this.#ready + 1 })
      if (type === 'Q') found.push({ text: first, ready: this.#ready + 1 })
      if (type === 'Q' || type === 'S') this.#ready += 1
    }
    return found
  }
}

type Message = { readonly type: string; readonly body: Buffer }

/** Whole messages out of chunks: a letter, a length, a body. A client's first has no letter. */
class Messages {
  #rest = Buffer.alloc(0)
  #first: boolean

  constructor(first: boolean) {
    this.#first = first
  }

  of(chunk: Buffer): readonly Message[] {
    const found: Message[] = []
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (;;) {
      const letter = this.#first ? 0 : 1
      if (this.#rest.length < letter + 4) return found
      const end = letter + this.#rest.readInt32BE(letter)
      if (this.#rest.length < end) return found
      found.push({ type: this.#rest.toString('latin1', 0, letter), body: this.#rest.subarray(letter + 4, end) })
      this.#rest = this.#rest.subarray(end)
      this.#first = false
    }
  }
}
