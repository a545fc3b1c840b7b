// A run within somebody else's trace: the `traceparent` it is given, in the log, in spans, tools, children and requests of models;
// and spans of open runs that are sent as they end.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  Harness,
  memory,
  type Request,
  type Script,
  scripted,
  type Step,
  type Tool,
} from '../../src/index.ts'
import { type Span, spansOf, readTree, Tracer, tracing } from '../../src/tracing/index.ts'
import { FakeClock, settled } from '../models/fake-clock.ts'
import { DIALECTS, stage as hostedStage } from '../models/hosted-stage.ts'
import { moment } from '../runtime/scene.ts'
import { Kept, stage } from './stage.ts'
import { drawn } from './tale.ts'
import { until } from '../until.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const GIVEN = `00-${TRACE}-${PARENT}-01`

function asking(): { readonly tool: Tool; readonly told: (string | undefined)[] } {
  const told: (string | undefined)[] = []
  const execute = (_: unknown, { traceparent }: { readonly traceparent?: string | undefined }): string => {
    told.push(traceparent)
    return 'asked'
  }
  const input = z.object({})
  return { tool: defineTool({ name: 'ask', description: 'asks', input, effect: 'read', execute }), told }
}

/** One call of `ask`, also in the child, and an answer. */
function once({ messages, session }: Request): Step {
  if (messages.some(({ role }) => role === 'tool')) return 'done'
  const tool = { tool: 'ask', args: {} }
  return { calls: session.includes('~') ? [tool] : [tool, { tool: 'subagent', args: { task: 'help' } }] }
}

function ofName(spans: readonly Span[], name: string): readonly Span[] {
  return spans.filter((span) => span.name === name)
}

describe('a run that is given a traceparent', () => {
  it('B-TRACE-40: stands in that trace under that span, by run, stream and send, and its message says so in the log', async () => {
    const sink = new Kept()
    const { harness, store } = stage(() => 'done', { tracing: tracing({ sinks: [sink] }) })
    const first = await harness.run('go', { traceparent: GIVEN })
    const session = harness.session(first.sessionId)
    await session.stream('again', { traceparent: GIVEN }).result
    await session.send('more', { traceparent: GIVEN })
    await session.run()
    await session.run('alone')
    await harness.close()
    const runs = ofName(sink.batches.flat(), 'invoke_agent default')
    expect(runs.map(({ traceId, parentId }) => [traceId === TRACE, parentId])).toEqual([
      [true, PARENT],
      [true, PARENT],
      [true, PARENT],
      [false, null],
    ])
    const { events } = await store.read(session.id, 0)
    const kept = (type: Event['type']): unknown[] =>
      events.flatMap((event) => (event.type === type && 'traceparent' in event ? [event.traceparent] : []))
    expect([kept('user.message'), kept('run.started')]).toEqual([
      [GIVEN, GIVEN, GIVEN],
      [GIVEN, GIVEN, GIVEN],
    ])
  })

  it('B-TRACE-40: goes on with it in another process, after one that stopped', async () => {
    const store = memory()
    const { tool, told } = asking()
    const quiet = new Harness({ model: scripted(['never asked']), store, worker: { drives: false } })
    const { id } = await quiet.open()
    await quiet.session(id).send('go', { traceparent: GIVEN })
    await quiet.close()
    const sink = new Kept()
    const { harness } = stage([{ calls: [{ tool: 'ask' }] }, 'done'], {
      store,
      tools: [tool],
      tracing: tracing({ sinks: [sink] }),
    })
    await harness.session(id).run()
    await harness.close()
    const [call] = ofName(sink.batches.flat(), 'execute_tool ask')
    expect(told).toEqual([`00-${TRACE}-${call?.spanId}-01`])
  })

  it.each([
    'nonsense',
    '',
    GIVEN.toUpperCase(),
    `ff${GIVEN.slice(2)}`,
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `${GIVEN}-more`,
    7,
  ])('B-TRACE-41: is refused if it is none, with one sentence, and nothing is written: %s', async (bad) => {
    const { harness, store } = stage()
    const options = { traceparent: bad as string }
    const sentence = /^The option "traceparent" of \w+ must be a W3C traceparent such as "00-[^"]+"\.$/
    await expect(harness.run('go', options)).rejects.toMatchObject({ code: 'invalid_config', message: sentence })
    const session = await harness.open()
    await expect(session.send('go', options)).rejects.toMatchObject({ code: 'invalid_config', message: sentence })
    await expect(session.run('go', options)).rejects.toMatchObject({ code: 'invalid_config', message: sentence })
    expect((await store.read(session.id, 0)).events).toHaveLength(1)
    expect(await store.list({ limit: 9 })).toHaveLength(1)
    await harness.close()
  })

  it('B-TRACE-41: a later version of the form is read as far as it is known', async () => {
    const { harness, store } = stage()
    const { sessionId } = await harness.run('go', { traceparent: `01-${TRACE}-${PARENT}-00-more` })
    expect(spansOf(await readTree(store, sessionId))[0]).toMatchObject({ traceId: TRACE, parentId: PARENT })
    await harness.close()
  })

  it('B-TRACE-42: is not exported if its parent is not sampled, and tools are told so', async () => {
    const sink = new Kept()
    const { tool, told } = asking()
    const options = { tools: [tool], subagents: true as const, tracing: tracing({ sinks: [sink], live: true }) }
    const { harness } = stage(once, options)
    await harness.run('go', { traceparent: `00-${TRACE}-${PARENT}-00` })
    await harness.close()
    expect(sink.batches).toEqual([])
    expect(told.map((text) => text?.slice(-3))).toEqual(['-00', '-00'])
  })

  it('B-TRACE-43: tools are told their own span, and children are in the same trace', async () => {
    const sink = new Kept()
    const { tool, told } = asking()
    const { harness } = stage(once, { tools: [tool], subagents: true, tracing: tracing({ sinks: [sink] }) })
    await harness.run('go', { traceparent: GIVEN })
    await harness.close()
    const spans = sink.batches.flat()
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]))
    const calls = ofName(spans, 'execute_tool ask').map(({ spanId }) => `00-${TRACE}-${spanId}-01`)
    expect(calls).toHaveLength(2)
    expect(new Set(told)).toEqual(new Set(calls))
  })

  it('B-TRACE-43: without tracing tools are told the one that was given; without either, nothing', async () => {
    const { tool, told } = asking()
    const { harness } = stage(once, { tools: [tool], subagents: true })
    await harness.run('go', { traceparent: GIVEN })
    await harness.run('go')
    await harness.close()
    expect(told).toEqual([GIVEN, GIVEN, undefined, undefined])
  })

  it('B-TRACE-43: one in a log from elsewhere that is none is passed over', async () => {
    const { harness, store } = stage()
    const { sessionId } = await harness.run('go', { traceparent: GIVEN })
    await harness.close()
    const events = (await store.read(sessionId, 0)).events.map((event) =>
      event.type === 'run.started' ? { ...event, traceparent: 'forged' } : event,
    )
    expect(spansOf([{ session: sessionId, events }])[0]).toMatchObject({ parentId: null })
  })
})

