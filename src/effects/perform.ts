// The three effects on the world: prepare a run, call the model, run a call. What goes wrong is part of the landing.
// Nothing is decided here; admission and the verdict are recorded with the reply.
import type { Allow, Json, Proposal } from '../kernel/content.ts'
import { eventId, type OwnerBody } from '../kernel/event.ts'
import { assert } from '../kernel/failure.ts'
import { type Call, intentOf, outsideOf } from '../kernel/ledger.ts'
import { CUTS_MAX, triedMs } from '../kernel/limits.ts'
import type { Effect } from '../kernel/next.ts'
import type { Charge, ModelFailure, Reply, Request } from '../kernel/ports.ts'
import { project } from './request.ts'
import { refused, unknown } from '../kernel/result.ts'
import { RETRY_MS_MAX } from '../models/http/failures.ts'
import { isPriced, type Priced } from '../models/http/hosted.ts'
import { judgeOutput } from '../models/output.ts'
import { admit, type Asking, digestOf, placeOf } from '../tools/core/admit.ts'
import { hourAccount, hourCharges, withinBudget } from '../tools/core/budget.ts'
import { judge } from '../tools/policy/policy.ts'
import { type Done, execute, reconcile } from '../tools/core/run.ts'
import { type Admitting, admitted } from './admit-reply.ts'
import type { Book } from '../engine/session-cache.ts'
import { detach } from './clone-json.ts'
import { paidFor } from '../riders/money/budgeted-model.ts'
import type { AbortReason, Fail, FlightContext, Landing, Perform } from '../engine/flights.ts'
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
import { missed, missOf, recalled, type Sent } from './prefix.ts'
import { Preparer } from './prepare.ts'
import { isPassing } from '../engine/backoff.ts'
import { CHARS_A_TOKEN, Purse, type Rate, rateOf, rootAgentOf } from '../riders/money/spending-limits.ts'
import { assumedFor, charsIn, costed } from '../riders/money/usage-estimate.ts'
import { Talk, ToolTalk } from './contexts.ts'
import type { Tools } from './toolbox.ts'
import { type Agent, type Frame, Frames, resolved, type World } from '../engine/wiring.ts'

const NONE_DENIED: readonly string[] = []
const BACKOFF_MS = 200
const BACKOFF_MS_MAX = 30_000

export class Performer {
  readonly #world: World
  readonly #frames: Frames
  readonly #preparer: Preparer
  readonly #rates = new WeakMap<Agent, Rate>()
  readonly #told = new WeakMap<object, number>()
  readonly #traits = new WeakMap<Tools, Traits>()
  readonly #offers = new WeakMap<Frame, { readonly of: Tools; readonly offered: Tools }>()

  constructor(world: World) {
    this.#world = world
    this.#frames = new Frames(world.store)
    this.#preparer = new Preparer(world)
  }

  /** The effects of one session's attempt. */
  for(book: Book): { readonly perform: Perform; readonly fail: Fail } {
    const perform: Perform = (effect, flight) => {
      if (effect.type === 'call') return this.#call(book, effect, flight)
      if (effect.type === 'prepare') return this.#preparer.prepare(effect, book, flight)
      if (effect.type === 'review') return this.#review(book, effect, flight)
      return effect.mode === 'clear' ? this.#clear(book, effect, flight) : this.#run(book, effect, flight)
    }
    const fail: Fail = (effect, error) =>
      effect.type === 'prepare' ? this.#preparer.failed(effect, book, error, PREPARE_MS) : failedLanding(effect, error)
    return { perform, fail }
  }

