// A stream that stops at some byte, through the whole exchange: it falls silent, breaks off, or is stopped by the caller. The
// clock and the client are ours here; nothing may be left behind or still waited for.
import type { CallContext, Delta, Request } from '../../src/ports/model.ts'
import type { HostConnection } from '../../src/models/http/exchange.ts'
import type { Deadlines } from '../../src/models/http/deadlines.ts'
import type { ResponseHandler, Transport } from '../../src/models/http/transport.ts'
import { FakeClock, settled } from '../models/fake-clock.ts'
import { target } from '../models/oracle-said.ts'
import { type Answer, eventAt, same, type Taken } from './streams-walk.ts'
import { hold } from './target.ts'

const DEADLINES: Deadlines = { firstByteMs: 50, idleMs: 70, stalledMs: 210 }
const REQUEST: Request = { session: 's', seq: 1, instructions: '', tools: [], allow: 'all', boost: false, messages: [] }

/** The types that hosts and proxies send a stream under. */
const TYPES = ['text/event-stream', 'Text/Event-Stream', 'text/plain', 'application/json', '']
const SPLIT = 8

/** A client that hears nothing of the signal, as bad ones do: its end is in our hands. */
function deafClient(bytes: Uint8Array, type: string) {
  let reject: (error: Error) => void = () => {}
  const transport: Transport = (_order, sink: ResponseHandler) => {
    sink.head(200, { 'content-type': type })
    // What it is must be told from its first bytes, however few come at once.
    for (const byte of bytes.subarray(0, SPLIT)) sink.data(Uint8Array.of(byte))
    if (bytes.length > SPLIT) sink.data(bytes.subarray(SPLIT))
    return new Promise((_resolve, fail) => {
      reject = fail
    })
  }
  return { transport, breakOff: () => reject(new Error('socket hang up')) }
}

export async function checkStall(taken: Taken, offset: number): Promise<void> {
  const { recording, subject, protocol, answers, states } = taken
  const bytes = recording.bytes.subarray(0, offset)
  const before = answers[eventAt(taken, offset)] as Answer
  // The provider said its own end: whatever the connection does then is not waited for.
  const over = protocol.over(states[eventAt(taken, offset)])
  // What the provider itself said last counts for more than how the connection ended.
  const said = before.type === 'reply' || before.class !== 'network'
  for (const how of ['silent', 'broken', 'stopped'] as const) {
    const clock = new FakeClock()
    const client = deafClient(bytes, TYPES[offset % TYPES.length] as string)
    const stop = new AbortController()
    const deltas: Delta[] = []
    const order: HostConnection<unknown> = {
      protocol,
      target,
      url: 'http://host.example',
      headers: {},
      transport: client.transport,
      deadlines: DEADLINES,
    }
    const context: CallContext = {
      signal: stop.signal,
      emit: (delta) => deltas.push(delta),
      sleep: () => Promise.resolve(),
      clock,
    }
    let answer: Answer | null = null
    void subject.exchange(order, REQUEST, context).then((told) => {
      answer = told
    })
    await settled()
    hold((answer !== null) === over, () => `${how}: it was ${over ? 'not over with' : 'over before'} the stream`)
    if (how === 'silent') clock.advance(DEADLINES.idleMs)
    if (how === 'broken') client.breakOff()
    if (how === 'stopped') stop.abort()
    await settled()
    const told = answer as Answer | null
    if (told === null) throw new Error(`${how}: it is still waited for`)
    hold(over || clock.waiting === 0, () => `${how}: a timer is left behind`)
    // Whatever the client does now has no effect.
    client.breakOff()
    await settled()
    hold(clock.waiting === 0, () => `${how}: a timer is left behind by the client`)
    if (over || (how !== 'stopped' && said)) {
      hold(told.type === before.type && agree(told, before), () => `${how}: what the provider said is lost`)
    } else {
      const kind = { silent: 'timeout', broken: 'network', stopped: 'other' }[how]
      hold(
        told.type === 'failure' && told.class === kind,
        () => `${how}: it is ${JSON.stringify(told)}, and not ${kind}`,
      )
    }
  }
}

function agree(told: Answer, before: Answer): boolean {
  if (told.type === 'reply' || before.type === 'reply') return same(told, before)
  return told.class === before.class && told.message === before.message
}
