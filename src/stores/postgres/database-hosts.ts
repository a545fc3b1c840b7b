// Finds the database: parses its URL, asks every host in it, and connects to the primary with the highest timeline,
// never to one with a lower timeline than it has seen. connections.ts runs the statements and decides when to
// reconnect.
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { Fault } from '../../kernel/failure.ts'
import { nearest } from '../../options.ts'
import type { Clock } from '../../ports/system.ts'
import type { ConnectOptions } from './connect-options.ts'
import {
  databaseBusyFault,
  classifyConnectTrouble,
  type DatabasePeer,
  type DatabaseTrouble,
} from './database-trouble.ts'

const VERSION_LEAST = 13
/** After the first primary has answered, other hosts have this long to report a newer timeline. */
const OTHERS_MS = 1_000
const SHAPE = 'Write it as postgres://user:password@host:5432/database.'
/** The URL parameters that are allowed. Any other is a mistake, and `sslmod=require` a costly one. */
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

/** Options of the store that a URL may contain. They do not belong to the driver. */
const OWN = ['pooled', 'direct']

/** A host of the URL. Only `url` contains the password. */
export type DatabaseHost = DatabasePeer & { readonly url: string }

/** Throws `invalid_config`, without any part of a possible password. */
export function parseHosts(url: string): readonly DatabaseHost[] {
  const read =
    /^postgres(?:ql)?:\/\/(?:(?<who>[^/?#]*)@)?(?<hosts>[^/?#@]*)(?<path>\/[^?#@]*)?(?:\?(?<query>[^#@]*))?$/.exec(url)
  if (!read?.groups) throw invalidConfig(`The URL of the database cannot be read. ${SHAPE}`)
  const { who = '', hosts = '', path = '' } = read.groups
  const parameters = parametersIn(url)
  for (const name of parameters.keys()) if (![...PARAMETERS, ...OWN].includes(name)) throw unknownParameter(name)
  const query = driverQuery(read.groups['query'] ?? '', parameters)
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
      throw invalidConfig(`The URL of the database cannot be read: a special character may need its % form. ${SHAPE}`)
    }
  })
}

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/**
 * The query without the store's own options. The driver treats all TLS modes like `verify-full` and would warn about
 * the others.
 */
function driverQuery(query: string, parameters: URLSearchParams): string {
  const mode = parameters.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode))
    throw invalidConfig(`The parameter "sslmode" in the URL of the database must be one of: ${SSL_MODES.join(', ')}.`)
  const own = query.split('&').filter((each) => !OWN.includes(each.split('=')[0] ?? ''))
  if (parameters.get('uselibpqcompat') === 'true') return own.join('&')
  return own.map((each) => each.replace(/^sslmode=(?:prefer|require|verify-ca)$/, 'sslmode=verify-full')).join('&')
}

function parametersIn(url: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)$/.exec(url)?.[1] ?? '')
}