  async #call(book: Book, effect: Extract<Effect, { type: 'call' }>, flight: FlightContext): Promise<Landing> {
    const agent = this.#world.agent(book.session.agent)
    const frame = this.#frozen(book) ?? (await this.#freeze(book))
    const transcript = book.shown ?? (await book.transcript())
    assert(book.started, 'a model call without model.started')
    let request = project(book.id, frame, transcript, book.started)
    if (transcript.hasBlobs) request = { ...request, messages: await resolved(this.#world.store, request.messages) }
    if (agent.output?.asked) request = { ...request, output: agent.output.asked }
    // Reading took time. If the call is no longer the open one, nobody must be asked.
    if (!flight.clear() || book.session.run?.model?.seq !== effect.seq) {
      return { events: [stoppedCall(flight.reason ?? 'interrupted')] }
    }
    const talk = new Talk(this.#world, book.id, effect.seq, flight)
    // After a restart they are asked for anew, and before the model is: its answer is of no use without them.
    const tools = agent.tools.seen ?? (await agent.tools.open(flight).catch(awayOf))
    if ('type' in tools) return { events: [await this.#failed(book, request, tools, { flight, talk })] }
    const { model } = agent
    let said: Reply | ModelFailure
    try {
      said = await model.call(request, talk)
    } catch (error) {
      said = { type: 'failure', class: 'other', message: messageIn(error), retryable: false }
    }
    const shown = talk.finish(said.type === 'failure' && said.partial === undefined)
    if (shown !== undefined && said.type === 'failure') said = { ...said, partial: shown }
    if (said.type === 'failure') return { events: [await this.#failed(book, request, said, { flight, talk })] }
    const untold = said.cost === undefined && (said.usage !== null || isPriced(model))
    const answer = untold ? await costed(model, request, said) : said
    const { messages } = transcript
    const miss = isPriced(model)
      ? await this.#missed(book, { frame, messages, answer, model, allow: request.allow })
      : undefined
    const offered = this.#offered(frame, tools)
    const proposed = admit(answer.calls, offered, this.#asking(agent, book))
    const read = proposed instanceof Promise ? await proposed : proposed
    const whole =
      answer.finish === 'length' ? read.map((call, i) => uncut(call, answer.calls[i]?.args ?? '', answer.usage)) : read
    const { planner, output } = agent
    const judged = planner
      ? planner.verdict(answer)
      : output
        ? await judgeOutput(output, answer, [...frame.definitions.keys()])
        : verdictOf(answer, frame)
    const admitting: Admitting = { world: this.#world, agent, book, tools: offered, allow: request.allow, flight }
    const settled = admitted(admitting, whole, judged, answer)
    const { calls, verdict, nudge } = settled instanceof Promise ? await settled : settled
    const { actionsPerHour, asksPerHour } = agent.policy
    const message = messageOf(answer, calls, verdict, miss)
    if (nudge !== undefined) return { events: [message, { type: 'note.added', kind: 'nudge', text: nudge }] }
    if ((actionsPerHour === undefined && asksPerHour === undefined) || calls.length === 0) return { events: [message] }
    return this.#budgeted(message, agent, book, effect.seq)
  }

  /** Did this request begin with the bytes of the one before? Only models that are paid for have a cache worth watching. */
  async #missed(
    book: Book,
    {
      frame,
      messages,
      answer,
      model,
      allow,
    }: Pick<Sent, 'frame' | 'messages'> & { readonly answer: Reply; readonly model: Priced; readonly allow: Allow },
  ): Promise<Json | undefined> {
    const { route, usage } = answer
    // Whoever spoke before may have been asked by another process.
    const spoke = messages.some((message) => message.role === 'assistant')
    const sent =
      book.sent ?? (spoke ? await recalled(this.#world.store, book.id, book.session.seq, this.#frames) : null)
    // A copy: a compaction changes the list itself.
    const barred = model.choiceCached ? allow === 'none' : null
    const now = { frame, messages: messages.slice(), route, barred }
    book.sent = { ...now, inputTokens: usage?.inputTokens ?? 0 }
    const miss = sent && missOf(sent, now)
    return miss ? missed(miss, sent, (await model.profile()).price) : undefined
  }

  /** What acts, and what is asked, is counted in the same commit as the reply that wants it. A child counts as its root does. */
  async #budgeted(message: Message, { policy }: Agent, book: Book, seq: number): Promise<Landing> {
    const { store } = this.#world
    const agent = await rootAgentOf(book.session, store)
    const now = store.now()
    const budgets = (['asks', 'actions'] as const).flatMap((of) => {
      const perHour = of === 'asks' ? policy.asksPerHour : policy.actionsPerHour
      const place = { account: hourAccount(of, agent, now), key: `${eventId(book.id, seq)}:${of}` }
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
  async purse(book: Book): Promise<Purse> {
    const { agent } = book.session
    return agent === '' || this.#world.agent(agent).planner ? UNPRICED : this.allowance(book)
  }

  /** What its tools may spend. Only with a budget does anything have to be found out for it. */
  async allowance(book: Book): Promise<Purse> {
    const agent = this.#world.agent(book.session.agent)
    if (agent.budget === null) return UNPRICED
    await book.count()
    const rate = this.#rates.get(agent) ?? (await rateOf(agent.model))
    this.#rates.set(agent, rate)
    const { session } = book
    if (session.run && !this.#frozen(book)) await this.#freeze(book)
    const payer = await rootAgentOf(session, this.#world.store)
    return new Purse(payer, agent.budget, { ...rate, baseChars: () => this.#baseChars(book, agent) })
  }

  /** What the guard must know of an agent's tools. The same object while they are the same. */
  traits(name: string): Traits {
    if (name === '') return NO_TRAITS
    const { tools, output } = this.#world.agent(name)
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
  #baseChars(book: Book, agent: Agent): number {
    const told = this.#frozen(book) ?? agent.tools.seen
    if (told === null) return agent.instructions.length
    const known = this.#told.get(told) ?? baseOf(told, agent)
    this.#told.set(told, known)
    return known
  }

  /** A tool that came while the run was open is unknown to it. */
  #offered(frame: Frame, tools: Tools): Tools {
    const known = this.#offers.get(frame)
    if (known?.of === tools) return known.offered
    const offered = new Map([...tools].filter(([name]) => frame.definitions.has(name)))
    this.#offers.set(frame, { of: tools, offered })
    return offered
  }

  /** Expiry is seen by the attempt and by the store: a question must be open for both. */
  #asking({ approvalMs, policy, environment, model }: Agent, book: Book): Asking {
    const { store, redactor } = this.#world
    const verbatim = isPriced(model) && model.verbatim === true
    return {
      now: Math.max(store.now(), book.now()),
      approvalMs,
      policy,
      environment,
      redactor,
      verbatim,
      denied: book.session.run?.said?.denied ?? NONE_DENIED,
    }
  }

  #frozen(book: Book): Frame | null {
    return book.frame !== null && book.frame.run === book.session.run?.seq ? book.frame.frame : null
  }

  async #freeze(book: Book): Promise<Frame> {
    const { run } = book.session
    assert(run, 'an effect outside of a run')
    const frame = await this.#frames.of(run.toolset, run.instructions)
    book.frame = { run: run.seq, frame }
    return frame
  }

  /** Whoever was stopped, or had begun to answer, has worked, and it is nowhere said for how much. */
  async #failed(
    book: Book,
    request: Request,
    failure: ModelFailure,
    { flight: { reason }, talk: { spoke } }: { readonly flight: FlightContext; readonly talk: Talk },
  ): Promise<Failed> {
    const failed = await this.#failure(failure, book, { reason, spoke, chars: () => charsIn(request) })
    if (failure.unasked || (reason === null && !spoke && failure.class !== 'timeout')) return failed
    const { model } = this.#world.agent(book.session.agent)
    return { ...failed, ...(await assumedFor(model, request, failed.partial?.length ?? 0)) }
  }

  async #failure(
    failure: ModelFailure,
    book: Book,
    { reason, spoke, chars }: { reason: AbortReason | null; spoke: boolean; chars: () => number },
  ): Promise<Failed> {
    const { retryAfterMs, unasked } = failure
    // Present whenever an answer had begun: empty if nothing of it was text.
    const partial = failure.partial ?? (spoke || failure.broken ? '' : undefined)
    const { failures = 0, limits = null, model = null, waitedMs = 0, cuts = 0 } = book.session.run ?? {}
    const now = book.now()
    const stopped = reason && stoppedCall(reason, { elapsedMs: now - (model?.at ?? now), partial })
    // Its time is over: that is one more try that failed. Whoever else stopped it wants no other.
    if (stopped && reason !== 'timeout') return stopped
    const said =
      failure.class === 'overflow' ? await this.#full(failure, book, chars()) : failure.message || failure.class
    const {
      class: kind,
      message,
      retryable,
    } = stopped || { class: failure.class, message: said, retryable: failure.retryable }
    const failed = {
      type: 'model.failed',
      class: kind,
      message,
      ...(partial === undefined ? {} : { partial }),
    } as const
    if (!retryable || limits === null) return { ...failed, retryable: false }
    const tries = failures + (unasked ? 0 : 1)
    const usedMs = waitedMs + triedMs({ limits }, model?.at ?? now, now)
    const leftMs = (limits.patienceMs ?? Number.POSITIVE_INFINITY) - usedMs
    const often = tries >= (limits.modelAttempts ?? Number.POSITIVE_INFINITY)
    const cut = partial !== undefined && cuts + 1 >= CUTS_MAX
    // Nothing is tried again, so the end of the run names its cause.
    // A model of the user's own may say anything.
    const askedMs = retryAfterMs !== undefined && retryAfterMs > 0 ? Math.min(retryAfterMs, RETRY_MS_MAX) : 0
    if (often || cut || leftMs <= 0 || askedMs > leftMs) {
      const until =
        askedMs > leftMs ? ` The provider is to be asked again at ${new Date(now + askedMs).toISOString()}.` : ''
      const after = `Given up after ${tries === 1 ? '1 try' : `${tries} tries`}.`
      return { ...failed, message: `${message}${until} ${after}`, retryable: false }
    }
    // Sessions that failed at the same moment try again one after the other, and none before the provider said.
    const backoff = Math.max(askedMs, Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** Math.min(failures, 20)))
    const jitter = (Math.min(backoff, BACKOFF_MS_MAX) * this.#world.random.fraction()) / 4
    const wait = Math.min(leftMs, backoff + jitter)
    return { ...failed, retryable: true, retryAt: now + Math.ceil(wait), ...(unasked ? { unasked } : {}) }
  }

  /** Nothing is cut silently: whoever looks is told how full it is, and what can be done. */
  async #full(failure: ModelFailure, book: Book, chars: number): Promise<string> {
    const { model } = this.#world.agent(book.session.agent)
    const tokens = Math.ceil(chars / CHARS_A_TOKEN)
    const most = isPriced(model) ? ` of ${(await model.profile()).contextTokens}` : ''
    return `The context is full: about ${tokens}${most} tokens. Fork the session from an earlier event, or go on with a model that takes more. (${failure.message})`
  }

  /** The last word before a call starts: it lands as the call's intent, or as a denial, and so it is asked for once. */
  async #clear(book: Book, effect: Extract<Effect, { type: 'run' }>, flight: FlightContext): Promise<Landing> {
    const { call } = effect
    const { hooks, agent: agentOf } = this.#world
    const { key, proposal } = call
    const agent = agentOf(book.session.agent)
    const denied = this.#secondLook(agent, proposal)
    if (denied !== null) return { events: [refused(key, 'denied', denied)] }
    if (proposal.digest !== undefined) {
      const again = await this.#elsewhere(book, agent, call, flight)
      if (again) return again
    }
    const child = outsideOf(proposal)?.child
    const at = { session: book.id, agent: agent.name, call: key, tool: proposal.tool, args: detach(proposal.args) }
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

  async #review(book: Book, effect: Extract<Effect, { type: 'review' }>, flight: FlightContext): Promise<Landing> {
    const { reviewRun } = await import('./review.ts')
    const asking = this.#asking(this.#world.agent(book.session.agent), book)
    return reviewRun({ world: this.#world, preparer: this.#preparer, asking }, effect, book, flight)
  }

  /** It was approved for another place than it would act in now: that was no yes to this, so it is asked again. */
  async #elsewhere(book: Book, agent: Agent, call: Call, flight: FlightContext): Promise<Landing | null> {
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const { tool: name, place, sequential = false } = call.proposal
    const tool = tools.get(name)
    if (!tool || placeOf(tool, agent.environment) === place) return null
    const { reviewCall } = await import('./review.ts')
    const admitting: Admitting = { world: this.#world, agent, book, tools, allow: 'all', flight }
    return { events: [await reviewCall(admitting, this.#asking(agent, book), call, sequential)] }
  }

  /** The policy as it is now may say more no's than when the call was admitted, and nothing else. */
  #secondLook({ policy, environment }: Agent, { tool, args, effect, gate }: Proposal): string | null {
    const action = { tool, args, effect, approval: 'auto', ...(environment === null ? {} : { environment }) } as const
    // Whoever was asked about it said yes: that nobody can be asked here is no reason any more.
    const judged = judge(gate?.type === 'ask' ? { ...policy, onAsk: 'park' } : policy, action)
    return judged.type === 'deny' ? judged.reason : null
  }

  async #run(book: Book, effect: Extract<Effect, { type: 'run' }>, flight: FlightContext): Promise<Landing> {
    const { call, mode } = effect
    const agent = this.#world.agent(book.session.agent)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const tool = tools.get(call.proposal.tool)
    const frame = this.#frozen(book) ?? (await this.#freeze(book))
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
    const context = new ToolTalk(this.#world, book.id, call, flight, tool.secrets)
    context.paidBy(book, this)
    context.tools = this.#offered(frame, tools)
    const args = detach(approved)
    const leave = this.#world.watchdog?.enter({ tool: tool.name, call: call.key, session: book.id })
    const done = await (mode === 'execute' ? execute(tool, args, context) : reconcile(tool, args, context))
    leave?.()
    const settled = this.#done(book, effect, { done, context, flight })
    const landing = settled instanceof Promise ? await settled : settled
    // The attempt that is asked about may have asked models too.
    if (context.door === null && mode === 'execute') return landing
    return paidFor(landing, book.id, call.key, context.door?.spent ?? null)
  }

  /** What came of a call that ran. A promise only if hooks have a say on it. */
  #done(book: Book, effect: Extract<Effect, { type: 'run' }>, ran: Ran): Landing | Promise<Landing> {
    const { done, context, flight } = ran
    const { call } = effect
    if (done.type === 'undecided') return { events: [unknown(call.key)] }
    const { hooks, redactor } = this.#world
    const hooked = hooks?.has('after_tool_call', this.#world.agent(book.session.agent).name, call.proposal.tool)
    if (done.type === 'failed' && flight.reason !== null) {
      const stopped = abandon(effect, flight.reason, true)
      // A tool that says what it had done when it was stopped is quoted, unless a hook must see that first.
      const quoted = done.kind === 'Interrupted' && !hooked
      return quoted ? stoppedResult(stopped, resultOf(call, done, context.kept, { redactor, context })) : stopped
    }
    if (!hooks || !hooked) return resultOf(call, done, context.kept, { redactor, context })
    if (flight.reason !== null) return resultOf(call, { ...done, output: WITHHELD }, [], { redactor, context })
    return this.#seen(book, call, { done, context, flight }, hooks)
  }

  /** After the hooks that see a result before anybody else does. */
  async #seen(book: Book, call: Call, { done, context, flight }: Ran<Ended>, hooks: Hooks): Promise<Landing> {
    const { redactor, agent } = this.#world
    const withheld = { ...done, output: WITHHELD }
    const { tool, args } = call.proposal
    const at = { session: book.id, agent: agent(book.session.agent).name, call: call.key, tool, args }
    try {
      const said = await inTime(hooks.rewritten(at, done.output), flight, WITHHELD)
      // A hook has its say on the result. What the call adds beside it stands, unless nobody may see what it did.
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

type Failed = Extract<OwnerBody, { type: 'model.failed' }>
type Ended = Exclude<Done, { type: 'undecided' }>
type Ran<As extends Done = Done> = {
  readonly done: As
  readonly context: ToolTalk
  readonly flight: FlightContext
}

const UNPRICED = new Purse('', {}, null)
const NO_TRAITS: Traits = { writers: new Set(), pollers: new Set(), finalResult: false }
function baseOf(told: Frame | Tools, { instructions, output }: Agent): number {
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
