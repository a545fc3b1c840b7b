// Children that work on while their parent goes on: how they are started, found again, steered, waited for and closed, and how their
// reports come. Killed processes are in detached-kill.long.test.ts.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Event, Json, Request, CompleteStore } from '../../src/index.ts'
import { childrenOf, eventsOf, family, gate, ofType, play, resultsIn, STORAGES, toldIn, use } from './children-stage.ts'
import { until } from '../until.ts'

const spawn = (prompt: string, more: Readonly<Record<string, Json>> = {}) => use('spawn_subagent', { prompt, ...more })
const reportsIn = (request: Request): readonly string[] =>
  toldIn(request).filter((text) => text.startsWith('<subagent_report'))
type Started = { readonly subagent_session_id: string; readonly task_id: string; readonly decision: string }
/** What a call that started a child returned. */
const started = (content: unknown): Started => JSON.parse(String(content)) as Started
const idOf = (request: Request): string => started(resultsIn(request)[0]?.content).subagent_session_id
const DETACHED = { detached: true } as const

/** The reports that came to a session. */
async function reportsTo(
  store: CompleteStore,
  id: string,
): Promise<readonly Extract<Event, { type: 'user.message' }>[]> {
  return ofType(await eventsOf(store, id), 'user.message').filter(({ report }) => report !== undefined)
}

async function settled(store: CompleteStore, id: string, runs: number): Promise<void> {
  await until(async () => {
    expect(ofType(await eventsOf(store, id), 'run.settled')).toHaveLength(runs)
  })
}

