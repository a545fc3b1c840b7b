// The OpenAI Responses protocol (api.openai.com and hosts with the same `/responses`), and the reader of its stream. Requests are
// written in encode.ts; the state and the reply made of it are in reply.ts. No I/O.
import type { Protocol, Target, WireEvent } from '../protocol.ts'
import { encode } from './encode.ts'
import {
  finish,
  begin,
  type State,
  completed,
  deltaOf,
  type Item,
  opened,
  quiet,
  type Slot,
  type Stepped,
  turnTo,
  withLive,
} from './reply.ts'
import type { Json, Mutable, Usage } from '../../../kernel/content.ts'
import { failure, failureOf, type Trouble } from '../../http/failures.ts'
import type { ModelFailure, Reply } from '../../../ports/model.ts'
import { isObject, stringOf, parsed } from '../../../view/json.ts'

export const responses: Protocol<State> = {
  name: 'responses',
  encode,
  begin,
  step,
  over: ({ end }) => end !== null,
  finish,
  whole,
}

// The event that finishes an item overrides its deltas, and the last event fills in missing items: hosts leave out one or the other.

function step(state: State, { event, data }: WireEvent): Stepped {
  if (state.end !== null || data === '' || data === '[DONE]') return quiet(state)
  const said = parsed(data)
  if (said === undefined) return quiet({ ...state, broken: true })
  return isObject(said) ? take(state, said, typeof said['type'] === 'string' ? said['type'] : event) : quiet(state)
}

function take(state: State, said: Item, type: string): Stepped {
  switch (type) {
    case 'response.output_text.delta':
    case 'response.refusal.delta':
      return append(state, said, 'message')
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
    case 'response.reasoning.delta':
      return append(state, said, 'reasoning')
    case 'response.function_call_arguments.delta':
      return append(state, said, 'call')
    case 'response.function_call_arguments.done':
      return argued(state, said)
    case 'response.output_item.added':
      return quiet(started(state, said))
    case 'response.output_item.done':
      return finished(state, said)
    case 'response.created':
    case 'response.in_progress':
    case 'response.queued':
      return quiet(named(state, said['response']))
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed':
      return isObject(said['response']) ? over(state, said['response'], type.slice('response.'.length)) : quiet(state)
    case 'error':
      return quiet(failed(state, said['error'] ?? said))
    default:
      // Some hosts send an error in an event of another type.
      return isObject(said['error']) ? quiet(failed(state, said['error'])) : quiet(state)
  }
}

function append(state: State, said: Item, type: Slot['type']): Stepped {
  const { delta } = said
  if (typeof delta !== 'string' || delta === '') return quiet(state)
  let now = state
  let at = indexOf(state, said, type)
  if (at < 0) {
    // Arguments of an unknown call are ignored.
    if (type === 'call' || isTaken(state, said)) return quiet(state)
    now = opened(state, { type, index: placeOf(state, said), id: stringOf(said['item_id']) }, {})
    at = now.at
  } else {
    now = turnTo(state, at)
  }
  const slot = now.slots[at]
  if (slot === undefined || slot.item !== null || slot.whole) return quiet(state)
  if (type !== 'reasoning') return [withLive(now, now.live + delta, -1), [deltaOf(slot, delta)]]
  const section = sectionOf(said)
  const text = now.live !== '' && now.section >= 0 && now.section !== section ? `\n\n${delta}` : delta
  return [withLive(now, now.live + text, section), [deltaOf(slot, text)]]
}

function sectionOf(said: Item): number {
  const { summary_index: summary, content_index: content } = said
  return typeof summary === 'number' ? summary : typeof content === 'number' ? 1_000_000 + content : 0
}

/** By its output index, else by its id, else the slot being written. */
function indexOf(state: State, said: Item, type: Slot['type']): number {
  const { output_index: index, item_id: id } = said
  const live = state.slots[state.at]
  if (typeof index === 'number') {
    if (live?.index === index) return live.type === type ? state.at : -1
    return state.slots.findIndex((slot) => slot.index === index && slot.type === type)
  }
  if (typeof id === 'string') return state.slots.findIndex((slot) => slot.id === id && slot.type === type)
  return live?.type === type && live.item === null ? state.at : -1
}

function isTaken(state: State, { output_index: index }: Item): boolean {
  return state.slots.some((slot) => slot.index === index)
}

function placeOf({ slots }: State, { output_index: index }: Item): number {
  return typeof index === 'number' ? index : slots.length
}

function argued(state: State, said: Item): Stepped {
  const at = indexOf(state, said, 'call')
  if (at < 0 || state.slots[at]?.item !== null) return quiet(state)
  const { arguments: text } = said
  return typeof text === 'string' ? completed(turnTo(state, at), text, { whole: true }) : quiet(state)
}

