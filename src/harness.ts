// The harness: wires a model, tools and a store into sessions one can talk to. The verbs live on SessionHandle
// (session-handle.ts); what happens to a session is decided by the kernel alone.
import type { Json, Limits } from './kernel/content.ts'
import { Fault } from './kernel/failure.ts'
import { DEFAULT_LIMITS } from './kernel/limits.ts'
import type { Clock, Model, Random, Store } from './kernel/ports.ts'
import { isPriced } from './models/hosted.ts'
import { FINAL_RESULT, type OutputMode, type OutputPlan, planOutput } from './models/output.ts'
import { resolveModel } from './models/resolve.ts'
import { LocalLive } from './runtime/live.ts'
import { SocketLive } from './runtime/live-socket.ts'
import { systemClock, systemRandom } from './runtime/platform.ts'
import { type Budget, checkBudget } from './runtime/purse.ts'
import { environmentSecrets, Redactor, SECRET_CHARS_MIN, type Secrets } from './runtime/redact.ts'
import type { Result } from './runtime/result.ts'
import { Toolbox } from './runtime/toolbox.ts'
import { Watchdog } from './runtime/watchdog.ts'
import { Worker, type WorkerOptions } from './runtime/worker.ts'
import type { Agent, World } from './runtime/world.ts'
import type { Input } from './runtime/input.ts'
import { type RunStream, SessionHandle, type StreamOptions } from './session-handle.ts'
import { memory } from './stores/memory.ts'
import { parsePolicy, type Policy } from './tools/policy.ts'
import { anyJsonSchema, type JsonSchema } from './tools/json-schema.ts'
import type { StandardSchema, Tool, ToolSource } from './tools/tool.ts'
import { VERSION } from './version.ts'

export type HarnessOptions = {
  /** A model, or the name of one: `provider:model`. */
  readonly model: Model | string
  /** Tools, and sources of tools such as MCP servers. The sources are closed with the harness. */
  readonly tools?: readonly (Tool | ToolSource)[]
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
  /** Plan mode: the model sees only tools that change nothing, and those that a person answers. */
  readonly plan?: boolean
  /** Values that must never be written, shown or sent, by name. Default: what the environment names like a secret. */
  readonly secrets?: Secrets
  /** What a final answer must be. Without it any text is one. */
  readonly output?: HarnessOutput
  /** In dollars: calls that could go over are not made. */
  readonly budget?: Budget
  /** Say on stderr which call blocks the event loop for longer than this. A thread of its own; off unless set. */
  readonly watchdogMs?: number
  readonly worker?: Omit<WorkerOptions, 'id'>
  readonly clock?: Clock
  readonly random?: Random
}

/** A schema for the final answer, and how it is asked for. Default mode: `auto`. */
export type HarnessOutput = {
  readonly schema: StandardSchema | JsonSchema
  readonly mode?: OutputMode
}

const AGENT = 'default'

export class Harness {
  readonly #world: World
  readonly #worker: Worker
  readonly #ownsStore: boolean
  readonly #tools: Toolbox
  #closed = false

  constructor(options: HarnessOptions) {
    const clock = options.clock ?? systemClock
    const random = options.random ?? systemRandom
    const store = options.store ?? memory({ clock })
    const agent = agentOf(options)
    this.#ownsStore = options.store === undefined
    this.#tools = agent.tools
    const live = store.shared ? new SocketLive({ store, clock }) : new LocalLive()
    const watchdog = options.watchdogMs === undefined ? null : new Watchdog(options.watchdogMs)
    this.#world = {
      watchdog,
      store,
      live,
      clock,
      random,
      code: `terret@${VERSION}`,
      agent: (name) => named(agent, name),
      redactor: new Redactor({ ...(options.secrets ?? environmentSecrets()), ...keysOf(agent.model) }),
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
    await this.#tools.close()
    await this.#world.watchdog?.close()
    await this.#world.live.close()
    if (this.#ownsStore) await this.#world.store.close()
  }
}

function agentOf(options: HarnessOptions): Agent {
  const model = resolveModel(options.model)
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const output = options.output ? outputOf(options.output, model) : null
  return {
    name: AGENT,
    model,
    tools: new Toolbox({
      tools: options.tools ?? [],
      plan: options.plan ?? false,
      clock: options.clock ?? systemClock,
      reserved: output ? [FINAL_RESULT] : [],
    }),
    instructions: options.instructions ?? '',
    limits,
    approvalMs: options.approvalMs ?? null,
    policy: parsePolicy(options.policy ?? { rules: [] }),
    environment: options.environment ?? null,
    budget: options.budget ? checkBudget(options.budget) : null,
    output,
  }
}

function outputOf({ schema, mode }: HarnessOutput, model: Model): OutputPlan | null {
  const standard = '~standard' in schema ? (schema as StandardSchema) : anyJsonSchema(schema, FINAL_RESULT)
  const shape = standard['~standard'].jsonSchema?.input({ target: 'draft-2020-12' })
  if (!shape) throw new Fault('invalid_config', 'The output schema cannot say its JSON Schema. Use a library that can.')
  const able = isPriced(model) ? model.able : { name: model.name, native: 'no' as const }
  const validate = (value: unknown) => standard['~standard'].validate(value)
  return planOutput({ schema: shape as Json, validate, ...(mode === undefined ? {} : { mode }) }, able)
}

/** A key that was handed over in code is a secret like one of the environment. */
function keysOf(model: Model): Secrets {
  const keys = isPriced(model) ? Object.entries(model.secrets) : []
  return Object.fromEntries(keys.filter(([, key]) => key.length >= SECRET_CHARS_MIN))
}

function named(agent: Agent, name: string): Agent {
  if (name === agent.name) return agent
  throw new Fault('invalid_config', `This session belongs to agent "${name}", which this harness does not have.`)
}
