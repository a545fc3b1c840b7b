// A graph before it runs: what is wrong with it, what its types enforce, and how it is drawn.
import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/index.ts'
import { append, command, END, last, START, send, toJson, toMermaid, withState } from '../../src/graphs/index.ts'
import { withGraphs } from './stage.ts'

const { node, question, agentNode, mapNode, graph } = withState({
  topic: last(''),
  facts: append<string>(),
  draft: last<string>(),
})
const nothing = () => node({ run: () => undefined, effect: 'read' })

/** Edges without compiler checks, as plain JavaScript can pass them. */
function loose(nodes: readonly string[], edges: readonly unknown[], more: object = {}) {
  const made = Object.fromEntries(nodes.map((name) => [name, nothing()]))
  return () => graph({ name: 'g', nodes: made, edges: edges as never, ...more })
}

describe('a graph that cannot work', () => {
  it.each([
    ['MissingStart', loose(['a'], [['a', END]])],
    [
      'MissingNode: in graph "g" an edge comes from "b"',
      loose(
        ['a'],
        [
          [START, 'a'],
          ['b', END],
        ],
      ),
    ],
    [
      'MissingNode',
      loose(
        ['a'],
        [
          [START, 'a'],
          [['a', 'b'], END],
        ],
      ),
    ],
    [
      'MissingEdgeTarget: in graph "g" "a" leads to "b"',
      loose(
        ['a'],
        [
          [START, 'a'],
          ['a', 'b'],
        ],
      ),
    ],
    ['MissingEdgeTarget', loose(['a'], [[START, 'a'], { from: 'a', to: ['b', END], by: () => END }])],
    [
      'UnreachableNode: in graph "g" no path leads from START to "b"',
      loose(
        ['a', 'b'],
        [
          [START, 'a'],
          ['a', END],
          ['b', END],
        ],
      ),
    ],
    [
      'NoPathToEnd: in graph "g" no path leads from "b" to END',
      loose(
        ['a', 'b'],
        [
          [START, 'a'],
          ['a', END],
          ['a', 'b'],
          ['b', 'b'],
        ],
      ),
    ],
    [
      'DuplicateEdge',
      loose(
        ['a'],
        [
          [START, 'a'],
          ['a', END],
          ['a', END],
        ],
      ),
    ],
    [
      'InvalidEdge',
      loose(
        ['a', 'b'],
        [
          [START, 'a'],
          [['a'], 'b'],
          ['b', END],
        ],
      ),
    ],
    ['InvalidEdge', loose(['a'], [[START, 'a'], ['a', END], { from: 'a', to: [], by: () => END }])],
    [
      'InvalidNode',
      loose(
        ['START'],
        [
          [START, 'START'],
          ['START', END],
        ],
      ),
    ],
    [
      'InvalidNode',
      loose(
        ['subagent'],
        [
          [START, 'subagent'],
          ['subagent', END],
        ],
      ),
    ],
    [
      'InvalidNode',
      loose(
        ['no good'],
        [
          [START, 'no good'],
          ['no good', END],
        ],
      ),
    ],
    [
      'InvalidLimit',
      loose(
        ['a'],
        [
          [START, 'a'],
          ['a', END],
        ],
        { visitsMax: 0 },
      ),
    ],
    [
      'Graph name "a b"',
      loose(
        ['a'],
        [
          [START, 'a'],
          ['a', END],
        ],
        { name: 'a b' },
      ),
    ],
  ])('B-GRAPH-1: is refused when it is made, and told why: %s', (text, make) => {
    expect(make).toThrow(Fault)
    expect(make).toThrow(text)
  })

  it('B-GRAPH-1: a target of a command, a channel, retries and a quorum that cannot be are refused too', () => {
    const to = node({ to: ['b'], run: () => command({ goto: 'b' }) })
    const ends = [
      [START, 'a'],
      ['a', END],
    ] as const
    // @ts-expect-error The compiler says so too.
    expect(() => graph({ name: 'g', nodes: { a: to }, edges: ends })).toThrow('MissingEdgeTarget')
    const retry = withState({ retry: last('') })
    expect(() => retry.graph({ name: 'g', nodes: { a: retry.node({ run: () => {} }) }, edges: ends })).toThrow(
      'InvalidChannel',
    )
    expect(() => graph({ name: 'g', nodes: { a: node({ retries: -1, run: () => {} }) }, edges: ends })).toThrow(
      'retries',
    )
    const none = mapNode({ over: () => [1], run: (n) => n, take: () => ({}), policy: { quorum: 0 } })
    expect(() => graph({ name: 'g', nodes: { a: none }, edges: ends })).toThrow('quorum')
  })

  it('B-GRAPH-2: a harness takes no two agents of one name, and no graph that starts an agent it does not have', () => {
    const ends = [
      [START, 'a'],
      ['a', END],
    ] as const
    const one = graph({ name: 'one', nodes: { a: nothing() }, edges: ends })
    expect(() => withGraphs([one, one])).toThrow('agent "one"')
    expect(() => withGraphs([one], { subagents: { one: { description: 'x' } } })).toThrow('already')
    const child = agentNode({ agent: 'writer', task: () => 'write', take: (draft) => ({ draft }) })
    const parent = graph({ name: 'parent', nodes: { a: child }, edges: ends })
    expect(() => withGraphs([parent])).toThrow('starts agent "writer"')
    withGraphs([parent], { subagents: { writer: { description: 'writes' } } })
  })
})

