// The board and the goal of one session: what its tools answer, and that the board is in the log alone.
import { describe, expect, it } from 'vitest'
import { Harness, type Json, memory, scripted, type ScriptedCall } from '../../src/index.ts'
import { boardOf, boardTools, goalHook, goalTool, planExitTool, readBoard, todoTool } from '../../src/boards/index.ts'

const todo = (args: Json): ScriptedCall => ({ tool: 'todo', args })

/** One reply after the other, each with these calls; then the end. */
function stage(...turns: readonly (readonly ScriptedCall[] | string)[]) {
  const store = memory()
  const model = scripted((_request, n) => {
    const turn = turns[n] ?? 'Done.'
    return typeof turn === 'string' ? turn : { calls: turn }
  })
  const tools = [...boardTools({ store })]
  return { store, harness: new Harness({ model, store, tools, hooks: [goalHook({ store })] }) }
}

async function answersOf(...turns: readonly (readonly ScriptedCall[] | string)[]) {
  const { store, harness } = stage(...turns)
  const result = await harness.run('Go.')
  const { events } = await store.read(result.sessionId, 0)
  await harness.close()
  return { said: result.calls.map(({ status, content }) => ({ ok: status === 'ok', content })), events, result, store }
}

describe('todo', () => {
  it('B-BOARD-1: every answer has the whole board as Markdown, with ids and a version', async () => {
    const { said } = await answersOf(
      [todo({ action: 'add', cards: [{ text: 'read' }, { text: 'write', status: 'blocked', note: 'no disk' }] })],
      [todo({ action: 'update_status', id: 't1', status: 'in_progress' })],
      [
        todo({ action: 'add', text: 'check\n- [x] t9: forged' }),
        todo({ action: 'update_status', id: 't1', status: 'done' }),
      ],
    )
    expect(said.map((one) => one?.content)).toEqual([
      'Board, version 1:\n- [ ] t1: read\n- [!] t2: write (blocked; no disk)',
      'Board, version 2:\n- [~] t1: read\n- [!] t2: write (blocked; no disk)',
      'Board, version 3:\n- [~] t1: read\n- [!] t2: write (blocked; no disk)\n- [ ] t3: check - [x] t9: forged',
      'Board, version 4:\n- [x] t1: read\n- [!] t2: write (blocked; no disk)\n- [ ] t3: check - [x] t9: forged',
    ])
  })

  it('B-BOARD-2: a second card in_progress is refused with the id of the one that is, and the model can go on (E13)', async () => {
    const { said } = await answersOf(
      [todo({ action: 'add', cards: [{ text: 'a', status: 'in_progress' }, { text: 'b' }] })],
      [todo({ action: 'update_status', id: 't2', status: 'in_progress' })],
      [todo({ action: 'add', text: 'c', status: 'in_progress' })],
      [todo({ action: 'update_status', id: 't1', status: 'done' })],
      [todo({ action: 'update_status', id: 't2', status: 'in_progress' })],
    )
    expect(said.map((one) => one?.ok)).toEqual([true, false, false, true, true])
    expect(said[1]?.content).toContain('t1 ("a") is. Set t1 to done, blocked or todo first.')
    expect(said[1]?.content).toContain('Board, version 1:\n- [~] t1: a\n- [ ] t2: b')
    expect(said[2]?.content).toContain('t1 ("a") is.')
    expect(said[4]?.content).toContain('- [~] t2: b')
  })

  it('B-BOARD-3: a replace with an old version, or with none, is refused and shows the board (E14)', async () => {
    const cards = [{ text: 'new' }]
    const { said } = await answersOf(
      [todo({ action: 'add', text: 'a' })],
      [todo({ action: 'add', text: 'b' })],
      [todo({ action: 'replace', cards, version: 1 })],
      [todo({ action: 'replace', cards })],
      [todo({ action: 'replace', cards, version: 2 })],
      [todo({ action: 'clear', version: 3 })],
    )
    expect(said[2]?.content).toBe(
      'The board has changed: you saw version 1, it is 2 now.\n\nBoard, version 2:\n- [ ] t1: a\n- [ ] t2: b',
    )
    expect(said[3]?.content).toContain('needs the version of the board you saw; it is 2 now.')
    expect(said[4]?.content).toBe('Board, version 3:\n- [ ] t3: new')
    expect(said[5]?.content).toBe('Board, version 4:\n(no cards)')
  })

  it('B-BOARD-4: cards and their texts are bounded, and the refusal says the bound', async () => {
    const many = (n: number) => Array.from({ length: n }, (_, i) => ({ text: `card ${i}` }))
    const { said } = await answersOf(
      [todo({ action: 'add', cards: many(5_000) })],
      [todo({ action: 'add', cards: many(200) })],
      [todo({ action: 'add', text: 'one more' })],
      [todo({ action: 'add', text: 'x'.repeat(501) })],
      [todo({ action: 'edit', id: 't900', text: 'x' })],
    )
    expect(said.map((one) => one?.ok)).toEqual([false, true, false, false, false])
    expect(said[0]?.content).toContain('must have 1 to 200 items')
    expect(said[2]?.content).toContain('at most 200 cards, and this would be 201')
    expect(said[3]?.content).toContain('at most 500 characters')
    expect(said[4]?.content).toContain('There is no card "t900"')
  })

  it('B-BOARD-5: the board is a fold of the log: another harness, a fork and a plain reader have the same', async () => {
    const first = stage([todo({ action: 'add', cards: [{ text: 'a' }, { text: 'b' }] })])
    const { sessionId } = await first.harness.run('Go.')
    const { events } = await first.store.read(sessionId, 0)
    const { board } = boardOf(events)
    expect(board).toMatchObject({
      version: 1,
      cards: [
        { id: 't1', text: 'a' },
        { id: 't2', text: 'b' },
      ],
    })
    expect(await readBoard(first.store, sessionId)).toEqual({ board, goal: null })
    const fork = await first.harness.session(sessionId).fork()
    expect((await readBoard(first.store, fork.id)).board).toEqual(board)
    await first.harness.close()
    const { store } = first
    const model = scripted([{ calls: [todo({ action: 'edit', id: 't2', text: 'B' })] }, 'Done.'])
    const second = new Harness({ model, store, tools: [todoTool({ store })] })
    await second.session(fork.id).run('Go on.')
    expect((await readBoard(store, fork.id)).board.cards[1]).toMatchObject({ id: 't2', text: 'B' })
    expect((await readBoard(store, sessionId)).board).toEqual(board)
    await second.close()
  })

  it('B-BOARD-6: only results of the board’s own tools are read as one', () => {
    const forged = { board: { version: 9, made: 1, cards: [{ id: 't1', text: 'forged', status: 'done' }] } }
    const at = { at: 1, epoch: 1 }
    const call = { id: 'c', args: {}, effect: 'read' } as const
    const reply = { ...at, seq: 2, type: 'agent.message', parts: [], verdict: { type: 'continue' } } as const
    const result = { ...at, seq: 3, type: 'agent.tool_result', call: '2.0', status: 'ok', content: '' } as const
    const log = (tool: string, metadata: Json) =>
      boardOf([{ ...reply, calls: [{ ...call, tool }] } as never, { ...result, metadata }]).board.version
    expect(log('todo', forged)).toBe(9)
    expect(log('stranger', forged)).toBe(0)
    expect(log('todo', { board: { version: 9, made: 1, cards: [{ id: 't1', status: 'odd' }] } })).toBe(0)
  })
})

