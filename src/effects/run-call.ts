// The third effect: run a call. Asked first whether it may start (`clear`), then run, or asked what became of it after its worker was
// lost (`reconcile`). What goes wrong is part of the landing.
import type { Proposal } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'
import { type Call, intentOf } from '../kernel/ledger.ts'
import type { Effect } from '../kernel/next.ts'
import { refused, unknown } from '../kernel/result.ts'
import { digestOf, linksOf, placeOf } from '../tools/core/admit.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { realPath, spelledFrom } from '../tools/policy/links.ts'
import { type Action, judge, judgeCall, type Judgement, namesPaths, readCommands } from '../tools/policy/policy.ts'
import type { Tool } from '../tools/core/tool.ts'
import type { Output } from '../tools/core/output.ts'
import { type Done, execute, reconcile } from '../tools/core/run.ts'
import { ROUTED_BYTES_MIN, STAGES } from '../context/juice/marker.ts'
import type { FlightContext, Landing } from '../engine/flights.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { type Agent, agentFor, type Services, type Shortening } from '../engine/wiring.ts'
import { HookFailed, type Hooks } from '../riders/hooks/hooks.ts'
import type { Allowances } from '../riders/money/allowance.ts'
import { type Admitting, isForChildren, startedBy } from './admit-reply.ts'
import { askingFor } from './call-model.ts'
import { cloneJson } from './clone-json.ts'
import { ToolRunContext } from './contexts.ts'
import type { FrozenRuns } from './frozen-run.ts'
import { aboutTool, type Tools } from './toolbox.ts'
import { abandon, heldBack, inTime, messageIn, resultOf, stoppedResult, WITHHELD } from './outcomes.ts'

type Run = Extract<Effect, { type: 'run' }>

/** It was admitted, and the policy says no by now. */
const DENIED_NOW = { error_type: 'DeniedByPolicy' } as const

export class CallRunner {
  readonly #services: Services
  readonly #frozen: FrozenRuns
  readonly #allowances: () => Promise<Allowances>

  constructor(services: Services, frozen: FrozenRuns, allowances: () => Promise<Allowances>) {
    this.#services = services
    this.#frozen = frozen
    this.#allowances = allowances
  }

