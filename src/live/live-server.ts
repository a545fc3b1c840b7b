// The driving end of the live socket: listens in a folder that only this user can enter, and sends the deltas of one
// session to each connection. A connection asks once, with `{"session": id}` and a newline, and then only reads: one
// catch-up for each part, then every delta, one JSON LiveDelta a line. It reads nothing from the store and knows
// nothing of leases.
import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import type { Server, Socket } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../ports/system.ts'
import type { LiveDelta } from './local-live.ts'
import type { LocalLive } from './local-live.ts'
import { SOCKET, sweepBeside } from './sweep-sockets.ts'

/** Addresses of this kind start with this. The rest is the socket's path. */
export const UNIX = 'unix:'

const PATH_BYTES_MAX = 100
const REQUEST_BYTES_MAX = 4 * 1024
/** How much may wait for a reader beyond its catch-up before it is dropped. */
const BACKLOG_BYTES_MAX = 1024 * 1024
const BATCH_LENGTH_MAX = 64 * 1024
/** How long a reader may take to read the rest after a call is over. */
const LAG_MS_MAX = 1_000

export class LiveServer {
  readonly address: string
  readonly #home: string
  readonly #server: Server
  readonly #local: LocalLive
  readonly #clock: Clock
  readonly #sockets = new Set<Socket>()
  readonly #channels = new Map<string, SocketReaders>()

  static async open(local: LocalLive, clock: Clock, folder: string): Promise<LiveServer | null> {
    if (process.platform === 'win32') return null
    const short = Buffer.byteLength(join(folder, 'terret-XXXXXX', SOCKET)) < PATH_BYTES_MAX
    // mkdtemp creates it with mode 0700, and the socket appears inside, so another user can never connect.
    const home = await mkdtemp(join(short ? folder : '/tmp', 'terret-'))
    sweepOnExit(home)
    const opened = new LiveServer(home, local, clock)
    try {
      await opened.#listen()
      void sweepBeside(home, clock.now())
      return opened
    } catch (error) {
      await opened.close()
      throw error
    }
  }

  private constructor(home: string, local: LocalLive, clock: Clock) {
    this.#home = home
    this.#local = local
    this.#clock = clock
    this.address = `${UNIX}${join(home, SOCKET)}`
    // Loaded here, because a process with its own store never listens.
    this.#server = process.getBuiltinModule('node:net').createServer((socket) => this.#accept(socket))
  }

  /**
   * A call of this session is over. A slow reader gets a last chance, because a pending write keeps the process alive.
   */
  settle(session: string): void {
    this.#channels.get(session)?.settle()
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    for (const channel of this.#channels.values()) channel.close()
    if (this.#server.listening) await new Promise((done) => this.#server.close(done))
    await rm(this.#home, { recursive: true, force: true }).catch(() => {})
    homes.delete(this.#home)
  }

  async #listen(): Promise<void> {
    const path = this.address.slice(UNIX.length)
    await new Promise<void>((done, failed) => {
      this.#server.once('error', failed)
      this.#server.listen(path, done)
    })
    this.#server.unref()
    // For example too many open files: a refused reader tries again when the session grows.
    this.#server.on('error', () => {})
    await chmod(path, 0o600)
  }

  #accept(socket: Socket): void {
    let request = ''
    let joined: { readonly session: string; readonly channel: SocketReaders } | null = null
    this.#sockets.add(socket)
    socket.unref()
    socket.setEncoding('utf8')
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#sockets.delete(socket)
      if (joined) this.#leave(joined.session, joined.channel, socket)
    })
    socket.on('data', (chunk: string) => {
      request += chunk
      const long = Buffer.byteLength(request) > REQUEST_BYTES_MAX
      if (!long && !request.includes('\n')) return
      const session = joined || long ? null : requestedSession(request)
      if (session === null) socket.destroy()
      else joined = { session, channel: this.#join(session, socket) }
    })
  }

  #join(session: string, socket: Socket): SocketReaders {
    const channel = this.#channels.get(session) ?? new SocketReaders(session, this.#local, this.#clock)
    this.#channels.set(session, channel)
    channel.join(socket)
    return channel
  }