describe('requests of models', () => {
  it.each(DIALECTS)(
    'B-TRACE-44: carry the header only with `propagate`, under the span of the request: %s',
    async (dialect) => {
      const sink = new Kept()
      const heads: (string | undefined)[] = []
      const script = ({ headers }: { readonly headers: Readonly<Record<string, string>> }): string => {
        heads.push(headers['traceparent'])
        return 'done'
      }
      for (const propagate of [false, true]) {
        const options = { dialect, tracing: tracing({ sinks: [sink], propagate }) }
        const { harness } = await hostedStage(script, options)
        await harness.run('go', { traceparent: GIVEN })
        await harness.run('go')
        await harness.close()
      }
      const { harness } = await hostedStage(script, { dialect })
      await harness.run('go', { traceparent: GIVEN })
      const chats = sink.batches.flat().filter(({ kind }) => kind === 'client')
      const own = chats.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)
      expect(heads).toEqual([undefined, undefined, own[2], own[3], undefined])
      expect(own[2]).toContain(TRACE)
    },
  )

  it('B-TRACE-44: of a child are in the trace of its root, also if that was given none', async () => {
    const sink = new Kept()
    const heads: (string | undefined)[] = []
    const model = {
      name: 'a:b',
      call: async (request: Request, { traceparent }: { traceparent?: string | undefined }) => {
        heads.push(traceparent)
        const calls = request.session.includes('~') || request.messages.length > 1 ? [] : ['subagent']
        const asked = calls.map((tool) => ({ id: 'c', tool, args: '{"task":"help"}' }))
        const finish = asked.length > 0 ? 'calls' : 'stop'
        return { type: 'reply', parts: [{ type: 'text', text: 'x' }], calls: asked, finish, usage: null } as const
      },
    }
    const harness = new Harness({ model, subagents: true, tracing: tracing({ sinks: [sink], propagate: true }) })
    await harness.run('go')
    await harness.close()
    const chats = sink.batches.flat().filter(({ kind }) => kind === 'client')
    expect(chats).toHaveLength(3)
    expect(new Set(chats.map(({ traceId }) => traceId)).size).toBe(1)
    expect(new Set(heads)).toEqual(new Set(chats.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)))
  })
})

