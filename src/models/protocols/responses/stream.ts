// One event of the answer. The events that finish an item are believed before its deltas, and the last event fills in what
// neither told: hosts leave out one or the other.
import type { Json } from '../../../kernel/content.ts'
import { failure, failureOf, type Trouble } from '../../http/failures.ts'
import type { WireEvent } from '../protocol.ts'
import {
  completed,
  deltaOf,
  type Item,
  opened,
  quiet,
  type Slot,
  type State,
  type Stepped,
  turnTo,
  withLive,
} from './state.ts'
import { costOf, usageOf } from './usage.ts'
import { isObject, stringOf } from '../../../view/json.ts'

export function step(state: State, { event, data }: WireEvent): Stepped {
  if (state.end !== null || data === '' || data === '[DONE]') return quiet(state)
  let said: unknown
  try {
    said = JSON.parse(data)
  } catch {
    return quiet({ ...state, broken: true })
  }
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
      // Some hosts say what went wrong without saying that it is an error.
      return isObject(said['error']) ? quiet(failed(state, said['error'])) : quiet(state)
  }
}

function append(state: State, said: Item, type: Slot['type']): Stepped {
  const { delta } = said
  if (typeof delta !== 'string' || delta === '') return quiet(state)
  let now = state
  let at = indexOf(state, said, type)
  if (at < 0) {
    // Arguments of a call nobody announced belong to no tool.
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

/** By its place in the answer, else by its id, else the one being written. */
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
  // It was begun as something else.
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
  if (slot.type === 'call') {
    const whole = change.whole && (slot.whole || typeof item['arguments'] === 'string')
    const tool = stringOf(item['name']) || slot.tool
    const call = stringOf(item['call_id']) || slot.call
    return completed(state, stringOf(item['arguments']), { item, whole, tool, call })
  }
  if (slot.type === 'reasoning') return completed(state, thoughtIn(item), change)
  const content = itemsIn(item['content'])
  const text = content.map((part) => stringOf(part['text']) || stringOf(part['refusal'])).join('')
  return completed(state, text, { ...change, refused: content.some((part) => part['type'] === 'refusal') })
}

/** Two times the whole arguments of one call. Some hosts write them anew, and some leave them out the second time. */
function agrees(left: string, right: string): boolean {
  if (left === right || left === '' || right === '') return true
  try {
    return JSON.stringify(JSON.parse(left)) === JSON.stringify(JSON.parse(right))
  } catch {
    return false
  }
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

/** The provider's own end. `told` is what the event is called; the response itself knows better. */
export function over(state: State, response: Item, told: string): Stepped {
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

/** What the whole answer holds and no event has finished. What was begun and is not in it was never said. */
function fill(state: State, output: readonly Item[]): Stepped {
  if (output.length === 0) return quiet(state)
  const deltas: Stepped[1][number][] = []
  let now = state
  output.forEach((item, index) => {
    const [id, type] = [stringOf(item['id']), typeOf(item)]
    const same = now.slots.find((slot) => id !== '' && slot.id === id && slot.type === type)
    const there = now.slots.find((slot) => slot.index === index)
    // Hosts that leave items out of the whole answer count differently in it.
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
  if (!isObject(error)) return { message: stringOf(error) || 'The provider gave an error without a word about it.' }
  const code = stringOf(error['code']) || stringOf(error['type'])
  const message = stringOf(error['message']) || 'The provider gave an error without a word about it.'
  return code === '' || code === 'error' ? { message } : { code, message }
}
