// What is bounded by default, and what happens at each bound. Real stores, scripted models.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  output,
  scripted,
  sqlite,
  type CompleteStore,
} from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

function make(options: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: scripted(() => 'Done.'), ...options })
  open.push(harness)
  return harness
}

const quiet = defineTool({
  name: 'ask',
  description: 'd',
  input: z.object({}),
  effect: 'read',
  approval: 'ask',
  execute: () => 'ok',
})

describe('what waits in a session', () => {
  it('B-BOUND-1: a thousand messages may wait; the next is refused with a code, one that was sent before is known, and a stop is always heard', async () => {
    const store = memory()
    const sender = make({ store, worker: { drives: false } })
    const session = await sender.open({ id: 's' })
    await session.send('first', { id: 'mine' })
    for (let i = 1; i < 1_000; i++) await session.send(`message ${i}`)
    await expect(session.send('one more')).rejects.toMatchObject({ code: 'too_many' })
    await expect(session.send([{ type: 'message', input: 'one more' }])).rejects.toMatchObject({ code: 'too_many' })
    expect(await session.send('first', { id: 'mine' })).toMatchObject({ duplicate: true })
    expect((await session.events({ after: 1_000 })).events).toHaveLength(1)
    await session.interrupt()
    await make({ store }).work({ session: 's' })
    expect(await session.send('again')).toMatchObject({ duplicate: false })
  })

  it('B-BOUND-2: of one reply at most 100 calls wait for people; the others are told so, and nothing of them is asked', async () => {
    const calls = Array.from({ length: 130 }, () => ({ tool: 'ask' }))
    const { pending, calls: made } = await make({ model: scripted([{ calls }]), tools: [quiet] }).run('Go.')
    expect(pending).toHaveLength(100)
    expect(made.filter(({ status }) => status === 'error')).toHaveLength(30)
    expect(made[129]).toMatchObject({ content: expect.stringContaining('at most 100 calls that wait') as string })
  })

  it('B-BOUND-3: one reply starts at most 50 children', async () => {
    const calls = Array.from({ length: 60 }, (_, i) => ({ tool: 'subagent', args: { task: `Task ${i}` } }))
    const model = scripted(({ session }, taken) => (!session.includes('~') && taken === 0 ? { calls } : 'Done.'))
    const harness = make({ model, subagents: true })
    const { calls: made, sessionId } = await harness.run('Go.')
    expect(made.filter(({ status }) => status === 'ok')).toHaveLength(50)
    expect(made[59]).toMatchObject({ content: expect.stringContaining('at most 50 subagents') as string })
    expect((await harness.list({ order: 'id', limit: 500, root: sessionId })).cards).toHaveLength(51)
  })

  it('B-BOUND-4: a hundred wakes may wait in a session; one more is not kept, and a note says so', async () => {
    const follows = Array.from({ length: 130 }, (_, i) => {
      return { type: 'wake.scheduled', due: 4_000_000_000_000, reason: 'later', key: `k${i}` } as const
    })
    const plan = defineTool({
      name: 'plan',
      description: 'd',
      input: z.object({}),
      effect: 'read',
      execute: () => output({ content: 'ok', follows }),
    })
    const harness = make({
      model: scripted([{ calls: [{ tool: 'plan' }] }, 'Done.']),
      tools: [plan],
      limits: { wakes: 200 },
    })
    const { sessionId } = await harness.run('Go.')
    expect((await harness.list({ order: 'id', limit: 500 })).cards[0]).toMatchObject({ wakes: 100 })
    const { events } = await harness.session(sessionId).events()
    expect(events.filter((event) => event.type === 'note.added' && event.text.includes('not kept'))).toHaveLength(30)
  })

  it('B-BOUND-5: a message or a session takes at most 100 files', async () => {
    const file = (i: number) => ({ type: 'file', media: 'text/plain', data: 'aGk=', name: `f${i}` }) as const
    const files = Array.from({ length: 101 }, (_, i) => file(i))
    const harness = make()
    await expect(harness.run(files)).rejects.toMatchObject({ code: 'too_many' })
    await expect(harness.open({ attachments: files })).rejects.toMatchObject({ code: 'too_many' })
    expect(await harness.run(files.slice(1))).toMatchObject({ status: 'completed' })
  })
})

