// The harness: wires a model, tools and a store into sessions one can talk to. The verbs live on SessionHandle
// (session-handle.ts); what happens to a session is decided by the kernel alone.
import type { Limits } from './kernel/content.ts'
import { Fault } from './kernel/failure.ts'
import { DEFAULT_LIMITS } from './kernel/limits.ts'
import type { Clock, Model, Random, Store } from './kernel/ports.ts'
import { LocalLive } from './runtime/live.ts'
import { SocketLive } from './runtime/live-socket.ts'
import { systemClock, systemRandom } from './runtime/platform.ts'
import type { Result } from './runtime/result.ts'
import { Worker, type WorkerOptions } from './runtime/worker.ts'
import type { Agent, World } from './runtime/world.ts'
import { type Input, type RunStream, SessionHandle, type StreamOptions } from './session-handle.ts'
import { memory } from './stores/memory.ts'
import { parsePolicy, type Policy } from './tools/policy.ts'
import type { Tool } from './tools/tool.ts'
import { VERSION } from './version.ts'

export type HarnessOptions = {
  readonly model: Model
  readonly tools?: readonly Tool[]
  readonly instructions?: string
  readonly limits?: Partial<Limits>
  /** Where sessions live. Without one they live in memory and end with the process. */
  readonly store?: Store
  /** How long a question to a person stays open. Default: for ever. */
  readonly approvalMs?: number | null
  /** Rules on what may run, what must be asked and what is denied. Without any, each tool decides itself. */
  readonly policy?: Policy
  /** The name that rules call this place by, such as `production`. */
  readonly environment?: string
  readonly worker?: Omit<WorkerOptions, 'id'>
  readonly clock?: Clock
  readonly random?: Random
}

const AGENT = 'default'

export class Harness {
  readonly #world: World
  readonly #worker: Worker
  readonly #ownsStore: boolean
  #closed = false

  constructor(options: HarnessOptions) {
    const clock = options.clock ?? systemClock
    const random = options.random ?? systemRandom
    const store = options.store ?? memory({ clock })
    const agent = agentOf(options)
    this.#ownsStore = options.store === undefined
    const live = store.shared ? new SocketLive({ store, clock }) : new LocalLive()
    this.#world = {
      store,
      live,
      clock,
      random,
      code: `terret@${VERSION}`,
      agent: (name) => named(agent, name),
    }
    this.#worker = new Worker(this.#world, { ...options.worker, id: `worker-${random.id()}` })
  }

  /** A new session, on disk when this resolves. */
  async open(options: { readonly id?: string } = {}): Promise<SessionHandle> {
    const handle = this.session(options.id ?? this.#world.random.id())
    await handle.create(AGENT)
    return handle
  }

  /** The session with this id. Nothing is read or written until a verb is used. */
  session(id: string): SessionHandle {
    if (this.#closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
    if (id.trim() === '') throw new Fault('invalid_input', 'A session id must not be empty.')
    return new SessionHandle(id, this.#world, this.#worker)
  }

  /** One input in a new session, to its end. */
  async run(input: Input): Promise<Result> {
    const session = this.session(this.#world.random.id())
    return session.begin(AGENT, input)
  }

  /** The same, as it happens. */
  stream(input: Input, options: StreamOptions = {}): RunStream {
    const session = this.session(this.#world.random.id())
    return session.streamFrom(options, () => session.createWith(AGENT, input))
  }

  /** Stops what runs, writes down how far it came, and gives the sessions back. A store passed in stays open. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#worker.close()
    await this.#world.live.close()
    if (this.#ownsStore) await this.#world.store.close()
  }
}

function agentOf(options: HarnessOptions): Agent {
  const tools = new Map<string, Tool>()
  for (const tool of options.tools ?? []) {
    if (tools.has(tool.name))
      throw new Fault('invalid_config', `Two tools are named "${tool.name}". Rename one of them.`)
    tools.set(tool.name, tool)
  }
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  return {
    name: AGENT,
    model: options.model,
    tools,
    instructions: options.instructions ?? '',
    limits,
    approvalMs: options.approvalMs ?? null,
    policy: parsePolicy(options.policy ?? { rules: [] }),
    environment: options.environment ?? null,
  }
}

function named(agent: Agent, name: string): Agent {
  if (name === agent.name) return agent
  throw new Fault('invalid_config', `This session belongs to agent "${name}", which this harness does not have.`)
}