const TYPES: Readonly<Record<string, Slot['type']>> = {
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

function typeOf(item: Item): Slot['type'] | null {
  const type = stringOf(item['type'])
  return Object.hasOwn(TYPES, type) ? (TYPES[type] as Slot['type']) : null
}

function started(state: State, said: Item): State {
  const { item } = said
  const type = isObject(item) ? typeOf(item) : null
  if (!isObject(item) || type === null || isTaken(state, said)) return state
  return opened(state, { type, index: placeOf(state, said), id: stringOf(item['id']) }, item)
}

function finished(state: State, said: Item): Stepped {
  const { item } = said
  if (!isObject(item)) return quiet(state)
  const type = typeOf(item)
  if (type === null) return quiet(state)
  const at = indexOf(state, { ...said, item_id: item['id'] ?? null }, type)
  if (at >= 0) return shown(turnTo(state, at), item)
  // The item began with another type.
  if (isTaken(state, said)) return quiet({ ...state, broken: true })
  return shown(opened(state, { type, index: placeOf(state, said), id: stringOf(item['id']) }, item), item)
}

/** The slot being written is this item. */
function shown(state: State, item: Item): Stepped {
  const slot = state.slots[state.at]
  if (slot === undefined) return quiet(state)
  const contradicts = slot.type === 'call' && slot.whole && !agrees(stringOf(item['arguments']), state.live)
  if (contradicts) return quiet({ ...state, broken: true })
  if (slot.item !== null) return quiet(state)
  const change = { item, whole: item['status'] !== 'incomplete' }
  if (slot.type === 'image') return quiet({ ...state, slots: state.slots.with(state.at, { ...slot, ...change }) })
  if (slot.type === 'call') {
    const whole = change.whole && (slot.whole || typeof item['arguments'] === 'string')
    const tool = stringOf(item['name']) || slot.tool
    const call = stringOf(item['call_id']) || slot.call
    return completed(state, stringOf(item['arguments']), { item, whole, tool, call })
  }
  if (slot.type === 'provider') return completed(state, '', change)
  if (slot.type === 'reasoning') return completed(state, thoughtIn(item), change)
  const content = itemsIn(item['content'])
  const text = content.map((part) => stringOf(part['text']) || stringOf(part['refusal'])).join('')
  return completed(state, text, { ...change, refused: content.some((part) => part['type'] === 'refusal') })
}

/** Compares the arguments of one call sent twice. Some hosts reformat them, some leave them out the second time. */
function agrees(left: string, right: string): boolean {
  if (left === right || left === '' || right === '') return true
  const [one, other] = [parsed(left), parsed(right)]
  return one !== undefined && other !== undefined && JSON.stringify(one) === JSON.stringify(other)
}

function thoughtIn(item: Item): string {
  const sections = [...itemsIn(item['summary']), ...itemsIn(item['content'])].map((part) => stringOf(part['text']))
  return sections.filter((text) => text !== '').join('\n\n')
}

function itemsIn(value: Json | undefined): readonly Item[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function named(state: State, response: Json | undefined): State {
  const id = isObject(response) ? stringOf(response['id']) : ''
  return id === '' || id === state.response ? state : { ...state, response: id }
}

/** The provider's end of the answer. The status of the response wins over `told`, the name of the event. */
function over(state: State, response: Item, told: string): Stepped {
  const status = stringOf(response['status'])
  const how = ['completed', 'incomplete', 'failed', 'cancelled'].includes(status) ? status : told
  const now = named(state, response)
  if (how === 'failed') return quiet(failed(now, response['error'] ?? { message: 'The response failed.' }))
  if (how === 'cancelled') {
    return quiet({ ...now, end: { type: 'failed', failure: failure('other', 'The response was cancelled.') } })
  }
  const [filled, deltas] = fill(now, itemsIn(response['output']))
  const { incomplete_details: details, usage } = response
  const filtered = isObject(details) && details['reason'] === 'content_filter'
  const why = how === 'completed' ? 'completed' : filtered ? 'refusal' : 'length'
  const end = { type: 'over', why, usage: usageOf(usage), cost: costOf(usage) } as const
  return [{ ...filled, end }, deltas]
}

/** Adds items of the final response that no event finished, and drops items that are not in it. */
function fill(state: State, output: readonly Item[]): Stepped {
  if (output.length === 0) return quiet(state)
  const deltas: Stepped[1][number][] = []
  let now = state
  output.forEach((item, index) => {
    const [id, type] = [stringOf(item['id']), typeOf(item)]
    const same = now.slots.find((slot) => id !== '' && slot.id === id && slot.type === type)
    const there = now.slots.find((slot) => slot.index === index)
    // Hosts that leave items out of the final response number them differently.
    if (!same && there && there.type !== type) return
    const [next, more] = finished(now, { item, output_index: same?.index ?? index })
    now = next
    deltas.push(...more)
  })
  const slots = turnTo(now, -1).slots.filter((slot) => slot.item !== null)
  return [{ ...now, slots, at: -1, live: '' }, deltas]
}

function failed(state: State, error: Json): State {
  return { ...state, end: { type: 'failed', failure: failureOf(troubleOf(error)) } }
}

function troubleOf(error: Json): Trouble {
  if (!isObject(error)) return { message: stringOf(error) || 'The provider reported an error without a message.' }
  const code = stringOf(error['code']) || stringOf(error['type'])
  const message = stringOf(error['message']) || 'The provider reported an error without a message.'
  return code === '' || code === 'error' ? { message } : { code, message }
}

/** A whole answer that came as one JSON body. */
function whole(body: string, target: Target): Reply | ModelFailure {
  const said = parsed(body)
  if (said === undefined) return failure('network', 'The answer was damaged on its way: it is not JSON.')
  if (!isObject(said)) return failure('network', 'The answer was damaged on its way: it is not an object.')
  const hasOutput = Array.isArray(said['output'])
  if (!hasOutput && isObject(said['error'])) return finish(over(begin(target), said, 'failed')[0])
  const status = stringOf(said['status'])
  if (!hasOutput || status === 'in_progress' || status === 'queued') {
    return failure('network', 'The answer came before the reply was complete.')
  }
  return finish(over(begin(target), said, 'completed')[0])
}

// Usage and cost. Input includes cached tokens, and output includes reasoning tokens.

/** Null if it is missing, or if one of its numbers is impossible. */
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
