// Where the database is: reads its URL, asks every host that it names, and connects to the primary with the highest timeline, never
// to one with a lower than was seen. What is asked on a connection, and when one is made anew, is connect.ts.
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { Fault } from '../../kernel/failure.ts'
import { nearest } from '../../options.ts'
import type { Clock } from '../../ports/system.ts'
import type { ConnectOptions } from './connect-options.ts'
import { busyFault, connectTroubleOf, type Peer, type Trouble } from './trouble.ts'

const VERSION_LEAST = 13
/** After the first primary has answered, others have so long to say that they are a newer one. */
const OTHERS_MS = 1_000
const SHAPE = 'Write it as postgres://user:password@host:5432/database.'
/** What a URL may say beyond where the database is. Anything else is a mistake, and `sslmod=require` a costly one. */
const PARAMETERS = [
  'sslmode',
  'sslcert',
  'sslkey',
  'sslrootcert',
  'sslnegotiation',
  'uselibpqcompat',
  'application_name',
  'host',
  'options',
]

/** Options of the store that a URL may have. They are not the driver's. */
const OWN = ['pooled', 'direct']

/** A host of the URL. `url` has the password; nothing else of it does. */
export type Host = Peer & { readonly url: string }

/** Throws `invalid_config`, without any part of what may be a password. */
export function hostsOf(url: string): readonly Host[] {
  const read =
    /^postgres(?:ql)?:\/\/(?:(?<who>[^/?#]*)@)?(?<hosts>[^/?#@]*)(?<path>\/[^?#@]*)?(?:\?(?<query>[^#@]*))?$/.exec(url)
  if (!read?.groups) throw invalid(`The URL of the database cannot be read. ${SHAPE}`)
  const { who = '', hosts = '', path = '' } = read.groups
  const parameters = parametersIn(url)
  for (const name of parameters.keys()) if (![...PARAMETERS, ...OWN].includes(name)) throw unknownParameter(name)
  const query = forDriver(read.groups['query'] ?? '', parameters)
  return hosts.split(',').map((host) => {
    const whole = `postgres://${who === '' ? '' : `${who}@`}${host}${path}${query === '' ? '' : `?${query}`}`
    try {
      const { hostname, port, username, password, pathname } = new URL(
        `postgres://${who === '' ? '' : `${who}@`}${host || 'local'}${path}`,
      )
      const [user = ''] = [username, password].map(decodeURIComponent)
      const shown = host === '' ? (parameters.get('host') ?? 'localhost') : `${hostname}:${port || 5432}`
      return { host: shown, user, database: decodeURIComponent(pathname.slice(1)) || user, url: whole }
    } catch {
      throw invalid(`The URL of the database cannot be read: a special character may need its % form. ${SHAPE}`)
    }
  })
}

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/** Without what is not the driver's. It checks as `verify-full` does whatever else asks for TLS, and would warn of each. */
function forDriver(query: string, parameters: URLSearchParams): string {
  const mode = parameters.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode))
    throw invalid(`The parameter "sslmode" in the URL of the database must be one of: ${SSL_MODES.join(', ')}.`)
  const own = query.split('&').filter((each) => !OWN.includes(each.split('=')[0] ?? ''))
  if (parameters.get('uselibpqcompat') === 'true') return own.join('&')
  return own.map((each) => each.replace(/^sslmode=(?:prefer|require|verify-ca)$/, 'sslmode=verify-full')).join('&')
}

function parametersIn(url: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)$/.exec(url)?.[1] ?? '')
}

