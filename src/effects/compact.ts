// When the context is full: the older part of the conversation is summarised by the session's own model, under the run's own limits of
// money, and the request is made anew without it. Loaded only when it is nearly full, or when a provider says that it is.
import type { Mutable, Routed } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import type { ModelFailure, Reply, Request } from '../ports/model.ts'
import { RETRIEVE } from '../context/juice/marker.ts'
import { writeCodedHalf } from '../context/coded-summary.ts'
import { estimateMessage, guessCharsPerToken } from '../context/estimate.ts'
import {
  type Cut,
  cutOf,
  isChangeNote,
  isPinned,
  keptResults,
  materialOf,
  readSummary,
  ruleLines,
  rulesIn,
  SUMMARIZER,
  type Summary,
  type SummaryWish,
  wholeSummary,
} from '../context/summary.ts'
import { fitBatch, fitRest, newestBatch } from '../context/fit.ts'
import { CLEAR_AT, type Compacted, CUT_AT, FAILURES_MAX, type Fill, FULL_AT, TAIL } from '../context/window.ts'
import type { FlightContext, Landing } from '../engine/flights.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { type Agent, resolved, type Services, summarizerOf } from '../engine/wiring.ts'
import { looksLikeCall } from '../models/protocols/leaked.ts'
import type { Allowances } from '../riders/money/allowance.ts'
import { holdsUnder } from '../riders/money/charges.ts'
import { BudgetedModel } from '../riders/money/budgeted-model.ts'
import { charsIn, type Spent } from '../riders/money/usage-estimate.ts'
import { CHARS_A_TOKEN, sizeOfMessage } from '../view/history.ts'
import type { Window } from '../riders/guard/guard.ts'
import { estimateRequest } from './request-length.ts'
import { findWindow } from './window.ts'
import { lastStart } from './last-start.ts'
import type { Tools } from './toolbox.ts'
import { shortened, textOf } from '../view/text.ts'

export type Compacting = {
  readonly services: Services
  readonly cache: SessionCache
  readonly agent: Agent
  readonly transcript: Transcript
  readonly request: Request
  /** Those that the model can call now. */
  readonly tools: Tools | null
  readonly flight: FlightContext
  readonly allowances: Allowances
  readonly window: Window
  readonly fill: Fill
  /** How many characters of this request a token has at most. */
  readonly charsPerToken: number
  readonly focus?: string
  /** The provider said that the request is too long, whatever is known of its window. */
  readonly overflowed?: true
  /** Somebody asked for it: a summary is asked for, however many failed before. */
  readonly byHand?: true
}

/**
 * What is to be done with a request that is nearly too long. `landing`: nothing is asked, and this is recorded instead. Otherwise it is
 * asked as it is, unless the provider is in trouble; what is `beside` lands with what comes of it.
 */
export type Fullness =
  | { readonly landing: Landing }
  | { readonly failure: ModelFailure | null; readonly beside: Omit<Landing, 'recount'> }

const AS_IT_IS: Fullness = { failure: null, beside: { events: [] } }
/** The summarizer reads at most this part of a window, and never more than this. The rest is for what it writes. */
const READ_SHARE = 0.85
const READ_CHARS_MAX = 1_600_000
/** Of a request that a provider found too long. */
const OVERFLOW_SHARE = 0.5
const REFUSED_SHARE = 0.7
const ESTIMATE_SLACK = 1.5
/** So often in a row a refused request is made shorter. */
const REFUSALS_MAX = 4
const REASON_CHARS = 500
/** Of the window: a cut must take at least this much away. */
const SAVED_MIN = 0.05
/** Of the window, and in tokens: how long the half of a summary may be that the model writes. */
const WRITTEN_SHARE = 0.04
const WRITTEN_MIN = 500
const WRITTEN_MAX = 1_500
const WORDS_A_TOKEN = 0.7
/** A provider that counts even more tokens is not believed here. */
const GUESS_SCALE_MIN = 0.25

