// Sends wakes to Restate over its HTTP ingress. Restate keeps and delivers accepted wakes; nothing is kept here. The
// SDK's own delayed send is not used: it takes a time of this machine's clock, and fires late or at once if Restate's
// clock differs.
import * as http from 'node:http'
import * as https from 'node:https'
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'

export type RestateWake = {
  readonly session: string
  /** While a wake with this key is scheduled or running, another one with the same key is dropped as a duplicate. */
  readonly key: string
  /** How often the wake has been postponed. */
  readonly times?: number
  readonly delayMs?: number
}

const ANSWER_MS_MAX = 10_000
const SOCKETS_MAX = 16
/** A wake that comes early is postponed again, so longer delays are not needed. */
const DELAY_MS_MAX = 30 * 24 * 3_600_000

export class Ingress {
  readonly #url: URL
  readonly #name: string
  readonly #clock: Clock
  readonly #agent: http.Agent

  constructor(url: string, name: string, clock: Clock) {
    this.#url = new URL(url)
    this.#name = name
    this.#clock = clock
    const { Agent } = this.#url.protocol === 'https:' ? https : http
    this.#agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX })
  }

  /** Resolves when Restate has accepted it. */
  async send({ session, key, times = 0, delayMs = 0 }: RestateWake): Promise<void> {
    const delay = Math.min(DELAY_MS_MAX, Math.ceil(delayMs))
    const base = this.#url.pathname.replace(/\/$/, '')
    // Built as text: a URL would resolve a session called ".." as a parent path.
    const path = `${base}/${this.#name}/${encodeURIComponent(session)}/wake/send${delay > 0 ? `?delay=${delay}ms` : ''}`
    const status = await this.#post(path, { 'content-type': 'application/json', 'idempotency-key': key }, String(times))
    if (status >= 200 && status < 300) return
    if (status === 404)
      throw new Fault(
        'invalid_config',
        `Restate does not know "${this.#name}". Register this worker's address with it.`,
      )
    throw new Fault('io_error', `Restate refused a wake with status ${status}.`)
  }

  #post(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<number> {
    const { protocol, hostname, port } = this.#url
    const { request } = protocol === 'https:' ? https : http
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        cancel()
        reject(new Fault('io_error', `Restate cannot be reached at ${this.#url.origin}.`, error.message))
      }
      const asked = request({ method: 'POST', host, port, path, headers, agent: this.#agent }, (answer) => {
        answer.on('error', fail)
        answer.on('end', () => {
          cancel()
          resolve(answer.statusCode ?? 0)
        })
        answer.resume()
      })
      const cancel = this.#clock.timer(ANSWER_MS_MAX, () => asked.destroy(new Error('no answer in time')))
      asked.on('error', fail)
      asked.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}
