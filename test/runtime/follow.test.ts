// Following a session within a process: what a reader gets and when, how it ends, and what it leaves as it was. Other processes are
// follow-process.long.test.ts, cards are watch.test.ts.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  type Followed,
  Harness,
  memory,
  type Model,
  scripted,
  type SessionHandle,
  type CompleteStore,
} from '../../src/index.ts'
import type { Event } from '../../src/kernel/event.ts'
import { localLive } from '../../src/live/local-live.ts'
import { storeWith } from '../../sim/store-with.ts'
import { makeFile, meddle, open } from '../stores/folder.ts'
import { until } from '../until.ts'
import { calls, counted, make, moment, STORAGES, storeOf, tool, typesIn, waiting } from './scene.ts'

type Items = AsyncIterator<Followed>

/** So many items, without leaving. */
async function some(items: Items, count: number): Promise<readonly Followed[]> {
  const got: Followed[] = []
  while (got.length < count) {
    const step = await items.next()
    if (step.done) break
    got.push(step.value)
  }
  return got
}

/** Up to the first event of this type. */
async function upTo(items: Items, type: string): Promise<readonly Followed[]> {
  const got: Followed[] = []
  for (;;) {
    const step = await items.next()
    if (step.done) return got
    got.push(step.value)
    if (step.value.type === 'event' && step.value.event.type === type) return got
  }
}

const seqs = (items: readonly Followed[]) => items.flatMap((item) => (item.type === 'event' ? [item.event.seq] : []))
const heard = (items: readonly Followed[]) =>
  items.flatMap((item) => (item.type === 'delta' ? [item.text] : [])).join('')
const kinds = (items: readonly Followed[]) => items.map((item) => (item.type === 'event' ? item.event.type : item.type))
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const code = (error: unknown) => (error as { code?: string }).code
const refusal = (items: Items) => items.next().then(() => 'none', code)

/** Says what the test tells it to, and ends when it is told to. */
function speaker(whole: string) {
  const asked = moment()
  const gate = moment()
  let say = (_text: string): void => {}
  const model: Model = {
    name: 'speaker',
    call: async (_request, context) => {
      say = (text) => context.emit({ kind: 'text', part: 0, text })
      asked.come()
      await gate.here
      const parts = [{ type: 'text', text: whole }] as const
      return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
    },
  }
  return { model, asked: asked.here, say: (text: string) => say(text), end: gate.come }
}

