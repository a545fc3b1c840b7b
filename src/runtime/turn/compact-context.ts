// Compaction: when the context is full, the session's own model summarises the older part of the conversation under the
// run's own spending limits, and the request is made anew without that part. Loaded only when the context is nearly
// full, or when a provider says that it is.
import type { Mutable } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import type { Message, Transcript } from '../../kernel/transcript.ts'
import type { ModelFailure, Reply, Request } from '../../ports/model.ts'
import { RETRIEVE } from '../../context/compress/marker.ts'
import { summarizeLog } from '../../context/summary-from-log.ts'
import { estimateMessage, guessCharsPerToken } from '../../context/estimate.ts'
import {
  type ContextCut,
  findCut,
  isChangeNote,
  isPinned,
  listKeptResults,
  buildSummaryPrompt,
  readSummary,
  findRuleLines,
  findRuleMessages,
  CONTEXT_SUMMARY_PROMPT,
  type SummaryOutcome,
  type SummaryRequest,
  joinSummary,
} from '../../context/summary.ts'
import { fitBatch, fitBatchBelow, newestBatch } from '../../context/fit-batch.ts'
import {
  CLEAR_AT,
  type CompactionBody,
  CUT_AT,
  FAILURES_MAX,
  type WindowFill,
  FULL_AT,
  TAIL,
} from '../../context/window-fill.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { type Agent, summarizerOf } from '../state/agent.ts'
import { readBlobs } from '../state/content-blobs.ts'
import { looksLikeCall } from '../../models/protocols/leaked-calls.ts'
import type { Allowances } from '../money/allowance.ts'
import { callHoldPrefix } from '../money/holds.ts'
import { BudgetedModel } from './budgeted-model.ts'
import { countRequestChars, type CallSpending } from '../money/usage-estimate.ts'
import { CHARS_A_TOKEN, sizeOfMessage } from '../../view/session-history.ts'
import type { ModelWindow } from '../guard/guard.ts'
import { estimateRequest } from './request-length.ts'
import { findWindow } from '../state/model-window.ts'
import { lastStart } from '../state/last-start.ts'
import type { Tools } from '../state/toolbox.ts'
import { shortenText, textOf } from '../../view/shown-text.ts'

export type CompactionInput = {
  readonly services: Services
  readonly cache: SessionCache
  readonly agent: Agent
  readonly transcript: Transcript
  readonly request: Request
  /** The tools that the model can call now. */
  readonly tools: Tools | null
  readonly flight: FlightContext
  readonly allowances: Allowances
  readonly window: ModelWindow
  readonly fill: WindowFill
  /** The most characters that a token of this request has. */
  readonly charsPerToken: number
  readonly focus?: string
  /** The provider said that the request is too long, whatever window size is known. */
  readonly overflowed?: true
  /** A caller asked for this compaction: a summary is requested, however many failed before. */
  readonly byHand?: true
}

/**
 * The next step for a request that is nearly too long. `landing`: the model is not asked, and this is recorded instead.
 * Otherwise the request is sent as it is, unless the provider is in trouble; `beside` lands with its outcome.
 */
export type CompactionStep =
  | { readonly landing: Landing }
  | { readonly failure: ModelFailure | null; readonly beside: Omit<Landing, 'recount'> }

const AS_IT_IS: CompactionStep = { failure: null, beside: { events: [] } }
/**
 * The summarizer reads at most this share of its window, and never more than READ_CHARS_MAX. The rest is for its
 * output.
 */
const READ_SHARE = 0.85
const READ_CHARS_MAX = 1_600_000
/** The share of the request that is read after a provider found it too long. */
const OVERFLOW_SHARE = 0.5
const REFUSED_SHARE = 0.7
const ESTIMATE_SLACK = 1.5
/** The most times in a row that a refused request is made shorter. */
const REFUSALS_MAX = 4
const REASON_CHARS = 500
/** The least share of the window that a cut must free. */
const SAVED_MIN = 0.05
/** The length of the part of a summary that the model writes: a share of the window, and bounds in tokens. */
const WRITTEN_SHARE = 0.04
const WRITTEN_MIN = 500
const WRITTEN_MAX = 1_500
const WORDS_A_TOKEN = 0.7
/** A provider that counts even more tokens than this is not believed here. */
const GUESS_SCALE_MIN = 0.25

