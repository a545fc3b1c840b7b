// Rerun: plays a recorded session again in a new session of any harness. The model gives its recorded replies and
// people send their recorded input. Tools run again, return their recorded results, or are replaced by a stub. Children
// are created again and follow their own logs. There is no loop here: the harness drives.
import type { BlobRef, CallKey, ModelFailureClass, ProviderFailureClass } from '../kernel/content.ts'
import { callKey, type Event, type InboxBody, type InboxEvent } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Store } from '../ports/store.ts'
import type { CallContext, Model, ModelFailure, Reply } from '../ports/model.ts'
import type { RecordedModel } from '../runtime/state/recorded-model.ts'
import { listCheck, oneOf, optionsChecker, orFunction } from '../options.ts'
import { type OutputMetadata, ModelRetry, output, ToolFailure } from '../tools/core/tool-output.ts'
import { type Tool, toolCheck, type ToolContext } from '../tools/core/tool.ts'
import { isChildKey, isParentKey } from '../stores/plan/store-ids.ts'
import { compareRuns, isLoss, renameSessions, type Rerun } from './replay-compare.ts'
import { isInbox } from './replay-decide.ts'
import { readLog } from '../view/session-log.ts'
import { sleep } from '../runtime/state/sleep.ts'
import { readTextBlob } from '../runtime/state/content-blobs.ts'
import { CallLog } from '../view/call-log.ts'

type BlobReader = Pick<Store, 'blob'>
type RecordedResult = Extract<Event, { type: 'agent.tool_result' }>

/** Replaces every tool handler. `recorded` is the result in the log for this call, or null. */
export type Stub = (
  call: { readonly tool: string; readonly args: unknown; readonly recorded: RecordedResult | null },
  context: ToolContext,
) => unknown

/** Logs by the ids of their sessions. */
export type Logs = ReadonlyMap<string, readonly Event[]>

/** Options of a rerun: which tools are real, and where their results come from. */
export type RerunOptions = {
  /** The tools that run where the mode of the results is live. Recorded results need none. */
  readonly tools?: readonly Tool[]
  /**
   * The logs of the sessions below this one, as `readChildren` returns them. A session that started subagents needs
   * them.
   */
  readonly children?: Logs
  /**
   * `live`: tools run. `recorded`: tools return the result in the log, and an error if there is none. A function
   * replaces them.
   */
  readonly results?: 'live' | 'recorded' | Stub
}

const checkOptions = optionsChecker<RerunOptions>('recordingOf', {
  tools: listCheck(toolCheck),
  children: (value) => (value instanceof Map ? null : 'must be what readChildren gives'),
  results: orFunction(oneOf<'live' | 'recorded'>({ live: true, recorded: true })),
})

/** A new session of the harness that got the model and the tools. */
export type RerunSession = { readonly id: string; run(): Promise<unknown> }

/** A recorded session as something to run: its model answers as it did then, and its tools return what they did. */
export type Recording = {
  /** Gives the recorded replies, in their order. */
  readonly model: Model
  /** The tools of the recording, which return recorded results, run, or are replaced, as the options say. */
  readonly tools: readonly Tool[]
  /** Sends the recorded input of people in its order and at its places, and compares the result. Works once. */
  readonly run: (session: RerunSession, store: Store) => Promise<Rerun>
}

