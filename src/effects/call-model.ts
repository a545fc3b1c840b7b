// The second effect: ask the model, and admit what it says. Its reply, the verdict on it and the terms of its calls land as one event.
import { eventId } from '../view/text.ts'
import type { Allow, Json, Proposal, Verdict } from '../kernel/content.ts'
import { assert } from '../kernel/failure.ts'
import type { Transcript } from '../kernel/transcript.ts'
import type { Effect } from '../kernel/next.ts'
import type { Charge } from '../ports/store.ts'
import type { ModelFailure, Reply, Request } from '../ports/model.ts'
import { project } from './request.ts'
import { readAnswer } from '../models/answer.ts'
import { isPriced, type Priced } from '../models/http/hosted.ts'
import { FINAL_RESULT, judgeOutput } from '../models/output.ts'
import { admit, type Asking } from '../tools/core/admit.ts'
import { CHECK_LATE, checkedInTime } from '../tools/core/check-time.ts'
import { hourAccounts, hourCharges, withinBudget } from '../tools/core/budget.ts'
import { isPassing } from '../engine/backoff.ts'
import type { FlightContext, Landing } from '../engine/flights.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { type Agent, agentFor, resolved, type Services } from '../engine/wiring.ts'
import { rootAgentOf } from '../riders/children/tree.ts'
import type { Window } from '../riders/guard/guard.ts'
import type { Allowances } from '../riders/money/allowance.ts'
import { charsIn, costed, soundly } from '../riders/money/usage-estimate.ts'
import { type Admitting, admitted, type Settled } from './admit-reply.ts'
import { RETRIEVE } from '../context/juice/marker.ts'
import { lengthIn } from '../context/window.ts'
import type { Compacting, Fullness } from './compact.ts'
import { isLongAnswer } from '../view/history.ts'
import { ModelContext } from './contexts.ts'
import type { FrozenRun, FrozenRuns } from './frozen-run.ts'
import type { FailedCall } from './model-failure.ts'
import { type Message, messageIn, messageOf, stoppedCall, uncut, verdictOf } from './outcomes.ts'
import { namedTool } from './named-tool.ts'
import { describeMiss, missOf, recalled, type Sent } from './prefix.ts'
import type { Tools } from './toolbox.ts'
import { doubtSum, withLength } from './request-length.ts'
import { findWindow, surelyFits } from './window.ts'

const NONE_DENIED: readonly string[] = []

/** What was asked, by whom, and with which tools. */
type Asked = Omit<Admitting, 'services' | 'allow'> & { readonly frame: FrozenRun; readonly request: Request }
/** A reply, and its calls as they were read. */
type Read = { readonly answer: Reply; readonly miss: Json | undefined; readonly calls: readonly Proposal[] }

export class ModelCaller {
  readonly #services: Services
  readonly #frozen: FrozenRuns

  readonly #allowances: () => Promise<Allowances>

  constructor(services: Services, frozen: FrozenRuns, allowances: () => Promise<Allowances>) {
    this.#services = services
    this.#frozen = frozen
    this.#allowances = allowances
  }

