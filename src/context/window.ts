// How full the context of a session is, and what can be done about it: a fold of the log beside the session's. Tokens as the provider
// counted them last, and characters of what came since. It only reads events.
import type { Frozen, Usage } from '../kernel/content.ts'
import type { Event, OwnerBody } from '../kernel/event.ts'
import { FITTED_CHARS_MIN } from '../kernel/transcript.ts'
import { CHARS_A_TOKEN, charsOf } from '../view/history.ts'

/** Of the window: from here on the newest batch is shortened if it is a large part of it. */
export const FIT_AT = 0.8
/** Of the window: from here on it is compacted. */
export const COMPACT_AT = 0.9
/** Of the window: from here on nothing is asked any more if it cannot be compacted. */
export const FULL_AT = 0.95
/** Failures in a row that switch compacting off for the session. */
export const FAILURES_MAX = 3
/** The newest results are never cleared. */
const RESULTS_KEPT = 5
/** Every model takes this many tokens: below it the size of its window is not looked up. */
const LOOKED_AT_FROM = 1_000
/** Clearing results makes the provider read all after them anew: not for less than this part of the window. */
const CLEARED_MIN = 0.01

export type Compacted = Extract<OwnerBody, { type: 'context.compacted' }>
type Result = Frozen<{ seq: number; chars: number }>

export type SavedFill = Frozen<{
  tokens: number
  counted: boolean
  fresh: number
  failures: number
  why: string
  cut: boolean
  learned?: number
  refusals?: number
  newest: readonly Result[]
  batch?: readonly Result[]
  clearable: number
  inherits: boolean
}>

export class Fill {
  /** About how many tokens the next request has. */
  tokens = 0
  /** The provider has counted at least once; until then the beginning of every request, and what a fork inherited, is not in `tokens`. */
  counted = false
  /** Compactions in a row that failed, and why the last one did. */
  failures = 0
  why = ''
  /** It was cut since the last reply: doing so again would change nothing. */
  cut = false
  /** How many tokens the window has at most, as refusals since the last reply showed, and how many these were. */
  learned = Number.POSITIVE_INFINITY
  refusals = 0
  /** Tokens of what came after the open request was made. */
  #fresh = 0
  readonly #newest: Result[] = []
  /** Results since the last reply: the model has not seen them, so they are never cleared. */
  #batch: readonly Result[] = []
  /** Characters of results that are older than those. */
  #clearable = 0
  #inherits = false

  /** Goes on where another one was saved. */
  constructor(saved?: SavedFill) {
    if (!saved) return
    const { tokens, counted, failures, why, cut, fresh, newest, clearable, inherits } = saved
    Object.assign(this, { tokens, counted, failures, why, cut })
    this.learned = saved.learned ?? Number.POSITIVE_INFINITY
    this.refusals = saved.refusals ?? 0
    this.#fresh = fresh
    this.#newest.push(...newest)
    this.#batch = saved.batch ?? []
    this.#clearable = clearable
    this.#inherits = inherits
  }

  take(event: Event): void {
    switch (event.type) {
      case 'session.created':
        this.#inherits = event.fork !== undefined
        return
      case 'model.started':
        this.#fresh = 0
        return
      case 'agent.message':
        return this.#reply(event)
      case 'agent.tool_result':
        return this.#result({ seq: event.seq, chars: this.#add(event) })
      case 'user.message':
      case 'user.custom_tool_result':
      case 'note.added':
        return void this.#add(event)
      case 'context.compacted':
        return this.#compacted(event)
      default:
        return
    }
  }

  /** Whether it may be so full that somebody has to find out how much the model takes. */
  get matters(): boolean {
    return this.tokens >= LOOKED_AT_FROM || (this.#inherits && !this.counted)
  }

  /** Old results that can be cleared, if that is worth it. Null: there are none. */
  clearing(window: number): Compacted | null {
    const [oldest] = [...this.#newest, ...this.#batch]
    const freed = Math.floor(this.#clearable / CHARS_A_TOKEN)
    if (oldest === undefined || freed < window * CLEARED_MIN || freed === 0) return null
    const after = Math.max(0, this.tokens - freed)
    return { type: 'context.compacted', cleared: oldest.seq, before: this.tokens, after }
  }

  /** What is asked now turned out to be as long as this. */
  learn(tokens: number): void {
    if (!this.counted) this.tokens = Math.max(this.tokens, tokens)
  }

  save(): SavedFill {
    const { tokens, counted, failures, why, cut } = this
    const own = { fresh: this.#fresh, newest: this.#newest.slice(), batch: this.#batch, clearable: this.#clearable }
    const refused = this.refusals === 0 ? {} : { learned: this.learned, refusals: this.refusals }
    return { tokens, counted, failures, why, cut, ...refused, ...own, inherits: this.#inherits }
  }

  /** Returns how many characters it is. */
  #add(event: Event): number {
    const chars = charsOf(event)
    const tokens = Math.ceil(chars / CHARS_A_TOKEN)
    this.tokens += tokens
    this.#fresh += tokens
    return chars
  }

  #reply(event: Extract<Event, { type: 'agent.message' }>): void {
    const fresh = this.#fresh
    this.#newest.push(...this.#batch)
    this.#batch = []
    this.#keepNewest()
    this.cut = false
    this.learned = Number.POSITIVE_INFINITY
    this.refusals = 0
    const used = usedIn(event.usage)
    if (used === null) return void this.#add(event)
    this.counted = true
    this.tokens = used + fresh
  }

  #result(result: Result): void {
    this.#batch = [...this.#batch, result]
    this.#keepNewest()
  }

  #keepNewest(): void {
    while (this.#newest.length > 0 && this.#newest.length + this.#batch.length > RESULTS_KEPT)
      this.#clearable += this.#newest.shift()?.chars ?? 0
  }

  #compacted({ cut, cleared, fitted, after, failed, learned }: Extract<Event, { type: 'context.compacted' }>): void {
    if (learned !== undefined) {
      this.learned = Math.min(this.learned, learned)
      this.refusals += 1
    }
    if (failed !== undefined) {
      this.failures += 1
      this.why = failed
    }
    if (after !== undefined) this.tokens = after
    if (fitted !== undefined) {
      const charsMax = Math.max(fitted, FITTED_CHARS_MIN)
      this.#batch = this.#batch.map(({ seq, chars }) => ({ seq, chars: Math.min(chars, charsMax) }))
    }
    if (cut === undefined && cleared === undefined) return
    this.#clearable = 0
    if (cut === undefined) return
    this.failures = 0
    this.cut = true
    const kept = this.#newest.filter(({ seq }) => seq > cut)
    this.#newest.splice(0, RESULTS_KEPT, ...kept)
  }
}

/** One that was counted as this. */
export function filledWith(tokens: number): Fill {
  const none = { fresh: 0, failures: 0, why: '', cut: false, newest: [], clearable: 0, inherits: false }
  return new Fill({ tokens, counted: true, ...none })
}

/** Null: the provider did not count. Some servers say 0 for everything. */
export function usedIn(usage: Usage | undefined): number | null {
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {}
  const used = inputTokens + outputTokens
  return inputTokens > 0 && Number.isSafeInteger(used) ? used : null
}
