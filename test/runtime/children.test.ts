// Subagents as durable children: how one is made, what it gets, and what its parent gets back. How they end otherwise is
// children-ends.test.ts; a whole tree seen from its root children-tree.test.ts; killed processes children-kill.long.test.ts.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Fault, Harness, type HarnessOptions, type Request, type Tool, type ToolSource } from '../../src/index.ts'
import type { ToolAccess } from '../../src/runtime/state/toolbox.ts'
import type { Write } from '../../src/ports/store.ts'
import {
  ask,
  childrenOf,
  endsOf,
  eventsOf,
  family,
  gate,
  ofType,
  play,
  report,
  resultsIn,
  say,
  STORAGES,
  storeOf,
  toldIn,
  toldTo,
  tool,
  treeOf,
  use,
} from './children-stage.ts'
import { observed } from './stage.ts'
import { makeOldSession } from '../old-session.ts'
import { until } from '../until.ts'

const NAMED = { helper: { description: 'helps' } } as const

describe.each(STORAGES)('a child on %s', (storage) => {
  it('B-CHILD-1: a child is made in the commit that hands its call over, and its name is made of the call', async () => {
    const commits: (readonly Write[])[] = []
    const { store } = observed(storeOf(storage), (writes) => void commits.push(writes))
    const { harness } = family({ root: [ask('dig'), report], dig: ['Found it.'] }, { store })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', text: 'Found it.' })
    const { sessionId: root } = result
    const [use] = ofType(await eventsOf(store, root), 'agent.custom_tool_use')
    const child = `${root}~${use?.call}`
    const made = commits.filter((writes) => writes.some(({ session }) => session === child))[0] ?? []
    expect(made.map(({ session, lane }) => [session, lane])).toEqual([
      [root, 'owner'],
      [child, 'owner'],
      [child, 'inbox'],
    ])
    expect(made[0]?.events.map(({ type }) => type)).toContain('agent.custom_tool_use')
    expect((await eventsOf(store, child)).slice(0, 2)).toMatchObject([
      { type: 'session.created', agent: 'subagent', parent: { session: root, call: use?.call, root, depth: 1 } },
      { type: 'user.message', parts: [{ text: 'dig' }], by: `session:${root}` },
    ])
  })

  it('B-CHILD-55: an answer of a child that was cut says so to its parent', async () => {
    const { harness } = family(
      { root: [ask('dig'), report], dig: [{ text: 'Found ha', finish: 'length' }] },
      { storage },
    )
    const { text, calls } = await harness.run('Go.')
    expect(text).toMatch(/^Found ha\n\[cut: .*not all of it\]$/)
    expect(calls).toMatchObject([{ status: 'ok' }])
  })

  it('B-CHILD-2: the call is answered once, by the commit in which the child settles', async () => {
    const commits: (readonly Write[])[] = []
    const { store } = observed(storeOf(storage), (writes) => void commits.push(writes))
    const { harness } = family(
      { root: [ask('dig'), report], dig: [use('look'), 'Found it.'] },
      { store, tools: [tool('look')] },
    )
    const { sessionId: root } = await harness.run('Go.')
    const [child = ''] = await childrenOf(store, root)
    const answers = await toldTo(store, root)
    const about = { agent: 'subagent', session: child, status: 'completed', model_requests: 2, tool_calls: 1 }
    expect(answers).toMatchObject([{ ok: true, content: 'Found it.', by: `session:${child}`, metadata: about }])
    const results = ofType(await eventsOf(store, root), 'agent.tool_result')
    expect(results).toMatchObject([{ call: answers[0]?.call, status: 'ok', from: answers[0]?.seq }])
    const ends = commits.flat().filter((write) => write.events.some(({ type }) => type === 'run.settled'))
    const end = ends.find(({ session }) => session === child)
    expect(end?.lane === 'owner' && end.sends?.map(({ session, event }) => [session, event.type])).toEqual([
      [root, 'user.custom_tool_result'],
    ])
  })

  it('B-CHILD-3: no worker holds the parent while a child works, and the siblings of the call run', async () => {
    const held = gate()
    const digging: () => Promise<string> = async () => {
      await held.opened
      return 'Found it.'
    }
    const both = { calls: [...ask('dig').calls, ...use('look').calls] }
    const roles = {
      root: [
        both,
        (r: Request) =>
          resultsIn(r)
            .map(({ content }) => content)
            .join(', '),
      ],
      dig: [digging],
    }
    const { harness, store } = family(roles, { storage, tools: [tool('look')] })
    const session = await harness.open()
    const running = session.run('Go.')
    await until(async () => {
      expect(ofType(await eventsOf(store, session.id), 'agent.tool_result')).toHaveLength(1)
      expect(await store.card(session.id)).toMatchObject({ status: 'running', due: null })
    })
    const claim = await store.claim(session.id, 'somebody-else', 60_000)
    expect(claim).not.toBeNull()
    await store.release(session.id, claim?.epoch ?? 0)
    held.open()
    expect(await running).toMatchObject({ status: 'completed', text: 'Found it., look ran' })
  })

  it('B-CHILD-4: several children work at once, and their results come in the order of the calls', async () => {
    const [slow, begun] = [gate(), gate()]
    const roles = {
      root: [
        ask('slow', 'quick'),
        (r: Request) =>
          resultsIn(r)
            .map(({ content }) => content)
            .join(' then '),
      ],
      slow: [
        async () => {
          begun.open()
          await slow.opened
          return 'slow one'
        },
      ],
      quick: ['quick one'],
    }
    const { harness, store } = family(roles, { storage })
    const session = await harness.open()
    const running = session.run('Go.')
    await begun.opened
    await until(async () => expect(await toldTo(store, session.id)).toHaveLength(1))
    slow.open()
    expect(await running).toMatchObject({ status: 'completed', text: 'slow one then quick one' })
    expect((await toldTo(store, session.id)).map(({ content }) => content)).toEqual(['quick one', 'slow one'])
  })

  it('B-CHILD-5: every session of a tree pays on the account of its top one, grandchildren too (threat 50)', async () => {
    const paid = (text: string, cost: number) => ({ text, cost })
    const roles = {
      root: [{ ...ask('one'), cost: 1 }, paid('done', 20)],
      one: [{ ...ask('two'), cost: 300 }, paid('done', 4_000)],
      two: [paid('done', 50_000)],
    }
    const { harness, store } = family(roles, { storage, budget: { treeUsd: 5 } })
    const { sessionId: root } = await harness.run('Go.')
    expect(await store.account(`tree:${root}`)).toMatchObject({ limit: 5_000_000, held: 0, spent: 54_321 })
    const below = await childrenOf(store, root)
    expect(below).toHaveLength(2)
    for (const child of below) expect(await store.account(`tree:${child}`)).toBeNull()
    expect(await Promise.all(below.map((child) => store.account(`session:${child}`)))).toMatchObject([
      { spent: 4_300 },
      { spent: 50_000 },
    ])
  })

  it('B-CHILD-6: a tree that has no money left asks no model in any child, and the parent waits until a person allows more (threat 50)', async () => {
    // A call of a model without a price holds about $0.12; the first one costs nearly all there is.
    const roles = { root: [{ ...ask('dig'), cost: 190_000 }, report], dig: [{ text: 'dug', cost: 1_000 }] }
    const { harness, store } = family(roles, { storage, budget: { treeUsd: 0.2 } })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'requires_action', usage: { modelRequests: 1 } })
    expect(await toldTo(store, result.sessionId)).toEqual([])
    expect((await store.account(`tree:${result.sessionId}`))?.spent).toBe(190_000)
    const session = harness.session(result.sessionId)
    await session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: expect.stringContaining('dug') as string })
  })
})

