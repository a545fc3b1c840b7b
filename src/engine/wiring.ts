// What an attempt may touch: the doors, and the agents by name. Types and small lookups; nothing happens here.
import { hash } from 'node:crypto'
import type { BlobRef, Json, Limits, Metadata, Part, Verdict, Within } from '../kernel/content.ts'
import { assert } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { OwnerEvent } from '../kernel/event.ts'
import type { Waiting } from '../kernel/next.ts'
import type { Blob, Store } from '../ports/store.ts'
import type { AnswerSettings, Model, Reply, Workload } from '../ports/model.ts'
import type { Clock, Processes, Random } from '../ports/system.ts'
import { bothEnds, type Message } from '../kernel/transcript.ts'
import type { OutputPlan } from '../models/output.ts'
import { hintIn, noRoute } from '../models/router.ts'
import { shortened } from '../view/text.ts'
import type { BreakerOptions } from '../riders/guard/guard.ts'
import type { Hooks } from '../riders/hooks/hooks.ts'
import type { Live } from '../live/live.ts'
import type { Budget } from '../riders/money/spending-limits.ts'
import type { Redactor } from '../riders/redact/redact.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import type { Tier } from '../sessions/tiers.ts'
import type { Watchdog } from './watchdog.ts'
import type { UnknownTool } from '../tools/core/admit.ts'
import type { Policy } from '../tools/policy/policy.ts'
import type { StandardSchema } from '../tools/core/json-schema.ts'
import type { ToolContext } from '../tools/core/context.ts'
import type { Tool } from '../tools/core/tool.ts'

/** What answers turns instead of a language model, and says itself what its replies mean. Its `call` is the agent's model. */
export type Planner = {
  /** Recorded in `session.created`, such as `graph:report`. */
  readonly name: string
  verdict(reply: Reply): Verdict
  /** For people and programs that look at it. Absent: there is nothing to draw. */
  readonly draw?: () => Drawing
  /** Absent: a run that is stopped ends as it is. */
  readonly finalizer?: Finalizer
  /** Its replies may tell other sessions something. Absent: they do not. */
  readonly leads?: true
}

/** A graph: `json` for programs, and the source of a Mermaid picture. */
export type Drawing = { readonly json: Json; readonly mermaid: string }

/** Has the last word when a run is stopped: what it returns is the output of that run. It only reads. */
export type Finalizer = {
  readonly secrets: readonly string[]
  run(messages: readonly Message[], context: ToolContext): Promise<Json>
}

/** How far results are made shorter: `light` only reformats, `full` also leaves out, `auto` is `light` for agents that write code. */
export type Compression = 'auto' | 'full' | 'light'

/** What makes fresh results shorter, in this order. What is absent is off. */
export type Shortening = {
  readonly compression?: Compression
  /** The content router looks at results from this many bytes on. Absent: from a few hundred on. */
  readonly fromBytes?: number
  /** A model summarises results from so many tokens up to so many. */
  readonly summarize?: { readonly fromTokens: number; readonly toTokens: number }
  /** No result has more bytes than this. */
  readonly bytes?: number
}

export type Agent = {
  readonly name: string
  /** Reads what a context does not show whole. A model is offered it once its context names it, and not before. Unset where it is denied. */
  readonly retrieve?: Tool
  readonly model: Model
  /** How its model answers in this run, over how it was made. */
  readonly settings?: AnswerSettings
  readonly tools: Toolbox
  readonly instructions: string
  readonly limits: Limits
  readonly approvalMs: number | null
  readonly policy: Policy
  readonly environment: string | null
  /** Null: any text is an answer. */
  readonly output: OutputPlan | null
  /** Null: nothing is bounded by money. */
  readonly budget: Budget | null
  /** The same for another model, which may have to be asked in another way. Absent where no run can choose its model. */
  readonly outputFor?: (model: Model) => OutputPlan | null
  /** The agents it may start as children, by name. */
  readonly children: readonly string[]
  /** Absent: it may start any of its children, and be started by any. */
  readonly tier?: Tier
  /** Absent: its parent reads as much of its answer as of any. */
  readonly maxResultChars?: number
  /** Null: a language model. Notices, breakers and prefix rules are for those alone. */
  readonly planner: Planner | null
  /** Absent: `return`, for both. */
  readonly unknownTool?: UnknownTool | undefined
  readonly toolErrors?: 'return' | 'fail' | undefined
  /** Absent: results are as their tools return them. */
  readonly shortening?: Shortening
  /** Absent: `keep`. */
  readonly prefix?: 'keep' | 'follow' | undefined
}

/**
 * `windowTokens`: a model takes no more than this, whatever is known of it. `detectPins`: a message of the user that sets a rule (never,
 * always, only, from now on) is pinned when it would be cut. Default true.
 */
export type Compaction = { readonly windowTokens?: number; readonly detectPins?: boolean }

