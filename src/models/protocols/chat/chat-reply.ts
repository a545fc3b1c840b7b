// The state of a Chat Completions answer during the stream, and the Reply or failure made from it. chat-protocol.ts
// reads the chunks.
import type { Json, Mutable, Part, Usage } from '../../../kernel/content.ts'
import type { ModelFailure, Reply } from '../../../ports/model.ts'
import { failure, failureFromTrouble } from '../../http/failures.ts'
import { endInline, type InlineState, INLINE_START, splitUnopened } from '../inline-thoughts.ts'
import type { Opaque, ModelTarget } from '../protocol.ts'
import { sourcesIn } from '../../../view/cited-sources.ts'
import { type JsonObject, isObject, asString, parseJson } from '../../../view/untrusted-json.ts'

export function chatResult(streamed: ChatState): Reply | ModelFailure {
  const state = releaseHeld(streamed)
  const { failed, broken, stopped, done, usage, cost } = state
  if (failed !== null) return withPartial(failed, state)
  if (broken) return withPartial(failure('network', 'The stream was damaged: an event could not be read.'), state)
  // Without a stop reason, arguments that are not valid JSON were cut off.
  const cut = stopped === null && state.calls.some(({ args }) => args !== '' && !isWholeJson(args))
  if ((stopped === null && !done) || cut) {
    return withPartial(failure('network', 'The stream ended before the reply was complete.'), state)
  }
  if (stopped !== null && stopWeight(stopped) === FAILED) {
    return withPartial(failure('server', `The provider stopped early: ${stopped}.`), state)
  }
  const finish = finishOf(state)
  // A refusal cancels the calls made before it.
  const calls = finish === 'refusal' ? [] : state.calls
  const asked = calls.map(({ id, tool, args }) => ({ id, tool, args }))
  const reply: Mutable<Reply> = {
    type: 'reply',
    parts: partsOf(splitOffThought(state), calls),
    calls: asked,
    finish,
    usage,
  }
  if (cost !== undefined) reply.cost = cost
  return reply
}

/** Adds text that was held back as a possible tag. */
function releaseHeld(state: ChatState): ChatState {
  if (state.inline.held === '') return state
  const { thought, text } = endInline(state.inline)
  const draft = copyChatState(state)
  draft.inline = INLINE_START
  if (thought !== '' && draft.reasoningPart < 0) draft.reasoningPart = draft.begun++
  if (text !== '' && draft.textPart < 0) draft.textPart = draft.begun++
  draft.reasoning += thought
  draft.text += text
  return draft
}

/**
 * Splits off the thoughts of a server that left out the opening tag. A server that sends thoughts separately leaves
 * none in the text.
 */
function splitOffThought(state: ChatState): ChatState {
  const split = state.reasoningPart < 0 ? splitUnopened(state.text) : null
  if (split === null) return state
  const draft = copyChatState(state)
  draft.reasoning = split.thought
  draft.text = split.text
  draft.reasoningPart = draft.textPart
  draft.textPart = split.text === '' ? -1 : draft.begun++
  return draft
}

const [FAILED, REFUSED, LENGTH, FINE] = [3, 2, 1, 0]
const WEIGHTS: Readonly<Record<string, number>> = {
  error: FAILED,
  // DeepSeek and vLLM: the answer was abandoned.
  insufficient_system_resource: FAILED,
  abort: FAILED,
  length: LENGTH,
  // Mistral: the context is full.
  model_length: LENGTH,
  max_tokens: LENGTH,
}

/** How bad a stop reason is. Gemini adds more words after a colon. */
export function stopWeight(reason: string): number {
  if (reason.startsWith('content_filter')) return REFUSED
  return Object.hasOwn(WEIGHTS, reason) ? (WEIGHTS[reason] ?? FINE) : FINE
}

function finishOf({ stopped, refused, calls }: ChatState): Reply['finish'] {
  const weight = stopped === null ? FINE : stopWeight(stopped)
  if (refused || weight === REFUSED) return 'refusal'
  if (weight === LENGTH) return 'length'
  return calls.length > 0 ? 'calls' : 'stop'
}

function partsOf(state: ChatState, calls: ChatState['calls']): readonly Part[] {
  const { text, textPart, reasoning, reasoningPart, reasoningAt, details } = state
  const parts: Part[] = []
  if (textPart >= 0) parts.push({ type: 'text', text })
  const signed = isSigned(details)
  if (reasoningPart >= 0 && (signed || reasoning !== '')) {
    const data = signed ? { reasoning_details: details as readonly Json[] } : null
    const thought: Part = { type: 'reasoning', text: reasoning, opaque: opaqueOf(state, reasoningAt, data) }
    if (textPart >= 0 && textPart < reasoningPart) parts.push(thought)
    else parts.unshift(thought)
  }
  parts.push(...state.images, ...sourcesIn(state.cited))
  calls.forEach(({ extra }, at) => {
    if (extra === undefined) return
    parts.push({ type: 'reasoning', text: '', opaque: opaqueOf(state, at, { extra_content: extra }) })
  })
  return parts
}

