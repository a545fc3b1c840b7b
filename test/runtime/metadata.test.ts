// What a host says of its sessions and runs, and what it builds for their tools.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type HarnessOptions, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { hasty } from '../models/hosted-stage.ts'
import { makeFile, open as openFile } from '../stores/folder.ts'
import { outcome } from '../contract/fixture.ts'

function harnessWith(options: Partial<HarnessOptions>): Harness {
  const harness = new Harness({ model: scripted(() => ({ text: 'done' })), ...options })
  onTestFinished(() => harness.close())
  return harness
}

const calling = (tool: string) =>
  scripted(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? { text: 'done' }
      : { calls: [{ tool, args: tool === 'subagent' ? { agent: 'helper', task: 'look' } : {} }] },
  )

function tell(notes: unknown[]) {
  return defineTool<object>({
    name: 'tell',
    description: 'tell',
    input: z.object({}),
    effect: 'read',
    execute: (_args, { metadata, deps }) => {
      notes.push(deps === undefined ? metadata : deps)
      return 'told'
    },
  })
}

describe('metadata', () => {
  it('B-META-1: of the session, and over it of the run, reaches tools, hooks, results and children, and no model', async () => {
    const notes: unknown[] = []
    const hooked: [string, unknown][] = []
    const types = [
      'run_start',
      'user_prompt_submit',
      'before_tool_call',
      'stop',
      'run_end',
      'session_rest',
      'after_subagent_run',
    ] as const
    const hooks = types.map((type) => ({
      type,
      run: ({ agent, metadata }: { agent: string; metadata: unknown }) =>
        void (agent === 'default' && hooked.push([type, metadata])),
    }))
    const model = calling('subagent')
    const requests: string[] = []
    const noted = {
      ...model,
      call: (...args: Parameters<typeof model.call>) => (requests.push(JSON.stringify(args[0])), model.call(...args)),
    }
    const helper = { description: 'helps', model: calling('tell'), tools: [tell(notes)] }
    const harness = harnessWith({ model: noted, subagents: { helper }, hooks })
    const session = await harness.open({ metadata: { tenant: 'acme', trace: 1 } })
    const result = await session.run('go', { metadata: { trace: 2, user: { id: 'u-17' } } })
    const all = { tenant: 'acme', trace: 2, user: { id: 'u-17' } }
    expect(result).toMatchObject({ status: 'completed', metadata: all })
    expect(notes).toEqual([all])
    expect(Object.fromEntries(hooked)).toEqual({
      ...Object.fromEntries(types.map((type) => [type, all])),
      session_rest: { tenant: 'acme', trace: 1 },
    })
    expect(requests.join()).not.toMatch(/acme|u-17/)
    expect(await session.run('again')).toMatchObject({ metadata: { tenant: 'acme', trace: 1 } })
  })

  it('B-META-2: what is no JSON object, or over 16 KB, is refused, and nothing is written', async () => {
    const harness = harnessWith({})
    const session = await harness.open()
    const circle: { [key: string]: unknown } = {}
    circle['self'] = circle
    for (const metadata of [
      [],
      'text',
      { when: new Date() },
      { n: Number.NaN },
      { f: () => 1 },
      circle,
      { text: 'x'.repeat(16_385) },
    ] as never[]) {
      expect(await outcome(session.run('a', { metadata }))).toBe('invalid_config')
      expect(await outcome(session.send('a', { metadata }))).toBe('invalid_config')
      expect(await outcome(harness.open({ metadata }))).toBe('invalid_config')
    }
    expect((await session.events()).events).toHaveLength(1)
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toHaveLength(1)
  })

  it('B-META-5: an import has the metadata and labels that the importer says, and none of its file', async () => {
    const [from, to] = [memory(), memory()]
    const { id } = await harnessWith({ store: from }).open({ metadata: { tenant: 'a' }, labels: { tenant: 'a' } })
    const file = await exportSession(from, id)
    const here = harnessWith({ store: to })
    await importSession(to, file)
    expect((await here.list({ order: 'id', limit: 500, where: { tenant: 'a' } })).cards).toEqual([])
    expect(await here.session(id).run('go')).toMatchObject({ metadata: {} })
    await importSession(to, file, { id: 'mine', metadata: { tenant: 'b' }, labels: { tenant: 'b' } })
    expect(
      (await here.list({ order: 'id', limit: 500, where: { tenant: 'b' } })).cards.map(({ session }) => session),
    ).toEqual(['mine'])
    expect(await here.session('mine').run('go')).toMatchObject({ metadata: { tenant: 'b' } })
  })

  it('B-META-5: nor do the sessions that came with it because it was forked from them', async () => {
    const [from, to] = [memory(), memory()]
    const there = harnessWith({ store: from })
    const said = { metadata: { tenant: 'acme' }, labels: { tenant: 'acme' } }
    const origin = await there.open({ ...said, id: 'origin' })
    await origin.run('a')
    await origin.fork({ id: 'fork' })
    await importSession(to, await exportSession(from, 'fork'))
    const here = harnessWith({ store: to })
    expect((await here.list({ order: 'id', limit: 500, where: { tenant: 'acme' } })).cards).toEqual([])
    const forked = await here.session('origin').fork()
    expect((await forked.events()).events[0]).not.toHaveProperty('metadata')
    // The same file again, or another fork of the same session, is no other session.
    await importSession(to, await exportSession(from, 'fork'), { id: 'again' })
  })
})

