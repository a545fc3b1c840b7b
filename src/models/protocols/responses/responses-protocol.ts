// The OpenAI Responses protocol (api.openai.com and hosts with the same `/responses`), and the reader of its stream.
// encode-responses.ts writes requests; responses-reply.ts has the state and the reply. No I/O.
import type { Protocol, ModelTarget, WireEvent } from '../protocol.ts'
import { encodeResponses } from './encode-responses.ts'
import {
  finishResponse,
  beginResponse,
  type ResponsesState,
  completeSlot,
  slotDelta,
  type ResponseItem,
  openSlot,
  withoutDeltas,
  type ResponseSlot,
  type ResponseStep,
  turnToSlot,
  withLiveText,
} from './responses-reply.ts'
import type { Json, Mutable, Usage } from '../../../kernel/content.ts'
import { failure, failureFromTrouble, type ProviderTrouble } from '../../http/failures.ts'
import type { ModelFailure, Reply } from '../../../ports/model.ts'
import { isObject, asString, parseJson } from '../../../view/untrusted-json.ts'

export const responsesProtocol: Protocol<ResponsesState> = {
  name: 'responses',
  encode: encodeResponses,
  begin: beginResponse,
  step,
  over: ({ end }) => end !== null,
  finish: finishResponse,
  whole: readWholeAnswer,
}

// The event that finishes an item overrides its deltas, and the last event fills in missing items: hosts leave out one or the other.

function step(state: ResponsesState, { event, data }: WireEvent): ResponseStep {
  if (state.end !== null || data === '' || data === '[DONE]') return withoutDeltas(state)
  const said = parseJson(data)
  if (said === undefined) return withoutDeltas({ ...state, broken: true })
  return isObject(said)
    ? takeEvent(state, said, typeof said['type'] === 'string' ? said['type'] : event)
    : withoutDeltas(state)
}

function takeEvent(state: ResponsesState, said: ResponseItem, type: string): ResponseStep {
  switch (type) {
    case 'response.output_text.delta':
    case 'response.refusal.delta':
      return appendDelta(state, said, 'message')
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
    case 'response.reasoning.delta':
      return appendDelta(state, said, 'reasoning')
    case 'response.function_call_arguments.delta':
      return appendDelta(state, said, 'call')
    case 'response.function_call_arguments.done':
      return takeArguments(state, said)
    case 'response.output_item.added':
      return withoutDeltas(startItem(state, said))
    case 'response.output_item.done':
      return finishItem(state, said)
    case 'response.created':
    case 'response.in_progress':
    case 'response.queued':
      return withoutDeltas(takeResponseId(state, said['response']))
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed':
      return isObject(said['response'])
        ? endResponse(state, said['response'], type.slice('response.'.length))
        : withoutDeltas(state)
    case 'error':
      return withoutDeltas(failResponse(state, said['error'] ?? said))
    default:
      // Some hosts send an error in an event of another type.
      return isObject(said['error']) ? withoutDeltas(failResponse(state, said['error'])) : withoutDeltas(state)
  }
}

function appendDelta(state: ResponsesState, said: ResponseItem, type: ResponseSlot['type']): ResponseStep {
  const { delta } = said
  if (typeof delta !== 'string' || delta === '') return withoutDeltas(state)
  let now = state
  let at = slotIndexOf(state, said, type)
  if (at < 0) {
    // Arguments of an unknown call are ignored.
    if (type === 'call' || hasIndex(state, said)) return withoutDeltas(state)
    now = openSlot(state, { type, index: outputIndexOf(state, said), id: asString(said['item_id']) }, {})
    at = now.at
  } else {
    now = turnToSlot(state, at)
  }
  const slot = now.slots[at]
  if (slot === undefined || slot.item !== null || slot.whole) return withoutDeltas(state)
  if (type !== 'reasoning') return [withLiveText(now, now.live + delta, -1), [slotDelta(slot, delta)]]
  const section = sectionOf(said)
  const text = now.live !== '' && now.section >= 0 && now.section !== section ? `\n\n${delta}` : delta
  return [withLiveText(now, now.live + text, section), [slotDelta(slot, text)]]
}

function sectionOf(said: ResponseItem): number {
  const { summary_index: summary, content_index: content } = said
  return typeof summary === 'number' ? summary : typeof content === 'number' ? 1_000_000 + content : 0
}

/** The slot by its output index, else by its id, else the slot being written. */
function slotIndexOf(state: ResponsesState, said: ResponseItem, type: ResponseSlot['type']): number {
  const { output_index: index, item_id: id } = said
  const live = state.slots[state.at]
  if (typeof index === 'number') {
    if (live?.index === index) return live.type === type ? state.at : -1
    return state.slots.findIndex((slot) => slot.index === index && slot.type === type)
  }
  if (typeof id === 'string') return state.slots.findIndex((slot) => slot.id === id && slot.type === type)
  return live?.type === type && live.item === null ? state.at : -1
}

