// Two programs on one store: each drives the sessions that it opened, and leaves those of the other as they are.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  scripted,
  type Script,
  type CompleteStore,
} from '../../src/index.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import { ownerWrite } from '../../src/runtime/commit/owner-write.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { lookAt, takeDueSessions } from '../../src/worker.ts'

const NAMELESS: Script = [{ text: 'done by the wrong program' }]

function pay(ran: string[] = []) {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({}),
    effect: 'once',
    approval: 'ask',
    execute: () => {
      ran.push('pay')
      return 'paid'
    },
  })
}

function opened(store: CompleteStore, script: Script, options: Partial<HarnessOptions> = {}) {
  const harness = new Harness({ model: scripted(script), store, ...options })
  onTestFinished(() => harness.close())
  return harness
}

async function logOf(store: CompleteStore, session: string): Promise<readonly string[]> {
  return (await store.read(session, 0)).events.map(({ type }) => type)
}

/** A session of the program `billing` that waits for a yes to `pay`, and then has it. */
async function allowed(store: CompleteStore, options: Partial<HarnessOptions> = {}): Promise<string> {
  const own = new Harness({
    model: scripted([{ calls: [{ tool: 'pay', args: {} }] }]),
    tools: [pay()],
    store,
    ...options,
  })
  const { sessionId, pending } = await own.run('pay it')
  await own.close()
  const records = new Harness({ model: scripted([]), store, worker: { drives: false } })
  const [call] = pending
  await records
    .session(sessionId)
    .decide({ callId: call?.callId ?? '', digest: call?.digest ?? '', allow: true, by: 'ana' })
  await records.close()
  return sessionId
}

