// What a run may do binds everything below it: the tools and limits that a run was narrowed to, and the models that a model may choose.
import { describe, expect, it } from 'vitest'
import type { HarnessOptions, Request } from '../../src/index.ts'
import { directiveTool } from '../../src/tools/core/directive.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import {
  childrenOf,
  eventsOf,
  family,
  ofType,
  play,
  report,
  resultsIn,
  STORAGES,
  storeOf,
  toldIn,
  tool,
  use,
} from './children-stage.ts'
import { model as makeModel } from '../../src/models/resolve-model.ts'
import { until } from '../until.ts'

/** A tool that notes each run of it under its name. */
function noted(names: readonly string[]) {
  const ran: string[] = []
  const tools = names.map((name) =>
    tool(name, {
      execute: () => {
        ran.push(name)
        return `${name} ran`
      },
    }),
  )
  return { ran, tools }
}

const spawn = (prompt: string, more = {}) => use('spawn_subagent', { prompt, ...more })
const tryBoth = [use('allowed'), use('forbidden'), 'Done.']
const started = (request: Request): string =>
  (JSON.parse(String(resultsIn(request)[0]?.content)) as { readonly subagent_session_id: string }).subagent_session_id

/** Every way in which a run starts a child: what the parent says, and what its harness has beside the rest. */
const { agentNode, graph } = withState({ topic: last('') })
const flow = graph({
  name: 'flow',
  description: 'gives the work to an agent',
  input: () => ({}),
  nodes: { work: agentNode({ agent: 'helper', task: () => 'work', take: () => ({}) }) },
  edges: [
    [START, 'work'],
    ['work', END],
  ],
})
const HELPER = { helper: { description: 'helps' } } as const
type Way = readonly [
  name: string,
  tools: readonly string[],
  lines: readonly ReturnType<typeof use>[],
  options: Partial<HarnessOptions>,
]
const WAYS: readonly Way[] = [
  ['an anonymous child', ['subagent'], [use('subagent', { task: 'work' })], {}],
  ['a named child', ['subagent'], [use('subagent', { task: 'work', agent: 'helper' })], { subagents: HELPER }],
  ['a workflow', ['subagent'], [use('subagent', { task: 'go', agent: 'flow' })], { subagents: HELPER, graphs: [flow] }],
  ['a blocking spawn', ['spawn_subagent'], [spawn('work', { blocking: true })], { detached: true }],
  ['a detached spawn', ['spawn_subagent'], [spawn('work')], { detached: true }],
  ['a fork', ['spawn_subagent'], [spawn('work', { agent_id: 'fork' })], { detached: true }],
  [
    'one of several spawns',
    ['spawn_parallel_agents'],
    [use('spawn_parallel_agents', { tasks: [{ prompt: 'work' }, { prompt: 'rest' }] })],
    { detached: true },
  ],
]

