// Observes runs: for hooks that may only watch, for the tracer and for counts. It is a consumer of the log: it is called
// after the commit, at most once, and nothing it does changes a run.
import type { Event, OwnerEvent } from '../../kernel/event.ts'
import { open, type OpenSession, take } from '../../kernel/fold.ts'
import type { Waiting } from '../../kernel/next.ts'
import type { CompleteStore } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { EMPTY } from '../../kernel/session.ts'
import { isChildKey } from '../../stores/plan/store-ids.ts'
import type { Hooks } from './hooks.ts'
import { isLaneAgent } from '../../view/lanes.ts'
import { inputText } from '../../view/session-history.ts'
import type { CallRecord } from '../state/run-result.ts'
import { sleep } from '../state/sleep.ts'
import type { CommitCounter, CommitListener, RunIdentity, RunSeqs } from '../state/runtime-ports.ts'
import { readSessionHead } from '../state/session-tree.ts'
import { readRunRecord, type RunRecord } from './settled-run.ts'

export type RunTracer = {
  /** Model requests carry the trace on. */
  readonly propagate?: boolean
  /** A part of an open run has ended. This must not wait. */
  progressed?(session: string, run: number): void
  /** A run settled. This must not wait. */
  settled(session: string, run: number): void
  close(): Promise<void>
}

export type ObserverOptions = {
  readonly store: CompleteStore
  readonly clock: Clock
  readonly hooks: Hooks | null
  readonly tracer: RunTracer | null
  readonly report: (error: unknown) => void
}

/** Each of these events ends a span. */
const SPAN_ENDS: ReadonlySet<Event['type']> = new Set(['agent.message', 'model.failed', 'agent.tool_result'])
/** How long closing a harness waits for background work. */
const CLOSE_MS = 30_000

export class Observer implements CommitListener {
  readonly #options: ObserverOptions
  /** The deliveries of each session, in order. */
  readonly #telling = new Map<string, Promise<void>>()
  readonly #after = new Set<Promise<void>>()
  readonly #counters = new Set<CommitCounter>()

  constructor(options: ObserverOptions) {
    this.#options = options
  }

