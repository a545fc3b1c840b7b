// A session that waits for an outside answer: what it looks like meanwhile, which answers are taken, and what an interrupt clears.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Fault, type Result, scripted, type SessionHandle, type CompleteStore } from '../../src/index.ts'
import { calls, make, STORAGES, storeOf, tool, typesIn } from './scene.ts'
import { asleep } from './wake-stage.ts'

/** Nothing here executes it: the answer comes from outside. */
const desk = defineTool({ name: 'desk', description: 'asks the desk', input: z.object({ n: z.number() }) })

const model = (first: ReturnType<typeof calls>) =>
  scripted(({ messages }) => {
    const said = messages.flatMap((m) => (m.role === 'tool' && typeof m.content === 'string' ? [m.content] : []))
    return said.length > 0 ? `heard ${said.join(' | ')}` : first
  })

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'taken',
    (error: unknown) => (error instanceof Fault ? error.code : error),
  )
const callOf = (parked: Result): string => parked.pending[0]?.callId ?? ''

async function parkedIn(
  store: CompleteStore,
  first = calls('desk'),
): Promise<{ session: SessionHandle; callId: string }> {
  const harness = make(model(first), { store, tools: [desk, tool('note')] })
  const parked = await harness.run('hello')
  return { session: harness.session(parked.sessionId), callId: callOf(parked) }
}

async function answersIn(session: SessionHandle): Promise<readonly string[]> {
  const { events } = await session.events()
  return events.flatMap((event) => (event.type === 'user.custom_tool_result' ? [event.content] : []))
}