export async function compactIfFull(given: CompactionInput): Promise<CompactionStep> {
  const { fill } = given
  learnSize(given)
  const window = { ...given.window, tokens: Math.min(given.window.tokens, fill.learned) }
  if (fill.tokens < window.tokens * CLEAR_AT) return AS_IT_IS
  // The window size became known only now. The request is held back and asked for again, and then the guard ends the
  // run.
  if (!window.compacts) return fill.tokens >= window.tokens * FULL_AT ? { landing: holdRequestBack() } : AS_IT_IS
  return (await takeStep({ ...given, window })) ?? AS_IT_IS
}

/**
 * If no provider has counted tokens, the size is estimated from the request: only the request has the instructions and
 * tools.
 */
function learnSize(compacting: CompactionInput): void {
  const { fill, request, transcript } = compacting
  if (!fill.counted) fill.learn(estimateRequest(request, transcript.messages, compacting.charsPerToken))
}

/**
 * Takes the first step that makes the request shorter. The request is then asked for again, and the next step follows
 * if it must.
 */
async function takeStep(compacting: CompactionInput): Promise<CompactionStep | null> {
  const { fill, window, transcript } = compacting
  const fits = fitBatch(transcript.messages, compacting, window.tokens)
  if (fits !== null) return landShortened(compacting, 'The newest texts were shortened to fit the context.', fits)
  const clears = fill.planClearing(window.tokens)
  if (clears !== null) return landShortened(compacting, 'Old results were cleared to fit the context.', clears)
  if (fill.tokens < window.tokens * CUT_AT) return null
  const cut = await findWorthwhileCut(compacting)
  if (cut !== null) return landSummary(compacting, cut)
  const rest = fitBatchBelow(transcript.messages, compacting, window.tokens * CUT_AT)
  if (rest !== null) return landShortened(compacting, 'The newest texts were shortened to fit the context.', rest)
  return cannotFit(compacting) ? { landing: parkFullContext(compacting) } : null
}

/**
 * Null: the context was cut just now, or most of it is in messages that stay, so a summary would cost money and free
 * nothing.
 */
async function findWorthwhileCut(compacting: CompactionInput): Promise<ContextCut | null> {
  const { fill, window, transcript, charsPerToken } = compacting
  if (fill.cut) return null
  const tokensOf = (message: Message): number => estimateMessage(message, charsPerToken)
  const cut = findCut(transcript, await messagesThatStay(compacting), window.tokens * TAIL, tokensOf)
  if (cut === null) return null
  const saved = cut.old.reduce((sum, message) => sum + tokensOf(message), 0)
  return saved < window.tokens * SAVED_MIN ? null : cut
}

/**
 * Instructions, tools and pins alone leave no room, or everything together is longer than the window. Before the
 * provider has counted, the size is an estimate, and only a request that is far too long is held back.
 */
function cannotFit(compacting: CompactionInput): boolean {
  const { fill, window } = compacting
  if (pinnedTokens(compacting) > window.tokens * CUT_AT) return true
  return fill.tokens >= window.tokens * (fill.counted ? 1 : ESTIMATE_SLACK)
}

/** The tokens that are in every request: instructions, tools and pins. */
function pinnedTokens({ request, transcript, charsPerToken }: CompactionInput): number {
  return estimateRequest(request, transcript.messages.filter(isPinned), charsPerToken)
}

/**
 * Messages that no cut removes: pins, and notes about changes since the instructions and tools of this run's prefix
 * were made. Without those notes the model would follow outdated instructions. A new prefix shows the current state,
 * and the notes go.
 */
export async function messagesThatStay({
  services,
  cache,
  transcript,
  window,
}: Pick<CompactionInput, 'services' | 'cache' | 'transcript' | 'window'>): Promise<ReadonlySet<Message>> {
  const last = await lastStart(services.store, cache)
  const since = last?.since ?? last?.seq ?? 0
  const stays = (message: Message): boolean =>
    isChangeNote(message) ? message.seq > since && transcript.placeOf(message) > 0 : isPinned(message)
  const rules = detectsPins(services) ? findRuleMessages(transcript, window.tokens) : []
  return new Set([...transcript.messages.filter(stays), ...rules])
}

