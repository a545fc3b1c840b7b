// The first effect: prepare a run. Asks the sources of tools, freezes what the run will use and lands as `run.started`.
import type { Failure, Limits, Metadata } from '../kernel/content.ts'
import type { OwnerBody, Setup } from '../kernel/event.ts'
import { outageMsOf } from '../kernel/limits.ts'
import type { Effect } from '../kernel/next.ts'
import type { Session } from '../kernel/session.ts'
import type { Blob } from '../ports/store.ts'
import { NO_METADATA, type SessionCache } from '../engine/session-cache.ts'
import type { FlightContext, Landing } from '../engine/flights.ts'
import { HookFailed, type Hooks } from '../riders/hooks/hooks.ts'
import type { Allowances } from '../riders/money/allowance.ts'
import { inputText } from '../view/history.ts'
import { inTime, messageIn, PREPARE_MS, TOO_LONG } from './outcomes.ts'
import { originText, readOrigin } from '../sessions/origin.ts'
import { isPassing, retryMs } from '../engine/backoff.ts'
import type { Chosen } from './run-options.ts'
import type { Tools } from './toolbox.ts'
import { type Agent, agentIn, textBlob, type Services } from '../engine/wiring.ts'
import { keptPrefix } from './epoch.ts'
import { toolsWithin } from './narrowing.ts'
import { type FrozenRuns, toolsetBlob } from './frozen-run.ts'

const FIRST_RETRY_MS = 2_000

type Prepare = Extract<Effect, { type: 'prepare' }>

type Frozen = {
  readonly toolset: Blob
  readonly said: string
  readonly instructions: Blob
  readonly policy: Blob | null
}

type Opened = { readonly text: string; readonly model: string | null }

export class Preparer {
  readonly #services: Services
  /** A set of tools does not change; when an agent's tools do, it gets another set. So each is hashed once. */
  readonly #frozen = new WeakMap<Tools, Frozen>()
  /** What is said of where a session was opened, and the model that a fork goes on with. Neither ever changes. */
  readonly #places = new WeakMap<SessionCache, Opened>()

  readonly #runs: FrozenRuns
  readonly #allowances: () => Promise<Allowances>

  constructor(services: Services, runs: FrozenRuns, allowances: () => Promise<Allowances>) {
    this.#services = services
    this.#runs = runs
    this.#allowances = allowances
  }