describe('a harness that drives nothing', () => {
  it('B-BOUND-6: reads for each look only what is new in the log', async () => {
    const store = memory()
    const harness = make({ store, worker: { drives: false } })
    const session = await harness.open({ id: 's' })
    for (let i = 0; i < 500; i++) await session.send(`message ${i}`)
    let read = 0
    const counted: CompleteStore['read'] = async (...args) => {
      const page = await store.read(...args)
      read += page.events.length
      return page
    }
    const counting = storeWith(store, { read: counted })
    const watching = make({ store: counting, worker: { drives: false } })
    expect(await watching.work({ session: 's' })).toEqual({ type: 'contended' })
    expect(read).toBe(501)
    read = 0
    for (let i = 0; i < 20; i++) {
      await watching.session('s').send(`more ${i}`)
      await watching.work({ session: 's' })
    }
    expect(read).toBe(20 + 20)
  })

  it('B-BOUND-6: a session that was removed and made again is read anew', async () => {
    const store = memory()
    const harness = make({ store, worker: { drives: false } })
    await (await harness.open({ id: 's' })).send('one')
    expect(await harness.work({ session: 's' })).toEqual({ type: 'contended' })
    await harness.remove('s')
    await expect(harness.work({ session: 's' })).rejects.toMatchObject({ code: 'session_missing' })
    await harness.open({ id: 's' })
    expect(await harness.work({ session: 's' })).toMatchObject({ type: 'rested' })
  })
})

describe('sessions of a store', () => {
  it('B-HARNESS-19: `list` gives all sessions in pages, as many as it is told to from where it is told to', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-bounds-'))
    const file = sqlite(join(folder, 's.db'))
    for (const store of [memory(), file]) {
      const harness = make({ store })
      const ids = Array.from({ length: 620 }, (_, i) => `s${String(i).padStart(4, '0')}`)
      await Promise.all(ids.map((id) => harness.open({ id })))
      const first = await harness.list({ order: 'id', limit: 500 })
      const rest = await harness.list({ order: 'id', limit: 500, cursor: first.next ?? '' })
      expect([...first.cards, ...rest.cards].map(({ session }) => session)).toEqual(ids)
      expect(rest.next).toBeNull()
      expect((await harness.list()).cards).toHaveLength(50)
      expect(
        (await harness.list({ order: 'id', limit: 500, cursor: 's0600' })).cards.map(({ session }) => session),
      ).toEqual(ids.slice(601))
      expect(
        (await harness.list({ order: 'id', cursor: 's0600', limit: 2 })).cards.map(({ session }) => session),
      ).toEqual(['s0601', 's0602'])
      expect((await harness.list({ order: 'id', limit: 500, status: 'requires_action' })).cards).toEqual([])
    }
    await file.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('B-HARNESS-20: `remove` forgets a session, and what is driven or read by a fork stays', async () => {
    const harness = make()
    const { sessionId } = await harness.run('Go.')
    const fork = await harness.session(sessionId).fork()
    await expect(harness.remove(sessionId)).rejects.toMatchObject({ code: 'conflict' })
    expect(await harness.remove(fork.id)).toMatchObject([{ session: fork.id, by: 'the host' }])
    expect(await harness.remove(sessionId, { by: 'ana' })).toMatchObject([{ session: sessionId, by: 'ana' }])
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
    await expect(harness.session(sessionId).run('More.')).rejects.toMatchObject({ code: 'session_missing' })
  })

  it('B-BOUND-7: a store in memory forgets the oldest settled sessions when it is full, never one that waits, and refuses when all wait', async () => {
    const store = memory({ sessionsMax: 3 })
    const harness = make({
      store,
      model: scripted(({ messages }) =>
        JSON.stringify(messages).includes('wait') ? { calls: [{ tool: 'ask' }] } : 'Done.',
      ),
      tools: [quiet],
    })
    const waits = (await harness.run('wait')).sessionId
    const settled: string[] = []
    for (let i = 0; i < 5; i++) settled.push((await harness.run('go')).sessionId)
    const left = (await harness.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session)
    expect(left.toSorted()).toEqual([waits, ...settled.slice(-2)].toSorted())
    expect(await harness.run('wait')).toMatchObject({ status: 'requires_action' })
    expect(await harness.run('wait')).toMatchObject({ status: 'requires_action' })
    await expect(harness.run('go')).rejects.toMatchObject({ code: 'too_many' })
    await harness.remove(waits)
    expect(await harness.run('go')).toMatchObject({ status: 'completed' })
  })

  it('B-BOUND-7: the log that a fork reads is not forgotten while the fork is there', async () => {
    const harness = make({ store: memory({ sessionsMax: 3 }) })
    const { sessionId } = await harness.run('go')
    const fork = await harness.session(sessionId).fork()
    for (let i = 0; i < 3; i++) await harness.run('go')
    const left = (await harness.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session)
    expect(left.includes(sessionId) || !left.includes(fork.id)).toBe(true)
  })
})
