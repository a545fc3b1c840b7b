// Extracts learnings that no message states directly: after a run a model is asked what later sessions should know from
// the events since the last extraction. The log holds when an extraction is due, what was paid and what was learned, so
// any process can continue.
import { Fault } from '../kernel/failure.ts'
import type { Model, Request } from '../ports/model.ts'
import type { ProcessId } from '../ports/store.ts'
import { damagedFault } from '../view/session-history.ts'
import { parseJson } from '../view/untrusted-json.ts'
import { clipText } from '../view/shown-text.ts'
import { raceDeadline } from '../runtime/turn/landings.ts'
import { FrozenRuns } from '../runtime/state/frozen-run.ts'
import { recallOptions } from '../runtime/turn/run-options.ts'
import { commitWithRetry } from '../runtime/state/store-retry.ts'
import { actAsOwner, createStoppableFlight, type StoppableFlight } from '../runtime/loop/act-as-owner.ts'
import { ownProcessId } from '../runtime/loop/dead-workers.ts'
import { mayBeOwn } from '../runtime/state/program.ts'
import { SessionCache } from '../runtime/state/session-cache.ts'
import { modelByName, type Services } from '../runtime/state/runtime-ports.ts'
import { type Agent, agentOfRun } from '../runtime/state/agent.ts'
import { Allowances } from '../runtime/money/allowance.ts'
import { BudgetedModel } from '../runtime/turn/budgeted-model.ts'
import { callHoldPrefix } from '../runtime/money/holds.ts'
import { estimateSpending, type CallSpending } from '../runtime/money/usage-estimate.ts'
import type { Learning } from '../tools/core/directive.ts'
import type { Memory } from './memory.ts'
import { significantWords } from './relevance.ts'
import {
  type Extraction,
  EXTRACTOR,
  extractionEvents,
  readFacts,
  isExtractionDue,
  LogMaterial,
  type LogProgress,
  progressAfter,
  extractionQuestion,
  readExtraction,
  readProgress,
  comparableText,
  NO_PROGRESS,
  type Thresholds,
  THRESHOLDS,
} from './extraction.ts'

/** When a model is asked what later runs should know, and which one. Each time costs money. */
export type ExtractOptions = Partial<Thresholds> & {
  /**
   * The model to ask: a model, a name as in `models.named` of the harness or of a provider, or `hint:NAME` for a route.
   * Default, also where that route is not set: the model of the session's agent.
   */
  readonly model?: Model | string
}

/** The harness it works for. `wake`: look at a session. */
export type ExtractorHost = { readonly services: Services; readonly wake: (session: string) => Promise<unknown> }

export type ExtractorOptions = {
  readonly memory: Memory
  readonly extract: ExtractOptions
  readonly report: (error: unknown) => void
  /** Called when the log of a session has grown by an extraction. */
  readonly written: (session: string) => Promise<void>
}

const PAGE = 1_000
/** The most events that are read; older ones are ignored. */
const EVENTS_MAX = 5_000
/** The claim lasts this much longer than the model's time limit. Until then other processes leave the session alone. */
const CLAIM_MS = 60_000
/** How many unfinished extractions of other processes a starting process completes. */
const UNFINISHED_MAX = 20
const KNOWN_MAX = 20
const KNOWN_CHARS = 200
const RECALL_MS = 5_000
const REASON_CHARS = 200
/** No request has this number, so no other charge is held under it: a compaction has `0.0`. */
const CALL = '0.1'

/**
 * Runs the extractions of one harness, one at a time. They begin after an answer was given, and no run waits for them.
 */
export class Extractor {
  readonly #host: ExtractorHost
  readonly #memory: Memory
  readonly #least: Thresholds
  readonly #model: Model | string | null
  readonly #report: (error: unknown) => void
  readonly #written: ExtractorOptions['written']
  #line: Promise<void> = Promise.resolve()
  #flight: StoppableFlight | null = null
  #stopped = false
  #resumed = false

  constructor(host: ExtractorHost, { memory, extract: { model, ...least }, report, written }: ExtractorOptions) {
    this.#host = host
    this.#memory = memory
    this.#least = { ...THRESHOLDS, ...least }
    this.#model = model ?? null
    this.#report = report
    this.#written = written
  }

