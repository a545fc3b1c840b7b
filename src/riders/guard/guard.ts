// The guard of a run: asked right before each request whether something must be said first, or whether the run must end. A fold
// of the log beside the session's: fed the run's events again, it says the same. What it says becomes events; it writes nothing.
import type { Allow, Outcome, Usage } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Session } from '../../kernel/session.ts'
import { type Compacted, Fill, FULL_AT, restoreFill, type SavedFill } from '../../context/window.ts'
import { limitNotices } from './notices.ts'
import { type BreakerOptions, Progress, type SavedProgress } from './progress.ts'

export type { BreakerOptions } from './progress.ts'

export type Traits = {
  /** Tools that write the deliverable: they stay one request longer than the others. */
  readonly writers: ReadonlySet<string>
  /** Tools that are called again and again by their nature: no breaker counts them. */
  readonly pollers: ReadonlySet<string>
  /** The answer is given by calling `final_result`. */
  readonly finalResult: boolean
  /** The name of the model that the run asks. */
  readonly model: string
}

/** What must be said before a request, or how the run must end instead. A note at a time: it is asked again after it. */
export type Word =
  | { readonly type: 'note'; readonly kind: 'limit' | 'nudge' | 'context'; readonly text: string }
  | { readonly type: 'settle'; readonly outcome: Outcome }
  /** Old results are cleared first. */
  | { readonly type: 'compact'; readonly body: Compacted }

/** How much the model takes, as far as it is known: without end until then. `compacts`: what is full is made shorter. */
export type Window = { readonly tokens: number; readonly compacts: boolean }

/** With fewer requests than this there is none to spare for an answer without tools. */
const WITHDRAWS_FROM = 3

export type SavedGuard = {
  readonly tokens: number
  readonly told: readonly string[]
  readonly offered: string | null
  readonly progress: SavedProgress | null
  /** Absent: nothing could become full so far. */
  readonly fill?: SavedFill
}

type Guarding = { readonly breaker?: BreakerOptions | false; readonly fills?: (agent: string) => boolean }

export class Guard {
  readonly #progress: Progress | null
  /** Of this run: input and output together. */
  #tokens = 0
  /** What the log says was told in this run. */
  #told: string[] = []
  /** What was said last, in case it reads otherwise in the log: a secret may look like anything. */
  #offered: string | null = null
  /** Of the session, over all its runs. Null: its model may take any length, as far as is known. */
  fill: Fill | null = null
  readonly #fills: (agent: string) => boolean

  /** `fills`: whether a context of this agent may become full. */
  constructor({ breaker = {}, fills = () => false }: Guarding) {
    this.#progress = breaker === false ? null : new Progress(breaker)
    this.#fills = fills
  }

  /** Of the open run so far. */
  get tokens(): number {
    return this.#tokens
  }

  /** What it knows of the open run, as plain JSON. */
  save(): SavedGuard {
    const progress = this.#progress?.save() ?? null
    const saved = { tokens: this.#tokens, told: this.#told, offered: this.#offered, progress }
    return this.fill === null ? saved : { ...saved, fill: this.fill.save() }
  }

  /** Goes on where another one was saved. Breakers that were switched on since then begin to count here. */
  restore({ tokens, told, offered, progress, fill }: SavedGuard): void {
    this.#tokens = tokens
    this.#told = [...told]
    this.#offered = offered
    if (progress) this.#progress?.restore(progress)
    this.fill = restoreFill(fill)
  }

  /** Every event of the session in order, also those of earlier runs: it starts anew with each run. */
  take(event: Event): void {
    this.fill?.take(event)
    switch (event.type) {
      case 'session.created':
        if (!this.#fills(event.agent)) return
        this.fill = new Fill()
        return this.fill.take(event)
      case 'run.started':
      case 'run.settled':
        this.#tokens = 0
        this.#told = []
        this.#offered = null
        this.#progress?.reset()
        return
      case 'agent.message':
        this.#count(event.usage)
        this.#progress?.reply(event)
        return
      case 'model.failed':
        this.#count(event.usage)
        return
      case 'context.compacted':
        this.#count(event.usage)
        return
      case 'agent.tool_result':
        this.#count(event.usage)
        this.#progress?.result(event)
        return
      case 'user.custom_tool_result':
        this.#progress?.answer(event)
        return
      case 'model.started':
        this.#progress?.asked()
        return
      case 'note.added':
        if (event.kind === 'nudge') this.#progress?.nudged()
        else if (event.kind === 'limit') this.#tell(event.text)
        return
      default:
        return
    }
  }

  /** Asked right before a request is recorded. Null: nothing to say. */
  beforeRequest(session: Session, traits: Traits, window: () => Window): Word | null {
    const { run } = session
    if (!run) return null
    const rung = this.#progress?.breakerLevel(traits.pollers, traits.model) ?? null
    // What stopped it is the root cause, also where a limit is reached at the same moment.
    if (rung?.type === 'halt') return { type: 'settle', outcome: { type: 'halted', reason: rung.text } }
    const { tokens = null } = run.limits
    if (tokens !== null && this.#tokens >= tokens)
      return { type: 'settle', outcome: { type: 'limit', limit: 'tokens' } }
    const allow = this.allow(session, traits)
    // Without tools there is nothing to do otherwise.
    if (rung && allow !== 'none') return { type: 'note', kind: 'nudge', text: rung.text }
    for (const text of limitNotices(run, this.#tokens, allow, traits)) {
      if (this.#told.includes(text)) continue
      this.#offered = text
      return { type: 'note', kind: 'limit', text }
    }
    return this.fill?.matters ? whenFull(this.fill, window()) : null
  }

  /** Which calls the coming request may make: the last one is for the answer, and the one before for writing it down. */
  allow({ run }: Session, { writers }: Traits): Allow {
    if (!run || run.limits.modelRequests < WITHDRAWS_FROM) return 'all'
    const left = run.limits.modelRequests - run.requests
    if (left <= 1) return 'none'
    return left === 2 && writers.size > 0 ? 'writers' : 'all'
  }

  #count(usage: Usage | undefined): void {
    if (usage) this.#tokens += usage.inputTokens + usage.outputTokens
  }

  #tell(text: string): void {
    this.#told.push(text)
    if (this.#offered !== null) this.#told.push(this.#offered)
    this.#offered = null
  }
}

function whenFull(fill: Fill, { tokens, compacts }: Window): Word | null {
  if (!compacts)
    return fill.tokens < tokens * FULL_AT ? null : { type: 'settle', outcome: { type: 'limit', limit: 'context' } }
  // A large batch is shortened first, by the request itself: the guard does not see its texts.
  const window = Math.min(tokens, fill.learned)
  const body = fill.isBatchLarge(window) ? null : fill.clearing(window)
  return body && { type: 'compact', body }
}
