// The sessions of a server, with the verbs of the library's sessions. What only a server has is under `server`.
import { Fault } from '../kernel/index.ts'
import type {
  AgentRow,
  BeginOptions,
  CardChange,
  Health,
  Input,
  ListOptions,
  ListedCard,
  ListedPage,
  OpenOptions,
  PendingCall,
  PendingFilter,
  Removed,
  RestReport,
  Result,
  RunOptions,
  RunStream,
  Sessions,
  StreamOptions,
  WatchOptions,
  WorkOptions,
  WorkResult,
} from '../index.ts'
import type {
  AgentsAnswer,
  WireHealth,
  OpenedAnswer,
  PendingAnswer,
  RemovedAnswer,
  SessionPage,
} from '../server/wire.ts'
import { ClientSession } from './client-session.ts'
import { watchRemote } from './follow-session.ts'
import { RemoteLogs } from './remote-logs.ts'
import { openRemoteStream } from './remote-run.ts'
import { driveRemotely } from './remote-status.ts'
import type { ServerConnection } from './server-connection.ts'
import { ServerInfo } from './server-info.ts'
import { refuseOptions, unsupportedFault } from './unsupported.ts'

const PAGE_MAX = 200
const PENDING_MAX = 1_000

/** The verbs of a harness on a server elsewhere, over HTTP. `connect` makes one. */
export class Client implements Sessions {
  /** The parts that only a server has, not the library. */
  readonly server: ServerInfo
  readonly #wires: ServerConnection
  readonly #logs: RemoteLogs

  constructor(wires: ServerConnection) {
    this.#wires = wires
    this.#logs = new RemoteLogs(wires)
    this.server = new ServerInfo(wires)
  }

  async open(options: OpenOptions = {}): Promise<ClientSession> {
    refuseOptions('open', options, ['environment', 'attachments'])
    const { reuse = false, ...body } = options
    try {
      const { session } = await this.#wires.json<OpenedAnswer>('open', { body })
      return this.session(session)
    } catch (error) {
      if (reuse && body.id !== undefined && error instanceof Fault && error.code === 'id_reused')
        return this.session(body.id)
      throw error
    }
  }

  session(id: string): ClientSession {
    return new ClientSession({ id, wires: this.#wires, logs: this.#logs })
  }

  async run(input: Input, { agent, labels, ...options }: RunOptions & BeginOptions = {}): Promise<Result> {
    return (await this.open(beginning(agent, labels))).run(input, options)
  }

  stream(input: Input, options: StreamOptions & BeginOptions = {}): RunStream {
    const { agent, labels, after: _after, deltas: _deltas, subagents: _below, detach: _detach, ...said } = options
    refuseOptions('stream', said, ['raw'])
    const begin = async () => {
      const session = await this.open(beginning(agent, labels))
      return { id: session.id, input: (await session.send(input, said)).seq }
    }
    const place = { wires: this.#wires, logs: this.#logs }
    return openRemoteStream(place, { ...options, begin, stop: (id) => this.session(id).interrupt() })
  }

  async trigger(): Promise<never> {
    throw unsupportedFault('harness.trigger: signed deliveries come in at POST /v1/triggers/NAME')
  }

  async list(options: ListOptions = {}): Promise<ListedPage> {
    refuseOptions('list', options, ['where', 'owner', 'waiting', 'active', 'context', 'runs'])
    const { status, root, parent, folder, agent, q, since, until, order, cursor, limit, outcome } = options
    const filter = { status, root, parent, folder, agent, q, since, until, order, cursor, outcome: outcome?.join() }
    const size = limit === undefined ? undefined : Math.min(limit, PAGE_MAX)
    const { sessions, next } = await this.#wires.json<SessionPage>('sessions', { query: { ...filter, limit: size } })
    // Sound: a list has the library's cards as JSON.
    return { cards: sessions as readonly ListedCard[], next }
  }

  /** Ordered by session id, as in the library. Reads as many pages as it takes. */
  async pending(filter: PendingFilter = {}): Promise<readonly PendingCall[]> {
    refuseOptions('pending', filter, ['where'])
    const { limit = Number.MAX_SAFE_INTEGER, after } = filter
    const found: PendingCall[] = []
    for (let cursor = after; found.length < limit; ) {
      const query = { cursor, limit: Math.min(limit - found.length, PENDING_MAX) }
      const { pending, next } = await this.#wires.json<PendingAnswer>('pending', { query })
      // Sound: the server sends the library's calls as JSON.
      const page = pending as readonly PendingCall[]
      found.push(...page.toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : a.sessionId > b.sessionId ? 1 : 0)))
      if (next === null) break
      cursor = next
    }
    return found
  }

  async remove(session: string): Promise<readonly Removed[]> {
    return (await this.#wires.json<RemovedAnswer>('remove', { params: { id: session } })).removed
  }

  async agents(): Promise<readonly AgentRow[]> {
    // Sound: the server sends the library's rows as JSON.
    return (await this.#wires.json<AgentsAnswer>('agents')).agents as readonly AgentRow[]
  }

  /** Cards as they change. Changes during a lost connection may be missed: call `list` to get them. */
  watch(options: WatchOptions = {}): AsyncIterableIterator<CardChange> {
    refuseOptions('watch', options, ['where'])
    return watchRemote(this.#wires, options)
  }

  async health(): Promise<Health> {
    return libraryHealth(await this.#wires.json<WireHealth>('health'))
  }

  work(options: { readonly session: string }): Promise<RestReport>
  work(options?: WorkOptions): Promise<WorkResult>
  async work(options: WorkOptions | { readonly session: string } = {}): Promise<WorkResult | RestReport> {
    if (!('session' in options)) throw unsupportedFault('work without a session')
    return driveRemotely({ id: options.session, wires: this.#wires, logs: this.#logs })
  }

  /** Ends what this client follows and watches. The server goes on. */
  async close(): Promise<void> {
    this.#wires.close()
  }
}

function beginning(agent: string | undefined, labels: OpenOptions['labels']): OpenOptions {
  return { ...(agent === undefined ? {} : { agent }), ...(labels === undefined ? {} : { labels }) }
}

/**
 * Health in the library's form. Facts about the store that a server does not send are left out, as if the store were
 * unreadable.
 */
function libraryHealth(health: WireHealth): Health {
  const { ok, trouble, code = 'io_error', now, version, drives, durability } = health
  const { bytes = 0, sessions = 0, leases = 0, due, waitedMs = 0, network } = health
  const about = { now, code: `terret@${version}`, drives, claims: null, accounts: null, writeMs: durability.appendMs }
  const store = { durability: durability.survives, schema: null, bytes, sessions, leases, due, waitedMs }
  return {
    ok,
    trouble: trouble === null ? null : { code, message: trouble },
    ...about,
    store: { ...store, ...(network ? { network } : {}) },
  }
}
