// Learnings that nobody said in so many words: after a run a model is asked what later sessions should know of what happened since the
// last time. A consumer of the log: when it is due, what was paid and what was learned all stand there, so any process goes on with it.
import { Fault } from '../kernel/failure.ts'
import type { Model, Request } from '../ports/model.ts'
import type { ProcessId } from '../ports/store.ts'
import { damaged } from '../view/history.ts'
import { parsed } from '../view/json.ts'
import { clipped } from '../view/text.ts'
import { inTime } from '../effects/outcomes.ts'
import { FrozenRuns } from '../effects/frozen-run.ts'
import { recallOptions } from '../effects/run-options.ts'
import { commit } from '../engine/again.ts'
import { asOwner, stoppable, type Stoppable } from '../engine/owner.ts'
import { selfOf } from '../engine/peers.ts'
import { maybeOwn } from '../engine/program.ts'
import { SessionCache } from '../engine/session-cache.ts'
import { type Agent, agentFor, modelNamed, type Services } from '../engine/wiring.ts'
import type { BoundHook } from '../riders/hooks/bound.ts'
import { Allowances } from '../riders/money/allowance.ts'
import { BudgetedModel } from '../riders/money/budgeted-model.ts'
import { holdsUnder } from '../riders/money/charges.ts'
import { assumedFor, type Spent } from '../riders/money/usage-estimate.ts'
import type { Learning } from '../tools/core/directive.ts'
import type { Memory } from './memory.ts'
import { wordsOf } from './relevance.ts'
import {
  type Extraction,
  EXTRACTOR,
  eventsOf,
  factsOf,
  isDue,
  Material,
  type Place,
  placeAfter,
  questionOf,
  readExtraction,
  readPlace,
  sameText,
  START,
  type Thresholds,
  THRESHOLDS,
} from './extraction.ts'

export type ExtractOptions = Partial<Thresholds> & {
  /**
   * Which model is asked: one, the name of one as `models` of the harness or a provider has it, or `hint:NAME` for that of a route. Default,
   * also where no such route is set: that of the session's agent.
   */
  readonly model?: Model | string
}

/** The harness it works for. `wake`: look at a session. */
export type ExtractHost = { readonly services: Services; readonly wake: (session: string) => Promise<unknown> }

export type Extracting = {
  readonly memory: Memory
  readonly extract: ExtractOptions
  readonly report: (error: unknown) => void
  /** Called when the log of a session has grown by an extraction. */
  readonly written: (session: string) => Promise<void>
}

const PAGE = 1_000
/** Of what happened before these, nothing is read. */
const EVENTS_MAX = 5_000
/** How long others leave a session to the process that asks about it, beyond the time that the model has. */
const CLAIM_MS = 60_000
/** How many extractions that another process began are finished by one that starts. */
const UNFINISHED_MAX = 20
const KNOWN_MAX = 20
const KNOWN_CHARS = 200
const RECALL_MS = 5_000
const REASON_CHARS = 200
/** No request has this number, so nothing else is held under it: a compaction has `0.0`. */
const CALL = '0.1'

/** The extractions of one harness, one at a time. They begin after an answer was given, and no run waits for them. */
export class Extractor implements BoundHook {
  readonly #host: ExtractHost
  readonly #memory: Memory
  readonly #least: Thresholds
  readonly #model: Model | string | null
  readonly #report: (error: unknown) => void
  readonly #written: Extracting['written']
  #line: Promise<void> = Promise.resolve()
  #flight: Stoppable | null = null
  #stopped = false
  #resumed = false

  constructor(host: ExtractHost, { memory, extract: { model, ...least }, report, written }: Extracting) {
    this.#host = host
    this.#memory = memory
    this.#least = { ...THRESHOLDS, ...least }
    this.#model = model ?? null
    this.#report = report
    this.#written = written
  }

  told({ session }: { readonly session: string }): void {
    this.#line = this.#line.then(() => this.#look(session)).catch((error: unknown) => this.#report(error))
  }

  idle(): Promise<void> {
    return this.#line
  }

  stop(): void {
    this.#stopped = true
    this.#flight?.stop('timeout')
  }

