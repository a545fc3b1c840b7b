// The tracer over real stores and real runs: what is exported when, what is lost, and that no run waits for it.
import { describe, expect, it } from 'vitest'
import { memory, type Script, type CompleteStore } from '../../src/index.ts'
import { readTree, type Sink, type Span, spansOf, Tracer, tracing } from '../../src/tracing/index.ts'
import { FakeClock, settled } from '../models/fake-clock.ts'
import { broken, Kept, lastRun, stage, tracerOn } from './stage.ts'
import { drawn } from './tale.ts'

describe('a settled run', () => {
  it('B-TRACE-14: is exported once, as a whole tree, when its root has settled (AC-56)', async () => {
    const [sink, other] = [new Kept(), new Kept()]
    const set = stage(family(null), { subagents: true, tracing: ({ store }) => tracerOn(store, [sink, other]) })
    const root = await set.run()
    await set.harness.close()
    expect(sink.batches).toHaveLength(1)
    const spans = sink.batches[0] ?? []
    const child = ['  execute_tool subagent', '    invoke_agent subagent', '      chat']
    expect(drawn(spans)).toEqual(['invoke_agent default', '  chat', ...child, ...child, ...child, '  chat'])
    for (const span of spans.filter((one) => one.name === 'invoke_agent subagent')) {
      const above = spans.find(({ spanId }) => spanId === span.parentId)
      expect(span.attributes['gen_ai.conversation.id']).toBe(`${root}~${String(above?.attributes['terret.call'])}`)
    }
    expect(JSON.stringify(other.batches)).toBe(JSON.stringify(sink.batches))
    expect(JSON.stringify(spansOf(await readTree(set.store, root)))).toBe(JSON.stringify(spans))
  })

  it('B-TRACE-14: of a child, while its root works, exports nothing', async () => {
    const gate = new Gate()
    const set = stage(family(gate), { subagents: true })
    const sink = new Kept()
    const tracer = tracerOn(set.store, [sink])
    const session = await set.harness.open()
    const done = session.run('go')
    const [first = ''] = await working(set.store, session.id)
    await set.harness.session(first).interrupt()
    gate.open(first)
    await settles(set.store, first)
    await set.tell(tracer, first)
    await tracer.flush()
    expect(tracer.stats).toEqual([{ sink: 'kept', exported: 0, dropped: 0, failed: 0 }])
    gate.open()
    expect((await done).status).toBe('completed')
    await set.harness.close()
  })

  it.each([
    ['goes on', 'before', 4],
    ['goes on', 'after', 4],
    ['stands still', 'before', 4],
    ['stands still', 'after', 1],
  ])(
    'B-TRACE-14: of a child that settles after its root is exported once too, as the clock %s and the root is read %s that',
    async (time, when, exports) => {
      const [gate, clock] = [new Gate(), new FakeClock()]
      const store = memory({ clock })
      const set = stage(family(gate), { subagents: true, store, system: { clock } })
      const sink = new Kept()
      const tracer = tracerOn(store, [sink], new FakeClock())
      const session = await set.harness.open()
      await session.send('go')
      const children = await working(store, session.id)
      await session.interrupt()
      await settles(store, session.id)
      await set.tell(tracer, session.id)
      if (when === 'before') await tracer.flush()
      if (time === 'goes on') clock.advance(5)
      gate.open()
      for (const child of children) await settles(store, child)
      for (const child of children) await set.tell(tracer, child)
      await tracer.flush()
      expect(sink.batches).toHaveLength(exports)
      const spans = sink.batches.flat()
      const all = spansOf(await readTree(store, session.id))
      expect(spans.map(({ spanId }) => spanId).toSorted()).toEqual(all.map(({ spanId }) => spanId).toSorted())
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
      await set.harness.close()
    },
  )

  it('B-TRACE-15: delays no run: the call returns before anything is read, also when the sink never answers', async () => {
    const set = stage()
    let reads = 0
    const store = overheard(set.store, async () => {
      reads += 1
    })
    const stuck = new Kept()
    stuck.hold = new Promise(() => {})
    const tracer = tracerOn(store, [stuck])
    const session = await set.run()
    const run = await lastRun(set.store, session)
    expect(tracer.settled(session, run)).toBe(undefined)
    expect(reads).toBe(0)
    expect((await set.harness.run('another')).status).toBe('completed')
    await tracer.close(1)
    expect(tracer.stats).toEqual([{ sink: 'kept', exported: 0, dropped: 0, failed: 1 }])
    await set.harness.close()
  })

  it('B-TRACE-15: a slow sink does not hold another one back', async () => {
    const set = stage()
    const [slow, quick] = [new Kept('slow'), new Kept('quick')]
    slow.hold = new Promise(() => {})
    const arrived = new Promise<void>((resolve) => {
      const sink: Sink = { name: 'quick', export: async () => resolve(), close: () => quick.close() }
      const tracer = tracerOn(set.store, [slow, sink])
      void set.run().then((session) => set.tell(tracer, session))
    })
    await arrived
    expect(slow.batches).toEqual([])
    await set.harness.close()
  })
})