describe.each(STORAGES)('a detached child on %s', (storage) => {
  it('B-SPAWN-1: a parent that started a child answers at once, and one run begins later with the report', async () => {
    const held = gate()
    const roles = {
      root: [spawn('dig'), 'I started it.', (request: Request) => `I read: ${reportsIn(request).length}`],
      dig: [async () => (await held.opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    const first = await session.run('Go.')
    expect(first).toMatchObject({ status: 'completed', text: 'I started it.' })
    const [child = ''] = await childrenOf(store, session.id)
    expect(started(first.calls[0]?.content)).toMatchObject({
      subagent_session_id: child,
      decision: 'spawned_new',
    })
    expect((await session.status({ include: ['children'] })).children).toMatchObject([
      { sessionId: child, status: 'running' },
    ])
    held.open()
    await settled(store, session.id, 2)
    const reports = await reportsTo(store, session.id)
    expect(reports).toMatchObject([{ by: `session:${child}`, when: 'next' }])
    expect(JSON.stringify(reports[0]?.parts)).toContain('Found it.')
    expect((await session.status()).text).toBe('I read: 1')
    expect((await session.status({ include: ['children'] })).children).toMatchObject([
      { sessionId: child, status: 'idle' },
    ])
  })

  it('B-SPAWN-2: children that end while the parent works are read once each, in one message', async () => {
    const held = gate()
    const tasks = Array.from({ length: 16 }, (_, i) => ({ prompt: `dig ${i}` }))
    const seen: (readonly string[])[] = []
    const messages: number[] = []
    const roles = {
      root: [
        use('spawn_parallel_agents', { tasks }),
        async () => (await held.opened, spawn('last')),
        (request: Request) => {
          seen.push(reportsIn(request))
          messages.push(request.messages.filter((m) => m.role === 'user' && m.report !== undefined).length)
          return 'Done.'
        },
        'Really done.',
      ],
      last: ['Last.'],
      ...Object.fromEntries(tasks.map(({ prompt }) => [prompt, [`Found ${prompt}.`]])),
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    const running = session.run('Go.')
    await until(async () => expect(await reportsTo(store, session.id)).toHaveLength(16))
    held.open()
    await running
    expect(new Set(seen[0]).size).toBeGreaterThanOrEqual(16)
    expect(messages[0]).toBe(1)
  })

  it('B-SPAWN-3: a child with the same task key is found again with its history, and with fresh another is made', async () => {
    const again = { task_key: 'the Dig!' }
    const lead = (request: Request) => {
      const told = toldIn(request).at(-1) ?? ''
      if (told.startsWith('<subagent_report') || resultsIn(request).length > Number(told.slice(-1))) return 'Well.'
      return spawn(
        'dig',
        told.startsWith('fresh')
          ? { ...again, fresh: true }
          : told.startsWith('other')
            ? { ...again, model: 'other' }
            : again,
      )
    }
    const dig = (request: Request) => `I was asked ${toldIn(request).length} times.`
    const roles = { root: Array.from({ length: 20 }, () => lead), dig: [dig, dig, dig] }
    const { harness, store } = family(roles, {
      storage,
      ...DETACHED,
      models: { named: { other: play({ dig: [dig] }) } },
    })
    const session = await harness.open()
    const decided = async (text: string, runs: number): Promise<Started> => {
      const { calls } = await session.run(text)
      await settled(store, session.id, runs)
      return started(calls[0]?.content)
    }
    const first = await decided('go 0', 2)
    expect(first).toMatchObject({ decision: 'spawned_new' })
    expect((await session.status({ include: ['children'] })).children).toMatchObject([
      { task: 'the-dig', status: 'idle' },
    ])
    const second = await decided('go 1', 4)
    expect(second).toMatchObject({ decision: 'reused_idle', subagent_session_id: first.subagent_session_id })
    expect(JSON.stringify((await reportsTo(store, session.id)).at(-1)?.parts)).toContain('I was asked 2 times.')
    const third = await decided('fresh 2', 6)
    expect(third.decision).toBe('forced_fresh')
    expect(third.subagent_session_id).not.toBe(first.subagent_session_id)
    expect((await decided('other 3', 8)).decision).toBe('spawned_new')
    expect((await session.status({ include: ['children'] })).children).toHaveLength(3)
  })

  it('B-SPAWN-4: a child of another session cannot be waited for, steered or closed', async () => {
    const roles = {
      root: [use('wait_subagent', { id: 'other~1.0' }), (request: Request) => `${resultsIn(request).at(-1)?.content}`],
    }
    const { harness } = family(roles, { storage, ...DETACHED })
    const { text } = await harness.run('Go.')
    expect(text).toMatch(/^\[?.*You have no subagent "other~1.0"/)
  })

  it('B-SPAWN-5: waiting parks the parent until the report is there', async () => {
    const held = gate()
    const roles = {
      root: [
        spawn('dig'),
        (request: Request) => use('wait_subagent', { id: started(resultsIn(request).at(-1)?.content).task_id }),
        (request: Request) => `${resultsIn(request).at(-1)?.content} ${reportsIn(request).length}`,
      ],
      dig: [async () => (await held.opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    const running = session.run('Go.')
    await until(async () => {
      const card = await store.card(session.id)
      expect(card?.waits).toHaveLength(1)
    })
    const claim = await store.claim(session.id, 'somebody-else', 60_000)
    expect(claim).not.toBeNull()
    await store.release(session.id, claim?.epoch ?? 0)
    held.open()
    expect((await running).text).toMatch(/has reported.* 1$/)
  })

  it('B-SPAWN-6: a wait that is over before the child says that it is still running, and that is no failure', async () => {
    const held = gate()
    const roles = {
      root: [
        spawn('dig'),
        (request: Request) =>
          use('wait_subagent', { id: started(resultsIn(request).at(-1)?.content).task_id, timeout_secs: 1 }),
        (request: Request) => `${resultsIn(request).at(-1)?.content}`,
        'Done.',
      ],
      dig: [async () => (await held.opened, 'Found it.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const result = await harness.run('Go.')
    expect(result.text).toMatch(/still running/)
    expect(result.calls[1]).toMatchObject({ status: 'ok' })
    const [child = ''] = await childrenOf(store, result.sessionId)
    held.open()
    await settled(store, child, 1)
  })

  it('B-SPAWN-7: what a child is told while it works is in its next request; a closed one is told nothing', async () => {
    const held = gate()
    const heard: (readonly string[])[] = []
    const roles = {
      root: [
        spawn('dig'),
        (request: Request) => use('steer_subagent', { id: idOf(request), message: 'Deeper.' }),
        'Told.',
        (request: Request) => use('close_subagent', { id: idOf(request) }),
        (request: Request) => use('steer_subagent', { id: idOf(request), message: 'Again.' }),
        (request: Request) => `${resultsIn(request).at(-1)?.content}`,
      ],
      dig: [
        async () => (await held.opened, use('list_subagents')),
        (request: Request) => {
          heard.push(toldIn(request))
          return 'Found it.'
        },
      ],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Go.')
    held.open()
    await settled(store, session.id, 2)
    expect(heard[0]).toContain('Deeper.')
    const text = (await session.status()).text
    expect(text).toMatch(/is closed/)
    await until(async () =>
      expect((await session.status({ include: ['children'] })).children).toMatchObject([{ status: 'closed' }]),
    )
  })

  it('B-SPAWN-8: the question of a child comes with its choices, and continue_subagent answers it', async () => {
    const asks = use('ask_user', { question: 'Which?', options: ['red', 'blue'] })
    const seen: string[] = []
    const roles = {
      root: [
        spawn('dig'),
        'Started.',
        (request: Request) => {
          seen.push(...reportsIn(request))
          return use('continue_subagent', { id: idOf(request), answer: 'blue' })
        },
        'Answered.',
        (request: Request) => `${reportsIn(request).at(-1)}`,
      ],
      dig: [asks, (request: Request) => `It is ${resultsIn(request).at(-1)?.content}.`],
    }
    const { defineTool } = await import('../../src/index.ts')
    const { z } = await import('zod')
    const askUser = defineTool({
      name: 'ask_user',
      description: 'asks',
      input: z.object({ question: z.string(), options: z.array(z.string()) }),
      effect: 'read',
    })
    const { harness, store } = family(roles, { storage, ...DETACHED, tools: [askUser] })
    const session = await harness.open()
    await session.run('Go.')
    await settled(store, session.id, 3)
    expect(seen[0]).toMatch(/Which\?[\s\S]*red \| blue[\s\S]*Do not start this task again/)
    expect((await session.status()).text).toContain('It is blue.')
  })

  it('B-SPAWN-30: a question that is told again says the same, whatever its siblings do meanwhile', async () => {
    const held = gate()
    const { defineTool } = await import('../../src/index.ts')
    const { z } = await import('zod')
    const outside = (name: string) =>
      defineTool({ name, description: name, input: z.object({ question: z.string() }), effect: 'read' })
    const asks = (tool: string) => ({ tool, args: { question: `${tool}?` } })
    const roles = {
      root: [spawn('wash'), spawn('dig'), 'Started.', 'I read it.', 'I read more.', 'And more.'],
      dig: [{ calls: [asks('first'), asks('second')] }, 'Done.'],
      wash: [async () => (await held.opened, 'Washed.')],
    }
    const tools = [outside('first'), outside('second')]
    const { harness, store } = family(roles, { storage, ...DETACHED, tools })
    const session = await harness.open()
    await session.run('Go.')
    const [wash = '', dig = ''] = await childrenOf(store, session.id)
    const questions = async () => (await reportsTo(store, session.id)).filter(({ by }) => by === `session:${dig}`)
    await until(async () => expect(await questions()).toHaveLength(1))
    held.open()
    await settled(store, wash, 1)
    const open = ofType(await eventsOf(store, dig), 'agent.custom_tool_use')
    // The question that was reported stays open: the child rests with it once more.
    await harness.session(dig).answer({ callId: open[1]?.call ?? '0.0', content: 'yes' })
    await until(async () => expect(ofType(await eventsOf(store, dig), 'agent.tool_result')).toHaveLength(1))
    await harness.session(dig).answer({ callId: open[0]?.call ?? '0.0', content: 'yes' })
    await settled(store, dig, 1)
    expect(await questions()).toHaveLength(2)
  })

  it('B-SPAWN-9: who stops the parent stops its children, also when the parent rests', async () => {
    const held = gate()
    const roles = {
      root: [spawn('dig'), 'Started.'],
      dig: [async () => (await held.opened, use('list_subagents')), 'No.'],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Go.')
    const [child = ''] = await childrenOf(store, session.id)
    await session.interrupt()
    held.open()
    await until(async () => {
      const [end] = ofType(await eventsOf(store, child), 'run.settled')
      expect(end?.outcome.type).toBe('interrupted')
    })
    expect(await reportsTo(store, session.id)).toEqual([])
    await until(async () => expect((await store.card(session.id))?.due).toBeNull())
  })

  it('B-SPAWN-10: a chain of children ends at its depth, and nothing is made', async () => {
    const roles = {
      root: [spawn('one'), 'ok', 'ok', 'ok'],
      one: [spawn('two'), 'ok', 'ok', 'ok'],
      two: [spawn('three'), 'ok', 'ok', 'ok'],
      three: [spawn('four'), (request: Request) => `${resultsIn(request).at(-1)?.content}`, 'ok'],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Go.')
    await until(async () => expect(await childrenOf(store, session.id)).toHaveLength(3))
    const deepest = (await childrenOf(store, session.id)).at(-1) ?? ''
    await settled(store, deepest, 1)
    expect(JSON.stringify(await eventsOf(store, deepest))).toContain('SpawnDepthExceeded')
    expect(await childrenOf(store, session.id)).toHaveLength(3)
  })

  it('B-SPAWN-13: a child that is waited for is not started when less time is left than the slowest one took', async () => {
    const slow = async (): Promise<string> => {
      await new Promise((resolve) => setTimeout(resolve, 700))
      return 'Found it.'
    }
    const roles = {
      root: [
        spawn('dig', { blocking: true }),
        spawn('dig', { blocking: true }),
        (request: Request) => `${resultsIn(request).at(-1)?.content}`,
      ],
      dig: [slow],
    }
    const limits = { activeMs: 600 }
    const { harness, store } = family(roles, {
      storage,
      ...DETACHED,
      limits,
      subagents: { subber: { description: 'x' } },
    })
    const { text, sessionId } = await harness.run('Go.')
    expect(text).toMatch(/its slowest subagent took/)
    expect(await childrenOf(store, sessionId)).toHaveLength(1)
  })

  it('B-SPAWN-11: a host starts a child by itself, and finds it again by its task key', async () => {
    const roles = { root: ['Hello.', 'Read.', 'Read again.', 'x'], dig: ['Found it.', 'More.'] }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Hi.')
    const { sessionId, decision } = await session.spawn('subagent', 'dig', { taskKey: 'dig' })
    expect(decision).toBe('spawned_new')
    await settled(store, session.id, 2)
    expect(await session.spawn('subagent', 'dig', { taskKey: 'dig' })).toEqual({ sessionId, decision: 'reused_idle' })
    await settled(store, session.id, 3)
    expect((await session.status({ include: ['children'] })).children).toMatchObject([
      { sessionId, task: 'dig', status: 'idle' },
    ])
    await expect(session.spawn('subagent', 'dig', { taskkey: 'x' } as never)).rejects.toThrow(/taskKey/)
  })

  it('B-SPAWN-22: who stops a session stops all that work below it, also below a child that has ended', async () => {
    const held = gate()
    const roles = {
      root: [spawn('middle'), 'Started.', 'I read it.', 'And that.', 'And that too.'],
      middle: [spawn('dig'), 'I started one too.', 'I read it.'],
      dig: [async () => (await held.opened, use('list_subagents')), 'No.'],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Go.')
    await settled(store, session.id, 2)
    const [middle = '', deepest = ''] = await childrenOf(store, session.id)
    expect(deepest.startsWith(`${middle}~`)).toBe(true)
    await session.interrupt()
    held.open()
    await until(async () => {
      const [end] = ofType(await eventsOf(store, deepest), 'run.settled')
      expect(end?.outcome.type).toBe('interrupted')
    })
  })

  it('B-SPAWN-65: a stop is in the log of each that works below, also below a child that works, when it is acknowledged', async () => {
    const held = gate()
    const roles = {
      root: [spawn('middle'), 'Started.'],
      middle: [spawn('dig'), async () => (await held.opened, 'Too late.')],
      dig: [async () => (await held.opened, 'Too late.')],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Go.')
    await until(async () => expect(await childrenOf(store, session.id)).toHaveLength(2))
    await session.interrupt()
    for (const child of await childrenOf(store, session.id))
      expect(ofType(await eventsOf(store, child), 'user.interrupt')).toMatchObject([{ mode: 'stop' }])
    held.open()
  })

  it('B-SPAWN-31: who closes a child that rests stops all that work below it', async () => {
    const held = gate()
    const roles = {
      root: [
        spawn('middle'),
        'Started.',
        (request: Request) => use('close_subagent', { id: idOf(request) }),
        'Closed.',
        'I read it.',
      ],
      middle: [spawn('dig'), 'I started one too.', 'I read it.'],
      dig: [async () => (await held.opened, use('list_subagents')), 'No.'],
    }
    const { harness, store } = family(roles, { storage, ...DETACHED })
    const session = await harness.open()
    await session.run('Go.')
    await settled(store, session.id, 2)
    const [middle = '', deepest = ''] = await childrenOf(store, session.id)
    await until(async () => expect(ofType(await eventsOf(store, middle), 'session.closed')).toHaveLength(1))
    held.open()
    await settled(store, deepest, 1)
    expect(ofType(await eventsOf(store, deepest), 'run.settled')).toMatchObject([{ outcome: { type: 'interrupted' } }])
  })
})

it('B-SPAWN-12: the example of the guide runs as it stands there', () => {
  const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
  const guide = text('../../docs/guide/subagents.md')
  const [code = ''] = [...guide.matchAll(/```ts\n([\s\S]*?)```/g)].flatMap(([, each = '']) =>
    each.includes('detached: true') ? [each] : [],
  )
  const example = text('./child-guide-detached.ts')
  expect(code.replace("'terret'", "'../../src/index.ts'")).toBe(example.slice(example.indexOf('\n') + 1))
  const script = fileURLToPath(new URL('../../.build/test/runtime/child-guide-detached.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' }).trim().split('\n')).toEqual([
    'I am finding out.',
    'researcher: idle',
  ])
})