/** The options together with those in the URL. Explicit options win. */
export function withUrlOptions(options: ConnectOptions): ConnectOptions {
  const parameters = parametersIn(options.url)
  const [pooled, direct] = [parameters.get('pooled'), parameters.get('direct')]
  if (pooled !== null && pooled !== 'true' && pooled !== 'false')
    throw invalidConfig('The parameter "pooled" in the URL of the database must be true or false.')
  if (direct !== null && !/^[^/?#@\s]+$/.test(direct))
    throw invalidConfig('The parameter "direct" in the URL of the database must be the server itself, as host:5432.')
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
  return invalidConfig(`Unknown parameter "${name.slice(0, 64)}" in the URL of the database${hint}`)
}

function invalidConfig(text: string): Fault {
  return new Fault('invalid_config', text)
}

/** A connection to the primary. `end` cuts it at any time. */
export type PrimaryConnection = {
  readonly client: pg.Client
  readonly host: DatabaseHost
  readonly timeline: number
  readonly end: () => void
}

type ConnectResult =
  | { readonly type: 'primary'; readonly connected: PrimaryConnection }
  | { readonly type: 'none'; readonly trouble: DatabaseTrouble }

/** Creates a client that is not connected yet. */
export type MakeClient = (host: DatabaseHost) => { readonly client: pg.Client; readonly socket: Duplex }

const QUESTION = `select pg_is_in_recovery() as standby, current_setting('server_version_num')::int as version,
  current_setting('server_encoding') as encoding,
  case when pg_is_in_recovery() then 0 else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end as timeline`

type ServerFacts = {
  readonly standby: boolean
  readonly version: number
  readonly encoding: string
  readonly timeline: number
}

/** All hosts of one URL, and the newest timeline that any connection of this process has seen. */
export class DatabaseHosts {
  readonly all: readonly DatabaseHost[]
  readonly #clock: Clock
  readonly #answerMs: number
  readonly #onNewer: Set<(timeline: number) => void> = new Set()
  #timeline = 0

  /** `answerMs` is how long one host may take to connect and answer. */
  constructor(url: string, clock: Clock, answerMs: number) {
    this.all = parseHosts(url)
    this.#clock = clock
    this.#answerMs = answerMs
  }

  get timeline(): number {
    return this.#timeline
  }

  /** Names all of them, for messages. */
  get peer(): DatabasePeer {
    const [first] = this.all
    return {
      host: this.all.map(({ host }) => host).join(', '),
      user: first?.user ?? '',
      database: first?.database ?? '',
    }
  }

  /** Calls back when a newer primary is known: connections to older ones must be dropped. */
  whenNewer(listener: (timeline: number) => void): void {
    this.#onNewer.add(listener)
  }

  /** A connection to the primary, or why there is none. */
  async connect(make: MakeClient): Promise<ConnectResult> {
    const asked = this.all.map((host) => this.#ask(host, make))
    const found = await this.#newest(asked)
    for (const one of asked)
      void one.then((other) => other.type === 'primary' && other !== found && other.connected.end())
    if (found.type === 'primary') this.#see(found.connected.timeline)
    return found
  }

  /** Checks whether another host is the primary now; if so, `whenNewer` listeners are called. */
  async look(make: MakeClient): Promise<void> {
    const found = await this.connect(make)
    if (found.type === 'primary') found.connected.end()
  }

  #see(timeline: number): void {
    if (timeline <= this.#timeline) return
    this.#timeline = timeline
    for (const listener of this.#onNewer) listener(timeline)
  }

  /** Waits for all hosts, but one that does not answer cannot delay a primary that has answered. */
  async #newest(asked: readonly Promise<HostAnswer>[]): Promise<ConnectResult> {
    const done: HostAnswer[] = []
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

  /** Why there is none. A permanent mistake is reported at once. */
  #worst(done: readonly HostAnswer[]): ConnectResult {
    const troubles = done.flatMap((one) => (one.type === 'none' ? [one.trouble] : []))
    const final = troubles.filter(({ type }) => type === 'final')
    const standby = done.some(({ type }) => type === 'standby')
    if (final.length === done.length && final[0]) return { type: 'none', trouble: final[0] }
    if (standby)
      return { type: 'none', trouble: this.#none('only a standby answers. Promote it, or name the primary in the URL') }
    return { type: 'none', trouble: troubles.find(({ type }) => type === 'again') ?? this.#none('no host answered') }
  }

  #none(why: string): DatabaseTrouble {
    return { type: 'again', fault: databaseBusyFault(this.peer, why), drop: true }
  }

  async #ask(host: DatabaseHost, make: MakeClient): Promise<HostAnswer> {
    let end = (): void => {}
    let cancel = (): void => {}
    try {
      const { client, socket } = make(host)
      end = () => void socket.destroy()
      cancel = this.#clock.timer(this.#answerMs, end)
      await client.connect()
      const { rows } = await client.query<ServerFacts>(QUESTION)
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
      return { type: 'none', trouble: classifyConnectTrouble(error, host, this.#timeline === 0) }
    } finally {
      cancel()
    }
  }
}

type HostAnswer = ConnectResult | { readonly type: 'standby' }

function refuseUnusable({ version, encoding }: ServerFacts, { host, database }: DatabasePeer): void {
  const major = Math.floor(version / 10_000)
  if (major < VERSION_LEAST) {
    const text = `The server at ${host} is Postgres ${major}, and ${VERSION_LEAST} is the least that can be used. Upgrade it.`
    throw new Fault('store_unsupported', text)
  }
  if (encoding === 'UTF8') return
  const text = `The database "${database}" has the encoding ${encoding}, which cannot hold all texts. Create one with ENCODING 'UTF8'.`
  throw new Fault('store_unsupported', text)
}
