// The driver: what is written when, what is started when, and that nothing can hold it up.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Fault, Harness, memory, scripted, type CompleteStore, type Tool } from '../../src/index.ts'
import { landAbandoned } from '../../src/runtime/turn/landings.ts'
import { storeWith } from '../../sim/store-with.ts'
import { until } from '../until.ts'
import { observed, stage, typesOf } from './stage.ts'

const input = z.object({})
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

function tool(
  name: string,
  execute: (signal: AbortSignal) => unknown,
  extra: Partial<Parameters<typeof defineTool<object>>[0]> = {},
): Tool {
  return defineTool({
    name,
    description: name,
    input,
    effect: 'once',
    execute: (_args, context) => execute(context.signal),
    ...extra,
  })
}

/** The same store; what its caller waits for is noted. */
function noting(store: CompleteStore, asked: string[]): CompleteStore {
  const note = <K extends 'commit' | 'claim' | 'read' | 'snapshot' | 'card'>(name: K): CompleteStore[K] => {
    const act = store[name].bind(store) as (...args: never[]) => unknown
    return ((...args: never[]) => {
      asked.push(name)
      return act(...args)
    }) as CompleteStore[K]
  }
  const noted = { commit: note('commit'), claim: note('claim'), read: note('read'), snapshot: note('snapshot') }
  return storeWith(store, { ...noted, card: note('card') })
}