function detectsPins({ compaction }: Services): boolean {
  return compaction !== false && compaction?.detectPins !== false
}

function cutChars({ old }: ContextCut): number {
  return old.reduce((sum, message) => sum + sizeOfMessage(message), 0)
}

/**
 * The provider says that the request is too long, whatever the estimate was. The window is taken to be 0.7 of the size
 * that was sent, and the same steps are taken for it. Null: nothing can be done about it.
 */
export async function compactAfterOverflow(given: CompactionInput): Promise<CompactionStep | null> {
  const { fill } = given
  if (!given.window.compacts || fill.refusals >= REFUSALS_MAX) return null
  learnSize(given)
  const sent = Math.min(given.window.tokens, fill.learned, fill.tokens)
  const tokens = Math.max(1, Math.floor(sent * REFUSED_SHARE))
  const step = await takeStep({ ...given, window: { ...given.window, tokens }, overflowed: true })
  // If the only step is to park the session, the provider's own failure is recorded instead.
  return step !== null && 'landing' in step && step.landing.events.every(({ type }) => type === 'model.failed')
    ? null
    : step
}

function landShortened({ overflowed, window }: CompactionInput, why: string, body: CompactionBody): CompactionStep {
  const learned = overflowed ? { learned: window.tokens } : {}
  return { landing: { events: [supersededFailure(why), { ...body, ...learned }] } }
}

async function landSummary(compacting: CompactionInput, cut: ContextCut): Promise<CompactionStep> {
  const { cache, request, flight, fill, window, overflowed } = compacting
  const { failure, over, rules = [], body } = await compactContext(compacting, cut)
  // Without money for a summary, the request itself may still be within the budget.
  if (failure === null && body?.cut !== undefined && (!over || overflowed || fill.tokens >= window.tokens)) {
    const learned = overflowed ? { learned: window.tokens } : {}
    const events = [
      supersededFailure('The context was nearly full, and was compacted.'),
      { ...body, ...learned },
      ...rules,
    ]
    return { landing: { events } }
  }
  // Holds for the summary that could not be settled while it was asked for are settled with this.
  const charges = [{ type: 'lost', key: callHoldPrefix(cache.id, `${request.seq}.0`) }] as const
  const stopped = failure && flight.reason !== null ? { ...failure, unasked: true as const } : failure
  return { failure: stopped, beside: { events: over || body === null ? [] : [body], charges } }
}

/** `over`: there was no money for the summary. `rules`: prohibitions by the user, quoted from the part that is cut. */
type SummaryAttempt = {
  readonly body: CompactionBody | null
  readonly failure: ModelFailure | null
  readonly over?: boolean
  readonly rules?: readonly OwnerBody[]
}

/**
 * Asks for the summary and joins it with the half that code writes from the log. Without a usable answer the coded half
 * stands alone, and `failed` says why. The body has the cost in every case. A temporary failure is returned beside it.
 */
export async function compactContext(compacting: CompactionInput, cut: ContextCut): Promise<SummaryAttempt> {
  const { agent, fill, flight, byHand } = compacting
  const model = new BudgetedModel(compacting, `${compacting.request.seq}.0`, compacting.allowances)
  const coded = await buildCodedHalf(compacting, cut)
  const isOff = fill.failures >= FAILURES_MAX && !byHand
  const { summarizer, takes } = await chooseSummarizer(compacting)
  const { said, answer } = isOff
    ? { said: { failed: `no summary was asked for: ${FAILURES_MAX} in a row failed (${fill.why})` }, answer: null }
    : await askForSummary(compacting, cut, coded, { takes, ask: (request) => model.ask(summarizer, request) })
  const spent: CallSpending & SummaryRoute = {
    ...model.spent,
    ...(summarizer === agent.model ? {} : routeFields(answer)),
  }
  // A temporary failure says nothing about the quality of the summary.
  if (answer?.type === 'failure' && (answer.retryable || flight.reason !== null))
    return { body: model.spent && { type: 'context.compacted', ...spent }, failure: asUnbilledFailure(answer) }
  const reason = 'failed' in said ? { failed: shortenText(said.failed, REASON_CHARS) } : {}
  if (model.over && byHand)
    return { body: { type: 'context.compacted', ...reason, ...spent }, failure: null, over: true }
  const summary = joinSummary(['summary' in said ? said.summary : '', coded])
  const made = await buildCutBody(compacting, cut, { summary, ...(model.over ? {} : reason), ...spent })
  return { ...made, failure: null, over: model.over }
}

