// Verbs that are repeated, as a client does that lost the answer: the same id has the same answer, and nothing happens twice. Also forks
// that go on with another agent or another model.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  memory,
  scripted,
  type Session,
} from '../../src/index.ts'
import type { CompleteStore } from '../../src/kernel/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { makeFile, open as openFile } from '../stores/folder.ts'
import { until } from '../until.ts'
import { childrenOf, endsOf, family, gate, STORAGES, storeOf, tool } from './children-stage.ts'

function harnessWith(options: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: scripted(() => 'Yes.'), worker: { graceMs: 50 }, ...options })
  onTestFinished(() => harness.close())
  return harness
}

async function typesOf(session: Session): Promise<readonly Event['type'][]> {
  return (await session.events()).events.map(({ type }) => type)
}

/** As another process would: a harness of its own on the same file. */
function twice(options: Partial<HarnessOptions> = {}): { readonly first: Harness; readonly second: Harness } {
  const file = makeFile()
  return {
    first: harnessWith({ ...options, store: openFile(file) }),
    second: harnessWith({ ...options, store: openFile(file) }),
  }
}

describe('an interrupt with an id', () => {
  it('B-VERB-44: is answered like the first after a restart, and stops no run that began since', async () => {
    const { opened, open } = gate()
    const slow = tool('slow', { execute: () => opened.then(() => 'slow') })
    const model = scripted((_, taken) =>
      taken === 0 ? { stall: true } : taken === 1 ? { calls: [{ tool: 'slow' }] } : 'Done.',
    )
    const file = makeFile()
    const first = harnessWith({ model, tools: [slow], store: openFile(file) })
    const session = await first.open({ id: 's' })
    const running = session.run('One.')
    await until(async () => expect(await typesOf(session)).toContain('model.started'))
    const receipt = await session.interrupt('stop', { id: 'stop-1' })
    expect(receipt.duplicate).toBe(false)
    expect((await running).status).toBe('interrupted')
    const later = session.run('Two.')
    await until(async () => expect(await typesOf(session)).toContain('agent.tool_use'))
    const second = harnessWith({ model, tools: [slow], store: openFile(file), worker: { drives: false } })
    for (const again of [session, second.session('s')])
      expect(await again.interrupt('stop', { id: 'stop-1' })).toEqual({ ...receipt, duplicate: true })
    open()
    expect((await later).status).toBe('completed')
    expect((await typesOf(session)).filter((type) => type === 'user.interrupt')).toHaveLength(1)
  })

  it('B-VERB-51: has who did it in the log, as a steering and a close have', async () => {
    const harness = harnessWith()
    const session = await harness.open()
    await session.send([{ type: 'pause' }, { type: 'resume' }], { by: 'ana' })
    await session.interrupt('stop', { id: 'a', by: 'ana' })
    await expect(session.interrupt('stop', { id: 'a', by: 'bob' })).rejects.toMatchObject({ code: 'id_reused' })
    await session.interrupt('pause')
    for (const by of ['x'.repeat(1_025), 7 as never])
      for (const said of [() => session.interrupt('stop', { by }), () => session.send('Hello.', { by })])
        await expect(said()).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(session.close({ by: 7 as never })).rejects.toMatchObject({ code: 'invalid_config' })
    await session.close({ by: 'bob' })
    const { events } = await session.events()
    const stops = events.filter((event) => event.type === 'user.interrupt')
    expect(stops.map(({ mode, by }) => [mode, by])).toEqual([
      ['pause', 'ana'],
      ['resume', 'ana'],
      ['stop', 'ana'],
      ['pause', undefined],
      ['stop', 'bob'],
    ])
  })

  it('B-VERB-44: is refused under an id that was used for something else, and with one that is no id', async () => {
    const harness = harnessWith()
    const session = await harness.open()
    await session.interrupt('stop', { id: 'a' })
    await session.send('Hello.', { id: 'b' })
    const before = await typesOf(session)
    await expect(session.interrupt('pause', { id: 'a' })).rejects.toMatchObject({ code: 'id_reused' })
    await expect(session.interrupt('stop', { id: 'b' })).rejects.toMatchObject({ code: 'id_reused' })
    await expect(session.send('Stop.', { id: 'a' })).rejects.toMatchObject({ code: 'id_reused' })
    for (const id of ['', 'terret:parent:stop:1', 'x'.repeat(513), 7, '\uD800'])
      await expect(session.interrupt('stop', { id: id as string })).rejects.toMatchObject({
        code: typeof id === 'number' ? 'invalid_config' : 'invalid_input',
      })
    await expect(session.interrupt('stop', { ids: 'a' } as never)).rejects.toThrow('did you mean "id"')
    expect((await typesOf(session)).filter((type) => type === 'user.interrupt')).toHaveLength(
      before.filter((type) => type === 'user.interrupt').length,
    )
  })

  it.each(STORAGES)(
    'B-VERB-44: stops no child that began since, and the same id below is another interrupt, on %s',
    async (storage) => {
      const { opened, open } = gate()
      const slow = tool('slow', { execute: () => opened.then(() => 'slow') })
      const { harness, store } = family(
        {
          root: ['Ready.'],
          old: [{ stall: true }],
          young: [{ calls: [{ tool: 'slow' }] }, 'Found.'],
        },
        { storage, tools: [slow], subagents: { worker: { description: 'works' } }, detached: true },
      )
      const session = await harness.open({ id: 's' })
      const old = await session.spawn('worker', 'old')
      await until(async () => expect(await typesOf(harness.session(old.sessionId))).toContain('model.started'))
      const receipt = await session.interrupt('stop', { id: 'x' })
      await until(async () => expect(await endsOf(store, old.sessionId)).toEqual(['interrupted']))
      const young = await session.spawn('worker', 'young')
      await until(async () => expect(await typesOf(harness.session(young.sessionId))).toContain('agent.tool_use'))
      expect(await session.interrupt('stop', { id: 'x' })).toEqual({ ...receipt, duplicate: true })
      expect(await typesOf(harness.session(young.sessionId))).not.toContain('user.interrupt')
      await expect(session.interrupt('pause', { id: 'x' })).rejects.toMatchObject({ code: 'id_reused' })
      const own = await harness.session(young.sessionId).interrupt('stop', { id: 'x' })
      expect(own.duplicate).toBe(false)
      await until(async () => expect(await endsOf(store, young.sessionId)).toEqual(['interrupted']))
      open()
      expect(await childrenOf(store, 's')).toHaveLength(2)
    },
  )
})