/** Give `model` and `tools` to a harness, with the subagents it had, open a session there, and `run` it. */
export function recordingOf(events: readonly Event[], options: RerunOptions = {}): Recording {
  checkOptions(options)
  const { tools = [], children = new Map(), results = 'recorded' } = options
  const tapes = new TreePlayback(events, children)
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

function handlerOf(tool: Tool, results: NonNullable<RerunOptions['results']>, tapes: TreePlayback): Tool['execute'] {
  return async (args, context) => {
    const tape = tapes.of(context.session)
    const recorded = tape?.result(tool.name, context.call) ?? null
    if (tape && recorded) await tapes.sendUpTo(tape, recorded)
    if (results === 'live') return tool.execute(args, context)
    return results === 'recorded'
      ? repeatResult(recorded, tape?.to?.store, context)
      : results({ tool: tool.name, args, recorded }, context)
  }
}

/** The recorded session is another one, so its texts are read directly from the store. */
export async function repeatResult(
  recorded: RecordedResult | null,
  store: BlobReader | undefined,
  context: ToolContext,
): Promise<unknown> {
  if (!recorded) throw new ToolFailure('NotFound', 'The recording has no result for this call.')
  const { content: stored, status, retryKind, failure, metadata, parts = [] } = recorded
  const content = typeof stored === 'string' ? stored : store && (await readTextBlob(store, stored.hash))
  if (content === null || content === undefined)
    throw new ToolFailure('NotFound', 'The recorded result of this call is not in this store.')
  const beside = isMetadata(metadata) ? metadata : {}
  if (retryKind !== undefined) throw new ModelRetry(content, beside)
  if (failure && failure.kind !== 'Failed' && status !== 'ok') throw new ToolFailure(failure.kind, content, beside)
  const files = await Promise.all(parts.map((part) => keepFileAgain(part, store, context)))
  return output({ ok: status === 'ok', content, metadata: beside, parts: files })
}

/** The session that repeats the call can show only files that it keeps itself. */
async function keepFileAgain(part: BlobRef, store: BlobReader | undefined, { keep }: ToolContext): Promise<BlobRef> {
  const blob = await store?.blob(part.hash)
  if (blob) keep(blob.data, part.media)
  return part
}

type LogMoment = { readonly seq: number; readonly at: number }
export type RecordedAnswer = LogMoment & { readonly said: Reply | ModelFailure | 'stopped' }

/** How long a call waits to be stopped if the log says it was stopped. */
export const STOPPED_MS = 1_000

/** The playback of the session, and those of the sessions below it by their present ids. */
class TreePlayback {
  /** The present ids of the children met so far, mapped to their recorded ids. */
  readonly names = new Map<string, string>()
  readonly #root: LogPlayback
  readonly #children: Logs
  readonly #tapes = new Map<string, LogPlayback>()
  #session: RerunSession | null = null

  constructor(events: readonly Event[], children: Logs) {
    this.#root = new LogPlayback(events, (event) => isChildKey(event.id))
    this.#children = children
    for (const tape of [this.#root, ...[...children].map(([id, log]) => new LogPlayback(log, isFromRelative, id))]) {
      const lost = tape.born.find((call) => !this.#logOf(tape, call))
      if (lost !== undefined)
        throw new Fault(
          'invalid_input',
          `Call ${lost} was a subagent's, and its log is missing. Give it as \`children\`.`,
        )
    }
  }

  async play(session: RerunSession, store: Store): Promise<void> {
    this.#session = session
    this.#root.to = { session: session.id, store }
    this.#tapes.set(session.id, this.#root)
    for (let tape: LogPlayback | undefined = this.#root; tape; tape = this.#next()) {
      await tape.sendNext()
      await session.run()
    }
  }

  /**
   * The playback whose next input is earliest. At the same moment a child goes before its parent, because the parent
   * waits for it.
   */
  #next(): LogPlayback | undefined {
    const waiting = [...this.#tapes.values()].reverse().filter(({ next }) => next !== undefined)
    return waiting.sort((a, b) => (a.next?.at ?? 0) - (b.next?.at ?? 0))[0]
  }

  async answer(session: string, context: CallContext): Promise<Reply | ModelFailure> {
    const tape = this.of(session)
    if (!tape) return failedRequest('This session is not the one that was recorded.')
    const answer = tape.take()
    if (!answer) return failedRequest(`The recording has ${tape.replies} replies and was asked for one more.`)
    const stopped = answer.said === 'stopped'
    await this.sendUpTo(tape, stopped ? { ...answer, at: answer.at + 1 } : answer)
    if (answer.said !== 'stopped')
      return renameSessions(answer.said, new Map([...this.names].map(([now, then]) => [then, now])))
    await sleep(context.clock, STOPPED_MS, context.signal)
    return failedRequest('In the recording this call was stopped.')
  }

  /** Null for a session that the recording does not contain. Before playing starts, only the root exists. */
  of(session: string): LogPlayback | null {
    const known = this.#root.to === null ? this.#root : this.#tapes.get(session)
    if (known) return known
    const at = session.lastIndexOf('~')
    const parent = at < 0 ? null : this.of(session.slice(0, at))
    const [id, log] = (parent && this.#logOf(parent, parent.recorded(session.slice(at + 1)))) ?? []
    if (!parent?.to || id === undefined || !log) return null
    const tape = new LogPlayback(log, isFromRelative, id)
    tape.to = { session, store: parent.to.store }
    this.#tapes.set(session, tape)
    this.names.set(session, id)
    return tape
  }

  /** Sends what people had sent by that time, to this session and to the others. */
  async sendUpTo(tape: LogPlayback, { seq, at }: LogMoment): Promise<void> {
    await tape.sendUpTo((event) => event.seq < seq)
    for (const other of this.#tapes.values()) {
      if (other === tape || (other.next?.at ?? at) >= at) continue
      await other.sendUpTo((event) => event.at < at)
      // The session may rest until a child has answered, so it must be looked at.
      this.#session?.run().catch(() => {})
    }
  }

  #logOf(parent: LogPlayback, call: CallKey): readonly [string, readonly Event[]] | undefined {
    return [...this.#children].find(([, [created]]) => {
      if (created?.type !== 'session.created' || created.parent?.call !== call) return false
      const { session } = created.parent
      return parent.id === null ? !this.#children.has(session) : session === parent.id
    })
  }
}

/** Messages from parents and children arrive by themselves and are not replayed. */
function isFromRelative(event: InboxEvent): boolean {
  if (event.type === 'user.interrupt') return isParentKey(event.id)
  return event.by?.startsWith('session:') === true
}

/** The position of the rerun in one log: the next reply, and the input that is not sent yet. */
class LogPlayback {
  /** The recorded id; null for the root session, whose log does not contain it. */
  readonly id: string | null
  to: { readonly session: string; readonly store: Store } | null = null
  readonly #events: readonly Event[]
  readonly #answers: readonly RecordedAnswer[]
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

  /** The calls that created a child. */
  get born(): readonly CallKey[] {
    return this.#calls.all.flatMap(({ key, proposal, intent }) => {
      const { child, answers } = outsideOf(proposal) ?? {}
      return intent?.type === 'agent.custom_tool_use' && child !== undefined && !answers ? [key] : []
    })
  }

  /** The next input of a person. */
  get next(): InboxEvent | undefined {
    return this.#inbox[this.#sent]
  }

  take(): RecordedAnswer | undefined {
    this.#taken += 1
    return this.#answers[this.#taken - 1]
  }

  /** Maps the key of a call that runs now, one of the last reply, to its key in the log. */
  recorded(key: CallKey): CallKey {
    return callKey(this.#answers[this.#taken - 1]?.seq ?? 0, Number(key.slice(key.indexOf('.') + 1)))
  }

  result(tool: string, key: CallKey): RecordedResult | null {
    const call = this.#calls.at(this.recorded(key))
    return call?.proposal.tool === tool ? call.result : null
  }

  /** Sends the input that people sent together, before the owner reacted to it. */
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

  /** A call is named by its position in the log, which may differ now. */
  async #readdressed(event: InboxEvent, session: string, store: Store): Promise<InboxBody> {
    const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = event
    if (!('call' in body)) return body
    const [old, index] = body.call.split('.').map(Number) as [number, number]
    const turn = this.#events.filter((e) => e.type === 'agent.message' && e.seq <= old).length
    const now = (await readLog(store, session)).filter((e) => e.type === 'agent.message')[turn - 1]
    return { ...body, call: now ? callKey(now.seq, index) : body.call }
  }
}