describe.each([
  ['memory', () => memory()],
  ['SQLite', () => openFile(makeFile())],
] as const)('labels in %s', (_name, makeStore: () => CompleteStore) => {
  it('B-META-3: sessions are listed by their labels, with every other filter; children and forks have them too', async () => {
    const store = makeStore()
    onTestFinished(() => store.close())
    const helper = { description: 'helps', model: scripted(() => ({ text: 'helped' })) }
    const harness = harnessWith({ store, model: calling('subagent'), subagents: { helper } })
    const a = await harness.open({ labels: { tenant: 'a', kind: 'chat' }, folder: '/one' })
    await harness.open({ labels: { tenant: 'a', kind: 'job' }, folder: '/two' })
    await harness.open({ labels: { tenant: 'b', kind: 'chat' } })
    const { sessionId } = await harness.run('go', { labels: { tenant: 'a' } })
    const fork = await a.fork()
    const ids = async (filter: Parameters<Harness['list']>[0]) =>
      (await harness.list({ order: 'id', limit: 500, ...filter })).cards.map(({ session }) => session)
    const ofA = await ids({ where: { tenant: 'a' } })
    expect(ofA).toHaveLength(5)
    expect(ofA).toEqual(expect.arrayContaining([a.id, sessionId, fork.id]))
    expect(ofA.some((id) => id.startsWith(`${sessionId}~`))).toBe(true)
    expect(new Set(await ids({ where: { tenant: 'a', kind: 'chat' } }))).toEqual(new Set([a.id, fork.id]))
    expect(await ids({ where: { tenant: 'a', kind: 'none' } })).toEqual([])
    expect(await ids({ where: { tenant: 'a' }, folder: '/two' })).toHaveLength(1)
    expect(await ids({ where: { tenant: 'a' }, status: 'running' })).toEqual([])
    expect((await ids({ where: { tenant: 'a' }, order: 'made', limit: 2 }))[0]).toBe(fork.id)
    expect(await ids({ where: { tenant: 'a' }, order: 'newest' })).toHaveLength(4)
    expect(await ids({ where: { tenant: 'a' }, root: sessionId })).toHaveLength(2)
    expect(await ids({ where: { tenant: 'a' }, cursor: ofA[1] as string, limit: 1 })).toEqual([ofA[2]])
    expect(await ids({ where: {} })).toHaveLength(6)
    expect((await harness.list({ order: 'id', limit: 500, where: { tenant: 'b' } })).cards[0]?.labels).toEqual({
      tenant: 'b',
      kind: 'chat',
    })
    await harness.remove(sessionId)
    expect(await ids({ where: { tenant: 'a' } })).toHaveLength(3)
  })

  it('B-META-10: a fork has labels and metadata of its own beside those of its session, the same ones under the same id', async () => {
    const harness = harnessWith({ store: makeStore() })
    const session = await harness.open({ labels: { tenant: 'a', owner: 'ana' }, metadata: { plan: 1, owner: 'ana' } })
    const own = { labels: { owner: 'bob' }, metadata: { owner: 'bob', why: 'what if' } }
    const fork = await session.fork({ id: 'f', ...own })
    expect((await fork.status({ include: ['card'] })).card.labels).toEqual({ tenant: 'a', owner: 'bob' })
    expect((await fork.events({ limit: 1 })).events[0]).toMatchObject({
      metadata: { plan: 1, owner: 'bob', why: 'what if' },
    })
    expect((await session.status({ include: ['card'] })).card.labels).toEqual({ tenant: 'a', owner: 'ana' })
    expect((await session.fork({ id: 'f', ...own })).id).toBe('f')
    for (const other of [{}, { ...own, labels: { owner: 'ana' } }, { labels: own.labels }])
      await expect(session.fork({ id: 'f', ...other })).rejects.toMatchObject({ code: 'id_reused' })
    const many = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`l${i}`, 'x']))
    await expect(session.fork({ labels: many })).rejects.toThrow('has 17 labels and may have 16')
    await expect(session.fork({ labels: { owner: 'a\nb' } })).rejects.toMatchObject({ code: 'invalid_config' })
    expect((await harness.list({ order: 'id', limit: 500, where: { tenant: 'a' } })).cards).toHaveLength(2)
  })

  it('B-META-4: what is no plain object of texts is refused, also by `list`, and what a caller changes later changes nothing', async () => {
    const harness = harnessWith({ store: makeStore() })
    const labels = { tenant: 'acme' }
    await harness.open({ labels })
    labels.tenant = 'other'
    const [card] = (await harness.list({ order: 'id', limit: 500 })).cards
    if (card?.labels) (card.labels as { tenant: string }).tenant = 'other'
    expect((await harness.list({ order: 'id', limit: 500, where: { tenant: 'acme' } })).cards).toHaveLength(1)
    const odd = new Map([['tenant', 'acme']]) as unknown as Record<string, string>
    expect(await outcome(harness.list({ order: 'id', limit: 500, where: odd }).then(({ cards }) => cards))).toBe(
      'invalid_config',
    )
    expect(await outcome(harness.open({ labels: odd }))).toBe('invalid_config')
  })

  it('B-META-4: more than 16 labels, and what is no short line, are refused, and nothing is written', async () => {
    const store = makeStore()
    onTestFinished(() => store.close())
    const harness = harnessWith({ store })
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`l${n}`, 'x']))
    for (const labels of [
      many,
      { 'a b': 'x' },
      { a: '' },
      { a: 'x\ny' },
      { a: 'x'.repeat(129) },
      { a: 1 as never },
      { ['x'.repeat(65)]: 'x' },
      [] as never,
    ]) {
      expect(await outcome(harness.open({ labels }))).toBe('invalid_config')
      expect(await outcome(harness.run('a', { labels }))).toBe('invalid_config')
      expect(await outcome(harness.list({ order: 'id', limit: 500, where: labels }).then(({ cards }) => cards))).toBe(
        'invalid_config',
      )
    }
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
  })
})

