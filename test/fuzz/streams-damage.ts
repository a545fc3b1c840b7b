// A stream with one byte dropped or one of its bits flipped: nothing throws, what cannot be read is a failure, and only a byte in what
// a call is made of can change one, or two that it mixes up. Texts may well be wrong: no stream has a checksum.
import type { ReplyCall } from '../../src/ports/model.ts'
import type { Framing } from '../../src/models/http/framing.ts'
import type { WireEvent } from '../../src/models/protocols/protocol.ts'
import { type Answer, bytesFrom, eventAt, runnable, same, type Taken } from './streams-walk.ts'
import { hold } from './target.ts'

/** What came of the damaged bytes, and from which event on the stream is as it was. */
type Resumed = { readonly state: unknown; readonly next: number; readonly answer: Answer }

/** Many kinds of damage have the same result, such as a lost or broken event: the rest of the stream is then read only once. */
export class Damage {
  readonly #taken: Taken
  #at = -1
  #seen: Resumed[] = []
  readonly #calls: readonly ReplyCall[]
  /** Calls were asked for and then taken back: by a refusal, an error, or no end at all. */
  readonly #takenBack: boolean

  constructor(taken: Taken) {
    this.#taken = taken
    const last = taken.answers.at(-1)
    this.#calls = last?.type === 'reply' ? last.calls : []
    this.#takenBack = this.#calls.length < taken.asked.length
  }

  check(offset: number): void {
    const taken = this.#taken
    const at = eventAt(taken, offset)
    if (at !== this.#at) this.#seen = []
    this.#at = at
    const bytes = Uint8Array.from(bytesFrom(taken, at))
    const within = offset - (taken.starts[at] as number)
    const dropped = new Uint8Array(bytes.length - 1)
    dropped.set(bytes.subarray(0, within))
    dropped.set(bytes.subarray(within + 1), within)
    this.#look(at, dropped, () => `without byte ${offset}`)
    const whole = bytes[within] as number
    // The lowest bit makes a neighbour of a character; the others take turns, or it would take far longer.
    for (const bit of [0, 1 + (offset % 7)]) {
      bytes[within] = whole ^ (1 << bit)
      this.#look(at, bytes, () => `with bit ${bit} of byte ${offset} flipped`)
    }
  }

  #look(at: number, bytes: Uint8Array, what: () => string): void {
    const taken = this.#taken
    const { events, next } = this.#framed(at, bytes)
    let state = taken.states[at]
    let unread: Answer | null = null
    for (const event of events) {
      if (unread === null && !isReadable(event)) unread = taken.protocol.finish(state)
      state = taken.protocol.step(state, event)[0]
    }
    const answer = this.#rest(state, next)
    if (unread !== null) {
      const ended = unread.type === 'reply' && same(answer, unread)
      hold(answer.type === 'failure' || ended, () => `${what()} an event cannot be read, and it is a reply`)
    }
    hold(answer.type === 'reply' || answer.message !== '', () => `${what()} it is a failure without a word`)
    if (answer.type === 'reply') this.#calledFor(answer.calls, { at, next, what })
  }

  /** Lines may have grown together: it goes on until the framing is where it would have been. */
  #framed(at: number, bytes: Uint8Array): { readonly events: readonly WireEvent[]; readonly next: number } {
    const taken = this.#taken
    const { framings, subject } = taken
    const [first, events] = subject.frame(framings[at] as Framing, bytes)
    if (first.line === '' && same(first, framings[at + 1])) return { events, next: at + 1 }
    const all = [...events]
    let framing = first
    for (let next = at + 1; next < framings.length; next++) {
      const [then, more] = subject.frame(framing, bytesFrom(taken, next))
      all.push(...more)
      framing = then
      if (same(framing, framings[next + 1])) return { events: all, next: next + 1 }
    }
    return { events: all, next: taken.events.length }
  }

  #rest(state: unknown, next: number): Answer {
    const { states, events, protocol, answers } = this.#taken
    if (same(state, states[next])) return answers.at(-1) as Answer
    const known = this.#seen.find((seen) => seen.next === next && same(seen.state, state))
    if (known) return known.answer
    let last = state
    for (let at = next; at < events.length; at++) last = protocol.step(last, events[at] as WireEvent)[0]
    const answer = protocol.finish(last)
    if (this.#seen.length < 4) this.#seen.push({ state, next, answer })
    return answer
  }

  /** Calls as they were may be fewer. One that could run and is not as it was must have the byte in what it is made of. */
  #calledFor(
    calls: readonly ReplyCall[],
    { at, next, what }: { readonly at: number; readonly next: number; readonly what: () => string },
  ): void {
    const left = [...this.#calls]
    const { asked } = this.#taken
    const strange = calls.filter((call) => {
      const found = left.findIndex((known) => same(known, call))
      if (found >= 0) left.splice(found, 1)
      const known = found >= 0 || (this.#takenBack && asked.includes(call.args))
      return !known && runnable(call.args) !== undefined
    })
    if (strange.length === 0) return
    const carried = this.#taken.carries.slice(at, Math.max(next, at + 1)).includes(true)
    hold(carried, () => `${what()}, in no call, this call comes out: ${JSON.stringify(strange[0])}`)
    // Damage in an id or an index makes two calls of one, or gives to one what belongs to another.
    hold(strange.length <= 2, () => `${what()} ${strange.length} calls are not as they were`)
    const count = this.#takenBack ? asked.length : this.#calls.length
    hold(calls.length <= count + 1, () => `${what()} there are ${calls.length} calls`)
  }
}

function isReadable({ data }: WireEvent): boolean {
  if (data === '' || data.trim() === '[DONE]') return true
  try {
    JSON.parse(data)
    return true
  } catch {
    return false
  }
}
