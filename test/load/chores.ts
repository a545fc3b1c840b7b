// What reaches a soak's servers beside its sessions: cron jobs that fire each minute, and signed deliveries, some of them sent twice. In the end
// each delivery that was answered with 202 must have one session that ended, and each minute of each job its run.
import { createHmac } from 'node:crypto'
import type { Chance } from '../crash/random.ts'
import type { ServerProcess } from './server.ts'

const SECRET = 'whsec_of_the_soak'
const VARIABLE = 'TERRET_SOAK_SECRET'
export const SECRETS = { [VARIABLE]: SECRET }
/** What the configuration of the servers says of them. */
export const TRIGGERS = {
  triggers: {
    sources: { orders: { targets: { react: ['tools_agent'] }, caps: { perMinute: 1_000, atOnce: 20 } } },
    endpoints: { orders: { source: 'orders', verify: 'github', secret: { env: VARIABLE } } },
  },
}
/** Two times of a job are five minutes apart at least. So many jobs have one each minute. */
const JOBS = 5
const MINUTE_MS = 60_000
const RETRY_MS = 200

type Answered = { readonly card: { readonly outcome: string | null; readonly status: string } }

export class Chores {
  readonly #servers: readonly ServerProcess[]
  readonly #chance: Chance
  readonly wrong: string[] = []
  /** Deliveries, and their sessions. */
  readonly #taken = new Map<string, string>()
  #from = 0
  #deliveries = 0

  constructor(servers: readonly ServerProcess[], chance: Chance) {
    this.#servers = servers
    this.#chance = chance
  }

  get deliveries(): number {
    return this.#deliveries
  }

  /** The first time that counts is the first whole minute after all of them are there. */
  async begin(): Promise<void> {
    for (let n = 0; n < JOBS; n += 1) {
      const job = { name: jobOf(n), line: `${n}-59/${JOBS} * * * *`, prompt: 'Look at the clock.' }
      const whole = { ...job, zone: 'UTC', missed: 'all', overlap: 'queue' }
      await this.#server.json('POST', 'cron', { action: 'add', job: whole })
    }
    this.#from = Math.ceil((Date.now() + 1_000) / MINUTE_MS) * MINUTE_MS
  }

  /** One delivery, now and then a second time: both have the same session. */
  async deliver(): Promise<void> {
    this.#deliveries += 1
    const id = `d-${this.#deliveries}`
    for (let times = this.#chance.happens(0.2) ? 2 : 1; times > 0; times -= 1) {
      const session = await this.#post(id)
      const before = this.#taken.get(id) ?? session
      if (before !== session) this.wrong.push(`delivery ${id} has two sessions, ${before} and ${session}`)
      this.#taken.set(id, session)
    }
  }

  /** What is missing or open. `until`: no job fires any more. */
  async check(until: number): Promise<readonly string[]> {
    const wrong = [...this.wrong]
    for (const [id, session] of this.#taken)
      wrong.push(...(await this.#unsettled(session)).map((text) => `delivery ${id}: ${text}`))
    for (let at = this.#from; at <= until; at += MINUTE_MS) {
      const [, minute = ''] = /^(.*):\d\d\.\d+Z$/.exec(new Date(at).toISOString()) ?? []
      const session = `cron.${jobOf((at / MINUTE_MS) % JOBS)}.${minute.replaceAll(/[-:]/g, '')}Z`
      wrong.push(...(await this.#unsettled(session)))
    }
    return wrong
  }

  /** After this no job fires: they are off. Gives the last time that counts. */
  async end(): Promise<number> {
    const until = Date.now()
    for (let n = 0; n < JOBS; n += 1)
      await this.#server.json('POST', 'cron', { action: 'off', session: `cron.${jobOf(n)}` })
    // The minute in which they were switched off may have fired or not.
    return Math.floor(until / MINUTE_MS) * MINUTE_MS - MINUTE_MS
  }

  /** The one that stays. */
  get #server(): ServerProcess {
    return this.#servers[0] as ServerProcess
  }

  async #unsettled(session: string): Promise<readonly string[]> {
    const { status, text } = await this.#server.ask('GET', `sessions/${session}`)
    if (status !== 200) return [`${session}: ${status} ${text}`]
    const { outcome, status: stands } = (JSON.parse(text) as Answered).card
    return outcome === 'completed' ? [] : [`${session}: ${outcome ?? stands}`]
  }

  /** Again until it is answered, by either server: then it is on disk. */
  async #post(id: string): Promise<string> {
    const delivery = { id, text: `Order ${id}.` }
    const signature = createHmac('sha256', SECRET).update(JSON.stringify(delivery)).digest('hex')
    const headers = {
      'x-github-event': 'order',
      'x-github-delivery': id,
      'x-hub-signature-256': `sha256=${signature}`,
    }
    for (;;) {
      try {
        const answer = await this.#chance.pick(this.#servers).ask('POST', 'triggers/orders', delivery, headers)
        if (answer.status === 202) return (JSON.parse(answer.text) as { readonly session: string }).session
        if (answer.status < 500) this.wrong.push(`delivery ${id}: ${answer.status} ${answer.text}`)
      } catch {}
      await new Promise((done) => void setTimeout(done, RETRY_MS))
    }
  }
}

function jobOf(n: number): string {
  return `soak-${n}`
}