  async prepare(effect: Prepare, cache: SessionCache, flight: FlightContext): Promise<Landing> {
    const from = cache.now()
    const { session } = cache
    let chosen: Chosen = { ...NOTHING_CHOSEN, agent: agentIn(this.#services, session), metadata: session.metadata }
    try {
      const { model } = await this.#placeOf(cache)
      if (model !== null || isChosen(session, effect)) {
        const { chosenBy } = await import('./run-options.ts')
        chosen = await chosenBy(this.#services, cache, effect, model)
        if (chosen.agent.budget !== null) await (await this.#allowances()).learn(chosen.agent)
      }
      return await this.#prepare(effect, cache, flight, chosen)
    } catch (error) {
      const why = flight.reason === 'timeout' ? TOO_LONG : error
      return this.failed(effect, cache, why, cache.now() - from, chosen.agent)
    }
  }

  /** What becomes of a run that could not begin: it is tried again while what is away may come back, for as long as `outageMs`. */
  failed(
    effect: Prepare,
    cache: SessionCache,
    error: unknown,
    triedMs: number,
    agent: Agent = agentIn(this.#services, cache.session),
  ): Landing {
    const { inputs, wakes } = effect
    const { random } = this.#services
    const why = messageIn(error)
    const passing = isPassing(error)
    let message = why
    if (passing) {
      const outageMs = outageMsOf(limitsFor(agent, effect, cache))
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
    // What a hook failed over is the prompt, if there is one. The wakes then get a run of their own.
    const used = wakes.length > 0 && !(byHook && inputs.length > 0) ? { wakes } : {}
    return { events: [{ type: 'run.settled', outcome, inputs, ...used }] }
  }

  async #prepare(effect: Prepare, cache: SessionCache, flight: FlightContext, chosen: Chosen): Promise<Landing> {
    const { agent } = chosen
    const { hooks } = this.#services
    // First what may be away: hooks are not told of a run that cannot begin.
    const tools = await agent.tools.open(flight)
    const told = agent.planner === null && effect.wakes.length > 0 ? await this.#woken(effect, cache) : []
    const { metadata = NO_METADATA } = chosen
    const said = hooks === null ? NOTHING : await this.#ask(hooks, effect, cache, flight, { metadata, told })
    if ('events' in said) return said
    const fresh = await this.setup(cache, tools, chosen)
    const { setup, blobs } = fresh
    const { prefix, note } = await keptPrefix({ services: this.#services, runs: this.#runs }, cache, chosen, fresh)
    const contexts = [...(note === null ? [] : [note]), ...told, ...said.contexts]
    const { inputs, wakes } = effect
    return {
      events: [
        {
          type: 'run.started',
          inputs,
          wakes,
          limits: limitsFor(agent, effect, cache),
          ...setup,
          ...prefix,
          ...traceOf(effect, cache),
        },
        ...contexts.map((text): OwnerBody => ({ type: 'note.added', kind: 'context', text })),
      ],
      blobs,
    }
  }

  /** What a run is frozen to, as it is now. */
  async setup(
    cache: SessionCache,
    tools: Tools,
    chosen: Chosen,
  ): Promise<{ readonly setup: Setup; readonly blobs: Blob[] }> {
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

  /** A run that no message began must know what it is for. */
  async #woken({ wakes }: Prepare, { id, session }: SessionCache): Promise<readonly string[]> {
    const found = session.wakes
      .filter(({ key }) => wakes.includes(key))
      .map(async ({ seq, key }) => {
        const [event] = (await this.#services.store.read(id, seq - 1, 1)).events
        return event?.type === 'wake.scheduled' ? event.reason : key
      })
    return (await Promise.all(found)).map((reason) => `It is time for what was scheduled: ${reason}`)
  }

  /** What the hooks say of a run that is about to begin: nothing, more for the model to read, or that it must not. */
  async #ask(
    hooks: Hooks,
    { inputs }: Prepare,
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
    const said = await inTime(hooks.prompt(asked, woken), flight, null, 'timeout')
    if (said === null && !woken) return hookFailed(inputs, { kind: 'Timeout', message: NO_WORD })
    if (said === null || 'contexts' in said) return said ?? NOTHING
    return { events: [{ type: 'run.settled', outcome: { type: 'interrupted', hook: said.cancel }, inputs }] }
  }

  /** What the session was opened with is said last: what comes before is the same for every session of the agent. */
  async #placed(cache: SessionCache, { said, instructions }: Pick<Frozen, 'said' | 'instructions'>): Promise<Blob> {
    const { text } = await this.#placeOf(cache)
    if (text === '') return instructions
    const whole = [said, text].filter((each) => each !== '').join('\n\n')
    return textBlob(this.#services.redactor.text(whole), 'text/plain')
  }

  async #placeOf(cache: SessionCache): Promise<Opened> {
    const known = this.#places.get(cache)
    if (known) return known
    const { store } = this.#services
    const first = cache.first ?? (await store.read(cache.id, 0, 1)).events[0]
    const { fork } = first?.type === 'session.created' ? first : {}
    const { imported } = cache.session
    // What is in a file chooses no model.
    const model = imported === undefined ? (fork?.model ?? null) : null
    const { environment: here } = agentIn(this.#services, cache.session)
    const opened = { text: originText(await readOrigin(store, { id: cache.id, first, imported, here })), model }
    this.#places.set(cache, opened)
    return opened
  }

  #frozenBy(agent: Agent, tools: Tools): Frozen {
    const known = this.#frozen.get(tools) ?? this.#freeze(agent, tools)
    this.#frozen.set(tools, known)
    return known
  }

  /** For one run alone. */
  async #frozenAs({ agent, tools: names, within }: Chosen, all: Tools): Promise<Frozen> {
    // The tools of a workflow are its own program: bounds are for the agents that it starts.
    const tools = within === undefined || agent.planner !== null ? all : toolsWithin(all, within)
    if (names === null) return this.#freeze(agent, tools)
    const { chosenTools, toolsBelow } = await import('./run-options.ts')
    return this.#freeze(agent, chosenTools(tools, names, toolsBelow(this.#services, agent)))
  }

  #freeze(agent: Agent, tools: Tools): Frozen {
    const { redactor } = this.#services
    const said = redactor.text(instructionsOf(agent, tools))
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

/** Whether anything says what this run has instead of what its agent has: a message, bounds from above, a report or a wake. */
function isChosen({ within, inputs, wakes }: Session, opening: Prepare): boolean {
  if (within !== undefined) return true
  if (inputs.some(({ seq, chooses, report }) => (chooses || report) && opening.inputs.includes(seq))) return true
  return wakes.some(({ key, options }) => options !== undefined && opening.wakes.includes(key))
}

const NOTHING_CHOSEN = { options: null, tools: null, own: false } as const

/** With the patience of callers that came with the messages that open the run: the longest of them, or else the agent's own. */
function limitsFor({ limits }: Agent, { inputs }: Prepare, { session }: SessionCache): Limits {
  let most = -1
  for (const { seq, patienceMs = -1 } of session.inputs) if (inputs.includes(seq)) most = Math.max(most, patienceMs)
  return most < 0 ? limits : { ...limits, patienceMs: most }
}

/** That of the first message that has one. */
function traceOf({ inputs }: Prepare, { session }: SessionCache): { readonly traceparent?: string } {
  const found = session.inputs.find(({ seq, traceparent }) => traceparent !== undefined && inputs.includes(seq))
  return found?.traceparent === undefined ? {} : { traceparent: found.traceparent }
}

const NO_WORD = 'A hook did not say in time whether this prompt may be shown.'

/** A hook that could not be asked has not allowed it: the prompt is not shown. */
function hookFailed(inputs: readonly number[], failure: Failure): Landing {
  return { events: [{ type: 'run.settled', outcome: { type: 'failed', reason: 'hook_error', failure }, inputs }] }
}

const NOTHING: { readonly contexts: readonly string[] } = { contexts: [] }

/** The agent's own words, then what each of its tools wants said; a tool that is not there says nothing. */
function instructionsOf({ instructions, output }: Agent, tools: Tools): string {
  const said = [instructions, ...[...tools.values()].map((tool) => tool.instructions), output?.instructions ?? '']
  return said.filter((text) => text.trim() !== '').join('\n\n')
}