async function buildCutBody(
  compacting: CompactionInput,
  cut: ContextCut,
  more: Pick<CompactionBody, 'failed'> & CallSpending & SummaryRoute & { readonly summary: string },
): Promise<Pick<SummaryAttempt, 'body' | 'rules'>> {
  const { transcript, window, request, fill } = compacting
  const before = Math.max(fill.tokens, 1)
  const all = countRequestChars(request)
  const after = Math.ceil((before * Math.max(0, all - cutChars(cut) + more.summary.length)) / Math.max(1, all))
  const body: Mutable<CompactionBody> = { type: 'context.compacted', cut: cut.cut, before, after, ...more }
  const stays = await messagesThatStay(compacting)
  const pins = [...stays].filter((message) => transcript.placeOf(message) > 0).map(({ seq }) => seq)
  if (pins.length > 0 || transcript.messages.some(isPinned)) body.pins = pins
  const lines = detectsPins(compacting.services) ? findRuleLines(cut.old, stays, window.tokens) : []
  if (lines.length === 0) return { body }
  const text = ['The user said in what is summarised now:', ...lines].join('\n')
  return { body, rules: [{ type: 'note.added', kind: 'pin', text }] }
}

/**
 * The ratio of an estimate to the provider's count, at most 1. The text of a summary is of a kind that was not counted
 * yet.
 */
function guessScale(compacting: CompactionInput): number {
  const { fill, request, transcript } = compacting
  if (!fill.counted) return 1
  const guessed = estimateRequest(request, transcript.messages, Number.POSITIVE_INFINITY)
  return Math.min(1, Math.max(GUESS_SCALE_MIN, guessed / Math.max(1, fill.tokens)))
}

/** Writes the coded half from the log: messages of users, files and pictures, and where the results are. */
async function buildCodedHalf(compacting: CompactionInput, cut: ContextCut): Promise<string> {
  const { services, agent, cache, transcript, window, tools } = compacting
  // A model that does not have the tool yet is offered it from this compaction on.
  const retrieves = tools?.has(RETRIEVE) === true || agent.retrieve !== undefined
  const log = { store: services.store, session: cache.id, transcript }
  const sizes = { chars: cutChars(cut), windowTokens: window.tokens, scale: guessScale(compacting) }
  const said = await summarizeLog({ ...log, ...sizes, cut, retrieves })
  return [said, retrieves ? listKeptResults(cut, transcript, window.tokens) : '']
    .filter((text) => text !== '')
    .join('\n\n')
}

type SummaryAnswer = { readonly said: SummaryOutcome; readonly answer: Reply | ModelFailure }
/** The size of the summarizer's window, and how to ask it. */
type Summarizer = { readonly takes: ModelWindow; readonly ask: (request: Request) => Promise<Reply | ModelFailure> }

/** An unusable summary is requested once more, and the model is told what was wrong with it. */
async function askForSummary(
  compacting: CompactionInput,
  cut: ContextCut,
  coded: string,
  { takes, ask }: Summarizer,
): Promise<SummaryAnswer> {
  const { window, focus, request } = compacting
  const reading = { ...compacting, window: takes }
  const tokens = Math.min(WRITTEN_MAX, Math.max(WRITTEN_MIN, window.tokens * WRITTEN_SHARE))
  const names = request.tools.map(({ name }) => name)
  const read = (answer: Reply): SummaryOutcome => {
    const text = textOf(answer.parts)
    if (looksLikeCall(text, names)) return { failed: 'the summarizer wrote calls instead of a summary' }
    const said = readSummary(answer, Math.floor(tokens * guessScale(compacting) * guessCharsPerToken(text)))
    if ('failed' in said || joinSummary([said.summary, coded]).length < cutChars(cut)) return said
    return { failed: 'the summary was longer than what it stands for' }
  }
  const wish = { focus, wordsMax: Math.floor(tokens * WORDS_A_TOKEN) }
  let asked = await askSummarizer(reading, cut, wish, ask, read)
  if ('failed' in asked.said && asked.answer.type === 'reply')
    asked = await askSummarizer(reading, cut, { ...wish, refused: asked.said.failed }, ask, read)
  return asked
}

