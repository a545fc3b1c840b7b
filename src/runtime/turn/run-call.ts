// The third effect: run a call. `clear` asks whether it may start, `executeTool` runs it, and `reconcileCall` asks what became
// of it after its worker was lost. Failures are part of the landing.
import type { Proposal } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import { type Call, intentOf } from '../../kernel/ledger.ts'
import type { Effect } from '../../kernel/next.ts'
import { failedResult, unknownResult } from '../../kernel/result.ts'
import { digestOf, linksOf, placeOfTool } from '../../tools/core/admit.ts'
import { canonicalJson } from '../../tools/core/canonical-json.ts'
import { realPath, realPathFromRoot } from '../../tools/policy/links.ts'
import {
  type PolicyAction,
  judge,
  judgeCall,
  type Judgement,
  namesPaths,
  readCommands,
} from '../../tools/policy/policy.ts'
import type { Tool } from '../../tools/core/tool.ts'
import { NO_OUTPUT_METADATA, type Output } from '../../tools/core/tool-output.ts'
import { type ToolRunEnd, executeTool, reconcileCall } from '../../tools/core/run-tool.ts'
import { ROUTED_BYTES_MIN, STAGES } from '../../context/compress/marker.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { whyTooLate } from '../state/children-below.ts'
import { type Agent, agentOfRun, type ResultShortening } from '../state/agent.ts'
import { HookFailed } from '../hooks/hooks.ts'
import type { RunHooks } from '../state/hook-events.ts'
import type { Allowances } from '../money/allowance.ts'
import { type ReplyAdmission, isForChildren, childrenStartedBy } from './admit-reply.ts'
import { admissionContextFor } from './call-model.ts'
import { cloneJson } from '../state/clone-json.ts'
import { ToolRunContext } from './call-context.ts'
import { reviewCall, reviewEdit } from './review-run.ts'
import { storeAttachments } from './store-files.ts'
import { AttemptContext } from './tool-deps.ts'
import type { FrozenRuns } from '../state/frozen-run.ts'
import { aboutTool, type Tools } from '../state/toolbox.ts'
import { thrownText } from '../../view/shown-text.ts'
import {
  landAbandoned,
  heldBackResult,
  raceDeadline,
  landToolResult,
  mergeStoppedResult,
  WITHHELD,
} from './landings.ts'

type RunEffect = Extract<Effect, { type: 'run' }>