export async function whenFull(given: Compacting): Promise<Fullness> {
  const { fill } = given
  learnSize(given)
  const window = { ...given.window, tokens: Math.min(given.window.tokens, fill.learned) }
  if (fill.tokens < window.tokens * CLEAR_AT) return AS_IT_IS
  // The size of the window is known only now. Held back, the request is asked for again, and then the guard ends the run.
  if (!window.compacts) return fill.tokens >= window.tokens * FULL_AT ? { landing: heldBack() } : AS_IT_IS
  return (await takeStep({ ...given, window })) ?? AS_IT_IS
}

/** What no provider has counted is estimated from the request itself: instructions and tools are nowhere else. */
function learnSize(compacting: Compacting): void {
  const { fill, request, transcript } = compacting
  if (!fill.counted) fill.learn(estimateRequest(request, transcript.messages, compacting.charsPerToken))
}

/** The first step that makes the request shorter; the request is then asked for again, and the next step taken if it must. */
async function takeStep(compacting: Compacting): Promise<Fullness | null> {
  const { fill, window, transcript } = compacting
  const fits = fitBatch(transcript.messages, compacting, window.tokens)
  if (fits !== null) return shortenedBy(compacting, 'The newest texts were shortened to fit the context.', fits)
  const clears = fill.clearing(window.tokens)
  if (clears !== null) return shortenedBy(compacting, 'Old results were cleared to fit the context.', clears)
  if (fill.tokens < window.tokens * CUT_AT) return null
  const cut = await worthCutting(compacting)
  if (cut !== null) return shorter(compacting, cut)
  const rest = fitRest(transcript.messages, compacting, window.tokens * CUT_AT)
  if (rest !== null) return shortenedBy(compacting, 'The newest texts were shortened to fit the context.', rest)
  return cannotFit(compacting) ? { landing: parkFull(compacting) } : null
}

/** Null: it was cut just now, or most of the context is in what stays: a summary would cost money and win nothing. */
async function worthCutting(compacting: Compacting): Promise<Cut | null> {
  const { fill, window, transcript, charsPerToken } = compacting
  if (fill.cut) return null
  const tokensOf = (message: Message): number => estimateMessage(message, charsPerToken)
  const cut = cutOf(transcript, await staying(compacting), window.tokens * TAIL, tokensOf)
  if (cut === null) return null
  const saved = cut.old.reduce((sum, message) => sum + tokensOf(message), 0)
  return saved < window.tokens * SAVED_MIN ? null : cut
}

/**
 * Instructions, tools and pins alone leave no room, or all together is longer than the window. Where the provider has counted nothing
 * yet, the size is an estimate: then it is asked unless it is far too long.
 */
function cannotFit(compacting: Compacting): boolean {
  const { fill, window } = compacting
  if (pinnedTokens(compacting) > window.tokens * CUT_AT) return true
  return fill.tokens >= window.tokens * (fill.counted ? 1 : ESTIMATE_SLACK)
}

/** Of what is in every request: instructions, tools and pins. */
function pinnedTokens({ request, transcript, charsPerToken }: Compacting): number {
  return estimateRequest(request, transcript.messages.filter(isPinned), charsPerToken)
}

/**
 * Messages that no cut takes away: pins, and notes of what changed since the instructions and tools were made that this run shows.
 * Without those it would go by what does not hold any more. A new epoch shows what there is, and they go.
 */
export async function staying({
  services,
  cache,
  transcript,
  window,
}: Pick<Compacting, 'services' | 'cache' | 'transcript' | 'window'>): Promise<ReadonlySet<Message>> {
  const last = await lastStart(services.store, cache)
  const since = last?.since ?? last?.seq ?? 0
  const stays = (message: Message): boolean =>
    isChangeNote(message) ? message.seq > since && transcript.placeOf(message) > 0 : isPinned(message)
  const rules = detects(services) ? rulesIn(transcript, window.tokens) : []
  return new Set([...transcript.messages.filter(stays), ...rules])
}

