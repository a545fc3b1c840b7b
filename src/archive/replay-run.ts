// Rerun: a recorded session once more, in a new session of any harness. The model answers what it answered, the people say what
// they said; the tools work again, give what they gave, or are stood in for. Its children are made again and go by their own logs.
// There is no loop here: the harness drives.
import type { BlobRef, CallKey, ModelFailureClass, ProviderFailureClass } from '../kernel/content.ts'
import { callKey, type Event, type InboxBody, type InboxEvent } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Store } from '../ports/store.ts'
import type { CallContext, Model, ModelFailure, Reply } from '../ports/model.ts'
import type { RecordedModel } from '../sessions/recorded-model.ts'
import { listOf, oneOf, optionsOf, orFunction } from '../options.ts'
import { type Metadata, ModelRetry, output, ToolFailure } from '../tools/core/output.ts'
import { type Tool, toolCheck, type ToolContext } from '../tools/core/tool.ts'
import { isChildKey, isParentKey } from '../stores/plan/id.ts'
import { compareRuns, isLoss, renamed, type Rerun } from './replay-compare.ts'
import { isInbox } from './replay-decide.ts'
import { readLog } from './replay.ts'
import { sleep } from '../engine/sleep.ts'
import { findText } from '../engine/wiring.ts'
import { CallLog } from '../view/calls.ts'

type Result = Extract<Event, { type: 'agent.tool_result' }>

/** Stands in for every handler. `recorded` is what the log has for this call, if anything. */
export type Stub = (
  call: { readonly tool: string; readonly args: unknown; readonly recorded: Result | null },
  context: ToolContext,
) => unknown

/** Logs by the ids of their sessions. */
export type Logs = ReadonlyMap<string, readonly Event[]>

export type RerunOptions = {
  readonly tools?: readonly Tool[]
  /** The logs of the sessions below it, as `readChildren` gives them. A session that started subagents needs them. */
  readonly children?: Logs
  /** `live`: they run. `recorded`: what the log says they gave, and an error for what it does not have. Or a stand-in. */
  readonly results?: 'live' | 'recorded' | Stub
}

const checkOptions = optionsOf<RerunOptions>('recordingOf', {
  tools: listOf(toolCheck),
  children: (value) => (value instanceof Map ? null : 'must be what readChildren gives'),
  results: orFunction(oneOf<'live' | 'recorded'>({ live: true, recorded: true })),
})

/** A new session of the harness that was given the model and the tools. */
export type Fresh = { readonly id: string; run(): Promise<unknown> }

export type Recording = {
  readonly model: Model
  readonly tools: readonly Tool[]
  /** Sends what the log's people sent, in its order and at its places, and compares what came of it. Once. */
  readonly run: (session: Fresh, store: Store) => Promise<Rerun>
}

/** Hand `model` and `tools` to a harness, with the subagents that it had, open a session there, and `run` it. */
export function recordingOf(events: readonly Event[], options: RerunOptions = {}): Recording {
  checkOptions(options)
  const { tools = [], children = new Map(), results = 'recorded' } = options
  const tapes = new Tapes(events, children)
  const standInFor = (tool: Tool): Tool => ({ ...tool, execute: handlerOf(tool, results, tapes) })
  const model: RecordedModel = {
    name: 'recorded',
    call: (request, context) => tapes.answer(request.session, context),
    standInFor,
    repeatsResults: results === 'recorded',
  }
  return {
    model,
    tools: tools.map((tool) => (tool.outside ? tool : standInFor(tool))),
    run: async (session, store) => {
      await tapes.play(session, store)
      return compareRuns(events, await readLog(store, session.id), tapes.names)
    },
  }
}

function handlerOf(tool: Tool, results: NonNullable<RerunOptions['results']>, tapes: Tapes): Tool['execute'] {
  return async (args, context) => {
    const tape = tapes.of(context.session)
    const recorded = tape?.result(tool.name, context.call) ?? null
    if (tape && recorded) await tapes.sendUpTo(tape, recorded)
    if (results === 'live') return tool.execute(args, context)
    return results === 'recorded'
      ? repeated(recorded, tape?.to?.store, context)
      : results({ tool: tool.name, args, recorded }, context)
  }
}

/** The session that was recorded is another one: its texts are read from the store itself. */
async function repeated(recorded: Result | null, store: Store | undefined, context: ToolContext): Promise<unknown> {
  if (!recorded) throw new ToolFailure('NotFound', 'The recording has no result for this call.')
  const { content: stored, status, retryKind, failure, metadata, parts = [] } = recorded
  const content = typeof stored === 'string' ? stored : store && (await findText(store, stored.hash))
  if (content === null || content === undefined)
    throw new ToolFailure('NotFound', 'The recorded result of this call is not in this store.')
  const beside = isMetadata(metadata) ? metadata : {}
  if (retryKind !== undefined) throw new ModelRetry(content, beside)
  if (failure && failure.kind !== 'Failed' && status !== 'ok') throw new ToolFailure(failure.kind, content, beside)
  const files = await Promise.all(parts.map((part) => keptAgain(part, store, context)))
  return output({ ok: status === 'ok', content, metadata: beside, parts: files })
}

