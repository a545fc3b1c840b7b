// A recorded stream taken apart once: its events, where their bytes end, and what is known before each of them. All of it is
// pure, so every case goes on from the nearest prefix instead of from the start.
import type { Json } from '../../src/kernel/content.ts'
import type { ModelFailure, Reply } from '../../src/ports/model.ts'
import type { callHost } from '../../src/models/http/exchange.ts'
import { type parseEvents, type Framing, UNFRAMED } from '../../src/models/http/framing.ts'
import type { Protocol, WireEvent } from '../../src/models/protocols/protocol.ts'
import { target } from '../models/oracle-said.ts'
import type { Recording } from '../models/oracle-streams.ts'
import { hold } from './target.ts'

/** What is looked at: the real ones, or ones that are broken on purpose. */
export type Subject = {
  readonly frame: typeof parseEvents
  readonly protocols: Readonly<Record<Recording['protocol'], Protocol<unknown>>>
  readonly exchange: typeof callHost
}

export type Answer = Reply | ModelFailure

export type Taken = {
  readonly subject: Subject
  readonly recording: Recording
  readonly protocol: Protocol<unknown>
  readonly events: readonly WireEvent[]
  /** `starts[i]` is where the bytes of event i begin; the last one is where the bytes without an event begin. */
  readonly starts: readonly number[]
  readonly framings: readonly Framing[]
  readonly states: readonly unknown[]
  /** What it would come to if the stream ended before event i. */
  readonly answers: readonly Answer[]
  /** Whether an event has something to do with a call. */
  readonly carries: readonly boolean[]
  /** The arguments of every call that was begun, whether it counts in the end or not. */
  readonly asked: readonly string[]
}

export function taken(subject: Subject, recording: Recording): Taken {
  const { bytes } = recording
  const protocol = subject.protocols[recording.protocol]
  const events: WireEvent[] = []
  const starts = [0]
  const framings = [UNFRAMED]
  let framing: Framing = UNFRAMED
  // Byte by byte, which is also the smallest way to split it.
  for (let at = 0; at < bytes.length; at++) {
    const [next, more] = subject.frame(framing, bytes.subarray(at, at + 1))
    framing = next
    if (more.length === 0) continue
    events.push(...more)
    starts.push(at + 1)
    framings.push(next)
  }
  hold(events.length === starts.length - 1, () => 'one byte ended two events')
  hold(same(events, subject.frame(UNFRAMED, bytes)[1]), () => 'byte by byte it has other events than as a whole')
  const states = [protocol.begin(target)]
  const asked = new Map<number, string>()
  const argued = events.map((event) => {
    const [state, deltas] = protocol.step(states.at(-1), event)
    states.push(state)
    const pieces = deltas.filter(({ kind }) => kind === 'arguments')
    for (const { part, text } of pieces) asked.set(part, (asked.get(part) ?? '') + text)
    return pieces.length > 0
  })
  const answers = states.map((state) => protocol.finish(state))
  const words = wordsOf(answers)
  const carries = events.map(({ data }, at) => argued[at] === true || words.some((word) => data.includes(word)))
  return {
    subject,
    recording,
    protocol,
    events,
    starts,
    framings,
    states,
    answers,
    carries,
    asked: [...asked.values()],
  }
}

/** What a call is known by on the wire. */
function wordsOf(answers: readonly Answer[]): readonly string[] {
  const last = answers.at(-1)
  const calls = last?.type === 'reply' ? last.calls : []
  return calls.flatMap(({ id, tool }) => [id, tool]).filter((word) => word !== '')
}

/** Which event's bytes hold this offset. */
export function eventAt({ starts }: Taken, offset: number): number {
  let [low, high] = [0, starts.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((starts[middle] as number) <= offset) low = middle
    else high = middle - 1
  }
  return low
}

export function bytesFrom({ recording, starts }: Taken, event: number): Uint8Array {
  return recording.bytes.subarray(starts[event], starts[event + 1] ?? recording.bytes.length)
}

/** Values without functions, as states and answers are. What two prefixes share is the same object, so this ends early. */
export function same(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && same((left as Fields)[key], (right as Fields)[key]))
}

type Fields = Readonly<Record<string, unknown>>

/** The arguments of a call that could run; undefined if it could not. */
export function runnable(args: string): Json | undefined {
  if (args.trim() === '') return {}
  try {
    const value = JSON.parse(args) as Json
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** For the message of a finding. */
export function told(answer: Answer): string {
  return JSON.stringify(answer).slice(0, 300)
}
