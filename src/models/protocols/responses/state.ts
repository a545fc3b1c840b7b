// What has come of an answer so far: its items, each with what streamed of it. Values only; every change gives a new state and
// leaves the old one usable.
import type { Json } from '../../../kernel/content.ts'
import type { Delta, ModelFailure, Reply } from '../../../kernel/ports.ts'
import type { Target } from '../protocol.ts'
import type { Origin } from './marks.ts'
import { stringOf } from '../../../view/json.ts'

/** One message, reasoning item or function call. All other items are somebody else's and leave no trace. */
export type Slot = {
  readonly type: 'message' | 'reasoning' | 'call'
  readonly index: number
  readonly id: string
  /** Which part or call of the reply its deltas belong to. */
  readonly part: number
  /** What was said, thought or given as arguments. */
  readonly text: string
  readonly tool: string
  readonly call: string
  /** Nothing more can come: the provider has shown it whole. */
  readonly whole: boolean
  readonly refused: boolean
  /** The item as the provider gave it in the end. */
  readonly item: Item | null
}

export type End =
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
  /** The slot that is being written, and its text: a delta then copies no list. -1 for none. */
  readonly at: number
  readonly live: string
  /** Which section of a reasoning item is being written, or -1. */
  readonly section: number
  readonly broken: boolean
  readonly end: End | null
}

/** An object of the wire. Nothing about it is known before it is looked at. */
export type Item = { readonly [key: string]: Json }

export type Stepped = readonly [State, readonly Delta[]]

const NONE: readonly Delta[] = []
/** More items than any answer has: what goes on after that is damage, and must not cost more and more. */
const SLOTS_MAX = 1_000

export function begin({ endpoint, model, settings }: Target): State {
  const origin = { by: endpoint, model, chain: settings.chain === true }
  return { origin, response: '', slots: [], at: -1, live: '', section: -1, broken: false, end: null }
}

export function quiet(state: State): Stepped {
  return [state, NONE]
}

/** All texts in their slots. */
export function settled(state: State): readonly Slot[] {
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

/** The slot being written becomes this text, for good. What was not streamed of it is streamed now. */
export function completed(state: State, text: string, change: Partial<Slot>): Stepped {
  const slot = state.slots[state.at]
  if (slot === undefined) return quiet(state)
  // Some hosts end an item without repeating what it held.
  const whole = text === '' ? state.live : text
  const rest = whole.startsWith(state.live) ? whole.slice(state.live.length) : ''
  const slots = state.slots.with(state.at, { ...slot, ...change, text: whole })
  return [{ ...state, slots, live: whole }, rest === '' ? NONE : [deltaOf(slot, rest)]]
}

/** For every piece of a text: written out, since a spread costs more than all the rest of it. */
export function withLive(state: State, live: string, section: number): State {
  const { origin, response, slots, at, broken, end } = state
  return { origin, response, slots, at, live, section, broken, end }
}

export function deltaOf({ type, part }: Slot, text: string): Delta {
  return { kind: type === 'message' ? 'text' : type === 'call' ? 'arguments' : 'reasoning', part, text }
}
