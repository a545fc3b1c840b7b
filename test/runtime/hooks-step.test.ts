// The hook before each request: what it sees, what it may choose, and what becomes of a word that cannot be meant. What a crash leaves
// of it is hooks-kill.test.ts.
import { describe, expect, it, onTestFinished } from 'vitest'
import { fallback, Harness, type Hook, type HookEvents, type Model, scripted, type Script } from '../../src/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { noting, stage, storages } from './hooks-stage.ts'
import { until } from '../until.ts'

type Seen = HookEvents['before_request']
const use = (...tools: readonly string[]) => ({ calls: tools.map((tool) => ({ tool, args: { n: 1 } })) })
const USED = { inputTokens: 10, outputTokens: 5 }

/** Notes what it sees, and says what `word` says. */
function step(word: (seen: Seen) => unknown, seen: Seen[] = []): Hook {
  const run = async (event: Seen) => {
    seen.push(event)
    return word(event) as undefined
  }
  return { type: 'before_request', run }
}

describe.each(Object.entries(storages))('the hook before a request, on %s', (_name, storage) => {
  it('B-HOOK-53: is asked once a turn, and sees the turn, the usage and how long the conversation is', async () => {
    const seen: Seen[] = []
    const script: Script = [{ ...use('look'), usage: USED, cost: 250_000 }, 'done']
    const { harness, requests, store } = stage(script, [step(() => undefined, seen)], {
      tools: [noting()('look')],
      storage,
    })
    const session = await harness.open({ metadata: { user: 7 } })
    expect((await session.run('Go.')).text).toBe('done')
    const at = { session: session.id, agent: 'default', metadata: { user: 7 }, tools: ['look'], routes: [] }
    expect(seen).toMatchObject([
      { ...at, turn: 1, usage: { requests: 0, toolCalls: 0, tokens: 0, costUsd: 0 } },
      { ...at, turn: 2, usage: { requests: 1, toolCalls: 1, tokens: 15, costUsd: 0.25 } },
    ])
    expect(seen.map(({ messages }) => messages)).toEqual(requests.map(({ messages }) => messages.length))
    expect(seen[0]?.chars).toBe('Go.'.length)
    expect(seen[1]?.chars).toBeGreaterThan('Go.look 1 done'.length)
    // A hook that says nothing leaves nothing behind.
    const { events } = await store.read(session.id, 0, 100)
    expect(events.filter(({ type }) => type === 'note.added')).toEqual([])
    for (const event of events) if (event.type === 'model.started') expect(Object.keys(event)).not.toContain('tools')
  })

  it('B-HOOK-54: may narrow the tools: the list stays, the model is told, and what it calls besides is refused', async () => {
    const ran: string[] = []
    const tool = noting(ran)
    const script: Script = [use('look', 'write'), use('write'), 'done']
    const word = ({ turn }: Seen) => (turn === 1 ? { allow: ['look'] } : turn === 3 ? { allow: [] } : undefined)
    const { harness, requests, store } = stage(script, [step(word)], { tools: [tool('look'), tool('write')], storage })
    const session = await harness.open()
    const result = await session.run('Go.')
    expect(result.calls.map(({ tool: name, status }) => [name, status])).toEqual([
      ['look', 'ok'],
      ['write', 'denied'],
      ['write', 'ok'],
    ])
    expect(result.calls[1]?.content).toBe(
      'Only these could: look. This one could not be used in the last request. It did not run.',
    )
    expect(ran).toEqual(['look 1', 'write 1'])
    expect(requests.map(({ tools }) => tools.length)).toEqual([2, 2, 2])
    expect(requests.map(({ allow }) => allow)).toEqual(['all', 'all', 'none'])
    expect(JSON.stringify(requests[0]?.messages)).toContain('In your next reply use only: look.')
    // What was sent before stays as it was.
    for (const { messages } of requests) expect(messages).toEqual(requests.at(-1)?.messages.slice(0, messages.length))
    const { events } = await store.read(session.id, 0, 100)
    const started = events.filter((event) => event.type === 'model.started')
    expect(started.map(({ tools }) => tools)).toEqual([['look'], undefined, []])
  })

  it('B-HOOK-54: may choose the model of a chain that is asked first, and add a note', async () => {
    const model = (name: string): Model => {
      const inner = scripted(() => `I am ${name}.`)
      return { name, call: (request, context) => inner.call(request, context) }
    }
    const seen: Seen[] = []
    const store = storage()
    const harness = new Harness({
      model: fallback(model('cheap'), model('strong')),
      hooks: [step(({ turn }) => (turn === 1 ? { route: 'strong', note: 'Think.' } : undefined), seen)],
      store,
    })
    onTestFinished(() => store.close())
    onTestFinished(() => harness.close())
    const session = await harness.open()
    const result = await session.run('Go.', { raw: true })
    expect(result.text).toBe('I am strong.')
    expect(result.responses?.map(({ route }) => route)).toEqual(['strong'])
    expect(seen[0]?.routes).toEqual(['cheap', 'strong'])
    expect(JSON.stringify(result.messages)).toContain('<hook_context>\\nThink.\\n</hook_context>')
  })
})

