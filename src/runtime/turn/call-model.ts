// The second effect: ask the model and admit its reply. The reply, the verdict on it and the terms of its calls land as
// one event.
import { eventId, thrownText } from '../../view/shown-text.ts'
import type { Allow, Json, Proposal, Verdict } from '../../kernel/content.ts'
import { assert } from '../../kernel/failure.ts'
import type { Transcript } from '../../kernel/transcript.ts'
import type { Effect } from '../../kernel/next.ts'
import type { Charge } from '../../ports/store.ts'
import type { ModelFailure, Reply, Request } from '../../ports/model.ts'
import { buildRequest } from './build-request.ts'
import { readAnswer } from '../../models/model-answer.ts'
import { isPriced, type Priced } from '../../models/http/hosted-model.ts'
import { FINAL_RESULT, judgeOutput } from '../../models/structured-output.ts'
import { admitCalls, type AdmissionContext } from '../../tools/core/admit.ts'
import { CHECK_LATE, checkInTime } from '../../tools/core/check-time.ts'
import { hourAccounts, hourCharges, refuseOverBudget } from '../../tools/core/hour-budget.ts'
import { isTemporaryError } from '../state/outages.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import type { SessionCache, RequestPrefix } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { type Agent, agentOfRun, type Planner } from '../state/agent.ts'
import { readBlobs } from '../state/content-blobs.ts'
import { rootAgentOf } from '../state/session-tree.ts'
import type { ModelWindow } from '../guard/guard.ts'
import type { Allowances } from '../money/allowance.ts'
import { countRequestChars, priceReply, dropUnsoundUsage } from '../money/usage-estimate.ts'
import { type ReplyAdmission, type AdmittedReply, admitWithChecks, needsChecks, refuseEarly } from './admit-reply.ts'
import { boundLongAnswers } from './long-answers.ts'
import { buildFailedCall } from './model-failure.ts'
import { storeReplyFiles } from './store-files.ts'
import { RETRIEVE } from '../../context/compress/marker.ts'
import { requestLength } from '../../context/window-fill.ts'
import type { CompactionInput, CompactionStep } from './compact-context.ts'
import { isLongAnswer } from '../../view/session-history.ts'
import { ModelContext } from './call-context.ts'
import type { FrozenRun, FrozenRuns } from '../state/frozen-run.ts'
import type { FailedModelCall } from './model-failure.ts'
import { type ReplyMessage, buildReplyMessage, stoppedModelCall, refuseCutCall, judgeReply } from './landings.ts'
import { findNamedTool } from '../state/named-tool.ts'
import { describeMiss, findPrefixMiss, recallPrefix } from './prefix-miss.ts'
import type { Tools } from '../state/toolbox.ts'
import { replaceDoubtfulCount, correctRequestLength } from './request-length.ts'
import { findWindow, surelyFits } from '../state/model-window.ts'

const NONE_DENIED: readonly string[] = []