describe('steering with an id', () => {
  it('B-VERB-45: says nothing twice, and has the same receipt, also in another process', async () => {
    const { first, second } = twice({ worker: { drives: false } })
    const session = await first.open({ id: 's' })
    const commands = [
      { type: 'pause', reason: 'lunch' },
      { type: 'message', input: 'Roses.', when: 'after' },
      { type: 'resume' },
    ] as const
    const receipt = await session.send(commands, { id: 'batch' })
    expect(receipt).toMatchObject({ seq: 2, duplicate: false })
    for (const again of [session, second.session('s')])
      expect(await again.send(commands, { id: 'batch' })).toEqual({ ...receipt, duplicate: true })
    const all = ['session.created', 'user.interrupt', 'user.message', 'user.interrupt']
    expect(await typesOf(session)).toEqual(all)
    const others = [
      commands.slice(0, 1),
      commands.slice(0, 2),
      [...commands, { type: 'resume' } as const],
      [commands[1]],
    ]
    for (const other of [...others, [...commands].reverse()])
      await expect(session.send(other, { id: 'batch' })).rejects.toMatchObject({ code: 'id_reused' })
    await expect(session.send([{ type: 'resume' }], { id: 'terret:x' })).rejects.toMatchObject({
      code: 'invalid_input',
    })
    expect(await typesOf(session)).toEqual(all)
  })

  it('B-VERB-45: a message is the same as one that was sent with that id, and a cancel the same as an interrupt', async () => {
    const session = await harnessWith({ worker: { drives: false } }).open()
    const sent = await session.send('Roses.', { id: 'a' })
    expect(await session.send([{ type: 'message', input: 'Roses.' }], { id: 'a' })).toEqual({
      ...sent,
      duplicate: true,
    })
    const stopped = await session.interrupt('stop', { id: 'b' })
    expect(await session.send([{ type: 'pause' }, { type: 'cancel' }], { id: 'b' })).toEqual({
      ...stopped,
      duplicate: true,
    })
  })

  it('B-VERB-45: is known also where too many messages wait', async () => {
    const session = await harnessWith({ worker: { drives: false } }).open()
    const commands = [{ type: 'message', input: 'First.', when: 'after' }] as const
    const receipt = await session.send(commands, { id: 'first' })
    const more = Array.from({ length: 99 }, (_, n) => ({ type: 'message', input: `${n}`, when: 'after' }) as const)
    let full = false
    while (!full)
      full = await session.send(more).then(
        () => false,
        ({ code }: { code: string }) => code === 'too_many',
      )
    await expect(
      session.send([{ type: 'message', input: 'New.' }], { id: 'new' }).then(() => session.send(more)),
    ).rejects.toMatchObject({ code: 'too_many' })
    expect(await session.send(commands, { id: 'first' })).toMatchObject({ seq: receipt.seq, duplicate: true })
  })
})