function opaqueOf({ by, model }: ChatState, at: number, data: Json): Opaque {
  return { by, model, at, data }
}

/** A call that began counts as output: the partial text is then set, even if empty. */
function withPartial(failed: ModelFailure, { text, calls }: ChatState): ModelFailure {
  return text === '' && calls.length === 0 ? failed : { ...failed, partial: text }
}

/** An error inside a stream: as an object, as a string, or as the chunk itself. */
export function chatFailure(chunk: JsonObject, event: string): ModelFailure | null {
  const { error } = chunk
  if (isObject(error)) return failureFromObject(error)
  if (typeof error === 'string' && error !== '') return failure('server', error)
  return event === 'error' || chunk['object'] === 'error' ? failureFromObject(chunk) : null
}

function failureFromObject(error: JsonObject): ModelFailure {
  const { metadata } = error
  const number = Number(error['code'] ?? error['status_code'])
  const status = Number.isInteger(number) && number >= 400 && number < 600 ? { status: number } : {}
  const word = [isObject(metadata) ? metadata['error_type'] : null, error['code'], error['type']].find(
    (value): value is string => typeof value === 'string' && value !== '' && Number.isNaN(Number(value)),
  )
  const message = asString(error['message']) || 'The provider reported an error without a message.'
  const failed = failureFromTrouble({ ...status, ...(word === undefined ? {} : { code: word }), message })
  // The host had begun to answer, so an unclassified error counts as a server error.
  return failed.class === 'other' ? failure('server', failed.message) : failed
}

export type ChatState = {
  readonly by: string
  readonly model: string
  /** How many parts and calls have begun. */
  readonly begun: number
  readonly text: string
  /**
   * The index of the choice that is read. Null while none is read: the first chunk of a choice with another index than
   * 0 is set aside.
   */
  readonly chosen: Json | null
  readonly aside: AsideChoice | null
  /** The state of the parser for thought tags inside the text. */
  readonly inline: InlineState
  /** The position of the text among the parts and calls; -1 before it begins. */
  readonly textPart: number
  readonly reasoning: string
  readonly reasoningPart: number
  /** How many calls had begun before the reasoning. */
  readonly reasoningAt: number
  readonly details: readonly JsonObject[]
  readonly calls: readonly ChatCall[]
  /** Pictures that the model made. */
  readonly images: readonly Part[]
  readonly refused: boolean
  /** The host's stop reason; null while it streams. */
  readonly stopped: string | null
  /** `[DONE]` has arrived. */
  readonly done: boolean
  readonly usage: Usage | null
  readonly cost: number | undefined
  /** The sources of the reply, as the host sent them. */
  readonly cited: readonly Json[]
  readonly failed: ModelFailure | null
  readonly broken: boolean
  /** The surroundings of the last text-only chunk, and how many more chunks may be compared. */
  readonly alike: TextSurroundings | null
  readonly alikeTries: number
}

/** Chunks of a choice, the last one first. */
export type AsideChoice = { readonly before: AsideChoice | null; readonly choice: JsonObject }

export type ChatCall = {
  readonly index: number | null
  readonly id: string
  readonly tool: string
  readonly args: string
  /** Its position among the parts and calls of the reply. */
  readonly part: number
  /** Gemini's signature of the call; it is sent back with the call. */
  readonly extra: Json | undefined
}

/** The JSON of a chunk before and after its text value. */
export type TextSurroundings = { readonly before: string; readonly after: string }

const ALIKE_TRIES = 16
const NOTHING_CITED: readonly Json[] = []

export function beginChat({ endpoint, model }: ModelTarget): ChatState {
  return {
    by: endpoint,
    model,
    begun: 0,
    chosen: null,
    aside: null,
    inline: INLINE_START,
    text: '',
    textPart: -1,
    reasoning: '',
    reasoningPart: -1,
    reasoningAt: 0,
    details: [],
    calls: [],
    images: [],
    refused: false,
    stopped: null,
    done: false,
    usage: null,
    cost: undefined,
    cited: NOTHING_CITED,
    failed: null,
    broken: false,
    alike: null,
    alikeTries: ALIKE_TRIES,
  }
}

/**
 * Copies field by field: a spread of this many fields is the largest cost of a delta, and a reply has thousands of
 * deltas.
 */
export function copyChatState(state: ChatState): Mutable<ChatState> {
  return {
    by: state.by,
    model: state.model,
    begun: state.begun,
    chosen: state.chosen,
    aside: state.aside,
    inline: state.inline,
    text: state.text,
    textPart: state.textPart,
    reasoning: state.reasoning,
    reasoningPart: state.reasoningPart,
    reasoningAt: state.reasoningAt,
    details: state.details,
    calls: state.calls,
    images: state.images,
    refused: state.refused,
    stopped: state.stopped,
    done: state.done,
    usage: state.usage,
    cost: state.cost,
    cited: state.cited,
    failed: state.failed,
    broken: state.broken,
    alike: state.alike,
    alikeTries: state.alikeTries,
  }
}