function detects({ compaction }: Services): boolean {
  return compaction !== false && compaction?.detectPins !== false
}

function charsOf({ old }: Cut): number {
  return old.reduce((sum, message) => sum + sizeOfMessage(message), 0)
}

/**
 * The provider says that the request is too long, whatever was estimated. The window is taken to have 0.7 of what was sent, and the same
 * steps are taken for that. Null: nothing can be done about it.
 */
export async function afterOverflow(given: Compacting): Promise<Fullness | null> {
  const { fill } = given
  if (!given.window.compacts || fill.refusals >= REFUSALS_MAX) return null
  learnSize(given)
  const sent = Math.min(given.window.tokens, fill.learned, fill.tokens)
  const tokens = Math.max(1, Math.floor(sent * REFUSED_SHARE))
  const step = await takeStep({ ...given, window: { ...given.window, tokens }, overflowed: true })
  // What was sent and refused is told as the provider's own failure.
  return step !== null && 'landing' in step && step.landing.events.every(({ type }) => type === 'model.failed')
    ? null
    : step
}

function shortenedBy({ overflowed, window }: Compacting, why: string, body: Compacted): Fullness {
  const learned = overflowed ? { learned: window.tokens } : {}
  return { landing: { events: [heldBackAs(why), { ...body, ...learned }] } }
}

async function shorter(compacting: Compacting, cut: Cut): Promise<Fullness> {
  const { cache, request, flight, fill, window, overflowed } = compacting
  const { failure, over, rules = [], body } = await compacted(compacting, cut)
  // The request itself may still be within the budget.
  if (failure === null && body?.cut !== undefined && (!over || overflowed || fill.tokens >= window.tokens)) {
    const learned = overflowed ? { learned: window.tokens } : {}
    const events = [heldBackAs('The context was nearly full, and was compacted.'), { ...body, ...learned }, ...rules]
    return { landing: { events } }
  }
  // What could not be settled while it was asked for is settled with this.
  const charges = [{ type: 'lost', key: holdsUnder(cache.id, `${request.seq}.0`) }] as const
  const stopped = failure && flight.reason !== null ? { ...failure, unasked: true as const } : failure
  return { failure: stopped, beside: { events: over || body === null ? [] : [body], charges } }
}

/** `over`: there was no money for it. `rules`: what the user forbade, in words of what is cut. */
type Tried = {
  readonly body: Compacted | null
  readonly failure: ModelFailure | null
  readonly over?: boolean
  readonly rules?: readonly OwnerBody[]
}

/**
 * Asks for the summary and puts it together with what code writes from the log. Without an answer that counts, the coded half stands
 * alone, and `failed` says why. What it cost is in the body, whatever became of it; a failure that may pass is told beside it.
 */
export async function compacted(compacting: Compacting, cut: Cut): Promise<Tried> {
  const { agent, fill, flight, byHand } = compacting
  const model = new BudgetedModel(compacting, `${compacting.request.seq}.0`, compacting.allowances)
  const coded = await codedHalf(compacting, cut)
  const isOff = fill.failures >= FAILURES_MAX && !byHand
  const { summarizer, takes } = await summarizing(compacting)
  const { said, answer } = isOff
    ? { said: { failed: `no summary was asked for: ${FAILURES_MAX} in a row failed (${fill.why})` }, answer: null }
    : await askTwice(compacting, cut, coded, { takes, ask: (request) => model.ask(summarizer, request) })
  const spent: Spent & Routed = { ...model.spent, ...(summarizer === agent.model ? {} : routedIn(answer)) }
  // Trouble that may pass says nothing about the summary.
  if (answer?.type === 'failure' && (answer.retryable || flight.reason !== null))
    return { body: model.spent && { type: 'context.compacted', ...spent }, failure: unpaid(answer) }
  const reason = 'failed' in said ? { failed: shortened(said.failed, REASON_CHARS) } : {}
  if (model.over && byHand)
    return { body: { type: 'context.compacted', ...reason, ...spent }, failure: null, over: true }
  const summary = wholeSummary(['summary' in said ? said.summary : '', coded])
  const made = await cutBody(compacting, cut, { summary, ...(model.over ? {} : reason), ...spent })
  return { ...made, failure: null, over: model.over }
}

