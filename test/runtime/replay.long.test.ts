// Replay: a log means what it meant, would be decided as it was, and can be run again. Every check also finds a planted fault.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { simulate } from '../../sim/simulate.ts'
import {
  defineTool,
  Harness,
  memory,
  output,
  type Script,
  scripted,
  type SessionHandle,
  type CompleteStore,
} from '../../src/index.ts'
import type { Event } from '../../src/kernel/event.ts'
import { fold, take } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { FOLD_VERSION, type Session } from '../../src/kernel/session.ts'
import { redecide, findUnwritten } from '../../src/archive/replay-decide.ts'
import { recordingOf, type RerunOptions } from '../../src/archive/replay-run.ts'
import { exportSession, importSession } from '../../src/archive/portable.ts'
import { refoldSession } from '../../src/archive/replay-refold.ts'
import { readLog } from '../../src/view/session-log.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function harnessOf(options: ConstructorParameters<typeof Harness>[0]): Harness {
  const harness = new Harness({ secrets: {}, worker: { graceMs: 50 }, ...options })
  open.push(harness)
  return harness
}

const n = z.object({ n: z.number() })

function tools(ran: string[] = []) {
  const say = (name: string) => {
    return ({ n: given }: { n: number }) => {
      ran.push(`${name} ${given}`)
      if (given < 0) throw new Error('less than nothing')
      return `${name} gave ${given}`
    }
  }
  return [
    defineTool({ name: 'look', description: 'looks', input: n, effect: 'read', execute: say('look') }),
    defineTool({ name: 'pay', description: 'pays', input: n, approval: 'ask', execute: say('pay') }),
    defineTool({ name: 'host', description: 'answered by the host', input: n }),
  ]
}

const look = (value: number) => ({ tool: 'look', args: { n: value } })

/** A session with a bit of everything: refusals, failures, questions, answers, a correction of course, an interrupt, an empty answer. */
async function eventful(): Promise<{
  readonly store: CompleteStore
  readonly session: SessionHandle
  readonly ran: string[]
}> {
  const store = memory()
  const ran: string[] = []
  let session: SessionHandle | null = null
  const script: Script = [
    { text: 'Looking.', calls: [look(1), look(2), { tool: 'none' }, look(-1)] },
    { calls: [{ tool: 'pay', args: { n: 5 } }, look(3), { tool: 'pay', args: { n: 6 } }] },
    { calls: [{ tool: 'host', args: { n: 7 } }, look(4)] },
    async () => {
      await session?.send('And hurry.')
      return { calls: [look(8)] }
    },
    { text: '', finish: 'length' },
    'All is done.',
    async () => {
      await session?.send('This instead.', { when: 'now' })
      return { stall: true }
    },
    'This, then.',
    async () => {
      await session?.interrupt()
      return { stall: true }
    },
    'After all.',
  ]
  const harness = harnessOf({ model: scripted(script), tools: tools(ran), store })
  session = await harness.open({ id: 'eventful' })
  for (let result = await session.run('Go.'); result.pending.length > 0; result = await session.run()) {
    for (const { callId, needs, args } of result.pending) {
      if (needs === 'answer') await session.answer({ callId, content: 'from the host' })
      else await session.decide({ callId, allow: (args as { n: number }).n === 5, by: 'ann', why: 'because' })
    }
  }
  await session.run('Stall.')
  await session.run('Stall again.')
  await session.run('Last.', { when: 'after' })
  return { store, session, ran }
}

/** Long enough that its snapshot is stored. */
async function long(): Promise<{ readonly store: CompleteStore; readonly id: string }> {
  const store = memory()
  const model = scripted((_request, taken) => (taken % 20 === 19 ? 'Enough.' : { calls: [look(taken)] }))
  const session = await harnessOf({ model, tools: tools(), store }).open()
  for (const text of ['One.', 'Two.', 'Three.']) await session.run(text)
  return { store, id: session.id }
}

