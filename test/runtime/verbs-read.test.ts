// The verbs that read: what a page, a server or a client in another process shows of sessions, and of the harness itself.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import { defineTool, Harness, type HarnessOptions, memory, type Script, scripted } from '../../src/index.ts'
import { EMPTY, fold, type CompleteStore } from '../../src/kernel/index.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { driverOf, makeFile, open as openFile } from '../stores/folder.ts'
import { until } from '../until.ts'
import { ask, childrenOf, family, gate, STORAGES, storeOf, tool, use } from './children-stage.ts'

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ amount: z.number() }),
  approval: 'ask',
  execute: ({ amount }) => `paid ${amount}`,
})
const PAYS: Script = (request) =>
  request.messages.at(-1)?.role === 'tool' ? 'Paid.' : { text: 'Now.', calls: [{ tool: 'pay', args: { amount: 5 } }] }

function harnessWith(options: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: scripted(PAYS), tools: [pay], ...options })
  onTestFinished(() => harness.close())
  return harness
}

/** What every look must leave as it was. */
async function standing(store: CompleteStore, id: string): Promise<unknown> {
  const card = await store.card(id)
  const claim = await store.claim(id, 'looker', 1)
  if (claim) await store.release(id, claim.epoch)
  return { card, events: (await store.read(id, 0)).events, held: claim === null }
}

describe('what waits', () => {
  it('B-VERB-35: is the same in a session, in all sessions, in a state and in a result, and can be decided as it is', async () => {
    const harness = harnessWith()
    const session = await harness.open({ id: 's', labels: { tenant: 'a' } })
    expect((await session.status()).pending).toEqual([])
    const { pending } = await session.run('Pay.')
    const found = (await session.status()).pending
    expect(found).toMatchObject([
      { tool: 'pay', sessionId: 's', path: ['s'], agent: 'default', labels: { tenant: 'a' } },
    ])
    expect(found).toEqual(await harness.pending())
    expect(found).toEqual((await session.status()).pending)
    expect(found).toMatchObject(pending)
    const [call] = found
    if (!call) throw new Error('nothing waits')
    await session.decide({ ...call, allow: true, by: 'ana' })
    expect((await session.status()).pending).toEqual([])
    await expect(harness.session('none').status()).rejects.toMatchObject({ code: 'session_missing' })
  })

  it.each(STORAGES)(
    'B-VERB-35: is found in children, by a path from the session that is asked, on %s',
    async (storage) => {
      const { harness, store } = family(
        { root: [ask('one'), 'Done.'], one: [use('pay'), 'Paid.'] },
        { storage, tools: [tool('pay', { approval: 'ask', effect: 'once' })] },
      )
      const session = await harness.open({ id: 's' })
      await session.run('top')
      const [child = ''] = await childrenOf(store, 's')
      const [found] = (await session.status()).pending
      expect(found).toMatchObject({ tool: 'pay', sessionId: child, path: ['s', child] })
      expect((await harness.session(child).status()).pending).toMatchObject([{ tool: 'pay', path: [child] }])
      expect(await harness.pending()).toEqual((await session.status()).pending)
      await session.interrupt()
      expect((await session.status()).pending).toEqual([])
    },
  )

  it('B-VERB-35: has a question that is open while another call runs', async () => {
    const { opened, open } = gate()
    const slow = tool('slow', { execute: () => opened.then(() => 'slow') })
    const calls = [{ tool: 'ask_user', args: { question: 'Which?' } }, { tool: 'slow' }]
    const model = scripted([{ calls }, 'Done.'])
    const harness = harnessWith({ model, tools: [askUserTool(), slow] })
    const session = await harness.open({ id: 's' })
    await session.send('Go.')
    await until(async () => expect((await session.status()).pending).toHaveLength(1))
    expect((await harness.session('s', { stored: true }).status({ include: ['card'] })).card.status).toBe('running')
    expect((await session.status()).pending).toMatchObject([{ tool: 'ask_user', needs: 'answer' }])
    expect(await harness.pending()).toEqual((await session.status()).pending)
    open()
  })
})