  #leave(session: string, channel: SocketReaders, socket: Socket): void {
    const over = channel.leave(socket)
    // A dropped reader may close only after a new group of readers of that session has begun.
    if (over && this.#channels.get(session) === channel) this.#channels.delete(session)
  }
}

/** All readers of one session in other processes. A delta is encoded once for all of them. */
class SocketReaders {
  readonly #session: string
  readonly #local: LocalLive
  readonly #clock: Clock
  /** Each reader with the number of bytes that may wait for it. */
  readonly #readers = new Map<Socket, number>()
  readonly #unlisten: () => void
  #batch = ''
  #cancelLag: (() => void) | null = null

  constructor(session: string, local: LocalLive, clock: Clock) {
    this.#session = session
    this.#local = local
    this.#clock = clock
    this.#unlisten = local.listen(session, (delta) => this.#hear(delta))
  }

  join(socket: Socket): void {
    // Deltas waiting in the batch are in the catch-up too and arrive twice; the reader cuts the overlap.
    const said = this.#local.said(this.#session)
    if (said.length > 0) socket.write(said.map(lineOf).join(''))
    // A long catch-up is not the reader's fault: without this allowance it would be dropped and come back forever.
    this.#readers.set(socket, socket.writableLength + BACKLOG_BYTES_MAX)
  }

  /** Returns true if that was the last reader. */
  leave(socket: Socket): boolean {
    this.#readers.delete(socket)
    if (this.#readers.size === 0) this.close()
    return this.#readers.size === 0
  }

  settle(): void {
    this.#flush()
    if (this.#cancelLag || ![...this.#readers.keys()].some(isBehind)) return
    this.#cancelLag = this.#clock.timer(LAG_MS_MAX, () => {
      this.#cancelLag = null
      for (const socket of this.#readers.keys()) if (isBehind(socket)) this.#drop(socket)
    })
  }

  close(): void {
    this.#unlisten()
    this.#cancelLag?.()
    this.#readers.clear()
  }

  #hear(delta: LiveDelta): void {
    // One write for all deltas of one round of the event loop: a provider's chunk often holds many.
    if (this.#batch === '') setImmediate(() => this.#flush())
    this.#batch += lineOf(delta)
    if (this.#batch.length > BATCH_LENGTH_MAX) this.#flush()
  }

  #flush(): void {
    if (this.#batch === '') return
    const bytes = Buffer.from(this.#batch)
    this.#batch = ''
    for (const [socket, allowed] of this.#readers) {
      socket.write(bytes)
      if (socket.writableLength > allowed) this.#drop(socket)
    }
  }

  /** If it reads again, it reconnects and gets a catch-up. */
  #drop(socket: Socket): void {
    this.#readers.delete(socket)
    socket.destroy()
  }
}

function lineOf(delta: LiveDelta): string {
  return `${JSON.stringify(delta)}\n`
}

function isBehind(socket: Socket): boolean {
  return socket.writableLength > 0
}

/** The session id of a request that is exactly one line, or null. */
function requestedSession(request: string): string | null {
  if (request.indexOf('\n') !== request.length - 1) return null
  try {
    const asked = JSON.parse(request) as { readonly session?: unknown } | null
    return typeof asked?.session === 'string' && asked.session !== '' ? asked.session : null
  } catch {
    return null
  }
}

/** Folders to remove when the process ends without `close`; nothing here keeps the process alive. */
const homes = new Set<string>()
let sweeping = false

function sweepOnExit(home: string): void {
  homes.add(home)
  if (sweeping) return
  sweeping = true
  process.once('exit', () => {
    for (const left of homes) {
      try {
        rmSync(left, { recursive: true, force: true })
      } catch {
        // The process is ending, and a leftover folder in the temporary folder does no harm.
      }
    }
  })
}
