// Rerun: a recorded session once more, in a new session of any harness. The model answers what it answered, the people say what
// they said; the tools work again, give what they gave, or are stood in for. There is no loop here: the harness drives.
import type { CallKey, ModelFailureClass, ProviderFailureClass } from '../kernel/content.ts'
import { callKey, type Event, type InboxBody, type InboxEvent } from '../kernel/event.ts'
import type { CallContext, Model, ModelFailure, Reply, Store } from '../kernel/ports.ts'
import { type Metadata, ModelRetry, output, ToolFailure } from '../tools/output.ts'
import type { Tool, ToolContext } from '../tools/tool.ts'
import { compareRuns, isLoss, type Rerun } from './replay-compare.ts'
import { isInbox } from './replay-decide.ts'
import { readLog } from './replay.ts'
import { sleep } from './sleep.ts'

type Result = Extract<Event, { type: 'agent.tool_result' }>

/** Stands in for every handler. `recorded` is what the log has for this call, if anything. */
export type Stub = (
  call: { readonly tool: string; readonly args: unknown; readonly recorded: Result | null },
  context: ToolContext,
) => unknown

export type RerunOptions = {
  readonly tools?: readonly Tool[]
  /** `live`: they run. `recorded`: what the log says they gave, and an error for what it does not have. Or a stand-in. */
  readonly results?: 'live' | 'recorded' | Stub
}

/** A new session of the harness that was given the model and the tools. */
export type Fresh = { readonly id: string; run(): Promise<unknown> }

export type Recording = {
  readonly model: Model
  readonly tools: readonly Tool[]
  /** Sends what the log's people sent, in its order and at its places, and compares what came of it. Once. */
  readonly run: (session: Fresh, store: Store) => Promise<Rerun>
}

/** Hand `model` and `tools` to a harness, open a session there, and `run` it. */
export function recordingOf(events: readonly Event[], options: RerunOptions = {}): Recording {
  const { tools = [], results = 'recorded' } = options
  const tape = new Tape(events)
  return {
    model: { name: 'recorded', call: (request, context) => tape.answer(request.session, context) },
    tools: tools.map((tool) => (tool.outside ? tool : { ...tool, execute: handlerOf(tool, results, tape) })),
    run: async (session, store) => {
      await tape.play(session, store)
      return compareRuns(events, await readLog(store, session.id))
    },
  }
}

function handlerOf(tool: Tool, results: NonNullable<RerunOptions['results']>, tape: Tape): Tool['execute'] {
  return async (args, context) => {
    const recorded = tape.result(tool.name, context.call)
    if (recorded) await tape.sendUpTo(recorded.seq)
    if (results === 'live') return tool.execute(args, context)
    return results === 'recorded' ? repeated(recorded, context) : results({ tool: tool.name, args, recorded }, context)
  }
}

async function repeated(recorded: Result | null, context: ToolContext): Promise<unknown> {
  if (!recorded) throw new ToolFailure('NotFound', 'The recording has no result for this call.')
  const { content: stored, status, retryKind, metadata } = recorded
  const content = typeof stored === 'string' ? stored : await context.recall(stored.hash)
  if (content === null) throw new ToolFailure('NotFound', 'The recorded result of this call is not in this store.')
  const beside = isMetadata(metadata) ? metadata : {}
  if (retryKind !== undefined) throw new ModelRetry(content, beside)
  return output({ ok: status === 'ok', content, metadata: beside })
}

type Answer = { readonly seq: number; readonly said: Reply | ModelFailure | 'stopped' }

/** How long a call that was stopped in the log waits to be stopped again. */
const STOPPED_MS = 1_000

/** Where the rerun stands in the log: which reply is next, and what the people have not sent yet. */
class Tape {
  readonly #events: readonly Event[]
  readonly #answers: readonly Answer[]
  readonly #inbox: readonly InboxEvent[]
  readonly #results: ReadonlyMap<CallKey, Result>
  readonly #tools: ReadonlyMap<CallKey, string>
  #taken = 0
  #sent = 0
  #to: { readonly session: string; readonly store: Store } | null = null

