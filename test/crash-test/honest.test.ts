// Honest tools in agents of all kinds: nothing is found, every point is listed, and what met no case is not tested.
import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, ModelRetry, scripted, type Tool } from '../../src/index.ts'
import { crashTest } from '../../src/testing/index.ts'
import { calling, type Ledger, ledger, tool } from './ledger.ts'

function honestTools({ byKey, happened }: Ledger): readonly Tool[] {
  const pay = (key: string, n: number): string => {
    byKey.set(key, n)
    return `receipt ${n}`
  }
  return [
    tool('find', 'read', ({ n }) => `${n} of ${byKey.size}`),
    tool('put', 'idempotent', ({ n }, { key }) => void byKey.set(key, n)),
    tool('pay', 'once', ({ n }, { key }) => pay(key, n)),
    tool('pay_again', 'once', ({ n }, { key }) => pay(key, n), {
      reconcile: ({ n }, { key }) => (happened(key) ? `receipt ${n}` : undefined),
    }),
  ]
}

it('B-CRASHTEST-1, B-CRASHTEST-2, B-CRASHTEST-3, B-CRASHTEST-6: an honest agent has no finding, and each point has a name', async () => {
  const report = await crashTest({
    world: ledger,
    options: (world) => ({ model: calling('find', 'put', 'pay', 'pay_again'), tools: honestTools(world) }),
    run: 'Go.',
  })
  expect(report.findings).toEqual([])
  expect(report).toMatchObject({ passed: true, notTested: [], missed: [] })
  // Two for each of 12 commits, 5 requests and 4 handlers.
  expect(report.points).toHaveLength(42)
  expect(report.points.map(({ n }) => n)).toEqual(Array.from({ length: 42 }, (_, i) => i + 1))
  expect(report.points.slice(4, 12).map(({ name }) => name)).toEqual([
    'before commit 3',
    'after commit 3',
    'asking the model, request 1',
    'answered by the model, request 1',
    'before commit 4',
    'after commit 4',
    'entering handler 1 (find)',
    'leaving handler 1 (find)',
  ])
  expect(report.unknown).toBeGreaterThan(0)
  expect(report.text).toContain('42 points, no finding')
})

it('B-CRASHTEST-4: without a call of a tool the rules about calls are not tested', async () => {
  const report = await crashTest({ world: ledger, options: () => ({ model: scripted(() => 'Hello.') }), run: 'Hi.' })
  expect(report.notTested).toEqual(['T3', 'T5', 'T6', 'T7'])
  expect(report.rules.find(({ rule }) => rule === 'T5')).toMatchObject({ state: 'not tested', cases: 0 })
  expect(report.text).toContain('T5 NOT TESTED')
  expect(report.findings).toEqual([])
})

it('B-CRASHTEST-3: calls of one reply that run side by side, approvals and an answer by a schema have no finding', async () => {
  const people: string[] = []
  const report = await crashTest({
    world: ledger,
    options: ({ byKey }) => ({
      model: scripted(({ messages }) => {
        const done = messages.filter(({ role }) => role === 'tool').length
        const [a, b] = [
          { tool: 'put', args: { n: 1 } },
          { tool: 'ask', args: { n: 2 } },
        ]
        return done === 0 ? { calls: [a, b] } : { text: JSON.stringify({ done: true, paid: 2 }) }
      }),
      tools: [
        tool('put', 'idempotent', ({ n }, { key }) => void byKey.set(key, n)),
        tool('ask', 'idempotent', ({ n }, { key }) => void byKey.set(key, n), { approval: 'ask' }),
      ],
      output: { schema: z.object({ done: z.boolean(), paid: z.number() }), mode: 'prompted' },
    }),
    run: 'Go.',
    people: (call) => {
      people.push(call.tool)
      return { allow: true, why: 'I looked.' }
    },
  })
  expect(report.findings).toEqual([])
  expect(report.points.length).toBeGreaterThan(20)
  expect(people.length).toBeGreaterThan(report.points.length)
})

it('B-CRASHTEST-3: children and what they call are crashed too, and their calls are the same calls', async () => {
  const report = await crashTest({
    world: ledger,
    options: ({ byKey }) => {
      const note = tool('note', 'idempotent', ({ n }, { key }) => void byKey.set(key, n))
      return {
        model: scripted(({ messages }) => {
          const done = messages.some(({ role }) => role === 'tool')
          return done ? 'Told.' : { calls: [{ tool: 'subagent', args: { agent: 'clerk', task: 'Note it.' } }] }
        }),
        subagents: { clerk: { description: 'notes things', model: calling('note', 'note'), tools: [note] } },
      }
    },
    run: 'Go.',
  })
  expect(report.text).toContain('no finding')
  expect(report.points.filter(({ name }) => name.includes('(note)'))).toHaveLength(4)
})

it('B-CRASHTEST-3: a call that the model corrects and a failing tool are no findings', async () => {
  const report = await crashTest({
    world: ledger,
    options: () => ({
      model: calling('fails', 'retry'),
      tools: [
        tool('fails', 'once', () => {
          throw new Error('No such account.')
        }),
        defineTool({
          name: 'retry',
          description: 'retry',
          input: z.object({ n: z.number() }),
          effect: 'read',
          execute: () => {
            throw new ModelRetry('Name the account.')
          },
        }),
      ],
    }),
    run: 'Go.',
  })
  expect(report.findings).toEqual([])
})
