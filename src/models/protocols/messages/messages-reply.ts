// The state of an Anthropic answer during the stream, and the Reply or failure made from it. messages-protocol.ts reads
// the events.
import type { Frozen, Json, Mutable, Part, Usage } from '../../../kernel/content.ts'
import type { ModelFailure, Reply, ReplyCall } from '../../../ports/model.ts'
import { parseJson } from '../../../view/untrusted-json.ts'
import { failure } from '../../http/failures.ts'
import type { ProtocolAnswer, Opaque, ModelTarget } from '../protocol.ts'
import { sourcesIn } from '../../../view/cited-sources.ts'
import { isObject, type JsonObject, asList, asString } from '../../../view/untrusted-json.ts'

export type MessageBlock = Frozen<{
  index: number
  /** `other` is a tool the provider ran itself, or an unknown type: never one of our calls. */
  type: 'text' | 'thinking' | 'redacted' | 'call' | 'other'
  /** The text, the thought, or the arguments of a call. */
  text: string
  signature: string
  open: boolean
  /** Its position among the parts and calls of the reply; -1 while it is empty. */
  part: number
  /** How many calls began before it. */
  at: number
  /** The block as the provider started it, with unknown fields. */
  given: Readonly<Record<string, Json>>
}>

/** The state of the stream, except for the text of the block that is being streamed. */
export type StreamedMessage = Frozen<{
  target: ModelTarget
  blocks: readonly MessageBlock[]
  /** The index of the block being streamed, or -1. Its text is in `MessagesState.text` until another block begins. */
  now: number
  parts: number
  calls: number
  /** The id of the message, empty if it has none; null before it begins. */
  message: string | null
  stop: string | null
  ended: boolean
  /** A description of the damage. */
  broken: string | null
  failed: ModelFailure | null
  counts: StreamCounts
}>

/** Reported tokens and cost. The numbers only grow, so the largest one is the latest. */
export type StreamCounts = Frozen<{
  input?: number
  output?: number
  cached?: number
  cacheWrite?: number
  reasoning?: number
  searches?: number
  /** The input of the last round, cache included, where there were several. */
  context?: number
  dollars?: number
  absurd?: true
}>

export function emptyMessage(target: ModelTarget): StreamedMessage {
  const counts = {}
  return {
    target,
    blocks: [],
    now: -1,
    parts: 0,
    calls: 0,
    message: null,
    stop: null,
    ended: false,
    broken: null,
    failed: null,
    counts,
  }
}

const CUT: ReadonlySet<string | null> = new Set(['max_tokens', 'model_context_window_exceeded'])

/** `blocks` of `heard` must hold all of their text. */
export function replyOf(heard: StreamedMessage): ProtocolAnswer {
  const { blocks, failed, broken, ended, stop } = heard
  if (failed !== null) return withPartial(failed, blocks)
  if (broken !== null) return withPartial(failure('network', broken), blocks)
  if (!ended) return withPartial(failure('network', 'The stream ended before the reply was complete.'), blocks)
  // A paused turn that is not continued was cut off. Our own calls are run first.
  const paused = (stop === 'pause_turn' || stop === 'compaction') && heard.calls === 0
  const cut = CUT.has(stop) || paused
  const refused = stop === 'refusal'
  if (!cut && !refused && blocks.some(({ type, open }) => type === 'call' && open)) {
    return withPartial(failure('network', 'The stream ended inside the arguments of a call.'), blocks)
  }
  const cited = sourcesIn(blocks.flatMap(({ given }) => asList(given.citations)))
  const parts = [...blocks.flatMap((block) => partOf(block, heard.target)), ...cited]
  // A refusal cancels the calls made before it.
  const calls = refused ? [] : blocks.filter(({ type }) => type === 'call').map(callOf)
  const finish = refused ? 'refusal' : cut ? 'length' : calls.length > 0 ? 'calls' : 'stop'
  const reply: Mutable<Reply> = { type: 'reply', parts, calls, finish, usage: usageOf(heard.counts) }
  const { dollars } = heard.counts
  // Round away floating-point noise first, or it would be rounded up to a whole millionth.
  if (dollars !== undefined) reply.cost = Math.ceil(Number((dollars * 1e6).toFixed(3)))
  return paused ? { ...reply, paused: blocks.flatMap(resentContent) } : reply
}

/** A block in the form in which it is sent back to continue. An empty or unsigned block would be refused. */
function resentContent({ type, text, signature, given }: MessageBlock): readonly Json[] {
  if (type === 'text') return text.trim() === '' ? [] : [{ ...given, text }]
  if (type === 'thinking') return signature === '' ? [] : [{ ...given, thinking: text, signature }]
  return text === '' ? [given] : [{ ...given, input: parseJson(text) ?? {} }]
}

/** A call that began counts as output: the partial text is then set, even if empty. */
function withPartial(failed: ModelFailure, blocks: readonly MessageBlock[]): ModelFailure {
  const texts = blocks.filter(({ type }) => type === 'text')
  const partial = texts.map(({ text }) => text).join('')
  const began = partial !== '' || blocks.some(({ type }) => type === 'call')
  return began ? { ...failed, partial } : failed
}