function hasIndex(state: ResponsesState, { output_index: index }: ResponseItem): boolean {
  return state.slots.some((slot) => slot.index === index)
}

function outputIndexOf({ slots }: ResponsesState, { output_index: index }: ResponseItem): number {
  return typeof index === 'number' ? index : slots.length
}

function takeArguments(state: ResponsesState, said: ResponseItem): ResponseStep {
  const at = slotIndexOf(state, said, 'call')
  if (at < 0 || state.slots[at]?.item !== null) return withoutDeltas(state)
  const { arguments: text } = said
  return typeof text === 'string' ? completeSlot(turnToSlot(state, at), text, { whole: true }) : withoutDeltas(state)
}

const TYPES: Readonly<Record<string, ResponseSlot['type']>> = {
  message: 'message',
  reasoning: 'reasoning',
  function_call: 'call',
  web_search_call: 'provider',
  code_interpreter_call: 'provider',
  file_search_call: 'provider',
  compaction: 'provider',
  compaction_summary: 'provider',
  image_generation_call: 'image',
}

function typeOf(item: ResponseItem): ResponseSlot['type'] | null {
  const type = asString(item['type'])
  return Object.hasOwn(TYPES, type) ? (TYPES[type] as ResponseSlot['type']) : null
}

function startItem(state: ResponsesState, said: ResponseItem): ResponsesState {
  const { item } = said
  const type = isObject(item) ? typeOf(item) : null
  if (!isObject(item) || type === null || hasIndex(state, said)) return state
  return openSlot(state, { type, index: outputIndexOf(state, said), id: asString(item['id']) }, item)
}

function finishItem(state: ResponsesState, said: ResponseItem): ResponseStep {
  const { item } = said
  if (!isObject(item)) return withoutDeltas(state)
  const type = typeOf(item)
  if (type === null) return withoutDeltas(state)
  const at = slotIndexOf(state, { ...said, item_id: item['id'] ?? null }, type)
  if (at >= 0) return takeItem(turnToSlot(state, at), item)
  // The item began with another type.
  if (hasIndex(state, said)) return withoutDeltas({ ...state, broken: true })
  return takeItem(openSlot(state, { type, index: outputIndexOf(state, said), id: asString(item['id']) }, item), item)
}

/** Takes the finished item for the slot being written. */
function takeItem(state: ResponsesState, item: ResponseItem): ResponseStep {
  const slot = state.slots[state.at]
  if (slot === undefined) return withoutDeltas(state)
  const contradicts = slot.type === 'call' && slot.whole && !isSameArguments(asString(item['arguments']), state.live)
  if (contradicts) return withoutDeltas({ ...state, broken: true })
  if (slot.item !== null) return withoutDeltas(state)
  const change = { item, whole: item['status'] !== 'incomplete' }
  if (slot.type === 'image')
    return withoutDeltas({ ...state, slots: state.slots.with(state.at, { ...slot, ...change }) })
  if (slot.type === 'call') {
    const whole = change.whole && (slot.whole || typeof item['arguments'] === 'string')
    const tool = asString(item['name']) || slot.tool
    const call = asString(item['call_id']) || slot.call
    return completeSlot(state, asString(item['arguments']), { item, whole, tool, call })
  }
  if (slot.type === 'provider') return completeSlot(state, '', change)
  if (slot.type === 'reasoning') return completeSlot(state, thoughtIn(item), change)
  const content = itemsIn(item['content'])
  const text = content.map((part) => asString(part['text']) || asString(part['refusal'])).join('')
  return completeSlot(state, text, { ...change, refused: content.some((part) => part['type'] === 'refusal') })
}

/**
 * Compares the arguments of one call that were sent twice. Some hosts reformat them, some leave them out the second
 * time.
 */
function isSameArguments(left: string, right: string): boolean {
  if (left === right || left === '' || right === '') return true
  const [one, other] = [parseJson(left), parseJson(right)]
  return one !== undefined && other !== undefined && JSON.stringify(one) === JSON.stringify(other)
}

function thoughtIn(item: ResponseItem): string {
  const sections = [...itemsIn(item['summary']), ...itemsIn(item['content'])].map((part) => asString(part['text']))
  return sections.filter((text) => text !== '').join('\n\n')
}

