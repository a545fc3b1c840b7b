// How full the context of a session is, and what can be done about it: a fold of the log beside the session's. Tokens as the provider
// counted them last, and characters of what came since. It only reads events.
import type { Frozen, Usage } from '../kernel/content.ts'
import type { Event, OwnerBody } from '../kernel/event.ts'
import { FITTED_CHARS_MIN } from '../kernel/transcript.ts'
import { CHARS_A_TOKEN, charsOf } from '../view/history.ts'
import { CHARS_A_TOKEN_MIN, guessCharsPerToken, LEARNED_FACTOR, textOfEvent, tokensAt } from './estimate.ts'

/** Of the window: from here on the newest batch is shortened if it is a large part of it, and old results are cleared. */
export const CLEAR_AT = 0.8
/** Of the window: what the newest batch may take of a context that is nearly full. */
export const BATCH_SHARE = 0.3
/** Of the window: old results are cleared until a request is this long, and only if it gets at least as short as `WORTH`. */
const TARGET = 0.25
const WORTH = 0.75
/** Of the window: from here on the older part is cut. */
export const CUT_AT = 0.9
/** Of the window: a cut leaves the newest whole turns up to this. */
export const TAIL = 0.2
/** Of the window: from here on nothing is asked any more if it may not be compacted. */
export const FULL_AT = 0.95
/** Failed summaries in a row after which no other is asked for. */
export const FAILURES_MAX = 3
/** Every model takes this many tokens: below it the size of its window is not looked up. */
const LOOKED_AT_FROM = 1_000
/** The placeholder that a cleared result leaves. */
const PLACEHOLDER_TOKENS = 12
/** Of more results than this, neighbours are counted as one: what is kept of a session must not grow with its length. */
const RESULTS_COUNTED = 512
/** What came since the last count must have so many tokens to learn from it. */
const LEARNED_FROM = 100

export type Compacted = Extract<OwnerBody, { type: 'context.compacted' }>
/** A result, or several one after another from `seq` on: so many tokens are freed when it is cleared. */
type Result = Frozen<{ seq: number; tokens: number }>
/** One that the model has not seen yet. */
type NewResult = Frozen<{ seq: number; chars: number; tokens: number }>

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
  grown: Grown
  reply: number
  seen: number
  results: readonly Result[]
  batch: readonly NewResult[]
  inherits: boolean
}>
/**
 * What came since the last counted request: characters, the tokens that were estimated for them, and those that a guess alone makes of
 * them.
 */
type Grown = Frozen<{ chars: number; tokens: number; guessed: number }>
const NOTHING: Grown = { chars: 0, tokens: 0, guessed: 0 }

/** Null for one that another version saved: what is full is then counted from the log. */
export function restoreFill(saved: SavedFill | undefined): Fill | null {
  return saved && Array.isArray(saved.results) && saved.grown ? new Fill(saved) : null
}

export class Fill {
  /** About how many tokens the next request has. */
  tokens = 0
  /** The provider has counted at least once; until then the beginning of every request, and what a fork inherited, is not in `tokens`. */
  counted = false
  /** Summaries in a row that failed, and why the last one did. */
  failures = 0
  why = ''
  /** It was cut since the last reply: doing so again would change nothing. */
  cut = false
  /** How many tokens the window has at most, as refusals since the last reply showed, and how many these were. */
  learned = Number.POSITIVE_INFINITY
  refusals = 0
  /** How many characters a token had in what was counted last. Without end: nothing was learned yet. */
  charsPerToken = Number.POSITIVE_INFINITY
  /** Tokens of what came after the open request was made. */
  #fresh = 0
  #grown = NOTHING
  /** So many tokens more than the provider counted for it, the last reply must have. */
  #reply = 0
  /** Instructions and tools may have changed since the last count: what it grew by is not known. */
  #renewed = false
  /** Results that the model has seen and that are shown whole, the oldest first. */
  #results: Result[] = []
  /** The newest result that the model has seen. */
  #seen = 0
  /** Results since the last reply: the model has not seen them, so they are never cleared. */
  #batch: readonly NewResult[] = []
  #inherits = false

