// Agents that are made of more than tools: graphs, detached children, plugins with consumers, hooks, sources of tools, `deps`.
import { expect, it } from 'vitest'
import { last, START, END, withState } from '../../src/graphs/index.ts'
import { type Json, scripted, type ToolSource } from '../../src/index.ts'
import { crashTest, type CrashReport } from '../../src/testing/index.ts'
import { neutralNames, withoutKeyOrder } from '../../src/testing/crash-test/same-world.ts'
import { calling, type Ledger, ledger, tool } from './ledger.ts'

const handlersOf = ({ points }: CrashReport): readonly string[] =>
  points.flatMap(({ name }) => /entering handler \d+ \((.+)\)/.exec(name)?.[1] ?? [])

const putTool = ({ byKey }: Ledger) => tool('put', 'idempotent', ({ n }, { key }) => void byKey.set(key, n))

it('B-CRASHTEST-3: the nodes of a graph are handlers, and a node that lies is found', async () => {
  const { node, graph } = withState({ paid: last(0) })
  const graphOf = (pay: (key: string) => void) =>
    graph({
      name: 'payments',
      nodes: {
        look: node({ effect: 'read', reads: () => ({}), run: () => ({}) }),
        pay: node({
          effect: 'idempotent',
          reads: () => ({}),
          run: (_state, { key }) => {
            pay(key)
            return { paid: 1 }
          },
        }),
      },
      edges: [
        [START, 'look'],
        ['look', 'pay'],
        ['pay', END],
      ],
    })
  const test = (pay: (world: Ledger, key: string) => void) =>
    crashTest({
      world: ledger,
      options: (world) => ({ model: calling(), graphs: [graphOf((key) => pay(world, key))] }),
      agent: 'payments',
      run: {},
    })
  const honest = await test(({ byKey }, key) => void byKey.set(key, 1))
  expect(honest.findings).toEqual([])
  expect(handlersOf(honest)).toEqual(['look', 'pay'])
  const lying = await test(({ rows }) => void rows.push(1))
  expect(lying.findings.map(({ rule }) => rule)).toContain('T5')
})

it('B-CRASHTEST-3: children that work on while their parent goes on are driven to their end', async () => {
  const report = await crashTest({
    world: ledger,
    options: (world) => ({
      model: scripted(({ messages }) => {
        const told = JSON.stringify(messages)
        if (told.includes('<subagent_report')) return 'It is noted.'
        if (told.includes('spawned_new')) return 'I have it noted.'
        return { calls: [{ tool: 'spawn_subagent', args: { agent_id: 'clerk', prompt: 'Note it.' } }] }
      }),
      subagents: { clerk: { description: 'notes', model: calling('put', 'put'), tools: [putTool(world)] } },
      detached: true,
    }),
    run: 'Go.',
  })
  expect(report.text).toContain('no finding')
  expect(handlersOf(report)).toEqual(['put', 'put'])
})

it('B-CRASHTEST-3: hooks, plugins with consumers, sources, `deps` and models by name are those of the agent', async () => {
  const open = new Set<ToolSource>()
  const told: string[] = []
  const report = await crashTest({
    world: ledger,
    options: (world) => {
      const source: ToolSource = {
        type: 'source',
        name: 'shop',
        tools: async () => {
          open.add(source)
          await new Promise((resolve) => setTimeout(resolve, 1))
          return [putTool(world)]
        },
        close: async () => void open.delete(source),
      }
      return {
        model: 'hint:chat',
        models: { routes: { chat: calling('put', 'look+count') } },
        tools: [source, tool('look', 'read', (_args, { deps }) => (deps as { at: number }).at)],
        deps: async () => ({ at: 7 }),
        hooks: [{ type: 'before_tool_call', run: async () => undefined }],
        plugins: [
          {
            name: 'counts',
            tools: [tool('count', 'read', () => world.byKey.size)],
            consumers: [{ name: 'tell', run: async (_settled, { key }) => void told.push(key) }],
          },
        ],
      }
    },
    run: 'Go.',
  })
  expect(report.text).toContain('no finding')
  expect(handlersOf(report)).toEqual(['put', 'look', 'count'])
  // A crash ends what the sources of a life had open.
  expect(open.size).toBe(0)
  expect(told.length).toBeGreaterThan(report.points.length)
})

it('B-CRASHTEST-6: a consumer that goes by its key is honest also where the run that it is told of has moved', async () => {
  const test = (tell: (world: Ledger, key: string) => void) =>
    crashTest({
      world: ledger,
      options: (world) => ({
        model: calling('put'),
        tools: [putTool(world)],
        plugins: [{ name: 'tells', consumers: [{ name: 'tell', run: async (_settled, { key }) => tell(world, key) }] }],
      }),
      run: 'Go.',
    })
  const honest = await test(({ byKey }, key) => void byKey.set(key, 'told'))
  expect(honest.text).toContain('no finding')
  const lying = await test(({ rows }) => void rows.push('told'))
  expect(lying.findings.map(({ rule }) => rule)).toContain('T4')
})

it('B-CRASHTEST-6: keys that a lost request moved are the same keys, also where rows are ordered by them', () => {
  const log = (first: number): never =>
    [first, first + 3].map((seq) => ({
      type: 'agent.message',
      seq,
      calls: [{ tool: 'put', args: { n: seq - first } }],
    })) as never
  const rows = (...keys: readonly string[]): Json => keys.map((key) => ({ key, kept: `${key}?` })).toSorted(byKey)
  const byKey = (a: { key: string }, b: { key: string }): number => (a.key < b.key ? -1 : 1)
  const world = (logs: Parameters<typeof neutralNames>[0], held: Json): Json =>
    withoutKeyOrder(neutralNames(logs)(held))
  const clean = world({ 'crash-test': log(5), 'crash-test~5.0': log(8) }, [
    rows('crash-test:5.0', 'crash-test:8.0', 'crash-test~5.0:8.0'),
    'crash-test~5.0',
  ])
  const moved = world({ 'crash-test': log(8), 'crash-test~8.0': log(98) }, [
    rows('crash-test:8.0', 'crash-test:11.0', 'crash-test~8.0:98.0'),
    'crash-test~8.0',
  ])
  expect(moved).toEqual(clean)
  expect(JSON.stringify(clean)).toContain('crash-test~call 1:call 1')
  expect(withoutKeyOrder(['b', 'a'])).toEqual(['b', 'a'])
})