  constructor(events: readonly Event[]) {
    this.#events = events
    this.#answers = answersIn(events)
    this.#inbox = events.filter(isInbox)
    this.#results = new Map(events.flatMap((e) => (e.type === 'agent.tool_result' ? [[e.call, e] as const] : [])))
    this.#tools = new Map(
      events.flatMap((e) =>
        e.type === 'agent.message' ? e.calls.map(({ tool }, i) => [callKey(e.seq, i), tool] as const) : [],
      ),
    )
  }

  async play(session: Fresh, store: Store): Promise<void> {
    this.#to = { session: session.id, store }
    do {
      const first = this.#inbox[this.#sent]?.seq ?? Number.POSITIVE_INFINITY
      await this.sendUpTo(this.#events.find((event) => event.seq > first && !isInbox(event))?.seq)
      await session.run()
    } while (this.#sent < this.#inbox.length)
  }

  async answer(session: string, context: CallContext): Promise<Reply | ModelFailure> {
    if (this.#to && this.#to.session !== session) return refusal('This session is not the one that was recorded.')
    const answer = this.#answers[this.#taken]
    this.#taken += 1
    if (!answer) return refusal(`The recording has ${this.#answers.length} replies and was asked for one more.`)
    await this.sendUpTo(answer.seq)
    if (answer.said !== 'stopped') return answer.said
    await sleep(context.clock, STOPPED_MS, context.signal)
    return refusal('In the recording this call was stopped.')
  }

  /** The calls that run now are those of the last reply. */
  result(tool: string, key: CallKey): Result | null {
    const index = Number(key.slice(key.indexOf('.') + 1))
    const old = callKey(this.#answers[this.#taken - 1]?.seq ?? 0, index)
    return this.#tools.get(old) === tool ? (this.#results.get(old) ?? null) : null
  }

  /** Everything that came before this event of the log and was not sent yet. */
  async sendUpTo(seq = Number.POSITIVE_INFINITY): Promise<void> {
    for (let event = this.#inbox[this.#sent]; event && event.seq < seq; event = this.#inbox[this.#sent]) {
      if (!this.#to) return
      this.#sent += 1
      const { session, store } = this.#to
      const body = await this.#readdressed(event, session, store)
      await store.commit([{ session, lane: 'inbox', events: [body] }])
    }
  }

  /** Calls are named by their place in the log, and that may be another one now. */
  async #readdressed(event: InboxEvent, session: string, store: Store): Promise<InboxBody> {
    const { seq: _seq, at: _at, epoch: _epoch, ...body } = event
    if (!('call' in body)) return body
    const [old, index] = body.call.split('.').map(Number) as [number, number]
    const turn = this.#events.filter((e) => e.type === 'agent.message' && e.seq <= old).length
    const now = (await readLog(store, session)).filter((e) => e.type === 'agent.message')[turn - 1]
    return { ...body, call: now ? callKey(now.seq, index) : body.call }
  }
}

function answersIn(events: readonly Event[]): readonly Answer[] {
  return events.flatMap((event): readonly Answer[] => {
    if (event.type === 'agent.message') return [{ seq: event.seq, said: replyOf(event) }]
    if (event.type !== 'model.failed' || isLoss(event, events)) return []
    const { seq, class: kind, message, retryable, partial } = event
    if (!isProviders(kind)) return [{ seq, said: 'stopped' }]
    const failure = { type: 'failure', class: kind, message, retryable } as const
    return [{ seq, said: partial === undefined ? failure : { ...failure, partial } }]
  })
}

function isProviders(kind: ModelFailureClass): kind is ProviderFailureClass {
  return kind !== 'lost' && kind !== 'superseded' && kind !== 'interrupted'
}

function replyOf({ parts, calls, verdict, usage, cost, route }: Extract<Event, { type: 'agent.message' }>): Reply {
  const asked = calls.map(({ id, tool, args, raw }) => ({ id, tool, args: raw ?? JSON.stringify(args) }))
  const ran = verdict.type === 'empty' && verdict.boost ? 'length' : 'stop'
  return {
    type: 'reply',
    parts,
    calls: asked,
    finish: asked.length > 0 ? 'calls' : ran,
    usage: usage ?? null,
    ...(cost === undefined ? {} : { cost }),
    ...(route === undefined ? {} : { route }),
  }
}

function refusal(message: string): ModelFailure {
  return { type: 'failure', class: 'bad_request', message, retryable: false }
}

function isMetadata(value: unknown): value is Metadata {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
