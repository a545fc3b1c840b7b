// The state of an Anthropic answer while it streams, and the Reply or failure it becomes. It reads no events: messages.ts does.
import type { Frozen, Json, Mutable, Part, Usage } from '../../../kernel/content.ts'
import type { ModelFailure, Reply, ReplyCall } from '../../../ports/model.ts'
import { failure } from '../../http/failures.ts'
import type { Opaque, Target } from '../protocol.ts'
import { isObject, stringOf } from '../../../view/json.ts'

export type Block = Frozen<{
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

/** Everything but the text of the block being streamed. */
export type Heard = Frozen<{
  target: Target
  blocks: readonly Block[]
  /** The index of the block being streamed, or -1. Its text is in `State.text` until another block begins. */
  now: number
  parts: number
  calls: number
  stop: string | null
  ended: boolean
  broken: boolean
  failed: ModelFailure | null
  counts: Counts
}>

/** Reported tokens and cost. The numbers only grow, so the largest one is the latest. */
export type Counts = Frozen<{
  input?: number
  output?: number
  cached?: number
  cacheWrite?: number
  reasoning?: number
  dollars?: number
  absurd?: true
}>

export function nothingHeard(target: Target): Heard {
  const counts = {}
  return {
    target,
    blocks: [],
    now: -1,
    parts: 0,
    calls: 0,
    stop: null,
    ended: false,
    broken: false,
    failed: null,
    counts,
  }
}

/** A paused turn would continue from the provider's own tool calls, which are not stored: treat it as cut off. */
const CUT: ReadonlySet<string | null> = new Set(['max_tokens', 'model_context_window_exceeded', 'pause_turn'])

/** `blocks` of `heard` must hold all of their text. */
export function replyOf(heard: Heard): Reply | ModelFailure {
  const { blocks, failed, broken, ended, stop } = heard
  if (failed !== null) return withPartial(failed, blocks)
  if (broken)
    return withPartial(failure('network', 'The stream was damaged: one of its events cannot be read.'), blocks)
  if (!ended) return withPartial(failure('network', 'The stream ended before the reply was complete.'), blocks)
  const cut = CUT.has(stop)
  const refused = stop === 'refusal'
  if (!cut && !refused && blocks.some(({ type, open }) => type === 'call' && open)) {
    return withPartial(failure('network', 'The stream ended inside the arguments of a call.'), blocks)
  }
  const parts = blocks.flatMap((block) => partOf(block, heard.target))
  // A refusal cancels the calls made before it.
  const calls = refused ? [] : blocks.filter(({ type }) => type === 'call').map(callOf)
  const finish = refused ? 'refusal' : cut ? 'length' : calls.length > 0 ? 'calls' : 'stop'
  const reply: Mutable<Reply> = { type: 'reply', parts, calls, finish, usage: usageOf(heard.counts) }
  const { dollars } = heard.counts
  // Round away floating-point noise first, or it would be rounded up to a whole millionth.
  if (dollars !== undefined) reply.cost = Math.ceil(Number((dollars * 1e6).toFixed(3)))
  return reply
}

/** A call that began counts as output: the partial text is then set, even if empty. */
function withPartial(failed: ModelFailure, blocks: readonly Block[]): ModelFailure {
  const texts = blocks.filter(({ type }) => type === 'text')
  const partial = texts.map(({ text }) => text).join('')
  const began = partial !== '' || blocks.some(({ type }) => type === 'call')
  return began ? { ...failed, partial } : failed
}

function partOf(block: Block, { endpoint, model }: Target): readonly Part[] {
  const { type, text, signature, at, given } = block
  if (type === 'text') return text === '' ? [] : [{ type: 'text', text }]
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

function callOf({ given, text }: Block): ReplyCall {
  const { id, name, input } = given
  // Some hosts give the arguments with the start of the block and stream nothing.
  const whole = isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : ''
  return { id: stringOf(id), tool: stringOf(name), args: text === '' ? whole : text }
}

export function counted(counts: Counts, usage: Json | undefined): Counts {
  if (!isObject(usage)) return counts
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const told: readonly (readonly [Exclude<keyof Counts, 'absurd'>, Json | undefined])[] = [
    ['input', usage.input_tokens],
    ['output', usage.output_tokens],
    ['cached', usage.cache_read_input_tokens],
    ['cacheWrite', usage.cache_creation_input_tokens],
    ['reasoning', details.thinking_tokens],
    ['dollars', usage.cost],
  ]
  const next: Mutable<Counts> = { ...counts }
  for (const [name, value] of told) {
    if (value === undefined || value === null) continue
    const sane = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
    if (sane && (name === 'dollars' || Number.isInteger(value))) next[name] = Math.max(next[name] ?? 0, value)
    else if (name !== 'dollars') next.absurd = true
  }
  return next
}

/** Anthropic counts cache reads and writes separately from the input. */
function usageOf({ input, output, cached, cacheWrite, reasoning, absurd }: Counts): Usage | null {
  if (absurd || input === undefined || output === undefined) return null
  const inputTokens = input + (cached ?? 0) + (cacheWrite ?? 0)
  if (!Number.isSafeInteger(inputTokens)) return null
  const usage: Mutable<Usage> = { inputTokens, outputTokens: output }
  if (cached !== undefined) usage.cachedTokens = cached
  if (cacheWrite !== undefined) usage.cacheWriteTokens = cacheWrite
  if (reasoning !== undefined) usage.reasoningTokens = reasoning
  return usage
}