describe('refold', () => {
  it('B-REPLAY-1: a log folds to the same bytes by copy, in place, and from its snapshot on', async () => {
    const { store, id } = await long()
    const folded = await refoldSession(store, id)
    expect(folded).toMatchObject({ snapshot: 'compared', difference: null, events: (await store.card(id))?.seq })
    expect((JSON.parse(folded.state) as Session).seq).toBe(folded.events)
    const { store: other } = await eventful()
    expect(await refoldSession(other, 'eventful')).toMatchObject({ snapshot: 'none', difference: null })
  })

  it('B-REPLAY-2: a planted fault in one of the folds is found at its first event', async () => {
    const { store } = await eventful()
    const events = await readLog(store, 'eventful')
    const first = events.find((event) => event.type === 'agent.tool_result')?.seq
    const forgetful: typeof take = (session, event) => {
      take(session, event)
      if (event.type === 'agent.tool_result' && session.run) session.run.exhausted = 'planted'
    }
    const { difference } = await refoldSession(store, 'eventful', { fold, take: forgetful })
    expect(difference).toMatchObject({
      seq: first,
      type: 'copy',
      path: 'run.exhausted',
      expected: 'planted',
      found: null,
    })
    // A fold that changes what it was given.
    const shared: typeof fold = (session, event) => {
      if (event.type === 'run.settled') Object.assign(session, { cost: -1 })
      return fold(session, event)
    }
    const settled = events.find((event) => event.type === 'run.settled')?.seq
    expect((await refoldSession(store, 'eventful', { fold: shared, take })).difference).toMatchObject({ seq: settled })
  })

  it('B-REPLAY-3: a snapshot that is not what its log folds to is found; one of an older fold is not looked at', async () => {
    const { store, id } = await long()
    const stored = await store.snapshot(id)
    const body = stored?.body ?? ''
    const withSnapshot = (over: object) => {
      const snapshot = { seq: stored?.seq ?? 0, version: FOLD_VERSION, body, ...over }
      return { read: store.read.bind(store), snapshot: async () => snapshot }
    }
    const state = JSON.parse(body) as Session
    const bent = withSnapshot({ body: JSON.stringify({ ...state, cost: 1 }) })
    expect((await refoldSession(bent, id)).difference).toMatchObject({
      seq: stored?.seq,
      type: 'snapshot',
      path: 'cost',
      found: 1,
    })
    const beyond = withSnapshot({ body: JSON.stringify({ ...state, seq: 9_999 }) })
    expect((await refoldSession(beyond, id)).difference).toMatchObject({ type: 'snapshot', path: 'seq' })
    expect(await refoldSession(withSnapshot({ version: 0, body: '{}' }), id)).toMatchObject({
      snapshot: 'old',
      difference: null,
    })
  })

  it('B-REPLAY-4: an event that cannot follow is named, and so is a session that is not there', async () => {
    const { store } = await eventful()
    const events = await readLog(store, 'eventful')
    const at = events.findIndex((event) => event.type === 'agent.message')
    const cut = events.filter((_, i) => i !== at).map((event, i) => ({ ...event, seq: i + 1 }))
    const log = { read: async () => ({ events: cut }), snapshot: async () => null }
    const { difference } = await refoldSession(log, 'cut')
    expect(difference).toMatchObject({ type: 'unfoldable' })
    await expect(refoldSession(store, 'nobody')).rejects.toMatchObject({ code: 'session_missing' })
  })
})

