// What a finished or broken answer comes to: one Reply, or one ModelFailure with the text so far. Never a Reply without the
// provider's own end.
import type { Mutable, Part } from '../../../kernel/content.ts'
import type { ModelFailure, Reply, ReplyCall } from '../../../kernel/ports.ts'
import { failure } from '../../http/failures.ts'
import type { Target } from '../protocol.ts'
import { itemPart, messagePart, type Origin, responsePart } from './marks.ts'
import { begin, type End, settled, type Slot, type State } from './state.ts'
import { over } from './stream.ts'
import { isObject, stringOf } from '../../../view/json.ts'

export function finish(state: State): Reply | ModelFailure {
  const slots = settled(state)
  const { end, broken } = state
  if (end?.type === 'failed') return withPartial(end.failure, slots)
  if (broken) return withPartial(failure('network', 'The stream was damaged on its way.'), slots)
  if (end === null) return withPartial(failure('network', 'The stream ended before the reply was complete.'), slots)
  const cut = slots.some((slot) => slot.type === 'call' && !slot.whole)
  if (end.why === 'completed' && cut) {
    return withPartial(failure('network', 'The stream was damaged: the arguments of a call are not whole.'), slots)
  }
  return replyOf(state, slots, end)
}

/** A whole answer that came as one JSON body. */
export function whole(body: string, target: Target): Reply | ModelFailure {
  let said: unknown
  try {
    said = JSON.parse(body)
  } catch {
    return failure('network', 'The answer was damaged on its way: it is not JSON.')
  }
  if (!isObject(said)) return failure('network', 'The answer was damaged on its way: it is not an object.')
  const hasOutput = Array.isArray(said['output'])
  if (!hasOutput && isObject(said['error'])) return finish(over(begin(target), said, 'failed')[0])
  const status = stringOf(said['status'])
  if (!hasOutput || status === 'in_progress' || status === 'queued') {
    return failure('network', 'The answer came before the reply was complete.')
  }
  return finish(over(begin(target), said, 'completed')[0])
}

/** A call that began is output too: then the partial text is there, and empty. */
function withPartial(failed: ModelFailure, slots: readonly Slot[]): ModelFailure {
  const partial = slots.map((slot) => (slot.type === 'message' ? slot.text : '')).join('')
  const began = partial !== '' || slots.some(({ type }) => type === 'call')
  return began ? { ...failed, partial } : failed
}

function replyOf({ origin, response }: State, slots: readonly Slot[], end: Extract<End, { type: 'over' }>): Reply {
  const refused = end.why === 'refusal' || slots.some((slot) => slot.refused)
  const parts: Part[] = []
  const calls: ReplyCall[] = []
  for (const slot of slots) {
    if (slot.type === 'message') parts.push(...textParts(slot, origin, calls.length))
    else if (slot.type === 'reasoning') parts.push(...reasoningParts(slot, origin, calls.length))
    // What was refused is not to be done, and a call of which nothing came but its name was never made.
    else if (!refused && (slot.whole || slot.text !== '')) calls.push(callOf(slot))
  }
  const isStored = origin.chain && response !== '' && end.why === 'completed' && !refused
  if (isStored) parts.push(responsePart(origin, calls.length, response))
  const finish = end.why === 'length' ? 'length' : refused ? 'refusal' : calls.length > 0 ? 'calls' : 'stop'
  const reply: Mutable<Reply> = { type: 'reply', parts, calls, finish, usage: end.usage }
  if (end.cost !== null) reply.cost = end.cost
  return reply
}

function callOf({ call, tool, text }: Slot): ReplyCall {
  return { id: call, tool, args: text }
}

function textParts({ text, item }: Slot, origin: Origin, at: number): readonly Part[] {
  if (text === '') return []
  const phase = stringOf(item?.['phase']) || null
  const said: Part = { type: 'text', text }
  return phase === null && at === 0 ? [said] : [messagePart(origin, at, phase), said]
}

/** Without its encrypted content an item cannot go back: nobody stored it. */
function reasoningParts({ text, item }: Slot, origin: Origin, at: number): readonly Part[] {
  if (item && stringOf(item['encrypted_content']) !== '') return [itemPart(origin, at, text, item)]
  return text === '' ? [] : [{ type: 'reasoning', text }]
}