/** The session that repeats the call shows only files that it keeps itself. */
async function keptAgain(part: BlobRef, store: Store | undefined, { keep }: ToolContext): Promise<BlobRef> {
  const blob = await store?.blob(part.hash)
  if (blob) keep(blob.data, part.media)
  return part
}

type Moment = { readonly seq: number; readonly at: number }
type Answer = Moment & { readonly said: Reply | ModelFailure | 'stopped' }

/** How long a call that was stopped in the log waits to be stopped again. */
const STOPPED_MS = 1_000

/** The tape of the session, and those of the sessions below it by the names that these have now. */
class Tapes {
  /** What the children that were met are called now, and were called then. */
  readonly names = new Map<string, string>()
  readonly #root: Tape
  readonly #children: Logs
  readonly #tapes = new Map<string, Tape>()
  #session: Fresh | null = null

  constructor(events: readonly Event[], children: Logs) {
    this.#root = new Tape(events, (event) => isChildKey(event.id))
    this.#children = children
    for (const tape of [this.#root, ...[...children].map(([id, log]) => new Tape(log, isFamily, id))]) {
      const lost = tape.born.find((call) => !this.#logOf(tape, call))
      if (lost !== undefined)
        throw new Fault(
          'invalid_input',
          `Call ${lost} was a subagent's, and its log is missing. Give it as \`children\`.`,
        )
    }
  }

  async play(session: Fresh, store: Store): Promise<void> {
    this.#session = session
    this.#root.to = { session: session.id, store }
    this.#tapes.set(session.id, this.#root)
    for (let tape: Tape | undefined = this.#root; tape; tape = this.#next()) {
      await tape.sendNext()
      await session.run()
    }
  }

  /** The tape with the earliest reply that was not given yet. At the same moment the child goes first: its parent waits for it. */
  #next(): Tape | undefined {
    const waiting = [...this.#tapes.values()].reverse().filter(({ next }) => next !== undefined)
    return waiting.sort((a, b) => (a.next?.at ?? 0) - (b.next?.at ?? 0))[0]
  }

  async answer(session: string, context: CallContext): Promise<Reply | ModelFailure> {
    const tape = this.of(session)
    if (!tape) return refusal('This session is not the one that was recorded.')
    const answer = tape.take()
    if (!answer) return refusal(`The recording has ${tape.replies} replies and was asked for one more.`)
    const stopped = answer.said === 'stopped'
    await this.sendUpTo(tape, stopped ? { ...answer, at: answer.at + 1 } : answer)
    if (answer.said !== 'stopped')
      return renamed(answer.said, new Map([...this.names].map(([now, then]) => [then, now])))
    await sleep(context.clock, STOPPED_MS, context.signal)
    return refusal('In the recording this call was stopped.')
  }

  /** Null for a session that the recording knows nothing of. Before it is played there is only the one. */
  of(session: string): Tape | null {
    const known = this.#root.to === null ? this.#root : this.#tapes.get(session)
    if (known) return known
    const at = session.lastIndexOf('~')
    const parent = at < 0 ? null : this.of(session.slice(0, at))
    const [id, log] = (parent && this.#logOf(parent, parent.recorded(session.slice(at + 1)))) ?? []
    if (!parent?.to || id === undefined || !log) return null
    const tape = new Tape(log, isFamily, id)
    tape.to = { session, store: parent.to.store }
    this.#tapes.set(session, tape)
    this.names.set(session, id)
    return tape
  }

  /** What people had said by then, to this session and to the others. */
  async sendUpTo(tape: Tape, { seq, at }: Moment): Promise<void> {
    await tape.sendUpTo((event) => event.seq < seq)
    for (const other of this.#tapes.values()) {
      if (other === tape || (other.next?.at ?? at) >= at) continue
      await other.sendUpTo((event) => event.at < at)
      // It may rest until a child has answered: it must be looked at.
      this.#session?.run().catch(() => {})
    }
  }

  #logOf(parent: Tape, call: CallKey): readonly [string, readonly Event[]] | undefined {
    return [...this.#children].find(([, [created]]) => {
      if (created?.type !== 'session.created' || created.parent?.call !== call) return false
      const { session } = created.parent
      return parent.id === null ? !this.#children.has(session) : session === parent.id
    })
  }
}

/** What a session hears from its family comes by itself. */
function isFamily(event: InboxEvent): boolean {
  if (event.type === 'user.interrupt') return isParentKey(event.id)
  return event.by?.startsWith('session:') === true
}

/** Where the rerun stands in one log: which reply is next, and what the people have not sent yet. */
class Tape {
  /** What it was called; null for the session itself, whose log does not say. */
  readonly id: string | null
  to: { readonly session: string; readonly store: Store } | null = null
  readonly #events: readonly Event[]
  readonly #answers: readonly Answer[]
  readonly #inbox: readonly InboxEvent[]
  readonly #calls = new CallLog()
  #taken = 0
  #sent = 0