describe('limits of children', () => {
  it('B-CHILD-7: a child has limits and notices of its own, and uses up nothing of its parent (AC-58)', async () => {
    const seen: Record<string, number[]> = { root: [], dig: [] }
    const note = (role: string, request: Request): void => {
      seen[role]?.push(toldIn(request).filter((text) => text.includes('limit_warning')).length)
    }
    const roles = {
      root: [(r: Request) => say(ask('dig'), note('root', r)), (r: Request) => say('done', note('root', r))],
      dig: [(r: Request) => say(use('look'), note('dig', r)), (r: Request) => say('dug', note('dig', r))],
    }
    const { harness, store } = family(roles, { tools: [tool('look')], limits: { modelRequests: 2, toolCalls: 1 } })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', ownUsage: { modelRequests: 2, toolCalls: 1 } })
    expect(await toldTo(store, result.sessionId)).toMatchObject([{ metadata: { model_requests: 2, tool_calls: 1 } }])
    // One call is left from the start; the last request, and that no call is left, is told before the second.
    expect(seen).toEqual({ root: [1, 3], dig: [1, 3] })
  })

  it('B-CHILD-8: the limits of a named agent hold for it alone', async () => {
    const helper = { ...NAMED.helper, limits: { modelRequests: 1 } }
    const roles = { root: [ask({ task: 'dig', agent: 'helper' }), report], dig: [{ ...use('look'), text: 'Looking.' }] }
    const { harness } = family(roles, { tools: [tool('look')], subagents: { helper } })
    const result = await harness.run('Go.')
    expect(result.status).toBe('completed')
    expect(result.text).toContain('it reached its limit (model_requests)')
  })

  it.each([
    [undefined, 3],
    [1, 1],
    [0, 0],
  ])(
    'B-CHILD-9: with a depth of %s children are %i deep, and what goes deeper is refused and makes nothing (S2-1, threat 50)',
    async (depth, most) => {
      const refusals: string[] = []
      const deeper = (r: Request) => {
        if (resultsIn(r).length === 0) return ask('deeper')
        const [result] = resultsIn(r)
        if (result?.ok === false) refusals.push(`${r.session.split('~').length - 1}: ${result.content}`)
        return `back from ${r.session.split('~').length - 1}`
      }
      const { harness, store } = family(
        { root: [deeper, deeper], deeper: [deeper, deeper] },
        depth === undefined ? {} : { limits: { depth } },
      )
      const result = await harness.run('Go.')
      expect(result).toMatchObject({ status: 'completed', text: 'back from 0' })
      expect(await treeOf(store, result.sessionId)).toHaveLength(most + 1)
      expect(refusals).toEqual([
        `${most}: Subagents may be ${most} deep, and this is depth ${most}. Do the task yourself.`,
      ])
      const last = (await treeOf(store, result.sessionId)).at(-1) ?? ''
      expect(ofType(await eventsOf(store, last), 'agent.tool_result')).toMatchObject([
        { status: 'denied', metadata: { error_type: 'SpawnDepthExceeded' } },
      ])
    },
  )

  it('B-CHILD-10: a session whose name leaves no room for a longer one starts no child', async () => {
    const { harness, store } = family({ root: [ask('dig'), report] })
    await makeOldSession(store, 'x'.repeat(500))
    const session = harness.session('x'.repeat(500), { stored: true })
    expect(await session.run('Go.')).toMatchObject({ text: expect.stringContaining('too long') as string })
    expect(await childrenOf(store, session.id)).toEqual([])
  })
})

