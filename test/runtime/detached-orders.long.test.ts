// Orders to detached children whose world changed meanwhile: closed or answered before an approval, waited for by a harness that has no
// subagents, started by a host, stopped in one commit; and what results say of their questions.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  type Json,
  type Request,
  type Session,
  type CompleteStore,
} from '../../src/index.ts'
import { childrenOf, eventsOf, family, gate, ofType, play, resultsIn, STORAGES, use } from './children-stage.ts'

const spawn = (prompt: string, more: Readonly<Record<string, Json>> = {}) => use('spawn_subagent', { prompt, ...more })
const idOf = (request: Request): string =>
  (JSON.parse(String(resultsIn(request)[0]?.content)) as { subagent_session_id: string }).subagent_session_id
const last = (request: Request): string => `${resultsIn(request).at(-1)?.content}`
const DETACHED = { detached: true } as const
/** The second call, about a child that is there, is asked about; the first is not. */
const policy = {
  rules: [
    { effect: 'ask', args: { id: '*' } },
    { effect: 'ask', args: { prompt: 'more' } },
  ],
} as const

describe.each(STORAGES)('an order to a detached child on %s', (storage) => {
  const orders: readonly (readonly [string, (id: string) => ReturnType<typeof use>])[] = [
    ['steer_subagent', (id) => use('steer_subagent', { id, message: 'Deeper.' })],
    ['continue_subagent', (id) => use('continue_subagent', { id, answer: 'More.' })],
    ['spawn_subagent', () => spawn('more', { task_key: 'dig' })],
    ['wait_subagent', (id) => use('wait_subagent', { id, timeout_secs: 600 })],
  ]
  it.each(orders)('B-SPAWN-60: %s says that its subagent was closed before a person said yes', async (_name, order) => {
    const roles = {
      root: [spawn('dig', { task_key: 'dig' }), (request: Request) => order(idOf(request)), last],
      dig: [async () => (await gate().opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED, approvals: { policy } })
    const session = await harness.open()
    const { pending } = await session.run('Go.')
    expect(pending).toHaveLength(1)
    const [child = ''] = await childrenOf(store, session.id)
    await harness.session(child).close()
    await session.decide({ callId: pending[0]?.callId ?? '', allow: true, by: 'ann' })
    const { calls, text } = await session.run()
    expect(calls[1]).toMatchObject({ status: 'denied' })
    expect(text).toContain(`Subagent ${child} is closed.`)
  })

  it('B-SPAWN-60: continue_subagent says that somebody else answered before a person said yes', async () => {
    const question = defineTool({ name: 'ask_user', description: 'asks', input: z.object({}), effect: 'read' })
    const roles = {
      root: [
        spawn('dig'),
        'Started.',
        (request: Request) => use('continue_subagent', { id: idOf(request), answer: 'blue' }),
        last,
      ],
      dig: [use('ask_user'), async () => (await gate().opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED, approvals: { policy }, tools: [question] })
    const session = await harness.open()
    await session.run('Go.')
    await expect.poll(async () => (await session.status()).pending.map(({ needs }) => needs)).toContain('approval')
    const { pending } = await session.status()
    const [child = ''] = await childrenOf(store, session.id)
    const of = (needs: string): string => pending.find((each) => each.needs === needs)?.callId ?? ''
    await harness.session(child).answer({ callId: of('answer'), content: 'red' })
    await session.decide({ callId: of('approval'), allow: true, by: 'ann' })
    expect((await session.run()).text).toContain(`Subagent ${child} does not wait for this answer any more.`)
  })

  it('B-SPAWN-61: a harness without subagents goes on with a parent that waits for one', async () => {
    const roles = {
      root: [spawn('dig'), (request: Request) => use('wait_subagent', { id: idOf(request), timeout_secs: 2 }), last],
      dig: [async () => (await gate().opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.send('Go.')
    await expect.poll(async () => (await store.card(session.id))?.waits ?? []).toHaveLength(1)
    await harness.close()
    const { text, calls } = await plain(roles, { store }).session(session.id).run()
    expect(text).toContain('is still running')
    expect(calls[1]).toMatchObject({ status: 'ok' })
  })

  it('B-SPAWN-61: a harness without subagents says that a subagent which a person allowed cannot be started', async () => {
    const roles = { root: [spawn('more'), last] }
    const { harness, store } = family(roles, { storage, ...DETACHED, approvals: { policy } })
    const session = await harness.open()
    const { pending } = await session.run('Go.')
    await harness.close()
    const other = plain(roles, { store, approvals: { policy } }).session(session.id)
    await other.decide({ callId: pending[0]?.callId ?? '', allow: true, by: 'ann' })
    const { text } = await other.run()
    expect(text).toContain('There is no agent "subagent"')
    expect(await childrenOf(store, session.id)).toEqual([])
    expect(ofType(await eventsOf(store, session.id), 'run.settled')).toHaveLength(1)
  })

  it('B-SPAWN-61: a harness without subagents carries out what a person allowed to be told to one', async () => {
    const roles = {
      root: [
        spawn('dig'),
        (request: Request) => use('steer_subagent', { id: idOf(request), message: 'Deeper.' }),
        last,
      ],
      dig: [async () => (await gate().opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED, approvals: { policy } })
    const session = await harness.open()
    const { pending } = await session.run('Go.')
    await harness.close()
    const other = plain(roles, { store, approvals: { policy } }).session(session.id)
    await other.decide({ callId: pending[0]?.callId ?? '', allow: true, by: 'ann' })
    expect((await other.run()).text).toContain('"status":"told"')
    const [child = ''] = await childrenOf(store, session.id)
    expect(JSON.stringify(await eventsOf(store, child))).toContain('Deeper.')
  })

  it('B-SPAWN-62: a host is refused what a model is: an agent that the list or the tier does not allow, a depth, and a parent that closes', async () => {
    const subagents = {
      lead: { description: 'l', tier: 'reasoning' },
      peer: { description: 'p', tier: 'reasoning' },
      hand: { description: 'h', tier: 'worker', limits: { depth: 1 } },
      other: { description: 'o', tier: 'worker' },
      few: { description: 'f', subagents: ['hand'] },
    } as const
    const { harness, store } = family(
      { root: ['x', 'x', 'x'], dig: ['Found it.'] },
      { storage, ...DETACHED, subagents },
    )
    const refusal = (as: string) => ({ code: 'invalid_input', detail: as })
    const lead = await harness.open({ agent: 'lead' })
    await expect(lead.spawn('peer', 'dig')).rejects.toMatchObject(refusal('SpawnTierRefused'))
    await expect(lead.spawn('peer', 'dig')).rejects.toThrow('"peer" is a reasoning agent, and a reasoning agent starts')
    await expect(lead.spawn('nobody', 'dig')).rejects.toMatchObject(refusal('UnknownSubAgent'))
    const few = await harness.open({ agent: 'few' })
    await expect(few.spawn('other', 'dig')).rejects.toMatchObject(refusal('UnknownSubAgent'))
    await expect(few.spawn('default', 'dig')).rejects.toMatchObject(refusal('UnknownSubAgent'))
    const { sessionId } = await few.spawn('hand', 'dig', { taskKey: 'dig' })
    const deep = harness.session(sessionId)
    await expect(deep.spawn('other', 'dig')).rejects.toMatchObject(refusal('SpawnDepthExceeded'))
    await few.close()
    await expect(few.spawn('hand', 'dig', { taskKey: 'dig' })).rejects.toMatchObject({ code: 'session_closed' })
    const closing = await harness.open({ agent: 'lead' })
    const stop = { type: 'user.interrupt', id: 'close', mode: 'stop', closes: true } as const
    await store.commit([{ session: closing.id, lane: 'inbox', events: [stop] }])
    await expect(closing.spawn('hand', 'dig')).rejects.toMatchObject({ code: 'session_closed' })
    expect(await store.list({ parent: few.id, limit: 9 })).toHaveLength(1)
  })

  it.each([
    ['interrupt', (session: Session) => session.interrupt()],
    ['steer', (session: Session) => session.send([{ type: 'cancel' }])],
  ] as const)(
    'B-SPAWN-63: %s stops a parent that rests and all that work below it in one commit',
    async (_name, stop) => {
      const roles = {
        root: [use('spawn_parallel_agents', { tasks: [{ prompt: 'dig' }, { prompt: 'delve' }] }), 'Started.'],
        dig: [async () => (await gate().opened, 'Found it.')],
        delve: [async () => (await gate().opened, 'Found it.')],
      }
      const { harness, store } = family(roles, { storage, ...DETACHED })
      const session = await harness.open()
      await session.run('Go.')
      await expect
        .poll(async () => (await store.list({ parent: session.id, status: 'running', limit: 9 })).length)
        .toBe(2)
      await harness.close()
      const commits: number[] = []
      const counting: CompleteStore = new Proxy(store, {
        get(from, name: keyof CompleteStore) {
          const value: unknown = from[name]
          if (typeof value !== 'function') return value
          return (...args: readonly unknown[]): unknown => {
            if (name === 'commit') commits.push((args[0] as readonly unknown[]).length)
            return value.apply(from, args)
          }
        },
      })
      const other = new Harness({
        model: play(roles),
        store: counting,
        ...DETACHED,
        subagents: true,
        worker: { drives: false },
      })
      onTestFinished(() => other.close())
      await stop(other.session(session.id))
      expect(commits).toEqual([3])
      for (const id of [session.id, ...(await childrenOf(store, session.id))])
        expect(ofType(await eventsOf(store, id), 'user.interrupt')).toMatchObject([{ mode: 'stop' }])
      const [child = ''] = await childrenOf(store, session.id)
      await expect(other.session(child).spawn('subagent', 'dig')).rejects.toMatchObject({ code: 'session_busy' })
    },
  )

  function plain(roles: Parameters<typeof play>[0], options: Partial<HarnessOptions>): Harness {
    const harness = new Harness({ model: play(roles), secrets: {}, worker: { graceMs: 200 }, ...options })
    onTestFinished(() => harness.close())
    return harness
  }
})