describe('programs on one store', () => {
  it('B-DRIVES-1: a session names the program that opened it, also on its card, and its children have the same', async () => {
    const store = memory()
    const own = opened(
      store,
      [{ calls: [{ tool: 'subagent', args: { task: 'look' } }] }, { text: 'seen' }, { text: 'done' }],
      {
        program: 'billing',
        subagents: true,
      },
    )
    const { sessionId } = await own.run('go')
    const cards = (await own.list({ order: 'id', limit: 500 })).cards
    expect(cards.map(({ program }) => program)).toEqual(['billing', 'billing'])
    expect((await store.read(sessionId, 0, 1)).events[0]).toMatchObject({ type: 'session.created', program: 'billing' })
    const plain = opened(store, [{ text: 'hi' }])
    const { sessionId: other } = await plain.run('go')
    expect((await store.card(other))?.program).toBe('unnamed')
  })

  it.each([
    ['another name', { program: 'other' }],
    ['no name', {}],
    ['no name, and no tool', { tools: [] }],
  ])('B-DRIVES-2: a harness of %s drives no session of the program billing, by whatever verb', async (_, other) => {
    const store = memory()
    const id = await allowed(store, { program: 'billing' })
    const before = await logOf(store, id)
    const ran: string[] = []
    const wrong = opened(store, NAMELESS, { tools: [pay(ran)], ...other })
    expect(await wrong.work({ session: id })).toMatchObject({
      type: 'elsewhere',
      why: expect.stringContaining('"billing"') as string,
    })
    expect(await lookAt(wrong, id, false)).toMatchObject({ seen: 'failed', looked: { type: 'elsewhere' } })
    await wrong.work({ idleMs: 300 })
    await expect(wrong.session(id).run()).rejects.toMatchObject({ code: 'session_elsewhere' })
    for (const claim of await takeDueSessions(wrong, { limit: 5 })) await lookAt(wrong, claim[0], false, claim[1])
    expect(await logOf(store, id)).toEqual(before)
    expect(ran).toEqual([])
    expect((await store.card(id))?.trouble).toBeUndefined()
  })

  it('B-DRIVES-3: the next version of a program drives its sessions, whatever became of its tools', async () => {
    const store = memory()
    const id = await allowed(store, { program: 'billing' })
    const next = opened(store, [{ text: 'it is gone' }], { program: ['invoices', 'billing'] })
    const result = await next.session(id).run()
    expect(result.text).toBe('it is gone')
    expect(result.calls[0]?.content).toContain('ToolChanged')
  })

  it('B-DRIVES-4: of programs without a name, one that lacks a tool of the open run leaves it; one that has them all goes on', async () => {
    const store = memory()
    const id = await allowed(store)
    const before = await logOf(store, id)
    const wrong = opened(store, NAMELESS)
    await wrong.work({ idleMs: 300 })
    await expect(wrong.session(id).run()).rejects.toThrow('Here is no tool "pay", which its run has.')
    expect(await logOf(store, id)).toEqual(before)
    const ran: string[] = []
    const right = opened(store, [{ text: 'paid' }], { tools: [pay(ran)] })
    await right.work({ idleMs: 100 })
    expect(ran).toEqual(['pay'])
    expect((await store.card(id))?.outcome).toBe('completed')
  })

  it('B-DRIVES-4: a host that names the unnamed program on purpose may drop a tool', async () => {
    const store = memory()
    const id = await allowed(store)
    const next = opened(store, [{ text: 'without it' }], { program: ['billing', 'unnamed'] })
    expect((await next.session(id).run()).text).toBe('without it')
  })

  it('B-DRIVES-5: what is sent to a session of another program is recorded, and the receipt says who goes on', async () => {
    const store = memory()
    const own = opened(store, [{ text: 'one' }, { text: 'two' }], { program: 'billing' })
    const { sessionId: id } = await own.run('hello')
    const other = opened(store, NAMELESS)
    const receipt = await other.session(id).send('and now?')
    expect(receipt.elsewhere).toBe('It waits for a worker of agent "default" of the program "billing".')
    await expect(other.session(id).compact()).rejects.toMatchObject({ code: 'session_elsewhere' })
    await expect(other.session(id).undo()).rejects.toMatchObject({ code: 'session_elsewhere' })
    await expect(other.session(id).fork()).rejects.toMatchObject({ code: 'session_elsewhere' })
    await expect(other.session(id).close()).rejects.toMatchObject({ code: 'session_elsewhere' })
    expect((await own.session(id).run()).text).toBe('two')
    expect((await own.session(id).send('thanks')).elsewhere).toBeUndefined()
  })

  it('B-DRIVES-6: a fork with an agent of this program, and an import here, are sessions of this program', async () => {
    const store = memory()
    const own = opened(store, [{ text: 'one' }], { program: 'billing' })
    const { sessionId: id } = await own.run('hello')
    const other = opened(store, [{ text: 'here' }, { text: 'there' }], { program: 'other' })
    const fork = await other.session(id).fork({ agent: 'default' })
    expect((await fork.run('go on')).text).toBe('here')
    const copy = await exportSession(store, id)
    const card = await importSession(store, copy, { id: 'copy', program: 'other' })
    expect(card.program).toBe('other')
    expect((await other.session('copy').run('go on')).text).toBe('there')
    expect((await importSession(store, copy, { id: 'plain' })).program).toBe('unnamed')
  })

  it('B-DRIVES-7: a session of another kind of planner is left alone', async () => {
    const store = memory()
    const { node, graph } = withState({ said: last('') })
    const report = graph({
      name: 'report',
      nodes: { say: node({ run: () => ({ said: 'by the graph' }), effect: 'read' }) },
      edges: [
        [START, 'say'],
        ['say', END],
      ],
    })
    const own = new Harness({
      model: scripted([]),
      store,
      program: 'billing',
      graphs: [report],
      worker: { drives: false },
    })
    onTestFinished(() => own.close())
    const { id } = await own.open({ agent: 'report' })
    await own.session(id).send({})
    const before = await logOf(store, id)
    const next = opened(store, NAMELESS, { program: 'billing', subagents: { report: { description: 'Writes.' } } })
    await next.work({ idleMs: 200 })
    await expect(next.session(id).run()).rejects.toThrow('Here that agent is of another kind.')
    expect(await logOf(store, id)).toEqual(before)
  })

  it('B-DRIVES-11: a log of an older version is driven by programs without a name, and by one with a name that has the tools of its last run', async () => {
    const store = memory()
    const created = { type: 'session.created', agent: 'default', planner: 'model' } as const
    for (const id of ['old', 'new'])
      await store.commit([ownerWrite(id, EMPTY, [created], { now: store.now(), epoch: 0 })])
    const unnamed = opened(store, [{ text: 'one' }], { tools: [pay()] })
    expect((await unnamed.session('old').run('hello')).text).toBe('one')
    const other = opened(store, NAMELESS, { program: 'other' })
    await expect(other.session('old').run('more')).rejects.toThrow('Here is no tool "pay", which its run has.')
    await expect(other.session('new').run('hello')).rejects.toThrow('Nothing shows that it was opened by this program.')
    const billing = opened(store, [{ text: 'two' }], { program: 'billing', tools: [pay()], plan: true })
    expect((await billing.session('old').run()).text).toBe('two')
  })

  it.each([[['']], [['a', '']], [[]], ['no spaces here'], ['x'.repeat(65)]])(
    'B-DRIVES-8: the name %j is refused with what a name is',
    (program) => {
      expect(() => new Harness({ model: scripted([]), program })).toThrow(/"program" of new Harness/)
    },
  )
})