describe('context', () => {
  it('B-META-6: is built once for each run, before its first call, from its metadata, and closed after it', async () => {
    const notes: unknown[] = []
    const did: string[] = []
    const deps = ({ session, metadata }: { session: string; metadata: { readonly [key: string]: unknown } }) => {
      const who = String(metadata['user'])
      did.push(`made ${who}`)
      return { who, session, close: () => void did.push(`closed ${who}`) }
    }
    const harness = harnessWith({ model: calling('tell'), tools: [tell(notes)], deps })
    const session = await harness.open()
    await session.send('a', { metadata: { user: 'ann' } })
    await session.send('b', { when: 'after', metadata: { user: 'bob' } })
    await session.run()
    await session.run('c', { metadata: { user: 'cy' } })
    await harness.close()
    expect(notes).toMatchObject([{ who: 'ann', session: session.id }, { who: 'bob' }, { who: 'cy' }])
    expect(did).toEqual(['made ann', 'made bob', 'closed ann', 'closed bob', 'made cy', 'closed cy'])
  })

  it('B-META-6: a run without calls builds none', async () => {
    let made = 0
    await harnessWith({ deps: () => (made += 1) }).run('a')
    expect(made).toBe(0)
  })

  it('B-META-7: one that cannot be built fails the call, which does not run; the next call tries again', async () => {
    const notes: unknown[] = []
    let tries = 0
    const deps = () => {
      tries += 1
      if (tries === 1) throw new Error('the database is away')
      return { tries }
    }
    const model = scripted([
      { calls: [{ tool: 'tell', args: {} }] },
      { calls: [{ tool: 'tell', args: {} }] },
      { text: 'done' },
    ])
    const result = await harnessWith({ model, tools: [tell(notes)], deps }).run('a')
    expect(result.calls.map(({ status }) => status)).toEqual(['error', 'ok'])
    expect(result.calls[0]?.content).toContain('the database is away')
    expect(notes).toEqual([{ tries: 2 }])
  })

  it('B-META-9: one that is not built in time fails the call, which does not run later either; nothing waits for it', async () => {
    const notes: unknown[] = []
    let [built, closed] = [() => {}, 0]
    const deps = () =>
      new Promise((resolve) => {
        built = () => resolve({ close: () => void (closed += 1) })
      })
    const brief = defineTool({
      name: 'tell',
      description: 'tell',
      input: z.object({}),
      timeoutMs: 500,
      execute: () => void notes.push('ran'),
    })
    const harness = harnessWith({ model: calling('tell'), tools: [brief], deps, system: { clock: hasty(50) } })
    const result = await harness.run('a')
    expect(result.calls[0]).toMatchObject({ status: 'error' })
    expect(result.calls[0]?.content).toContain('not built in time')
    built()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect({ notes, closed }).toEqual({ notes: [], closed: 1 })
  })

  it('B-META-9: one that cannot be closed ends no run', async () => {
    const deps = () => ({
      get close(): () => void {
        throw new Error('no')
      },
    })
    const warned = new Promise((resolve) => process.once('warning', resolve))
    const result = await harnessWith({ model: calling('tell'), tools: [tell([])], deps }).run('a')
    expect(result.status).toBe('completed')
    expect(String(await warned)).toContain('could not be closed')
  })
})