describe('redecide', () => {
  it('B-REPLAY-5: today decides what stands in the log, at every prefix at which the owner wrote', async () => {
    for (const events of [await readLog((await eventful()).store, 'eventful'), await logOf(long())]) {
      expect(redecide(events)).toEqual([])
      expect(findUnwritten(events)).toEqual([])
    }
  })

  it('B-REPLAY-6: a changed rule is found where it first matters, with what it says and what stands there', async () => {
    const events = await readLog((await eventful()).store, 'eventful')
    const stricter: typeof next = (session, here) => {
      const { run } = session
      return next(run ? { ...session, run: { ...run, limits: { ...run.limits, modelRequests: 2 } } } : session, here)
    }
    const [first] = redecide(events, stricter)
    const third = events.filter((event) => event.type === 'model.started')[2]
    expect(first).toMatchObject({
      seq: third?.seq,
      expected: {
        type: 'record',
        events: [{ type: 'run.settled', outcome: { type: 'limit', limit: 'model_requests' } }],
      },
      found: { type: 'model.started' },
    })
    const reordered: typeof next = (session, here) => {
      const decision = next(session, here)
      if (decision.type !== 'record') return decision
      const turned = decision.events.map((e) =>
        e.type === 'model.started' ? { ...e, shows: e.shows.toReversed() } : e,
      )
      return { ...decision, events: turned }
    }
    expect(redecide(events, reordered).length).toBeGreaterThan(0)
    const resting: typeof next = (session, here) => {
      const decision = next(session, here)
      return decision.type === 'perform' ? { type: 'rest', waiting: 'nothing', until: null } : decision
    }
    expect(redecide(events, resting).map(({ found }) => found.type)).toContain('agent.message')
  })

  it('B-REPLAY-7: a rule that would have gone on where the owner waited is found by an event that is missing in the log', async () => {
    const events = await readLog((await eventful()).store, 'eventful')
    const hasty: typeof next = (session, here) => {
      const { run } = session
      if (!run?.turn?.open.some((call) => call.state.type === 'asked')) return next(session, here)
      return next({ ...session, run: { ...run, turn: { ...run.turn, open: [] } } }, here)
    }
    expect(findUnwritten(events, hasty)[0]).toMatchObject({
      expected: { events: expect.arrayContaining([expect.objectContaining({ type: 'model.started' })]) as unknown },
    })
  })

  it('B-REPLAY-8: what the runtime decides outside of next is no difference: budgets, undoing, closing, forks', async () => {
    const store = memory()
    const model = scripted(() => ({ text: 'Dear.', cost: 900_000, usage: { inputTokens: 1, outputTokens: 1 } }))
    const session = await harnessOf({ model, store, budget: { sessionUsd: 1 } }).open()
    await session.run('One.')
    while ((await session.run('More.')).status === 'completed');
    await session.decide({ callId: 'budget', allow: false, by: 'ann' })
    const fork = await session.fork()
    await session.close()
    const events = await readLog(store, session.id)
    expect(events.map((event) => event.type)).toEqual(expect.arrayContaining(['note.added', 'session.closed']))
    expect(events.flatMap((e) => (e.type === 'run.settled' ? [e.outcome] : [])).at(-1)).toMatchObject({ limit: 'usd' })
    expect([redecide(events), redecide(await readLog(store, fork.id))]).toEqual([[], []])
    // But an end with other inputs than next would give it is one.
    const bent = events.map((e) => (e.type === 'run.settled' && e.outcome.type === 'limit' ? { ...e, inputs: [] } : e))
    expect(redecide(bent)).toHaveLength(1)
  })

  it('B-REPLAY-9: sessions that workers crashed over, froze over and fought for refold and redecide the same', async () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      await simulate(seed, {
        look: async (store) => {
          for (const { session } of await store.list({ limit: 10 })) {
            expect((await refoldSession(store, session)).difference).toBeNull()
            expect(redecide(await readLog(store, session))).toEqual([])
          }
        },
      })
    }
  })
})