describe.each(STORAGES)('following a session on %s', (storage) => {
  it('B-FOLLOW-1: gives what there is and what comes, once and in order, also when another harness drives it', async () => {
    const store = storeOf(storage)
    const { tool: slow, runs, go } = waiting('slow')
    const driver = make(['Zero.', calls('slow'), calls('look'), 'Done.'], { tools: [slow, tool('look')], store })
    const other = make([], { store, worker: { drives: false } })
    const session = await driver.open()
    await session.run('zero')
    const readers = [session.follow(), other.session(session.id).follow(), session.follow({ after: 3 })]
    const reading = readers.map(async (items) => [
      ...(await upTo(items, 'run.settled')),
      ...(await upTo(items, 'run.settled')),
    ])
    const run = session.run('one')
    await runs.here
    const late = session.follow()
    go()
    await run
    const last = (await typesIn(session)).length
    expect((await Promise.all(reading)).map(seqs)).toEqual([range(1, last), range(1, last), range(4, last)])
    expect(seqs(await some(late, last))).toEqual(range(1, last))
  })

  it('B-FOLLOW-2: a session that rests is left as it is, and following goes on', async () => {
    const store = storeOf(storage)
    const harness = make(['Hello.', 'Again.'], { store })
    const session = await harness.open()
    await session.run('Hi.')
    const before = await store.card(session.id)
    const writes: string[] = []
    const seen = new Proxy(store, {
      get(target, name, outer) {
        if (['commit', 'claim', 'extend', 'release', 'announce', 'expire', 'remove'].includes(String(name)))
          writes.push(String(name))
        const member: unknown = Reflect.get(target, name)
        if (member === target) return outer as unknown
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
    const watcher = make([], { store: seen })
    // Making a harness looks whether its store has them.
    writes.length = 0
    const followed = Array.from({ length: 20 }, () => watcher.session(session.id).follow({ deltas: true }))
    const last = before?.seq ?? 0
    for (const items of followed) expect(seqs(await some(items, last))).toEqual(range(1, last))
    const waits = followed.map((items) => items.next())
    await pause(50)
    expect(writes).toEqual([])
    expect(await store.card(session.id)).toEqual(before)
    await session.send('Go on.')
    for (const next of await Promise.all(waits)) expect(next.value).toMatchObject({ event: { seq: last + 1 } })
    await until(async () => expect((await session.status()).phase).toBe('idle'))
    // One claim for each run that was driven, and this one.
    expect((await store.claim(session.id, 'me', 1_000))?.epoch).toBe(3)
  })

  it('B-FOLLOW-19: readers that have everything get what this process writes without reading the log, each its own copy', async () => {
    const store = storeOf(storage)
    const driver = make(['Zero.', calls('look'), 'One.'], { tools: [tool('look')], store })
    const session = await driver.open()
    await session.run('zero')
    let reads = 0
    const read: CompleteStore['read'] = (...asked) => {
      reads += 1
      return store.read(...asked)
    }
    const watcher = make([], { store: storeWith(store, { read }), worker: { drives: false } })
    const followed = Array.from({ length: 5 }, () => watcher.session(session.id).follow())
    for (const items of followed) await upTo(items, 'run.settled')
    const waits = followed.map(async (items) => {
      const got: Event[] = []
      for (;;) {
        const [item] = await some(items, 1)
        if (item?.type !== 'event') return got
        got.push(structuredClone(item.event))
        Object.assign(item.event, { type: 'changed', seq: 0 })
        if (got.at(-1)?.type === 'run.settled') return got
      }
    })
    await until(() => expect(reads).toBe(10))
    await session.run('one')
    const all = await Promise.all(waits)
    const { events } = await store.read(session.id, 0)
    for (const got of all) expect(got).toEqual(events.slice(-got.length))
    // Not one for each event. On a slow machine each may look once without news.
    expect(reads - 10).toBeLessThan(all.flat().length / 2)
    for (const items of followed) await items.return?.()
  })

  it('B-FOLLOW-6: a reader that is cut off after any event and comes back gets every seq once', async () => {
    const store = storeOf(storage)
    const harness = make([calls('look', 'look'), calls('look'), 'Done.'], { tools: [tool('look')], store })
    const session = await harness.open()
    const got: number[] = []
    const reading = (async () => {
      for (let over = false; !over; ) {
        for await (const item of session.follow({ after: got.at(-1) ?? 0, deltas: true })) {
          if (item.type !== 'event') continue
          got.push(item.event.seq)
          over = item.event.type === 'run.settled'
          break
        }
      }
    })()
    await session.run('Go.')
    await reading
    const last = (await typesIn(session)).length
    expect(got).toEqual(range(1, last))
    for (let after = 0; after < last; after++) {
      const items = session.follow({ after })
      expect(seqs(await some(items, last - after))).toEqual(range(after + 1, last))
      await items.return?.()
    }
  })

  it('B-FOLLOW-7: who comes in the middle of a reply gets one catch-up, then the rest, and nothing after the reply', async () => {
    const { model, asked, say, end } = speaker('Hello, big world.')
    const session = await make(model, { store: storeOf(storage) }).open()
    const early = session.follow({ deltas: true })
    const run = session.run('Say it.')
    const first = await upTo(early, 'model.started')
    await asked
    for (const text of ['Hel', 'lo, ']) {
      say(text)
      expect((await early.next()).value).toMatchObject({ type: 'delta', text })
    }
    const started = seqs(first).at(-1) ?? 0
    const late = session.follow({ deltas: true })
    const back = session.follow({ after: started, deltas: true })
    const plain = session.follow()
    const caught = { type: 'delta', seq: started, part: 0, offset: 0, kind: 'text', text: 'Hello, ' }
    expect((await some(late, started + 1)).at(-1)).toEqual(caught)
    expect(await some(back, 1)).toEqual([caught])
    say('big ')
    expect(await some(late, 1)).toEqual([{ ...caught, offset: 7, text: 'big ' }])
    say('wor')
    say('ld.')
    end()
    await run
    const rest = await upTo(late, 'run.settled')
    expect(kinds(rest)).toEqual(['delta', 'agent.message', 'run.settled'])
    expect(heard(rest)).toBe('world.')
    expect(heard(await upTo(back, 'run.settled'))).toBe('big world.')
    expect(heard(await upTo(early, 'run.settled'))).toBe('big world.')
    expect(kinds(await upTo(plain, 'run.settled'))).not.toContain('delta')
  })

  it('B-FOLLOW-7: what a call prints comes with its call, before its result', async () => {
    const { tool: slow, go } = waiting('slow')
    const printing = {
      ...slow,
      execute: async (...args: Parameters<typeof slow.execute>) => {
        args[1].tell('one ')
        args[1].tell('two')
        return slow.execute(...args)
      },
    }
    const session = await make([calls('slow'), 'Done.'], { tools: [printing], store: storeOf(storage) }).open()
    const items = session.follow({ deltas: true })
    const run = session.run('Go.')
    const before = await upTo(items, 'agent.tool_use')
    const call = before.at(-1)
    const [said] = await some(items, 1)
    const use = call?.type === 'event' && call.event.type === 'agent.tool_use' ? call.event.call : ''
    expect(said).toMatchObject({ type: 'delta', kind: 'output', call: use })
    go()
    await run
    expect(kinds(await upTo(items, 'run.settled')).filter((kind) => kind === 'delta').length).toBeLessThan(2)
  })

  it('B-FOLLOW-8: what a failed attempt said is not said again', async () => {
    let tries = 0
    const model: Model = {
      name: 'breaks',
      call: async (_request, context) => {
        tries += 1
        context.emit({ kind: 'text', part: 0, text: tries === 1 ? 'Hello wor' : 'Hello world.' })
        await pause(30)
        if (tries === 1) return { type: 'failure', class: 'network', message: 'cut', retryable: true, broken: true }
        const parts = [{ type: 'text', text: 'Hello world.' }] as const
        return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
      },
    }
    const session = await make(model, { store: storeOf(storage) }).open()
    const items = session.follow({ deltas: true })
    const run = session.run('Say it.')
    const got = await upTo(items, 'run.settled')
    expect((await run).status).toBe('completed')
    const spoken = got.flatMap((item) => (item.type === 'delta' ? [item] : []))
    expect(spoken.map(({ offset, text }) => ({ offset, text }))).toEqual([
      { offset: 0, text: 'Hello wor' },
      { offset: 0, text: 'Hello world.' },
    ])
    const [first, second] = spoken
    expect(kinds(got).indexOf('model.failed')).toBeGreaterThan(got.indexOf(first as Followed))
    expect(second?.seq).toBeGreaterThan(first?.seq ?? 0)
  })
})

describe('the end of following', () => {
  it('B-FOLLOW-3: comes with the signal, with leaving and with the harness, and nothing stays subscribed', async () => {
    const { store, listening } = counted(memory())
    const harness = new Harness({ model: scripted(['Hello.']), store })
    const session = await harness.open()
    await session.run('Hi.')
    const last = (await typesIn(session)).length
    const stop = new AbortController()
    const stopped = session.follow({ deltas: true, signal: stop.signal })
    const [left, closed, unread, whole] = [
      session.follow({ deltas: true }),
      session.follow(),
      session.follow(),
      session.follow(),
    ]
    for (const items of [stopped, left, closed]) await some(items, last)
    await some(unread, 1)
    const waits = [stopped, left, closed].map((items) => items.next())
    stop.abort()
    expect(await waits[0]).toEqual({ done: true, value: undefined })
    expect(await left.return?.()).toEqual({ done: true, value: undefined })
    expect(await waits[1]).toEqual({ done: true, value: undefined })
    expect(listening()).toBe(2)
    await harness.close()
    expect(await waits[2]).toEqual({ done: true, value: undefined })
    for (const items of [stopped, left, closed, unread, whole]) expect((await items.next()).done).toBe(true)
    expect(listening()).toBe(0)
    expect(() => session.follow()).toThrow(expect.objectContaining({ code: 'harness_closed' }) as Error)
  })

  it('B-FOLLOW-3: one that is aborted before it begins gives nothing', async () => {
    const session = await make(['Hello.']).open()
    expect(await some(session.follow({ signal: AbortSignal.abort() }), 1)).toEqual([])
  })

  it.each(STORAGES)(
    'B-FOLLOW-4: is session_missing when it is removed on %s, also if its id is used again',
    async (storage) => {
      const store = storeOf(storage)
      const harness = make(['Hello.', 'Hello.', 'Hello.', 'Hello.'], { store })
      const session = await harness.open({ id: 'one' })
      await session.run('Hi.')
      const last = (await typesIn(session)).length
      const [waits, again] = [session.follow(), session.follow()]
      for (const items of [waits, again]) await some(items, last)
      const ended = refusal(waits)
      await harness.remove('one')
      expect(await ended).toBe('session_missing')
      const second = await harness.open({ id: 'one' })
      await second.run('Hi.')
      await second.run('Hi again.')
      expect((await typesIn(second)).length).toBeGreaterThan(last)
      await expect(again.next()).rejects.toThrow('Session one was removed.')
      expect(await again.next()).toEqual({ done: true, value: undefined })
    },
  )

  it('B-FOLLOW-4: is session_damaged after the last good event', async () => {
    const file = makeFile()
    const store = open(file)
    const harness = make(['Hello.'], { store })
    const session = await harness.open({ id: 'one' })
    await session.run('Hi.')
    const last = (await typesIn(session)).length
    const damage = "DROP TRIGGER events_keep; UPDATE events SET body = replace(body, 'Hello', 'Jello') WHERE pos = "
    meddle(file, (db) => db.exec(`${damage}${last - 1}`))
    const items = session.follow()
    expect(seqs(await some(items, last - 2))).toEqual(range(1, last - 2))
    await expect(items.next()).rejects.toThrow(`it can be read up to event ${last - 2}.`)
    expect(await items.next()).toEqual({ done: true, value: undefined })
  })

  it('B-FOLLOW-5: a place that there is not, and options that there are not, are refused', async () => {
    const harness = make(['Hello.'])
    const session = await harness.open()
    await session.run('Hi.')
    const last = (await typesIn(session)).length
    const beyond = session.follow({ after: last + 1 })
    await expect(beyond.next()).rejects.toThrow(`has no event ${last + 1}: its last is ${last}.`)
    expect(await refusal(session.follow({ after: 10_000 }))).toBe('cursor_stale')
    expect(await refusal(harness.session('nowhere').follow())).toBe('session_missing')
    expect(await refusal(harness.session('nowhere').follow({ after: 3 }))).toBe('session_missing')
    expect(() => session.follow({ afer: 1 } as object)).toThrow('did you mean "after"?')
    for (const after of [-1, 1.5, '3', Number.NaN])
      expect(() => session.follow({ after } as object)).toThrow('must be a whole number from 0 on')
    expect(() => session.follow({ signal: true } as object)).toThrow('must be an AbortSignal')
    expect((await some(session.follow({ after: last - 1 }), 1)).length).toBe(1)
  })
})

describe('what is kept for a reader', () => {
  /** What was read of the log, by each read. */
  function reads(inner: CompleteStore): {
    readonly store: CompleteStore
    readonly sizes: { events: number; bytes: number }[]
  } {
    const sizes: { events: number; bytes: number }[] = []
    const read: CompleteStore['read'] = async (...asked) => {
      const page = await inner.read(...asked)
      sizes.push({ events: page.events.length, bytes: JSON.stringify(page.events).length })
      return page
    }
    return { store: storeWith(inner, { read }), sizes }
  }

  async function filled(store: CompleteStore, id: string, count: number, chars: number): Promise<SessionHandle> {
    const harness = make([], { store, worker: { drives: false } })
    const session = await harness.open({ id })
    for (let i = 0; i < count; i += 50) {
      const events = Array.from({ length: Math.min(50, count - i) }, (_, n) => ({
        type: 'user.message' as const,
        id: `m${i + n}`,
        parts: [{ type: 'text' as const, text: 'x'.repeat(chars) }],
        when: 'after' as const,
      }))
      await store.commit([{ session: id, lane: 'inbox', events }])
    }
    return session
  }

  it.each(STORAGES)('B-FOLLOW-9: on %s at most 200 events and 1 MiB at once, one event at least', async (storage) => {
    const { store, sizes } = reads(storeOf(storage))
    const small = await filled(store, 'small', 450, 10)
    sizes.length = 0
    const items = small.follow()
    await some(items, 1)
    expect(sizes).toHaveLength(1)
    expect(seqs(await some(items, 450))).toEqual(range(2, 451))
    expect(Math.max(...sizes.map(({ events }) => events))).toBe(200)
    const large = await filled(store, 'large', 8, 300_000)
    sizes.length = 0
    expect(seqs(await some(large.follow(), 9))).toEqual(range(1, 9))
    expect(Math.max(...sizes.map(({ bytes }) => bytes))).toBeLessThan(1024 * 1024 + 1_000)
    const huge = await filled(store, 'huge', 2, 1_500_000)
    sizes.length = 0
    expect(seqs(await some(huge.follow(), 3))).toEqual(range(1, 3))
    expect(sizes.every(({ events }) => events <= 1)).toBe(true)
  })

  it.each(STORAGES)(
    'B-FOLLOW-9: on %s what is said meanwhile is merged, and let go when it is too much',
    async (storage) => {
      const { model, asked, say, end } = speaker('')
      const session = await make(model, { store: storeOf(storage) }).open()
      const items = session.follow({ deltas: true })
      const run = session.run('Say it.')
      const before = await upTo(items, 'model.started')
      await asked
      say('a')
      expect(heard(await some(items, 1))).toBe('a')
      for (let i = 0; i < 1_000; i++) say('b'.repeat(10))
      const merged = await some(items, 1)
      expect(merged).toMatchObject([{ type: 'delta', seq: seqs(before).at(-1), offset: 1 }])
      expect(heard(merged)).toBe('b'.repeat(10_000))
      for (let i = 0; i < 100; i++) say('c'.repeat(10_000))
      expect(await some(items, 1)).toMatchObject([{ offset: 10_001, text: 'c'.repeat(1_000_000) }])
      say('d')
      expect(await some(items, 1)).toMatchObject([{ offset: 1_010_001, text: 'd' }])
      for (let i = 0; i < 100; i++) say('e'.repeat(10_000))
      end()
      await run
      // The call is over: its event has what was let go.
      expect(kinds(await upTo(items, 'run.settled'))).toEqual(['agent.message', 'run.settled'])
    },
  )

  it('B-FOLLOW-8: what an attempt says that is over at the place where a reader begins is not given', async () => {
    const store = memory()
    const { model, asked, end } = speaker('Hello.')
    const session = await make(model, { store }).open()
    const first = session.run('Say it.')
    await asked
    end()
    await first
    const last = (await typesIn(session)).length
    const started = (await session.events()).events.findLast(({ type }) => type === 'model.started')?.seq ?? 0
    localLive(store).publish(session.id, started, { kind: 'text', part: 0, text: 'I am still here.' })
    const over = session.follow({ after: last, deltas: true })
    const next = over.next()
    expect(kinds(await some(session.follow({ after: started, deltas: true }), 3))).toEqual([
      'delta',
      'agent.message',
      'run.settled',
    ])
    await session.send('Again.')
    expect((await next).value).toMatchObject({ type: 'event', event: { seq: last + 1 } })
    expect(heard(await upTo(over, 'run.settled'))).toBe('')
  })

  it.each(STORAGES)('B-FOLLOW-18: harnesses on one store, %s, hear each other', async (storage) => {
    const store = storeOf(storage)
    const { model, asked, say, end } = speaker('Hello.')
    const session = await make(model, { store }).open()
    const other = make([], { store, worker: { drives: false } })
    const run = session.run('Say it.')
    await asked
    say('Hel')
    const items = other.session(session.id).follow({ deltas: true })
    expect(heard(await some(items, 5))).toBe('Hel')
    const third = make([], { store, worker: { drives: false } })
    await third.close()
    say('lo.')
    expect(heard(await some(items, 1))).toBe('lo.')
    end()
    await run
  })
})

it('B-FOLLOW-17: the program of the guide runs as it stands there', () => {
  const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
  const [, code = ''] = /## Following\n[\s\S]*?```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/streaming.md')) ?? []
  const example = text('./guide-follow.ts')
  expect(code.replace("'terret'", "'../../src/index.ts'")).toBe(example.slice(example.indexOf('\n') + 1))
  const script = fileURLToPath(new URL('../../.build/test/runtime/guide-follow.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' }).trim().split('\n')).toEqual([
    '1 session.created',
    '2 user.message',
    '3 run.started',
    '4 model.started',
    '5 agent.message',
    '6 run.settled',
    'Tulips, and lavender.',
    'garden idle completed',
  ])
})
