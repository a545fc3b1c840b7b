// Streams of a session: what readers get and when, what changes when a reader leaves, and that nothing is left behind. The queue
// in between is queue.test.ts, deltas across processes are live-*.test.ts, children are children.test.ts.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Model, memory, type RunStream, type Script, type StreamEvent } from '../../src/index.ts'
import { makeFile, open } from '../stores/folder.ts'
import { calls, counted, make, type Moment, moment, STORAGES, storeOf, tool, typesIn, users, waiting } from './scene.ts'

async function readAll(stream: AsyncIterable<StreamEvent>): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** Reads until something is there, and leaves. */
async function readTo(stream: RunStream, type: StreamEvent['type']): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) {
    events.push(event)
    if (event.type === type) break
  }
  return events
}

const seqs = (events: readonly StreamEvent[]) => events.flatMap((event) => (event.type === 'delta' ? [] : [event.seq]))
const heard = (events: readonly StreamEvent[]) =>
  events.flatMap((event) => (event.type === 'delta' ? [event.text] : [])).join('')
const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, i) => from + i)

/** Says a sentence in two halves; the second half waits for the test. */
function speaker(): { model: Model; spoke: Moment; go: () => void } {
  const spoke = moment()
  const gate = moment()
  const model: Model = {
    name: 'speaker',
    call: async (_request, context) => {
      context.emit({ kind: 'text', part: 0, text: 'Hello, ' })
      spoke.come()
      await gate.here
      context.emit({ kind: 'text', part: 0, text: 'world' })
      context.emit({ kind: 'text', part: 0, text: '.' })
      const parts = [{ type: 'text', text: 'Hello, world.' }] as const
      return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
    },
  }
  return { model, spoke, go: gate.come }
}

describe.each(STORAGES)('readers of a session on %s', (storage) => {
  it('B-STREAM-4: each gets the history, then what happens, no gap and no duplicate, numbered from 1, whenever it came', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const script: Script = ['Zero.', calls('look'), calls('slow'), 'Done.']
    const session = await make(script, { tools: [slow, tool('look')], store: storeOf(storage) }).open()
    await session.run('zero')
    const before = (await typesIn(session)).length
    const own = session.stream('one')
    const early = session.stream()
    await runs.here
    const late = session.stream()
    const resumed = session.stream(undefined, { after: before + 3 })
    const reading = [own, early, late, resumed].map(readAll)
    go()
    const read = await Promise.all(reading)
    const last = (await typesIn(session)).length
    expect(read.map(seqs)).toEqual([upTo(last, before + 1), upTo(last), upTo(last), upTo(last, before + 4)])
    for (const events of read) expect(events.map(({ sequence }) => sequence)).toEqual(upTo(events.length))
    const results = await Promise.all([own, early, late, resumed].map(({ result }) => result))
    for (const result of results) expect(result).toEqual(results[0])
    expect(results[0]).toMatchObject({ status: 'completed', text: 'Done.', usage: { modelRequests: 3 } })
  })

  it('B-STREAM-5: a reader that comes in the middle of a sentence gets the history, then what was said so far once, then the rest', async () => {
    const { model, spoke, go } = speaker()
    const session = await make(model, { store: storeOf(storage) }).open()
    const own = session.stream('Say it.', { deltas: true })
    await spoke.here
    const late = session.stream(undefined, { deltas: true })
    const iterator = late[Symbol.asyncIterator]()
    const events: StreamEvent[] = []
    while (heard(events) !== 'Hello, ') {
      const next = await iterator.next()
      if (next.done !== true) events.push(next.value)
    }
    expect(events.map(({ type }) => type)).toEqual([
      'session.created',
      'user.message',
      'run.started',
      'model.started',
      'delta',
    ])
    go()
    for (;;) {
      const next = await iterator.next()
      if (next.done === true) break
      events.push(next.value)
    }
    expect(heard(events)).toBe('Hello, world.')
    expect(heard(await readAll(own))).toBe('Hello, world.')
    expect(events.map(({ type }) => type).slice(-4)).toEqual(['delta', 'delta', 'agent.message', 'run.settled'])
  })

  it('B-STREAM-8: deltas come only to readers that ask for them, and change nothing of the events', async () => {
    const session = await make([{ deltas: ['a', 'b', 'c'] }], { store: storeOf(storage) }).open()
    const [own, plain, both] = [session.stream('Go.'), session.stream(), session.stream(undefined, { deltas: true })]
    const read = await Promise.all([own, plain, both].map(readAll))
    expect(read.map(heard)).toEqual(['', '', 'abc'])
    expect(seqs(read[2] ?? [])).toEqual(seqs(read[1] ?? []))
    expect(seqs(read[0] ?? [])).toEqual(seqs(read[1] ?? []).slice(1))
  })
})

