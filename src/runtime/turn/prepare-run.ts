// The first effect: prepare a run. It asks the sources of tools, freezes the run's setup and lands as `run.started`.
import type { Failure, Limits, Metadata } from '../../kernel/content.ts'
import type { OwnerBody, FrozenRunSetup } from '../../kernel/event.ts'
import { outageMsOf } from '../../kernel/limits.ts'
import type { Effect } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import type { Blob } from '../../ports/store.ts'
import { NO_HOOK_METADATA, type SessionCache } from '../state/session-cache.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import { HookFailed } from '../hooks/hooks.ts'
import type { RunHooks } from '../state/hook-events.ts'
import type { Allowances } from '../money/allowance.ts'
import { inputText } from '../../view/session-history.ts'
import { thrownText } from '../../view/shown-text.ts'
import { raceDeadline, PREPARE_MS, TOO_LONG } from './landings.ts'
import { originText, readOrigin } from '../state/session-origin.ts'
import { retryMs, isTemporaryError } from '../state/outages.ts'
import { type ChosenOptions, chooseRunOptions, descendantTools, pickTools } from './run-options.ts'
import type { Tools } from '../state/toolbox.ts'
import type { Services } from '../state/runtime-ports.ts'
import { type Agent, agentOfSession } from '../state/agent.ts'
import { textBlob } from '../state/content-blobs.ts'
import { choosePrefix } from './prompt-prefix.ts'
import { toolsWithin } from './narrowing.ts'
import { type FrozenRuns, toolsetBlob } from '../state/frozen-run.ts'

const FIRST_RETRY_MS = 2_000

type PrepareEffect = Extract<Effect, { type: 'prepare' }>

type FrozenSetup = {
  readonly toolset: Blob
  readonly said: string
  readonly instructions: Blob
  readonly policy: Blob | null
}

type SessionOpening = { readonly text: string; readonly model: string | null }

export class Preparer {
  readonly #services: Services
  /** Each set of tools is hashed once. A set never changes: an agent whose tools change gets another set. */
  readonly #frozen = new WeakMap<Tools, FrozenSetup>()
  /** The text about where a session was opened, and the model that a fork continues with. Neither ever changes. */
  readonly #places = new WeakMap<SessionCache, SessionOpening>()

  readonly #runs: FrozenRuns
  readonly #allowances: () => Promise<Allowances>

  constructor(services: Services, runs: FrozenRuns, allowances: () => Promise<Allowances>) {
    this.#services = services
    this.#runs = runs
    this.#allowances = allowances
  }

