// The state of a Responses answer during the stream, and the Reply or failure made from it: never a Reply without the
// provider's own end event. responses-protocol.ts reads the events.
import type { Mutable, Part, Json } from '../../../kernel/content.ts'
import type { ModelFailure, Reply, ReplyCall, Delta } from '../../../ports/model.ts'
import { failure } from '../../http/failures.ts'
import { isObject, asList, asString } from '../../../view/untrusted-json.ts'
import { sourcesIn } from '../../../view/cited-sources.ts'
import type { ModelTarget } from '../protocol.ts'
import {
  IMAGE_CALL,
  itemPart,
  messagePart,
  type ResponseOrigin,
  responsePart,
  providerItemPart,
} from './encode-responses.ts'

export function finishResponse(state: ResponsesState): Reply | ModelFailure {
  const slots = settleSlots(state)
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

/** A call that began counts as output: the partial text is then set, even if empty. */
function withPartial(failed: ModelFailure, slots: readonly ResponseSlot[]): ModelFailure {
  const partial = slots.map((slot) => (slot.type === 'message' ? slot.text : '')).join('')
  const began = partial !== '' || slots.some(({ type }) => type === 'call')
  return began ? { ...failed, partial } : failed
}

function replyOf(
  { origin, response }: ResponsesState,
  slots: readonly ResponseSlot[],
  end: Extract<ResponseEnd, { type: 'over' }>,
): Reply {
  const refused = end.why === 'refusal' || slots.some((slot) => slot.refused)
  const parts: Part[] = []
  const calls: ReplyCall[] = []
  for (const slot of slots) {
    if (slot.type === 'message') parts.push(...textParts(slot, origin, calls.length))
    else if (slot.type === 'reasoning') parts.push(...reasoningParts(slot, origin, calls.length))
    else if (slot.type === 'provider') parts.push(...providerParts(slot, origin, calls.length))
    else if (slot.type === 'image') parts.push(...imageParts(slot, origin, calls.length))
    // A refusal cancels calls. A call with only a name was never made.
    else if (!refused && (slot.whole || slot.text !== '')) calls.push(callOf(slot))
  }
  parts.push(...sourcesIn(slots.flatMap(citedIn)))
  const isStored = origin.chain && response !== '' && end.why === 'completed' && !refused
  if (isStored) parts.push(responsePart(origin, calls.length, response))
  const finish = end.why === 'length' ? 'length' : refused ? 'refusal' : calls.length > 0 ? 'calls' : 'stop'
  const searches = slots.filter(isSearch).length
  const usage = end.usage !== null && searches > 0 ? { ...end.usage, webSearches: searches } : end.usage
  const reply: Mutable<Reply> = { type: 'reply', parts, calls, finish, usage }
  if (end.cost !== null) reply.cost = end.cost
  return reply
}

/** An item that broke off cannot be continued. */
function providerParts({ item }: ResponseSlot, origin: ResponseOrigin, at: number): readonly Part[] {
  const { type, status = 'completed' } = item ?? { status: 'incomplete' }
  return status === 'completed' ? [providerItemPart(origin, at, item, asString(type))] : []
}

/** Opening a page that was found is not another search. */
function isSearch({ item }: ResponseSlot): boolean {
  const action = item?.['action']
  return item?.['type'] === 'web_search_call' && (!isObject(action) || (action['type'] ?? 'search') === 'search')
}

function citedIn({ item }: ResponseSlot): readonly Json[] {
  return asList(item?.['content']).flatMap((content) => (isObject(content) ? asList(content['annotations']) : []))
}

function callOf({ call, tool, text }: ResponseSlot): ReplyCall {
  return { id: call, tool, args: text }
}

function textParts({ text, item }: ResponseSlot, origin: ResponseOrigin, at: number): readonly Part[] {
  if (text === '') return []
  const phase = asString(item?.['phase']) || null
  const said: Part = { type: 'text', text }
  return phase === null && at === 0 ? [said] : [messagePart(origin, at, phase), said]
}

/** A picture that the provider's own tool made, after the item in which it goes back. */
function imageParts({ item }: ResponseSlot, origin: ResponseOrigin, at: number): readonly Part[] {
  const [data, id] = [asString(item?.['result']), asString(item?.['id'])]
  if (data === '') return []
  const media = `image/${asString(item?.['output_format']) || 'png'}`
  const call = { type: IMAGE_CALL, id, status: 'completed' }
  return [...(id === '' ? [] : [providerItemPart(origin, at, call, IMAGE_CALL)]), { type: 'data', media, data }]
}

/** An item without encrypted content cannot be sent back: the provider did not store it. Only its text is kept. */
function reasoningParts({ text, item }: ResponseSlot, origin: ResponseOrigin, at: number): readonly Part[] {
  if (item && asString(item['encrypted_content']) !== '') return [itemPart(origin, at, text, item)]
  return text === '' ? [] : [itemPart(origin, at, text, null)]
}

// The items streamed so far. Every change returns a new state and leaves the old one usable.

/** One message, reasoning item, function call, picture, or call of a tool that the provider runs. Other items are ignored. */
export type ResponseSlot = {
  readonly type: 'message' | 'reasoning' | 'call' | 'provider' | 'image'
  readonly index: number
  readonly id: string
  /** The part or call of the reply to which its deltas belong. */
  readonly part: number
  /** How many calls began before it. */
  readonly at: number
  /** The text of the message, the reasoning or the arguments. */
  readonly text: string
  readonly tool: string
  readonly call: string
  /** The provider has sent it completely. */
  readonly whole: boolean
  readonly refused: boolean
  /** The finished item as the provider sent it. */
  readonly item: ResponseItem | null
}

type ResponseEnd =
  | { readonly type: 'failed'; readonly failure: ModelFailure }
  | {
      readonly type: 'over'
      readonly why: 'completed' | 'length' | 'refusal'
      readonly usage: Reply['usage']
      readonly cost: number | null
    }

export type ResponsesState = {
  readonly origin: ResponseOrigin
  readonly response: string
  readonly slots: readonly ResponseSlot[]
  /** The slot being written (-1 for none) and its text, kept here so that a delta copies no list. */
  readonly at: number
  readonly live: string
  /** The section of a reasoning item being written, or -1. */
  readonly section: number
  readonly broken: boolean
  readonly end: ResponseEnd | null
}

/** An unchecked JSON object from the wire. */
export type ResponseItem = { readonly [key: string]: Json }

export type ResponseStep = readonly [ResponsesState, readonly Delta[]]

const NONE: readonly Delta[] = []
/** No answer has more items than this: a longer stream is damaged, and its cost must stay bounded. */
const SLOTS_MAX = 1_000

export function beginResponse({ endpoint, model, settings }: ModelTarget): ResponsesState {
  const origin = { by: endpoint, model, chain: settings.chain === true }
  return { origin, response: '', slots: [], at: -1, live: '', section: -1, broken: false, end: null }
}

export function withoutDeltas(state: ResponsesState): ResponseStep {
  return [state, NONE]
}

/** All texts in their slots. */
function settleSlots(state: ResponsesState): readonly ResponseSlot[] {
  const { at, live, slots } = state
  const slot = slots[at]
  return slot === undefined || slot.text === live ? slots : slots.with(at, { ...slot, text: live })
}

export function turnToSlot(state: ResponsesState, at: number): ResponsesState {
  if (at === state.at) return state
  const slots = settleSlots(state)
  return { ...state, slots, at, live: slots[at]?.text ?? '', section: -1 }
}

export function openSlot(
  state: ResponsesState,
  given: Pick<ResponseSlot, 'type' | 'index' | 'id'>,
  item: ResponseItem,
): ResponsesState {
  if (state.slots.length >= SLOTS_MAX) return { ...state, broken: true }
  const slot: ResponseSlot = {
    ...given,
    part: state.slots.length,
    at: state.slots.filter(({ type }) => type === 'call').length,
    text: '',
    tool: asString(item['name']),
    call: asString(item['call_id']),
    whole: false,
    refused: false,
    item: null,
  }
  const slots = [...settleSlots(state), slot]
  return { ...state, slots, at: slots.length - 1, live: '', section: -1 }
}

/** Sets the final text of the slot being written, and emits the part of it that was not streamed. */
export function completeSlot(state: ResponsesState, text: string, change: Partial<ResponseSlot>): ResponseStep {
  const slot = state.slots[state.at]
  if (slot === undefined) return withoutDeltas(state)
  // Some hosts end an item without repeating its text.
  const whole = text === '' ? state.live : text
  const rest = whole.startsWith(state.live) ? whole.slice(state.live.length) : ''
  const slots = state.slots.with(state.at, { ...slot, ...change, text: whole })
  return [{ ...state, slots, live: whole }, rest === '' ? NONE : [slotDelta(slot, rest)]]
}

/** Runs for every piece of text. It is written field by field, since a spread would be its largest cost. */
export function withLiveText(state: ResponsesState, live: string, section: number): ResponsesState {
  const { origin, response, slots, at, broken, end } = state
  return { origin, response, slots, at, live, section, broken, end }
}

export function slotDelta({ type, part, tool, at }: ResponseSlot, text: string): Delta {
  if (type === 'call') return { kind: 'arguments', part, text, proposed: { tool, index: at } }
  return { kind: type === 'message' ? 'text' : 'reasoning', part, text }
}