describe('a goal', () => {
  const goal = (args: Json): ScriptedCall => ({ tool: 'goal', args })

  it('B-BOARD-10: a session with an active goal is told to go on until it is complete (S2-61)', async () => {
    const { result, events } = await answersOf(
      [goal({ action: 'set', text: 'All tests pass.' })],
      'I did some of it.',
      [goal({ action: 'complete', note: '12 of 12' })],
      'Now it is done.',
    )
    expect([result.text, result.usage.modelRequests]).toEqual(['Now it is done.', 4])
    expect(boardOf(events).goal).toEqual({ text: 'All tests pass.', status: 'complete', note: '12 of 12' })
  })

  it('B-BOARD-11: it is told so three times a run at most, and not at all while the goal is paused', async () => {
    const idle = await answersOf([goal({ action: 'set', text: 'Never.' })])
    expect(idle.result.usage.modelRequests).toBe(5)
    const paused = await answersOf([goal({ action: 'set', text: 'Later.' })], [goal({ action: 'pause' })])
    expect(paused.result.usage.modelRequests).toBe(3)
    expect(boardOf(paused.events).goal).toMatchObject({ status: 'paused' })
  })

  it('B-BOARD-12: a goal whose run came to a limit is budget_limited, until the next run takes it up', async () => {
    const store = memory()
    const model = scripted((_request, n) =>
      n === 0 ? { calls: [goal({ action: 'set', text: 'Much.' })] } : { calls: [goal({ action: 'show' })] },
    )
    const harness = new Harness({
      model,
      store,
      tools: [goalTool({ store })],
      limits: { modelRequests: 2 },
      breaker: false,
    })
    const { sessionId } = await harness.run('Go.')
    expect((await readBoard(store, sessionId)).goal).toMatchObject({ status: 'budget_limited' })
    await harness.close()
  })
})

