// Tracks how full the context of a session is, and what can be done about it: a fold of the log beside the session's.
// It uses the tokens that the provider counted last, and the characters of later events. It only reads events.
import type { Frozen, Usage } from '../kernel/content.ts'
import type { Event, OwnerBody } from '../kernel/event.ts'
import { FITTED_CHARS_MIN } from '../kernel/transcript.ts'
import { CHARS_A_TOKEN, charsOf } from '../view/session-history.ts'
import { CHARS_A_TOKEN_MIN, guessCharsPerToken, LEARNED_FACTOR, textOfEvent, tokensAtRatio } from './estimate.ts'

/**
 * From this share of the window on, old results are cleared, or the newest batch is shortened if it is a large part of
 * the window.
 */
export const CLEAR_AT = 0.8
/** The largest share of the window that the newest batch may take in a context that is nearly full. */
export const BATCH_SHARE = 0.3
/**
 * Old results are cleared until a request takes the share `TARGET` of the window, and only if it gets at most as long
 * as `WORTH`.
 */
const TARGET = 0.25
const WORTH = 0.75
/** From this share of the window on, the older part is cut. */
export const CUT_AT = 0.9
/** A cut leaves the newest whole turns up to this share of the window. */
export const TAIL = 0.2
/** From this share of the window on, no request is made if compaction is off. */
export const FULL_AT = 0.95
/** The number of failed summaries in a row after which no other is requested. */
export const FAILURES_MAX = 3
/** Every model takes this many tokens: below it the size of its window is not looked up. */
const LOOKED_AT_FROM = 1_000
/** The tokens of the placeholder that a cleared result leaves. */
const PLACEHOLDER_TOKENS = 12
/**
 * If there are more results than this, neighbours are counted as one: the state of a session must not grow with its
 * length.
 */
const RESULTS_COUNTED = 512
/** The events since the last count must have at least this many tokens to learn from them. */
const LEARNED_FROM = 100

export type CompactionBody = Extract<OwnerBody, { type: 'context.compacted' }>
/** A result, or several consecutive ones from `seq` on: clearing it frees this many tokens. */
type CountedResult = Frozen<{ seq: number; tokens: number }>
/** A result that the model has not seen yet. */
type UnseenResult = Frozen<{ seq: number; chars: number; tokens: number }>

export type SavedFill = Frozen<{
  tokens: number
  counted: boolean
  fresh: number
  failures: number
  why: string
  cut: boolean
  learned?: number
  refusals?: number
  charsPerToken?: number
  renewed?: boolean
  grown: ContextGrowth
  reply: number
  seen: number
  results: readonly CountedResult[]
  batch: readonly UnseenResult[]
  inherits: boolean
}>
/**
 * The growth since the last counted request: characters, the tokens estimated for them, and the tokens that the guess
 * alone gives.
 */
type ContextGrowth = Frozen<{ chars: number; tokens: number; guessed: number }>
const NOTHING: ContextGrowth = { chars: 0, tokens: 0, guessed: 0 }

/** Null for a state of another version: the fill is then counted from the log. */
export function restoreFill(saved: SavedFill | undefined): WindowFill | null {
  return saved && Array.isArray(saved.results) && saved.grown ? new WindowFill(saved) : null
}

export class WindowFill {
  /** About how many tokens the next request has. */
  tokens = 0
  /**
   * The provider has counted at least once. Until then, `tokens` lacks the beginning of every request and the inherited
   * part of a fork.
   */
  counted = false
  /** The number of failed summaries in a row, and the reason for the last failure. */
  failures = 0
  why = ''
  /** The context was cut since the last reply: another cut would change nothing. */
  cut = false
  /** The largest possible window, as refusals since the last reply showed, and the number of these refusals. */
  learned = Number.POSITIVE_INFINITY
  refusals = 0
  /** The characters per token of the last count. Infinity if nothing was learned yet. */
  charsPerToken = Number.POSITIVE_INFINITY
  /** Tokens of events after the open request was made. */
  #fresh = 0
  #grown = NOTHING
  /** The last reply must have this many more tokens than the provider counted for it. */
  #reply = 0
  /** Instructions and tools may have changed since the last count, so its growth is not known. */
  #renewed = false
  /** Results that the model has seen and that are shown whole, the oldest first. */
  #results: CountedResult[] = []
  /** The newest result that the model has seen. */
  #seen = 0
  /** Results since the last reply: the model has not seen them, so they are never cleared. */
  #batch: readonly UnseenResult[] = []
  #inherits = false