describe('rerun', () => {
  async function again(events: readonly Event[], options: RerunOptions) {
    const recording = recordingOf(events, options)
    const store = memory()
    const harness = harnessOf({ model: recording.model, tools: recording.tools, store })
    return recording.run(await harness.open(), store)
  }

  it('B-REPLAY-10: with recorded results a session happens again as it was, and no tool runs', async () => {
    const { store } = await eventful()
    const ran: string[] = []
    const rerun = await again(await readLog(store, 'eventful'), { tools: tools(ran), results: 'recorded' })
    expect(rerun).toMatchObject({ sameTypes: true, sameCalls: true, sameResults: true, divergence: null })
    expect(ran).toEqual([])
  })

  it('B-REPLAY-19: a recorded result that lies beside the log is repeated, and one that the store does not have is named', async () => {
    const store = memory()
    const long = 'long '.repeat(20_000)
    const tool = (text: string) =>
      defineTool({ name: 'tell', description: 'tells', input: z.object({}), effect: 'read', execute: () => text })
    const model = scripted([{ calls: [{ tool: 'tell', args: {} }] }, 'Done.'])
    const compression = 'off'
    await (await harnessOf({ model, tools: [tool(long)], store, results: { compression } }).open({ id: 'told' })).run(
      'Go.',
    )
    const events = await readLog(store, 'told')
    const recording = recordingOf(events, { tools: [tool('')], results: 'recorded' })
    const harness = harnessOf({ model: recording.model, tools: recording.tools, store, results: { compression } })
    expect(await recording.run(await harness.open(), store)).toMatchObject({ sameResults: true, divergence: null })
    const elsewhere = await again(events, { tools: [tool('')], results: 'recorded' })
    expect(elsewhere.divergence).toMatchObject({
      found: { content: expect.stringContaining('not in this store') as string },
    })
  })

  /** A tool with a long result, and a model that reads a line of its original. */
  async function reading(options: Partial<ConstructorParameters<typeof Harness>[0]> = {}) {
    const text = Array.from({ length: 3_000 }, (_, i) => `2024-01-01 INFO worker ${i} handled path=/a/${i}`).join('\n')
    const log = defineTool({
      name: 'log',
      description: 'logs',
      input: z.object({}),
      effect: 'read',
      execute: () => text,
    })
    const token = (messages: readonly unknown[]) => /⟦tj:\w+⟧/.exec(JSON.stringify(messages))?.[0] ?? 'none'
    const model = scripted(({ messages, tools: offered }) => {
      if (offered.length === 0) return { error: 'bad_request', message: 'no summary' }
      const results = messages.filter(({ role }) => role === 'tool').length
      if (results === 0) return { calls: [{ tool: 'log', args: {} }] }
      if (results > 1) return 'Done.'
      return { calls: [{ tool: 'retrieve_original', args: { token: token(messages), line_from: 5, line_to: 5 } }] }
    })
    const store = memory()
    const harness = harnessOf({ ...options, model, tools: [log], store })
    const session = await harness.open({ id: 'read' })
    const { calls } = await session.run('Go.')
    expect(calls[1]).toMatchObject({ status: 'ok', content: '2024-01-01 INFO worker 4 handled path=/a/4' })
    return { store, session, log }
  }

  it.each([
    ['by default', {}],
    ['with compression', { results: { compression: 'full' } }],
    ['with a budget', { results: { bytes: 2_000 } }],
    ['where a summarizer failed', { results: { summarize: { fromTokens: 128, toTokens: 100_000 }, bytes: 2_000 } }],
  ] as const)('B-REPLAY-21: an original that the model read is given again from the log: %s', async (_how, options) => {
    const { store, log } = await reading(options)
    const events = await readLog(store, 'read')
    expect(redecide(events)).toEqual([])
    const stub: RerunOptions['results'] = ({ recorded }) => recorded?.content
    // With live results a summarizer would be asked, and a recording has no answers of one.
    const ways =
      'results' in options && 'summarize' in options.results
        ? (['recorded'] as const)
        : (['recorded', 'live', stub] as const)
    for (const results of ways) {
      const recording = recordingOf(events, { tools: [log], results })
      const fresh = memory()
      const harness = harnessOf({ ...options, model: recording.model, tools: recording.tools, store: fresh })
      expect(await recording.run(await harness.open(), fresh)).toMatchObject({ sameResults: true, divergence: null })
    }
  })

  it('B-REPLAY-21: an original that a fork or an imported session read is given again from its log', async () => {
    const { store, session, log } = await reading()
    const fork = await session.fork()
    await fork.run('And?')
    const there = memory()
    const { session: imported } = await importSession(there, await exportSession(store, 'read'))
    for (const [events, of] of [
      [await readLog(store, fork.id), 'fork'],
      [await readLog(there, imported), 'import'],
    ] as const) {
      const rerun = await again(events, { tools: [log], results: 'recorded' })
      expect([of, rerun.divergence]).toEqual([of, null])
      expect(redecide(events)).toEqual([])
    }
  })

  it('B-PART-12: a recorded result is repeated with its files, and other files are a difference', async () => {
    const store = memory()
    const shot = (byte: number) => {
      const data = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, byte])
      const parts = [{ type: 'image', media: 'image/png', data }] as const
      const execute = () => output({ content: 'A picture.', parts })
      return defineTool({ name: 'shoot', description: 'shoots', input: z.object({}), effect: 'read', execute })
    }
    const model = scripted([{ calls: [{ tool: 'shoot', args: {} }] }, 'Done.'])
    await (await harnessOf({ model, tools: [shot(1)], store }).open({ id: 'shown' })).run('Look.')
    const events = await readLog(store, 'shown')
    const same = await again(events, { tools: [shot(2)], results: 'recorded' })
    expect(same).toMatchObject({ sameResults: true, divergence: null })
    // In the store of the recording the files are those of another session.
    const recording = recordingOf(events, { tools: [shot(2)], results: 'recorded' })
    const beside = await harnessOf({ model: recording.model, tools: recording.tools, store }).open({ id: 'beside' })
    expect(await recording.run(beside, store)).toMatchObject({ sameResults: true, divergence: null })
    const other = await again(events, { tools: [shot(2)], results: 'live' })
    expect(other).toMatchObject({ sameTypes: true, sameResults: false })
    expect(other.divergence).toMatchObject({ expected: { content: 'A picture.', parts: [{ media: 'image/png' }] } })
  })

  it('B-REPLAY-11: with live tools they run again, and the first thing that came out otherwise is named', async () => {
    const { store, ran } = await eventful()
    const events = await readLog(store, 'eventful')
    const live: string[] = []
    expect(await again(events, { tools: tools(live), results: 'live' })).toMatchObject({ divergence: null })
    expect(live.sort()).toEqual(ran.sort())
    const other = tools().map((tool) => (tool.name === 'look' ? { ...tool, execute: () => 'now it says this' } : tool))
    const rerun = await again(events, { tools: other, results: 'live' })
    expect(rerun).toMatchObject({ sameTypes: true, sameCalls: true, sameResults: false })
    expect(rerun.divergence).toMatchObject({
      seq: events.find((event) => event.type === 'agent.tool_result' && event.status === 'ok')?.seq,
      expected: { type: 'agent.tool_result', content: 'look gave 1' },
      found: { type: 'agent.tool_result', content: 'now it says this' },
    })
  })

  it('B-REPLAY-12: a stand-in is asked with the call and what was recorded for it', async () => {
    const events = await readLog((await eventful()).store, 'eventful')
    const asked: string[] = []
    const rerun = await again(events, {
      tools: tools(),
      results: ({ tool, recorded }) => {
        asked.push(tool)
        return recorded?.content
      },
    })
    expect(rerun.divergence?.expected).toMatchObject({ ok: false, content: 'Error: less than nothing' })
    expect(asked.sort()).toEqual(['look', 'look', 'look', 'look', 'look', 'look', 'pay'])
  })

  it('B-REPLAY-13: a call that the recording does not have is an error result, and the recording ends with its last reply', async () => {
    const events = await readLog((await eventful()).store, 'eventful')
    const first = events.findIndex((event) => event.type === 'agent.tool_result' && event.status === 'ok')
    const cut = events.slice(0, first)
    const rerun = await again(cut, { tools: tools() })
    const results = rerun.events.flatMap((e) => (e.type === 'agent.tool_result' ? [e.content] : []))
    expect(results).toContain('The recording has no result for this call.')
    expect(rerun.events.find((event) => event.type === 'model.failed')).toMatchObject({ class: 'bad_request' })
    expect(rerun.sameTypes).toBe(false)
  })

  it('B-REPLAY-14: changed tools are a divergence at the call: an approval of another action does not count', async () => {
    const events = await readLog((await eventful()).store, 'eventful')
    const changed = tools().map((tool) => (tool.name === 'pay' ? { ...tool, definition: 'another' } : tool))
    const rerun = await again(events, { tools: changed })
    expect(rerun.sameCalls).toBe(false)
    const proposed = rerun.events.flatMap((e) =>
      e.type === 'agent.message' ? e.calls.map((call, i) => ({ ...call, key: `${e.seq}.${i}` })) : [],
    )
    const begun = rerun.events.flatMap((e) => (e.type === 'agent.tool_use' ? [e.call] : []))
    expect(begun.map((key) => proposed.find((call) => call.key === key)?.tool)).not.toContain('pay')
    expect(rerun.divergence?.expected).toMatchObject({ type: 'agent.message' })
  })

  it('B-REPLAY-15: failures of the model happen again, and a session that lost its worker is told without the loss', async () => {
    const store = memory()
    const script: Script = [{ error: 'server' }, { calls: [look(1)] }, 'Done.']
    const session = await harnessOf({ model: scripted(script), tools: tools(), store }).open()
    await session.run('Go.')
    const events = await readLog(store, session.id)
    expect(await again(events, { tools: tools() })).toMatchObject({ divergence: null })
    expect(events.map((event) => event.type)).toContain('model.failed')
    expect(await again(withLoss(events), { tools: tools() })).toMatchObject({ divergence: null })
  })
})

async function logOf(made: ReturnType<typeof long>): Promise<readonly Event[]> {
  const { store, id } = await made
  return readLog(store, id)
}

/** The same log, as if the worker had been lost during its last request and another had asked again. */
function withLoss(events: readonly Event[]): readonly Event[] {
  const asked = events.findLastIndex((event) => event.type === 'model.started')
  const started = events[asked]
  if (!started) return events
  const lost = { type: 'model.failed', class: 'lost', message: 'lost', retryable: true, epoch: 2 } as const
  const after = events.slice(asked + 1).map((event) => ({ ...event, epoch: event.epoch > 0 ? 2 : 0 }))
  const all = [...events.slice(0, asked + 1), { ...started, ...lost }, { ...started, epoch: 2, shows: [] }, ...after]
  return all.map((event, i) => ({ ...event, seq: i + 1 }))
}