describe('a session that is opened again', () => {
  it('B-VERB-46: is the same one, in another process too; of several at once one makes it', async () => {
    const { first, second } = twice({ approvals: { environment: 'test' } })
    const options = {
      id: 'order-7',
      labels: { tenant: 'acme' },
      metadata: { user: 7, tags: ['a'] },
      attachments: [{ type: 'file', name: 'plan.txt', media: 'text/plain', data: Buffer.from('plan') }],
    } as const
    const all = await Promise.all([first, second, first, second].map((harness) => harness.open(options)))
    expect(new Set(all.map(({ id }) => id))).toEqual(new Set(['order-7']))
    await all[0]?.run('Go.', { id: 'go' })
    const before = await typesOf(first.session('order-7'))
    expect((await second.open(options)).id).toBe('order-7')
    expect(await typesOf(first.session('order-7'))).toEqual(before)
    const others = [
      { id: 'order-7' },
      { ...options, labels: { tenant: 'other' } },
      { ...options, metadata: { user: 8, tags: ['a'] } },
      { ...options, folder: '/tmp' },
      { ...options, attachments: [] },
      { ...options, environment: 'live' },
    ]
    for (const other of others) await expect(first.open(other)).rejects.toMatchObject({ code: 'id_reused' })
    expect((await first.open({ id: 'order-7', reuse: true })).id).toBe('order-7')
    expect(await typesOf(first.session('order-7'))).toEqual(before)
  })
})

describe('a fork that is made again', () => {
  it('B-VERB-47: is the same fork, however far the session went on, in another process too', async () => {
    const { first, second } = twice()
    const session = await first.open({ id: 's' })
    await session.run('One.')
    const fork = await session.fork({ id: 'f' })
    const early = await session.fork({ id: 'early', at: 3 })
    const before = await fork.events()
    await session.run('Two.')
    await fork.run('Elsewhere.')
    const grown = (await fork.events()).events.length
    for (const harness of [first, second]) {
      expect((await harness.session('s').fork({ id: 'f' })).id).toBe('f')
      expect((await harness.session('s').fork({ id: 'early', at: 3 })).id).toBe('early')
    }
    expect((await fork.events()).events).toHaveLength(grown)
    expect((await fork.events()).events.slice(0, before.events.length)).toEqual(before.events)
    expect(await typesOf(early)).toEqual(['session.created'])
    await first.open({ id: 'plain' })
    const others = [{ id: 'f', at: 3 }, { id: 'early' }, { id: 'early', at: 4 }, { id: 'f', folder: '/tmp' }]
    for (const other of [
      ...others,
      { id: 'f', model: 'x:y' },
      { id: 'f', agent: 'default' },
      { id: 'plain' },
      { id: 's' },
    ])
      await expect(session.fork(other)).rejects.toMatchObject({ code: 'id_reused' })
    await expect(fork.fork({ id: 'f' })).rejects.toMatchObject({ code: 'id_reused' })
    await expect(first.open({ id: 'f' })).rejects.toMatchObject({ code: 'id_reused' })
  })

  it('B-VERB-47: of several at once one makes it', async () => {
    const { first, second } = twice()
    const session = await first.open({ id: 's' })
    await session.run('One.')
    const all = [first, second, first, second].map((harness) => harness.session('s').fork({ id: 'f' }))
    expect((await Promise.all(all)).map(({ id }) => id)).toEqual(['f', 'f', 'f', 'f'])
    expect(await typesOf(first.session('f'))).toEqual(['session.created'])
  })
})

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ amount: z.number() }),
  approval: 'ask',
  execute: ({ amount }) => `paid ${amount}`,
})

/** Says which model it is and whose instructions it reads. */
function named(name: string, calls = false) {
  return scripted((request) => {
    const asks = calls && request.messages.at(-1)?.role === 'user'
    return asks ? { calls: [{ tool: 'pay', args: { amount: 5 } }] } : `${name}: ${request.instructions.slice(0, 20)}`
  }, name)
}

function several(store: CompleteStore): Harness {
  const { graph, node } = withState({ draft: last('') })
  const draft = node({ effect: 'read', reads: () => ({}), run: async () => ({ draft: 'Done.' }) })
  const edges = [
    [START, 'draft'],
    ['draft', END],
  ] as const
  return harnessWith({
    store,
    model: named('main', true),
    instructions: 'I am main.',
    tools: [pay],
    models: { named: { other: named('other'), third: named('third') } },
    graphs: [graph({ name: 'flow', nodes: { draft }, edges })],
    subagents: {
      payer: {
        description: 'pays',
        instructions: 'I pay.',
        model: named('payer'),
        tools: [pay],
        limits: { toolCalls: 2 },
      },
      talker: { description: 'talks', instructions: 'I talk.', model: named('talker'), tools: [] },
    },
  })
}