  /** Goes on from a saved state. */
  constructor(saved?: SavedFill) {
    if (!saved) return
    const { tokens, counted, failures, why, cut, fresh, grown, seen, results, batch, inherits } = saved
    Object.assign(this, { tokens, counted, failures, why, cut })
    this.learned = saved.learned ?? Number.POSITIVE_INFINITY
    this.refusals = saved.refusals ?? 0
    this.charsPerToken = saved.charsPerToken ?? Number.POSITIVE_INFINITY
    this.#fresh = fresh
    this.#grown = grown
    this.#reply = saved.reply
    this.#renewed = saved.renewed ?? false
    this.#seen = seen
    this.#results = [...results]
    this.#batch = batch
    this.#inherits = inherits
  }

  take(event: Event): void {
    switch (event.type) {
      case 'session.created':
        this.#inherits = event.fork !== undefined
        return
      case 'run.started':
        this.#renewed = true
        return
      case 'model.started':
        this.#fresh = 0
        return
      case 'agent.message':
        return this.#replied(event)
      case 'agent.tool_result':
        this.#batch = [...this.#batch, { seq: event.seq, ...this.#add(event) }]
        return
      case 'user.message':
      case 'user.custom_tool_result':
      case 'note.added':
        return void this.#add(event)
      case 'context.compacted':
        return this.#compacted(event)
      case 'model.failed':
        // The run waits for a person. Their next message is sent whole: by then another window may apply.
        if (event.class === 'overflow') this.#forgetRefusals()
        return
      default:
        return
    }
  }