describe('one session', () => {
  it('B-VERB-36: has a card with its last run, and none if it is not there', async () => {
    const harness = harnessWith()
    const session = await harness.open({ id: 's' })
    expect((await session.status({ include: ['card'] })).card).toMatchObject({
      session: 's',
      status: 'idle',
      run: null,
      phase: 'resting',
    })
    await session.run('Pay.')
    expect((await session.status({ include: ['card'] })).card).toEqual(
      (await harness.session('s', { stored: true }).status({ include: ['card'] })).card,
    )
    expect((await session.status({ include: ['card'] })).card).toMatchObject({
      status: 'requires_action',
      phase: 'waiting',
    })
    await expect(harness.session('none').status({ include: ['card'] })).rejects.toMatchObject({
      code: 'session_missing',
    })
  })

  it.each(STORAGES)(
    'B-VERB-37: has the result of its last run for a reader that drives nothing, on %s',
    async (storage) => {
      const store = storeOf(storage)
      const harness = harnessWith({ store, model: scripted(['One.', PAYS, 'Two.']) })
      const reader = harnessWith({ store, worker: { drives: false } })
      const session = await harness.open({ id: 's' })
      const far = reader.session('s')
      expect(await far.result()).toBeNull()
      const first = await session.run('First.')
      const before = await standing(store, 's')
      expect(await far.result()).toEqual(first)
      expect(await far.result({ waitMs: 50 })).toMatchObject({ status: 'completed', text: 'One.' })
      expect(await standing(store, 's')).toMatchObject({ events: (before as { events: unknown }).events })
      const parked = await session.run('Pay.')
      expect(await far.result()).toMatchObject({ status: 'requires_action', pending: parked.pending })
      await expect(far.result({ waitsMs: 1 } as never)).rejects.toMatchObject({ code: 'invalid_config' })
      await expect(reader.session('none').result()).rejects.toMatchObject({ code: 'session_missing' })
    },
  )

  it('B-VERB-37: has none while it or its child works, and it can be waited for', async () => {
    const { opened, open } = gate()
    const slow = tool('slow', { execute: () => opened.then(() => 'slow') })
    const { harness } = family({ root: [ask('one'), 'Done.'], one: [use('slow'), 'Found.'] }, { tools: [slow] })
    const session = await harness.open({ id: 's' })
    await session.send('top')
    await until(async () => expect((await harness.list({ active: true })).cards).toHaveLength(2))
    expect(await session.result()).toBeNull()
    expect(await session.result({ waitMs: 20 })).toBeNull()
    const waiting = session.result({ waitMs: 20_000 })
    open()
    expect(await waiting).toMatchObject({ status: 'completed', text: 'Done.' })
  })

  it('B-VERB-37: a harness that is closed ends the wait for a result', async () => {
    const harness = harnessWith({ model: scripted([{ stall: true }]), worker: { graceMs: 50 } })
    const session = await harness.open()
    await session.send('Go.')
    const waiting = session.result({ waitMs: 60_000 })
    await harness.close()
    expect(await waiting).toBeNull()
  })

  it.each(STORAGES)('B-VERB-38: folds to what the log meant at any event, on %s', async (storage) => {
    const store = storeOf(storage)
    const harness = harnessWith({ store, model: scripted(() => 'Yes.') })
    const session = await harness.open({ id: 's' })
    for (let n = 0; n < 30; n++) await session.run(`Number ${n}.`)
    const { events } = await session.events()
    const kept = await store.snapshot('s')
    expect(kept?.seq ?? 0).toBeGreaterThan(0)
    for (const at of [0, 1, 5, (kept?.seq ?? 0) - 1, kept?.seq ?? 0, events.length - 1, events.length]) {
      const { seq, session: folded } = await session.status({ at })
      expect(seq).toBe(at)
      expect(folded).toEqual(JSON.parse(JSON.stringify(events.slice(0, at).reduce(fold, EMPTY))))
    }
    expect((await session.status({ at: 1_000_000 })).seq).toBe(events.length)
    for (const at of [-1, 1.5, Number.NaN, '3', null])
      await expect(session.status({ at: at as number })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(harness.session('none').status({ at: 1 })).rejects.toMatchObject({ code: 'session_missing' })
  })

  it.each(STORAGES)('B-VERB-39: gives blobs by hash only to those that refer to them, on %s', async (storage) => {
    const harness = harnessWith({ store: storeOf(storage), model: scripted(() => 'Seen.') })
    const session = await harness.open({ id: 's' })
    const other = await harness.open({ id: 'other' })
    await session.run([{ type: 'file', media: 'text/plain', data: Buffer.from('the plan') }])
    const named = (await session.events()).events.flatMap((event) => (event.type === 'user.message' ? event.parts : []))
    const hash = named.flatMap((part) => (part.type === 'blob' ? [part.hash] : []))[0] ?? ''
    const found = await session.blob(hash)
    expect(Buffer.from(found?.data ?? []).toString()).toBe('the plan')
    expect(await session.blob({ hash })).toEqual(found)
    expect(await (await session.fork()).blob(hash)).toEqual(found)
    expect(await other.blob(hash)).toBeNull()
    expect(await harness.session('none').blob(hash)).toBeNull()
    for (const bad of ['', 'abc', '../../etc/passwd', hash.toUpperCase(), 7, null])
      await expect(session.blob(bad as string)).rejects.toMatchObject({ code: 'invalid_input' })
  })
})

describe('the harness', () => {
  it('B-VERB-40: names its agents with models, tools, limits, children and graphs, as plain JSON without secrets', async () => {
    const { graph, node } = withState({ draft: last('') })
    const draft = node({ effect: 'read', reads: () => ({}), run: async () => ({ draft: 'Done.' }) })
    const report = graph({
      name: 'report',
      nodes: { draft },
      edges: [
        [START, 'draft'],
        ['draft', END],
      ],
    })
    const picky = defineTool({
      name: 'pick',
      description: 'picks with hunter2hunter2',
      input: z.object({}),
      effect: 'read',
      approval: () => 'auto' as const,
      execute: () => '',
    })
    const harness = harnessWith({
      tools: [pay, picky],
      graphs: [report],
      subagents: { reader: { description: 'reads', limits: { toolCalls: 3 } } },
      budget: { runUsd: 1 },
      secrets: { PASSWORD: 'hunter2hunter2' },
    })
    const agents = await harness.agents()
    expect(JSON.parse(JSON.stringify(agents))).toEqual(agents)
    const by = Object.fromEntries(agents.map((agent) => [agent.name, agent]))
    expect(by['default']).toMatchObject({
      model: 'scripted',
      planner: 'model',
      children: ['subagent', 'reader'],
      graph: null,
    })
    expect(by['default']).toMatchObject({ budget: { runUsd: 1 }, sources: [] })
    expect(by['default']?.tools).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'pay', effect: 'once', approval: 'ask', kind: 'user', outside: false }),
        expect.objectContaining({ name: 'pick', effect: 'read', approval: 'by_arguments' }),
      ]),
    )
    expect(JSON.stringify(agents)).not.toContain('hunter2')
    expect(by['reader']?.limits.toolCalls).toBe(3)
    expect(by['report']).toMatchObject({ planner: 'graph:report', graph: { json: { name: 'report' } } })
    expect(by['report']?.graph?.mermaid).toContain('flowchart')
  })

  it.each(STORAGES)(
    'B-VERB-41: says in dollars what was spent and held, for a session and for today, on %s',
    async (storage) => {
      const store = storeOf(storage)
      const model = scripted(() => ({ text: 'Yes.', cost: 250_000 }))
      const harness = harnessWith({ store, model, budget: { sessionUsd: 50, dayUsd: 100 } })
      expect((await harness.health()).accounts).toEqual([])
      const session = await harness.open({ id: 's' })
      expect((await harness.session('s', { stored: true }).status({ include: ['accounts'] })).accounts).toEqual([])
      await session.run('Go.')
      const accounts = (await harness.session('s', { stored: true }).status({ include: ['accounts'] })).accounts
      expect(accounts.map(({ account }) => account)).toEqual(['run', 'session', 'tree', 'day'])
      const spent = { spentUsd: 0.25, heldUsd: 0, assumedUsd: 0, agent: 'default' }
      expect(accounts[1]).toEqual({ account: 'session', id: 'session:s', limitUsd: 50, ...spent })
      expect(accounts[2]).toMatchObject({ account: 'tree', limitUsd: null, ...spent })
      expect((await harness.health()).accounts).toMatchObject([{ account: 'day', limitUsd: 100, ...spent }])
      await expect(harness.session('none', { stored: true }).status({ include: ['accounts'] })).rejects.toMatchObject({
        code: 'session_missing',
      })
      expect(() => harness.session('', { stored: true })).toThrow('must be a text that is not empty')
    },
  )

  it.each(STORAGES)('B-VERB-42: proves that it can write, and says how its store stands, on %s', async (storage) => {
    const store = storeOf(storage)
    const harness = harnessWith({ store, model: scripted([{ stall: true }]), worker: { graceMs: 50 } })
    const waiting = harnessWith({ store, worker: { drives: false } })
    await harness.open({ id: 's' })
    await (await waiting.open({ id: 'late' })).send('Go.')
    await harness.session('s').send('Go.')
    await until(async () =>
      expect((await harness.session('s', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
        phase: 'model',
      }),
    )
    const health = await harness.health()
    expect(health).toMatchObject({ ok: true, trouble: null, drives: true, store: { sessions: 2, leases: 1, due: 1 } })
    expect(health.writeMs).toBeGreaterThanOrEqual(0)
    expect(health.store?.bytes).toBeGreaterThan(100)
    expect(health.store?.durability).toBe(storage === 'memory' ? 'memory' : 'sqlite wal, synchronous full')
    expect(health.store?.schema).toEqual(storage === 'memory' ? null : expect.any(Number))
    expect(await waiting.health()).toMatchObject({ ok: true, drives: false })
  })

  it('B-VERB-42: says so when the disk is full, and still how the store stands', async () => {
    let full = false
    const loadDriver = () =>
      driverOf((db) => ({
        ...db,
        get isTransaction() {
          return db.isTransaction
        },
        prepare: (sql) => {
          const statement = db.prepare(sql)
          const refused = (): void => {
            if (full && sql.startsWith('INSERT INTO workers'))
              throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 })
          }
          return {
            run: (...values) => (refused(), statement.run(...values)),
            get: (...values) => (refused(), statement.get(...values)),
            all: (...values) => statement.all(...values),
          }
        },
      }))
    const harness = harnessWith({ store: openFile(makeFile(), { loadDriver }) })
    expect(await harness.health()).toMatchObject({ ok: true })
    full = true
    expect(await harness.health()).toMatchObject({
      ok: false,
      trouble: { code: 'disk_full' },
      writeMs: null,
      store: { sessions: 0 },
    })
    full = false
    expect(await harness.health()).toMatchObject({ ok: true })
  })

  it('B-VERB-42: a closed harness refuses to say it', async () => {
    const harness = harnessWith({ store: memory() })
    await harness.close()
    for (const verb of [
      () => harness.health(),
      () => harness.agents(),
      () => harness.health().then(({ accounts }) => accounts),
    ])
      await expect(verb()).rejects.toMatchObject({ code: 'harness_closed' })
  })
})