  async call(cache: SessionCache, effect: Extract<Effect, { type: 'call' }>, flight: FlightContext): Promise<Landing> {
    const agent = agentFor(this.#services, cache)
    const frozen = this.#frozen.known(cache) ?? (await this.#frozen.of(cache))
    const transcript = cache.shown ?? (await cache.transcript())
    const named = namedTool(agent, cache, transcript)
    const frame = named === undefined ? frozen : this.#frozen.extended(frozen, named)
    assert(cache.started, 'a model call without model.started')
    let request = project(cache.id, frame, transcript, cache.started)
    if (cache.tree !== cache.id) request = { ...request, tree: cache.tree }
    if (transcript.hasBlobs)
      request = { ...request, messages: await this.#readable(request.messages, frame, transcript) }
    if (agent.settings) request = { ...request, settings: agent.settings }
    if (agent.output?.asked) request = { ...request, output: agent.output.asked }
    // After a restart they are asked for anew, and before the model is: its answer is of no use without them.
    const tools = agent.tools.seen ?? (await agent.tools.open(flight).catch(awayOf))
    // All of this took time. If the call is no longer the open one, the model must not be asked.
    if (!flight.clear() || cache.session.run?.model?.seq !== effect.seq)
      return { events: [stoppedCall(flight.reason ?? 'interrupted')] }
    const context = new ModelContext(this.#services, cache, effect.seq, flight)
    const during = { request, flight, context }
    if ('type' in tools) return this.#failed(cache, tools, during)
    const asked = { cache, agent, frame, request, flight, tools: this.#frozen.offered(frame, tools, named) }
    const handed = agent.children.length > 0 ? handedAnswer(request, transcript, asked.tools, agent) : null
    if (handed !== null) return this.#admit(asked, handed, undefined)
    if (agent.planner !== null || surelyFits(this.#services, agent.model, cache.guard.fill))
      return this.#ask(asked, transcript, context)
    return this.#fitted(asked, transcript, context)
  }

  /** With what lives beside the log, and no answer from outside that would fill a context by itself. */
  async #readable(
    messages: Request['messages'],
    { definitions }: FrozenRun,
    transcript: Transcript,
  ): Promise<Request['messages']> {
    const whole = await resolved(this.#services.store, messages, (message) => transcript.placeOf(message))
    if (!whole.some(isLongAnswer)) return whole
    const { boundedAnswers } = await import('./long-answers.ts')
    return boundedAnswers(whole, definitions.has(RETRIEVE))
  }

  async #ask(asked: Asked, transcript: Transcript, context: ModelContext): Promise<Landing> {
    const { cache, agent, request, flight } = asked
    let said: Reply | ModelFailure
    try {
      said = soundly(readAnswer(await agent.model.call(request, context)))
    } catch (error) {
      said = { type: 'failure', class: 'other', message: messageIn(error), retryable: false }
    }
    const shown = context.finish(said.type === 'failure' && said.partial === undefined)
    if (said.type === 'failure') {
      const failure = shown === undefined ? said : { ...said, partial: shown }
      const during = { request, flight, context }
      if (failure.class !== 'overflow' || agent.planner !== null) return this.#failed(cache, failure, during)
      return this.#overflowed(asked, transcript, context, failure)
    }
    const measured = agent.planner === null ? withLength(said, request, cache.guard.fill) : said
    if (said.parts.some((part) => part.type === 'data')) return this.#withFiles(asked, measured, transcript.messages)
    return this.#answered(asked, measured, transcript.messages)
  }

  /** It is so long that it may not fit. Most turns never need it, so it is loaded by the first that does. */
  async #fitted(asked: Asked, transcript: Transcript, context: ModelContext): Promise<Landing> {
    const { agent, cache } = asked
    const fill = cache.guard.fill ?? (await cache.fill())
    const window = await findWindow(this.#services, agent.model)
    // Finding out took time: what was stopped meanwhile is not asked.
    const ask = async (): Promise<Landing> => {
      const { reason } = asked.flight
      return reason === null ? this.#ask(asked, transcript, context) : { events: [stoppedCall(reason)] }
    }
    if (surelyFits(this.#services, agent.model, fill)) return ask()
    const { whenFull } = await import('./compact.ts')
    const fullness = await whenFull(await this.#compacting(asked, transcript, window))
    return this.#landed(asked, fullness, context, ask)
  }

  async #overflowed(
    asked: Asked,
    transcript: Transcript,
    context: ModelContext,
    failure: ModelFailure,
  ): Promise<Landing> {
    const { cache, agent, request, flight } = asked
    const { afterOverflow } = await import('./compact.ts')
    const window = await findWindow(this.#services, agent.model)
    const fullness = await afterOverflow(await this.#compacting(asked, transcript, window))
    const failed = (): Promise<Landing> => this.#failed(cache, failure, { request, flight, context })
    return fullness === null ? failed() : this.#landed(asked, fullness, context, failed)
  }

  async #landed(
    { cache, request, flight }: Asked,
    fullness: Fullness,
    context: ModelContext,
    otherwise: () => Promise<Landing>,
  ): Promise<Landing> {
    if ('landing' in fullness) return fullness.landing
    const { failure, beside } = fullness
    const landing = failure === null ? otherwise() : this.#failed(cache, failure, { request, flight, context })
    return joined(await landing, beside)
  }

  async #compacting(asked: Asked, transcript: Transcript, window: Window): Promise<Compacting> {
    const [fill, allowances] = [await asked.cache.fill(), await this.#allowances()]
    doubtSum(fill, asked.request)
    const charsPerToken = fill.charsPerTokenIn(charsIn(asked.request))
    return { ...asked, services: this.#services, transcript, window, fill, charsPerToken, allowances }
  }

  #answered(asked: Asked, said: Reply, messages: Sent['messages']): Landing | Promise<Landing> {
    const free = !isPriced(asked.agent.model) && (said.cost !== undefined || said.usage === null)
    return free ? this.#admit(asked, said, undefined) : this.#priced(asked, said, messages)
  }

  /** What the model made is put beside the log, in the commit of its reply. */
  async #withFiles(asked: Asked, said: Reply, messages: Sent['messages']): Promise<Landing> {
    const { madeFiles } = await import('./kept-files.ts')
    const { parts, blobs } = madeFiles(said.parts, this.#services.redactor)
    return joined(await this.#answered(asked, { ...said, parts }, messages), { blobs })
  }

  /** With what it cost, and whether the provider's cache was missed. */
  async #priced(asked: Asked, said: Reply, messages: Sent['messages']): Promise<Landing> {
    const { cache, agent, frame, request } = asked
    const { model } = agent
    const answer = said.cost === undefined ? await costed(model, request, said) : said
    const sent = { frame, messages, answer, allow: request.allow }
    const miss = isPriced(model) && !answer.cached ? await this.#missed(cache, { ...sent, model }) : undefined
    return this.#admit(asked, answer, miss)
  }

  /** What the reply wants is admitted, and what it means is judged. A promise only where something must be asked for it. */
  #admit(asked: Asked, answer: Reply, miss: Json | undefined): Landing | Promise<Landing> {
    const { agent, tools, cache, frame } = asked
    const asking = askingFor(this.#services, agent, cache)
    const judging = frame.gone.size === 0 ? asking : { ...asking, gone: frame.gone }
    const proposed = admit(answer.calls, tools, judging)
    if (proposed instanceof Promise) return proposed.then((calls) => this.#judge(asked, { answer, miss, calls }))
    return this.#judge(asked, { answer, miss, calls: proposed })
  }

  #judge(asked: Asked, read: Read): Landing | Promise<Landing> {
    const { frame, agent } = asked
    const { planner, output } = agent
    if (planner) return this.#settle(asked, read, planner.verdict(read.answer))
    if (!output) return this.#settle(asked, read, verdictOf(read.answer, frame))
    const judged = judgeOutput(output, read.answer, [...frame.definitions.keys()])
    const inTime = checkedInTime(this.#services.clock, judged, unchecked)
    return inTime.then((verdict) => this.#settle(asked, read, verdict))
  }

  #settle(asked: Asked, read: Read, judged: Verdict): Landing | Promise<Landing> {
    const { agent, cache, tools, flight, request } = asked
    const { answer, miss, calls } = read
    const whole =
      answer.finish === 'length'
        ? calls.map((call, i) => uncut(call, answer.calls[i]?.args ?? '', answer.usage))
        : calls
    const only = cache.started?.tools
    const admitting = { services: this.#services, agent, cache, tools, allow: request.allow, flight, only }
    const settled = admitted(admitting, whole, judged, answer)
    if (settled instanceof Promise) return settled.then((said) => this.#landing(asked, said, answer, miss))
    return this.#landing(asked, settled, answer, miss)
  }

  #landing(
    { agent, cache, request }: Asked,
    { calls, verdict, nudge, guard, parts }: Settled,
    answer: Reply,
    miss: Json | undefined,
  ): Landing | Promise<Landing> {
    const { actionsPerHour, asksPerHour } = agent.policy
    const said = messageOf(parts === undefined ? answer : { ...answer, parts }, calls, verdict, miss)
    const message = guard === undefined ? said : { ...said, guard }
    if (nudge !== undefined) return { events: [message, { type: 'note.added', kind: 'nudge', text: nudge }] }
    if ((actionsPerHour === undefined && asksPerHour === undefined) || calls.length === 0) return { events: [message] }
    return this.#budgeted(message, agent, cache, request.seq)
  }

  /** Did this request begin with the bytes of the one before? Only models that are paid for have a cache worth watching. */
  async #missed(
    cache: SessionCache,
    {
      frame,
      messages,
      answer,
      model,
      allow,
    }: Pick<Sent, 'frame' | 'messages'> & { readonly answer: Reply; readonly model: Priced; readonly allow: Allow },
  ): Promise<Json | undefined> {
    const { route, usage } = answer
    // The reply before may have come in another process.
    const spoke = messages.some((message) => message.role === 'assistant')
    const sent = cache.sent ?? (spoke ? await this.#recalled(cache, frame) : null)
    // A copy: a compaction changes the list itself.
    const barred = model.choiceCached ? allow === 'none' : null
    const now = { frame, messages: messages.slice(), route, barred }
    cache.sent = { ...now, inputTokens: lengthIn(usage ?? undefined) }
    const miss = sent && missOf(sent, now)
    return miss ? describeMiss(miss, sent, (await model.profile()).price) : undefined
  }

  /** A tool that results name is not frozen with a run: it was shown before, too. */
  async #recalled(cache: SessionCache, now: FrozenRun): Promise<Sent | null> {
    const sent = await recalled(this.#services.store, cache.id, cache.session.seq, this.#frozen)
    const { retrieve } = agentFor(this.#services, cache)
    if (sent === null || retrieve === undefined || !now.definitions.has(RETRIEVE)) return sent
    return { ...sent, frame: this.#frozen.extended(sent.frame, retrieve) }
  }

  /** What acts, and what is asked, is counted in the same commit as the reply that wants it. A child counts as its root does. */
  async #budgeted(message: Message, { policy }: Agent, cache: SessionCache, seq: number): Promise<Landing> {
    const { store } = this.#services
    const agent = await rootAgentOf(cache.session, store)
    const now = store.now()
    const budgets = (['asks', 'actions'] as const).flatMap((of) => {
      const perHour = of === 'asks' ? policy.asksPerHour : policy.actionsPerHour
      const place = { accounts: hourAccounts(of, agent, now), key: `${eventId(cache.id, seq)}:${of}` }
      return perHour === undefined ? [] : [{ of, perHour, ...place }]
    })
    const count = async (before: number): Promise<Landing | null> => {
      let { calls } = message
      const charges: Charge[] = []
      let spent = 0
      for (const { of, perHour, accounts, key } of budgets) {
        const spents = await Promise.all(accounts.map(async (name) => (await store.account(name))?.spent ?? 0))
        const within = withinBudget(of, calls, perHour - Math.max(...spents), perHour)
        calls = within.calls
        spent += within.spent
        if (within.spent > 0) charges.push(...hourCharges(accounts, perHour, key, within.spent))
      }
      // What was counted stays so: an account that is in the way now is another one.
      if (spent >= before) return null
      return { events: [{ ...message, calls }], ...(spent > 0 ? { charges, recount: () => count(spent) } : {}) }
    }
    return (await count(Number.POSITIVE_INFINITY)) ?? { events: [message] }
  }

  /** Most turns never need it, so it is loaded by the first that does. */
  async #failed(cache: SessionCache, failure: ModelFailure, during: FailedCall): Promise<Landing> {
    const { failedCall } = await import('./model-failure.ts')
    return { events: [await failedCall(this.#services, cache, failure, during)] }
  }
}

/** To ask again would cost another answer, and wait for the same check. The answer itself stays in the log. */
function unchecked(): Verdict {
  const reason = `The answer could not be taken: ${CHECK_LATE}.`
  const failure = { kind: 'Timeout', message: reason } as const
  return { type: 'stop', reason, as: { type: 'failed', reason: 'output_validation_failed', failure } }
}

/** With what lands beside it, also if less of it lands. */
function joined(landing: Landing, more: Partial<Omit<Landing, 'recount'>>): Landing {
  const { events = [], blobs = [], charges = [] } = more
  if (events.length + blobs.length === 0) return landing
  const { recount, ...rest } = landing
  const again = recount && (async () => recount().then((less) => less && joined(less, more)))
  const all = { events: [...rest.events, ...events], blobs: [...(rest.blobs ?? []), ...blobs] }
  const paid = [...(rest.charges ?? []), ...charges]
  return { ...rest, ...all, charges: paid, ...(again ? { recount: again } : {}) }
}

/** Expiry is seen by the attempt and by the store: a question must be open for both. */
export function askingFor(
  { store, redactor, clock }: Services,
  { approvalMs, policy, environment, model, unknownTool, toolErrors }: Agent,
  cache: SessionCache,
): Asking {
  const verbatim = isPriced(model) && model.verbatim === true
  return {
    now: Math.max(store.now(), cache.now()),
    clock,
    approvalMs,
    policy,
    environment,
    redactor,
    verbatim,
    denied: cache.session.run?.said?.denied ?? NONE_DENIED,
    unknownTool,
    toolErrors,
  }
}

/**
 * The answer of a child that the conversation was handed over to, as the reply to this request: no model is asked. Null if the last reply
 * handed nothing over, if the child did not answer, or if somebody said something since. A notice of the harness is no such message.
 */
function handedAnswer({ messages }: Request, transcript: Transcript, tools: Tools, { output }: Agent): Reply | null {
  const last = transcript.messages.findLast((message) => !transcript.notes.has(message))
  if (last?.role !== 'tool') return null
  const reply = messages.findLastIndex(({ role }) => role === 'assistant')
  const answer = messages
    .slice(reply + 1)
    .findLast((message) => message.role === 'tool' && message.ok && tools.get(message.tool)?.handoff === true)
  if (answer?.role !== 'tool' || typeof answer.content !== 'string') return null
  const { content: text, id } = answer
  const said = { type: 'reply', finish: 'stop', usage: null, cost: 0, route: answer.tool } as const
  // Where the answer is the arguments of a call, so is this one.
  if (output?.mode === 'tool')
    return { ...said, parts: [], calls: [{ id: `${id}_answer`, tool: FINAL_RESULT, args: text }] }
  return { ...said, parts: [{ type: 'text', text }], calls: [] }
}

/** What a run needs is away: the request waits for it as for a provider. */
function awayOf(error: unknown): ModelFailure {
  if (!isPassing(error)) throw error
  return { type: 'failure', class: 'other', message: messageIn(error), retryable: true }
}
