// Every byte of every recorded stream: cut there, split there, without it, and with a bit of it flipped. It is a list and not
// a lottery: with as many runs as there are bytes all of them are looked at, with fewer one in so many.
import type { ModelFailure, Reply } from '../../src/ports/model.ts'
import { callHost } from '../../src/models/http/exchange.ts'
import { parseEvents } from '../../src/models/http/framing.ts'
import type { Protocol } from '../../src/models/protocols/protocol.ts'
import { protocols } from '../models/oracle-said.ts'
import { committedStreams, type Recording, sharedStreams } from '../models/oracle-streams.ts'
import { checkCut } from './streams-cut.ts'
import { Damage } from './streams-damage.ts'
import { checkStall } from './streams-stall.ts'
import { type Subject, taken, type Taken, told } from './streams-walk.ts'
import { type Found, hold, type Order, type Outcome, type Target } from './target.ts'

const STREAMS = [...committedStreams, ...sharedStreams]
const OFFSETS = STREAMS.reduce((sum, { bytes }) => sum + bytes.length, 0)
/** Cases that also go through the whole exchange. */
const STALL_EVERY = 97

const real: Subject = { frame: parseEvents, protocols, exchange: callHost }

type Case = { readonly recording: Recording; readonly offset: number }

async function walk(subject: Subject, { runs, seed, path }: Order): Promise<Outcome> {
  const rejected: unknown[] = []
  const note = (reason: unknown): void => {
    rejected.push(reason)
  }
  process.on('unhandledRejection', note)
  let cases = 0
  let stream: Taken | null = null
  let damage: Damage | null = null
  try {
    for (const one of path === undefined ? chosen(runs, seed) : [named(path)]) {
      const { recording, offset } = one
      cases += 1
      try {
        if (stream?.recording !== recording || damage === null) {
          stream = taken(subject, recording)
          damage = new Damage(stream)
        }
        checkCut(stream, offset)
        damage.check(offset)
        if (path !== undefined || cases % STALL_EVERY === 1) await checkStall(stream, offset)
        hold(rejected.length === 0, () => `a rejection was left to itself: ${String(rejected[0])}`)
      } catch (error) {
        return { cases, found: foundAt(one, seed, error) }
      }
    }
    return { cases, found: null }
  } finally {
    process.off('unhandledRejection', note)
  }
}

/** Evenly spread; the seed moves them, so that other runs look at other bytes. */
function* chosen(runs: number, seed: number): Generator<Case> {
  const cases = Math.min(runs, OFFSETS)
  const phase = (seed % 1_000) / 1_000
  let stream = 0
  let before = 0
  for (let at = 0; at < cases; at++) {
    const offset = Math.floor(((at + (runs < OFFSETS ? phase : 0)) * OFFSETS) / cases)
    for (; offset - before >= (STREAMS[stream] as Recording).bytes.length; stream++) {
      before += (STREAMS[stream] as Recording).bytes.length
    }
    yield { recording: STREAMS[stream] as Recording, offset: offset - before }
  }
}

function named(path: string): Case {
  const at = path.lastIndexOf(':')
  const recording = STREAMS.find(({ name }) => name === path.slice(0, at))
  const offset = Number(path.slice(at + 1))
  if (!recording || !(offset < recording.bytes.length)) throw new Error(`--path ${path} is no byte of a recording`)
  return { recording, offset }
}

function foundAt({ recording, offset }: Case, seed: number, error: unknown): Found {
  const path = `${recording.name}:${offset}`
  const counterexample = `${recording.name} at byte ${offset} of ${recording.bytes.length}`
  return { seed, path, counterexample, error: error instanceof Error ? error.message : String(error) }
}

/** The same protocols, each with a part that is broken. */
function broken(change: (protocol: Protocol<unknown>) => Partial<Protocol<unknown>>): Subject {
  const { messages, responses, chat } = protocols
  const changed = (protocol: Protocol<unknown>): Protocol<unknown> => ({ ...protocol, ...change(protocol) })
  return { ...real, protocols: { messages: changed(messages), responses: changed(responses), chat: changed(chat) } }
}

function madeUp({ partial = '' }: ModelFailure): Reply {
  return { type: 'reply', parts: [{ type: 'text', text: partial }], calls: [], finish: 'stop', usage: null }
}

const planted: Readonly<Record<string, Subject>> = {
  'a stream that broke off is taken for whole': broken((protocol) => ({
    finish: (state) => {
      const answer = protocol.finish(state)
      return answer.type === 'failure' && answer.class === 'network' ? madeUp(answer) : answer
    },
  })),
  'an event that cannot be read is passed over': broken((protocol) => ({
    step: (state, event) => {
      try {
        JSON.parse(event.data)
      } catch {
        return [state, []]
      }
      return protocol.step(state, event)
    },
  })),
  'a step throws at what is no JSON': broken((protocol) => ({
    step: (state, event) => {
      if (event.data !== '[DONE]') JSON.parse(event.data)
      return protocol.step(state, event)
    },
  })),
  'a broken character is taken for a call': broken((protocol) => ({
    finish: (state) => {
      const answer = protocol.finish(state)
      if (answer.type === 'failure' || !told(answer).includes('\ufffd')) return answer
      return { ...answer, calls: [...answer.calls, { id: '', tool: 'wipe', args: '{}' }] }
    },
  })),
  'the end of a chunk ends a line': {
    ...real,
    frame: (state, chunk) => {
      const [next, events] = parseEvents(state, chunk)
      return chunk.length < 2 ? [next, events] : [{ ...next, line: '' }, events]
    },
  },
  'a silent stream is waited for': {
    ...real,
    exchange: (order, request, context) =>
      callHost({ ...order, deadlines: { firstByteMs: 1e6, idleMs: 1e6, stalledMs: 1e6 } }, request, context),
  },
}

export const streams: Target = {
  name: 'streams',
  open: () => ({ walk: (order) => walk(real, order) }),
  planted: Object.entries(planted).map(([name, subject]) => ({
    name,
    open: () => ({ walk: (order) => walk(subject, order) }),
  })),
}
