// The state of a Responses answer while it streams, and the Reply or failure it becomes: never a Reply without the provider's own
// end event. It reads no events: responses.ts does.
import type { Mutable, Part, Json } from '../../../kernel/content.ts'
import type { ModelFailure, Reply, ReplyCall, Delta } from '../../../ports/model.ts'
import { failure } from '../../http/failures.ts'
import { isObject, listOf, stringOf } from '../../../view/json.ts'
import { sourcesIn } from '../../../view/sources.ts'
import type { Target } from '../protocol.ts'
import { IMAGE_CALL, itemPart, messagePart, type Origin, responsePart, servedPart } from './encode.ts'

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

/** A call that began counts as output: the partial text is then set, even if empty. */
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
    else if (slot.type === 'provider') parts.push(...servedParts(slot, origin, calls.length))
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

/** One that broke off has nothing to go on from. */
function servedParts({ item }: Slot, origin: Origin, at: number): readonly Part[] {
  const { type, status = 'completed' } = item ?? { status: 'incomplete' }
  return status === 'completed' ? [servedPart(origin, at, item, stringOf(type))] : []
}

/** Opening a page that was found is not another search. */
function isSearch({ item }: Slot): boolean {
  const action = item?.['action']
  return item?.['type'] === 'web_search_call' && (!isObject(action) || (action['type'] ?? 'search') === 'search')
}

function citedIn({ item }: Slot): readonly Json[] {
  return listOf(item?.['content']).flatMap((content) => (isObject(content) ? listOf(content['annotations']) : []))
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

/** A picture that the provider's own tool made, after the item that it goes back in. */
function imageParts({ item }: Slot, origin: Origin, at: number): readonly Part[] {
  const [data, id] = [stringOf(item?.['result']), stringOf(item?.['id'])]
  if (data === '') return []
  const media = `image/${stringOf(item?.['output_format']) || 'png'}`
  const call = { type: IMAGE_CALL, id, status: 'completed' }
  return [...(id === '' ? [] : [servedPart(origin, at, call, IMAGE_CALL)]), { type: 'data', media, data }]
}

/** An item without encrypted content cannot be sent back: the provider did not store it. Only its text is kept. */
function reasoningParts({ text, item }: Slot, origin: Origin, at: number): readonly Part[] {
  if (item && stringOf(item['encrypted_content']) !== '') return [itemPart(origin, at, text, item)]
  return text === '' ? [] : [itemPart(origin, at, text, null)]
}

// The items streamed so far. Every change returns a new state and leaves the old one usable.

/** One message, reasoning item, function call, picture, or call of a tool that the provider runs. Other items are ignored. */
export type Slot = {
  readonly type: 'message' | 'reasoning' | 'call' | 'provider' | 'image'
  readonly index: number
  readonly id: string
  /** The part or call of the reply its deltas belong to. */
  readonly part: number
  /** How many calls began before it. */
  readonly at: number
  /** The message, the reasoning or the arguments. */
  readonly text: string
  readonly tool: string
  readonly call: string
  /** Complete: the provider has sent it whole. */
  readonly whole: boolean
  readonly refused: boolean
  /** The finished item as the provider sent it. */
  readonly item: Item | null
}

type End =
  | { readonly type: 'failed'; readonly failure: ModelFailure }
  | {
      readonly type: 'over'
      readonly why: 'completed' | 'length' | 'refusal'
      readonly usage: Reply['usage']
      readonly cost: number | null
    }

export type State = {
  readonly origin: Origin
  readonly response: string
  readonly slots: readonly Slot[]
  /** The slot being written (-1 for none) and its text, kept here so that a delta copies no list. */
  readonly at: number
  readonly live: string
  /** The section of a reasoning item being written, or -1. */
  readonly section: number
  readonly broken: boolean
  readonly end: End | null
}

/** An unchecked JSON object from the wire. */
export type Item = { readonly [key: string]: Json }

export type Stepped = readonly [State, readonly Delta[]]

const NONE: readonly Delta[] = []
/** More items than any answer has: a longer stream is damaged, and its cost must stay bounded. */
const SLOTS_MAX = 1_000

export function begin({ endpoint, model, settings }: Target): State {
  const origin = { by: endpoint, model, chain: settings.chain === true }
  return { origin, response: '', slots: [], at: -1, live: '', section: -1, broken: false, end: null }
}

export function quiet(state: State): Stepped {
  return [state, NONE]
}

/** All texts in their slots. */
function settled(state: State): readonly Slot[] {
  const { at, live, slots } = state
  const slot = slots[at]
  return slot === undefined || slot.text === live ? slots : slots.with(at, { ...slot, text: live })
}

export function turnTo(state: State, at: number): State {
  if (at === state.at) return state
  const slots = settled(state)
  return { ...state, slots, at, live: slots[at]?.text ?? '', section: -1 }
}

export function opened(state: State, given: Pick<Slot, 'type' | 'index' | 'id'>, item: Item): State {
  if (state.slots.length >= SLOTS_MAX) return { ...state, broken: true }
  const slot: Slot = {
    ...given,
    part: state.slots.length,
    at: state.slots.filter(({ type }) => type === 'call').length,
    text: '',
    tool: stringOf(item['name']),
    call: stringOf(item['call_id']),
    whole: false,
    refused: false,
    item: null,
  }
  const slots = [...settled(state), slot]
  return { ...state, slots, at: slots.length - 1, live: '', section: -1 }
}

/** Sets the final text of the slot being written, and emits what was not streamed of it. */
export function completed(state: State, text: string, change: Partial<Slot>): Stepped {
  const slot = state.slots[state.at]
  if (slot === undefined) return quiet(state)
  // Some hosts end an item without repeating what it held.
  const whole = text === '' ? state.live : text
  const rest = whole.startsWith(state.live) ? whole.slice(state.live.length) : ''
  const slots = state.slots.with(state.at, { ...slot, ...change, text: whole })
  return [{ ...state, slots, live: whole }, rest === '' ? NONE : [deltaOf(slot, rest)]]
}

/** Runs for every piece of text: written field by field, since a spread would be its largest cost. */
export function withLive(state: State, live: string, section: number): State {
  const { origin, response, slots, at, broken, end } = state
  return { origin, response, slots, at, live, section, broken, end }
}

export function deltaOf({ type, part, tool, at }: Slot, text: string): Delta {
  if (type === 'call') return { kind: 'arguments', part, text, proposed: { tool, index: at } }
  return { kind: type === 'message' ? 'text' : 'reasoning', part, text }
}