/** One request to a model, with the agent and the tools it is made for. */
type ModelCallInput = Omit<ReplyAdmission, 'services' | 'allow'> & {
  readonly frame: FrozenRun
  readonly request: Request
}
/** `miss`: what the provider's cache should have held and did not. */
type PricedReply = { readonly answer: Reply; readonly miss?: Json | undefined }

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
    const agent = agentOfRun(this.#services, cache)
    assert(cache.started, 'a model call without model.started')
    let frozen: FrozenRun
    let transcript: Transcript
    let readable: Request['messages'] | null = null
    try {
      frozen = this.#frozen.known(cache) ?? (await this.#frozen.of(cache))
      transcript = cache.loadedTranscript ?? (await cache.transcript())
      if (transcript.hasBlobs) readable = await this.#readable(frozen, transcript)
    } catch (error) {
      // The model was not asked yet: the request waits until the store can be read again.
      const { type: _, ...failure } = outageFailure(error)
      return { events: [{ type: 'model.failed', ...failure }] }
    }
    const named = findNamedTool(agent, cache, transcript)
    const frame = named === undefined ? frozen : this.#frozen.withTool(frozen, named)
    let request = buildRequest(cache.id, frame, transcript, cache.started)
    if (cache.tree !== cache.id) request = { ...request, tree: cache.tree }
    if (readable !== null) request = { ...request, messages: readable }
    if (agent.settings) request = { ...request, settings: agent.settings }
    if (agent.output?.asked) request = { ...request, output: agent.output.asked }
    // After a restart the sources of tools are asked anew, before the model is: its answer is of no use without tools.
    const tools = agent.tools.seen ?? (await agent.tools.open(flight).catch(outageFailure))
    // The steps above took time. If this call is no longer the open one, the model must not be asked.
    if (!flight.clear() || cache.session.run?.model?.seq !== effect.seq)
      return { events: [stoppedModelCall(flight.reason ?? 'interrupted')] }
    const context = new ModelContext(this.#services, cache, effect.seq, flight)
    const during = { request, flight, context }
    if ('type' in tools) return this.#failed(cache, tools, during)
    const asked = { cache, agent, frame, request, flight, tools: this.#frozen.offeredTools(frame, tools, named) }
    const handed = agent.children.length > 0 ? handoffReply(request, transcript, asked.tools, agent) : null
    if (handed !== null) return this.#admitted(asked, { answer: handed })
    if (agent.planner !== null)
      return cutAtCheckpoint(await this.#ask(asked, transcript, context), agent.planner, effect)
    if (surelyFits(this.#services, agent.model, cache.guard.fill)) return this.#ask(asked, transcript, context)
    return this.#fitted(asked, transcript, context)
  }

  /**
   * Reads the contents stored beside the log into the messages, and bounds answers from outside that would fill a
   * context.
   */
  async #readable({ definitions }: FrozenRun, transcript: Transcript): Promise<Request['messages']> {
    const { messages } = transcript
    const whole = await readBlobs(this.#services.store, messages, (message) => transcript.placeOf(message))
    if (!whole.some(isLongAnswer)) return whole
    return boundLongAnswers(whole, definitions.has(RETRIEVE))
  }

  async #ask(asked: ModelCallInput, transcript: Transcript, context: ModelContext): Promise<Landing> {
    const { cache, agent, request, flight } = asked
    let said: Reply | ModelFailure
    try {
      const answer = readAnswer(await agent.model.call(request, context))
      said = answer.type === 'reply' && answer.usage ? dropUnsoundUsage(answer) : answer
    } catch (error) {
      // Money is held by a write: a store that is busy then is an outage, and no word of the model.
      said = isTemporaryError(error)
        ? outageFailure(error)
        : { type: 'failure', class: 'other', message: thrownText(error), retryable: false }
    }
    const shown = context.finish(said.type === 'failure' && said.partial === undefined)
    if (said.type === 'failure') {
      const failure = shown === undefined ? said : { ...said, partial: shown }
      const during = { request, flight, context }
      if (failure.class !== 'overflow' || agent.planner !== null) return this.#failed(cache, failure, during)
      return this.#overflowed(asked, transcript, context, failure)
    }
    const measured = agent.planner === null && said.usage ? correctRequestLength(said, request, cache.guard.fill) : said
    if (said.parts.some((part) => part.type === 'data')) return this.#withFiles(asked, measured, transcript.messages)
    const landing = await this.#answered(asked, measured, transcript.messages)
    if (transcript.messages.length <= (agent.planner?.keeps ?? Number.POSITIVE_INFINITY)) return landing
    return joinLanding(landing, { events: [{ type: 'context.compacted', cut: request.seq }] })
  }

  /** The request may be too long. Most turns never need this code, so the first long one loads it. */
  async #fitted(asked: ModelCallInput, transcript: Transcript, context: ModelContext): Promise<Landing> {
    const { agent, cache } = asked
    const fill = cache.guard.fill ?? (await cache.fill())
    const window = await findWindow(this.#services, agent.model)
    // Looking up the window took time: a call that was stopped meanwhile is not made.
    const ask = async (): Promise<Landing> => {
      const { reason } = asked.flight
      return reason === null ? this.#ask(asked, transcript, context) : { events: [stoppedModelCall(reason)] }
    }
    if (surelyFits(this.#services, agent.model, fill)) return ask()
    const { compactIfFull } = await import('./compact-context.ts')
    const fullness = await compactIfFull(await this.#compacting(asked, transcript, window))
    return this.#landed(asked, fullness, context, ask)
  }

  async #overflowed(
    asked: ModelCallInput,
    transcript: Transcript,
    context: ModelContext,
    failure: ModelFailure,
  ): Promise<Landing> {
    const { cache, agent, request, flight } = asked
    const { compactAfterOverflow } = await import('./compact-context.ts')
    const window = await findWindow(this.#services, agent.model)
    const fullness = await compactAfterOverflow(await this.#compacting(asked, transcript, window))
    const failed = (): Promise<Landing> => this.#failed(cache, failure, { request, flight, context })
    return fullness === null ? failed() : this.#landed(asked, fullness, context, failed)
  }

  async #landed(
    { cache, request, flight }: ModelCallInput,
    fullness: CompactionStep,
    context: ModelContext,
    otherwise: () => Promise<Landing>,
  ): Promise<Landing> {
    if ('landing' in fullness) return fullness.landing
    const { failure, beside } = fullness
    const landing = failure === null ? otherwise() : this.#failed(cache, failure, { request, flight, context })
    return joinLanding(await landing, beside)
  }

  async #compacting(asked: ModelCallInput, transcript: Transcript, window: ModelWindow): Promise<CompactionInput> {
    const [fill, allowances] = [await asked.cache.fill(), await this.#allowances()]
    replaceDoubtfulCount(fill, asked.request)
    const charsPerToken = fill.charsPerTokenIn(countRequestChars(asked.request))
    return { ...asked, services: this.#services, transcript, window, fill, charsPerToken, allowances }
  }

  /** Files that the model made are stored beside the log, in the commit of its reply. */
  async #withFiles(asked: ModelCallInput, said: Reply, messages: RequestPrefix['messages']): Promise<Landing> {
    const { parts, blobs } = storeReplyFiles(said.parts, this.#services.redactor)
    return joinLanding(await this.#answered(asked, { ...said, parts }, messages), { blobs })
  }

  /** Prices the reply, admits its calls and judges it. It waits only where something must be asked for that. */
  async #answered(asked: ModelCallInput, said: Reply, messages: RequestPrefix['messages']): Promise<Landing> {
    const free = !isPriced(asked.agent.model) && (said.cost !== undefined || said.usage === null)
    return this.#admitted(asked, free ? { answer: said } : await this.#priced(asked, said, messages))
  }

  /** Adds the cost of the reply, and whether the provider's cache was missed. */
  async #priced(asked: ModelCallInput, said: Reply, messages: RequestPrefix['messages']): Promise<PricedReply> {
    const { cache, agent, frame, request } = asked
    const { model } = agent
    const answer = said.cost === undefined ? await priceReply(model, request, said) : said
    if (!isPriced(model) || answer.cached) return { answer }
    return { answer, miss: await this.#missed(cache, { frame, messages, answer, allow: request.allow, model }) }
  }

  async #admitted(asked: ModelCallInput, { answer, miss }: PricedReply): Promise<Landing> {
    const { agent, tools, cache, frame, flight, request } = asked
    const asking = admissionContextFor(this.#services, agent, cache)
    const admitting = admitCalls(answer.calls, tools, frame.gone.size === 0 ? asking : { ...asking, gone: frame.gone })
    const proposed = admitting instanceof Promise ? await admitting : admitting
    const { planner } = agent
    const judged = agent.output && !planner ? await this.#judged(asked, answer) : planner?.verdict(answer)
    const verdict = judged ?? judgeReply(answer, frame)
    const whole =
      answer.finish === 'length'
        ? proposed.map((call, i) => refuseCutCall(call, answer.calls[i]?.args ?? '', answer.usage))
        : proposed
    const only = cache.started?.tools
    const { allow } = request
    // Most replies have only calls that may run at once, and nothing looks at them.
    if (allow === 'all' && only === undefined && this.#services.hooks === null && !whole.some(hasGate))
      return this.#landing(asked, { calls: whole, verdict }, answer, miss)
    const reply = { services: this.#services, agent, cache, tools, allow, flight, only }
    const calls = refuseEarly(reply, whole)
    const settled = needsChecks(reply, calls)
      ? await admitWithChecks(reply, calls, verdict, answer)
      : { calls, verdict }
    return this.#landing(asked, settled, answer, miss)
  }

  #judged({ agent: { output }, frame }: ModelCallInput, answer: Reply): Promise<Verdict> {
    assert(output, 'an answer that is checked')
    const judged = judgeOutput(output, answer, [...frame.definitions.keys()])
    return checkInTime(this.#services.clock, judged, checkTimeoutVerdict)
  }

  async #landing(
    { agent, cache, request }: ModelCallInput,
    { calls, verdict, nudge, guard, parts }: AdmittedReply,
    answer: Reply,
    miss: Json | undefined,
  ): Promise<Landing> {
    const { actionsPerHour, asksPerHour } = agent.policy
    const said = buildReplyMessage(parts === undefined ? answer : { ...answer, parts }, calls, verdict, miss)
    const message = guard === undefined ? said : { ...said, guard }
    if (nudge !== undefined) return { events: [message, { type: 'note.added', kind: 'nudge', text: nudge }] }
    if ((actionsPerHour === undefined && asksPerHour === undefined) || calls.length === 0) return { events: [message] }
    return this.#budgeted(message, agent, cache, request.seq)
  }

  /**
   * Whether this request began with the bytes of the one before. Only models with a price have a cache worth watching.
   */
  async #missed(
    cache: SessionCache,
    {
      frame,
      messages,
      answer,
      model,
      allow,
    }: Pick<RequestPrefix, 'frame' | 'messages'> & {
      readonly answer: Reply
      readonly model: Priced
      readonly allow: Allow
    },
  ): Promise<Json | undefined> {
    const { route, usage } = answer
    // The previous reply may have come in another process.
    const spoke = messages.some((message) => message.role === 'assistant')
    const sent = cache.sent ?? (spoke ? await this.#recalled(cache, frame).catch(skipWhileBusy) : null)
    // Copied, because a compaction changes the list itself.
    const barred = model.choiceCached ? allow === 'none' : null
    const now = { frame, messages: messages.slice(), route, barred }
    cache.sent = { ...now, inputTokens: requestLength(usage ?? undefined) }
    const miss = sent && findPrefixMiss(sent, now)
    return miss ? describeMiss(miss, sent, (await model.profile()).price) : undefined
  }

  /** A tool that results name is not frozen with a run, but earlier requests showed it too. */
  async #recalled(cache: SessionCache, now: FrozenRun): Promise<RequestPrefix | null> {
    const sent = await recallPrefix(this.#services.store, cache.id, cache.session.seq, this.#frozen)
    const { retrieve } = agentOfRun(this.#services, cache)
    if (sent === null || retrieve === undefined || !now.definitions.has(RETRIEVE)) return sent
    return { ...sent, frame: this.#frozen.withTool(sent.frame, retrieve) }
  }

  /**
   * Counts actions and questions against the hourly budgets in the commit of the reply that makes them. A child counts
   * on the accounts of its root.
   */
  async #budgeted(message: ReplyMessage, { policy }: Agent, cache: SessionCache, seq: number): Promise<Landing> {
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
        const within = refuseOverBudget(of, calls, perHour - Math.max(...spents), perHour)
        calls = within.calls
        spent += within.spent
        if (within.spent > 0) charges.push(...hourCharges(accounts, perHour, key, within.spent))
      }
      // Counted calls stay counted. A conflict now is with another account.
      if (spent >= before) return null
      return { events: [{ ...message, calls }], ...(spent > 0 ? { charges, recount: () => count(spent) } : {}) }
    }
    return (await count(Number.POSITIVE_INFINITY)) ?? { events: [message] }
  }

  async #failed(cache: SessionCache, failure: ModelFailure, during: FailedModelCall): Promise<Landing> {
    return { events: [await buildFailedCall(this.#services, cache, failure, during)] }
  }
}

function hasGate({ gate }: Proposal): boolean {
  return gate !== undefined
}

/** Asking again would cost another answer and wait for the same check. The answer itself stays in the log. */
function checkTimeoutVerdict(): Verdict {
  const reason = `The answer could not be taken: ${CHECK_LATE}.`
  const failure = { kind: 'Timeout', message: reason } as const
  return { type: 'stop', reason, as: { type: 'failed', reason: 'output_validation_failed', failure } }
}

/** After a reply that repeats its planner's state, the messages before it are not read again. */
function cutAtCheckpoint(landing: Landing, planner: Planner, { seq }: Extract<Effect, { type: 'call' }>): Landing {
  const [said] = landing.events
  if (said?.type !== 'agent.message' || planner.isCheckpoint?.(said.parts) !== true) return landing
  return joinLanding(landing, { events: [{ type: 'context.compacted', cut: seq + 1 }] })
}

/** Adds events, blobs and charges to a landing, and to its smaller forms if it is counted again. */
function joinLanding(landing: Landing, more: Partial<Omit<Landing, 'recount'>>): Landing {
  const { events = [], blobs = [], charges = [] } = more
  if (events.length + blobs.length === 0) return landing
  const { recount, ...rest } = landing
  const again = recount && (async () => recount().then((less) => less && joinLanding(less, more)))
  const all = { events: [...rest.events, ...events], blobs: [...(rest.blobs ?? []), ...blobs] }
  const paid = [...(rest.charges ?? []), ...charges]
  return { ...rest, ...all, charges: paid, ...(again ? { recount: again } : {}) }
}

/** Both the attempt and the store check expiry, so a question must be open by both clocks: the later one counts. */
export function admissionContextFor(
  { store, redactor, clock }: Services,
  { approvalMs, policy, environment, model, unknownTool, toolErrors }: Agent,
  cache: SessionCache,
): AdmissionContext {
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
 * Returns the answer of a child that the conversation was handed over to as the reply to this request, so no model is
 * asked. Null if the last reply handed nothing over, if the child did not answer, or if a message came since. Notices
 * of the harness are not such messages.
 */
function handoffReply({ messages }: Request, transcript: Transcript, tools: Tools, { output }: Agent): Reply | null {
  const last = transcript.messages.findLast((message) => !transcript.notes.has(message))
  if (last?.role !== 'tool') return null
  const reply = messages.findLastIndex(({ role }) => role === 'assistant')
  const answer = messages
    .slice(reply + 1)
    .findLast((message) => message.role === 'tool' && message.ok && tools.get(message.tool)?.handoff === true)
  if (answer?.role !== 'tool' || typeof answer.content !== 'string') return null
  const { content: text, id } = answer
  const said = { type: 'reply', finish: 'stop', usage: null, cost: 0, route: answer.tool } as const
  // Where an answer is given as the arguments of a call, this answer becomes a call too.
  if (output?.mode === 'tool')
    return { ...said, parts: [], calls: [{ id: `${id}_answer`, tool: FINAL_RESULT, args: text }] }
  return { ...said, parts: [{ type: 'text', text }], calls: [] }
}

/** An answer that was paid for is worth more than why the provider's cache missed. */
function skipWhileBusy(error: unknown): null {
  if (!isTemporaryError(error)) throw error
  return null
}

/** Something that a run needs is unavailable, so the request waits for it as for a provider. */
function outageFailure(error: unknown): ModelFailure {
  if (!isTemporaryError(error)) throw error
  return { type: 'failure', class: 'other', message: thrownText(error), retryable: true }
}