describe('spans of an open run', () => {
  it('B-TRACE-45: are sent soon after they end with `live`, each once, and the rest when the run has settled', async () => {
    const [sink, clock, gate] = [new Kept(), new FakeClock(), moment()]
    const { tool } = asking()
    const script: Script = async (request) => {
      if (request.messages.filter(({ role }) => role === 'tool').length === 2) await gate.here
      return once(request)
    }
    let tracer: Tracer | null = null
    const { harness, store } = stage(script, {
      tools: [tool],
      subagents: true,
      tracing: ({ store: of }) => (tracer = new Tracer({ store: of, clock, sinks: [sink], live: true })),
    })
    const session = await harness.open()
    const done = session.run('go')
    await until(async () => {
      const { events } = await store.read(session.id, 0)
      expect(events.filter(({ type }) => type === 'model.started')).toHaveLength(2)
    })
    expect(sink.batches).toEqual([])
    clock.advance(1_000)
    await until(() => expect(sink.batches).toHaveLength(1))
    const child = ['execute_tool subagent', 'invoke_agent subagent', 'chat', 'execute_tool ask', 'chat']
    expect(sink.batches[0]?.map(({ name }) => name.split(' scripted')[0]).toSorted()).toEqual(
      ['chat', 'execute_tool ask', ...child].toSorted(),
    )
    expect(sink.batches[0]?.every(({ endedAt }) => endedAt !== null)).toBe(true)
    gate.come()
    await done
    await harness.close()
    const spans = sink.batches.flat()
    expect(spans.map(({ spanId }) => spanId).toSorted()).toEqual(
      spansOf(await readTree(store, session.id))
        .map(({ spanId }) => spanId)
        .toSorted(),
    )
    expect(drawn(spans)[0]).toBe('invoke_agent default')
    expect((tracer as Tracer | null)?.stats).toMatchObject([{ exported: 1, failed: 0 }])
  })

  it('B-TRACE-45: are sent when the harness is closed, and again only under the same ids by another process', async () => {
    const [first, second, gate, store] = [new Kept(), new Kept(), moment(), memory()]
    const { tool } = asking()
    const script: Script = async ({ messages }) => {
      if (messages.length === 1) return { calls: [{ tool: 'ask', args: {} }] }
      await gate.here
      return 'done'
    }
    const { harness } = stage(script, { store, tools: [tool], tracing: tracing({ sinks: [first], live: true }) })
    const { id } = await harness.open()
    await harness.session(id).send('go')
    await until(async () => {
      const { events } = await store.read(id, 0)
      expect(events.filter(({ type }) => type === 'model.started')).toHaveLength(2)
    })
    await harness.close()
    const early = first.batches.flat().map(({ spanId }) => spanId)
    expect(first.batches.flat().map(({ name }) => name)).toContain('execute_tool ask')
    gate.come()
    const other = stage(script, { store, tools: [tool], tracing: tracing({ sinks: [second], live: true }) })
    onTestFinished(() => other.harness.close())
    await other.harness.session(id).run()
    await other.harness.close()
    const late = second.batches.flat().map(({ spanId }) => spanId)
    expect(new Set(late).size).toBe(late.length)
    for (const spanId of early) expect(late).toContain(spanId)
  })

  it('B-TRACE-45: are not sent without `live`, and what a sink refused is sent when the run has settled', async () => {
    const [quiet, clock, gate] = [new Kept(), new FakeClock(), moment()]
    const sent: Span[] = []
    let refuses = true
    const moody = {
      name: 'moody',
      export: async (spans: readonly Span[]) => {
        if (refuses) throw new Error('not now')
        sent.push(...spans)
      },
      close: async () => {},
    }
    const { tool } = asking()
    const script: Script = async ({ messages }) => {
      if (messages.length === 1) return { calls: [{ tool: 'ask', args: {} }] }
      await gate.here
      return 'done'
    }
    const tracers: Tracer[] = []
    const { harness, store } = stage(script, {
      tools: [tool],
      tracing: ({ store: of }) => {
        tracers.push(new Tracer({ store: of, clock, sinks: [moody], live: true }))
        tracers.push(new Tracer({ store: of, clock, sinks: [quiet] }))
        const [one, two] = tracers as [Tracer, Tracer]
        return {
          progressed: (...run) => void [one, two].map((tracer) => tracer.progressed(...run)),
          settled: (...run) => void [one, two].map((tracer) => tracer.settled(...run)),
          close: async () => void (await Promise.all([one.close(), two.close()])),
        }
      },
    })
    const session = await harness.open()
    const done = session.run('go')
    await until(async () => {
      const { events } = await store.read(session.id, 0)
      expect(events.filter(({ type }) => type === 'model.started')).toHaveLength(2)
    })
    clock.advance(1_000)
    await tracers[0]?.flush()
    await settled()
    expect(quiet.batches).toEqual([])
    refuses = false
    gate.come()
    await done
    await harness.close()
    expect(sent).toHaveLength(4)
    expect(quiet.batches.map((batch) => batch.length)).toEqual([4])
    expect(tracers[0]?.stats).toMatchObject([{ exported: 1, failed: 0 }])
  })
})