  constructor(events: readonly Event[], byItself: (event: InboxEvent) => boolean, id: string | null = null) {
    this.id = id
    this.#events = events
    this.#answers = answersIn(events)
    this.#inbox = events.filter(isInbox).filter((event) => !byItself(event))
    for (const event of events) this.#calls.take(event)
  }

  get replies(): number {
    return this.#answers.length
  }

  /** The calls that made a child. */
  get born(): readonly CallKey[] {
    return this.#calls.all.flatMap(({ key, proposal, intent }) => {
      const { child, answers } = outsideOf(proposal) ?? {}
      return intent?.type === 'agent.custom_tool_use' && child !== undefined && !answers ? [key] : []
    })
  }

  /** What people say next. */
  get next(): InboxEvent | undefined {
    return this.#inbox[this.#sent]
  }

  take(): Answer | undefined {
    this.#taken += 1
    return this.#answers[this.#taken - 1]
  }

  /** How the log calls a call that runs now: one of the last reply. */
  recorded(key: CallKey): CallKey {
    return callKey(this.#answers[this.#taken - 1]?.seq ?? 0, Number(key.slice(key.indexOf('.') + 1)))
  }

  result(tool: string, key: CallKey): Result | null {
    const call = this.#calls.at(this.recorded(key))
    return call?.proposal.tool === tool ? call.result : null
  }

  /** What people said together, before anything came of it. */
  async sendNext(): Promise<void> {
    const first = this.next?.seq ?? Number.POSITIVE_INFINITY
    const after = this.#events.find((event) => event.seq > first && !isInbox(event))?.seq ?? Number.POSITIVE_INFINITY
    await this.sendUpTo((event) => event.seq < after)
  }

  async sendUpTo(isDue: (event: InboxEvent) => boolean): Promise<void> {
    for (let event = this.next; event && isDue(event); event = this.next) {
      if (!this.to) return
      this.#sent += 1
      const { session, store } = this.to
      const body = await this.#readdressed(event, session, store)
      await store.commit([{ session, lane: 'inbox', events: [body] }])
    }
  }

  /** Calls are named by their place in the log, and that may be another one now. */
  async #readdressed(event: InboxEvent, session: string, store: Store): Promise<InboxBody> {
    const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = event
    if (!('call' in body)) return body
    const [old, index] = body.call.split('.').map(Number) as [number, number]
    const turn = this.#events.filter((e) => e.type === 'agent.message' && e.seq <= old).length
    const now = (await readLog(store, session)).filter((e) => e.type === 'agent.message')[turn - 1]
    return { ...body, call: now ? callKey(now.seq, index) : body.call }
  }
}

function answersIn(events: readonly Event[]): readonly Answer[] {
  return events.flatMap((event): readonly Answer[] => {
    const { seq, at } = event
    if (event.type === 'agent.message') return [{ seq, at, said: replyOf(event) }]
    if (event.type !== 'model.failed' || isLoss(event, events)) return []
    const { class: kind, message, retryable, partial, unasked } = event
    if (!isProviders(kind)) return [{ seq, at, said: 'stopped' }]
    const failure = { type: 'failure', class: kind, message, retryable, ...(unasked ? { unasked } : {}) } as const
    return [{ seq, at, said: partial === undefined ? failure : { ...failure, partial } }]
  })
}

function isProviders(kind: ModelFailureClass): kind is ProviderFailureClass {
  return kind !== 'lost' && kind !== 'superseded' && kind !== 'interrupted'
}

function replyOf(event: Extract<Event, { type: 'agent.message' }>): Reply {
  const { parts, calls, verdict, usage, cost, route, fallback_from } = event
  const asked = calls.map(({ id, tool, args, raw }) => ({ id, tool, args: raw ?? JSON.stringify(args) }))
  const ran = verdict.type === 'empty' && verdict.boost ? 'length' : 'stop'
  return {
    type: 'reply',
    parts,
    calls: asked,
    finish: event.finish ?? (asked.length > 0 ? 'calls' : ran),
    usage: usage ?? null,
    cost: cost ?? 0,
    ...(route === undefined ? {} : { route }),
    ...(fallback_from === undefined ? {} : { fallback_from }),
  }
}

function refusal(message: string): ModelFailure {
  return { type: 'failure', class: 'bad_request', message, retryable: false }
}

function isMetadata(value: unknown): value is Metadata {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