describe.each(STORAGES)('children of a run that was narrowed, on %s', (storage) => {
  it.each(WAYS)('B-POWER-1: a tool that a run left out does not run in %s', async (_name, starters, lines, options) => {
    const { ran, tools } = noted(['allowed', 'forbidden'])
    // A fork begins with the first words of its parent.
    const roles = { root: [...lines, 'Started.', 'Read.', 'Read.'], work: tryBoth, rest: ['Nothing.'], 'Go.': tryBoth }
    const { harness, store } = family(roles, { storage, tools, ...options })
    const session = await harness.open()
    await session.run('Go.', { tools: ['allowed', ...starters] })
    await until(async () => {
      const children = await childrenOf(store, session.id)
      const logs = await Promise.all(children.map((child) => eventsOf(store, child)))
      expect(logs.every((log) => ofType(log, 'run.settled').length === 1)).toBe(true)
    })
    expect(ran).toEqual(['allowed'])
  })

  it('B-POWER-1: it holds at any depth', async () => {
    const { ran, tools } = noted(['allowed', 'forbidden'])
    const roles = {
      root: [use('subagent', { task: 'middle' }), 'Done.'],
      middle: [use('subagent', { task: 'work' }), 'Done.'],
      work: tryBoth,
    }
    const { harness } = family(roles, { storage, tools })
    await harness.run('Go.', { tools: ['allowed', 'subagent'] })
    expect(ran).toEqual(['allowed'])
  })

  it('B-POWER-2: a tool of a subagent alone is there if the run names it, and not if it does not', async () => {
    const { ran, tools } = noted(['allowed', 'special'])
    const helper = { description: 'helps', tools }
    const roles = {
      root: [use('subagent', { task: 'work', agent: 'helper' }), 'Done.'],
      work: [use('special'), 'Done.'],
    }
    const { harness } = family(roles, { storage, tools: [tool('own')], subagents: { helper } })
    await harness.run('Go.', { tools: ['subagent', 'special'] })
    await harness.run('Go.', { tools: ['subagent'] })
    expect(ran).toEqual(['special'])
    await expect(harness.run('Go.', { tools: ['nowhere'] })).rejects.toThrow('has no tool "nowhere"')
  })

  it('B-POWER-3: another process goes on with a narrowed child, and what the child does later is narrowed too', async () => {
    const { ran, tools } = noted(['allowed', 'forbidden'])
    let isFirst = true
    const roles = {
      root: [use('subagent', { task: 'work' }), 'Done.'],
      work: [
        () => (isFirst ? ({ stall: true } as const) : use('allowed')),
        use('forbidden'),
        'Done.',
        use('forbidden'),
        'Later.',
      ],
    }
    const store = storeOf(storage)
    const first = family(roles, { store, tools })
    const session = await first.harness.open()
    void session.run('Go.', { tools: ['allowed', 'subagent'] }).catch(() => {})
    await until(async () => expect(await childrenOf(store, session.id)).toHaveLength(1))
    await first.harness.close()
    isFirst = false
    const { harness } = family(roles, { store, tools })
    await harness.session(session.id).run()
    const [child = ''] = await childrenOf(store, session.id)
    await harness.session(child).run('More.')
    expect(ran).toEqual(['allowed'])
  })

  it('B-POWER-4: a run that only the report of a narrowed child opens has no more tools than the run that started it', async () => {
    const { ran, tools } = noted(['allowed', 'forbidden'])
    const seen: (readonly string[])[] = []
    const note = (request: Request) => {
      seen.push(request.tools.map(({ name }) => name))
      return seen.length === 1 ? use('forbidden') : 'Read.'
    }
    const roles = { root: [spawn('work'), 'Started.', note, note, note], work: ['Done.'] }
    const { harness, store } = family(roles, { storage, tools, detached: true })
    const session = await harness.open()
    await session.run('Go.', { tools: ['allowed', 'spawn_subagent'] })
    await until(async () => expect(ofType(await eventsOf(store, session.id), 'run.settled')).toHaveLength(2))
    expect(ran).toEqual([])
    expect(seen[0]).toEqual(['allowed', 'spawn_subagent'])
    await session.run('And now?')
    expect(seen.at(-1)).toContain('forbidden')
  })

  it('B-POWER-4: so has a run that only a wake of a narrowed run opens', async () => {
    const { ran, tools } = noted(['forbidden'])
    const store = storeOf(storage)
    const directive = directiveTool({ store })
    const roles = {
      root: [use('loop_directive', { outcome: 'continue', summary: 'go on' }), 'Later.', use('forbidden'), 'Done.'],
    }
    const { harness } = family(roles, { store, tools: [...tools, directive] })
    const session = await harness.open()
    await session.run('Go.', { tools: ['loop_directive'] })
    await until(async () => expect(ofType(await eventsOf(store, session.id), 'run.settled')).toHaveLength(2))
    expect(ran).toEqual([])
  })

  it('B-POWER-5: a narrowed run gives nothing to a child that was started with more tools', async () => {
    const { ran, tools } = noted(['allowed', 'forbidden'])
    const roles = {
      root: [
        spawn('work', { task_key: 'it' }),
        'Started.',
        'Read.',
        (request: Request) => use('continue_subagent', { id: started(request), answer: 'now' }),
        (request: Request) => use('steer_subagent', { id: started(request), message: 'now' }),
        spawn('work', { task_key: 'it' }),
        (request: Request) =>
          resultsIn(request)
            .map(({ content }) => content)
            .slice(1)
            .join('|'),
        'Read.',
      ],
      work: ['Nothing.', use('forbidden'), 'Done.'],
    }
    const { harness, store } = family(roles, { storage, tools, detached: true })
    const session = await harness.open()
    await session.run('Go.')
    await until(async () => expect(ofType(await eventsOf(store, session.id), 'run.settled')).toHaveLength(2))
    const starters = ['continue_subagent', 'steer_subagent', 'spawn_subagent']
    const { text } = await session.run('Again.', { tools: ['allowed', ...starters] })
    expect(text.match(/tools that this run may not use/g)).toHaveLength(2)
    expect(text).toContain('spawned_new')
    expect(ran).toEqual([])
  })

  it('B-POWER-6: a limit that a run has lower than its agent is the most of everything below it', async () => {
    const { ran, tools } = noted(['allowed'])
    const roles = {
      root: [use('subagent', { task: 'work' }), 'Done.'],
      work: [
        use('allowed'),
        use('subagent', { task: 'deep' }),
        (request: Request) => resultsIn(request).at(-1)?.content ?? '',
      ],
      deep: [use('allowed'), 'Done.'],
    }
    const { harness, store } = family(roles, { storage, tools })
    const session = await harness.open()
    await session.run('Go.', { limits: { depth: 1, modelRequests: 9 } })
    expect(ran).toEqual(['allowed'])
    const [child = ''] = await childrenOf(store, session.id)
    const [start] = ofType(await eventsOf(store, child), 'run.started')
    expect(start?.limits).toMatchObject({ depth: 1, modelRequests: 9 })
  })

  it('B-POWER-7: the fork of a narrowed child, and a child that a host starts below it, are narrowed too', async () => {
    const { ran, tools } = noted(['allowed', 'forbidden'])
    const roles = {
      root: [
        use('subagent', { task: 'work' }),
        ({ session: by }: Request) => (by === 'forked' ? use('forbidden') : 'Done.'),
        'Forked.',
      ],
      work: ['Done.'],
      more: tryBoth,
    }
    const { harness, store } = family(roles, { storage, tools })
    const session = await harness.open()
    await session.run('Go.', { tools: ['allowed', 'subagent'] })
    const [child = ''] = await childrenOf(store, session.id)
    const fork = await harness.session(child).fork({ id: 'forked' })
    await fork.run('Go on.')
    const { sessionId } = await harness.session(child).spawn('default', 'more')
    await until(async () => expect(ofType(await eventsOf(store, sessionId), 'run.settled')).toHaveLength(1))
    expect(ran).toEqual(['allowed'])
  })
})

