// One open stream of server-sent events, written to Node's response itself: a wrapper around it costs several times as much a frame. It
// holds no queue: who writes waits until the socket took what was written, and a socket that takes nothing for long is closed.
import type { ServerResponse } from 'node:http'
import type { Frames } from './wire.ts'

export type SseOptions = {
  /** A comment is written so often, so that both ends notice a dead connection. */
  readonly beatMs: number
  /** A socket that took nothing for so long is closed. Its reader connects again and says how far it came. */
  readonly stalledMs: number
}
const DEFAULTS: SseOptions = { beatMs: 15_000, stalledMs: 30_000 }
const RETRY_MS = 1_000

export class EventStream {
  /** Aborted when nobody reads any more, for whatever reason. */
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
    // Frames must not wait for each other.
    response.socket?.setNoDelay(true)
  }

  get open(): boolean {
    return !this.#gone.signal.aborted
  }

  /** True while the socket has not taken what was written before: what may be merged or left out should be. */
  get full(): boolean {
    return this.#response.writableNeedDrain
  }

  /** Resolves when the socket can take more, or nobody reads. */
  async send<Name extends keyof Frames>(name: Name, data: Frames[Name], id?: number): Promise<void> {
    await this.#write(frameOf(name, data, id))
  }

  /** Several frames as one write. */
  async sendAll(frames: readonly string[]): Promise<void> {
    if (frames.length > 0) await this.#write(frames.join(''))
  }

  /** Says why, and ends. What the socket does not take in a moment is not waited for. */
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

  /** Not `bye`: what does not take anything cannot be told. */
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

/** JSON has no line breaks in it, so one `data:` line is enough. */
export function frameOf<Name extends keyof Frames>(name: Name, data: Frames[Name], id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