/** The call was admitted, but the policy denies it by now. */
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

  /** The last check before a call starts. It lands as the call's intent or as a denial, so it happens only once. */
  async clear(cache: SessionCache, effect: RunEffect, flight: FlightContext): Promise<Landing> {
    const { call } = effect
    const { hooks } = this.#services
    const { key, proposal } = call
    const agent = agentOfRun(this.#services, cache)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const judged = await this.#secondLook(agent, proposal, tools.get(proposal.tool))
    if (judged.type === 'deny')
      return { events: [{ ...failedResult(key, 'denied', judged.reason), metadata: DENIED_NOW }] }
    if (judged.type === 'ask' || this.#isElsewhere(proposal, tools, agent))
      return this.#askAgain(cache, agent, call, flight)
    const children = new Set(childrenStartedBy(proposal))
    const { starts } = tools.get(proposal.tool) ?? {}
    const missing = [...children].find((child) => child !== starts && !agent.children.includes(child))
    if (missing !== undefined) return { events: [failedResult(key, 'error', missingAgentText(missing))] }
    const { tool: name } = proposal
    const about = aboutTool(agent.tools.seen, name)
    const at = { ...cache.runIdentity, call: key, tool: name, args: cloneJson(proposal.args), about }
    let dropped = false
    // Once the flight was not clear, the check stays dropped, so that no hook is passed over.
    const wanted = (): boolean => {
      dropped ||= !flight.clear()
      return !dropped
    }
    try {
      const tool = (await hooks?.whyCancelled('before_tool_call', at, wanted)) ?? null
      if (tool !== null) return { events: [heldBackResult(key, tool, false)] }
      for (const child of children) {
        const run = (await hooks?.whyCancelled('before_subagent_run', { ...at, child }, wanted)) ?? null
        if (run !== null) return { events: [heldBackResult(key, run, true)] }
      }
    } catch (error) {
      if (!(error instanceof HookFailed)) throw error
      return { events: [{ ...failedResult(key, 'error', error.message), ends: error.message }] }
    }
    // The check took too long and its flight was let go. Without a denial it would be asked again and again.
    if (flight.reason === 'timeout') return landAbandoned(effect, flight.reason, false)
    // An approval may take days: the subagent may no longer be able to take the order.
    const late = isForChildren(proposal) ? await whyTooLate(this.#services.store, proposal) : null
    if (late !== null) return { events: [failedResult(key, 'denied', late)] }
    // An answer is kept even while the lease is in doubt: it starts nothing, and the commit finds out.
    return dropped || flight.reason !== null ? { events: [] } : { events: [intentOf(call)] }
  }

  /** Admits the arguments that a person gave the call. */
  async admitEdit(cache: SessionCache, { call }: RunEffect, flight: FlightContext): Promise<Landing> {
    const agent = agentOfRun(this.#services, cache)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const admitting: ReplyAdmission = { services: this.#services, agent, cache, tools, allow: 'all', flight }
    return { events: [await reviewEdit(admitting, admissionContextFor(this.#services, agent, cache), call)] }
  }

  /** No approval covers this call as it would run now, so a person is asked. */
  async #askAgain(cache: SessionCache, agent: Agent, call: Call, flight: FlightContext): Promise<Landing> {
    const seen = agent.tools.seen ?? (await agent.tools.open(flight))
    const { retrieve } = agent
    const tools = retrieve === undefined ? seen : new Map([...seen, [retrieve.name, retrieve] as const])
    const { sequential = false } = call.proposal
    const admitting: ReplyAdmission = { services: this.#services, agent, cache, tools, allow: 'all', flight }
    return {
      events: [await reviewCall(admitting, admissionContextFor(this.#services, agent, cache), call, sequential)],
    }
  }

  /**
   * The current policy and tool may be stricter than when the call was admitted: they may deny it, or ask about a call
   * that no person has allowed yet. They never allow more.
   */
  async #secondLook({ policy, environment }: Agent, proposal: Proposal, known: Tool | undefined): Promise<Judgement> {
    const { tool, args, effect, gate } = proposal
    const action = { tool, args, effect, ...judgedPlace(environment, known) }
    // A person has said yes, so it does not matter any more whether one can be asked here.
    if (gate?.type === 'ask') {
      const judged = await judgeCall({ ...policy, onAsk: 'park' }, { ...action, approval: 'auto' })
      return judged.type === 'deny' ? judged : { type: 'allow' }
    }
    const approval = known ? await known.approval(args) : 'auto'
    return judgeCall(policy, { ...action, approval })
  }

  /**
   * The call was approved for another place than it would act in now, by its own field or through links. That approval
   * does not count here.
   */
  #isElsewhere({ tool, args, digest, place, links }: Proposal, tools: Tools, { environment, policy }: Agent): boolean {
    const found = digest === undefined ? undefined : tools.get(tool)
    if (found === undefined) return false
    const { redactor } = this.#services
    const now = linksOf(found, args, { policy, redactor })
    return placeOfTool(found, environment) !== place || canonicalJson(now ?? []) !== canonicalJson(links ?? [])
  }

  async run(cache: SessionCache, effect: RunEffect, flight: FlightContext): Promise<Landing> {
    const { call, mode } = effect
    const agent = agentOfRun(this.#services, cache)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight))
    const named = call.proposal.tool === agent.retrieve?.name ? agent.retrieve : undefined
    const tool = tools.get(call.proposal.tool) ?? named
    const frozen = this.#frozen.known(cache) ?? (await this.#frozen.of(cache))
    const frame = named === undefined ? frozen : this.#frozen.withTool(frozen, named)
    if (!tool || frame.definitions.get(tool.name) !== tool.definition) {
      const what = tool ? 'has changed' : 'is no longer there'
      return {
        events: [
          failedResult(call.key, 'error', `ToolChanged: tool "${call.proposal.tool}" ${what} since this run began.`),
        ],
      }
    }
    const { digest, args: approved } = call.proposal
    if (digest !== undefined && this.#isElsewhere(call.proposal, tools, agent))
      return this.#askAgain(cache, agent, call, flight)
    if (digest !== undefined && digest !== digestOf(tool, call.proposal))
      return { events: [failedResult(call.key, 'error', 'Not run: its arguments are not those that were approved.')] }
    const context = new ToolRunContext(this.#services, cache.id, call, flight, tool.secrets)
    context.setPayer(cache, this.#allowances)
    context.tools = this.#frozen.offeredTools(frame, tools, named)
    if (this.#services.makeDeps !== null) {
      const failed = await this.#equip(cache, context, flight)
      if (failed !== null) return { events: [failedResult(call.key, 'error', failed)] }
    }
    const { rules, writeRoots } = agent.policy
    if ((rules.length > 0 || writeRoots) && namesPaths(agent.policy))
      context.permits = await pathPermits(agent, call.proposal, tool)
    if (!flight.clear()) return landAbandoned(effect, flight.reason ?? 'lost', false)
    const args = cloneJson(approved)
    const leave = this.#services.watchdog?.enter({ tool: tool.name, call: call.key, session: cache.id })
    const ran = await (mode === 'execute' ? executeTool(tool, args, context) : reconcileCall(tool, args, context))
    leave?.()
    context.finish()
    if (ran.type === 'failed' && ran.asks) return this.#askAgain(cache, agent, call, flight)
    const done = ran.type === 'ok' && ran.output.parts ? await this.#attached(ran, context) : ran
    const ended = { done, context, flight }
    const landing =
      this.#landedAtOnce(cache, agent, effect, ended) ??
      (await this.#processed(cache, call, ended as RanCall<EndedCall>))
    // A reconciled attempt may have asked models too.
    if (!context.asked && mode === 'execute') return landing
    const { addCallSpending } = await import('./budgeted-model.ts')
    return addCallSpending(landing, cache.id, call.key, context.spent)
  }

  /** Stores the pictures and files of a result beside the log. */
  async #attached(ran: Extract<ToolRunEnd, { type: 'ok' }>, context: ToolRunContext): Promise<ToolRunEnd> {
    const { redactor, store } = this.#services
    const keeping = { redactor, store, session: context.session, kept: context.kept }
    const output = await storeAttachments(ran.output, keeping)
    context.kept = keeping.kept
    return { ...ran, output }
  }

  /**
   * Gives the handler the value that the host's `deps` built. Returns the reason if that failed; the handler then
   * does not run.
   */
  async #equip(cache: SessionCache, context: ToolRunContext, flight: FlightContext): Promise<string | null> {
    cache.context ??= new AttemptContext(this.#services, cache)
    try {
      context.deps = await raceDeadline(cache.context.deps(), flight, undefined)
      return flight.reason === 'timeout' ? 'Not run: the context of this tool was not built in time.' : null
    } catch (error) {
      return `Not run: the context of this tool could not be built (${thrownText(error)}).`
    }
  }

  /** Lands a call that ran; null if hooks must see its result or a stage may shorten it. */
  #landedAtOnce(
    cache: SessionCache,
    { shortening }: Agent,
    effect: RunEffect,
    { done, context, flight }: RanCall,
  ): Landing | null {
    const { call } = effect
    if (done.type === 'undecided') return { events: [unknownResult(call.key)] }
    const { redactor, hooks } = this.#services
    const hooked = hooks !== null && this.#hooksFor(cache, call) !== null
    if (done.type === 'failed' && flight.reason !== null) {
      const stopped = landAbandoned(effect, flight.reason, true)
      // A stopped tool that reports what it had done is quoted, unless a hook must see that first.
      const quoted = done.kind === 'Interrupted' && !hooked
      return quoted
        ? mergeStoppedResult(stopped, landToolResult(call, done, context.kept, { redactor, context }))
        : stopped
    }
    if (hooked && flight.reason !== null)
      return landToolResult(call, { ...done, output: WITHHELD }, [], { redactor, context })
    if (hooked || (shortening !== undefined && !isSmall(done.output, shortening))) return null
    return landToolResult(call, done, context.kept, { redactor, context })
  }

  #processed(cache: SessionCache, call: Call, ran: RanCall<EndedCall>): Promise<Landing> {
    const hooks = this.#hooksFor(cache, call)
    return hooks === null ? this.#result(cache, call, ran) : this.#seen(cache, call, ran, hooks)
  }

  /** The hooks, if some of them see the result of this call before it is written. */
  #hooksFor({ session }: SessionCache, { proposal }: Call): RunHooks | null {
    const { hooks } = this.#services
    return hooks?.has('after_tool_call', session.agent, proposal.tool) ? hooks : null
  }

  async #result(cache: SessionCache, call: Call, ran: RanCall<EndedCall>): Promise<Landing> {
    const { redactor } = this.#services
    const { done, context } = ran
    const agent = agentOfRun(this.#services, cache)
    const by = shorteningFor(agent, done.output)
    return by === null
      ? landToolResult(call, done, context.kept, { redactor, context })
      : this.#shorter(cache, agent, by, call, ran)
  }

  async #shorter(
    cache: SessionCache,
    agent: Agent,
    by: ResultShortening,
    call: Call,
    ran: RanCall<EndedCall>,
  ): Promise<Landing> {
    const { shortenResult } = await import('./shorter-result.ts')
    const services = this.#services
    const { redactor } = services
    const { done, context, flight } = ran
    const redacted = { ...done.output, content: redactor.text(done.output.content) }
    const fresh = { services, cache, agent, call, output: redacted, context, flight }
    const { output, original } = await shortenResult(fresh, by)
    const kept = original === null ? context.kept : [...context.kept, original]
    return landToolResult(call, { ...done, output }, kept, { redactor, context })
  }

  /** Asks the hooks that see a result before it is written. */
  async #seen(
    cache: SessionCache,
    call: Call,
    { done, context, flight }: RanCall<EndedCall>,
    hooks: RunHooks,
  ): Promise<Landing> {
    const { redactor } = this.#services
    const withheld = { ...done, output: WITHHELD }
    const { tool, args } = call.proposal
    const { tools } = agentOfRun(this.#services, cache)
    const at = { ...cache.runIdentity, call: call.key, tool, args, about: aboutTool(tools.seen, tool) }
    try {
      const said = await raceDeadline(hooks.rewriteResult(at, done.output), flight, WITHHELD)
      // A hook changes only the result. Events that follow from the call stay, unless the result is withheld.
      const { follows } = done.output
      const output = follows && said !== WITHHELD ? { ...said, follows } : said
      return await this.#result(cache, call, { done: { ...done, output }, context, flight })
    } catch (error) {
      if (!(error instanceof HookFailed)) throw error
      const { events } = landToolResult(call, withheld, [], { redactor, context })
      return { events: events.map((event) => ({ ...event, ends: error.message }) as OwnerBody) }
    }
  }
}

/** How this result may be shortened; null if it stays as it is. */
function shorteningFor({ shortening }: Agent, output: Output): ResultShortening | null {
  return shortening === undefined || isSmall(output, shortening) ? null : shortening
}

/**
 * The result is too small for every shortening stage, so none is loaded. Metadata that only the stages may write makes
 * an exception: they remove it.
 */
function isSmall({ content, metadata }: Output, { fromBytes, summarize }: ResultShortening): boolean {
  const least = summarize === undefined ? (fromBytes ?? ROUTED_BYTES_MIN) : ROUTED_BYTES_MIN
  // A character has at most three bytes, so the bytes of most results need not be counted.
  const isBelow = content.length * 3 < least || Buffer.byteLength(content) < least
  return isBelow && (metadata === NO_OUTPUT_METADATA || !STAGES.some((stage) => stage in metadata))
}

/** The harness that continues the run has other agents than the one in which the call was made. */
function missingAgentText(child: string): string {
  return `There is no agent "${child}" here any more. Do the task yourself, or choose another.`
}

/**
 * Returns the verdict of the rules on a call that uses the file at a path, however it got there. No tool shows a file
 * that rules deny to `read`.
 */
async function pathPermits(
  { policy, environment }: Agent,
  { tool, args, effect, gate }: Proposal,
  known: Tool,
): Promise<NonNullable<ToolRunContext['permits']>> {
  const approved = gate?.type === 'ask'
  const approval = approved ? 'auto' : await known.approval(args)
  const action: PolicyAction = { tool, args, effect, approval, ...judgedPlace(environment, known) }
  const reading: PolicyAction = { ...action, tool: 'read', args: {}, approval: 'auto' }
  const rules = approved ? { ...policy, onAsk: 'park' as const } : policy
  const root = action.root ?? policy.base ?? process.cwd()
  const readings = await readCommands(policy, args)
  return (path) => {
    const links = [path, realPath(root, path) ?? path].map((one) => realPathFromRoot(root, one))
    const said = [action, ...(effect === 'read' ? [reading] : [])].map(
      (each) => judge(rules, { ...each, links }, readings).type,
    )
    if (said.includes('deny')) return 'deny'
    return said.includes('ask') && !approved ? 'ask' : 'allow'
  }
}

/** The place in which a call is judged: the name of the environment, and where the tool's relative paths start. */
function judgedPlace(environment: string | null, tool: Tool | undefined): Pick<PolicyAction, 'environment' | 'root'> {
  return {
    ...(environment === null ? {} : { environment }),
    ...(tool?.root === undefined ? {} : { root: tool.root }),
  }
}

type EndedCall = Exclude<ToolRunEnd, { type: 'undecided' }>
type RanCall<As extends ToolRunEnd = ToolRunEnd> = {
  readonly done: As
  readonly context: ToolRunContext
  readonly flight: FlightContext
}