export function isWholeJson(args: string): boolean {
  return parseJson(args) !== undefined
}

// Usage and cost, from the different shapes hosts report them in. An impossible number counts as not reported.

/** At the top of the chunk, inside `x_groq` (Groq), or on the choice (Moonshot). Undefined: not in this chunk. */
export function findChatUsage(chunk: JsonObject, choice: JsonObject | null): JsonObject | undefined {
  if (isObject(chunk['usage'])) return chunk['usage']
  const groq = chunk['x_groq']
  if (isObject(groq) && isObject(groq['usage'])) return groq['usage']
  return choice !== null && isObject(choice['usage']) ? choice['usage'] : undefined
}

export function chatUsage(told: JsonObject): Usage | null {
  const prompt = isObject(told['prompt_tokens_details']) ? told['prompt_tokens_details'] : {}
  const completion = isObject(told['completion_tokens_details']) ? told['completion_tokens_details'] : {}
  const input = readCount(told['prompt_tokens'])
  const written = readCount(prompt['cache_write_tokens'])
  const output = readCount(told['completion_tokens'])
  const reasoning = readCount(completion['reasoning_tokens'])
  const total = readCount(told['total_tokens'])
  // The field names of OpenAI, Moonshot and DeepSeek.
  const cached = readCount(prompt['cached_tokens'] ?? told['cached_tokens'] ?? told['prompt_cache_hit_tokens'])
  if ([input, written, output, reasoning, total, cached].some(Number.isNaN)) return null
  if (input === undefined || output === undefined) return null
  const fromCache = (cached ?? 0) + (written ?? 0)
  const usage: Mutable<Usage> = {
    // If the cache count is larger than the input, the host counts cached tokens outside its input.
    inputTokens: fromCache > input ? input + fromCache : input,
    // xAI and Gemini count reasoning in the total, not in the completion.
    outputTokens: Math.max(output, (total ?? 0) - input),
  }
  if (cached !== undefined) usage.cachedTokens = cached
  if (written !== undefined) usage.cacheWriteTokens = written
  if (reasoning !== undefined) usage.reasoningTokens = reasoning
  return usage
}

/** Millionths of a dollar, if the host reports its charge: OpenRouter in dollars, xAI in ticks. */
export function chatCost(told: JsonObject): number | undefined {
  const ticks = told['cost_in_usd_ticks']
  if (isAmount(ticks)) return toMillionths(ticks / 10_000)
  const { cost, cost_details: details } = told
  if (!isAmount(cost)) return undefined
  // With the user's own provider key, `cost` is only OpenRouter's fee.
  const behind = told['is_byok'] === true && isObject(details) ? details['upstream_inference_cost'] : 0
  return toMillionths((cost + (isAmount(behind) ? behind : 0)) * 1_000_000)
}

/** Rounded up, ignoring floating-point noise. */
function toMillionths(amount: number): number | undefined {
  const rounded = Math.max(0, Math.ceil(amount - 1e-6))
  return Number.isSafeInteger(rounded) ? rounded : undefined
}

function readCount(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : Number.NaN
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

// OpenRouter's `reasoning_details`, streamed in fragments: text grows by index, a signature closes a block, and
// encrypted blocks stay unchanged. The list is sent back whole and in the order received.

/** No reply has more details than this. */
export const DETAILS_MAX = 1_024

/** The fields that are streamed in fragments, by the type of the entry. */
const GROWING: Readonly<Record<string, 'text' | 'summary'>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

export function detailText(detail: JsonObject): string {
  const field = GROWING[asString(detail['type'])]
  return field === undefined ? '' : asString(detail[field])
}

/** The list with this fragment added. The given list is not changed. */
export function addDetail(details: readonly JsonObject[], fragment: JsonObject): readonly JsonObject[] {
  const field = GROWING[asString(fragment['type'])]
  if (field === undefined) return [...details, fragment]
  const at = details.findLastIndex(
    (known) => known['type'] === fragment['type'] && known['index'] === fragment['index'],
  )
  const known = details[at]
  // A signed block is finished: more text begins the next one.
  const finished = known === undefined || (asString(known['signature']) !== '' && asString(fragment[field]) !== '')
  return finished ? [...details, fragment] : details.with(at, growDetail(known, fragment, field))
}

/** Whether a block is signed or encrypted. If none is, the plain text is enough. */
function isSigned(details: readonly JsonObject[]): boolean {
  return details.some(
    (detail) => GROWING[asString(detail['type'])] === undefined || asString(detail['signature']) !== '',
  )
}

export function detailsIn(value: unknown): readonly JsonObject[] {
  if (!Array.isArray(value)) return []
  return value.filter((entry): entry is JsonObject => isObject(entry) && typeof entry['type'] === 'string')
}

function growDetail(known: JsonObject, fragment: JsonObject, field: 'text' | 'summary'): JsonObject {
  const next: Record<string, Json> = { ...known }
  for (const [key, value] of Object.entries(fragment)) if (value !== null) next[key] = value
  next[field] = asString(known[field]) + asString(fragment[field])
  return next
}