describe('what is lost', () => {
  it('B-TRACE-16: a full queue drops and counts; the log keeps everything, so the trace can be made again (AC-89)', async () => {
    const set = stage()
    const sink = new Kept()
    let release = (): void => {}
    sink.hold = new Promise((resolve) => {
      release = resolve
    })
    const clock = new FakeClock()
    const tracer = new Tracer({ store: set.store, sinks: [sink], queueMax: 2, clock })
    const sessions = await Promise.all([1, 2, 3, 4, 5].map(() => set.run()))
    for (const session of sessions) await set.tell(tracer, session)
    expect(tracer.stats).toEqual([{ sink: 'kept', exported: 0, dropped: 3, failed: 0 }])
    release()
    await tracer.flush()
    expect(tracer.stats).toEqual([{ sink: 'kept', exported: 2, dropped: 3, failed: 0 }])
    const lost = sessions[4] ?? ''
    expect(drawn(spansOf(await readTree(set.store, lost)))).toEqual(['invoke_agent default', '  chat'])
    expect((await set.store.read(lost, 0)).events.at(-1)?.type).toBe('run.settled')
    await set.harness.close()
  })

  it('B-TRACE-16: many children never crowd out a root', async () => {
    const set = stage()
    const sink = new Kept()
    const tracer = new Tracer({ store: set.store, sinks: [sink], queueMax: 2, clock: new FakeClock() })
    for (let i = 0; i < 5; i++) tracer.settled(`gone~3.${i}`, 2)
    await set.tell(tracer, await set.run())
    await tracer.flush()
    expect(tracer.stats[0]).toMatchObject({ exported: 1, dropped: 3 })
    await set.harness.close()
  })

  it('B-TRACE-17: a failing sink is reported at once and then at most every 300 seconds, with the sum', async () => {
    const set = stage()
    const clock = new FakeClock()
    const reports: unknown[] = []
    const tracer = new Tracer({ store: set.store, sinks: [broken()], clock, onDrop: (report) => reports.push(report) })
    const session = await set.run()
    const fail = async (): Promise<void> => {
      await set.tell(tracer, session)
      await tracer.flush()
    }
    for (let i = 0; i < 3; i++) await fail()
    expect(reports).toEqual([{ sink: 'broken', dropped: 0, failed: 1, message: 'no space left' }])
    clock.advance(299_999)
    await fail()
    expect(reports).toHaveLength(1)
    clock.advance(1)
    await fail()
    expect(reports[1]).toEqual({ sink: 'broken', dropped: 0, failed: 4, message: 'no space left' })
    await fail()
    await tracer.close()
    expect(reports[2]).toMatchObject({ sink: 'broken', failed: 1 })
    expect(tracer.stats[0]?.failed).toBe(6)
    await set.harness.close()
  })

  it('B-TRACE-17: a harness is told of what its tracer lost, in one sentence', async () => {
    const set = stage()
    const told: unknown[] = []
    const place = { store: set.store, clock: new FakeClock(), report: (error: unknown) => void told.push(error) }
    const tracer = tracing({ sinks: [broken()] })(place)
    await set.tell(tracer, await set.run())
    await tracer.close()
    expect(told).toEqual([new Error('1 traces were lost on the way to the broken. no space left')])
    await set.harness.close()
  })

  it('B-TRACE-17: a listener that throws stops nothing', async () => {
    const set = stage()
    const onDrop = (): never => {
      throw new Error('listener')
    }
    const tracer = new Tracer({ store: set.store, sinks: [broken()], clock: new FakeClock(), onDrop })
    await set.tell(tracer, await set.run())
    await tracer.flush()
    expect(tracer.stats[0]?.failed).toBe(1)
    await set.harness.close()
  })

  it('B-TRACE-18: closing exports what is left and closes the sinks', async () => {
    const set = stage()
    const sink = new Kept()
    const tracer = new Tracer({ store: set.store, sinks: [sink], clock: new FakeClock() })
    await set.tell(tracer, await set.run())
    await tracer.close()
    expect([sink.batches.length, sink.closed]).toEqual([1, true])
    tracer.settled('late', 3)
    expect(tracer.stats[0]).toMatchObject({ exported: 1, dropped: 1 })
    await set.harness.close()
  })

  it('B-TRACE-18: closing is bounded: what a sink that hangs has not taken by then is counted as lost', async () => {
    const set = stage()
    const clock = new FakeClock()
    let told = false
    const hangs: Sink = {
      name: 'hangs',
      export: (_, { signal }) => new Promise(() => signal.addEventListener('abort', () => (told = true))),
      close: () => new Promise(() => {}),
    }
    const tracer = new Tracer({ store: set.store, sinks: [hangs], clock })
    for (let i = 0; i < 3; i++) await set.tell(tracer, await set.run())
    const closed = tracer.close(1_000)
    for (let i = 0; i < 3; i++) {
      await settled()
      clock.advance(1_000)
    }
    await closed
    expect(told).toBe(true)
    expect(tracer.stats).toEqual([{ sink: 'hangs', exported: 0, dropped: 2, failed: 1 }])
    await set.harness.close()
  })

  it('B-TRACE-18: what is read only after the tracer has closed is not given to a sink that is closed', async () => {
    const set = stage()
    const session = await set.run()
    let open = (): void => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const store = overheard(set.store, (name) => (name === 'card' ? gate : Promise.resolve()))
    const clock = new FakeClock()
    const sink = new Kept()
    const tracer = new Tracer({ store, sinks: [sink], clock })
    await set.tell(tracer, session)
    const closed = tracer.close(1_000)
    for (let i = 0; i < 3; i++) {
      await settled()
      clock.advance(1_000)
    }
    await closed
    open()
    await tracer.flush()
    expect(sink.batches).toEqual([])
    expect(tracer.stats[0]).toMatchObject({ exported: 0, failed: 1 })
    await set.harness.close()
  })

  it('B-TRACE-18: a sink that never ends an export is given up after two minutes, and the next trace goes on', async () => {
    const set = stage()
    const clock = new FakeClock()
    const got: (readonly Span[])[] = []
    const sink: Sink = {
      name: 'once slow',
      export: (spans) => (got.push(spans) === 1 ? new Promise(() => {}) : Promise.resolve()),
      close: () => Promise.resolve(),
    }
    const tracer = new Tracer({ store: set.store, sinks: [sink], clock })
    for (let i = 0; i < 2; i++) await set.tell(tracer, await set.run())
    const flushed = tracer.flush()
    while (got.length === 0) await settled()
    clock.advance(120_000)
    await flushed
    expect(tracer.stats).toEqual([{ sink: 'once slow', exported: 1, dropped: 0, failed: 1 }])
    await set.harness.close()
  })
})