describe('the hook before a request', () => {
  it('B-HOOK-55: a request that is repeated has the word that was said for it', async () => {
    const seen: Seen[] = []
    const script: Script = [{ error: 'server', message: 'down' }, { error: 'server', message: 'down' }, 'done']
    const word = ({ turn }: Seen) => ({ note: `Turn ${turn}, asked ${seen.length} times.` })
    const { harness, requests } = stage(script, [step(word, seen)])
    expect((await harness.run('Go.')).text).toBe('done')
    expect(seen).toHaveLength(1)
    expect(requests.map(({ messages }) => messages)).toEqual([
      requests[0]?.messages,
      requests[0]?.messages,
      requests[0]?.messages,
    ])
  })

  it('B-HOOK-55: of several the first route counts, the tools that all allow, and every note', async () => {
    const tool = noting()
    const hooks = [step(() => ({ allow: ['a', 'b'], note: 'One.' })), step(() => ({ allow: ['b', 'c'], note: 'Two.' }))]
    const { harness, store } = stage(['done'], hooks, { tools: [tool('a'), tool('b'), tool('c')] })
    const { sessionId } = await harness.run('Go.')
    const { events } = await store.read(sessionId, 0, 100)
    expect(events.find(({ type }) => type === 'model.started')).toMatchObject({ tools: ['b'] })
    const [note] = events.filter((event) => event.type === 'note.added')
    expect(note?.text).toBe('One.\n\nTwo.\n\nIn your next reply use only: b.')
  })

  it.each([
    [
      'a route that there is not',
      { route: 'x' },
      'It chose the route "x", which there is not. The model is not a chain',
      undefined,
    ],
    [
      'a tool that the run lacks',
      { allow: ['look', 'y'] },
      'It allows the tool "y", which this run does not have.',
      ['look'],
    ],
    ['tools that are no list', { allow: 'look' }, 'must be a list', []],
    ['an option that there is not', { allows: ['look'] }, 'did you mean "allow"?', undefined],
    ['no object', 'look', 'must be an object', undefined],
  ])(
    'B-HOOK-57: %s is reported; tools are held back as far as it can be meant, and strictly the run ends',
    async (_what, word, why, tools) => {
      const given = { tools: [noting()('look')] }
      const { harness, store, reports } = stage(['done'], [step(() => word)], given)
      const result = await harness.run('Go.')
      expect(result.text).toBe('done')
      expect(reports).toEqual([['hook before_request', expect.stringContaining(why) as string]])
      const { events } = await store.read(result.sessionId, 0, 100)
      expect(events.findLast((event) => event.type === 'model.started')?.tools).toEqual(tools)
      const strict = stage(['done'], [step(() => word)], { ...given, strict: true })
      const failed = await strict.harness.run('Go.')
      expect(failed).toMatchObject({ status: 'failed', stopReason: 'hook_error', usage: { modelRequests: 0 } })
      expect(JSON.stringify(failed)).toContain(JSON.stringify(why).slice(1, -1))
    },
  )

  it('B-HOOK-57: one that throws is reported and the request is made; strictly the run ends', async () => {
    const broken = step(() => {
      throw new Error('broken')
    })
    const { harness, reports } = stage(['done'], [broken])
    expect((await harness.run('Go.')).text).toBe('done')
    expect(reports).toEqual([['hook before_request', 'broken']])
    const strict = stage(['done'], [broken], { strict: true })
    expect(await strict.harness.run('Go.')).toMatchObject({ stopReason: 'hook_error' })
  })

  it('B-HOOK-58: an interrupt while it is asked ends the run, and no request is made', async () => {
    const seen: Seen[] = []
    const { harness, requests } = stage(['done'], [step(() => new Promise(() => {}), seen)])
    const session = await harness.open()
    const running = session.run('Go.')
    await until(() => expect(seen).toHaveLength(1))
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted' })
    expect(requests).toEqual([])
  })

  it('B-HOOK-58: a message that comes while it is asked is in the request', async () => {
    let answer = (): void => {}
    const seen: Seen[] = []
    const word = () =>
      new Promise((resolve) => {
        answer = () => resolve({ note: 'Noted.' })
      })
    const { harness, requests } = stage(['done'], [step(word, seen)])
    const session = await harness.open()
    const running = session.run('Go.')
    await until(() => expect(seen).toHaveLength(1))
    await session.send('And this.')
    answer()
    await running
    expect(requests).toHaveLength(1)
    expect(JSON.stringify(requests[0]?.messages)).toContain('And this.')
    expect(JSON.stringify(requests[0]?.messages)).toContain('Noted.')
  })

  it('B-HOOK-59: what a file says of a request is not believed: after an import the hook is asked anew', async () => {
    const away: Script = () => ({ error: 'server', message: 'down', retryAfterMs: 600_000 })
    const tool = noting()
    const tools = [tool('look'), tool('write')]
    const there = stage(away, [step(() => ({ allow: ['look', 'write'] }))], { tools })
    const session = await there.harness.open()
    expect((await session.run('Go.', { patienceMs: 0 })).status).toBe('sleeping')
    const file: unknown = JSON.parse(JSON.stringify(await exportSession(there.store, session.id)))
    const seen: Seen[] = []
    const here = stage(['done'], [step(() => ({ allow: ['look'] }), seen)], { tools })
    const { session: id } = await importSession(here.store, file, { id: 'imported' })
    await here.harness.session(id).send([{ type: 'resume' }])
    expect((await here.harness.session(id).run()).text).toBe('done')
    expect(seen).toHaveLength(1)
    const { events } = await here.store.read(id, 0, 100)
    expect(events.findLast((event) => event.type === 'model.started')?.tools).toEqual(['look'])
  })
})