function partOf(block: MessageBlock, { endpoint, model }: ModelTarget): readonly Part[] {
  const { type, text, signature, at, given } = block
  if (type === 'text') {
    if (text === '') return []
    const said: Part = { type: 'text', text }
    const citations = asList(given.citations)
    if (at === 0 && citations.length === 0) return [said]
    return [placementPart({ by: endpoint, model, at, data: citations.length === 0 ? null : { citations } }), said]
  }
  if (type === 'other') {
    if (!isReplayedBlock(given)) return []
    const opaque: Opaque = { by: endpoint, model, at, data: resentContent(block)[0] ?? null }
    return [{ type: 'provider', tool: toolOf(given), opaque }]
  }
  if (type === 'redacted') {
    const opaque: Opaque = { by: endpoint, model, at, data: given }
    return [{ type: 'reasoning', text: '', opaque }]
  }
  if (type !== 'thinking') return []
  if (signature === '' && text === '') return []
  const data = signature === '' ? null : { ...given, thinking: text, signature }
  const opaque: Opaque = { by: endpoint, model, at, data }
  return [{ type: 'reasoning', text, opaque }]
}

/** Whether a block goes back unchanged: a block of a tool that the provider runs, or its summary of a long context. */
export function isReplayedBlock(given: MessageBlock['given']): boolean {
  return isServerTool(given) || isCompaction(given)
}

/** A call of a tool that the provider runs, or its result. */
export function isServerTool({ type }: MessageBlock['given']): boolean {
  return typeof type === 'string' && /^(server|mcp)_tool_use$|_tool_result$/.test(type)
}

/** The provider's own summary of the messages before it. */
export function isCompaction({ type }: MessageBlock['given']): boolean {
  return type === 'compaction'
}

function toolOf({ name, type }: MessageBlock['given']): string {
  return asString(name) || asString(type).replace(/_tool_result$/, '')
}

/** Holds the place of a text that came after calls, and the citations of a text. */
function placementPart(opaque: Opaque): Part {
  return { type: 'reasoning', text: '', opaque }
}

function callOf({ given, text }: MessageBlock): ReplyCall {
  const { id, name, input } = given
  // Some hosts send the arguments with the start of the block and stream nothing.
  const whole = isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : ''
  return { id: asString(id), tool: asString(name), args: text === '' ? whole : text }
}

export function addCounts(counts: StreamCounts, usage: Json | undefined): StreamCounts {
  if (!isObject(usage)) return counts
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const rounds = roundsIn(usage.iterations)
  const told: readonly (readonly [Exclude<keyof StreamCounts, 'absurd' | 'context'>, Json | undefined])[] = [
    ['input', inAll(usage, rounds, 'input_tokens')],
    ['output', inAll(usage, rounds, 'output_tokens')],
    ['cached', inAll(usage, rounds, 'cache_read_input_tokens')],
    ['cacheWrite', inAll(usage, rounds, 'cache_creation_input_tokens')],
    ['reasoning', details.thinking_tokens],
    ['searches', isObject(usage.server_tool_use) ? usage.server_tool_use.web_search_requests : null],
    ['dollars', usage.cost],
  ]
  const next: Mutable<StreamCounts> = { ...counts }
  const last = lastInput(rounds)
  if (last !== null) next.context = last
  for (const [name, value] of told) {
    if (value === undefined || value === null) continue
    const sane = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
    if (sane && (name === 'dollars' || Number.isInteger(value))) next[name] = Math.max(next[name] ?? 0, value)
    else if (name !== 'dollars') next.absurd = true
  }
  return next
}

/**
 * The rounds of one answer that this model was paid for: its own, and those that compact the context, which the totals
 * leave out. Empty if another model took over: then the totals count.
 */
function roundsIn(iterations: Json | undefined): readonly JsonObject[] {
  const rounds = asList(iterations).filter(isObject)
  if (rounds.some(({ type }) => type === 'fallback_message')) return []
  return rounds.filter(({ type }) => type === 'message' || type === 'compaction')
}

/**
 * The length of the last round's request, from which the next one continues. Null if there were no rounds, or if it is
 * not a number.
 */
function lastInput(rounds: readonly JsonObject[]): number | null {
  const last = rounds.findLast(({ type }) => type === 'message')
  if (last === undefined) return null
  const fields = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const
  const sum = fields.reduce((all, field) => all + Number(last[field] ?? 0), 0)
  return Number.isSafeInteger(sum) && sum > 0 ? sum : null
}

function inAll(usage: JsonObject, rounds: readonly JsonObject[], field: string): Json | undefined {
  const total = usage[field]
  const counts = rounds.map((round) => round[field] ?? 0)
  if (counts.length === 0 || typeof total !== 'number') return total
  // A value that is not a number makes the sum NaN, which is refused later.
  const sum = counts.reduce<number>((all, count) => all + (typeof count === 'number' ? count : Number.NaN), 0)
  return Number.isNaN(sum) ? sum : Math.max(total, sum)
}

/** Anthropic counts cache reads and writes separately from the input. */
function usageOf(counts: StreamCounts): Usage | null {
  const { input, output, cached, cacheWrite, reasoning, searches = 0, context, absurd } = counts
  if (absurd || input === undefined || output === undefined) return null
  const inputTokens = input + (cached ?? 0) + (cacheWrite ?? 0)
  if (!Number.isSafeInteger(inputTokens)) return null
  const usage: Mutable<Usage> = { inputTokens, outputTokens: output }
  if (cached !== undefined) usage.cachedTokens = cached
  if (cacheWrite !== undefined) usage.cacheWriteTokens = cacheWrite
  if (reasoning !== undefined) usage.reasoningTokens = reasoning
  if (searches > 0) usage.webSearches = searches
  if (context !== undefined && context < inputTokens) usage.contextTokens = context
  return usage
}