describe.each(STORAGES)('a call that somebody outside answers, on %s', (storage) => {
  it('B-WAKE-40: parks its session, which is not due, and the answer makes it due: any worker goes on (S4-12)', async () => {
    const store = storeOf(storage)
    const { session, callId } = await parkedIn(store)
    expect((await typesIn(session)).at(-1)).toBe('agent.custom_tool_use')
    expect(await store.card(session.id)).toMatchObject({ status: 'requires_action', due: null, waits: [callId] })
    const before = await typesIn(session)
    const other = make(model(calls('desk')), { store, tools: [desk, tool('note')] })
    // A look without an answer changes nothing.
    expect(await other.work({ session: session.id })).toMatchObject({ type: 'rested', waiting: 'answer' })
    expect(await other.work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 0 })
    expect(await typesIn(session)).toEqual(before)
    await store.commit([
      {
        session: session.id,
        lane: 'inbox',
        events: [{ type: 'user.custom_tool_result', id: `answer:${callId}`, call: callId, ok: true, content: 'yes' }],
      },
    ])
    expect(await other.work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 1 })
    expect(await other.session(session.id).run()).toMatchObject({ status: 'completed', text: 'heard yes' })
  })

  it('B-WAKE-41: takes no answer that is stale, for another call, or a second one (S4-13, AC-113)', async () => {
    const store = storeOf(storage)
    const gated = tool('gated', { approval: 'ask' })
    const harness = make(model(calls('desk 0')), { store, tools: [desk, gated] })
    const first = await harness.run('hello')
    const session = harness.session(first.sessionId)
    const callId = callOf(first)
    const asking = make(model(calls('gated 0')), { store, tools: [desk, gated] })
    const asked = await asking.run('hello')
    // Never asked, asked in another session, and asked for an approval.
    expect(await codeOf(session.answer({ callId: '999.0', content: 'x' }))).toBe('call_unknown')
    expect(await codeOf(session.answer({ callId: `${callId.split('.')[0]}.7`, content: 'x' }))).toBe('decision_stale')
    expect(await codeOf(session.answer({ callId, sessionId: asked.sessionId, content: 'x' }))).toBe('invalid_input')
    const wrong = asking.session(asked.sessionId).answer({ callId: callOf(asked), content: 'x' })
    expect(await codeOf(wrong)).toBe('decision_stale')
    expect(await codeOf(session.decide({ callId, allow: true, by: 'ana' }))).toBe('decision_stale')
    expect(await answersIn(session)).toEqual([])
    expect(await codeOf(session.answer({ callId, content: 'yes' }))).toBe('taken')
    expect(await codeOf(session.answer({ callId, content: 'no' }))).toBe('decision_stale')
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'heard yes' })
    expect(await codeOf(session.answer({ callId, content: 'yes' }))).toBe('decision_stale')
    expect(await answersIn(session)).toEqual(['yes'])
  })

  it('B-WAKE-42: of many answers at once, through two harnesses, one is taken and the others are refused (S4-13, AC-113)', async () => {
    const store = storeOf(storage)
    const { session, callId } = await parkedIn(store)
    const other = make(model(calls('desk')), { store, tools: [desk, tool('note')] }).session(session.id)
    const said = Array.from({ length: 12 }, (_, i) => `answer ${i}`)
    const codes = await Promise.all(
      said.map((content, i) => codeOf((i % 2 === 0 ? session : other).answer({ callId, content }))),
    )
    expect(codes.filter((code) => code === 'taken')).toHaveLength(1)
    expect(codes.filter((code) => code === 'decision_stale')).toHaveLength(11)
    const taken = said[codes.indexOf('taken')] ?? ''
    expect(await answersIn(session)).toEqual([taken])
    expect(await session.run()).toMatchObject({ status: 'completed', text: `heard ${taken}` })
  })

  it('B-WAKE-43: has one result whichever is first, an answer or an interrupt, and later ones are refused (AC-113, AC-115)', async () => {
    for (let round = 0; round < 4; round++) {
      const store = storeOf(storage)
      const { session, callId } = await parkedIn(store)
      const answer = codeOf(session.answer({ callId, content: 'yes' }))
      const stop = session.interrupt()
      await Promise.all([answer, stop])
      const end = await session.run()
      expect(['interrupted', 'completed']).toContain(end.status)
      const { events } = await session.events()
      expect(events.filter((event) => event.type === 'agent.tool_result')).toHaveLength(1)
      expect(await codeOf(session.answer({ callId, content: 'no' }))).toBe('decision_stale')
      expect(await store.card(session.id)).toMatchObject({ status: 'idle', waits: [], due: null })
    }
  })

  it('B-WAKE-44: is gone with an interrupt, and so are the wakes that were queued (S4-15, AC-115)', async () => {
    const store = storeOf(storage)
    await asleep(store, 's', [
      { due: store.now() + 60_000, key: 'later' },
      { due: store.now() + 90_000, key: 'much later' },
    ])
    const harness = make(model(calls('desk')), { store, tools: [desk] })
    const session = harness.session('s')
    const parked = await session.run('hello')
    expect(parked).toMatchObject({ status: 'requires_action' })
    expect(await store.card('s')).toMatchObject({ status: 'requires_action', wakes: 2 })
    await session.interrupt()
    expect(await session.run()).toMatchObject({ status: 'interrupted', pending: [] })
    expect(await store.card('s')).toMatchObject({ status: 'idle', wakes: 0, waits: [], due: null })
    expect(await codeOf(session.answer({ callId: callOf(parked), content: 'yes' }))).toBe('decision_stale')
    expect(await harness.work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 0 })
  })

  it('B-WAKE-45: has siblings that run meanwhile; those of a call that is asked about wait with it (S4-12, S4-14)', async () => {
    const ran: string[] = []
    const note = tool('note', { execute: ({ n }) => void ran.push(`note ${n}`) })
    const gated = tool('gated', { approval: 'ask', execute: ({ n }) => void ran.push(`gated ${n}`) })
    const tools = [desk, note, gated]
    const store = storeOf(storage)
    const open = make(model(calls('desk 0', 'note 1')), { store, tools })
    const parked = await open.run('hello')
    expect([parked.status, ran]).toEqual(['requires_action', ['note 1']])
    const asks = make(model(calls('gated 2', 'note 3', 'desk 4')), { store, tools })
    const asked = await asks.run('hello')
    expect([asked.pending.map(({ needs }) => needs), ran]).toEqual([['approval'], ['note 1']])
    const session = asks.session(asked.sessionId)
    await session.decide({ callId: callOf(asked), allow: true, by: 'ana' })
    const after = await session.run()
    expect([after.pending.map(({ needs }) => needs), ran]).toEqual([['answer'], ['note 1', 'gated 2', 'note 3']])
  })

  it('B-WAKE-46: and one that is asked about stay open however often a worker looks (AC-106)', async () => {
    const store = storeOf(storage)
    const gated = tool('gated', { approval: 'ask' })
    const harness = make(model(calls('gated')), { store, tools: [gated] })
    const session = harness.session((await harness.run('hello')).sessionId)
    const before = await typesIn(session)
    for (let i = 0; i < 3; i++) {
      expect(await session.run()).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
      expect(await harness.work({ session: session.id })).toMatchObject({ waiting: 'approval' })
    }
    expect(await typesIn(session)).toEqual(before)
  })
})
