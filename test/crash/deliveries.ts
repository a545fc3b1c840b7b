// The sender of `--triggers`: it signs deliveries as GitHub does, sends each until it has a 202, and some of them again after that.
// It is never killed. What it was answered is its journal.
import { createHmac } from 'node:crypto'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Appender, type OracleLine } from './evidence.ts'
import type { Chance } from './random.ts'

export const ENDPOINT = 'hook'
export const SOURCE = 'orders'
export const SECRET_VARIABLE = 'TERRET_CRASH_HOOK_SECRET'
const SECRET = 'whsec_of_the_crash_run'
/** The servers inherit it. */
process.env[SECRET_VARIABLE] = SECRET

const LANES = 4
const REQUEST_MS = 10_000
const KINDS = ['put', 'pay', 'tell'] as const
export type DeliveryKind = (typeof KINDS)[number]

/** An effect that a server noted, and the delivery that ordered it. */
export type DeliveryEffect = OracleLine & { readonly delivery: string }
/** What the sender was answered with 202. */
export type Accepted = { readonly session: string; readonly duplicate: boolean }
export type DeliveryRecord = { readonly id: string; readonly kind: DeliveryKind; readonly accepted: Accepted[] }
type Body = { readonly id: string; readonly text: string }
type Reply = { readonly status: number; readonly text: string }

export class Sender {
  readonly records: DeliveryRecord[] = []
  readonly wrong: string[] = []
  readonly sums = { posts: 0, cut: 0, forged: 0 }
  /** The ports of the servers that are up. */
  ports: readonly number[] = []
  /** Deliveries under way, by the port that they went to. */
  readonly open = new Map<number, number>()
  readonly #chance: Chance
  readonly #journal: Appender<{ readonly id: string } & Reply>
  #stopped = false

  constructor(chance: Chance, journal: string) {
    this.#chance = chance
    this.#journal = new Appender(journal)
  }

  /** Sends until it is stopped. Returns when each delivery that was begun has its 202. */
  async send(): Promise<void> {
    await Promise.all(Array.from({ length: LANES }, () => this.#lane()))
  }

  stop(): void {
    this.#stopped = true
  }

  async #lane(): Promise<void> {
    while (!this.#stopped) {
      const kind = this.#chance.pick(KINDS)
      const record: DeliveryRecord = { id: `d-${this.records.length + 1}`, kind, accepted: [] }
      this.records.push(record)
      const text = JSON.stringify({ text: `event ${record.id} ${kind} ${this.#chance.integer(0, 60)}` })
      const body = { id: record.id, text }
      if (this.#chance.happens(0.1)) await this.#forge(body)
      const times = this.#chance.happens(0.3) ? 2 : 1
      for (let i = 0; i < times; i++) record.accepted.push(await this.#untilAccepted(body))
      await sleep(this.#chance.between(20, 100))
    }
  }

  async #untilAccepted(body: Body): Promise<Accepted> {
    for (;;) {
      const reply = await this.#post(body, SECRET)
      if (reply?.status === 202) return JSON.parse(reply.text) as Accepted
      if (reply !== null && reply.status < 500)
        this.wrong.push(`${body.id} was answered with ${reply.status}: ${reply.text}`)
      await sleep(this.#chance.between(5, 40))
    }
  }

  /** A delivery that somebody else signed, under a key of its own. No session may come of it. */
  async #forge({ text }: Body): Promise<void> {
    const reply = await this.#post({ id: `forged-${this.sums.forged}`, text }, 'another secret')
    if (reply === null) return
    this.sums.forged += 1
    if (reply.status !== 401) this.wrong.push(`a forged delivery was answered with ${reply.status}: ${reply.text}`)
  }

  /** Null if the connection broke: whether the delivery is on disk is not known. */
  async #post({ id, text }: Body, secret: string): Promise<Reply | null> {
    if (this.ports.length === 0) return null
    const port = this.#chance.pick(this.ports)
    this.sums.posts += 1
    this.open.set(port, (this.open.get(port) ?? 0) + 1)
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'order',
      'x-github-delivery': id,
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`,
    }
    try {
      const reply = await postTo(port, headers, text)
      this.#journal.add({ id, ...reply })
      return reply
    } catch {
      this.sums.cut += 1
      return null
    } finally {
      this.open.set(port, (this.open.get(port) ?? 1) - 1)
    }
  }
}

function postTo(port: number, headers: Readonly<Record<string, string>>, body: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', method: 'POST', path: `/v1/triggers/${ENDPOINT}`, headers, agent: false }
    const sent = request({ ...options, timeout: REQUEST_MS }, (response) => {
      let text = ''
      response.on('data', (chunk) => (text += String(chunk)))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.on('error', reject)
    sent.end(body)
  })
}