describe('the model of a child', () => {
  const starts = (model: string, blocking: boolean) => spawn('work', { model, blocking })
  const FOREIGN = [
    'openai:gpt-5.1',
    'ollama:any',
    'offline:any',
    'nowhere:x',
    'bad',
    'hint:coding',
    'hint:no',
    '__proto__',
  ]

  it.each(FOREIGN)('B-POWER-10: %s is not for a model to choose, and it reads what is', async (model) => {
    for (const blocking of [true, false]) {
      const roles = { root: [starts(model, blocking), report], work: ['Done.'] }
      const { harness, store } = family(roles, {
        detached: true,
        models: { named: { other: play({ work: ['Other.'] }, 'x') } },
      })
      const { status, text, sessionId } = await harness.run('Go.')
      expect({ status, text }).toEqual({
        status: 'completed',
        text: `You cannot choose the model "${model}". Choose one of: family, other; or leave "model" out.`,
      })
      expect(await childrenOf(store, sessionId)).toEqual([])
    }
  })

  it('B-POWER-10: what the configuration has under a name or a route may be chosen, with its own address', async () => {
    const own = (name: string) => play({ work: [`I am ${name}.`] }, name)
    const routes = { coding: own('coder') }
    const helper = { description: 'helps', model: own('helping') }
    for (const [model, said] of [
      ['other', 'I am other.'],
      ['hint:coding', 'I am coder.'],
      ['coder', 'I am coder.'],
      ['helping', 'I am helping.'],
    ] as const) {
      const roles = { root: [starts(model, true), report] }
      const options = { detached: true, models: { named: { other: own('other') }, routes }, subagents: { helper } }
      const { harness } = family(roles, options)
      expect(await harness.run('Go.')).toMatchObject({ text: said })
    }
  })

  it('B-POWER-10: no tool that starts a child takes a model beside its own arguments', async () => {
    const { harness, store } = family({
      root: [use('subagent', { task: 'work', model: 'openai:gpt-5.1' }), 'Done.'],
      work: ['Done.'],
    })
    const { sessionId } = await harness.run('Go.')
    for (const child of await childrenOf(store, sessionId))
      for (const { options } of ofType(await eventsOf(store, child), 'user.message')) expect(options).toBeUndefined()
  })

  it('B-POWER-11: a chosen model without a key, or one that refuses it, fails the call and not the parent', async () => {
    const refusing = play({ work: [{ error: 'auth', message: 'No.' }] }, 'refusing')
    const keyless = makeModel('openai:gpt-5.1', { env: {} })
    for (const blocking of [true, false]) {
      for (const model of ['refusing', 'keyless']) {
        const roles = { root: [starts(model, blocking), 'I go on.', 'I read it.'], work: ['Done.'] }
        const { harness, store } = family(roles, { detached: true, models: { named: { refusing, keyless } } })
        const session = await harness.open()
        expect(await session.run('Go.')).toMatchObject({ status: 'completed', text: 'I go on.' })
        const [child = ''] = await childrenOf(store, session.id)
        await until(async () => expect(ofType(await eventsOf(store, child), 'run.settled')).toHaveLength(1))
        const told = (await eventsOf(store, session.id)).filter(
          (event) => 'by' in event && event.by === `session:${child}`,
        )
        expect(JSON.stringify(told)).toMatch(/did not finish: (No\.|There is no key for openai)/)
      }
    }
  })
})

