// The verbs are interfaces: an object that is no harness can have them, too. Here it is a client that sends everything as JSON text,
// as one over HTTP will. What each verb does is tested elsewhere.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type RunStream,
  type Script,
  scripted,
  type Session,
  type Sessions,
} from '../../src/index.ts'

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ amount: z.number() }),
  approval: 'ask',
  execute: async ({ amount }) => `paid ${amount}`,
})
const SCRIPT: Script = [{ calls: [{ tool: 'pay', args: { amount: 5 } }] }, 'Paid.', 'Again.', 'Forked.']

describe('the verbs', () => {
  it('B-VERB-23: a client that can send only JSON has them all, and its callers see no difference', async () => {
    const harness = new Harness({ model: scripted(SCRIPT), tools: [pay] })
    const near = await tell(harness)
    await harness.close()
    const behind = new Harness({ model: scripted(SCRIPT), tools: [pay] })
    const far = await tell(clientOf(behind))
    await behind.close()
    expect(far).toEqual(near)
    expect(near).toMatchObject({ waits: 'requires_action', paid: 'Paid.', streamed: 'Again.', forked: 'Forked.' })
  })

  it('B-VERB-34, B-VERBS-9: a plain object can be a session and the sessions, and what a harness gives has only their verbs', async () => {
    const harness = new Harness({ model: scripted([]) })
    const session = await harness.open()
    const [one, all]: [Session, Sessions] = [session, harness]
    expect([plainSession('x').id, one.id]).toEqual(['x', session.id])
    expect(Object.keys(PLAIN).every((verb) => verb in all)).toBe(true)
    const known = new Set([...Object.keys(plainSession('x')), 'constructor'])
    expect(Object.getOwnPropertyNames(Object.getPrototypeOf(session)).filter((name) => !known.has(name))).toEqual([])
    await harness.close()
  })

  it('B-VERB-24: no class of a session is a public name: sessions come from the verbs', async () => {
    const names = Object.keys(await import('../../src/index.ts'))
    expect(names).toContain('Harness')
    for (const hidden of ['Session', 'Sessions', 'SessionHandle', 'Worker']) expect(names).not.toContain(hidden)
  })
})

async function nothing(): Promise<never> {
  throw new Error('It is of no use here: it only has the types of the verbs.')
}

function silent(): RunStream {
  const none = (async function* () {})()
  return Object.assign(none, { text: none, result: Promise.reject<never>(new Error('none')), orThrow: nothing })
}

/** What never has anything. */
async function* endless(): AsyncGenerator<never> {}

/** Written out, as a client may be: no class, and nothing that only a harness could have. */
function plainSession(id: string): Session {
  return {
    id,
    send: nothing,
    run: nothing,
    stream: silent,
    follow: endless,
    messages: async () => [],
    status: nothing,
    events: async () => ({ events: [], next: null }),
    result: async () => null,
    decide: nothing,
    answer: nothing,
    interrupt: nothing,
    schedule: nothing,
    unschedule: async () => false,
    rename: nothing,
    pursue: nothing,
    undo: async () => [],
    fork: async (options) => plainSession(options?.id ?? 'fork'),
    blob: async () => null,
    pin: nothing,
    compact: async () => null,
    spawn: nothing,
    close: async () => {},
  }
}

const PLAIN: Sessions = {
  open: async (options) => plainSession(options?.id ?? 'new'),
  session: plainSession,
  run: nothing,
  stream: silent,
  trigger: nothing,
  list: async () => ({ cards: [], next: null }),
  watch: endless,
  pending: async () => [],
  remove: async () => [],
  agents: async () => [],
  health: nothing,
  work: nothing,
  close: async () => {},
}

/** The same story through any object that has the session verbs. */
async function tell(sessions: Sessions): Promise<Record<string, unknown>> {
  const session = await sessions.open({ id: 's' })
  const asked = await session.run('Pay 5.')
  const state = await session.status()
  const [pending] = await sessions.pending({ where: {} })
  if (!pending) throw new Error('nothing is asked')
  await session.decide({ ...pending, allow: true, by: 'me' })
  const paid = await sessions.session('s').run()
  const types: string[] = []
  const stream = session.stream('And again.')
  for await (const event of stream) if (event.type !== 'delta') types.push(event.type)
  const streamed = await stream.orThrow()
  const fork = await session.fork({ id: 'f' })
  const forked = await fork.run('Elsewhere.')
  await fork.send('More.', { when: 'after' })
  await fork.interrupt()
  await fork.close()
  const messages = await session.messages()
  const log = await session.events({ after: 2, limit: 3 })
  const listed = (await sessions.list({ order: 'newest' })).cards
  await sessions.work({ session: 's' })
  const removed = await sessions.remove('f', { by: 'me' })
  const card = (await session.status({ include: ['card'] })).card
  const settled = await session.result({ waitMs: 0 })
  const folded = await session.status({ at: 3 })
  const steered = await session.send([{ type: 'pause', reason: 'lunch' }], { id: 'pause-1' })
  const again = await session.send([{ type: 'pause', reason: 'lunch' }], { id: 'pause-1' })
  const { ok, drives, code, store } = await sessions.health()
  return {
    card: { ...card, at: 0, created: 0 },
    settled: settled?.text,
    folded: folded.session.agent,
    steered: [steered.duplicate, again.duplicate, again.seq === steered.seq],
    health: { ok, drives, code, sessions: store?.sessions },
    agents: await sessions.agents(),
    accounts: (await sessions.session('s', { stored: true }).status({ include: ['accounts'] })).accounts,
    below: (await session.status()).pending,
    waits: asked.status,
    state: { ...state, at: 0 },
    pending: { ...pending, preview: pending.preview },
    paid: paid.text,
    streamed: streamed.text,
    forked: forked.text,
    types,
    said: messages.map(({ role }) => role),
    log: log.events.map(({ type }) => type),
    listed: listed.map((card) => card.session).toSorted(),
    removed: removed.map((removal) => removal.session),
  }
}

/** Everything is sent as JSON text and comes back as JSON text. */
function clientOf(sessions: Sessions): Sessions {
  return overWire(sessions, {
    open: async (options) => sessionClient(sessions, (await sessions.open(sent(options))).id),
    session: (id) => sessionClient(sessions, id),
    stream: (input, options) => streamClient(sessions.stream(sent(input), sent(options))),
  })
}

function sessionClient(sessions: Sessions, id: string): Session {
  const session = sessions.session(id)
  return overWire(session, {
    id,
    stream: (input, options) => streamClient(session.stream(sent(input), sent(options))),
    fork: async (options) => sessionClient(sessions, (await session.fork(sent(options))).id),
  })
}

function streamClient(stream: RunStream): RunStream {
  const result = async () => sent(await stream.result)
  return {
    get result() {
      return result()
    },
    get text() {
      return stream.text
    },
    orThrow: async () => sent(await stream.orThrow()),
    async *[Symbol.asyncIterator]() {
      for await (const event of stream) yield sent(event)
    },
  }
}

/** Sends each verb, its arguments and its answer over the wire. A verb that returns a session or a stream has its own method. */
function overWire<T extends object>(far: T, own: Partial<T>): T {
  return new Proxy(own as T, {
    get: (_, verb) => {
      if (verb in own || !(verb in far)) return Reflect.get(own, verb) as unknown
      return async (...given: readonly unknown[]) => {
        const act = Reflect.get(far, verb) as (...sent: readonly unknown[]) => Promise<unknown>
        return sent(await act.apply(far, given.map(sent)))
      }
    },
  })
}

function sent<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T)
}
