// Reading what runs do without driving them: pages of events, how a session stands, and which sessions are at work.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  type EventPage,
  type EventsFilter,
  Harness,
  memory,
  type Request,
  type Script,
  scripted,
} from '../../src/index.ts'
import { STORAGES, storeOf } from '../models/hosted-stage.ts'
import { makeFile, meddle, open } from '../stores/folder.ts'
import { ask, family, gate, report, resultsIn, tool, use } from './children-stage.ts'
import { killedAfter } from './killed.ts'
import { until } from '../until.ts'

/** Compiled by `npm run build:all`, which the tests begin with. */
const CHILD = fileURLToPath(new URL('../../.build/test/runtime/child-reading.js', import.meta.url))

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
})

async function pages(
  harness: Harness,
  { session, ...filter }: EventsFilter & { readonly session: string },
): Promise<readonly EventPage[]> {
  const all: EventPage[] = []
  for (let after = filter.after ?? 0; ; ) {
    const page = await harness.session(session, { stored: true }).events({ ...filter, after })
    all.push(page)
    if (page.next === null) return all
    after = page.next
  }
}

type Started = { readonly subagent_session_id: string }
const seqs = (events: readonly Event[]): readonly number[] => events.map(({ seq }) => seq)
const upTo = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i + 1)

describe.each(STORAGES)('pages of events, on %s', (storage) => {
  it('B-LOOK-6: a log is read in pages of 1,000, or of 1 to 1,000; the last page has no next, also if it is full; what there is not is an empty page (AC-96, F10)', async () => {
    const store = storeOf(storage)
    const harness = new Harness({ model: scripted([]), store, worker: { drives: false }, secrets: {} })
    onTestFinished(() => harness.close())
    const session = await harness.open({ id: 's' })
    for (let i = 0; i < 999; i += 111)
      await session.send(Array.from({ length: 111 }, () => ({ type: 'resume' as const })))
    const found = await pages(harness, { session: 's' })
    expect(found.map(({ events, next }) => [events.length, next])).toEqual([[1_000, null]])
    expect(seqs(found.flatMap(({ events }) => events))).toEqual(upTo(1_000))
    expect(await harness.session('s', { stored: true }).events({ limit: 0 })).toMatchObject({
      events: [{ seq: 1 }],
      next: 1,
    })
    const whole = await harness.session('s', { stored: true }).events({ limit: 5_000 })
    expect([whole.events.length, whole.next]).toEqual([1_000, null])
    await session.send([{ type: 'resume' }])
    const most = await harness.session('s', { stored: true }).events({ limit: 5_000 })
    expect([most.events.length, most.next]).toEqual([1_000, 1_000])
    const nothing = { events: [], next: null }
    for (const [id, after] of [
      ['nobody', 0],
      ['s', 1_001],
      ['s', 9_999],
    ] as const)
      expect(await harness.session(id).events({ after })).toEqual(nothing)
    for (const limit of [-1, 1.5, Number.NaN, '5' as never])
      await expect(harness.session('s', { stored: true }).events({ limit })).rejects.toThrow(/"limit"/)
    for (const after of [-1, 0.5, Number.NaN])
      await expect(harness.session('s', { stored: true }).events({ after })).rejects.toThrow(/"after"/)
    await expect(harness.session('s').events({ form: 1 } as never)).rejects.toThrow(/"form"/)
  })

  it('B-LOOK-7: the events of one run are those from its start to its end, in pages too (AC-96)', async () => {
    const script: Script = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { calls: [{ tool: 'look' }, { tool: 'look' }] }
    const store = storeOf(storage)
    const harness = new Harness({ model: scripted(script), tools: [look], store, secrets: {} })
    onTestFinished(() => harness.close())
    const session = await harness.open()
    for (const text of ['One.', 'Two.', 'Three.']) await session.run(text)
    const { events } = await session.events()
    const starts = events.filter(({ type }) => type === 'run.started').map(({ seq }) => seq)
    const ends = events.filter(({ type }) => type === 'run.settled').map(({ seq }) => seq)
    expect([starts.length, ends.length]).toEqual([3, 3])
    for (const [i, run] of starts.entries()) {
      const end = ends[i] ?? 0
      for (const limit of [1, 2, 1_000]) {
        const found = (await pages(harness, { session: session.id, run, limit })).flatMap((page) => page.events)
        expect(seqs(found)).toEqual(seqs(events).filter((seq) => seq >= run && seq <= end))
      }
      const past = await harness.session(session.id, { stored: true }).events({ run, after: end })
      expect(past).toEqual({ events: [], next: null })
      expect(await harness.session(session.id, { stored: true }).events({ run: run + 1 })).toEqual({
        events: [],
        next: null,
      })
    }
    expect(await harness.session(session.id, { stored: true }).events({ run: 9_999 })).toEqual({
      events: [],
      next: null,
    })
    expect(await harness.session('nobody', { stored: true }).events({ run: 2 })).toEqual({ events: [], next: null })
    expect((await harness.session(session.id, { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      run: starts[2],
      phase: 'resting',
      status: 'idle',
    })
  })
})

describe.each(STORAGES)('what is at work, on %s', (storage) => {
  it('B-LOOK-8: a parent whose child works is running and waits; both are active, by tree and by parent, until they rest (F11)', async () => {
    const [inside, on] = [gate(), gate()]
    const slow = tool('slow', {
      execute: async () => {
        inside.open()
        await on.opened
        return 'slow'
      },
    })
    const roles = { root: [ask('dig'), report], dig: [use('slow'), 'Found it.'] }
    const { harness } = family(roles, { storage, tools: [slow] })
    const session = await harness.open({ id: 'top' })
    await harness.open({ id: 'idle' })
    expect((await harness.list({ active: true })).cards).toEqual([])
    const running = session.run('Go.')
    await inside.opened
    const active = (await harness.list({ active: true })).cards
    const [parent, child] = active
    expect(active).toHaveLength(2)
    expect(parent).toMatchObject({ session: 'top', root: 'top', status: 'running', phase: 'waiting' })
    expect(parent).not.toHaveProperty('parent')
    expect(child).toMatchObject({ parent: 'top', root: 'top', status: 'running', phase: 'tools' })
    expect(parent?.run).toBeGreaterThan(0)
    const id = child?.session ?? ''
    expect(await harness.session(id, { stored: true }).events({ run: child?.run ?? 0, limit: 1 })).toMatchObject({
      events: [{ type: 'run.started' }],
    })
    expect((await harness.session('top', { stored: true }).status({ include: ['card'] })).card).toEqual(parent)
    expect((await harness.session(id, { stored: true }).status({ include: ['card'] })).card).toEqual(child)
    expect((await harness.list({ active: true, root: 'top' })).cards).toEqual(active)
    expect((await harness.list({ active: true, parent: 'top' })).cards).toEqual([child])
    for (const filter of [{ root: 'idle' }, { parent: id }, { parent: 'nobody' }, { root: 'top', parent: 'idle' }])
      expect((await harness.list({ active: true, ...filter })).cards).toEqual([])
    expect(
      (await harness.list({ order: 'id', limit: 500, status: 'running' })).cards.map(({ session }) => session),
    ).toEqual(['top', id])
    on.open()
    expect((await running).status).toBe('completed')
    expect((await harness.list({ active: true })).cards).toEqual([])
    expect((await harness.session('top', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      status: 'idle',
      phase: 'resting',
      run: parent?.run,
    })
    expect((await harness.session('idle', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      run: null,
      phase: 'resting',
    })
    await expect(harness.session('nobody').status({ include: ['card'] })).rejects.toMatchObject({
      code: 'session_missing',
    })
    await expect(harness.list({ active: true, roots: 'x' } as never)).rejects.toThrow(/"roots".*"root"/)
  })

  it('B-CARD-3: list finds the children of one session, and their cards say the parent', async () => {
    const roles = { root: [ask('dig'), ask('dig'), report], dig: ['Found it.', 'Found more.'] }
    const { harness } = family(roles, { storage })
    const session = await harness.open({ id: 'top' })
    await session.run('Go.')
    const children = (await harness.list({ order: 'id', limit: 500, parent: 'top' })).cards
    expect(children).toMatchObject([
      { parent: 'top', root: 'top', agent: 'subagent', status: 'idle' },
      { parent: 'top', root: 'top', agent: 'subagent', status: 'idle' },
    ])
    const [first] = children
    expect((await harness.list({ order: 'id', parent: 'top', limit: 1 })).cards).toEqual([first])
    expect((await harness.list({ order: 'id', limit: 500, parent: first?.session ?? '' })).cards).toEqual([])
    expect((await harness.list({ order: 'id', limit: 500, root: 'top' })).cards[0]).not.toHaveProperty('parent')
    await expect(harness.list({ parnet: 'top' } as never)).rejects.toThrow(/"parnet".*"parent"/)
  })

  it('B-CARD-4: a session that waits only for children is running, its messages are not queued, and what a child asks is pending once', async () => {
    const roles = { root: [ask('pay'), report], pay: [use('pay'), 'Paid.'] }
    const { harness, store } = family(roles, { storage, tools: [tool('pay', { approval: 'ask' })] })
    const session = await harness.open({ id: 'top' })
    const parked = await session.run('Go.')
    expect(parked).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
    expect(await store.card('top')).toMatchObject({ status: 'running', due: null, asks: [] })
    expect((await store.card('top'))?.waits).toHaveLength(1)
    const [child] = (await harness.list({ order: 'id', limit: 500, status: 'requires_action' })).cards
    expect(child).toMatchObject({ parent: 'top', waits: [] })
    expect(
      (await harness.list({ order: 'id', limit: 500, status: 'running' })).cards.map((card) => card.session),
    ).toEqual(['top'])
    expect((await harness.session('top', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      status: 'running',
      phase: 'waiting',
    })
    expect(await session.status()).toMatchObject({ status: 'running', phase: 'children', waitsFor: 'answer' })
    // Nothing goes on without a person.
    expect((await harness.list({ active: true })).cards).toEqual([])
    const pending = await harness.pending()
    expect(pending).toMatchObject([{ sessionId: child?.session, path: ['top', child?.session], tool: 'pay' }])
    expect((await session.status()).pending).toEqual(pending)
    expect(parked.pending).toMatchObject([{ sessionId: child?.session }])
    expect(await session.send('And hurry.')).toMatchObject({ queued: false })
    expect(await harness.session(child?.session ?? '').send('Hurry.')).toMatchObject({ queued: true })
    const [question] = pending
    if (!question) throw new Error('nothing is asked')
    await session.decide({ ...question, allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect((await harness.list({ order: 'id', limit: 500, status: 'running' })).cards).toEqual([])
  })

  it('B-CARD-4: a session that also waits for a person requires action, however many children work', async () => {
    const [inside, on] = [gate(), gate()]
    const slow: () => Promise<string> = async () => {
      inside.open()
      await on.opened
      return 'Found it.'
    }
    const both = { calls: [...ask('dig').calls, ...use('person').calls] }
    const { harness, store } = family(
      { root: [both, report], dig: [slow] },
      { storage, tools: [defineTool({ name: 'person', description: 'asks', input: z.object({}) })] },
    )
    const session = await harness.open({ id: 'top' })
    const running = session.run('Go.')
    await inside.opened
    await until(async () => expect(await store.card('top')).toMatchObject({ status: 'requires_action' }))
    expect(await harness.pending()).toMatchObject([{ sessionId: 'top', needs: 'answer' }])
    // Its child works.
    expect((await harness.list({ active: true })).cards.map(({ status }) => status)).toEqual(['running', 'running'])
    on.open()
    const waits = await running
    expect(waits).toMatchObject({ status: 'requires_action', stopReason: 'answer_required' })
    await session.answer({ callId: waits.pending[0]?.callId ?? '', content: 'yes' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
  })

  it('B-CARD-4: a session that waits for the report of a child it started is running, and nothing of it is pending', async () => {
    const held = gate()
    const wait = (request: Request) => {
      const { subagent_session_id: id } = JSON.parse(resultsIn(request)[0]?.content ?? '') as Started
      return use('wait_subagent', { id })
    }
    const roles = {
      root: [use('spawn_subagent', { prompt: 'dig' }), wait, 'Done.'],
      dig: [() => held.opened.then(() => 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, detached: true })
    const session = await harness.open({ id: 'top' })
    const running = session.run('Go.')
    await until(async () => {
      const { status, due, waits } = (await store.card('top')) ?? {}
      expect([status, waits?.length, (due ?? 0) > Date.now()]).toEqual(['running', 1, true])
    })
    expect(await session.send('And?')).toMatchObject({ queued: false })
    expect([await harness.pending(), (await session.status()).pending]).toEqual([[], []])
    expect((await harness.list({ active: true })).cards.map(({ phase }) => phase)).toEqual(['waiting', 'model'])
    held.open()
    expect((await running).status).toBe('completed')
  })

  it('B-CARD-5: list says run and phase when it is asked to', async () => {
    const { harness, store } = family({ root: [ask('dig'), report], dig: ['Found it.'] }, { storage })
    await (await harness.open({ id: 'top' })).run('Go.')
    await harness.open({ id: 'new' })
    const plain = (await harness.list({ order: 'id', limit: 500 })).cards
    for (const card of plain) expect(Object.keys(card)).not.toContain('phase')
    const rows = (await harness.list({ order: 'id', limit: 500, runs: true })).cards
    expect(rows.map(({ session, run, phase, parent }) => ({ session, run, phase, parent }))).toEqual([
      { session: 'new', run: null, phase: 'resting', parent: undefined },
      {
        session: 'top',
        run: (await harness.session('top', { stored: true }).status({ include: ['card'] })).card.run,
        phase: 'resting',
        parent: undefined,
      },
      { session: rows[2]?.session, run: rows[2]?.run, phase: 'resting', parent: 'top' },
    ])
    expect(rows[2]?.run).toBeGreaterThan(0)
    expect((await harness.list({ order: 'id', limit: 500, runs: true, parent: 'top' })).cards).toEqual(rows.slice(2))
    expect(await store.list({ limit: 9 })).toHaveLength(3)
    await expect(harness.list({ runs: 1 } as never)).rejects.toThrow(/"runs"/)
  })

  it('B-LOOK-9: a run that waits for a provider is active and one that waits for a person is not; a message that was not taken up is building', async () => {
    const store = storeOf(storage)
    const pay = tool('pay', { approval: 'ask' })
    const away = new Harness({
      model: scripted([{ error: 'server', message: 'down', retryAfterMs: 60_000 }]),
      store,
      secrets: {},
    })
    onTestFinished(() => away.close())
    await (await away.open({ id: 'away' })).send('Go.')
    await expect
      .poll(() => away.list({ active: true }).then(({ cards }) => cards))
      .toMatchObject([{ session: 'away', status: 'rescheduling', phase: 'waiting' }])
    const asks = new Harness({ model: scripted([{ calls: [{ tool: 'pay' }] }]), tools: [pay], store, secrets: {} })
    onTestFinished(() => asks.close())
    await (await asks.open({ id: 'asks' })).run('Pay.')
    expect((await asks.session('asks', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      status: 'requires_action',
      phase: 'waiting',
    })
    const quiet = new Harness({ model: scripted([]), store, worker: { drives: false }, secrets: {} })
    onTestFinished(() => quiet.close())
    await (await quiet.open({ id: 'new' })).send('Go.')
    expect((await quiet.session('new', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      status: 'running',
      phase: 'building',
      run: null,
    })
    expect((await quiet.list({ active: true })).cards.map(({ session }) => session)).toEqual(['away', 'new'])
  })

  it('B-LOOK-10: who reads pages up to an event of a live run and then a stream after it has every event once (F12)', async () => {
    const store = storeOf(storage)
    const [middle, on] = [gate(), gate()]
    const script: Script = async (_request, n) => {
      if (n === 160) middle.open()
      if (n === 160) await on.opened
      return n < 200 ? { calls: [{ tool: 'look' }] } : 'Done.'
    }
    const limits = { modelRequests: 300 }
    const harness = new Harness({ model: scripted(script), tools: [look], store, breaker: false, limits, secrets: {} })
    onTestFinished(() => harness.close())
    const session = await harness.open()
    const running = session.run('Go.')
    await middle.opened
    const first = await pages(harness, { session: session.id, limit: 500 })
    const seen = first[0]?.events ?? []
    expect([seen.length, first[0]?.next]).toEqual([500, 500])
    const late: number[] = []
    for await (const item of session.stream(undefined, { after: 500 })) {
      if ('seq' in item && item.type !== 'delta') late.push(item.seq)
      on.open()
    }
    await running
    const { events } = await session.events()
    expect([...seqs(seen), ...late]).toEqual(seqs(events))
  })
})

it('B-LOOK-10: so has a reader of another harness, also when the one that drove is closed and another goes on (F12)', async () => {
  const store = memory()
  const [middle, on] = [gate(), gate()]
  let first = true
  const script: Script = async ({ messages }) => {
    const said = messages.filter(({ role }) => role === 'assistant').length
    if (said === 160 && first) {
      first = false
      middle.open()
      await on.opened
    }
    return said < 200 ? { calls: [{ tool: 'look' }] } : 'Done.'
  }
  const options = { tools: [look], store, breaker: false, limits: { modelRequests: 300 }, secrets: {} } as const
  const made = (drives: boolean): Harness => {
    const harness = new Harness({ model: scripted(script), ...options, worker: { drives } })
    onTestFinished(() => harness.close())
    return harness
  }
  const [driver, reader] = [made(true), made(false)]
  const { id } = await driver.open()
  await driver.session(id).send('Go.')
  await middle.opened
  const { events: seen, next } = await reader.session(id, { stored: true }).events({ limit: 500 })
  expect(next).toBe(500)
  const late: number[] = []
  const reading = (async () => {
    for await (const item of reader.session(id).stream(undefined, { after: 500 }))
      if ('seq' in item && item.type !== 'delta') late.push(item.seq)
  })()
  on.open()
  await driver.close()
  await made(true).work({ session: id })
  await reading
  expect([...seqs(seen), ...late]).toEqual(seqs((await reader.session(id).events()).events))
})

it('B-LOOK-10: so has a reader in another process, also over the kill of the one that drives (F12)', async () => {
  const file = makeFile()
  const reader = new Harness({ model: scripted([]), store: open(file), worker: { drives: false }, secrets: {} })
  onTestFinished(() => reader.close())
  const killed = killedAfter(300, (last) => [CHILD, file, String(last)])
  const page = await until(async () => {
    const found = await reader.session('long', { stored: true }).events({ limit: 500 })
    expect(found.next).toBe(500)
    return found
  })
  const late: number[] = []
  for await (const item of reader.session('long').stream(undefined, { after: 500 }))
    if ('seq' in item && item.type !== 'delta') late.push(item.seq)
  expect(await killed).toEqual({ killed: true, said: 'completed' })
  const all = (await pages(reader, { session: 'long', limit: 1_000 })).flatMap(({ events }) => events)
  expect([...seqs(page.events), ...late]).toEqual(seqs(all))
  expect(all.length).toBeGreaterThan(700)
})

it('B-LOOK-8: a damaged session hides no other one: its page says where it is damaged, and it is not among the active', async () => {
  const file = makeFile()
  const made = () => {
    const model = scripted(() => ({ error: 'server', message: 'down', retryAfterMs: 60_000 }))
    return new Harness({ model, store: open(file), secrets: {} })
  }
  const first = made()
  for (const id of ['broken', 'whole']) await (await first.open({ id })).send(`Say something ${id}.`)
  await expect
    .poll(() => first.list({ active: true }).then(({ cards }) => cards))
    .toMatchObject([{ phase: 'waiting' }, { phase: 'waiting' }])
  await first.close()
  damage(file, 'Say something broken')
  const again = made()
  onTestFinished(() => again.close())
  expect((await again.list({ active: true })).cards).toMatchObject([{ session: 'whole' }])
  expect(await again.session('broken', { stored: true }).events()).toMatchObject({
    events: [{ seq: 1 }],
    damaged: { seq: 2 },
    next: null,
  })
  await expect(again.session('broken', { stored: true }).status({ include: ['card'] })).rejects.toMatchObject({
    code: 'session_damaged',
  })
})

it('B-CARD-5: a damaged session is listed without run and phase, and the others have theirs', async () => {
  const file = makeFile()
  const made = () => new Harness({ model: scripted(() => 'Done.'), store: open(file), secrets: {} })
  const first = made()
  for (const id of ['broken', 'whole']) await (await first.open({ id })).run(`Say something ${id}.`)
  await first.close()
  damage(file, 'Say something broken')
  const again = made()
  onTestFinished(() => again.close())
  const [broken, whole] = (await again.list({ order: 'id', limit: 500, runs: true })).cards
  expect(broken).toMatchObject({ session: 'broken' })
  expect(Object.keys(broken ?? {})).not.toEqual(expect.arrayContaining(['run']))
  expect(Object.keys(broken ?? {})).not.toEqual(expect.arrayContaining(['phase']))
  expect(whole).toMatchObject({ session: 'whole', phase: 'resting', run: expect.any(Number) as number })
})

/** The words of this event are others than those that its sum was made of. */
function damage(file: string, words: string): void {
  meddle(file, (db) => db.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
  const raw = readFileSync(file)
  raw.write(words.slice(0, 3).toUpperCase(), raw.indexOf(words))
  writeFileSync(file, raw)
}

it('B-LOOK-6: a closed harness reads nothing', async () => {
  const harness = new Harness({ model: scripted([]), store: memory() })
  await harness.close()
  for (const reads of [
    async () => harness.session('s', { stored: true }).events(),
    async () => harness.session('s', { stored: true }).status(),
    async () => harness.list({ active: true }),
  ])
    await expect(reads()).rejects.toMatchObject({ code: 'harness_closed' })
})