  /** Whether the context may be so full that the size of the model's window is needed. */
  get needsWindow(): boolean {
    return this.tokens >= LOOKED_AT_FROM || (this.#inherits && !this.counted)
  }

  /**
   * Whether the results since the last reply are such a large part of the window that they are shortened before
   * anything is cleared.
   */
  isBatchLarge(window: number): boolean {
    return this.#batch.reduce((sum, { tokens }) => sum + tokens, 0) > window * BATCH_SHARE
  }

  /**
   * Clears the oldest results until the target is reached. Null if the context is not full, or if clearing would not
   * make enough room.
   */
  planClearing(window: number): CompactionBody | null {
    if (this.tokens < window * CLEAR_AT) return null
    let [at, after] = [0, this.tokens]
    for (; at < this.#results.length && after > window * TARGET; at++) after -= this.#results[at]?.tokens ?? 0
    const last = this.#results.at(-1)
    if (last === undefined || after > window * WORTH) return null
    const kept = this.#results[at] ?? this.#batch[0] ?? { seq: this.#seen + 1 }
    return { type: 'context.compacted', cleared: kept.seq, before: this.tokens, after: Math.max(0, Math.ceil(after)) }
  }

  /** Records that the open request turned out to be this long. */
  learn(tokens: number): void {
    if (!this.counted) this.tokens = Math.max(this.tokens, tokens)
  }

  /** The counted tokens of the open request. */
  get openRequestTokens(): number {
    return this.counted ? this.tokens - this.#fresh : 0
  }

  /**
   * Replaces a count that is too large for the current request, since an earlier version took a sum for a length, by an
   * estimate.
   */
  discardCount(estimated: number): void {
    this.counted = false
    this.charsPerToken = Number.POSITIVE_INFINITY
    this.tokens = estimated
  }

  /**
   * The characters per token in a request of `chars` characters: from the count of the whole, or from what came last,
   * whichever is smaller.
   */
  charsPerTokenIn(chars: number): number {
    const whole = this.counted ? chars / Math.max(1, this.tokens) : Number.POSITIVE_INFINITY
    return Math.max(CHARS_A_TOKEN_MIN, Math.min(this.charsPerToken, whole))
  }

  save(): SavedFill {
    const { tokens, counted, failures, why, cut } = this
    const own = { fresh: this.#fresh, grown: this.#grown, reply: this.#reply, seen: this.#seen, batch: this.#batch }
    const results = this.#results.slice()
    const refused = this.refusals === 0 ? {} : { learned: this.learned, refusals: this.refusals }
    const ratio = Number.isFinite(this.charsPerToken) ? { charsPerToken: this.charsPerToken } : {}
    const renewed = this.#renewed ? { renewed: true } : {}
    return {
      tokens,
      counted,
      failures,
      why,
      cut,
      ...refused,
      ...ratio,
      ...renewed,
      ...own,
      results,
      inherits: this.#inherits,
    }
  }

  #add(event: Event): Pick<ContextGrowth, 'chars' | 'tokens'> {
    const chars = charsOf(event)
    const text = textOfEvent(event)
    const perToken = guessCharsPerToken(text)
    const guessed = tokensAtRatio(chars, text, perToken)
    const tokens = tokensAtRatio(chars, text, Math.min(perToken, this.charsPerToken))
    this.tokens += tokens
    this.#fresh += tokens
    const before = this.#grown
    this.#grown = { chars: before.chars + chars, tokens: before.tokens + tokens, guessed: before.guessed + guessed }
    return { chars, tokens }
  }

  #replied(event: Extract<Event, { type: 'agent.message' }>): void {
    const fresh = this.#fresh
    const used = countedTokens(event.usage)
    if (used !== null && this.counted && !this.#renewed) this.#learn(requestLength(event.usage))
    this.#count(this.#batch)
    this.#batch = []
    this.cut = false
    this.#forgetRefusals()
    if (used === null) return void this.#add(event)
    this.counted = true
    this.#renewed = false
    this.#grown = scaleGrowth(this.#grown, fresh)
    this.#reply = Math.ceil(charsOf(event) / CHARS_A_TOKEN) - (event.usage?.outputTokens ?? 0)
    this.tokens = used + fresh
  }

  #forgetRefusals(): void {
    this.learned = Number.POSITIVE_INFINITY
    this.refusals = 0
  }

  /**
   * The events since the last count were counted now: that shows how long a token is, and how large the results are.
   */
  #learn(inputTokens: number): void {
    const shown = scaleGrowth(this.#grown, this.#grown.tokens - this.#fresh)
    if (shown.guessed < LEARNED_FROM) return
    // If the provider counted less for a reply than it can be, the reply was still read in full.
    const counted = inputTokens - (this.tokens - this.#fresh - shown.tokens) - Math.max(0, this.#reply)
    // Never fewer than guessed: reasoning counts as output and is not read again, which makes texts look smaller.
    const tokens = Math.min(shown.guessed * LEARNED_FACTOR, Math.max(shown.guessed, counted))
    this.charsPerToken = shown.chars / tokens
    const factor = tokens / shown.tokens
    this.#batch = this.#batch.map((result) => ({ ...result, tokens: Math.ceil(result.tokens * factor) }))
  }

  /** The model has seen these results by now, so they can be cleared. */
  #count(batch: readonly UnseenResult[]): void {
    for (const { seq, tokens } of batch) {
      this.#seen = seq
      this.#results.push({ seq, tokens: Math.max(0, tokens - PLACEHOLDER_TOKENS) })
    }
    if (this.#results.length <= RESULTS_COUNTED) return
    this.#results = this.#results.flatMap(({ seq, tokens }, i) =>
      i % 2 === 1 ? [] : [{ seq, tokens: tokens + (this.#results[i + 1]?.tokens ?? 0) }],
    )
  }

  #compacted(event: Extract<Event, { type: 'context.compacted' }>): void {
    const { cut, cleared, fitted, before = 0, after, failed, learned } = event
    if (learned !== undefined) {
      this.learned = Math.min(this.learned, learned)
      this.refusals += 1
    }
    if (failed !== undefined) {
      this.failures += 1
      this.why = failed
    } else if (cut !== undefined) this.failures = 0
    if (after !== undefined) this.tokens = after
    if (fitted !== undefined) this.#fitted(Math.max(fitted, FITTED_CHARS_MIN), before - (after ?? before))
    if (cleared !== undefined) this.#results = this.#results.filter(({ seq }) => seq >= cleared)
    if (cut === undefined) return
    this.cut = true
    this.#results = this.#results.filter(({ seq }) => seq > cut)
  }

  #fitted(charsMax: number, saved: number): void {
    this.#batch = this.#batch.map(({ seq, chars, tokens }) => {
      const share = Math.min(1, charsMax / Math.max(1, chars))
      return { seq, chars: Math.min(chars, charsMax), tokens: Math.ceil(tokens * share) }
    })
    this.#grown = scaleGrowth(this.#grown, Math.max(0, this.#grown.tokens - saved))
    this.#fresh = Math.min(this.#fresh, this.#grown.tokens)
  }
}

/** The part of the growth that has this many of its tokens. */
function scaleGrowth({ chars, tokens, guessed }: ContextGrowth, part: number): ContextGrowth {
  const share = part / Math.max(1, tokens)
  return { chars: Math.round(chars * share), tokens: part, guessed: Math.round(guessed * share) }
}

/** A fill with this count. */
export function fillWithTokens(tokens: number): WindowFill {
  const none = {
    fresh: 0,
    grown: NOTHING,
    reply: 0,
    failures: 0,
    why: '',
    cut: false,
    seen: 0,
    results: [],
    batch: [],
    inherits: false,
  }
  return new WindowFill({ tokens, counted: true, ...none })
}

/** The length of the request that this usage counts. */
export function requestLength({ inputTokens = 0, contextTokens = inputTokens }: Partial<Usage> = {}): number {
  return contextTokens
}

/** Null if the provider did not count. Some servers report 0 for everything. */
export function countedTokens(usage: Usage | undefined): number | null {
  const length = requestLength(usage)
  const used = length + (usage?.outputTokens ?? 0)
  return length > 0 && Number.isSafeInteger(used) ? used : null
}