export function answersIn(events: readonly Event[]): readonly RecordedAnswer[] {
  return events.flatMap((event): readonly RecordedAnswer[] => {
    const { seq, at } = event
    if (event.type === 'agent.message') return [{ seq, at, said: replyOf(event) }]
    if (event.type !== 'model.failed' || isLoss(event, events)) return []
    const { class: kind, message, retryable, partial, unasked } = event
    if (!isProviderClass(kind)) return [{ seq, at, said: 'stopped' }]
    const failure = { type: 'failure', class: kind, message, retryable, ...(unasked ? { unasked } : {}) } as const
    return [{ seq, at, said: partial === undefined ? failure : { ...failure, partial } }]
  })
}

function isProviderClass(kind: ModelFailureClass): kind is ProviderFailureClass {
  return kind !== 'lost' && kind !== 'superseded' && kind !== 'interrupted'
}

function replyOf(event: Extract<Event, { type: 'agent.message' }>): Reply {
  const { parts, calls, verdict, usage, cost, route, fallback_from } = event
  const asked = calls.map(({ id, tool, args, raw, text }) => {
    const call = { id, tool, args: raw ?? JSON.stringify(args) }
    return text === undefined ? call : { ...call, text }
  })
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

function failedRequest(message: string): ModelFailure {
  return { type: 'failure', class: 'bad_request', message, retryable: false }
}

function isMetadata(value: unknown): value is OutputMetadata {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