function itemsIn(value: Json | undefined): readonly ResponseItem[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function takeResponseId(state: ResponsesState, response: Json | undefined): ResponsesState {
  const id = isObject(response) ? asString(response['id']) : ''
  return id === '' || id === state.response ? state : { ...state, response: id }
}

/** The provider's end of the answer. The status of the response takes precedence over `told`, the name of the event. */
function endResponse(state: ResponsesState, response: ResponseItem, told: string): ResponseStep {
  const status = asString(response['status'])
  const how = ['completed', 'incomplete', 'failed', 'cancelled'].includes(status) ? status : told
  const now = takeResponseId(state, response)
  if (how === 'failed')
    return withoutDeltas(failResponse(now, response['error'] ?? { message: 'The response failed.' }))
  if (how === 'cancelled') {
    return withoutDeltas({ ...now, end: { type: 'failed', failure: failure('other', 'The response was cancelled.') } })
  }
  const [filled, deltas] = fillMissingItems(now, itemsIn(response['output']))
  const { incomplete_details: details, usage } = response
  const filtered = isObject(details) && details['reason'] === 'content_filter'
  const why = how === 'completed' ? 'completed' : filtered ? 'refusal' : 'length'
  const end = { type: 'over', why, usage: usageOf(usage), cost: costOf(usage) } as const
  return [{ ...filled, end }, deltas]
}

/** Adds items of the final response that no event finished, and drops items that are not in it. */
function fillMissingItems(state: ResponsesState, output: readonly ResponseItem[]): ResponseStep {
  if (output.length === 0) return withoutDeltas(state)
  const deltas: ResponseStep[1][number][] = []
  let now = state
  output.forEach((item, index) => {
    const [id, type] = [asString(item['id']), typeOf(item)]
    const same = now.slots.find((slot) => id !== '' && slot.id === id && slot.type === type)
    const there = now.slots.find((slot) => slot.index === index)
    // Hosts that leave items out of the final response number them differently.
    if (!same && there && there.type !== type) return
    const [next, more] = finishItem(now, { item, output_index: same?.index ?? index })
    now = next
    deltas.push(...more)
  })
  const slots = turnToSlot(now, -1).slots.filter((slot) => slot.item !== null)
  return [{ ...now, slots, at: -1, live: '' }, deltas]
}

function failResponse(state: ResponsesState, error: Json): ResponsesState {
  return { ...state, end: { type: 'failed', failure: failureFromTrouble(troubleOf(error)) } }
}

function troubleOf(error: Json): ProviderTrouble {
  if (!isObject(error)) return { message: asString(error) || 'The provider reported an error without a message.' }
  const code = asString(error['code']) || asString(error['type'])
  const message = asString(error['message']) || 'The provider reported an error without a message.'
  return code === '' || code === 'error' ? { message } : { code, message }
}

/** A whole answer that came as one JSON body. */
function readWholeAnswer(body: string, target: ModelTarget): Reply | ModelFailure {
  const said = parseJson(body)
  if (said === undefined) return failure('network', 'The answer was damaged on its way: it is not JSON.')
  if (!isObject(said)) return failure('network', 'The answer was damaged on its way: it is not an object.')
  const hasOutput = Array.isArray(said['output'])
  if (!hasOutput && isObject(said['error']))
    return finishResponse(endResponse(beginResponse(target), said, 'failed')[0])
  const status = asString(said['status'])
  if (!hasOutput || status === 'in_progress' || status === 'queued') {
    return failure('network', 'The answer came before the reply was complete.')
  }
  return finishResponse(endResponse(beginResponse(target), said, 'completed')[0])
}

// Usage and cost. Input includes cached tokens, and output includes reasoning tokens.

/** Null if the usage is missing, or if one of its numbers is impossible. */
function usageOf(usage: Json | undefined): Usage | null {
  if (!isObject(usage)) return null
  const { input_tokens: input, output_tokens: output } = usage
  if (!isCount(input) || !isCount(output)) return null
  const told: Mutable<Usage> = { inputTokens: input, outputTokens: output }
  for (const [group, name, field] of DETAILS) {
    const details = usage[group]
    const count = isObject(details) ? (details[name] ?? null) : null
    if (count === null) continue
    if (!isCount(count)) return null
    told[field] = count
  }
  return told
}

const DETAILS = [
  ['input_tokens_details', 'cached_tokens', 'cachedTokens'],
  ['input_tokens_details', 'cache_write_tokens', 'cacheWriteTokens'],
  ['output_tokens_details', 'reasoning_tokens', 'reasoningTokens'],
] as const

/** Some hosts report their price in dollars. Converted to millionths, rounded up: money is counted in integers. */
function costOf(usage: Json | undefined): number | null {
  const cost = isObject(usage) ? usage['cost'] : null
  if (typeof cost !== 'number' || !(cost >= 0)) return null
  // 0.00014 dollars are 140 millionths, not 140.00000000000003.
  const millionths = Math.ceil(Number((cost * 1e6).toPrecision(12)))
  return isCount(millionths) ? millionths : null
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
