// When the context is full: the older part of the conversation is summarised by the session's own model, under the run's own limits of
// money, and the request is made anew without it. Loaded only when it is nearly full, or when a provider says that it is.
import type { Mutable, Routed } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import type { ModelFailure, Reply, Request } from '../ports/model.ts'
import { RETRIEVE } from '../context/juice/marker.ts'
import {
  type Cut,
  cutOf,
  FEWER_KEPT,
  isChangeNote,
  isPinned,
  keptResults,
  materialOf,
  ruleLines,
  rulesIn,
  SUMMARIZER,
  summaryOf,
} from '../context/summary.ts'
import { fitBatch, fitRest, newestBatch } from '../context/fit.ts'
import { COMPACT_AT, type Compacted, FAILURES_MAX, type Fill, FIT_AT, FULL_AT } from '../context/window.ts'
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
  readonly focus?: string
  /** The provider said that the request is too long, whatever is known of its window. */
  readonly overflowed?: true
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

export async function whenFull(given: Compacting): Promise<Fullness> {
  const { request, fill, transcript } = given
  if (!fill.counted) fill.learn(Math.ceil(charsIn(request) / CHARS_A_TOKEN))
  const window = { ...given.window, tokens: Math.min(given.window.tokens, fill.learned) }
  const compacting = { ...given, window }
  if (fill.tokens < window.tokens * FIT_AT) return AS_IT_IS
  const fits = window.compacts ? fitBatch(transcript.messages, fill, window.tokens) : null
  if (fits !== null) return { landing: heldBackFor('The newest texts were shortened to fit the context.', fits) }
  if (fill.tokens < window.tokens * COMPACT_AT) return AS_IT_IS
  const full = fill.tokens >= window.tokens * FULL_AT
  // The size of the window is known only now. Held back, the request is asked for again, and then the guard can clear or end.
  if (!window.compacts) return full ? { landing: heldBack() } : AS_IT_IS
  if (fill.clearing(window.tokens) !== null) return { landing: heldBack() }
  const cut = await worthCutting(compacting, full ? 1 : undefined)
  if (cut !== null) return shorter(compacting, cut)
  return full ? withoutSummary(compacting) : AS_IT_IS
}

/** Null: it was cut just now, summaries fail, or most of the context is in what stays: a summary would cost money and win nothing. */
async function worthCutting(compacting: Compacting, least?: number): Promise<Cut | null> {
  const { fill, window, transcript } = compacting
  if (fill.cut || fill.failures >= FAILURES_MAX) return null
  const stays = await staying(compacting)
  let found: Cut | null = null
  for (const kept of least === undefined ? FEWER_KEPT.slice(0, 1) : FEWER_KEPT) {
    const cut = cutOf(transcript, stays, least, kept)
    if (cut === null || charsOf(cut) < window.tokens * CHARS_A_TOKEN * SAVED_MIN) continue
    found = cut
    if (fill.tokens - charsOf(cut) / CHARS_A_TOKEN < window.tokens * FULL_AT) break
  }
  return found
}

/** Nothing older can be taken away: the newest texts get the room that is left. What cannot fit is not sent. */
function withoutSummary(compacting: Compacting): Fullness {
  const { fill } = compacting
  const fits = fitsInRest(compacting)
  if (fits !== null) return { landing: fits }
  return cannotFit(compacting) || fill.failures >= FAILURES_MAX ? { landing: parkFull(compacting) } : AS_IT_IS
}

/** Where the provider has counted nothing yet, the size is an estimate: then it is asked unless it is far too long. */
function cannotFit({ fill, window }: Compacting): boolean {
  return fill.tokens >= window.tokens * (fill.counted ? 1 : ESTIMATE_SLACK)
}

function fitsInRest({ fill, window, transcript }: Compacting): Landing | null {
  const fits = fitRest(transcript.messages, fill, window.tokens * COMPACT_AT)
  return fits && heldBackFor('The newest texts were shortened to fit the context.', fits)
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
  const { fill, transcript, request } = given
  if (!given.window.compacts || fill.refusals >= REFUSALS_MAX) return null
  const sent = Math.max(fill.tokens, Math.ceil(charsIn(request) / CHARS_A_TOKEN))
  const learned = Math.max(1, Math.floor(Math.min(given.window.tokens, fill.learned, sent) * REFUSED_SHARE))
  const compacting = { ...given, window: { ...given.window, tokens: learned }, overflowed: true } as const
  const taken =
    fitBatch(transcript.messages, fill, learned) ?? fill.clearing(1) ?? (await worthCutting(compacting, 1)) ?? null
  if (taken !== null && 'old' in taken) return shorter(compacting, taken)
  const body = taken ?? fitRest(transcript.messages, fill, learned)
  return body && { landing: heldBackFor('The provider says that the context is full.', { ...body, learned }) }
}

async function shorter(compacting: Compacting, cut: Cut): Promise<Fullness> {
  const { cache, request, flight, window, overflowed } = compacting
  const { failure, over, rules = [], ...tried } = await compacted(compacting, cut)
  const learned = overflowed ? { learned: window.tokens } : {}
  // The request itself may still be within the budget.
  const body = over ? null : tried.body
  if (failure !== null || body?.cut === undefined) {
    // What could not be settled while it was asked for is settled with this.
    const charges = [{ type: 'lost', key: holdsUnder(cache.id, `${request.seq}.0`) }] as const
    const stopped = failure && flight.reason !== null ? { ...failure, unasked: true as const } : failure
    if (failure === null && body !== null && (overflowed || cannotFit(compacting))) {
      // What cannot fit is not sent. A summary is asked for again; when summaries have failed too often, the newest texts are shortened.
      const isLast = compacting.fill.failures + 1 >= FAILURES_MAX
      const { events } = (isLast && fitsInRest(compacting)) || {
        events: [heldBackAs('The context is full, and could not be summarised.')],
      }
      return { landing: { events: [...events, { ...body, ...learned }], charges } }
    }
    return { failure: stopped, beside: { events: body === null ? [] : [body], charges } }
  }
  const events = [heldBackAs('The context was nearly full, and was compacted.'), { ...body, ...learned }, ...rules]
  return { landing: { events } }
}