describe('what a stream says of an event', () => {
  it('B-STREAM-10: which session, agent and run it belongs to, also to a reader that comes in the middle of a run', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const harness = make([calls('slow'), 'Done.'], { tools: [slow] })
    const own = harness.stream('Go.')
    await runs.here
    const [first] = (await harness.list({ order: 'id', limit: 500 })).cards
    const session = harness.session(first?.session ?? '')
    const after = (await typesIn(session)).length
    const late = session.stream(undefined, { after })
    go()
    const [all, some] = await Promise.all([readAll(own), readAll(late)])
    const began = all.find(({ type }) => type === 'run.started')
    expect(new Set(all.map((event) => event.source.agent))).toEqual(new Set(['default']))
    expect(all.map((event) => event.source.run)).toEqual([
      null,
      ...all.slice(1).map(() => seqs([began as StreamEvent])[0]),
    ])
    expect(some.map(({ source }) => source)).toEqual(all.slice(-some.length).map(({ source }) => source))
    expect(some.every((event) => event.session === session.id && event.source.parent === null)).toBe(true)
  })
})

describe('a stream whose message joins a run', () => {
  it('B-STREAM-10: names that run on every event', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), 'Done.'], { tools: [slow] }).open()
    const own = session.run('one')
    await runs.here
    const stream = session.stream('two')
    const reading = readAll(stream)
    go()
    const events = await reading
    const log = (await session.events()).events
    const seqOf = (sought: string) => log.findLast(({ type }) => type === sought)?.seq
    expect(events[0]).toMatchObject({ type: 'user.message', seq: seqOf('user.message') })
    expect(new Set(events.map(({ source }) => source.run))).toEqual(new Set([seqOf('run.started')]))
    expect(await stream.result).toEqual(await own)
  })
})

describe('a stream that is asked for from a place that there is not', () => {
  it.each(STORAGES)(
    'B-STREAM-12: is refused before anything is sent, and the session goes on (%s)',
    async (storage) => {
      const session = await make(() => 'Done.', { store: storeOf(storage) }).open()
      await session.run('one')
      const before = (await typesIn(session)).length
      for (const after of [Number.NaN, -1, 1.5, 'abc'] as number[]) {
        for (const stream of [session.stream(undefined, { after }), session.stream('pay the bill', { after })]) {
          await expect(readAll(stream)).rejects.toMatchObject({ code: 'invalid_input' })
          await expect(stream.result).rejects.toMatchObject({
            code: 'invalid_input',
            message: expect.stringContaining('after') as string,
          })
        }
        await expect(session.events({ after })).rejects.toMatchObject({ code: 'invalid_config' })
        await expect(session.events({ limit: after })).rejects.toMatchObject({ code: 'invalid_config' })
      }
      expect((await typesIn(session)).length).toBe(before)
      expect(await session.run('two')).toMatchObject({ status: 'completed' })
    },
  )
})

