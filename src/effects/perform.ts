// The three effects on the world: prepare a run, call the model, run a call. What goes wrong is part of the landing.
// Nothing is decided here; admission and the verdict are recorded with the reply.
import type { Allow, Json, Proposal } from '../kernel/content.ts'
import { eventId, type OwnerBody } from '../kernel/event.ts'
import { assert } from '../kernel/failure.ts'
import { type Call, intentOf, outsideOf } from '../kernel/ledger.ts'
import type { Effect } from '../kernel/next.ts'
import type { Charge, ModelFailure, Reply } from '../kernel/ports.ts'
import { project } from './request.ts'
import { refused, unknown } from '../kernel/result.ts'
import { isPriced, type Priced } from '../models/http/hosted.ts'
import { judgeOutput } from '../models/output.ts'
import { admit, type Asking, digestOf, placeOf } from '../tools/core/admit.ts'
import { hourAccount, hourCharges, withinBudget } from '../tools/core/budget.ts'
import { judge } from '../tools/policy/policy.ts'
import { type Done, execute, reconcile } from '../tools/core/run.ts'
import { type Admitting, admitted } from './admit-reply.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { cloneJson } from './clone-json.ts'
import { paidFor } from '../riders/money/budgeted-model.ts'
import type { Fail, FlightContext, Landing, Perform } from '../engine/flights.ts'
import type { Traits } from '../riders/guard/guard.ts'
import { HookFailed, type Hooks } from '../riders/hooks/hooks.ts'
import {
  abandon,
  failedLanding,
  heldBack,
  inTime,
  type Message,
  messageIn,
  messageOf,
  PREPARE_MS,
  resultOf,
  stoppedCall,
  stoppedResult,
  uncut,
  verdictOf,
  WITHHELD,
} from './outcomes.ts'
import type { FailedCall } from './model-failure.ts'
import { missed, missOf, recalled, type Sent } from './prefix.ts'
import { Preparer } from './prepare.ts'
import { isPassing } from '../engine/backoff.ts'
import { SpendingLimits, type Rate, rateOf, rootAgentOf } from '../riders/money/spending-limits.ts'
import { costed } from '../riders/money/usage-estimate.ts'
import { ModelContext, ToolRunContext } from './contexts.ts'
import type { Tools } from './toolbox.ts'
import { type Agent, type FrozenRun, Frames, resolved, type Services } from '../engine/wiring.ts'

const NONE_DENIED: readonly string[] = []

export class Performer {
  readonly #services: Services
  readonly #frames: Frames
  readonly #preparer: Preparer
  readonly #rates = new WeakMap<Agent, Rate>()
  readonly #told = new WeakMap<object, number>()
  readonly #traits = new WeakMap<Tools, Traits>()
  readonly #offers = new WeakMap<FrozenRun, { readonly of: Tools; readonly offered: Tools }>()

  constructor(services: Services) {
    this.#services = services
    this.#frames = new Frames(services.store)
    this.#preparer = new Preparer(services)
  }

  /** The effects of one session's attempt. */
  for(cache: SessionCache): { readonly perform: Perform; readonly fail: Fail } {
    const perform: Perform = (effect, flight) => {
      if (effect.type === 'call') return this.#call(cache, effect, flight)
      if (effect.type === 'prepare') return this.#preparer.prepare(effect, cache, flight)
      if (effect.type === 'review') return this.#review(cache, effect, flight)
      return effect.mode === 'clear' ? this.#clear(cache, effect, flight) : this.#run(cache, effect, flight)
    }
    const fail: Fail = (effect, error) =>
      effect.type === 'prepare' ? this.#preparer.failed(effect, cache, error, PREPARE_MS) : failedLanding(effect, error)
    return { perform, fail }
  }