async function cutBody(
  compacting: Compacting,
  cut: Cut,
  more: Pick<Compacted, 'failed'> & Spent & Routed & { readonly summary: string },
): Promise<Pick<Tried, 'body' | 'rules'>> {
  const { transcript, window, request, fill } = compacting
  const before = Math.max(fill.tokens, 1)
  const all = charsIn(request)
  const after = Math.ceil((before * Math.max(0, all - charsOf(cut) + more.summary.length)) / Math.max(1, all))
  const body: Mutable<Compacted> = { type: 'context.compacted', cut: cut.cut, before, after, ...more }
  const stays = await staying(compacting)
  const pins = [...stays].filter((message) => transcript.placeOf(message) > 0).map(({ seq }) => seq)
  if (pins.length > 0 || transcript.messages.some(isPinned)) body.pins = pins
  const lines = detects(compacting.services) ? ruleLines(cut.old, stays, window.tokens) : []
  if (lines.length === 0) return { body }
  const text = ['The user said in what is summarised now:', ...lines].join('\n')
  return { body, rules: [{ type: 'note.added', kind: 'pin', text }] }
}

/** How much longer a guess takes tokens to be than the provider counted them, at most 1: the text of a summary is of no kind that was counted. */
function guessScale(compacting: Compacting): number {
  const { fill, request, transcript } = compacting
  if (!fill.counted) return 1
  const guessed = estimateRequest(request, transcript.messages, Number.POSITIVE_INFINITY)
  return Math.min(1, Math.max(GUESS_SCALE_MIN, guessed / Math.max(1, fill.tokens)))
}

/** What users said, files and pictures, from the log, and where the results are. */
async function codedHalf(compacting: Compacting, cut: Cut): Promise<string> {
  const { services, agent, cache, transcript, window, tools } = compacting
  // Where the model does not have the tool yet, it is offered it from this compaction on.
  const retrieves = tools?.has(RETRIEVE) === true || agent.retrieve !== undefined
  const log = { store: services.store, session: cache.id, transcript }
  const sizes = { chars: charsOf(cut), windowTokens: window.tokens, scale: guessScale(compacting) }
  const said = await writeCodedHalf({ ...log, ...sizes, cut, retrieves })
  return [said, retrieves ? keptResults(cut, transcript, window.tokens) : ''].filter((text) => text !== '').join('\n\n')
}

type Asked = { readonly said: Summary; readonly answer: Reply | ModelFailure }
/** Who writes the summary, and how much it takes. */
type Summarizer = { readonly takes: Window; readonly ask: (request: Request) => Promise<Reply | ModelFailure> }

/** One that does not count is asked for once more, and the model is told what was wrong with it. */
async function askTwice(compacting: Compacting, cut: Cut, coded: string, { takes, ask }: Summarizer): Promise<Asked> {
  const { window, focus, request } = compacting
  const reading = { ...compacting, window: takes }
  const tokens = Math.min(WRITTEN_MAX, Math.max(WRITTEN_MIN, window.tokens * WRITTEN_SHARE))
  const names = request.tools.map(({ name }) => name)
  const read = (answer: Reply): Summary => {
    const text = textOf(answer.parts)
    if (looksLikeCall(text, names)) return { failed: 'the summarizer wrote calls instead of a summary' }
    const said = readSummary(answer, Math.floor(tokens * guessScale(compacting) * guessCharsPerToken(text)))
    if ('failed' in said || wholeSummary([said.summary, coded]).length < charsOf(cut)) return said
    return { failed: 'the summary was longer than what it stands for' }
  }
  const wish = { focus, wordsMax: Math.floor(tokens * WORDS_A_TOKEN) }
  let asked = await askOnce(reading, cut, wish, ask, read)
  if ('failed' in asked.said && asked.answer.type === 'reply')
    asked = await askOnce(reading, cut, { ...wish, refused: asked.said.failed }, ask, read)
  return asked
}