describe('a stream that started a run', () => {
  it('B-STREAM-6: interrupts it when its reader leaves, at any event, and the harness goes on', async () => {
    for (const type of ['user.message', 'run.started', 'model.started', 'agent.tool_use'] as const) {
      const { tool: slow } = waiting('slow')
      const script: Script = (request) => (users(request).at(-1) === 'Go.' ? calls('slow') : 'Back.')
      const session = await make(script, { tools: [slow] }).open()
      const stream = session.stream('Go.')
      await readTo(stream, type)
      expect(await stream.result).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
      expect(await session.run('Again.')).toMatchObject({ status: 'completed', text: 'Back.' })
    }
  })

  it('B-STREAM-6: interrupts it also when its reader leaves before anything came', async () => {
    const harness = make([{ stall: true }, 'Back.'])
    const session = await harness.open()
    const stream = session.stream('Go.')
    await stream[Symbol.asyncIterator]().return?.()
    expect(await stream.result).toMatchObject({ status: 'interrupted' })
  })

  it('B-STREAM-6: interrupts it also when its reader leaves while its message waits behind the run of another', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const second = waiting('second')
    const script: Script = [calls('slow'), 'First.', calls('second'), 'Never.']
    const session = await make(script, { tools: [slow, second.tool] }).open()
    const own = session.run('one')
    await runs.here
    const stream = session.stream('two', { when: 'after' })
    await readTo(stream, 'user.message')
    go()
    expect(await own).toMatchObject({ status: 'completed', text: 'First.' })
    expect(await stream.result).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
    expect(second.ran).toEqual([])
    expect((await typesIn(session)).filter((type) => type === 'user.interrupt')).toHaveLength(1)
  })

  it('B-STREAM-6: leaves it alone when it is detached, and its result comes all the same', async () => {
    const { tool: slow, go } = waiting('slow')
    const stream = make([calls('slow'), 'Done.'], { tools: [slow] }).stream('Go.', { detach: true })
    await readTo(stream, 'agent.tool_use')
    go()
    expect(await stream.result).toMatchObject({ status: 'completed', text: 'Done.' })
  })

  it('B-STREAM-7: a leaving reader, or a leaving caller whose message only joined the run, changes nothing', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const script: Script = [calls('slow'), (request) => users(request).join(' + '), 'Later.']
    const session = await make(script, { tools: [slow] }).open()
    const own = session.run('one')
    await runs.here
    await readTo(session.stream(), 'run.started')
    await readTo(session.stream('two'), 'user.message')
    await readTo(session.stream('three', { when: 'after', detach: true }), 'user.message')
    go()
    expect(await own).toMatchObject({ status: 'completed', text: 'one + two' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Later.' })
    expect(await typesIn(session)).not.toContain('user.interrupt')
  })

  it('B-STREAM-9: a run that fails is its events and an end, and nothing is thrown but by orThrow (AC-52)', async () => {
    const harness = make([{ error: 'auth', message: 'The key was refused.' }])
    const stream = harness.stream('Go.')
    const types = (await readAll(stream)).map(({ type }) => type)
    expect(types).toEqual(['user.message', 'run.started', 'model.started', 'model.failed', 'run.settled'])
    expect(await stream.result).toMatchObject({ status: 'failed', failure: { message: 'The key was refused.' } })
    await expect(stream.orThrow()).rejects.toMatchObject({
      name: 'RunFailed',
      message: expect.stringContaining('The key was refused.') as string,
    })
  })

  it('B-STREAM-9: what is no end of a run is thrown to the reader and to the caller that waits for the result', async () => {
    const harness = make(['never'])
    const stream = harness.session('nobody').stream('Go.')
    await expect(readAll(stream)).rejects.toMatchObject({ code: 'session_missing' })
    await expect(stream.result).rejects.toMatchObject({ code: 'session_missing' })
    await expect(readAll(harness.session('nobody').stream())).rejects.toMatchObject({ code: 'session_missing' })
  })
})

describe('what is left behind', () => {
  it('B-STREAM-11: no listener is left when a stream was read, failed or left, and when a run is over (TRAP-28)', async () => {
    const { store, listening } = counted(memory())
    const { tool: slow, runs, go } = waiting('slow')
    const script: Script = ['One.', { error: 'auth' }, calls('slow'), 'Done.', { stall: true }]
    const session = await make(script, { tools: [slow], store }).open()
    await readAll(session.stream('one', { deltas: true }))
    await readAll(session.stream('fails', { deltas: true }))
    await session.run()
    expect(listening()).toBe(0)

    const own = session.run('two')
    await runs.here
    const driven = listening()
    await readTo(session.stream(undefined, { deltas: true }), 'run.started')
    await readTo(session.stream('and', { detach: true }), 'user.message')
    expect(listening()).toBe(driven)
    go()
    await own
    expect(listening()).toBe(0)

    await readTo(session.stream('three'), 'model.started')
    await session.run()
    expect(listening()).toBe(0)
  })

  it('B-STREAM-11: no listener is left when the harness is closed under readers, and they come to an end', async () => {
    const { store, listening } = counted(memory())
    const harness = make([{ stall: true }], { store })
    const stream = harness.stream('Go.', { deltas: true })
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    const reading = (async () => {
      while ((await iterator.next()).done !== true);
    })()
    await harness.close()
    await reading
    expect(await stream.result).toMatchObject({ status: 'sleeping' })
    expect(listening()).toBe(0)
  })
})

