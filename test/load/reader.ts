// Readers of streams for the load and soak tests: one that checks that every event comes once and in order and how late it is, one that
// never reads, and tabs that have nothing to do. Frames are not parsed as JSON: a reader must not be slower than what it measures.
import { request, type ClientRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { ServerProcess } from './server.ts'

const FRAME = /^id: (\d+)\nevent: event\ndata: (.*)$/s
const AT = /"at":(\d{13})/

export type Seen = { readonly seq: number; readonly lateMs: number; readonly type: string; readonly bytes: number }

/** Follows one session, and connects again with the last seq that it has. */
export class Reader {
  readonly session: string
  readonly server: ServerProcess
  readonly #onEvent: (seen: Seen, reader: Reader) => void
  readonly wrong: string[] = []
  last = 0
  #request: ClientRequest | null = null
  #closed = false

  constructor(server: ServerProcess, session: string, onEvent: (seen: Seen, reader: Reader) => void) {
    this.server = server
    this.session = session
    this.#onEvent = onEvent
    this.#open()
  }

  close(): void {
    this.#closed = true
    this.#request?.destroy()
  }

  /** As a lost connection. */
  cut(): void {
    this.#request?.destroy()
  }

  #open(): void {
    if (this.#closed) return
    const again = (): void => void setTimeout(() => this.#open(), 100)
    const path = `/v1/sessions/${this.session}/stream?after=${this.last}`
    const headers = this.server.headers()
    const asked = request({ host: '127.0.0.1', port: this.server.port, path, headers, agent: false })
    this.#request = asked
    asked.on('error', () => {})
    asked.on('close', again)
    asked.on('response', (response) => {
      if (response.statusCode !== 200) {
        if (response.statusCode !== 503) this.wrong.push(`${this.session}: status ${response.statusCode}`)
        asked.destroy()
        return
      }
      let rest = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        const now = Date.now()
        const frames = (rest + text).split('\n\n')
        rest = frames.pop() ?? ''
        for (const frame of frames) this.#take(frame, now)
      })
      response.on('error', () => {})
    })
    asked.end()
  }

  #take(frame: string, now: number): void {
    const [, id, data = ''] = FRAME.exec(frame) ?? []
    if (id === undefined) return
    const seq = Number(id)
    if (seq !== this.last + 1) this.wrong.push(`${this.session}: event ${seq} after ${this.last}`)
    this.last = seq
    const type = /"type":"([^"]+)"/.exec(data)?.[1] ?? ''
    this.#onEvent({ seq, lateMs: now - Number(AT.exec(data)?.[1] ?? now), type, bytes: data.length }, this)
  }
}

/** A connection that asks for a stream and takes nothing of it. */
export function deadReader(server: ServerProcess, session: string): void {
  const socket: Socket = connect(server.port, '127.0.0.1')
  socket.pause()
  const head = `Host: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${server.token}`
  socket.write(`GET /v1/sessions/${session}/stream HTTP/1.1\r\n${head}\r\n\r\n`)
  socket.on('error', () => {})
}

/** A tab that holds a stream of many, as the page does: of one session that rests, or of the list. */
export function streamTab(server: ServerProcess, body: object): ClientRequest {
  const text = JSON.stringify(body)
  const options = { host: '127.0.0.1', port: server.port, path: '/v1/stream', method: 'POST', agent: false as const }
  const asked = request(
    { ...options, headers: server.headers(text) },
    (response) => void response.resume().on('error', () => {}),
  )
  asked.on('error', () => {}).end(text)
  return asked
}

/** A tab without a place for a stream, or a hidden one: it asks now and then. */
export function pollingTab(server: ServerProcess, session: string, everyMs: number): NodeJS.Timeout {
  return setInterval(() => void server.ask('GET', `sessions/${session}/events?limit=200`).catch(() => {}), everyMs)
}
