// The guard of a run: it is asked right before each request whether the model needs a note first, or whether the run
// must end. It is a second fold of the log: after the run's events are fed to it again, it gives the same advice. Its
// advice becomes events; it writes nothing itself.
import type { Allow, Usage } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { RequestAdvice } from '../../kernel/landing.ts'
import type { Session } from '../../kernel/session.ts'
import { WindowFill, FULL_AT, restoreFill, type SavedFill } from '../../context/window-fill.ts'
import { limitNotices } from './notices.ts'
import { type BreakerOptions, ProgressWatch, type SavedProgress } from './progress.ts'

export type { BreakerOptions } from './progress.ts'

export type GuardTraits = {
  /** Tools that write the deliverable: they stay available one request longer than the others. */
  readonly writers: ReadonlySet<string>
  /** Tools that are called again and again by their nature: no breaker counts them. */
  readonly pollers: ReadonlySet<string>
  /** The answer is given by calling `final_result`. */
  readonly finalResult: boolean
  /** The name of the model that the run asks. */
  readonly model: string
}

/** The guard's advice is never `wait`. */
export type GuardAdvice = Exclude<RequestAdvice, { type: 'wait' }>

/** How many tokens the model takes, or Infinity while that is unknown. `compacts`: a full context is made shorter. */
export type ModelWindow = { readonly tokens: number; readonly compacts: boolean }

/** With fewer requests than this there is none to spare for an answer without tools. */
const WITHDRAWS_FROM = 3

export type SavedGuard = {
  readonly tokens: number
  readonly told: readonly string[]
  readonly offered: string | null
  readonly progress: SavedProgress | null
  /** Absent: no context could become full so far. */
  readonly fill?: SavedFill
}

type RunGuardOptions = { readonly breaker?: BreakerOptions | false; readonly fills?: (agent: string) => boolean }

export class GuardFold {
  readonly #progress: ProgressWatch | null
  /** Input and output tokens of this run. */
  #tokens = 0
  /** Notices of this run, as the log has them. */
  #told: string[] = []
  /** The last notice, because its text may differ in the log: redaction may change it. */
  #offered: string | null = null
  /** For the session, over all its runs. Null: no length limit of its model is known. */
  fill: WindowFill | null = null
  readonly #fills: (agent: string) => boolean

  /** `fills`: whether a context of this agent may become full. */
  constructor({ breaker = {}, fills = () => false }: RunGuardOptions) {
    this.#progress = breaker === false ? null : new ProgressWatch(breaker)
    this.#fills = fills
  }

  /** Tokens of the open run so far. */
  get tokens(): number {
    return this.#tokens
  }

  /** Its state for the open run, as plain JSON. */
  save(): SavedGuard {
    const progress = this.#progress?.save() ?? null
    const saved = { tokens: this.#tokens, told: this.#told, offered: this.#offered, progress }
    return this.fill === null ? saved : { ...saved, fill: this.fill.save() }
  }

  /** Continues from a saved guard. Breakers that were switched on since then start to count here. */
  restore({ tokens, told, offered, progress, fill }: SavedGuard): void {
    this.#tokens = tokens
    this.#told = [...told]
    this.#offered = offered
    if (progress) this.#progress?.restore(progress)
    this.fill = restoreFill(fill)
  }

  /** Takes every event of the session in order, also those of earlier runs: it starts anew with each run. */
  take(event: Event): void {
    this.fill?.take(event)
    switch (event.type) {
      case 'session.created':
        if (!this.#fills(event.agent)) return
        this.fill = new WindowFill()
        return this.fill.take(event)
      case 'run.started':
      case 'run.settled':
        this.#tokens = 0
        this.#told = []
        this.#offered = null
        this.#progress?.reset()
        return
      case 'agent.message':
        if (event.usage) this.#count(event.usage)
        this.#progress?.reply(event)
        return
      case 'model.failed':
        this.#count(event.usage)
        return
      case 'context.compacted':
        this.#count(event.usage)
        return
      case 'agent.tool_result':
        if (event.usage) this.#count(event.usage)
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

  /** Asked right before a request is recorded. Null: no advice. */
  beforeRequest(session: Session, traits: GuardTraits, window: () => ModelWindow): GuardAdvice | null {
    const { run } = session
    if (!run) return null
    const rung = this.#progress?.breakerLevel(traits.pollers, traits.model) ?? null
    // A halt is the root cause, even if a limit is reached at the same moment.
    if (rung?.type === 'halt') return { type: 'settle', outcome: { type: 'halted', reason: rung.text } }
    const { tokens = null } = run.limits
    if (tokens !== null && this.#tokens >= tokens)
      return { type: 'settle', outcome: { type: 'limit', limit: 'tokens' } }
    const allow = isNearEnd(session) ? this.allow(session, traits) : 'all'
    // Without tools the model cannot do anything differently.
    if (rung && allow !== 'none') return { type: 'note', kind: 'nudge', text: rung.text }
    for (const text of limitNotices(run, this.#tokens, allow, traits)) {
      if (this.#told.includes(text)) continue
      this.#offered = text
      return { type: 'note', kind: 'limit', text }
    }
    return this.fill?.needsWindow ? adviseWhenFull(this.fill, window()) : null
  }

  /**
   * The calls that the coming request may make: the last request is for the answer, and the one before it for writing
   * it down.
   */
  allow({ run }: Session, { writers }: GuardTraits): Allow {
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

/** Whether one of the next two requests is the last that the run may make. Before that it may make any calls. */
export function isNearEnd({ run }: Session): boolean {
  return run !== null && run.limits.modelRequests - run.requests <= 2
}

function adviseWhenFull(fill: WindowFill, { tokens, compacts }: ModelWindow): GuardAdvice | null {
  if (!compacts)
    return fill.tokens < tokens * FULL_AT ? null : { type: 'settle', outcome: { type: 'limit', limit: 'context' } }
  // A large batch is shortened first, by the request itself, because the guard does not see its texts.
  const window = Math.min(tokens, fill.learned)
  const body = fill.isBatchLarge(window) ? null : fill.planClearing(window)
  return body && { type: 'compact', body }
}