describe('the types of a graph', () => {
  it('B-GRAPH-3: what a node reads, writes and goes to, and where edges lead, is checked by the compiler', () => {
    const plan = node({
      reads: ({ topic, facts, draft }) => ({ words: topic.length + facts.length, old: draft ?? '' }),
      run: ({ words, old }) => ({ facts: [`${words} words`, old] }),
    })
    // @ts-expect-error A list of texts is written to facts, and no number.
    node({ run: () => ({ facts: [1] }) })
    // @ts-expect-error There is no such channel.
    node({ reads: ({ nothing: _nothing }) => ({}), run: () => ({}) })
    // @ts-expect-error It did not say that it may go there.
    node({ to: ['plan'], run: () => command({ goto: 'other' }) })
    const edges = [
      [START, 'plan'],
      ['plan', END],
    ] as const
    expect(graph({ name: 'typed', nodes: { plan }, edges }).name).toBe('typed')
    const wrong = [
      [START, 'plan'],
      ['plan', 'pan'],
    ] as const
    // @ts-expect-error There is no node of this name.
    expect(() => graph({ name: 'typed', nodes: { plan }, edges: wrong })).toThrow(Fault)
    const astray = node({ to: ['nowhere'], run: () => command({ goto: 'nowhere' }) })
    // @ts-expect-error Its command goes to a node that is not there.
    expect(() => graph({ name: 'typed', nodes: { plan: astray }, edges })).toThrow(Fault)
    const by = ({ facts }: { readonly facts: readonly string[] }) => facts.map((fact) => send('plan', { fact }))
    expect(
      graph({ name: 'typed', nodes: { plan }, edges: [{ from: START, to: ['plan'], by }, ['plan', END]] }),
    ).toBeTruthy()
  })
})

describe('a graph on paper', () => {
  const made = () =>
    graph({
      name: 'report',
      description: 'writes reports',
      nodes: {
        plan: nothing(),
        search: mapNode({
          over: ({ facts }) => facts,
          run: (fact) => fact,
          take: () => ({}),
          policy: 'best-effort',
          effect: 'read',
        }),
        style: question({ reads: () => ({ question: 'Which style?' }), take: (draft) => ({ draft }) }),
        write: agentNode({ agent: 'writer', task: ({ topic }) => topic, take: (draft) => ({ draft }) }),
        review: node({ to: ['write', 'publish'], run: () => command({ goto: 'publish' }), retries: 2 }),
        publish: node({ approval: 'ask', run: () => ({}), description: 'Writes the file.' }),
      },
      edges: [
        [START, 'plan'],
        ['plan', 'search'],
        ['plan', 'style'],
        [['search', 'style'], 'write'],
        { from: 'write', to: ['review', END], by: () => 'review' },
        ['publish', END],
      ],
    })

  it('B-GRAPH-4: is the same Mermaid each time, with its gates, questions, children and joins', () => {
    expect(toMermaid(made())).toBe(toMermaid(made()))
    expect(toMermaid(made()).split('\n')).toEqual([
      'flowchart TD',
      '  n0([START])',
      '  n1["plan"]',
      '  n2["search"]',
      '  n3[/"style"/]',
      '  n4[["write<br/>agent writer"]]',
      '  n5["review"]',
      '  n6{{"publish<br/>approval"}}',
      '  n7([END])',
      '  n0 --> n1',
      '  n1 --> n2',
      '  n1 --> n3',
      '  n2 & n3 -- all --> n4',
      '  n4 -.-> n5',
      '  n4 -.-> n7',
      '  n6 --> n7',
      '  n5 -. goto .-> n4',
      '  n5 -. goto .-> n6',
      '',
    ])
  })

  it('B-GRAPH-5: is the same JSON each time, with what each node may do', () => {
    expect(JSON.stringify(toJson(made()))).toBe(JSON.stringify(toJson(made())))
    expect(toJson(made())).toMatchObject({
      name: 'report',
      state: { topic: 'last', facts: 'append', draft: 'last' },
      nodes: [
        { name: 'plan', type: 'run', effect: 'read', timeoutMs: 60_000 },
        { name: 'search', type: 'map', policy: 'best-effort' },
        { name: 'style', type: 'question' },
        { name: 'write', type: 'agent', agent: 'writer' },
        { name: 'review', retries: 2, effect: 'once', to: ['write', 'publish'] },
        { name: 'publish', approval: 'ask', description: 'Writes the file.' },
      ],
      edges: [{}, {}, {}, { type: 'join', from: ['search', 'style'], to: 'write' }, {}, {}],
    })
  })
})
