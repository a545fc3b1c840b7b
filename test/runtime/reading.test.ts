// Reading what runs do without driving them: pages of events, how a session stands, and which sessions are at work.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, type Event, type EventPage, Harness, memory, type Script, scripted } from '../../src/index.ts'
import { STORAGES, storeOf } from '../models/hosted-stage.ts'
import { makeFile, meddle, open } from '../stores/folder.ts'
import { ask, family, gate, report, tool, use } from './children-stage.ts'
import { killedAfter } from './killed.ts'

/** Compiled by `npm run build:all`, which the tests begin with. */
const CHILD = fileURLToPath(new URL('../../.build/test/runtime/child-reading.js', import.meta.url))

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
})

async function pages(harness: Harness, filter: Parameters<Harness['events']>[0]): Promise<readonly EventPage[]> {
  const all: EventPage[] = []
  for (let after = filter.after ?? 0; ; ) {
    const page = await harness.events({ ...filter, after })
    all.push(page)
    if (page.next === null) return all
    after = page.next
  }
}

const seqs = (events: readonly Event[]): readonly number[] => events.map(({ seq }) => seq)
const upTo = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i + 1)

describe.each(STORAGES)('pages of events, on %s', (storage) => {
  it('B-LOOK-6: a log is read in pages of 200, or of 1 to 1,000; the last page has no next, also if it is full; what there is not is an empty page (AC-96, F10)', async () => {
    const store = storeOf(storage)
    const harness = new Harness({ model: scripted([]), store, drives: false, secrets: {} })
    onTestFinished(() => harness.close())
    const session = await harness.open({ id: 's' })
    for (let i = 0; i < 999; i += 111)
      await session.steer(Array.from({ length: 111 }, () => ({ type: 'resume' as const })))
    const found = await pages(harness, { session: 's' })
    expect(found.map(({ events, next }) => [events.length, next])).toEqual([
      [200, 200],
      [200, 400],
      [200, 600],
      [200, 800],
      [200, null],
    ])
    expect(seqs(found.flatMap(({ events }) => events))).toEqual(upTo(1_000))
    expect(await harness.events({ session: 's', limit: 0 })).toMatchObject({ events: [{ seq: 1 }], next: 1 })
    const whole = await harness.events({ session: 's', limit: 5_000 })
    expect([whole.events.length, whole.next]).toEqual([1_000, null])
    await session.steer([{ type: 'resume' }])
    const most = await harness.events({ session: 's', limit: 5_000 })
    expect([most.events.length, most.next]).toEqual([1_000, 1_000])
    const nothing = { events: [], next: null }
    for (const filter of [{ session: 'nobody' }, { session: 's', after: 1_001 }, { session: 's', after: 9_999 }])
      expect(await harness.events(filter)).toEqual(nothing)
    for (const limit of [-1, 1.5, Number.NaN, '5' as never])
      await expect(harness.events({ session: 's', limit })).rejects.toThrow(/"limit"/)
    for (const after of [-1, 0.5, Number.NaN])
      await expect(harness.events({ session: 's', after })).rejects.toThrow(/"after"/)
    await expect(harness.events({} as never)).rejects.toThrow(/"session"/)
    await expect(harness.events({ session: 's', form: 1 } as never)).rejects.toThrow(/"form"/)
  })

  it('B-LOOK-7: the events of one run are those from its start to its end, in pages too (AC-96)', async () => {
    const script: Script = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { calls: [{ tool: 'look' }, { tool: 'look' }] }
    const store = storeOf(storage)
    const harness = new Harness({ model: scripted(script), tools: [look], store, secrets: {} })
    onTestFinished(() => harness.close())
    const session = await harness.open()
    for (const text of ['One.', 'Two.', 'Three.']) await session.run(text)
    const { events } = await session.read()
    const starts = events.filter(({ type }) => type === 'run.started').map(({ seq }) => seq)
    const ends = events.filter(({ type }) => type === 'run.settled').map(({ seq }) => seq)
    expect([starts.length, ends.length]).toEqual([3, 3])
    for (const [i, run] of starts.entries()) {
      const end = ends[i] ?? 0
      for (const limit of [1, 2, 1_000]) {
        const found = (await pages(harness, { session: session.id, run, limit })).flatMap((page) => page.events)
        expect(seqs(found)).toEqual(seqs(events).filter((seq) => seq >= run && seq <= end))
      }
      const past = await harness.events({ session: session.id, run, after: end })
      expect(past).toEqual({ events: [], next: null })
      expect(await harness.events({ session: session.id, run: run + 1 })).toEqual({ events: [], next: null })
    }
    expect(await harness.events({ session: session.id, run: 9_999 })).toEqual({ events: [], next: null })
    expect(await harness.events({ session: 'nobody', run: 2 })).toEqual({ events: [], next: null })
    expect(await harness.status(session.id)).toMatchObject({ run: starts[2], phase: 'resting', status: 'idle' })
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
    expect(await harness.active()).toEqual([])
    const running = session.run('Go.')
    await inside.opened
    const active = await harness.active()
    const [parent, child] = active
    expect(active).toHaveLength(2)
    expect(parent).toMatchObject({ session: 'top', parent: null, root: 'top', status: 'running', phase: 'waiting' })
    expect(child).toMatchObject({ parent: 'top', root: 'top', status: 'running', phase: 'tools' })
    expect(parent?.run).toBeGreaterThan(0)
    const id = child?.session ?? ''
    expect(await harness.events({ session: id, run: child?.run ?? 0, limit: 1 })).toMatchObject({
      events: [{ type: 'run.started' }],
    })
    expect(await harness.status('top')).toEqual(parent)
    expect(await harness.status(id)).toEqual(child)
    expect(await harness.active({ root: 'top' })).toEqual(active)
    expect(await harness.active({ parent: 'top' })).toEqual([child])
    for (const filter of [{ root: 'idle' }, { parent: id }, { parent: 'nobody' }, { root: 'top', parent: 'idle' }])
      expect(await harness.active(filter)).toEqual([])
    // It reads and drives nothing: the card of the parent stays as it is.
    expect(await harness.list({ status: 'running' })).toHaveLength(1)
    on.open()
    expect((await running).status).toBe('completed')
    expect(await harness.active()).toEqual([])
    expect(await harness.status('top')).toMatchObject({ status: 'idle', phase: 'resting', run: parent?.run })
    expect(await harness.status('idle')).toMatchObject({ run: null, phase: 'resting' })
    expect(await harness.status('nobody')).toBeNull()
    await expect(harness.active({ roots: 'x' } as never)).rejects.toThrow(/"roots".*"root"/)
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
      .poll(() => away.active())
      .toMatchObject([{ session: 'away', status: 'rescheduling', phase: 'waiting' }])
    const asks = new Harness({ model: scripted([{ calls: [{ tool: 'pay' }] }]), tools: [pay], store, secrets: {} })
    onTestFinished(() => asks.close())
    await (await asks.open({ id: 'asks' })).run('Pay.')
    expect(await asks.status('asks')).toMatchObject({ status: 'requires_action', phase: 'waiting' })
    const quiet = new Harness({ model: scripted([]), store, drives: false, secrets: {} })
    onTestFinished(() => quiet.close())
    await (await quiet.open({ id: 'new' })).send('Go.')
    expect(await quiet.status('new')).toMatchObject({ status: 'running', phase: 'building', run: null })
    expect((await quiet.active()).map(({ session }) => session)).toEqual(['away', 'new'])
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
    const { events } = await session.read()
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
    const harness = new Harness({ model: scripted(script), ...options, drives })
    onTestFinished(() => harness.close())
    return harness
  }
  const [driver, reader] = [made(true), made(false)]
  const { id } = await driver.open()
  await driver.session(id).send('Go.')
  await middle.opened
  const { events: seen, next } = await reader.events({ session: id, limit: 500 })
  expect(next).toBe(500)
  const late: number[] = []
  const reading = (async () => {
    for await (const item of reader.session(id).stream(undefined, { after: 500 }))
      if ('seq' in item && item.type !== 'delta') late.push(item.seq)
  })()
  on.open()
  await driver.close()
  await made(true).wake(id)
  await reading
  expect([...seqs(seen), ...late]).toEqual(seqs((await reader.session(id).read()).events))
})

it('B-LOOK-10: so has a reader in another process, also over the kill of the one that drives (F12)', async () => {
  const file = makeFile()
  const reader = new Harness({ model: scripted([]), store: open(file), drives: false, secrets: {} })
  onTestFinished(() => reader.close())
  const killed = killedAfter(300, (last) => [CHILD, file, String(last)])
  const page = await vi.waitFor(
    async () => {
      const found = await reader.events({ session: 'long', limit: 500 })
      expect(found.next).toBe(500)
      return found
    },
    { timeout: 30_000, interval: 20 },
  )
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
  await expect.poll(() => first.active()).toMatchObject([{ phase: 'waiting' }, { phase: 'waiting' }])
  await first.close()
  meddle(file, (db) => db.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
  const raw = readFileSync(file)
  raw.write('SAY', raw.indexOf('Say something broken'))
  writeFileSync(file, raw)
  const again = made()
  onTestFinished(() => again.close())
  expect(await again.active()).toMatchObject([{ session: 'whole' }])
  expect(await again.events({ session: 'broken' })).toMatchObject({
    events: [{ seq: 1 }],
    damaged: { seq: 2 },
    next: null,
  })
  await expect(again.status('broken')).rejects.toMatchObject({ code: 'session_damaged' })
})

it('B-LOOK-6: a closed harness reads nothing', async () => {
  const harness = new Harness({ model: scripted([]), store: memory() })
  await harness.close()
  for (const reads of [harness.events({ session: 's' }), harness.status('s'), harness.active()])
    await expect(reads).rejects.toMatchObject({ code: 'harness_closed' })
})
