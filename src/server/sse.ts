// One open stream of server-sent events, written directly to Node's response: a wrapper would cost several times as
// much per frame. It has no queue: writers wait until the socket has taken the bytes, and a stalled socket is closed.
import type { ServerResponse } from 'node:http'
import type { Frames } from './wire.ts'

export type SseOptions = {
  /** The interval of heartbeat comments, by which both ends notice a dead connection. */
  readonly beatMs: number
  /** A socket that takes no bytes for this long is closed. Its reader reconnects with its position. */
  readonly stalledMs: number
}
const DEFAULTS: SseOptions = { beatMs: 15_000, stalledMs: 30_000 }
/** How many streams a server has open, and how many of them one principal, so that it cannot take them all. */
export type StreamsLimit = { readonly all: number; readonly own: number }
export const STREAMS_LIMIT: StreamsLimit = { all: 10_000, own: 7_500 }
const RETRY_MS = 1_000

export class EventStream {
  /** Aborted when the reader is gone, for whatever reason. */
  readonly signal: AbortSignal
  readonly #response: ServerResponse
  readonly #gone = new AbortController()
  readonly #beat: NodeJS.Timeout
  readonly #stalledMs: number
  #draining: Promise<void> | null = null

  constructor(response: ServerResponse, options: Partial<SseOptions> = {}) {
    const { beatMs, stalledMs } = { ...DEFAULTS, ...options }
    this.#response = response
    this.#stalledMs = stalledMs
    this.signal = this.#gone.signal
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    response.on('close', () => this.#leave())
    response.on('error', () => this.#leave())
    this.#beat = setInterval(() => void this.#write(': \n\n'), beatMs)
    // Frames must not wait for each other (Nagle's algorithm).
    response.socket?.setNoDelay(true)
  }

  get open(): boolean {
    return !this.#gone.signal.aborted
  }

  /** True while the socket has not taken earlier bytes. Writers should merge or skip frames then. */
  get full(): boolean {
    return this.#response.writableNeedDrain
  }

  /** Resolves when the socket can take more, or the reader is gone. */
  async send<Name extends keyof Frames>(name: Name, data: Frames[Name], id?: number): Promise<void> {
    await this.#write(frameOf(name, data, id))
  }

  /** Writes several frames at once. */
  async sendAll(frames: readonly string[]): Promise<void> {
    if (frames.length > 0) await this.#write(frames.join(''))
  }

  /**
   * Sends the reason and ends the stream. The socket is destroyed a moment later, even if it has not taken everything.
   */
  bye(reason: Frames['bye']['reason'], message?: string): void {
    if (!this.open) return
    const said = { reason, retryMs: RETRY_MS, ...(message === undefined ? {} : { message }) }
    this.#response.end(frameOf('bye', said))
    this.#leave()
    setTimeout(() => this.#response.destroy(), RETRY_MS).unref()
  }

  async #write(text: string): Promise<void> {
    if (!this.open) return
    if (this.#response.write(text)) return
    this.#draining ??= this.#drained().finally(() => {
      this.#draining = null
    })
    await this.#draining
  }

  /** Sends no `bye`: a stalled socket would not take it. */
  async #drained(): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(late)
        this.#response.off('drain', done)
        this.#gone.signal.removeEventListener('abort', done)
        resolve()
      }
      const late = setTimeout(() => {
        this.#response.destroy()
        this.#leave()
      }, this.#stalledMs)
      this.#response.on('drain', done)
      this.#gone.signal.addEventListener('abort', done, { once: true })
      if (!this.open) done()
    })
  }

  #leave(): void {
    clearInterval(this.#beat)
    this.#gone.abort()
  }
}

/** JSON text has no line breaks, so one `data:` line is enough. */
export function frameOf<Name extends keyof Frames>(name: Name, data: Frames[Name], id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