describe('a harness that closes under its readers', () => {
  it('B-STREAM-13: ends them as sleeping, also when the store is its own', async () => {
    for (const owned of [true, false]) {
      const harness = make([{ stall: true }], owned ? {} : { store: memory() })
      const session = await harness.open()
      const stream = session.stream('Go.')
      const iterator = stream[Symbol.asyncIterator]()
      await iterator.next()
      const waits = [stream.result, session.run('more'), session.run(), harness.run('another')]
      const reading = (async () => {
        while ((await iterator.next()).done !== true);
      })()
      await harness.close()
      await reading
      for (const result of await Promise.all(waits)) expect(result).toMatchObject({ status: 'sleeping' })
    }
  })
})

describe.each(STORAGES)('what a call prints while it runs, on %s', (storage) => {
  it('B-STREAM-20: is in the stream of each reader as deltas of its call, bounded, without secrets, and never in the log (S1-39)', async () => {
    const told = moment()
    const go = moment()
    const print = defineTool({
      name: 'print',
      description: 'It prints.',
      input: z.object({}),
      execute: async (_args, { tell }) => {
        tell('one\n')
        tell('the key is HUSH-HUSH-HUSH\n')
        told.come()
        await go.here
        tell('x'.repeat(300_000))
        tell('never')
        return 'done'
      },
    })
    const store = storeOf(storage)
    const harness = make([calls('print'), 'Over.'], { store, tools: [print], secrets: { KEY: 'HUSH-HUSH-HUSH' } })
    const session = await harness.open()
    const first = readAll(session.stream('go', { deltas: true }))
    await told.here
    // A reader who comes late gets what was printed so far.
    const joined = moment()
    const late = (async () => {
      const events: StreamEvent[] = []
      for await (const event of session.stream(undefined, { deltas: true })) {
        events.push(event)
        if (event.type === 'delta') joined.come()
      }
      return events
    })()
    const quiet = readAll(session.stream(undefined))
    await joined.here
    go.come()
    for (const events of [await first, await late]) {
      const printed = events.flatMap((event) => (event.type === 'delta' && event.kind === 'output' ? [event] : []))
      const text = printed.map((delta) => delta.text).join('')
      expect(text).toMatch(/^one\nthe key is ⟦secret:KEY⟧\nx{200000}/)
      expect(text).toContain('[more is not shown here]')
      expect(text).not.toContain('never')
      const reply = events.find((event) => event.type === 'agent.message')
      expect(new Set(printed.map(({ call }) => call))).toEqual(new Set([`${reply?.seq}.0`]))
      const types = events.map(({ type }) => type)
      expect(types.lastIndexOf('delta')).toBeLessThan(types.indexOf('run.settled'))
    }
    expect((await quiet).some(({ type }) => type === 'delta')).toBe(false)
    expect(JSON.stringify((await session.events()).events)).not.toContain('xxx')
  })
})

describe('readers over another connection', () => {
  it('B-STREAM-4: see the same through the file of the store: everything once, in order, and the same result', async () => {
    const file = makeFile()
    const { tool: slow, runs, go } = waiting('slow')
    const tools = [slow, tool('look')]
    const here = make([calls('look'), calls('slow'), 'Done.'], { tools, store: open(file) })
    const there = make(['never'], { tools, store: open(file) })
    const { id } = await here.open()
    const own = here.session(id).run('Go.')
    await runs.here
    const after = (await typesIn(here.session(id))).length - 2
    const streams = [there.session(id).stream(), there.session(id).stream(undefined, { after })]
    const reading = streams.map(readAll)
    go()
    const result = await own
    const last = (await typesIn(here.session(id))).length
    expect((await Promise.all(reading)).map(seqs)).toEqual([upTo(last), upTo(last, after + 1)])
    for (const stream of streams) expect(await stream.result).toEqual(result)
    expect(result).toMatchObject({ status: 'completed' })
  })
})