describe.each(STORAGES)('bounds of a tree, on %s', (storage) => {
  it('B-FAMILY-1: a tree has limits.children sessions below its root; one more is a result that the model reads', async () => {
    const tasks = ['one', 'two', 'three'].map((prompt) => ({ prompt }))
    const roles = {
      root: [
        use('subagent', { task: 'deep' }),
        { calls: [1, 2].map(() => ({ tool: 'subagent', args: { task: 'one' } })) },
        (request: Request) =>
          resultsIn(request)
            .map(({ content }) => content)
            .join('|'),
      ],
      deep: [use('subagent', { task: 'one' }), 'Deep.'],
      one: ['One.'],
    }
    const { harness, store } = family(roles, { storage, limits: { children: 3 } })
    const { text, sessionId, status } = await harness.run('Go.')
    expect(status).toBe('completed')
    expect(text).toBe(`Deep.|One.|${CROWDED(3)}`)
    expect(await childrenOf(store, sessionId)).toHaveLength(3)
    const many = {
      root: [use('spawn_parallel_agents', { tasks }), report, 'Read.', 'Read.', 'Read.'],
      one: ['One.'],
      two: ['Two.'],
    }
    const detached = family(many, { storage, detached: true, limits: { children: 2 } })
    const rows = JSON.parse((await detached.harness.run('Go.')).text) as readonly { readonly error?: string }[]
    expect(rows.map(({ error = '' }) => error)).toEqual(['', '', CROWDED(2)])
  })

  it('B-FAMILY-1: a child that is closed makes room, and a host is held to the same bound', async () => {
    const { harness } = family({ root: ['Hello.'], work: ['Done.'] }, { storage, limits: { children: 1 } })
    const session = await harness.open()
    const { sessionId } = await session.spawn('default', 'work')
    await expect(session.spawn('default', 'work')).rejects.toMatchObject({ code: 'too_many' })
    await until(async () =>
      expect((await harness.session(sessionId, { stored: true }).status({ include: ['card'] })).card.status).toBe(
        'idle',
      ),
    )
    await harness.session(sessionId).close()
    await session.spawn('default', 'work')
  })

  it('B-FAMILY-2: a run asks for limits.wakes wakes; one more is not kept, and the model is told', async () => {
    const store = storeOf(storage)
    const wake = (n: number) => ({ reason: `look ${n}`, delay_seconds: 3_600 })
    const look = use('loop_directive', { outcome: 'sleep', summary: 's', wakes: [wake(1), wake(2)] })
    const roles = { root: [look, look, (request: Request) => toldIn(request).join('|')] }
    const { harness } = family(roles, { store, tools: [directiveTool({ store })], limits: { wakes: 3 } })
    const { text, sessionId } = await harness.run('Go.')
    expect(text).toContain('A wake was not kept: this run asked for 3 wakes already')
    expect(ofType(await eventsOf(store, sessionId), 'wake.scheduled')).toHaveLength(3)
  })

  it('B-FAMILY-1, B-FAMILY-2: without options a tree has 100 children and a run 20 wakes', async () => {
    const { harness, store } = family({ root: ['Done.'] }, { storage })
    const { sessionId } = await harness.run('Go.')
    const [start] = ofType(await eventsOf(store, sessionId), 'run.started')
    expect(start?.limits).toMatchObject({ children: 100, wakes: 20 })
  })
})

const CROWDED = (most: number): string =>
  `This tree of sessions may have ${most} subagents that are not closed, and has them. Do the task yourself, or close subagents that are done.`