  async #call(cache: SessionCache, effect: Extract<Effect, { type: 'call' }>, flight: FlightContext): Promise<Landing> {
    const agent = this.#services.agent(cache.session.agent)
    const frame = this.#frozen(cache) ?? (await this.#freeze(cache))
    const transcript = cache.shown ?? (await cache.transcript())
    assert(cache.started, 'a model call without model.started')
    let request = project(cache.id, frame, transcript, cache.started)
    if (transcript.hasBlobs) request = { ...request, messages: await resolved(this.#services.store, request.messages) }
    if (agent.output?.asked) request = { ...request, output: agent.output.asked }
    // Reading took time. If the call is no longer the open one, the model must not be asked.
    if (!flight.clear() || cache.session.run?.model?.seq !== effect.seq) {
      return { events: [stoppedCall(flight.reason ?? 'interrupted')] }
    }
    const modelContext = new ModelContext(this.#services, cache.id, effect.seq, flight)
    // After a restart they are asked for anew, and before the model is: its answer is of no use without them.
    const tools = agent.tools.seen ?? (await agent.tools.open(flight).catch(awayOf))
    if ('type' in tools) return this.#failed(cache, tools, { request, flight, context: modelContext })
    const { model } = agent
    let said: Reply | ModelFailure
    try {
      said = await model.call(request, modelContext)
    } catch (error) {
      said = { type: 'failure', class: 'other', message: messageIn(error), retryable: false }
    }
    const shown = modelContext.finish(said.type === 'failure' && said.partial === undefined)
    if (shown !== undefined && said.type === 'failure') said = { ...said, partial: shown }
    if (said.type === 'failure') return this.#failed(cache, said, { request, flight, context: modelContext })
    const untold = said.cost === undefined && (said.usage !== null || isPriced(model))
    const answer = untold ? await costed(model, request, said) : said
    const { messages } = transcript
    const miss = isPriced(model)
      ? await this.#missed(cache, { frame, messages, answer, model, allow: request.allow })
      : undefined
    const offered = this.#offered(frame, tools)
    const proposed = admit(answer.calls, offered, this.#asking(agent, cache))
    const read = proposed instanceof Promise ? await proposed : proposed
    const whole =
      answer.finish === 'length' ? read.map((call, i) => uncut(call, answer.calls[i]?.args ?? '', answer.usage)) : read
    const { planner, output } = agent
    const judged = planner
      ? planner.verdict(answer)
      : output
        ? await judgeOutput(output, answer, [...frame.definitions.keys()])
        : verdictOf(answer, frame)
    const admitting: Admitting = {
      services: this.#services,
      agent,
      cache,
      tools: offered,
      allow: request.allow,
      flight,
    }
    const settled = admitted(admitting, whole, judged, answer)
    const { calls, verdict, nudge } = settled instanceof Promise ? await settled : settled
    const { actionsPerHour, asksPerHour } = agent.policy
    const message = messageOf(answer, calls, verdict, miss)
    if (nudge !== undefined) return { events: [message, { type: 'note.added', kind: 'nudge', text: nudge }] }
    if ((actionsPerHour === undefined && asksPerHour === undefined) || calls.length === 0) return { events: [message] }
    return this.#budgeted(message, agent, cache, effect.seq)
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
    const sent =
      cache.sent ?? (spoke ? await recalled(this.#services.store, cache.id, cache.session.seq, this.#frames) : null)
    // A copy: a compaction changes the list itself.
    const barred = model.choiceCached ? allow === 'none' : null
    const now = { frame, messages: messages.slice(), route, barred }
    cache.sent = { ...now, inputTokens: usage?.inputTokens ?? 0 }
    const miss = sent && missOf(sent, now)
    return miss ? missed(miss, sent, (await model.profile()).price) : undefined
  }

  /** What acts, and what is asked, is counted in the same commit as the reply that wants it. A child counts as its root does. */
  async #budgeted(message: Message, { policy }: Agent, cache: SessionCache, seq: number): Promise<Landing> {
    const { store } = this.#services
    const agent = await rootAgentOf(cache.session, store)
    const now = store.now()
    const budgets = (['asks', 'actions'] as const).flatMap((of) => {
      const perHour = of === 'asks' ? policy.asksPerHour : policy.actionsPerHour
      const place = { account: hourAccount(of, agent, now), key: `${eventId(cache.id, seq)}:${of}` }
      return perHour === undefined ? [] : [{ of, perHour, ...place }]
    })
    const count = async (before: number): Promise<Landing | null> => {
      let { calls } = message
      const charges: Charge[] = []
      let spent = 0
      for (const { of, perHour, account, key } of budgets) {
        const used = (await store.account(account))?.spent ?? 0
        const within = withinBudget(of, calls, perHour - used, perHour)
        calls = within.calls
        spent += within.spent
        if (within.spent > 0) charges.push(...hourCharges(account, perHour, key, within.spent))
      }
      // What was counted stays so: an account that is in the way now is another one.
      if (spent >= before) return null
      return { events: [{ ...message, calls }], ...(spent > 0 ? { charges, recount: () => count(spent) } : {}) }
    }
    return (await count(Number.POSITIVE_INFINITY)) ?? { events: [message] }
  }

  /** What calls of this session's model may cost. Planning costs nothing. */
  async spending(cache: SessionCache): Promise<SpendingLimits> {
    const { agent } = cache.session
    return agent === '' || this.#services.agent(agent).planner ? UNPRICED : this.allowance(cache)
  }

  /** What its tools may spend. Only with a budget does anything have to be found out for it. */
  async allowance(cache: SessionCache): Promise<SpendingLimits> {
    const agent = this.#services.agent(cache.session.agent)
    if (agent.budget === null) return UNPRICED
    await cache.count()
    const rate = this.#rates.get(agent) ?? (await rateOf(agent.model))
    this.#rates.set(agent, rate)
    const { session } = cache
    if (session.run && !this.#frozen(cache)) await this.#freeze(cache)
    const payer = await rootAgentOf(session, this.#services.store)
    return new SpendingLimits(payer, agent.budget, { ...rate, baseChars: () => this.#baseChars(cache, agent) })
  }

  /** What the guard must know of an agent's tools. The same object while they are the same. */
  traits(name: string): Traits {
    if (name === '') return NO_TRAITS
    const { tools, output } = this.#services.agent(name)
    const { seen } = tools
    const finalResult = output?.asked?.mode === 'tool'
    if (seen === null) return { ...NO_TRAITS, finalResult }
    const known = this.#traits.get(seen)
    if (known) return known
    const named = (trait: 'deliverable' | 'polling'): ReadonlySet<string> =>
      new Set([...seen.values()].filter((tool) => tool[trait]).map((tool) => tool.name))
    const traits = { writers: named('deliverable'), pollers: named('polling'), finalResult }
    this.#traits.set(seen, traits)
    return traits
  }

  /** What stands before the conversation: as the run froze it, or as the run that begins just now will. */
  #baseChars(cache: SessionCache, agent: Agent): number {
    const told = this.#frozen(cache) ?? agent.tools.seen
    if (told === null) return agent.instructions.length
    const known = this.#told.get(told) ?? baseOf(told, agent)
    this.#told.set(told, known)
    return known
  }

  /** A tool that came while the run was open is unknown to it. */
  #offered(frame: FrozenRun, tools: Tools): Tools {
    const known = this.#offers.get(frame)
    if (known?.of === tools) return known.offered
    const offered = new Map([...tools].filter(([name]) => frame.definitions.has(name)))
    this.#offers.set(frame, { of: tools, offered })
    return offered
  }

  /** Expiry is seen by the attempt and by the store: a question must be open for both. */
  #asking({ approvalMs, policy, environment, model }: Agent, cache: SessionCache): Asking {
    const { store, redactor } = this.#services
    const verbatim = isPriced(model) && model.verbatim === true
    return {
      now: Math.max(store.now(), cache.now()),
      approvalMs,
      policy,
      environment,
      redactor,
      verbatim,
      denied: cache.session.run?.said?.denied ?? NONE_DENIED,
    }
  }

  #frozen(cache: SessionCache): FrozenRun | null {
    return cache.frame !== null && cache.frame.run === cache.session.run?.seq ? cache.frame.frame : null
  }

  async #freeze(cache: SessionCache): Promise<FrozenRun> {
    const { run } = cache.session
    assert(run, 'an effect outside of a run')
    const frame = await this.#frames.of(run.toolset, run.instructions)
    cache.frame = { run: run.seq, frame }
    return frame
  }

  /** Most turns never need it, so it is loaded by the first that does. */
  async #failed(cache: SessionCache, failure: ModelFailure, during: FailedCall): Promise<Landing> {
    const { failedCall } = await import('./model-failure.ts')
    return { events: [await failedCall(this.#services, cache, failure, during)] }
  }

  /** The last word before a call starts: it lands as the call's intent, or as a denial, and so it is asked for once. */
  async #clear(cache: SessionCache, effect: Extract<Effect, { type: 'run' }>, flight: FlightContext): Promise<Landing> {
    const { call } = effect
    const { hooks, agent: agentOf } = this.#services
    const { key, proposal } = call
    const agent = agentOf(cache.session.agent)
    const denied = this.#secondLook(agent, proposal)
    if (denied !== null) return { events: [refused(key, 'denied', denied)] }
    if (proposal.digest !== undefined) {
      const again = await this.#elsewhere(cache, agent, call, flight)
      if (again) return again
    }
    const child = outsideOf(proposal)?.child
    const at = { session: cache.id, agent: agent.name, call: key, tool: proposal.tool, args: cloneJson(proposal.args) }
    let dropped = false
    // Once it was not ours it stays so, lest a hook be passed over.
    const wanted = (): boolean => {
      dropped ||= !flight.clear()
      return !dropped
    }
    try {
      const tool = (await hooks?.held('before_tool_call', at, wanted)) ?? null
      if (tool !== null) return { events: [heldBack(key, tool, false)] }
      const run = child === undefined ? null : await hooks?.held('before_subagent_run', { ...at, child }, wanted)
      if (typeof run === 'string') return { events: [heldBack(key, run, true)] }
    } catch (error) {
      if (!(error instanceof HookFailed)) throw error
      return { events: [{ ...refused(key, 'error', error.message), ends: error.message }] }
    }
    // Asked for longer than it may be, and let go at last: it would be asked again and again.
    if (flight.reason === 'timeout') return abandon(effect, flight.reason, false)
    // The word is kept also where the lease is in doubt: it starts nothing, and the commit finds out.
    return dropped || flight.reason !== null ? { events: [] } : { events: [intentOf(call)] }
  }

  async #review(
    cache: SessionCache,
    effect: Extract<Effect, { type: 'review' }>,
    flight: FlightContext,
  ): Promise<Landing> {
    const { reviewRun } = await import('./review.ts')
    const asking = this.#asking(this.#services.agent(cache.session.agent), cache)
    return reviewRun({ services: this.#services, preparer: this.#preparer, asking }, effect, cache, flight)
  }

  /** It was approved for another place than it would act in now: that was no yes to this, so it is asked again. */
  async #elsewhere(cache: SessionCache, agent: Agent, call: Call, flight: FlightContext): Promise<Landing | null> {
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const { tool: name, place, sequential = false } = call.proposal
    const tool = tools.get(name)
    if (!tool || placeOf(tool, agent.environment) === place) return null
    const { reviewCall } = await import('./review.ts')
    const admitting: Admitting = { services: this.#services, agent, cache, tools, allow: 'all', flight }
    return { events: [await reviewCall(admitting, this.#asking(agent, cache), call, sequential)] }
  }

  /** The policy as it is now may say more no's than when the call was admitted, and nothing else. */
  #secondLook({ policy, environment }: Agent, { tool, args, effect, gate }: Proposal): string | null {
    const action = { tool, args, effect, approval: 'auto', ...(environment === null ? {} : { environment }) } as const
    // A person has said yes: that no person can be asked here is no reason any more.
    const judged = judge(gate?.type === 'ask' ? { ...policy, onAsk: 'park' } : policy, action)
    return judged.type === 'deny' ? judged.reason : null
  }

  async #run(cache: SessionCache, effect: Extract<Effect, { type: 'run' }>, flight: FlightContext): Promise<Landing> {
    const { call, mode } = effect
    const agent = this.#services.agent(cache.session.agent)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const tool = tools.get(call.proposal.tool)
    const frame = this.#frozen(cache) ?? (await this.#freeze(cache))
    if (!tool || frame.definitions.get(tool.name) !== tool.definition) {
      const what = tool ? 'has changed' : 'is no longer there'
      return {
        events: [refused(call.key, 'error', `ToolChanged: tool "${call.proposal.tool}" ${what} since this run began.`)],
      }
    }
    const { digest, args: approved, place } = call.proposal
    if (digest !== undefined) {
      const moved = placeOf(tool, agent.environment) !== place
      const wrong = moved ? 'the place it would act in is not the one' : 'its arguments are not those'
      if (moved || digest !== digestOf(tool, approved, place))
        return { events: [refused(call.key, 'error', `Not run: ${wrong} that ${moved ? 'was' : 'were'} approved.`)] }
    }
    if (!flight.clear()) return abandon(effect, flight.reason ?? 'lost', false)
    const context = new ToolRunContext(this.#services, cache.id, call, flight, tool.secrets)
    context.paidBy(cache, this)
    context.tools = this.#offered(frame, tools)
    const args = cloneJson(approved)
    const leave = this.#services.watchdog?.enter({ tool: tool.name, call: call.key, session: cache.id })
    const done = await (mode === 'execute' ? execute(tool, args, context) : reconcile(tool, args, context))
    leave?.()
    const settled = this.#done(cache, effect, { done, context, flight })
    const landing = settled instanceof Promise ? await settled : settled
    // The attempt that is asked about may have asked models too.
    if (context.door === null && mode === 'execute') return landing
    return paidFor(landing, cache.id, call.key, context.door?.spent ?? null)
  }

  /** What came of a call that ran. A promise only if hooks have a say on it. */
  #done(cache: SessionCache, effect: Extract<Effect, { type: 'run' }>, ran: Ran): Landing | Promise<Landing> {
    const { done, context, flight } = ran
    const { call } = effect
    if (done.type === 'undecided') return { events: [unknown(call.key)] }
    const { hooks, redactor } = this.#services
    const hooked = hooks?.has('after_tool_call', this.#services.agent(cache.session.agent).name, call.proposal.tool)
    if (done.type === 'failed' && flight.reason !== null) {
      const stopped = abandon(effect, flight.reason, true)
      // A tool that says what it had done when it was stopped is quoted, unless a hook must see that first.
      const quoted = done.kind === 'Interrupted' && !hooked
      return quoted ? stoppedResult(stopped, resultOf(call, done, context.kept, { redactor, context })) : stopped
    }
    if (!hooks || !hooked) return resultOf(call, done, context.kept, { redactor, context })
    if (flight.reason !== null) return resultOf(call, { ...done, output: WITHHELD }, [], { redactor, context })
    return this.#seen(cache, call, { done, context, flight }, hooks)
  }

  /** After the hooks that see a result before anybody else does. */
  async #seen(cache: SessionCache, call: Call, { done, context, flight }: Ran<Ended>, hooks: Hooks): Promise<Landing> {
    const { redactor, agent } = this.#services
    const withheld = { ...done, output: WITHHELD }
    const { tool, args } = call.proposal
    const at = { session: cache.id, agent: agent(cache.session.agent).name, call: call.key, tool, args }
    try {
      const said = await inTime(hooks.rewritten(at, done.output), flight, WITHHELD)
      // A hook has its say on the result. What the call adds beside it stands, unless its result is withheld.
      const { follows } = done.output
      const output = follows && said !== WITHHELD ? { ...said, follows } : said
      return resultOf(call, { ...done, output }, context.kept, { redactor, context })
    } catch (error) {
      if (!(error instanceof HookFailed)) throw error
      const { events } = resultOf(call, withheld, [], { redactor, context })
      return { events: events.map((event) => ({ ...event, ends: error.message }) as OwnerBody) }
    }
  }
}

type Ended = Exclude<Done, { type: 'undecided' }>
type Ran<As extends Done = Done> = {
  readonly done: As
  readonly context: ToolRunContext
  readonly flight: FlightContext
}

const UNPRICED = new SpendingLimits('', {}, null)
const NO_TRAITS: Traits = { writers: new Set(), pollers: new Set(), finalResult: false }
function baseOf(told: FrozenRun | Tools, { instructions, output }: Agent): number {
  const asked = output?.asked ? JSON.stringify(output.asked.schema).length : 0
  if ('definitions' in told) return asked + told.instructions.length + JSON.stringify(told.tools).length
  const tools = [...told.values()].map(({ name, description, parameters, instructions: said }) => {
    return name.length + description.length + JSON.stringify(parameters).length + said.length
  })
  return tools.reduce((sum, chars) => sum + chars, asked + instructions.length)
}

/** What a run needs is away: the request waits for it as for a provider. */
function awayOf(error: unknown): ModelFailure {
  if (!isPassing(error)) throw error
  return { type: 'failure', class: 'other', message: messageIn(error), retryable: true }
}