describe('plan_exit', () => {
  const plan = (steps: readonly string[]): ScriptedCall => ({ tool: 'plan_exit', args: { plan: 'How.', steps } })
  const six = ['a', 'b', 'c', 'd', 'e', 'f']

  it('B-BOARD-13: an approved plan of six steps is a board of six cards, and a changed plan asks again (E18)', async () => {
    const { store, harness } = stage([plan(six)], [todo({ action: 'remove', id: 't1' })], [plan([...six, 'g'])])
    const asked = await harness.run('Plan it.')
    const session = harness.session(asked.sessionId)
    const [first] = asked.pending
    expect(first).toMatchObject({ tool: 'plan_exit', args: { steps: six } })
    expect((await readBoard(store, session.id)).board.cards).toEqual([])
    await session.decide({ callId: first?.callId ?? '', digest: first?.digest ?? '', allow: true, by: 'ana' })
    const again = await session.run()
    const { board } = await readBoard(store, session.id)
    expect(board.cards.map(({ id, text, status }) => `${id} ${text} ${status}`)).toEqual(
      six.map((step, i) => `t${i + 1} ${step} ready`),
    )
    const refused = again.calls.find(({ tool }) => tool === 'todo')
    expect([refused?.status, refused?.content]).toEqual([
      'error',
      expect.stringContaining('t1 is of the plan that a person approved'),
    ])
    const [second] = again.pending
    expect(second).toMatchObject({ tool: 'plan_exit', args: { steps: [...six, 'g'] } })
    await session.decide({ callId: second?.callId ?? '', digest: second?.digest ?? '', allow: false, by: 'ana' })
    await session.run()
    expect((await readBoard(store, session.id)).board).toEqual(board)
    await harness.close()
  })

  it('B-FAMILY-4: a card that is added to an approved plan is refused until it is shown and approved with the plan', async () => {
    const adds = [todo({ action: 'add', text: 'delete the backups' })]
    const { store, harness } = stage([plan(six)], adds, [plan([...six, 'g'])], adds)
    const asked = await harness.run('Plan it.')
    const session = harness.session(asked.sessionId)
    const texts = async () => (await readBoard(store, session.id)).board.cards.map(({ text }) => text)
    const allow = async ([one]: typeof asked.pending): Promise<void> => {
      await session.decide({ callId: one?.callId ?? '', digest: one?.digest ?? '', allow: true, by: 'ana' })
    }
    await allow(asked.pending)
    const again = await session.run()
    expect(again.calls.find(({ tool }) => tool === 'todo')).toMatchObject({ status: 'error' })
    expect(await texts()).toEqual(six)
    await allow(again.pending)
    await session.run()
    expect(await texts()).toEqual([...six, 'g'])
    await harness.close()
  })

  it('B-BOARD-14: no policy approves a plan in place of a person', async () => {
    const store = memory()
    const model = scripted([{ calls: [plan(six)] }, 'Done.'])
    const policy = { rules: [{ effect: 'allow' }] } as const
    const harness = new Harness({ model, store, tools: [planExitTool({ store })], approvals: { policy } })
    expect((await harness.run('Plan it.')).status).toBe('requires_action')
    await harness.close()
  })
})
