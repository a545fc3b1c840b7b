// A graph that runs: supersteps, what nodes read and write, where it goes, and how it ends.
import { describe, expect, it } from 'vitest'
import { append, command, END, ephemeral, last, reduce, START, send, withState } from '../../src/graphs/index.ts'
import { moment } from './moment.ts'
import { eventsIn, failureIn, ofType, pointIn, runOf, turnsOf, withGraphs } from './stage.ts'

const { node, graph } = withState({
  topic: last(''),
  facts: append<string>(),
  total: reduce<number>((a, b) => a + b, 0),
})

const says = (fact: string) => node({ effect: 'read', run: () => ({ facts: [fact] }) })

describe('a run of a graph', () => {
  const line = () =>
    graph({
      name: 'line',
      nodes: {
        plan: node({ reads: ({ topic }) => ({ topic }), run: ({ topic }) => ({ facts: [`${topic} is planned`] }) }),
        write: node({ reads: ({ facts }) => ({ facts }), run: ({ facts }) => ({ topic: facts.join('; ') }) }),
      },
      edges: [
        [START, 'plan'],
        ['plan', 'write'],
        ['write', END],
      ],
    })

  it('B-GRAPH-6: is a session like any other: a superstep is a turn, a node is a call, and the state is the output (AC-91)', async () => {
    const { result, session } = await runOf(line(), { topic: 'rain' })
    expect(result).toMatchObject({
      status: 'completed',
      output: { topic: 'rain is planned', facts: ['rain is planned'], total: 0 },
    })
    expect(await turnsOf(session)).toEqual([['plan'], ['write'], []])
    const events = await eventsIn(session)
    expect(events[0]).toMatchObject({ type: 'session.created', agent: 'line', planner: 'graph:line' })
    const [first] = ofType(events, 'agent.message')
    expect(first?.calls).toMatchObject([{ tool: 'plan', args: { topic: 'rain' } }])
    expect(ofType(events, 'agent.tool_result').map(({ content }) => content)).toEqual([
      '{"facts":["rain is planned"]}',
      '{"topic":"rain is planned"}',
    ])
  })

  it('B-GRAPH-7: keeps the state of the last whole superstep with each reply, and needs nothing before it', async () => {
    const { session } = await runOf(line(), { topic: 'rain' })
    const texts = ofType(await eventsIn(session), 'agent.message').map(({ parts: [part] }) =>
      part?.type === 'text' ? part.text : '',
    )
    const states = texts.map((text) => (JSON.parse(text) as { state: { facts: unknown; topic: string } }).state)
    expect(states.map(({ facts, topic }) => [facts, topic])).toEqual([
      [[], 'rain'],
      [['rain is planned'], 'rain'],
      [['rain is planned'], 'rain is planned'],
    ])
    // Canonical: the same state is the same bytes.
    expect(texts[0]).toMatch(/^\{"calls":\[\[0,0\]\],"state":\{"facts":\[\],"topic":"rain","total":0\}/)
  })

  it('B-GRAPH-8: takes JSON, text if it says what text means, and refuses what it cannot read', async () => {
    const { result } = await runOf(line(), '{"topic": "as text"}')
    expect(result).toMatchObject({ output: { topic: 'as text is planned' } })
    const spoken = graph({
      name: 'spoken',
      nodes: { a: says('x') },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
      input: (text) => ({ topic: text.toUpperCase() }),
    })
    expect((await runOf(spoken, 'rain')).result).toMatchObject({ output: { topic: 'RAIN' } })
    for (const [input, text] of [
      ['rain', 'planner_failed: InvalidMessage: graph "line" takes a JSON object with any of topic, facts, total'],
      [{ tpoic: 'rain' }, 'UnknownChannel: The input has "tpoic"; the channels are topic, facts, total.'],
      [{ facts: 'rain' }, 'InvalidUpdate: what is written to "facts" must be a list'],
      [{ retry: true }, 'NothingToRetry'],
    ] as const) {
      const refused = await runOf(line(), input)
      expect(failureIn(refused.result)).toContain(text)
      expect((await pointIn(refused.session)).state).toEqual({ topic: '', facts: [], total: 0 })
      // Nothing is broken: the next input starts a new pass.
      expect(await refused.session.run({ topic: 'sun' })).toMatchObject({ output: { topic: 'sun is planned' } })
    }
  })

  it('B-GRAPH-9: after its end a new input begins again, over the state that is there', async () => {
    const { session } = await runOf(line(), { topic: 'rain' })
    expect(await session.run({ topic: 'sun' })).toMatchObject({
      status: 'completed',
      output: { facts: ['rain is planned', 'sun is planned'] },
    })
    expect(failureIn(await session.run({ edit: { topic: 'x' } }))).toContain('NothingToRetry')
  })
})

describe('the ways through a graph', () => {
  it('B-GRAPH-10: a route goes where the state says, also round and round', async () => {
    const loop = graph({
      name: 'loop',
      nodes: { add: node({ effect: 'read', run: () => ({ total: 1 }) }), done: says('done') },
      edges: [
        [START, 'add'],
        { from: 'add', to: ['add', 'done'], by: ({ total }) => (total < 3 ? 'add' : 'done') },
        ['done', END],
      ],
    })
    const { result, session } = await runOf(loop)
    expect(result).toMatchObject({ output: { total: 3, facts: ['done'] } })
    expect(await turnsOf(session)).toEqual([['add'], ['add'], ['add'], ['done'], []])
  })

  it('B-GRAPH-11: a fan-out calls a node once for each branch, with the arguments of that branch', async () => {
    const fan = graph({
      name: 'fan',
      nodes: {
        one: node({ effect: 'read', run: ({ fact, n }: { fact: string; n: number }) => ({ facts: [fact], total: n }) }),
        sum: node({ reads: ({ total }) => ({ total }), run: ({ total }) => ({ topic: `sum ${total}` }) }),
      },
      edges: [
        { from: START, to: ['one'], by: () => ['a', 'b', 'c'].map((fact, n) => send('one', { fact, n })) },
        ['one', 'sum'],
        ['sum', END],
      ],
    })
    const { result, session } = await runOf(fan)
    expect(result).toMatchObject({ output: { facts: ['a', 'b', 'c'], total: 3, topic: 'sum 3' } })
    expect(await turnsOf(session)).toEqual([['one', 'one', 'one'], ['sum'], []])
  })

  it('B-GRAPH-12: a join waits until all have arrived, however long each way is', async () => {
    const joined = graph({
      name: 'joined',
      nodes: {
        a: says('a'),
        b: says('b'),
        b2: says('b2'),
        c: node({ reads: ({ facts }) => ({ facts }), run: ({ facts }) => ({ topic: facts.join() }) }),
      },
      edges: [
        [START, 'a'],
        [START, 'b'],
        ['b', 'b2'],
        [['a', 'b2'], 'c'],
        ['c', END],
      ],
    })
    const { result, session } = await runOf(joined)
    expect(result).toMatchObject({ output: { topic: 'a,b,b2' } })
    expect(await turnsOf(session)).toEqual([['a', 'b'], ['b2'], ['c'], []])
  })

  it('B-GRAPH-13: a command writes and goes where it says instead of along the edges, also to many', async () => {
    const told = graph({
      name: 'told',
      nodes: {
        pick: node({
          to: ['left', 'right', END],
          run: () => command({ update: { facts: ['picked'] }, goto: ['right', send('left', { n: 1 })] }),
        }),
        left: node({ run: ({ n }: { n: number }) => ({ facts: [`left ${n}`] }) }),
        right: says('right'),
      },
      edges: [
        [START, 'pick'],
        ['pick', 'left'],
        ['left', END],
        ['right', END],
      ],
    })
    const { result, session } = await runOf(told)
    expect(result).toMatchObject({ output: { facts: ['picked', 'right', 'left 1'] } })
    expect(await turnsOf(session)).toEqual([['pick'], ['right', 'left'], []])
  })

  it('B-GRAPH-55: a node whose arguments are a command is not called: the graph goes where it says', async () => {
    const checked = graph({
      name: 'checked',
      nodes: {
        make: node({ reads: ({ topic }) => ({ topic }), run: ({ topic }) => ({ facts: [topic] }) }),
        use: node({
          to: ['make'],
          approval: 'ask',
          reads: ({ topic, facts }) => {
            return facts.at(-1) === topic ? { topic } : command({ update: { facts: ['stale'] }, goto: 'make' })
          },
          run: ({ topic }) => ({ facts: [`used ${topic}`] }),
        }),
      },
      edges: [
        [START, 'make'],
        ['make', 'use'],
        ['use', END],
      ],
    })
    const { result, session } = await runOf(checked, { topic: 'a' })
    for (const each of result.pending) await session.decide({ ...each, allow: false, by: 'ana' })
    await session.run()
    const [again] = (await session.run({ edit: { topic: 'b' } })).pending
    expect(again).toMatchObject({ tool: 'use', args: { topic: 'b' } })
    await session.decide({ ...(again as NonNullable<typeof again>), allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ output: { facts: ['a', 'stale', 'b', 'used b'] } })
    expect(await turnsOf(session)).toEqual([['make'], ['use'], [], ['make'], ['use'], []])
  })

  it('B-GRAPH-55: such a command goes only where its node may go', async () => {
    const wild = graph({
      name: 'wild',
      nodes: { a: node({ reads: () => command({ goto: 'b' as never }), run: () => undefined }), b: says('b') },
      edges: [
        [START, 'a'],
        ['a', 'b'],
        ['b', END],
      ],
    })
    expect(failureIn((await runOf(wild)).result)).toContain('InvalidGoto: node "a" goes to "b"')
  })
})

describe('what nodes write', () => {
  it('B-GRAPH-14: two writes of one superstep to a value that has one writer end the run, and nothing of them is kept', async () => {
    const clash = graph({
      name: 'clash',
      nodes: { a: node({ run: () => ({ topic: 'a', facts: ['a'] }) }), b: node({ run: () => ({ topic: 'b' }) }) },
      edges: [
        [START, 'a'],
        [START, 'b'],
        ['a', END],
        ['b', END],
      ],
    })
    const { result, session } = await runOf(clash, { topic: 'mine' })
    expect(failureIn(result)).toContain('planner_failed: InvalidConcurrentUpdate: "topic" was written by "a" and "b"')
    expect((await pointIn(session)).state).toEqual({ topic: 'mine', facts: [], total: 0 })
  })

  it('B-GRAPH-15: nodes that run at once give the same state whichever is done first (AC-91)', async () => {
    const merged = async (order: readonly number[]) => {
      const ends = [0, 1, 2].map(() => moment())
      const nodes = ['a', 'b', 'c'].map((name, i) =>
        node({
          effect: 'read',
          run: async () => {
            const before = order[order.indexOf(i) - 1]
            if (before !== undefined) await ends[before]?.here
            ends[i]?.come()
            return { facts: [name], total: i }
          },
        }),
      )
      const [a = says(''), b = says(''), c = says('')] = nodes
      const made = graph({
        name: 'merge',
        nodes: { a, b, c },
        edges: [
          [START, 'a'],
          [START, 'b'],
          [START, 'c'],
          ['a', END],
          ['b', END],
          ['c', END],
        ],
      })
      const { result, session } = await runOf(made)
      const landed = ofType(await eventsIn(session), 'agent.tool_result').map(({ call }) => Number(call.split('.')[1]))
      return { landed, text: result.text }
    }
    const first = await merged([0, 1, 2])
    const second = await merged([2, 1, 0])
    expect([first.landed, second.landed]).toEqual([
      [0, 1, 2],
      [2, 1, 0],
    ])
    expect(second.text).toBe(first.text)
    expect(first.text).toContain('"facts":["a","b","c"]')
  })

  it('B-GRAPH-16: what is written for the next superstep only is gone after it', async () => {
    const brief = withState({ hint: ephemeral<string>(), seen: append<string | null>() })
    const look = () => brief.node({ reads: ({ hint }) => ({ hint }), run: ({ hint }) => ({ seen: [hint] }) })
    const made = brief.graph({
      name: 'brief',
      nodes: { say: brief.node({ run: () => ({ hint: 'now' }) }), one: look(), two: look() },
      edges: [
        [START, 'say'],
        ['say', 'one'],
        ['one', 'two'],
        ['two', END],
      ],
    })
    expect((await runOf(made)).result).toMatchObject({ output: { seen: ['now', null], hint: null } })
  })

  it.each([
    ['a Date', () => ({ topic: new Date(0) as never }), 'the update.topic is a Date, which JSON does not have'],
    ['a number that is none', () => ({ total: Number.NaN }), 'the update.total is NaN'],
    ['a channel that is not there', () => ({ nothing: 1 }) as never, 'UnknownChannel: Node "a" wrote "nothing"'],
    ['no update at all', () => 'text' as never, 'a node returns an update by channel'],
    ['far too much', () => ({ topic: 'x'.repeat(200_001) }), 'at most 200000 can be kept in the state'],
  ])('B-GRAPH-17: a node that writes %s has failed, and is told why', async (_what, run, text) => {
    const odd = graph({
      name: 'odd',
      nodes: { a: node({ run }) },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
    })
    expect(failureIn((await runOf(odd)).result)).toContain(text)
  })
})

describe('a graph that cannot go on', () => {
  it('B-GRAPH-18: a command to where its node may not go ends the run, and nothing of it is kept (AC-91)', async () => {
    let goto = 'nowhere'
    const wild = graph({
      name: 'wild',
      nodes: {
        a: node({ to: ['b'], run: () => command({ update: { topic: 'wild' }, goto: goto as 'b' }) }),
        b: says('b'),
        c: says('c'),
      },
      edges: [
        [START, 'a'],
        ['a', 'c'],
        ['c', END],
        ['b', END],
      ],
    })
    const { result, session } = await runOf(wild, { topic: 'mine' })
    expect(failureIn(result)).toContain('InvalidGoto: node "a" goes to "nowhere"')
    expect((await pointIn(session)).state).toMatchObject({ topic: 'mine' })
    // The same for an existing node that the graph does not list as a target.
    goto = 'c'
    expect(failureIn(await session.run({ retry: true }))).toContain('goes to "c"')
    goto = 'b'
    expect(await session.run({ retry: true })).toMatchObject({
      status: 'completed',
      output: { topic: 'wild', facts: ['b'] },
    })
  })

  it('B-GRAPH-19: a route that fails, or chooses what it may not, ends the run; asked again, no node runs again', async () => {
    let choice: () => 'b' = () => {
      throw new Error('no idea')
    }
    let runs = 0
    const lost = graph({
      name: 'lost',
      nodes: {
        a: node({
          run: () => {
            runs += 1
            return { facts: ['a'] }
          },
        }),
        b: says('b'),
      },
      edges: [[START, 'a'], { from: 'a', to: ['b'], by: () => choice() }, ['b', END]],
    })
    const { result, session } = await runOf(lost)
    expect(failureIn(result)).toContain('The route of "a" failed: Error: no idea')
    choice = () => 'nowhere' as 'b'
    expect(failureIn(await session.run({ retry: true }))).toContain('InvalidRoute: the route of "a" chose "nowhere"')
    choice = () => 'b'
    expect(await session.run({ retry: true })).toMatchObject({ output: { facts: ['a', 'b'] } })
    expect(runs).toBe(1)
  })

  it('B-GRAPH-20: where nothing is left to run before END, the run says what it still waits for', async () => {
    const dead = graph({
      name: 'dead',
      nodes: { a: says('a'), b: says('b'), c: says('c') },
      edges: [[START, 'a'], { from: 'a', to: ['b'], by: () => [] }, [['a', 'b'], 'c'], ['c', END]],
    })
    expect(failureIn((await runOf(dead)).result)).toContain(
      'DeadEnd: nothing is left to run, and END was not reached. It still waits: a+b > c (only a arrived).',
    )
  })

  it('B-GRAPH-21: a graph that goes round and round ends at its limit of turns, and goes on from there when told to', async () => {
    const round = graph({
      name: 'round',
      nodes: { add: node({ effect: 'read', run: () => ({ total: 1 }) }) },
      edges: [[START, 'add'], { from: 'add', to: ['add', END], by: ({ total }) => (total < 5 ? 'add' : END) }],
      limits: { modelRequests: 3 },
    })
    const { result, session, harness } = await runOf(round)
    expect(result).toMatchObject({ status: 'limit', limit: 'model_requests' })
    expect(await session.run({ retry: true })).toMatchObject({ status: 'completed', output: { total: 5 } })
    const [started] = ofType(await eventsIn(session), 'run.started')
    expect(started?.limits.modelRequests).toBe(3)
    const free = graph({
      name: 'free',
      nodes: { a: says('a') },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
    })
    const second = await runOf(free)
    expect(ofType(await eventsIn(second.session), 'run.started')[0]?.limits.modelRequests).toBe(1_000)
    await harness.close()
  })

  it('B-GRAPH-22: with a limit of visits a node runs so often and no more', async () => {
    const round = graph({
      name: 'round',
      nodes: { add: node({ effect: 'read', run: () => ({ total: 1 }) }) },
      edges: [[START, 'add'], { from: 'add', to: ['add', END], by: ({ total }) => (total < 5 ? 'add' : END) }],
      visitsMax: 3,
    })
    const { result, session } = await runOf(round)
    expect(failureIn(result)).toContain('RecursionLimit: node "add"')
    expect(await session.run({ retry: true })).toMatchObject({ status: 'completed', output: { total: 5 } })
  })

  it('B-GRAPH-23: what the harness itself says to models is no message to a graph', async () => {
    const line = graph({
      name: 'line',
      nodes: { a: says('a') },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
    })
    const harness = withGraphs([line], {
      hooks: [{ type: 'user_prompt_submit', run: () => ({ context: 'It rains.' }) }],
    })
    expect(await harness.run({}, { agent: 'line' })).toMatchObject({ status: 'completed', output: { facts: ['a'] } })
  })
})