  /** Resolves when nothing of this session is left to extract for now. An aborted signal ends the request to the model. */
  extract(session: string, signal: AbortSignal): Promise<void> {
    const stop = (): void => {
      this.#stopped = true
      this.#flight?.stop('timeout')
    }
    this.#stopped = false
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    const looked = this.#line.then(() => this.#look(session)).finally(() => signal.removeEventListener('abort', stop))
    this.#line = looked.catch(() => {})
    return looked
  }

  async #look(session: string): Promise<void> {
    if (!this.#resumed) {
      this.#resumed = true
      for (const other of await this.#memory.useIndex((index) => index.unfinished(UNFINISHED_MAX)))
        if (other !== session) await this.#extract(other).catch((error: unknown) => this.#report(error))
    }
    await this.#extract(session)
  }

  async #extract(session: string): Promise<void> {
    const { store, processes } = this.#host.services
    const agent = this.#stopped ? null : await this.#agentOf(session)
    if (agent === null) return
    const row = await this.#memory.useIndex((index) => index.extraction(session))
    const left = row?.ready ? readExtraction(row.ready) : null
    if (left !== null) return this.#write(session, left)
    const place = await this.#counted(session, readProgress(row?.place))
    if (!isExtractionDue(place, this.#least)) return
    const claiming = {
      session,
      now: store.now(),
      untilMs: agent.limits.modelMs + CLAIM_MS,
      holder: JSON.stringify(ownProcessId(this.#host.services) ?? null),
      isGone: (holder: string): boolean => {
        const [self, other] = [ownProcessId(this.#host.services), parseJson(holder) as ProcessId | null | undefined]
        return Boolean(self && other && other.host === self.host && processes?.isGone(other))
      },
    }
    if (!(await this.#memory.useIndex((index) => index.claim(claiming)))) return
    try {
      // Another process may have finished it just before.
      const now = await this.#counted(session, place)
      if (isExtractionDue(now, this.#least)) await this.#asked(session, agent, now)
    } finally {
      await this.#memory.useIndex((index) => index.extraction(session)?.ready ?? index.finish(session)).catch(() => {})
    }
  }

  /** Null if nothing can be extracted or written: a workflow, or a session that is closed or gone. */
  async #agentOf(session: string): Promise<Agent | null> {
    const { services } = this.#host
    const card = await services.store.card(session)
    // The session of another program is not sent to the models of this one.
    if (card !== null && !mayBeOwn(services, card)) return null
    if (card === null || card.status === 'terminated') {
      await this.#memory.useIndex((index) => index.finish(session))
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

  /**
   * Continues counting where it stopped before. A shorter log is a new log under the same name, and is counted from its
   * start.
   */
  async #counted(session: string, from: LogProgress): Promise<LogProgress> {
    const { store } = this.#host.services
    const { seq = 0 } = (await store.card(session)) ?? {}
    let place = from.seq <= seq && from.marker <= seq ? from : NO_PROGRESS
    for (let more = true; more; ) {
      const page = await store.read(session, place.seq, PAGE)
      if (page.damaged) throw damagedFault(session, page.damaged)
      more = page.events.length === PAGE
      for (const event of page.events) {
        place = progressAfter(place, event)
        if (place.seq < event.seq) {
          more = true
          break
        }
      }
    }
    await this.#memory.useIndex((index) => index.saveProgress(session, JSON.stringify(place)))
    return place
  }

  async #asked(session: string, agent: Agent, place: LogProgress): Promise<void> {
    const { redactor } = this.#host.services
    const said = await this.#ask(session, agent, place)
    const facts: Learning[] = []
    const owner = (await this.#memory.ownerOf(session)) ?? ''
    for (const fact of said.facts) if (!(await this.#isKnown(agent.name, owner, fact))) facts.push(fact)
    const clean = { ...said, facts: facts.map((fact) => redactLearning(redactor, fact)) }
    // The answer is stored before it is written to the log, so that it is not paid for twice.
    await this.#memory.useIndex((index) => index.saveAnswer(session, JSON.stringify(clean)))
    await this.#write(session, clean)
    if (clean.failed !== undefined)
      this.#report(new Error(`Nothing was extracted from session ${session}: ${clean.failed}.`))
  }

  /** Whether the agent already learned the same text. Only the nearest learnings are compared. */
  async #isKnown(agent: string, owner: string, fact: Learning): Promise<boolean> {
    const words = significantWords(`${fact.title} ${fact.detail}`)
    const near = await this.#memory.useIndex((index) => index.find({ agent, owner }, words, KNOWN_MAX))
    return near.some((row) => comparableText(row) === comparableText(fact))
  }

  /** Asks once, under the budget of the session. Every error counts as a failed extraction. */
  async #ask(session: string, agent: Agent, place: LogProgress): Promise<Extraction> {
    const { services } = this.#host
    const { store, clock } = services
    const upTo = place.seq
    const { text, seqs } = await this.#material(session, place)
    const query = extractionQuestion(text, await this.#known(agent.name, session, text))
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
    // Money that a dead process held for this call is counted as spent.
    const lost = [{ type: 'lost', key: callHoldPrefix(session, CALL) }] as const
    if (agentOfRun(services, cache).budget !== null)
      await commitWithRetry(services, [{ session, lane: 'inbox', events: [], charges: lost }])
    const flight = createStoppableFlight()
    this.#flight = flight
    const given = this.#model ?? agent.model
    const model = typeof given === 'string' ? modelByName(services, given, agent.model) : given
    const asked = new BudgetedModel({ services, cache, flight }, CALL, new Allowances(services, new FrozenRuns(store)))
    const cancel = clock.timer(agent.limits.modelMs, () => flight.stop('timeout'))
    const answer = await raceDeadline(asked.ask(model, request), flight, null).finally(() => {
      cancel()
      this.#flight = null
    })
    const of = (failed: string, spent: CallSpending | null): Extraction => ({ upTo, facts: [], failed, spent })
    if (answer === null) {
      const why = this.#stopped
        ? 'the harness was closed before the model answered'
        : 'the model did not answer in time'
      return of(why, await estimateSpending(model, request, 0))
    }
    if (answer.type === 'failure')
      return of(clipText(services.redactor.text(answer.message), REASON_CHARS), asked.spent)
    const found = readFacts(answer, seqs)
    return 'failed' in found ? of(found.failed, asked.spent) : { upTo, facts: found.facts, spent: asked.spent }
  }

  async #material(session: string, { since, seq }: LogProgress): Promise<LogMaterial> {
    const { store } = this.#host.services
    const material = new LogMaterial()
    for (let after = Math.max(since, seq - EVENTS_MAX); after < seq; ) {
      const { events } = await store.read(session, after, Math.min(PAGE, seq - after))
      for (const event of events) material.take(event)
      after = events.at(-1)?.seq ?? seq
    }
    return material
  }

  /** The agent's existing learnings about this text, so that they are not noted a second time. */
  async #known(agent: string, session: string, text: string): Promise<readonly string[]> {
    const owner = await this.#memory.ownerOf(session)
    const options = { owner, limit: KNOWN_MAX, minScore: 0, charsMax: Number.POSITIVE_INFINITY, timeoutMs: RECALL_MS }
    const found = await this.#memory.recall(agent, text, options)
    return found.map(({ title, snippet }) => clipText(`${title}: ${snippet}`, KNOWN_CHARS))
  }

  /** Leaves the session alone while one of its runs is open; the end of that run calls this again. */
  async #write(session: string, extraction: Extraction): Promise<void> {
    const { services, wake } = this.#host
    try {
      await actAsOwner(services, session, async () => {
        const row = await this.#memory.useIndex((index) => index.extraction(session))
        const { marked } = await this.#counted(session, readProgress(row?.place))
        if (marked >= extraction.upTo) return { value: null, events: [] }
        const charges = [{ type: 'lost', key: callHoldPrefix(session, CALL) }] as const
        return { value: null, events: extractionEvents(extraction), charges }
      })
    } catch (error) {
      if (error instanceof Fault && error.code === 'session_busy') return
      throw error
    } finally {
      // While this process owned the session, a look that was asked for could not happen.
      const { due = null } = (await services.store.card(session)) ?? {}
      if (due !== null) void wake(session).catch(() => {})
    }
    await this.#memory.useIndex((index) => index.finish(session))
    await this.#written(session)
  }
}

function redactLearning(redactor: Services['redactor'], fact: Learning): Learning {
  return { ...fact, title: redactor.text(fact.title), detail: redactor.text(fact.detail) }
}
