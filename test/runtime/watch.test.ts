// Cards of sessions as they change, within a process. Other processes are follow-process.long.test.ts.
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type CardChange, Harness, memory, scripted } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { calls, make, STORAGES, storeOf, tool, waiting } from './scene.ts'

type Changes = AsyncIterator<CardChange>

/** Up to the first change that is meant. */
async function upTo(changes: Changes, is: (change: CardChange) => boolean): Promise<readonly CardChange[]> {
  const got: CardChange[] = []
  for (;;) {
    const step = await changes.next()
    if (step.done) return got
    got.push(step.value)
    if (is(step.value)) return got
  }
}

const named = (changes: readonly CardChange[]) =>
  changes.map((change) => (change.type === 'card' ? change.card.session : `gone ${change.session}`))
const isOf = (session: string, status?: string) => (change: CardChange) =>
  change.type === 'card' && change.card.session === session && (status ?? change.card.status) === change.card.status

describe.each(STORAGES)('watching cards on %s', (storage) => {
  it('B-FOLLOW-12: gives what changes after the call, as list would, and what is gone', async () => {
    const store = storeOf(storage)
    const { tool: slow, runs, go } = waiting('slow')
    const harness = make([calls('slow'), 'Done.'], { store, tools: [slow] })
    const other = make([], { store, worker: { drives: false } })
    await harness.open({ id: 'before' })
    const [own, others] = [harness.watch(), other.watch()]
    const session = await harness.open({ id: 'one' })
    const run = session.run('Go.')
    await runs.here
    for (const changes of [own, others]) {
      const got = await upTo(changes, isOf('one', 'running'))
      expect(new Set(named(got))).toEqual(new Set(['one']))
    }
    go()
    await run
    const [card] = (await harness.list({ order: 'id', limit: 500, cursor: 'before' })).cards
    for (const changes of [own, others])
      expect((await upTo(changes, (change) => change.type === 'card' && change.card.outcome !== null)).at(-1)).toEqual({
        type: 'card',
        card,
      })
    await harness.remove('before')
    await harness.remove('one')
    for (const changes of [own, others])
      expect(
        named(await upTo(changes, ({ type, ...of }) => type === 'gone' && 'session' in of && of.session === 'one')),
      ).toEqual(expect.arrayContaining(['gone before', 'gone one']))
  })

  it('B-FOLLOW-12: with a status, a session that has another one is gone, once', async () => {
    const harness = make(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'Done.' : calls('ask')), {
      store: storeOf(storage),
      tools: [tool('ask', { approval: 'always' })],
    })
    const changes = harness.watch({ status: 'requires_action' })
    const session = await harness.open({ id: 'one' })
    await session.run('Go.')
    const [asked] = await harness.pending()
    expect((await upTo(changes, isOf('one'))).at(-1)).toMatchObject({ card: { asks: [asked?.callId] } })
    await session.decide({ ...asked, callId: asked?.callId ?? '', allow: true, by: 'ana' })
    await session.run()
    expect(named(await upTo(changes, ({ type }) => type === 'gone'))).toEqual(['gone one'])
    await session.run('Again.')
    expect(named(await upTo(changes, isOf('one')))).toEqual(['one'])
  })

  it('B-FOLLOW-13: a slow reader gets the newest card of each session', async () => {
    const harness = make(() => 'Hello.', { store: storeOf(storage) })
    const changes = harness.watch()
    const sessions = await Promise.all(['a', 'b', 'c'].map((id) => harness.open({ id })))
    for (let i = 0; i < 5; i++) await Promise.all(sessions.map((session) => session.run('Hi.')))
    const cards = (await harness.list({ order: 'id', limit: 500 })).cards
    const got: CardChange[] = []
    while (got.length < 3) got.push(...(await upTo(changes, () => true)))
    expect(
      got.toSorted((a, b) =>
        named([a])
          .join()
          .localeCompare(named([b]).join()),
      ),
    ).toEqual(cards.map((card) => ({ type: 'card', card })))
    const quiet = changes.next()
    const silence = Symbol('silence')
    expect(await Promise.race([quiet, pause(150, silence)])).toBe(silence)
    await changes.return?.()
    expect((await quiet).done).toBe(true)
  })

  it('B-FOLLOW-13: what a child costs makes the cards above it new', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const harness = make(
      ({ messages }) => {
        const [first] = messages
        const isChild = JSON.stringify(first).includes('the small part')
        if (messages.at(-1)?.role === 'tool') return 'Done.'
        if (isChild) return { ...calls('slow'), cost: 500 }
        return { calls: [{ tool: 'subagent', args: { task: 'the small part' } }], cost: 7 }
      },
      { store: storeOf(storage), tools: [slow], subagents: true },
    )
    const changes = harness.watch()
    const run = (await harness.open({ id: 'top' })).run('Go.')
    await runs.here
    // The parent only waits: its own log does not grow.
    const paid = (change: CardChange): boolean =>
      isOf('top')(change) && 'card' in change && change.card.treeCost === 507
    expect((await upTo(changes, paid)).at(-1)).toMatchObject({ card: { cost: 7, treeCost: 507 } })
    go()
    await run
  })

  it('B-FOLLOW-15: with labels, no other session is named, also when one is removed', async () => {
    const harness = make(() => 'Hello.', { store: storeOf(storage) })
    const where = { tenant: 'acme' }
    await harness.open({ id: 'old', labels: where })
    await harness.open({ id: 'old-other', labels: { tenant: 'other' } })
    const changes = harness.watch({ where })
    const first = changes.next()
    await harness.open({ id: 'new-other', labels: { tenant: 'other' } })
    await (await harness.open({ id: 'new', labels: where })).run('Hi.')
    await harness.session('new-other').run('Hi.')
    expect((await first).value).toMatchObject({ card: { session: 'new' } })
    for (const id of ['old-other', 'new-other', 'old', 'new']) await harness.remove(id)
    const got: string[] = []
    while (!['gone old', 'gone new'].every((name) => got.includes(name)))
      got.push(...named(await upTo(changes, ({ type }) => type === 'gone')))
    expect(got.filter((name) => name.includes('other'))).toEqual([])
  })
})

describe('the end of watching', () => {
  it('B-FOLLOW-3: comes with the signal and with the harness, also for one that was never read', async () => {
    const inner = memory()
    let watching = 0
    const store = storeWith(inner, {
      watchCards: (listener) => {
        const leave = inner.watchCards(listener)
        watching += 1
        let left = false
        return () => {
          if (!left) watching -= 1
          left = true
          leave()
        }
      },
    })
    const harness = new Harness({ model: scripted(['Hello.']), store })
    const stop = new AbortController()
    const stopped = harness.watch({ signal: stop.signal })
    const unread = harness.watch()
    const waits = stopped.next()
    expect(watching).toBe(2)
    stop.abort()
    expect((await waits).done).toBe(true)
    expect(watching).toBe(1)
    await harness.close()
    expect(watching).toBe(0)
    expect((await unread.next()).done).toBe(true)
    expect(() => harness.watch()).toThrow(expect.objectContaining({ code: 'harness_closed' }) as Error)
  })

  it('B-FOLLOW-5: options that there are not are refused', async () => {
    const harness = make([])
    expect(() => harness.watch({ stats: 'idle' } as object)).toThrow('did you mean "status"?')
    expect(() => harness.watch({ status: 'runing' } as object)).toThrow('did you mean "running"?')
    expect(() => harness.watch({ newest: true } as object)).toThrow('Unknown option "newest" of watch')
  })
})