  committed(session: string, agent: string, { began, ended }: RunSeqs, events: readonly OwnerEvent[]): void {
    for (const count of this.#counters) count(session, agent, events)
    const { hooks, tracer } = this.#options
    if ((!hooks && !tracer) || isLaneAgent(agent)) return
    if (tracer && events.some(({ type }) => SPAN_ENDS.has(type))) tracer.progressed?.(session, began)
    for (const event of events) {
      if (event.type === 'run.settled')
        this.#line(session, () => this.#ended({ session, agent, began: ended ?? event.seq, event }))
      else if (event.type === 'agent.tool_result' && event.from !== undefined)
        this.#line(session, () => this.#returned(session, agent, event))
    }
  }

  rested(session: string, waiting: Waiting): void {
    const { store, hooks } = this.#options
    if (!hooks?.some('session_rest')) return
    this.#line(session, async () => {
      const { agent, metadata = {} } = await readSessionHead(store, session)
      await hooks.tell('session_rest', { session, agent, metadata, waiting })
    })
  }

  async awaitDelivery(session: string): Promise<void> {
    await this.#telling.get(session)
  }

  count(counter: CommitCounter): () => void {
    this.#counters.add(counter)
    return () => void this.#counters.delete(counter)
  }

  async close(): Promise<void> {
    const { clock, report, tracer } = this.#options
    await Promise.allSettled(this.#telling.values())
    const done = new AbortController()
    await Promise.race([Promise.allSettled(this.#after), sleep(clock, CLOSE_MS, done.signal)])
    done.abort()
    if (this.#after.size > 0) report(new Error(`${this.#after.size} post_run hooks did not return in ${CLOSE_MS} ms.`))
    await tracer?.close()
  }

  #line(session: string, tell: () => Promise<void>): void {
    const line = (this.#telling.get(session) ?? Promise.resolve()).then(tell).catch(this.#options.report)
    this.#telling.set(session, line)
    void line.then(() => {
      if (this.#telling.get(session) === line) this.#telling.delete(session)
    })
  }

  async #ended({ session, agent, began, event }: RunToReport): Promise<void> {
    const { store, hooks, tracer } = this.#options
    tracer?.settled(session, began)
    if (!hooks) return
    const retries = new RetryCounter(began)
    const run = await readRunRecord(store, { session, from: began, end: event }, (each) => {
      if (each.seq >= began) retries.take(each)
    })
    const at = { session, agent, metadata: run.result.metadata }
    const reached = findReachedLimit(run, retries.exhausted)
    if (reached) await hooks.tell('limit_reached', { ...at, ...reached })
    await hooks.tell('run_end', { ...at, result: run.result })
    if (!hooks.has('post_run', agent)) return
    const after = this.#tellAfter(at, run, event.at - run.beganAt).catch(this.#options.report)
    this.#after.add(after)
    void after.then(() => this.#after.delete(after))
  }

  async #tellAfter(at: RunIdentity, run: RunRecord, durationMs: number): Promise<void> {
    const { store, hooks } = this.#options
    const prompt = await inputText(store, at.session, run.inputs)
    const { result } = run
    await hooks?.tell('post_run', { ...at, prompt, result, tools: result.calls.map(callLine), durationMs })
  }

  async #returned(session: string, agent: string, event: Extract<Event, { type: 'agent.tool_result' }>): Promise<void> {
    const { store, hooks } = this.#options
    if (!hooks?.some('after_subagent_run') || event.from === undefined) return
    const [answer] = (await store.read(session, event.from - 1, 1)).events
    if (answer?.type !== 'user.custom_tool_result' || !isChildKey(answer.id)) return
    const said = (answer.metadata ?? {}) as { readonly agent?: string }
    const output = { ok: answer.ok, content: answer.content, metadata: { ...said } }
    const { run } = await readSessionHead(store, session)
    const at = { session, agent, metadata: run?.metadata ?? {} }
    await hooks.tell('after_subagent_run', { ...at, call: event.call, child: said.agent ?? '', output })
  }
}

type RunToReport = {
  readonly session: string
  readonly agent: string
  readonly began: number
  readonly event: Extract<Event, { type: 'run.settled' }>
}

/** How the call ended, and nothing of its content. */
function callLine({ tool, status, chars, failure }: CallRecord): string {
  return `${tool}: ${status === 'ok' ? `ok (${chars} chars)` : `failed (${failure?.class ?? status ?? 'open'})`}`
}

type LimitReached = { readonly limit: string; readonly value: number | null; readonly count: number }

/** Counts which tool used up its retries, as the kernel does. A tool's own number of retries comes before the run's. */
class RetryCounter {
  readonly #session: OpenSession
  readonly #own = new Map<string, number | undefined>()

  constructor(from: number) {
    this.#session = open({ ...EMPTY, seq: from - 1 })
  }

  take(event: Event): void {
    if (event.type === 'run.settled') return
    if (event.type === 'agent.message') for (const { tool, retries } of event.calls) this.#own.set(tool, retries)
    take(this.#session, event)
  }

  get exhausted(): LimitReached | null {
    const { exhausted = null, toolRetries = {}, limits = null } = this.#session.run ?? {}
    if (exhausted === null) return null
    const value = this.#own.get(exhausted) ?? limits?.toolRetries ?? 0
    return { limit: 'tool_retries', value, count: toolRetries[exhausted] ?? 0 }
  }
}

function findReachedLimit({ result, limits }: RunRecord, exhausted: LimitReached | null): LimitReached | null {
  const usage = result.ownUsage
  if (result.status === 'failed' && result.stopReason === 'tool_retries_exceeded') return exhausted
  if (result.status !== 'limit') return null
  const { limit } = result
  switch (limit) {
    case 'model_requests':
      return { limit, value: limits?.modelRequests ?? null, count: usage.modelRequests }
    case 'tool_calls':
      return { limit, value: limits?.toolCalls ?? null, count: usage.toolCalls }
    case 'active_ms':
      return { limit, value: limits?.activeMs ?? null, count: limits?.activeMs ?? 0 }
    case 'tokens':
      return { limit, value: limits?.tokens ?? null, count: usage.inputTokens + usage.outputTokens }
    case 'context':
      return { limit, value: null, count: result.context?.tokens ?? 0 }
    case 'usd':
      return { limit, value: null, count: result.cost.micros }
  }
}