async function askOnce(
  compacting: Compacting,
  cut: Cut,
  wish: SummaryWish,
  ask: Summarizer['ask'],
  read: (answer: Reply) => Summary,
): Promise<Asked> {
  let answer = await ask(await summaryRequest(compacting, cut, wish))
  // How many tokens a text has is an estimate. Once it is tried with less.
  if (answer.type === 'failure' && answer.class === 'overflow' && !compacting.overflowed)
    answer = await ask(await summaryRequest({ ...compacting, overflowed: true }, cut, wish))
  return { said: answer.type === 'failure' ? { failed: answer.message } : read(answer), answer }
}

/** The model of the route, if there is one, and what it takes; else the session's own. */
async function summarizing({ services, agent, window }: Compacting) {
  const summarizer = summarizerOf(services, agent)
  return { summarizer, takes: summarizer === agent.model ? window : await findWindow(services, summarizer) }
}

function routedIn(answer: Reply | ModelFailure | null): Routed {
  if (answer === null || answer.type === 'failure') return {}
  const { route, fallback_from } = answer
  return { ...(route === undefined ? {} : { route }), ...(fallback_from === undefined ? {} : { fallback_from }) }
}

/** How many characters the summarizer may read. Tokens are as long as the provider counted them in what was sent. */
function roomOf({ request, window, fill, overflowed }: Compacting): number {
  const chars = charsIn(request)
  const charsAToken = fill.counted
    ? Math.min(CHARS_A_TOKEN, Math.max(1, chars / Math.max(1, fill.tokens)))
    : CHARS_A_TOKEN
  const takes = window.tokens * READ_SHARE * charsAToken
  // In a window of unknown size what was sent so far has room.
  return Math.min(takes, overflowed ? chars * OVERFLOW_SHARE : Number.isFinite(takes) ? takes : chars)
}

async function summaryRequest(compacting: Compacting, cut: Cut, wish: SummaryWish): Promise<Request> {
  const { services, request } = compacting
  const old = await resolved(services.store, cut.old, () => 0)
  const text = materialOf(old, wish, Math.min(READ_CHARS_MAX, roomOf(compacting)))
  const { session, seq, route } = request
  const messages = [{ role: 'user', seq, parts: [{ type: 'text', text }] }] as const
  const asked = { session, seq, instructions: SUMMARIZER, tools: [], allow: 'none', boost: false, messages } as const
  return route === undefined ? asked : { ...asked, route }
}

/** The request itself was not made: nothing of it has to be paid. */
function unpaid(failure: ModelFailure): ModelFailure {
  const { partial: _partial, broken: _broken, ...rest } = failure
  return rest.class === 'timeout' ? { ...rest, class: 'other' } : rest
}

function heldBack(): Landing {
  return { events: [heldBackAs('The context is nearly full.')] }
}

function heldBackAs(message: string): OwnerBody {
  return { type: 'model.failed', class: 'superseded', message, retryable: true, unasked: true }
}

/** It waits for a person: the reason says how large everything is, and what to do. */
function parkFull(compacting: Compacting): Landing {
  const { fill, window, transcript, charsPerToken } = compacting
  const newest = newestBatch(transcript.messages)
  const fresh = newest.reduce((sum, message) => sum + estimateMessage(message, charsPerToken), 0)
  const pinned = pinnedTokens(compacting)
  const rest = Math.max(0, fill.tokens - pinned - fresh)
  const message = `The context is full: about ${fill.tokens} of ${window.tokens} tokens. Instructions, tools and pinned messages take ${pinned} of them, the newest messages and results ${fresh}, and the rest of the conversation ${rest}. Nothing was sent. Unpin something, fork the session from an earlier event, or go on with a model that takes more.`
  return { events: [{ type: 'model.failed', class: 'overflow', message, retryable: false, unasked: true }] }
}