/** The tools that a child is shown. */
async function toolsOf(options: Partial<HarnessOptions>, agent?: string): Promise<readonly string[]> {
  let seen: readonly string[] = ['never asked']
  const look = (r: Request): string => {
    seen = r.tools.map(({ name }) => name).sort()
    return 'done'
  }
  const { harness } = family(
    { root: [ask({ task: 'see', ...(agent ? { agent } : {}) }), report], see: [look] },
    options,
  )
  expect((await harness.run('Go.')).status).toBe('completed')
  return seen
}

describe('agents', () => {
  const tools = [tool('look'), tool('dig')]

  it('B-CHILD-11: a child is the agent that was named, with its own words and model, or one like its parent', async () => {
    const asked: string[] = []
    const main = play(
      { root: [ask('a', { task: 'a', agent: 'default' }, { task: 'a', agent: 'helper' }), report], a: ['by main'] },
      'main',
    )
    const own = play({ a: [(r) => say('by helper', asked.push(r.instructions))] }, 'own')
    const helper = { ...NAMED.helper, model: own, instructions: 'You help.' }
    const { harness, store } = family(main, { subagents: { helper }, instructions: 'You lead.' })
    const { sessionId } = await harness.run('Go.')
    const told = await toldTo(store, sessionId)
    const said = new Map(told.map(({ call, content, about }) => [call.split('.')[1], [about.agent, content]]))
    expect(said.get('0')).toEqual(['subagent', 'by main'])
    expect(said.get('1')).toEqual(['subagent', 'by main'])
    expect(said.get('2')).toEqual(['helper', 'by helper'])
    expect(asked).toEqual(['You help.'])
  })

  it('B-CHILD-12: an agent that is not there is a result with UnknownSubAgent, and nothing is made (S0-81)', async () => {
    const roles = { root: [ask({ task: 'dig', agent: 'nobody' }), report] }
    const { harness, store } = family(roles, { subagents: NAMED })
    const result = await harness.run('Go.')
    expect(result.text).toBe('There is no agent "nobody"; choose one of: subagent, helper')
    expect(ofType(await eventsOf(store, result.sessionId), 'agent.tool_result')).toMatchObject([
      { status: 'error', metadata: { error_type: 'UnknownSubAgent' } },
    ])
    expect(await childrenOf(store, result.sessionId)).toEqual([])
  })

  it('B-CHILD-13: of its tools a child has those that are allowed and not denied; an empty list is none, a missing one all (S2-6, TRAP-13)', async () => {
    const of = (toolAccess: ToolAccess) => {
      return toolsOf({ tools, subagents: { helper: { ...NAMED.helper, toolAccess } } }, 'helper')
    }
    expect(await of({})).toEqual(['dig', 'look', 'subagent'])
    expect(await of({ allow: ['look'] })).toEqual(['look'])
    expect(await of({ allow: [] })).toEqual([])
    expect(await of({ deny: ['look', 'subagent'] })).toEqual(['dig'])
    expect(await of({ allow: ['look', 'dig'], deny: ['dig'] })).toEqual(['look'])
  })

  it('B-CHILD-14: a child that names no agent gets one like itself, and never more tools than it has', async () => {
    const seen: (readonly string[])[] = []
    const note = (r: Request): void => void seen.push(r.tools.map(({ name }) => name).sort())
    const roles = {
      root: [ask({ task: 'one', agent: 'helper' }), report],
      one: [(r: Request) => say(ask('two', { task: 'three', agent: 'subagent' }), note(r)), report],
      two: [(r: Request) => say('done', note(r))],
    }
    const helper = { ...NAMED.helper, toolAccess: { deny: ['dig'] } }
    const { harness, store } = family(roles, { tools, subagents: { helper } })
    const result = await harness.run('Go.')
    expect(seen).toEqual([
      ['look', 'subagent'],
      ['look', 'subagent'],
    ])
    expect(result.text).toContain('There is no agent "subagent"')
    const [, grandchild = ''] = await childrenOf(store, result.sessionId)
    expect(await store.card(grandchild)).toMatchObject({ agent: 'helper' })
  })

  it('B-CHILD-15: sources of tools come to a child only if it asks for them or brings them, and each is closed once (S0-82)', async () => {
    const source = (name: string): ToolSource & { closed: number } => ({
      type: 'source',
      name,
      closed: 0,
      tools: async () => [tool(`${name}_far`)],
      async close() {
        this.closed += 1
      },
    })
    const [mine, own] = [source('mine'), source('own')]
    const near: readonly (Tool | ToolSource)[] = [tool('look'), mine]
    const of = (extra: object) =>
      toolsOf(
        { tools: near, subagents: { helper: { ...NAMED.helper, toolAccess: { deny: ['subagent'] }, ...extra } } },
        'helper',
      )
    expect(await toolsOf({ tools: near })).toEqual(['look', 'subagent'])
    expect(await of({})).toEqual(['look'])
    expect(await of({ inheritSources: true })).toEqual(['look', 'mine_far'])
    expect(await of({ tools: [own] })).toEqual(['own_far'])
    expect(await of({ tools: [own, mine], inheritSources: true })).toEqual(['mine_far', 'own_far'])
    expect(await of({ inheritSources: true, toolAccess: { allow: ['look'] } })).toEqual(['look'])
    const { harness } = family(
      { root: ['Hi.'] },
      { tools: near, subagents: { helper: { ...NAMED.helper, inheritSources: true } } },
    )
    const before = mine.closed
    await harness.run('Go.')
    await harness.close()
    expect(mine.closed).toBe(before + 1)
  })

  it('B-CHILD-16: the schema of the answer is not inherited, and a child with its own answers with JSON (S0-81)', async () => {
    const seen: (readonly boolean[])[] = []
    const text: (r: Request) => string = (r) => say('just text', seen.push([r.output !== undefined]))
    const roles = {
      root: [ask('free', { task: 'shaped', agent: 'shaper' }), use('final_result', { city: 'Oslo' })],
      free: [text],
      shaped: [use('final_result', { celsius: 4 })],
    }
    const shaper = { description: 'measures', output: { schema: z.object({ celsius: z.number() }) } }
    const { harness, store } = family(roles, {
      output: { schema: z.object({ city: z.string() }) },
      subagents: { shaper },
    })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', output: { city: 'Oslo' } })
    expect(seen).toEqual([[false]])
    const told = await toldTo(store, result.sessionId)
    expect(told.find(({ about }) => about.agent === 'shaper')).toMatchObject({
      content: '{"celsius":4}',
      metadata: { structured_output: true },
    })
    expect(told.find(({ about }) => about.agent === 'subagent')?.about).not.toHaveProperty('structured_output')
  })

  it('B-CHILD-17: without subagents there is no such tool; its name and the names of the harness itself are taken (S0-3, S0-4, S2-5)', async () => {
    const seen: string[] = []
    const model = play({ root: [(r) => say('Hi.', seen.push(...r.tools.map(({ name }) => name)))] })
    const plain = new Harness({ model, tools })
    await plain.run('Go.')
    await plain.close()
    expect(seen).toEqual(['look', 'dig'])
    const bad: readonly Partial<HarnessOptions>[] = [
      { tools: [tool('subagent')] },
      { tools: [tool('look'), tool('look')] },
      { subagents: { default: NAMED.helper } },
      { subagents: { subagent: NAMED.helper } },
      { subagents: { 'two words': NAMED.helper } },
      { subagents: { helper: { ...NAMED.helper, tools: [tool('subagent')] } } },
      { subagents: { helper: { ...NAMED.helper, tools: [tool('look'), tool('look')] } } },
    ]
    for (const options of bad) {
      const make = (): Harness => new Harness({ model, ...options })
      expect(make).toThrow(Fault)
      expect(make).toThrow(expect.objectContaining({ code: 'invalid_config' }) as Error)
    }
  })

  it('B-CHILD-18: a child like its parent asks the same model, which goes on to serve the parent (AC-58)', async () => {
    const asked: string[] = []
    const line = (r: Request) => void asked.push(r.session.includes('~') ? 'child' : 'root')
    const roles = {
      root: [(r: Request) => say(ask('dig'), line(r)), (r: Request) => say('done', line(r))],
      dig: [(r: Request) => say('dug', line(r))],
    }
    const { harness, store } = family(roles)
    const session = await harness.open()
    expect((await session.run('Go.')).status).toBe('completed')
    expect(asked).toEqual(['root', 'child', 'root'])
    expect(await endsOf(store, session.id)).toEqual(['completed'])
  })
})