describe('the driver', () => {
  it('B-DRIVE-1: a turn is two commits: the reply with its intents, the results with the next request', async () => {
    const { store, commits } = observed(memory())
    const { session } = await stage([{ calls: [{ tool: 'a' }, { tool: 'b' }] }, 'done'], {
      store,
      tools: [tool('a', () => 1), tool('b', () => 2)],
    })
    await session.run('go')
    expect(commits).toEqual([
      ['run.started', 'model.started'],
      ['agent.message', 'agent.tool_use', 'agent.tool_use'],
      ['agent.tool_result', 'agent.tool_result', 'model.started'],
      ['agent.message', 'run.settled'],
    ])
  })

  it('B-DRIVE-22: a run of one answer in a new session waits for its store five times', async () => {
    const asked: string[] = []
    const store = noting(memory(), asked)
    const harness = new Harness({ model: scripted(['done']), store })
    await harness.run('go')
    // The first reading is for the caller, while the worker claims.
    expect(asked).toEqual(['commit', 'read', 'claim', 'read', 'commit', 'commit'])
    await harness.close()
  })

  it('B-DRIVE-22: a snapshot is asked for from 100 events on', async () => {
    const asked: string[] = []
    const store = noting(memory(), asked)
    for (let events = 0; events < 110; ) {
      asked.length = 0
      const harness = new Harness({ model: scripted(() => 'done'), store })
      const session = await harness.open({ id: 's' })
      const before = (await session.events()).events.length
      await session.run('go')
      expect(asked.includes('snapshot')).toBe(before >= 99)
      events = before
      await harness.close()
    }
  })

  it('B-DRIVE-2: nothing starts before its intent is on disk', async () => {
    let seen: readonly string[] = []
    const look = tool('look', async () => {
      seen = await typesOf(session)
    })
    const { session } = await stage([{ calls: [{ tool: 'look' }] }, 'done'], { tools: [look] })
    await session.run('go')
    expect(seen.at(-1)).toBe('agent.tool_use')
  })

  it('B-DRIVE-3: a tool that ignores its abort cannot hold the run: after its grace the outcome is timeout, or unknown for once', async () => {
    const heedless = { timeoutMs: 20 }
    const tools = [
      tool('never', () => new Promise(() => {}), heedless),
      tool('reading', () => new Promise(() => {}), { ...heedless, effect: 'read' }),
    ]
    const { session, harness } = await stage([{ calls: [{ tool: 'never' }, { tool: 'reading' }] }, 'done'], {
      tools,
      graceMs: 20,
    })
    expect(await session.run('go')).toMatchObject({ status: 'completed' })
    const { events } = await session.events()
    expect(events.filter((event) => event.type === 'agent.tool_result')).toMatchObject([
      { status: 'unknown' },
      { status: 'timeout' },
    ])
    await harness.close()
  })

  it('B-DRIVE-4: a model that never answers is timed out and asked again; a late answer changes nothing', async () => {
    const script = [{ stall: true } as const, 'done']
    const { session, harness } = await stage(script, { limits: { modelMs: 20 } })
    expect(await session.run('go')).toMatchObject({ status: 'completed', text: 'done' })
    expect(await typesOf(session)).toContain('model.failed')
    await harness.close()
  })

  it('B-DRIVE-5: a conflict drops the uncommitted, folds the newcomer, decides again, and keeps what landed', async () => {
    let ran = 0
    let sent = false
    const { store } = observed(memory(), async (writes) => {
      const results = writes.some(
        (write) => write.lane === 'owner' && write.events.some((event) => event.type === 'agent.tool_result'),
      )
      if (!results || sent) return
      sent = true
      await session.send('while it lands')
    })
    const pay = tool('pay', () => ++ran)
    const { session } = await stage([{ calls: [{ tool: 'pay' }] }, 'done'], { store, tools: [pay] })
    expect(await session.run('go')).toMatchObject({ status: 'completed' })
    expect(ran).toBe(1)
    const { events } = await session.events()
    expect(events.filter((event) => event.type === 'model.started').map((event) => event.shows.length)).toEqual([1, 2])
  })

  it('B-DRIVE-6: a full disk pauses the run and loses nothing; it goes on when there is room (F15)', async () => {
    let full = 2
    let ran = 0
    const { store } = observed(memory(), (writes) => {
      const owner = writes.some(
        (write) => write.lane === 'owner' && write.events.some((event) => event.type === 'agent.tool_result'),
      )
      if (owner && full-- > 0) throw new Fault('disk_full', 'The disk is full.')
    })
    const { session } = await stage([{ calls: [{ tool: 'pay' }] }, 'done'], {
      store,
      tools: [tool('pay', () => ++ran)],
    })
    expect(await session.run('go')).toMatchObject({ status: 'completed' })
    expect(ran).toBe(1)
  })

  it('B-DRIVE-7: a lost lease stops the attempt at once, and what it had in flight is never written as a result (P6, F24)', async () => {
    const store = memory()
    let aborted = false
    const slow = tool('slow', async (signal) => {
      const claim = await store.claim(session.id, 'thief', 30_000)
      expect(claim).toBeNull()
      await wait(500)
      aborted = signal.aborted
      return 'payment 4711 made'
    })
    const { session, harness } = await stage([{ calls: [{ tool: 'slow' }] }], { store, tools: [slow], leaseMs: 200 })
    const running = session.run('go')
    await wait(5)
    // The worker's lease runs out because its heartbeat cannot come through, and another takes the session.
    store.extend = () => new Promise(() => {})
    await wait(240)
    const thief = await store.claim(session.id, 'thief', 30_000)
    expect(thief?.epoch).toBe(2)
    await until(() => expect(aborted).toBe(true))
    await until(async () => expect((await typesOf(session)).at(-1)).toBe('user.custom_tool_result'))
    expect((await typesOf(session)).slice(-2)).toEqual(['agent.tool_use', 'user.custom_tool_result'])
    // The late result is recorded, beside the `unknown` result that the new owner of the session writes for the call.
    const { events } = await session.events()
    expect(events.at(-1)).toMatchObject({
      call: events.find((event) => event.type === 'agent.tool_use')?.call,
      ok: true,
      content: 'payment 4711 made',
      metadata: { late_result: true },
    })
    running.catch(() => {})
    await harness.close()
  })

  it('B-DRIVE-8: closing aborts what is in flight, writes down what it came to, and gives the session back', async () => {
    const slow = tool(
      'slow',
      (signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
      { effect: 'read' },
    )
    const store = memory()
    const { session, harness } = await stage([{ calls: [{ tool: 'slow' }] }], { store, tools: [slow] })
    const running = session.run('go')
    await wait(10)
    await harness.close()
    await running
    const { events } = await store.read(session.id, 0)
    expect(events.at(-1)).toMatchObject({ type: 'agent.tool_result', status: 'aborted' })
    expect(await store.claim(session.id, 'next', 1_000)).not.toBeNull()
    expect((await store.due(10)).sessions).toEqual([])
  })

  it('B-DRIVE-9: a hold that does not fit its account ends the run before the call, and nothing is held after (P-money)', async () => {
    const store = memory()
    const { session, harness } = await stage([{ text: 'one', cost: 600 }, 'two'], {
      store,
      limits: { hold: 1_000 },
    })
    const account = `session:${session.id}`
    await store.commit([limitOf(await store.card(session.id), account, 1_500)])
    expect(await session.run('go')).toMatchObject({ status: 'completed', cost: { micros: 600 } })
    expect(await session.run('again')).toMatchObject({ status: 'limit', limit: 'usd' })
    expect(await store.account(account)).toMatchObject({ held: 0, spent: 600 })
    await harness.close()
  })

  it('B-DRIVE-10: fan-out stays linear: a thousand calls in one turn, each run once, results in model order', async () => {
    const calls = Array.from({ length: 1_000 }, (_, i) => ({ tool: 'echo', args: { i } }))
    const echo = defineTool({
      name: 'echo',
      description: 'echo',
      input: z.object({ i: z.number() }),
      effect: 'read',
      execute: ({ i }) => `${i}`,
    })
    const { session } = await stage(
      [
        { calls },
        (request) =>
          request.messages
            .flatMap((m) => (m.role === 'tool' && typeof m.content === 'string' ? [m.content] : []))
            .join(' '),
      ],
      { tools: [echo] },
    )
    const result = await session.run('go')
    expect(result.text).toBe(calls.map((call) => call.args.i).join(' '))
  })

  it('B-DRIVE-11: a tool that changes its arguments changes nothing of ours (F47)', async () => {
    const greedy = defineTool({
      name: 'greedy',
      description: 'greedy',
      input: z.object({ list: z.array(z.number()) }),
      execute: ({ list }) => list.splice(0).length,
    })
    const { session } = await stage([{ calls: [{ tool: 'greedy', args: { list: [1, 2] } }] }, 'done'], {
      tools: [greedy],
    })
    await session.run('go')
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'agent.message')).toMatchObject({
      calls: [{ args: { list: [1, 2] } }],
    })
  })

  it('B-DRIVE-12: a large result lives beside the log, by hash, and the model still reads all of it', async () => {
    const big = 'ä'.repeat(100_000)
    const script = [
      { calls: [{ tool: 'big' }] },
      (request: { messages: readonly { role: string; content?: unknown }[] }) =>
        `${String(request.messages.find((m) => m.role === 'tool')?.content).length}`,
    ]
    const { session } = await stage(script, { tools: [tool('big', () => big)], compression: 'off' })
    expect(await session.run('go')).toMatchObject({ text: '100000' })
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'agent.tool_result')).toMatchObject({
      content: { type: 'blob', bytes: 200_000 },
    })
  })

  it('B-DRIVE-20: a session that was given back is left, also if its wait is a short one by the time that is on disk', async () => {
    const epochs: (readonly [epoch: number, release: boolean])[] = []
    const { store } = observed(memory(), async ([write]) => {
      if (write?.lane !== 'owner' || write.epoch === 0) return
      epochs.push([write.epoch, write.release === true])
      if (write.events[0]?.type === 'model.failed') await wait(150)
    })
    const slow = {
      type: 'failure',
      class: 'rate_limit',
      message: 'Slow down.',
      retryable: true,
      retryAfterMs: 350,
    } as const
    const done = {
      type: 'reply',
      parts: [{ type: 'text', text: 'done' }],
      calls: [],
      finish: 'stop',
      usage: null,
    } as const
    let asked = 0
    const model = { name: 'slow', call: async () => (asked++ === 0 ? slow : done) }
    const harness = new Harness({ model, store, worker: { lingerMs: 300 } })
    expect(await harness.run('go')).toMatchObject({ text: 'done' })
    await harness.close()
    expect(epochs).toEqual([
      [1, false],
      [1, true],
      [2, false],
      [2, true],
    ])
  })

  it('B-DRIVE-21: a call that is stopped before it is tried again does not say that it did not run', () => {
    const proposal = { id: 'p', tool: 'look', args: {}, effect: 'read', timeoutMs: 1, digest: '' } as const
    const said = (tries: number): unknown => {
      const call = { key: '3.0', index: 0, proposal, state: { type: 'running', epoch: 2, tries } } as const
      const [result] = landAbandoned(
        { type: 'run', key: 'run:3.0', call, mode: 'execute' },
        'interrupted',
        false,
      ).events
      return result && 'content' in result && result.content
    }
    expect(said(0)).toBe('Stopped before it started: it did not run.')
    expect(said(1)).toBe('Stopped before it was tried again: the try before was lost, and may have run.')
  })
})

function limitOf(card: Awaited<ReturnType<ReturnType<typeof memory>['card']>>, account: string, limit: number) {
  if (!card) throw new Error('no card')
  const other = { ...card, session: 'budget' }
  const created = {
    seq: 1,
    at: card.at,
    epoch: 0,
    type: 'session.created',
    agent: 'default',
    planner: 'model',
  } as const
  return {
    session: 'budget',
    lane: 'owner',
    epoch: 0,
    expectedSeq: 0,
    events: [created],
    card: other,
    charges: [{ type: 'limit', account, limit }],
  } as const
}