describe('a fork with another agent', () => {
  it.each(STORAGES)(
    'B-VERB-48: goes on with its model, instructions and tools; an open call is asked about again, on %s',
    async (storage) => {
      const store = storeOf(storage)
      const harness = several(store)
      const session = await harness.open({ id: 's' })
      expect((await session.run('Pay.')).status).toBe('requires_action')
      const fork = await session.fork({ agent: 'payer' })
      expect(await fork.run()).toMatchObject({ status: 'requires_action' })
      const [asked] = (await fork.status()).pending
      expect(asked).toMatchObject({ tool: 'pay', agent: 'payer' })
      if (!asked) throw new Error('nothing is asked')
      await fork.decide({ ...asked, allow: true, by: 'ana' })
      expect(await fork.run()).toMatchObject({ status: 'completed', text: 'payer: I pay.' })
      const started = (await fork.events()).events.find(({ type }) => type === 'run.reviewed')
      expect(started).toMatchObject({ limits: { toolCalls: 2 } })
      expect((await session.status()).pending).toHaveLength(1)
      const talks = await session.fork({ agent: 'talker' })
      const answered = await talks.run()
      expect(answered).toMatchObject({ status: 'completed', text: 'talker: I talk.' })
      expect(answered.calls).toMatchObject([{ tool: 'pay', status: 'error' }])
    },
  )

  it('B-VERB-48: is refused where no language model drives both, and where there is no such agent', async () => {
    const harness = several(memory())
    const session = await harness.open()
    await session.run('Pay.')
    const flow = await harness.open({ agent: 'flow' })
    await flow.run('{}')
    await expect(session.fork({ agent: 'flow' })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(flow.fork({ agent: 'payer' })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(flow.fork({ model: 'other' })).rejects.toMatchObject({ code: 'invalid_config' })
    expect((await flow.fork({ agent: 'flow' })).id).not.toBe(flow.id)
    await expect(session.fork({ agent: 'nobody' })).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(session.fork({ agent: '' })).rejects.toMatchObject({ code: 'invalid_config' })
  })
})

describe('a fork with another model', () => {
  it('B-VERB-49: asks it in all its runs, in another process too, unless a run chooses', async () => {
    const file = makeFile()
    const harness = several(openFile(file))
    const session = await harness.open({ id: 's' })
    await session.run('Pay.')
    await session.interrupt()
    await session.run()
    const fork = await session.fork({ id: 'f', model: 'other' })
    expect((await fork.run('Hello.')).text).toBe('other: I am main.')
    const elsewhere = several(openFile(file)).session('f')
    expect((await elsewhere.run('Again.')).text).toBe('other: I am main.')
    expect((await elsewhere.run('Now.', { model: 'third' })).text).toBe('third: I am main.')
    expect((await elsewhere.run('And now.', { limits: { toolCalls: 1 } })).text).toBe('other: I am main.')
    expect((await (await elsewhere.fork()).run('Here.')).text).toBe('other: I am main.')
    expect((await (await elsewhere.fork({ model: 'third' })).run('Here.')).text).toBe('third: I am main.')
    expect((await (await elsewhere.fork({ agent: 'talker' })).run('Here.')).text).toBe('talker: I talk.')
    expect((await fork.events()).events[0]).toMatchObject({ fork: { session: 's', model: 'other' } })
  })

  it('B-VERB-49: takes an open run along to it, with what that run had chosen', async () => {
    const harness = several(memory())
    const session = await harness.open({ id: 's' })
    expect((await session.run('Pay.', { instructions: 'Be brief.' })).status).toBe('requires_action')
    const fork = await session.fork({ model: 'other' })
    await fork.run()
    const [asked] = (await fork.status()).pending
    if (!asked) throw new Error('nothing is asked')
    await fork.decide({ ...asked, allow: true, by: 'ana' })
    expect(await fork.run()).toMatchObject({ status: 'completed', text: 'other: Be brief.' })
    expect((await fork.run('More.')).text).toBe('other: I am main.')
  })

  it('B-VERB-49: is refused for a model that is not known, and an import does not keep it', async () => {
    const store = memory()
    const harness = several(store)
    const session = await harness.open({ id: 's' })
    await session.run('Pay.')
    await session.interrupt()
    await session.run()
    await expect(session.fork({ model: 'nobody' })).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(session.fork({ model: '' })).rejects.toMatchObject({ code: 'invalid_config' })
    const fork = await session.fork({ id: 'f', model: 'other' })
    await fork.run('Hello.')
    const there = memory()
    await importSession(there, await exportSession(store, 'f'))
    const imported = several(there).session('f')
    await imported.send([{ type: 'resume' }])
    expect(await imported.run('Pay.')).toMatchObject({ status: 'requires_action' })
    await imported.interrupt()
    await imported.run()
    expect((await (await imported.fork()).events()).events[0]).not.toHaveProperty('fork.model')
  })
})