/** Where the last run began, and where the one began that these events settle, if they settle one. */
export type RunSeqs = { readonly began: number; readonly ended: number | null }

/** Is told what is on disk. */
export type Watcher = {
  committed(session: string, agent: string, run: RunSeqs, events: readonly OwnerEvent[]): void
  /** Nothing is left to do for now. */
  rested(session: string, waiting: Waiting): void
  /** Everything that may delay an answer has been told. */
  told(session: string): Promise<void>
  close(): Promise<void>
}

/** `names`: sessions of these programs are driven, and new ones are of the first. `given`: the host chose the names. */
export type Program = { readonly names: readonly string[]; readonly given: boolean }

export type Services = {
  readonly store: Store
  readonly live: Live
  readonly clock: Clock
  readonly random: Random
  /** Absent: leases end by the clock alone. */
  readonly processes?: Processes
  readonly agent: (name: string) => Agent
  readonly redactor: Redactor
  readonly watchdog: Watchdog | null
  /** Null: there are none. */
  readonly hooks: Hooks | null
  readonly breaker: BreakerOptions | false
  /** Absent: what is full is compacted, where it is known how much a model takes. */
  readonly compaction?: Compaction | false | undefined
  /** Tells the host of trouble beside a run. Absent: such trouble is not told. */
  readonly report?: (where: string, error: unknown) => void
  /** Null: no observer of runs. */
  readonly observer: Watcher | null
  /** How runs are traced. Absent: they are not. */
  readonly traces?: { readonly propagate: boolean }
  readonly code: string
  /** Absent: a program without a name. */
  readonly program?: Program
  /** A model that a run may choose, by its name. */
  readonly model: (name: string) => Model
  /** The names of all models and routes of the configuration: what a model may choose from. */
  readonly choosable: readonly string[]
  /** The model that is set for a workload; null for none. Absent: no routes are set. */
  readonly route?: ((workload: Workload) => Model | null) | undefined
  /** The schemas that callers in this process gave with a message, by `schemaKey`: what a worker elsewhere knows only as JSON Schema. */
  readonly schemas: Map<string, StandardSchema>
  /** Builds what the tools of one attempt get as `deps`; null if there is nothing to build. */
  readonly context: MakeContext | null
}

/** The model of this name. One that is asked for by workload is that of its route, or, where none is set, the agent's own. */
export function modelNamed(services: Services, name: string, own: Model | null): Model {
  const workload = hintIn(name)
  if (workload === null) return services.model(name)
  const model = services.route?.(workload) ?? own
  if (model === null) throw noRoute(workload)
  return model
}

/** Why a language model may not choose this model for a child, with those that it may; null if it may. */
export function barredModel({ choosable }: Pick<Services, 'choosable'>, name: string): string | null {
  if (choosable.includes(name)) return null
  const named = `You cannot choose the model "${shortened(name, MODEL_CHARS_SHOWN)}".`
  if (choosable.length === 0) return `${named} Leave "model" out.`
  return `${named} Choose one of: ${choosable.join(', ')}; or leave "model" out.`
}
const MODEL_CHARS_SHOWN = 64

/** The model that writes summaries for an agent: that of the route, or its own. */
export function summarizerOf({ route }: Services, { model }: Agent): Model {
  return route?.('summarization') ?? model
}

/** The id of a message is its caller's own: another session may have the same. */
export function schemaKey(session: string, message: string): string {
  return JSON.stringify([session, message])
}

/** Schemas of callers whose runs no worker here has taken up: the oldest is known elsewhere as JSON Schema only. */
export const SCHEMAS_KEPT = 1_000

/** What the context of an attempt is built from. */
export type ContextOf = { readonly session: string; readonly agent: string; readonly metadata: Metadata }
export type MakeContext<Deps = unknown> = (of: ContextOf) => Deps | Promise<Deps>

/**
 * The agent that drives this session now: its own, or what the open run has instead, which was read before the run went on. What
 * came from elsewhere is driven by the session's own agent until it was reviewed.
 */
export function agentFor(services: Services, { session, varied }: Driven): Agent {
  const { run } = session
  if (run?.options === undefined || run.foreign) return agentIn(services, session)
  assert(varied?.options === run.options, 'a run goes on without its options')
  return varied.agent
}

/** The agent of a session, with tools that work where the session does: a child may have a folder, or paths, of its own. */
export function agentIn(services: Pick<Services, 'agent'>, { agent: name, parent, folder }: Session): Agent {
  const agent = services.agent(name)
  const { owns } = parent ?? {}
  if (parent === null || (folder === undefined && owns === undefined)) return agent
  const known = elsewhere.get(agent) ?? new Map<string, Agent>()
  elsewhere.set(agent, known)
  const place = JSON.stringify([folder, owns])
  const root = { ...(folder === undefined ? {} : { folder }), ...(owns ? { claims: { own: owns, others: [] } } : {}) }
  const found = known.get(place) ?? { ...agent, tools: agent.tools.rooted(root) }
  // The last one used is the last to go.
  known.delete(place)
  known.set(place, found)
  const [oldest] = known.keys()
  if (known.size > ELSEWHERE_KEPT && oldest !== undefined) known.delete(oldest)
  return found
}
const elsewhere = new WeakMap<Agent, Map<string, Agent>>()
const ELSEWHERE_KEPT = 32