/** The options, with those that the URL has. What is given beside it counts more. */
export function withOwn(options: ConnectOptions): ConnectOptions {
  const parameters = parametersIn(options.url)
  const [pooled, direct] = [parameters.get('pooled'), parameters.get('direct')]
  if (pooled !== null && pooled !== 'true' && pooled !== 'false')
    throw invalid('The parameter "pooled" in the URL of the database must be true or false.')
  if (direct !== null && !/^[^/?#@\s]+$/.test(direct))
    throw invalid('The parameter "direct" in the URL of the database must be the server itself, as host:5432.')
  const there = options.url.replace(/^(\w+:\/\/(?:[^/?#]*@)?)[^/?#@]*/, (_, start: string) => `${start}${direct}`)
  return {
    ...(pooled === null ? {} : { pooled: pooled === 'true' }),
    ...(direct === null ? {} : { direct: there }),
    ...options,
  }
}

function unknownParameter(name: string): Fault {
  const known = [...PARAMETERS, ...OWN]
  const near = nearest(name, known)
  const hint = near === null ? `. Known are: ${known.join(', ')}.` : `: did you mean "${near}"?`
  return invalid(`Unknown parameter "${name.slice(0, 64)}" in the URL of the database${hint}`)
}

function invalid(text: string): Fault {
  return new Fault('invalid_config', text)
}

/** A connection to the primary. `end` cuts it, whatever it is doing. */
export type Connected = {
  readonly client: pg.Client
  readonly host: Host
  readonly timeline: number
  readonly end: () => void
}

type Found =
  | { readonly type: 'primary'; readonly connected: Connected }
  | { readonly type: 'none'; readonly trouble: Trouble }

/** Makes a client that is not connected yet. */
export type MakeClient = (host: Host) => { readonly client: pg.Client; readonly socket: Duplex }

const QUESTION = `select pg_is_in_recovery() as standby, current_setting('server_version_num')::int as version,
  current_setting('server_encoding') as encoding,
  case when pg_is_in_recovery() then 0 else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end as timeline`

type Answer = {
  readonly standby: boolean
  readonly version: number
  readonly encoding: string
  readonly timeline: number
}

/** All hosts of one URL, and the newest timeline that any connection of this process has seen there. */
export class Hosts {
  readonly all: readonly Host[]
  readonly #clock: Clock
  readonly #answerMs: number
  readonly #onNewer: Set<(timeline: number) => void> = new Set()
  #timeline = 0

  /** `answerMs` is how long one host may take to be connected and to say what it is. */
  constructor(url: string, clock: Clock, answerMs: number) {
    this.all = hostsOf(url)
    this.#clock = clock
    this.#answerMs = answerMs
  }

  get timeline(): number {
    return this.#timeline
  }

  /** For sentences about all of them. */
  get peer(): Peer {
    const [first] = this.all
    return {
      host: this.all.map(({ host }) => host).join(', '),
      user: first?.user ?? '',
      database: first?.database ?? '',
    }
  }

  /** Called when a newer primary is known: connections to older ones are to be dropped. */
  whenNewer(listener: (timeline: number) => void): void {
    this.#onNewer.add(listener)
  }

  /** A connection to the primary, or why there is none. */
  async connect(make: MakeClient): Promise<Found> {
    const asked = this.all.map((host) => this.#ask(host, make))
    const found = await this.#newest(asked)
    for (const one of asked)
      void one.then((other) => other.type === 'primary' && other !== found && other.connected.end())
    if (found.type === 'primary') this.#see(found.connected.timeline)
    return found
  }

  /** Whether another host is the primary by now: if so, whoever is connected to an older one is told. */
  async look(make: MakeClient): Promise<void> {
    const found = await this.connect(make)
    if (found.type === 'primary') found.connected.end()
  }

  #see(timeline: number): void {
    if (timeline <= this.#timeline) return
    this.#timeline = timeline
    for (const listener of this.#onNewer) listener(timeline)
  }

  /** All are waited for, but one that is dark does not keep the others from a primary that has answered. */
  async #newest(asked: readonly Promise<Asked>[]): Promise<Found> {
    const done: Asked[] = []
    const cancels: (() => void)[] = []
    await new Promise<void>((enough) => {
      const each = asked.map(async (one) => {
        const answer = await one
        done.push(answer)
        if (answer.type === 'primary' && asked.length > 1) cancels.push(this.#clock.timer(OTHERS_MS, enough))
      })
      void Promise.all(each).then(() => enough())
    })
    for (const cancel of cancels) cancel()
    const primaries = done.filter((one) => one.type === 'primary')
    const [best] = primaries.sort((a, b) => b.connected.timeline - a.connected.timeline)
    if (best && best.connected.timeline >= this.#timeline) return best
    best?.connected.end()
    return best ? { type: 'none', trouble: this.#none('only a primary that was replaced answers') } : this.#worst(done)
  }

  /** Why there is none: a mistake that stays one is said at once. */
  #worst(done: readonly Asked[]): Found {
    const troubles = done.flatMap((one) => (one.type === 'none' ? [one.trouble] : []))
    const final = troubles.filter(({ type }) => type === 'final')
    const standby = done.some(({ type }) => type === 'standby')
    if (final.length === done.length && final[0]) return { type: 'none', trouble: final[0] }
    if (standby)
      return { type: 'none', trouble: this.#none('only a standby answers. Promote it, or name the primary in the URL') }
    return { type: 'none', trouble: troubles.find(({ type }) => type === 'again') ?? this.#none('no host answered') }
  }

  #none(why: string): Trouble {
    return { type: 'again', fault: busyFault(this.peer, why), drop: true }
  }

  async #ask(host: Host, make: MakeClient): Promise<Asked> {
    let end = (): void => {}
    let cancel = (): void => {}
    try {
      const { client, socket } = make(host)
      end = () => void socket.destroy()
      cancel = this.#clock.timer(this.#answerMs, end)
      await client.connect()
      const { rows } = await client.query<Answer>(QUESTION)
      const [answer] = rows
      if (answer === undefined) throw new Error('no answer')
      refuseUnusable(answer, host)
      if (answer.standby) {
        end()
        return { type: 'standby' }
      }
      return { type: 'primary', connected: { client, host, timeline: answer.timeline, end } }
    } catch (error) {
      end()
      return { type: 'none', trouble: connectTroubleOf(error, host, this.#timeline === 0) }
    } finally {
      cancel()
    }
  }
}

type Asked = Found | { readonly type: 'standby' }

function refuseUnusable({ version, encoding }: Answer, { host, database }: Peer): void {
  const major = Math.floor(version / 10_000)
  if (major < VERSION_LEAST) {
    const text = `The server at ${host} is Postgres ${major}, and ${VERSION_LEAST} is the least that can be used. Upgrade it.`
    throw new Fault('store_unsupported', text)
  }
  if (encoding === 'UTF8') return
  const text = `The database "${database}" has the encoding ${encoding}, which cannot hold all texts. Create one with ENCODING 'UTF8'.`
  throw new Fault('store_unsupported', text)
}