  async prepare(effect: PrepareEffect, cache: SessionCache, flight: FlightContext): Promise<Landing> {
    const from = cache.now()
    const { session } = cache
    let chosen: ChosenOptions = {
      ...NOTHING_CHOSEN,
      agent: agentOfSession(this.#services, session),
      metadata: session.metadata,
    }
    try {
      const { model } = await this.#placeOf(cache)
      if (model !== null || hasOwnChoice(session, effect)) {
        chosen = await chooseRunOptions(this.#services, cache, effect, model)
        if (chosen.agent.budget !== null) await (await this.#allowances()).learn(chosen.agent)
      }
      return await this.#prepare(effect, cache, flight, chosen)
    } catch (error) {
      const why = flight.reason === 'timeout' ? TOO_LONG : error
      return this.landFailure(effect, cache, why, cache.now() - from, chosen.agent)
    }
  }

  /**
   * Lands a run that could not begin. While the cause may be temporary it is deferred and tried again, for as long as
   * `outageMs`.
   */
  landFailure(
    effect: PrepareEffect,
    cache: SessionCache,
    error: unknown,
    triedMs: number,
    agent: Agent = agentOfSession(this.#services, cache.session),
  ): Landing {
    const { inputs, wakes } = effect
    const { random } = this.#services
    const why = thrownText(error)
    const passing = isTemporaryError(error)
    let message = why
    if (passing) {
      const outageMs = outageMsOf(runLimits(agent, effect, cache))
      const { tries = 0, waitedMs = 0 } = cache.session.deferred ?? {}
      const usedMs = waitedMs + Math.min(Math.max(0, triedMs), PREPARE_MS)
      const waitMs = Math.ceil(retryMs(FIRST_RETRY_MS, tries, usedMs) * (1 + random.fraction() / 4))
      if (usedMs < outageMs) {
        const wait = Math.min(waitMs, outageMs - usedMs)
        const retryAt = cache.now() + wait
        return { events: [{ type: 'run.deferred', message: why, retryAt, waitedMs: usedMs + wait }] }
      }
      const after = `Given up after ${tries === 0 ? '1 try' : `${tries + 1} tries`}.`
      message = `${why} ${after} The limit outageMs is ${outageMs} ms.`
    }
    const byHook = error instanceof HookFailed
    const reason = byHook ? 'hook_error' : 'prepare_failed'
    const kind = error === TOO_LONG ? 'Timeout' : passing ? 'Unavailable' : 'Failed'
    const outcome = { type: 'failed', reason, failure: { kind, message } } as const
    // A failed hook looked at the prompt, if there is one. The wakes then get a run of their own.
    const used = wakes.length > 0 && !(byHook && inputs.length > 0) ? { wakes: wakes.map(({ key }) => key) } : {}
    return { events: [{ type: 'run.settled', outcome, inputs, ...used }] }
  }

  async #prepare(
    effect: PrepareEffect,
    cache: SessionCache,
    flight: FlightContext,
    chosen: ChosenOptions,
  ): Promise<Landing> {
    const { agent } = chosen
    const { hooks } = this.#services
    // Sources that may be unavailable are asked first: hooks are not told of a run that cannot begin.
    const tools = await agent.tools.open(flight)
    const told = agent.planner === null && effect.wakes.length > 0 ? await this.#woken(effect, cache) : []
    const { metadata = NO_HOOK_METADATA } = chosen
    const said = hooks === null ? NOTHING : await this.#ask(hooks, effect, cache, flight, { metadata, told })
    if ('events' in said) return said
    const fresh = await this.setup(cache, tools, chosen)
    const { setup, blobs } = fresh
    const { prefix, note } = await choosePrefix({ services: this.#services, runs: this.#runs }, cache, chosen, fresh)
    const contexts = [...(note === null ? [] : [note]), ...told, ...said.contexts]
    const { inputs, wakes } = effect
    return {
      events: [
        {
          type: 'run.started',
          inputs,
          wakes: wakes.map(({ key }) => key),
          limits: runLimits(agent, effect, cache),
          ...setup,
          ...prefix,
          ...runTrace(effect, cache),
        },
        ...contexts.map((text): OwnerBody => ({ type: 'note.added', kind: 'context', text })),
      ],
      blobs,
    }
  }

  /** Builds the current setup of a run. */
  async setup(
    cache: SessionCache,
    tools: Tools,
    chosen: ChosenOptions,
  ): Promise<{ readonly setup: FrozenRunSetup; readonly blobs: Blob[] }> {
    const { agent, options, metadata } = chosen
    const { toolset, policy, ...frozen } =
      options === null ? this.#frozenBy(agent, tools) : await this.#frozenAs(chosen, tools)
    const instructions = await this.#placed(cache, frozen)
    const hashes = { toolset: toolset.hash, instructions: instructions.hash }
    const { warnings } = agent.tools
    const more = { ...(policy ? { policy: policy.hash } : {}), ...(warnings.length > 0 ? { warnings } : {}) }
    const own = { ...(options ? { options: options.hash } : {}), ...(metadata === undefined ? {} : { metadata }) }
    const setup = { ...hashes, ...more, ...own, code: this.#services.code }
    const blobs = policy ? [toolset, instructions, policy] : [toolset, instructions]
    return { setup, blobs: options ? [...blobs, options] : blobs }
  }

  /** A run that was begun by wakes and not by a message must know its purpose. */
  async #woken({ wakes }: PrepareEffect, { id }: SessionCache): Promise<readonly string[]> {
    const found = wakes.map(async ({ seq, key }) => {
      const [event] = (await this.#services.store.read(id, seq - 1, 1)).events
      return event && 'due' in event ? event.reason : key
    })
    return (await Promise.all(found)).map((reason) => `It is time for what was scheduled: ${reason}`)
  }

  /**
   * Asks the hooks about a run that is about to begin. They may say nothing, add texts for the model, or cancel the
   * run.
   */
  async #ask(
    hooks: RunHooks,
    { inputs }: PrepareEffect,
    { id, session }: SessionCache,
    flight: FlightContext,
    { metadata, told }: { readonly metadata: Metadata; readonly told: readonly string[] },
  ): Promise<Landing | { readonly contexts: readonly string[] }> {
    const { agent } = session
    if (!hooks.has('run_start', agent) && !hooks.has('user_prompt_submit', agent)) return NOTHING
    const prompt = await inputText(this.#services.store, id, inputs)
    const at = { session: id, agent, metadata, prompt }
    await hooks.tell('run_start', at)
    const woken = inputs.length === 0
    const asked = woken ? { ...at, prompt: told.join('\n') } : at
    const said = await raceDeadline(hooks.prompt(asked, woken), flight, null, 'timeout')
    if (said === null && !woken) return landHookFailure(inputs, { kind: 'Timeout', message: NO_WORD })
    if (said === null || 'contexts' in said) return said ?? NOTHING
    return { events: [{ type: 'run.settled', outcome: { type: 'interrupted', hook: said.cancel }, inputs }] }
  }

  /** The origin of the session comes last: the text before it is the same for every session of the agent. */
  async #placed(
    cache: SessionCache,
    { said, instructions }: Pick<FrozenSetup, 'said' | 'instructions'>,
  ): Promise<Blob> {
    const { text } = await this.#placeOf(cache)
    if (text === '') return instructions
    const whole = [said, text].filter((each) => each !== '').join('\n\n')
    return textBlob(this.#services.redactor.text(whole), 'text/plain')
  }

  async #placeOf(cache: SessionCache): Promise<SessionOpening> {
    const known = this.#places.get(cache)
    if (known) return known
    const { store } = this.#services
    const first = cache.firstEvent ?? (await store.read(cache.id, 0, 1)).events[0]
    const { fork } = first?.type === 'session.created' ? first : {}
    const { imported } = cache.session
    // An imported file chooses no model.
    const model = imported === undefined ? (fork?.model ?? null) : null
    const { environment: here } = agentOfSession(this.#services, cache.session)
    const opened = { text: originText(await readOrigin(store, { id: cache.id, first, imported, here })), model }
    this.#places.set(cache, opened)
    return opened
  }

  #frozenBy(agent: Agent, tools: Tools): FrozenSetup {
    const known = this.#frozen.get(tools) ?? this.#freeze(agent, tools)
    this.#frozen.set(tools, known)
    return known
  }

  /** Freezes the tools for this run only. */
  async #frozenAs({ agent, tools: names, within }: ChosenOptions, all: Tools): Promise<FrozenSetup> {
    // The tools of a workflow are its own program. Bounds apply to the agents that it starts.
    const tools = within === undefined || agent.planner !== null ? all : toolsWithin(all, within)
    if (names === null) return this.#freeze(agent, tools)
    return this.#freeze(agent, pickTools(tools, names, descendantTools(this.#services, agent)))
  }

  #freeze(agent: Agent, tools: Tools): FrozenSetup {
    const { redactor } = this.#services
    const said = redactor.text(joinInstructions(agent, tools))
    const { rules, ...rest } = agent.policy
    const none = rules.length === 0 && Object.keys(rest).length === 0
    return {
      toolset: toolsetBlob(tools, redactor),
      said,
      instructions: textBlob(said, 'text/plain'),
      policy: none ? null : textBlob(JSON.stringify(redactor.values(agent.policy)), 'application/json'),
    }
  }
}

/**
 * Whether this run differs from its agent's defaults: by a message, by bounds from its parent, by a report or by a
 * wake.
 */
function hasOwnChoice({ within, inputs }: Session, opening: PrepareEffect): boolean {
  if (within !== undefined) return true
  if (inputs.some(({ seq, chooses, report }) => (chooses || report) && opening.inputs.includes(seq))) return true
  return opening.wakes.some(({ options }) => options !== undefined)
}

const NOTHING_CHOSEN = { options: null, tools: null, own: false } as const

/** Takes the longest patience that came with the messages which open the run, or else the agent's own. */
function runLimits({ limits }: Agent, { inputs }: PrepareEffect, { session }: SessionCache): Limits {
  let most = -1
  for (const { seq, patienceMs = -1 } of session.inputs) if (inputs.includes(seq)) most = Math.max(most, patienceMs)
  return most < 0 ? limits : { ...limits, patienceMs: most }
}

/** The traceparent of the first message that has one. */
function runTrace({ inputs }: PrepareEffect, { session }: SessionCache): { readonly traceparent?: string } {
  const found = session.inputs.find(({ seq, traceparent }) => traceparent !== undefined && inputs.includes(seq))
  return found?.traceparent === undefined ? {} : { traceparent: found.traceparent }
}

const NO_WORD = 'A hook did not say in time whether this prompt may be shown.'

/** A hook that could not be asked has not allowed the prompt, so the prompt is not shown. */
function landHookFailure(inputs: readonly number[], failure: Failure): Landing {
  return { events: [{ type: 'run.settled', outcome: { type: 'failed', reason: 'hook_error', failure }, inputs }] }
}

const NOTHING: { readonly contexts: readonly string[] } = { contexts: [] }

/** The agent's own instructions, then those of each of its tools. A tool that is left out adds none. */
function joinInstructions({ instructions, output }: Agent, tools: Tools): string {
  const said = [instructions, ...[...tools.values()].map((tool) => tool.instructions), output?.instructions ?? '']
  return said.filter((text) => text.trim() !== '').join('\n\n')
}