type Driven = { readonly session: Session; readonly varied: Varied | null }
/** `below`: the bounds of what the run starts. */
export type Varied = { readonly options: string; readonly agent: Agent; readonly below?: Within }

/** What answers the turns of an agent's sessions, as it is recorded. */
export function plannerName(services: Pick<Services, 'agent'>, agent: string): string {
  return services.agent(agent).planner?.name ?? 'model'
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function textBlob(text: string, media: string): Blob {
  return bytesBlob(encoder.encode(text), media)
}

export function bytesBlob(data: Uint8Array, media: string): Blob {
  return { hash: hash('sha256', data), media, data }
}

/** Replacing secrets in a text takes seconds for each MB. In a longer file they are only searched for. */
const REDACTED_BYTES_MAX = 1024 * 1024

/** What a tool keeps, without known secrets: a file that holds one is not kept, since bytes cannot be replaced in it. */
export function cleanBlob(redactor: Redactor, data: string | Uint8Array, media: string): Blob {
  if (typeof data === 'string') return textBlob(redactor.text(data), media)
  if (redactor.idle) return bytesBlob(data, media)
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  if (media.startsWith('text/') && bytes.length <= REDACTED_BYTES_MAX)
    return textBlob(redactor.text(bytes.toString()), media)
  const secret = redactor.inBytes(bytes)
  if (secret === null) return bytesBlob(data, media)
  return textBlob(
    `[this file (${media}, ${data.length} bytes) held the secret ${secret} and was not kept]`,
    'text/plain',
  )
}

export function refOf({ hash: hashed, media, data }: Blob): BlobRef {
  return { type: 'blob', hash: hashed, bytes: data.length, media }
}

/** A blob of text, read back; null when the store has none. */
export async function findText(store: Store, hashed: string): Promise<string | null> {
  const blob = await store.blob(hashed)
  return blob ? decoder.decode(blob.data) : null
}

const MISSING = '[this content is missing from the store]'

/** Content that lives beside the log is put back for the model: text as text, everything else as data. */
export function resolved(
  store: Store,
  messages: readonly Message[],
  placeOf: (message: Message) => number,
): Promise<readonly Message[]> {
  return Promise.all(
    joined(messages, placeOf).map(async (message): Promise<Message> => {
      if (message.role === 'tool') {
        const { content, parts } = message
        if (typeof content === 'string' && parts === undefined) return message
        const found = typeof content === 'string' ? content : ((await findText(store, content.hash)) ?? MISSING)
        const { fits } = message
        const text = fits && found.length > fits.chars ? bothEnds(found, fits.chars, fits.token) : found
        return { ...message, content: text, ...(parts ? { parts: await resolvedParts(store, parts) } : {}) }
      }
      if (!message.parts.some((part) => part.type === 'blob')) return message
      return { ...message, parts: await resolvedParts(store, message.parts) }
    }),
  )
}

/** Reports of children that one request shows for the first time are one message. */
function joined(messages: readonly Message[], placeOf: (message: Message) => number): readonly Message[] {
  const whole: Message[] = []
  let open = 0
  for (const message of messages) {
    const last = whole.at(-1)
    const place = message.role === 'user' && message.report !== undefined ? placeOf(message) : 0
    if (place > 0 && place === open && last?.role === 'user' && message.role === 'user')
      whole[whole.length - 1] = { ...last, parts: [...last.parts, ...message.parts] }
    else whole.push(message)
    open = place
  }
  return whole
}

function resolvedParts(store: Store, parts: readonly Part[]): Promise<readonly Part[]> {
  return Promise.all(parts.map((part) => (part.type === 'blob' ? resolvedPart(store, part) : Promise.resolve(part))))
}

/** A file of text is read as text, under its name. */
function titled(name: string | undefined, text: string): string {
  return name === undefined ? text : `<file name=${JSON.stringify(name)}>\n${text}\n</file>`
}

async function resolvedPart(store: Store, { hash: hashed, media, name }: BlobRef): Promise<Part> {
  const blob = await store.blob(hashed)
  if (!blob) return { type: 'text', text: MISSING }
  if (media.startsWith('text/')) return { type: 'text', text: titled(name, decoder.decode(blob.data)) }
  const data = Buffer.from(blob.data).toString('base64')
  return { type: 'data', media, data, ...(name === undefined ? {} : { name }) }
}