async function askSummarizer(
  compacting: CompactionInput,
  cut: ContextCut,
  wish: SummaryRequest,
  ask: Summarizer['ask'],
  read: (answer: Reply) => SummaryOutcome,
): Promise<SummaryAnswer> {
  let answer = await ask(await buildSummaryRequest(compacting, cut, wish))
  // The number of tokens in a text is an estimate, so an overflow is tried once more with less.
  if (answer.type === 'failure' && answer.class === 'overflow' && !compacting.overflowed)
    answer = await ask(await buildSummaryRequest({ ...compacting, overflowed: true }, cut, wish))
  return { said: answer.type === 'failure' ? { failed: answer.message } : read(answer), answer }
}

/** The summarizer of the route, if there is one, with its window; else the session's own model. */
async function chooseSummarizer({ services, agent, window }: CompactionInput) {
  const summarizer = summarizerOf(services, agent)
  return { summarizer, takes: summarizer === agent.model ? window : await findWindow(services, summarizer) }
}

type SummaryRoute = Pick<CompactionBody, 'route' | 'fallback_from'>

function routeFields(answer: Reply | ModelFailure | null): SummaryRoute {
  if (answer === null || answer.type === 'failure') return {}
  const { route, fallback_from } = answer
  return { ...(route === undefined ? {} : { route }), ...(fallback_from === undefined ? {} : { fallback_from }) }
}

/**
 * The most characters that the summarizer may read. A token is taken to be as long as the provider counted in the last
 * request.
 */
function summaryRoomChars({ request, window, fill, overflowed }: CompactionInput): number {
  const chars = countRequestChars(request)
  const charsAToken = fill.counted
    ? Math.min(CHARS_A_TOKEN, Math.max(1, chars / Math.max(1, fill.tokens)))
    : CHARS_A_TOKEN
  const takes = window.tokens * READ_SHARE * charsAToken
  // If the window size is unknown, as much as was sent so far has room.
  return Math.min(takes, overflowed ? chars * OVERFLOW_SHARE : Number.isFinite(takes) ? takes : chars)
}

async function buildSummaryRequest(
  compacting: CompactionInput,
  cut: ContextCut,
  wish: SummaryRequest,
): Promise<Request> {
  const { services, request } = compacting
  const old = await readBlobs(services.store, cut.old, () => 0)
  const text = buildSummaryPrompt(old, wish, Math.min(READ_CHARS_MAX, summaryRoomChars(compacting)))
  const { session, seq, route } = request
  const messages = [{ role: 'user', seq, parts: [{ type: 'text', text }] }] as const
  const asked = {
    session,
    seq,
    instructions: CONTEXT_SUMMARY_PROMPT,
    tools: [],
    allow: 'none',
    boost: false,
    messages,
  } as const
  return route === undefined ? asked : { ...asked, route }
}

/** The request itself was not made, so nothing of it has to be paid. */
function asUnbilledFailure(failure: ModelFailure): ModelFailure {
  const { partial: _partial, broken: _broken, ...rest } = failure
  return rest.class === 'timeout' ? { ...rest, class: 'other' } : rest
}

function holdRequestBack(): Landing {
  return { events: [supersededFailure('The context is nearly full.')] }
}

function supersededFailure(message: string): OwnerBody {
  return { type: 'model.failed', class: 'superseded', message, retryable: true, unasked: true }
}

/** The session waits for a person. The message gives the size of each part, and what to do. */
function parkFullContext(compacting: CompactionInput): Landing {
  const { fill, window, transcript, charsPerToken } = compacting
  const newest = newestBatch(transcript.messages)
  const fresh = newest.reduce((sum, message) => sum + estimateMessage(message, charsPerToken), 0)
  const pinned = pinnedTokens(compacting)
  const rest = Math.max(0, fill.tokens - pinned - fresh)
  const message = `The context is full: about ${fill.tokens} of ${window.tokens} tokens. Instructions, tools and pinned messages take ${pinned} of them, the newest messages and results ${fresh}, and the rest of the conversation ${rest}. Nothing was sent. Unpin something, fork the session from an earlier event, or go on with a model that takes more.`
  return { events: [{ type: 'model.failed', class: 'overflow', message, retryable: false, unasked: true }] }
}