  async #look(session: string): Promise<void> {
    if (!this.#resumed) {
      this.#resumed = true
      for (const other of await this.#memory.indexed((index) => index.unfinished(UNFINISHED_MAX)))
        if (other !== session) await this.#extract(other).catch((error: unknown) => this.#report(error))
    }
    await this.#extract(session)
  }

  async #extract(session: string): Promise<void> {
    const { store, processes } = this.#host.services
    const agent = this.#stopped ? null : await this.#agentOf(session)
    if (agent === null) return
    const row = await this.#memory.indexed((index) => index.extraction(session))
    const left = row?.ready ? readExtraction(row.ready) : null
    if (left !== null) return this.#write(session, left)
    const place = await this.#counted(session, readPlace(row?.place))
    if (!isDue(place, this.#least)) return
    const claiming = {
      session,
      now: store.now(),
      untilMs: agent.limits.modelMs + CLAIM_MS,
      holder: JSON.stringify(selfOf(this.#host.services) ?? null),
      isGone: (holder: string): boolean => {
        const [self, other] = [selfOf(this.#host.services), parsed(holder) as ProcessId | null | undefined]
        return Boolean(self && other && other.host === self.host && processes?.isGone(other))
      },
    }
    if (!(await this.#memory.indexed((index) => index.claim(claiming)))) return
    try {
      // Another process may have been done with it just before.
      const now = await this.#counted(session, place)
      if (isDue(now, this.#least)) await this.#asked(session, agent, now)
    } finally {
      await this.#memory.indexed((index) => index.extraction(session)?.ready ?? index.finish(session)).catch(() => {})
    }
  }

  /** Null where there is nothing to extract from, or nothing can be written: a workflow, a session that is closed or gone. */
  async #agentOf(session: string): Promise<Agent | null> {
    const { services } = this.#host
    const card = await services.store.card(session)
    // Another program's: its words are not for the models of this one.
    if (card !== null && !maybeOwn(services, card)) return null
    if (card === null || card.status === 'terminated') {
      await this.#memory.indexed((index) => index.finish(session))
      return null
    }
    try {
      const agent = services.agent(card.agent)
      return agent.planner === null ? agent : null
    } catch {
      // Another harness has it.
      return null
    }
  }

  /** Counts on from where a log was counted before. One that is shorter than that is another log under the same name. */
  async #counted(session: string, from: Place): Promise<Place> {
    const { store } = this.#host.services
    const { seq = 0 } = (await store.card(session)) ?? {}
    let place = from.seq <= seq && from.marker <= seq ? from : START
    for (let more = true; more; ) {
      const page = await store.read(session, place.seq, PAGE)
      if (page.damaged) throw damaged(session, page.damaged)
      more = page.events.length === PAGE
      for (const event of page.events) {
        place = placeAfter(place, event)
        if (place.seq < event.seq) {
          more = true
          break
        }
      }
    }
    await this.#memory.indexed((index) => index.counted(session, JSON.stringify(place)))
    return place
  }

  async #asked(session: string, agent: Agent, place: Place): Promise<void> {
    const { redactor } = this.#host.services
    const said = await this.#ask(session, agent, place)
    const facts: Learning[] = []
    const owner = (await this.#memory.ownerOf(session)) ?? ''
    for (const fact of said.facts) if (!(await this.#isKnown(agent.name, owner, fact))) facts.push(fact)
    const clean = { ...said, facts: facts.map((fact) => redacted(redactor, fact)) }
    // Kept before it is written to the log: what was paid for is not asked for again.
    await this.#memory.indexed((index) => index.answered(session, JSON.stringify(clean)))
    await this.#write(session, clean)
    if (clean.failed !== undefined)
      this.#report(new Error(`Nothing was extracted from session ${session}: ${clean.failed}.`))
  }

  /** Whether the agent learned the same words before. What is near enough to be the same is among the first. */
  async #isKnown(agent: string, owner: string, fact: Learning): Promise<boolean> {
    const words = wordsOf(`${fact.title} ${fact.detail}`)
    const near = await this.#memory.indexed((index) => index.find({ agent, owner }, words, KNOWN_MAX))
    return near.some((row) => sameText(row) === sameText(fact))
  }

  /** Asks once, under the budget of the session. Whatever goes wrong is an extraction that failed. */
  async #ask(session: string, agent: Agent, place: Place): Promise<Extraction> {
    const { services } = this.#host
    const { store, clock } = services
    const upTo = place.seq
    const { text, seqs } = await this.#material(session, place)
    const query = questionOf(text, await this.#known(agent.name, session, text))
    const messages = [{ role: 'user', seq: upTo, parts: [{ type: 'text', text: query }] }] as const
    const request: Request = {
      session,
      seq: 0,
      instructions: EXTRACTOR,
      tools: [],
      allow: 'none',
      boost: false,
      messages,
    }
    const cache = new SessionCache(session, store)
    await cache.open()
    await recallOptions(services, cache)
    // What a process that died held for this is counted as spent.
    const lost = [{ type: 'lost', key: holdsUnder(session, CALL) }] as const
    if (agentFor(services, cache).budget !== null)
      await commit(services, [{ session, lane: 'inbox', events: [], charges: lost }])
    const flight = stoppable()
    this.#flight = flight
    const given = this.#model ?? agent.model
    const model = typeof given === 'string' ? modelNamed(services, given, agent.model) : given
    const asked = new BudgetedModel({ services, cache, flight }, CALL, new Allowances(services, new FrozenRuns(store)))
    const cancel = clock.timer(agent.limits.modelMs, () => flight.stop('timeout'))
    const answer = await inTime(asked.ask(model, request), flight, null).finally(() => {
      cancel()
      this.#flight = null
    })
    const of = (failed: string, spent: Spent | null): Extraction => ({ upTo, facts: [], failed, spent })
    if (answer === null) {
      const why = this.#stopped
        ? 'the harness was closed before the model answered'
        : 'the model did not answer in time'
      return of(why, await assumedFor(model, request, 0))
    }
    if (answer.type === 'failure') return of(clipped(services.redactor.text(answer.message), REASON_CHARS), asked.spent)
    const found = factsOf(answer, seqs)
    return 'failed' in found ? of(found.failed, asked.spent) : { upTo, facts: found.facts, spent: asked.spent }
  }

  async #material(session: string, { since, seq }: Place): Promise<Material> {
    const { store } = this.#host.services
    const material = new Material()
    for (let after = Math.max(since, seq - EVENTS_MAX); after < seq; ) {
      const { events } = await store.read(session, after, Math.min(PAGE, seq - after))
      for (const event of events) material.take(event)
      after = events.at(-1)?.seq ?? seq
    }
    return material
  }

  /** What the agent knows that is about this, so that it is not noted a second time. */
  async #known(agent: string, session: string, text: string): Promise<readonly string[]> {
    const owner = await this.#memory.ownerOf(session)
    const options = { owner, limit: KNOWN_MAX, minScore: 0, charsMax: Number.POSITIVE_INFINITY, timeoutMs: RECALL_MS }
    const found = await this.#memory.recall(agent, text, options)
    return found.map(({ title, snippet }) => clipped(`${title}: ${snippet}`, KNOWN_CHARS))
  }

  /** While a run of the session is open it is left: the end of that run brings it here again. */
  async #write(session: string, extraction: Extraction): Promise<void> {
    const { services, wake } = this.#host
    try {
      await asOwner(services, session, async () => {
        const row = await this.#memory.indexed((index) => index.extraction(session))
        const { marked } = await this.#counted(session, readPlace(row?.place))
        if (marked >= extraction.upTo) return { value: null, events: [] }
        const charges = [{ type: 'lost', key: holdsUnder(session, CALL) }] as const
        return { value: null, events: eventsOf(extraction), charges }
      })
    } catch (error) {
      if (error instanceof Fault && error.code === 'session_busy') return
      throw error
    } finally {
      // A look that was asked for meanwhile could not happen.
      const { due = null } = (await services.store.card(session)) ?? {}
      if (due !== null) void wake(session).catch(() => {})
    }
    await this.#memory.indexed((index) => index.finish(session))
    await this.#written(session)
  }
}

function redacted(redactor: Services['redactor'], fact: Learning): Learning {
  return { ...fact, title: redactor.text(fact.title), detail: redactor.text(fact.detail) }
}