/** `over`: there was no money for it. `rules`: what the user forbade, in words of what is cut. */
type Tried = {
  readonly body: Compacted | null
  readonly failure: ModelFailure | null
  readonly over?: boolean
  readonly rules?: readonly OwnerBody[]
}

/** Asks for the summary. What it cost is in the body, whatever became of it; a failure that may pass is told beside it. */
export async function compacted(compacting: Compacting, cut: Cut): Promise<Tried> {
  const { agent, request, flight } = compacting
  const model = new BudgetedModel(compacting, `${request.seq}.0`, compacting.allowances)
  const { summarizer, takes } = await summarizing(compacting)
  const whole = { ...compacting, window: takes }
  let answer = await model.ask(summarizer, await summaryRequest(whole, cut))
  // How many tokens a text has is an estimate. Once it is tried with less.
  if (answer.type === 'failure' && answer.class === 'overflow' && !whole.overflowed)
    answer = await model.ask(summarizer, await summaryRequest({ ...whole, overflowed: true }, cut))
  const spent: Spent & Routed = { ...model.spent, ...(summarizer === agent.model ? {} : routedIn(answer)) }
  if (answer.type === 'failure') {
    // Trouble that may pass says nothing about the summary.
    const passing = answer.retryable || flight.reason !== null
    if (passing) return { body: model.spent && { type: 'context.compacted', ...spent }, failure: unpaid(answer) }
    return {
      body: { type: 'context.compacted', failed: shortened(answer.message, REASON_CHARS), ...spent },
      failure: null,
      over: model.over,
    }
  }
  const chars = charsOf(cut)
  const leaked = looksLikeCall(
    textOf(answer.parts),
    request.tools.map(({ name }) => name),
  )
  const said = leaked ? { failed: 'the summarizer wrote calls instead of a summary' } : summaryOf(answer, chars)
  if ('failed' in said) return { body: { type: 'context.compacted', ...said, ...spent }, failure: null }
  const { transcript, tools, window } = compacting
  const summary = said.summary + (tools?.has(RETRIEVE) ? keptResults(cut, transcript, window.tokens) : '')
  const before = Math.max(compacting.fill.tokens, 1)
  const all = charsIn(request)
  const after = Math.ceil((before * Math.max(0, all - chars + summary.length)) / Math.max(1, all))
  const body: Mutable<Compacted> = { type: 'context.compacted', cut: cut.cut, summary, before, after, ...spent }
  const stays = await staying(compacting)
  const pins = [...stays].filter((message) => transcript.placeOf(message) > 0).map(({ seq }) => seq)
  if (pins.length > 0 || transcript.messages.some(isPinned)) body.pins = pins
  const lines = detects(compacting.services) ? ruleLines(cut.old, stays, window.tokens) : []
  if (lines.length === 0) return { body, failure: null }
  const text = ['The user said in what is summarised now:', ...lines].join('\n')
  return { body, failure: null, rules: [{ type: 'note.added', kind: 'pin', text }] }
}

/** The model of the route, if there is one, and what it takes; else the session's own. */
async function summarizing({ services, agent, window }: Compacting) {
  const summarizer = summarizerOf(services, agent)
  return { summarizer, takes: summarizer === agent.model ? window : await findWindow(services, summarizer) }
}

function routedIn(answer: Reply | ModelFailure): Routed {
  if (answer.type === 'failure') return {}
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

async function summaryRequest(compacting: Compacting, cut: Cut): Promise<Request> {
  const { services, request, focus } = compacting
  const old = await resolved(services.store, cut.old, () => 0)
  const text = materialOf(old, focus, Math.min(READ_CHARS_MAX, roomOf(compacting)))
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

function heldBackFor(why: string, body: Compacted): Landing {
  return { events: [heldBackAs(why), body] }
}

function heldBack(): Landing {
  return { events: [heldBackAs('The context is nearly full.')] }
}

function heldBackAs(message: string): OwnerBody {
  return { type: 'model.failed', class: 'superseded', message, retryable: true, unasked: true }
}

/** It waits for a person: the reason says how large everything is, and what to do. */
function parkFull({ fill, window, request, transcript }: Compacting): Landing {
  const { tokens, failures, why } = fill
  const inTokens = (chars: number): number => Math.ceil(chars / CHARS_A_TOKEN)
  const pinned = inTokens(charsIn({ ...request, messages: transcript.messages.filter(isPinned) }))
  const newest = inTokens(newestBatch(transcript.messages).reduce((sum, message) => sum + sizeOfMessage(message), 0))
  const failed = failures > 0 ? ` Summarising it failed ${failures} times in a row (${why}).` : ''
  const message = `The context is full: about ${tokens} of ${window.tokens} tokens. Instructions, tools and pinned messages take ${pinned} of them, and the newest messages and results ${newest}.${failed} Nothing was sent. Unpin something, fork the session from an earlier event, or go on with a model that takes more.`
  return { events: [{ type: 'model.failed', class: 'overflow', message, retryable: false, unasked: true }] }
}