describe('capture', () => {
  it('B-TRACE-19: each sink has its own: capturing here changes nothing of what is sent there (AC-57)', async () => {
    const seen = await Promise.all(
      [[new Kept('remote')], [new Kept('local', 'content'), new Kept('remote')]].map(async (sinks) => {
        const set = stage(['ANSWER-TEXT'], { instructions: 'INSTRUCTION-TEXT' })
        const tracer = tracerOn(set.store, sinks)
        await set.tell(tracer, await set.run('INPUT-TEXT'))
        await tracer.close()
        await set.harness.close()
        return sinks.map((sink) => JSON.stringify([sink.batches, [...sink.texts.values()]]))
      }),
    )
    const [[alone = ''] = [], [local = '', beside = ''] = []] = seen
    const texts = ['ANSWER-TEXT', 'INSTRUCTION-TEXT', 'INPUT-TEXT']
    expect(texts.map((text) => [local, beside, alone].map((written) => written.includes(text)))).toEqual(
      texts.map(() => [true, false, false]),
    )
    const names = (written: string): unknown =>
      (JSON.parse(written) as [Span[][]])[0].flat().map(({ attributes }) => Object.keys(attributes))
    expect(names(beside)).toEqual(names(alone))
  })
})

/** Where children wait before they answer, whatever else happens to them. */
class Gate {
  readonly #waiting = new Map<string, () => void>()
  #opened = false

  wait(session: string): Promise<void> {
    if (this.#opened) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.set(session, resolve)
    })
  }

  open(session?: string): void {
    if (session === undefined) this.#opened = true
    for (const [id, resolve] of this.#waiting) if (session === undefined || id === session) resolve()
  }
}

/** The root gives three tasks at once and says it is done; a child answers. */
function family(gate: Gate | null): Script {
  return async ({ session, messages }) => {
    if (session.includes('~')) {
      await gate?.wait(session)
      return 'helped'
    }
    if (messages.some((message) => message.role === 'tool')) return 'done'
    return { calls: [1, 2, 3].map((n) => ({ tool: 'subagent', args: { task: `task ${n}` } })) }
  }
}

/** The children of a session, once all three have asked their model. */
async function working(store: CompleteStore, root: string): Promise<readonly string[]> {
  for (;;) {
    const cards = await store.list({ root, limit: 10 })
    const children = cards.map(({ session }) => session).filter((session) => session !== root)
    const logs = await Promise.all(children.map((session) => store.read(session, 0)))
    if (logs.filter(({ events }) => events.some((event) => event.type === 'model.started')).length === 3)
      return children
    await settled()
  }
}

async function settles(store: CompleteStore, session: string): Promise<void> {
  while (!(await store.read(session, 0)).events.some((event) => event.type === 'run.settled')) await settled()
}

/** A store that lets a test know, and wait, before each look at a session. */
function overheard(inner: CompleteStore, before: (name: string) => Promise<void>): CompleteStore {
  return new Proxy(inner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const own = member.bind(target) as (...args: readonly unknown[]) => unknown
      return name === 'read' || name === 'card' ? (...args: unknown[]) => before(name).then(() => own(...args)) : own
    },
  })
}