  /** The last word before a call starts: it lands as the call's intent, or as a denial, and so it is asked for once. */
  async clear(cache: SessionCache, effect: Run, flight: FlightContext): Promise<Landing> {
    const { call } = effect
    const { hooks } = this.#services
    const { key, proposal } = call
    const agent = agentFor(this.#services, cache)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const judged = await this.#secondLook(agent, proposal, tools.get(proposal.tool))
    if (judged.type === 'deny') return { events: [{ ...refused(key, 'denied', judged.reason), metadata: DENIED_NOW }] }
    if (judged.type === 'ask' || this.#isElsewhere(proposal, tools, agent))
      return this.#askAgain(cache, agent, call, flight)
    const children = new Set(startedBy(proposal))
    const missing = [...children].find((child) => !agent.children.includes(child))
    if (missing !== undefined) return { events: [refused(key, 'error', missingText(missing))] }
    const { tool: name } = proposal
    const about = aboutTool(agent.tools.seen, name)
    const at = { ...cache.place, call: key, tool: name, args: cloneJson(proposal.args), about }
    let dropped = false
    // Once it was not ours it stays so, lest a hook be passed over.
    const wanted = (): boolean => {
      dropped ||= !flight.clear()
      return !dropped
    }
    try {
      const tool = (await hooks?.held('before_tool_call', at, wanted)) ?? null
      if (tool !== null) return { events: [heldBack(key, tool, false)] }
      for (const child of children) {
        const run = (await hooks?.held('before_subagent_run', { ...at, child }, wanted)) ?? null
        if (run !== null) return { events: [heldBack(key, run, true)] }
      }
    } catch (error) {
      if (!(error instanceof HookFailed)) throw error
      return { events: [{ ...refused(key, 'error', error.message), ends: error.message }] }
    }
    // Asked for longer than it may be, and let go at last: it would be asked again and again.
    if (flight.reason === 'timeout') return abandon(effect, flight.reason, false)
    const late = isForChildren(proposal) ? await this.#tooLate(proposal) : null
    if (late !== null) return { events: [refused(key, 'denied', late)] }
    // The word is kept also where the lease is in doubt: it starts nothing, and the commit finds out.
    return dropped || flight.reason !== null ? { events: [] } : { events: [intentOf(call)] }
  }

  /** Why the subagent that a call is for cannot take it any more; null if it can. An approval may take days. */
  async #tooLate(proposal: Proposal): Promise<string | null> {
    const { tooLate } = await import('./orders.ts')
    return tooLate(this.#services.store, proposal)
  }

  /** Admits the arguments that a person gave the call. */
  async admitEdit(cache: SessionCache, { call }: Run, flight: FlightContext): Promise<Landing> {
    const agent = agentFor(this.#services, cache)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const { reviewEdit } = await import('./review.ts')
    const admitting: Admitting = { services: this.#services, agent, cache, tools, allow: 'all', flight }
    return { events: [await reviewEdit(admitting, askingFor(this.#services, agent, cache), call)] }
  }

  /** There is no yes to this call as it would run now, so a person is asked. */
  async #askAgain(cache: SessionCache, agent: Agent, call: Call, flight: FlightContext): Promise<Landing> {
    const seen = agent.tools.seen ?? (await agent.tools.open(flight))
    const { retrieve } = agent
    const tools = retrieve === undefined ? seen : new Map([...seen, [retrieve.name, retrieve] as const])
    const { sequential = false } = call.proposal
    const { reviewCall } = await import('./review.ts')
    const admitting: Admitting = { services: this.#services, agent, cache, tools, allow: 'all', flight }
    return { events: [await reviewCall(admitting, askingFor(this.#services, agent, cache), call, sequential)] }
  }

  /**
   * The policy and the tool as they are now may be stricter than when the call was admitted: they may deny it, or ask a person about a
   * call that no person has allowed yet. They never allow more.
   */
  async #secondLook({ policy, environment }: Agent, proposal: Proposal, known: Tool | undefined): Promise<Judgement> {
    const { tool, args, effect, gate } = proposal
    const action = { tool, args, effect, ...placed(environment, known) }
    // A person has said yes: that no person can be asked here is no reason any more.
    if (gate?.type === 'ask') {
      const judged = await judgeCall({ ...policy, onAsk: 'park' }, { ...action, approval: 'auto' })
      return judged.type === 'deny' ? judged : { type: 'allow' }
    }
    const approval = known ? await known.approval(args) : 'auto'
    return judgeCall(policy, { ...action, approval })
  }

  /** It was approved for another place than it would act in now, by its own word or by links: that was no yes to this. */
  #isElsewhere({ tool, args, digest, place, links }: Proposal, tools: Tools, { environment, policy }: Agent): boolean {
    const found = digest === undefined ? undefined : tools.get(tool)
    if (found === undefined) return false
    const { redactor } = this.#services
    const now = linksOf(found, args, { policy, redactor })
    return placeOf(found, environment) !== place || canonicalJson(now ?? []) !== canonicalJson(links ?? [])
  }

  async run(cache: SessionCache, effect: Run, flight: FlightContext): Promise<Landing> {
    const { call, mode } = effect
    const agent = agentFor(this.#services, cache)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const named = call.proposal.tool === agent.retrieve?.name ? agent.retrieve : undefined
    const tool = tools.get(call.proposal.tool) ?? named
    const frozen = this.#frozen.known(cache) ?? (await this.#frozen.of(cache))
    const frame = named === undefined ? frozen : this.#frozen.extended(frozen, named)
    if (!tool || frame.definitions.get(tool.name) !== tool.definition) {
      const what = tool ? 'has changed' : 'is no longer there'
      return {
        events: [refused(call.key, 'error', `ToolChanged: tool "${call.proposal.tool}" ${what} since this run began.`)],
      }
    }
    const { digest, args: approved } = call.proposal
    if (this.#isElsewhere(call.proposal, tools, agent)) return this.#askAgain(cache, agent, call, flight)
    if (digest !== undefined && digest !== digestOf(tool, call.proposal))
      return { events: [refused(call.key, 'error', 'Not run: its arguments are not those that were approved.')] }
    const context = new ToolRunContext(this.#services, cache.id, call, flight, tool.secrets)
    context.paidBy(cache, this.#allowances)
    context.tools = this.#frozen.offered(frame, tools, named)
    if (this.#services.context !== null) {
      const failed = await this.#equip(cache, context, flight)
      if (failed !== null) return { events: [refused(call.key, 'error', failed)] }
    }
    if (namesPaths(agent.policy)) context.permits = await permitsOf(agent, call.proposal, tool)
    if (!flight.clear()) return abandon(effect, flight.reason ?? 'lost', false)
    const args = cloneJson(approved)
    const leave = this.#services.watchdog?.enter({ tool: tool.name, call: call.key, session: cache.id })
    const ran = await (mode === 'execute' ? execute(tool, args, context) : reconcile(tool, args, context))
    leave?.()
    context.finish()
    if (ran.type === 'failed' && ran.asks) return this.#askAgain(cache, agent, call, flight)
    const done = ran.type === 'ok' && ran.output.parts ? await this.#attached(ran, context) : ran
    const settled = this.#done(cache, effect, { done, context, flight })
    const landing = settled instanceof Promise ? await settled : settled
    // The attempt that is asked about may have asked models too.
    if (!context.asked && mode === 'execute') return landing
    const { paidFor } = await import('../riders/money/budgeted-model.ts')
    return paidFor(landing, cache.id, call.key, context.spent)
  }

  /** With its pictures and files beside the log. Few results have any, so this is loaded by the first that does. */
  async #attached(ran: Extract<Done, { type: 'ok' }>, context: ToolRunContext): Promise<Done> {
    const { attached } = await import('./kept-files.ts')
    const { redactor, store } = this.#services
    const keeping = { redactor, store, session: context.session, kept: context.kept }
    const output = await attached(ran.output, keeping)
    context.kept = keeping.kept
    return { ...ran, output }
  }

  /** Gives the handler what the host's `context` built. Why not, if that failed: the handler then does not run. */
  async #equip(cache: SessionCache, context: ToolRunContext, flight: FlightContext): Promise<string | null> {
    const { AttemptContext } = await import('./attempt-context.ts')
    cache.context ??= new AttemptContext(this.#services, cache)
    try {
      context.deps = await inTime(cache.context.deps(), flight, undefined)
      return flight.reason === 'timeout' ? 'Not run: the context of this tool was not built in time.' : null
    } catch (error) {
      return `Not run: the context of this tool could not be built (${messageIn(error)}).`
    }
  }

  /** What came of a call that ran. A promise only if hooks have a say on it. */
  #done(cache: SessionCache, effect: Run, ran: Ran): Landing | Promise<Landing> {
    const { done, context, flight } = ran
    const { call } = effect
    if (done.type === 'undecided') return { events: [unknown(call.key)] }
    const { hooks, redactor } = this.#services
    const hooked = hooks?.has('after_tool_call', cache.session.agent, call.proposal.tool)
    if (done.type === 'failed' && flight.reason !== null) {
      const stopped = abandon(effect, flight.reason, true)
      // A tool that says what it had done when it was stopped is quoted, unless a hook must see that first.
      const quoted = done.kind === 'Interrupted' && !hooked
      return quoted ? stoppedResult(stopped, resultOf(call, done, context.kept, { redactor, context })) : stopped
    }
    if (!hooks || !hooked) return this.#result(cache, call, ran as Ran<Ended>)
    if (flight.reason !== null) return resultOf(call, { ...done, output: WITHHELD }, [], { redactor, context })
    return this.#seen(cache, call, { done, context, flight }, hooks)
  }

  /** A promise only if this result may be made shorter. */
  #result(cache: SessionCache, call: Call, ran: Ran<Ended>): Landing | Promise<Landing> {
    const { redactor } = this.#services
    const { done, context } = ran
    const agent = agentFor(this.#services, cache)
    if (agent.shortening === undefined || isSmall(done.output, agent.shortening))
      return resultOf(call, done, context.kept, { redactor, context })
    return this.#shorter(cache, agent, agent.shortening, call, ran)
  }

  async #shorter(cache: SessionCache, agent: Agent, by: Shortening, call: Call, ran: Ran<Ended>): Promise<Landing> {
    const { shorterResult } = await import('./results/shorter-result.ts')
    const services = this.#services
    const { redactor } = services
    const { done, context, flight } = ran
    const redacted = { ...done.output, content: redactor.text(done.output.content) }
    const fresh = { services, cache, agent, call, output: redacted, context, flight }
    const { output, original } = await shorterResult(fresh, by)
    const kept = original === null ? context.kept : [...context.kept, original]
    return resultOf(call, { ...done, output }, kept, { redactor, context })
  }

  /** After the hooks that see a result before it is written down. */
  async #seen(cache: SessionCache, call: Call, { done, context, flight }: Ran<Ended>, hooks: Hooks): Promise<Landing> {
    const { redactor } = this.#services
    const withheld = { ...done, output: WITHHELD }
    const { tool, args } = call.proposal
    const { tools } = agentFor(this.#services, cache)
    const at = { ...cache.place, call: call.key, tool, args, about: aboutTool(tools.seen, tool) }
    try {
      const said = await inTime(hooks.rewritten(at, done.output), flight, WITHHELD)
      // A hook has its say on the result. What the call adds beside it stands, unless its result is withheld.
      const { follows } = done.output
      const output = follows && said !== WITHHELD ? { ...said, follows } : said
      return await this.#result(cache, call, { done: { ...done, output }, context, flight })
    } catch (error) {
      if (!(error instanceof HookFailed)) throw error
      const { events } = resultOf(call, withheld, [], { redactor, context })
      return { events: events.map((event) => ({ ...event, ends: error.message }) as OwnerBody) }
    }
  }
}

/** Too small for all that makes results shorter, which is then not loaded. What only they may say of a result, they take out. */
function isSmall({ content, metadata }: Output, { fromBytes, summarize }: Shortening): boolean {
  const least = summarize === undefined ? (fromBytes ?? ROUTED_BYTES_MIN) : ROUTED_BYTES_MIN
  // A character has at most three bytes: those of most results need not be counted.
  const isBelow = content.length * 3 < least || Buffer.byteLength(content) < least
  return isBelow && !STAGES.some((stage) => stage in metadata)
}

/** The harness that it goes on in has other agents than the one that made the call. */
function missingText(child: string): string {
  return `There is no agent "${child}" here any more. Do the task yourself, or choose another.`
}

/** What the rules say of a call that uses the file at this path, however it got there. What they deny to `read` no tool shows. */
async function permitsOf(
  { policy, environment }: Agent,
  { tool, args, effect, gate }: Proposal,
  known: Tool,
): Promise<NonNullable<ToolRunContext['permits']>> {
  const approved = gate?.type === 'ask'
  const approval = approved ? 'auto' : await known.approval(args)
  const action: Action = { tool, args, effect, approval, ...placed(environment, known) }
  const reading: Action = { ...action, tool: 'read', args: {}, approval: 'auto' }
  const rules = approved ? { ...policy, onAsk: 'park' as const } : policy
  const root = action.root ?? policy.base ?? process.cwd()
  const readings = await readCommands(policy, args)
  return (path) => {
    const links = [path, realPath(root, path) ?? path].map((one) => spelledFrom(root, one))
    const said = [action, ...(effect === 'read' ? [reading] : [])].map(
      (each) => judge(rules, { ...each, links }, readings).type,
    )
    if (said.includes('deny')) return 'deny'
    return said.includes('ask') && !approved ? 'ask' : 'allow'
  }
}

/** Where a call is judged: the harness's name for that, and where the tool's relative paths start. */
function placed(environment: string | null, tool: Tool | undefined): Pick<Action, 'environment' | 'root'> {
  return {
    ...(environment === null ? {} : { environment }),
    ...(tool?.root === undefined ? {} : { root: tool.root }),
  }
}

type Ended = Exclude<Done, { type: 'undecided' }>
type Ran<As extends Done = Done> = {
  readonly done: As
  readonly context: ToolRunContext
  readonly flight: FlightContext
}