  /** Goes on where another one was saved. */
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
        // It waits for a person. What they say next is sent whole: by then another window may hold.
        if (event.class === 'overflow') this.#forgetRefusals()
        return
      default:
        return
    }
  }

  /** Whether it may be so full that somebody has to find out how much the model takes. */
  get matters(): boolean {
    return this.tokens >= LOOKED_AT_FROM || (this.#inherits && !this.counted)
  }

  /** The results since the last reply are so large a part of the window that they are shortened before anything is cleared. */
  isBatchLarge(window: number): boolean {
    return this.#batch.reduce((sum, { tokens }) => sum + tokens, 0) > window * BATCH_SHARE
  }

  /** Clears the oldest results until the target is reached. Null: it is not full, or clearing would not make enough room. */
  clearing(window: number): Compacted | null {
    if (this.tokens < window * CLEAR_AT) return null
    let [at, after] = [0, this.tokens]
    for (; at < this.#results.length && after > window * TARGET; at++) after -= this.#results[at]?.tokens ?? 0
    const last = this.#results.at(-1)
    if (last === undefined || after > window * WORTH) return null
    const kept = this.#results[at] ?? this.#batch[0] ?? { seq: this.#seen + 1 }
    return { type: 'context.compacted', cleared: kept.seq, before: this.tokens, after: Math.max(0, Math.ceil(after)) }
  }

  /** What is asked now turned out to be as long as this. */
  learn(tokens: number): void {
    if (!this.counted) this.tokens = Math.max(this.tokens, tokens)
  }

  /** How many tokens the open request has, as far as that is counted. */
  get asked(): number {
    return this.counted ? this.tokens - this.#fresh : 0
  }

  /** The request that is made now cannot be as long as was counted: an earlier version took a sum for a length. It is estimated instead. */
  doubt(estimated: number): void {
    this.counted = false
    this.charsPerToken = Number.POSITIVE_INFINITY
    this.tokens = estimated
  }

  /** How many characters of a request a token has, which is `chars` long: as it was counted as a whole, or as what came last was. */
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

  #add(event: Event): Pick<Grown, 'chars' | 'tokens'> {
    const chars = charsOf(event)
    const text = textOfEvent(event)
    const perToken = guessCharsPerToken(text)
    const guessed = tokensAt(chars, text, perToken)
    const tokens = tokensAt(chars, text, Math.min(perToken, this.charsPerToken))
    this.tokens += tokens
    this.#fresh += tokens
    const before = this.#grown
    this.#grown = { chars: before.chars + chars, tokens: before.tokens + tokens, guessed: before.guessed + guessed }
    return { chars, tokens }
  }

  #replied(event: Extract<Event, { type: 'agent.message' }>): void {
    const fresh = this.#fresh
    const used = usedIn(event.usage)
    if (used !== null && this.counted && !this.#renewed) this.#learn(lengthIn(event.usage))
    this.#count(this.#batch)
    this.#batch = []
    this.cut = false
    this.#forgetRefusals()
    if (used === null) return void this.#add(event)
    this.counted = true
    this.#renewed = false
    this.#grown = scaleGrown(this.#grown, fresh)
    this.#reply = Math.ceil(charsOf(event) / CHARS_A_TOKEN) - (event.usage?.outputTokens ?? 0)
    this.tokens = used + fresh
  }

  #forgetRefusals(): void {
    this.learned = Number.POSITIVE_INFINITY
    this.refusals = 0
  }

  /** What came since the last count was counted now: from that it is known how long a token is, and how large the results are. */
  #learn(inputTokens: number): void {
    const shown = scaleGrown(this.#grown, this.#grown.tokens - this.#fresh)
    if (shown.guessed < LEARNED_FROM) return
    // A reply that the provider counted as less than it can be was read in full.
    const counted = inputTokens - (this.tokens - this.#fresh - shown.tokens) - Math.max(0, this.#reply)
    // Never fewer than guessed: a model's reasoning is counted as its output and is not read again, which looks like smaller texts.
    const tokens = Math.min(shown.guessed * LEARNED_FACTOR, Math.max(shown.guessed, counted))
    this.charsPerToken = shown.chars / tokens
    const factor = tokens / shown.tokens
    this.#batch = this.#batch.map((result) => ({ ...result, tokens: Math.ceil(result.tokens * factor) }))
  }

  /** These are seen by now, and can be cleared. */
  #count(batch: readonly NewResult[]): void {
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
    this.#grown = scaleGrown(this.#grown, Math.max(0, this.#grown.tokens - saved))
    this.#fresh = Math.min(this.#fresh, this.#grown.tokens)
  }
}

/** The part of it that has so many of its tokens. */
function scaleGrown({ chars, tokens, guessed }: Grown, part: number): Grown {
  const share = part / Math.max(1, tokens)
  return { chars: Math.round(chars * share), tokens: part, guessed: Math.round(guessed * share) }
}

/** One that was counted as this. */
export function filledWith(tokens: number): Fill {
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
  return new Fill({ tokens, counted: true, ...none })
}

/** How long the request was that it counts. */
export function lengthIn({ inputTokens = 0, contextTokens = inputTokens }: Partial<Usage> = {}): number {
  return contextTokens
}

/** Null: the provider did not count. Some servers say 0 for everything. */
export function usedIn(usage: Usage | undefined): number | null {
  const length = lengthIn(usage)
  const used = length + (usage?.outputTokens ?? 0)
  return length > 0 && Number.isSafeInteger(used) ? used : null
}
