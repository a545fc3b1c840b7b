// Twelve tools that say something false about themselves. Each is found, with the command that finds it again.
import { expect, it } from 'vitest'
import type { Tool } from '../../src/index.ts'
import { crashTest, type CrashRuleName } from '../../src/testing/index.ts'
import { calling, type Ledger, ledger, tool } from './ledger.ts'

type Lie = {
  readonly says: string
  readonly rule: CrashRuleName
  readonly tools: (world: Ledger) => readonly Tool[]
  readonly turns?: readonly string[]
}

const pay = (world: Ledger, key: string, n: number): string => {
  world.byKey.set(key, n)
  return `receipt ${n}`
}

const LIES: readonly Lie[] = [
  {
    says: 'idempotent, and adds a row each time',
    rule: 'T5',
    tools: ({ rows }) => [tool('act', 'idempotent', ({ n }) => void rows.push(n))],
  },
  {
    says: 'idempotent, under a number of its own instead of the key',
    rule: 'T5',
    tools: (world) => [tool('act', 'idempotent', ({ n }) => pay(world, `own-${world.byKey.size}`, n))],
  },
  {
    says: 'idempotent, by what its process remembers',
    rule: 'T5',
    tools: ({ rows }) => {
      const done = new Set<string>()
      const act = tool('act', 'idempotent', ({ n }, { key }) => {
        if (!done.has(key)) rows.push(n)
        done.add(key)
      })
      return [act]
    },
  },
  {
    says: 'a read, and tells how often its process was asked',
    rule: 'T8',
    turns: ['act', 'act'],
    tools: () => {
      let asked = 0
      return [tool('act', 'read', () => `asked ${++asked} times`)]
    },
  },
  {
    says: 'idempotent, and fails where it finds its own work done',
    rule: 'T5',
    tools: (world) => [
      tool('act', 'idempotent', ({ n }, { key }) => {
        if (world.byKey.has(key)) throw new Error('It exists already.')
        return pay(world, key, n)
      }),
    ],
  },
  {
    says: 'idempotent, and does half of it again after a model was asked',
    rule: 'T5',
    tools: ({ rows }) => [
      tool('act', 'idempotent', async ({ n }, { key, askModel }) => {
        if (rows.length === 0) rows.push(`begun ${n}`)
        else rows.push(`begun again ${n}`)
        const asked = { session: key, seq: 1, instructions: '', tools: [], boost: false, messages: [] }
        await askModel('hint:chat', { ...asked, allow: 'none' })
      }),
    ],
  },
  {
    says: 'idempotent, and needs what another call left in its process',
    rule: 'T4',
    turns: ['open', 'act'],
    tools: ({ byKey }) => {
      let opened = false
      const open = tool('open', 'idempotent', () => void (opened = true))
      return [open, tool('act', 'idempotent', (_args, { key }) => void (opened && byKey.set(key, 'written')))]
    },
  },
  {
    says: 'a read, and writes who read',
    rule: 'T6',
    tools: ({ rows }) => [tool('act', 'read', (_args, { key }) => void rows.push(key))],
  },
  {
    says: 'a read, and writes the same each time',
    rule: 'T6',
    tools: ({ byKey }) => [tool('act', 'read', () => void byKey.set('was read', true))],
  },
  {
    says: 'its reconcile always has a receipt',
    rule: 'T7',
    tools: (world) => [
      tool('act', 'once', ({ n }, { key }) => pay(world, key, n), { reconcile: ({ n }) => `receipt ${n}` }),
    ],
  },
  {
    says: 'its reconcile never finds anything',
    rule: 'T7',
    tools: (world) => [tool('act', 'once', ({ n }, { key }) => pay(world, key, n), { reconcile: () => undefined })],
  },
  {
    says: 'its reconcile looks for any payment, and not for its key',
    rule: 'T7',
    turns: ['act', 'act'],
    tools: (world) => [
      tool('act', 'once', ({ n }, { key }) => pay(world, key, n), { reconcile: () => [...world.byKey.values()][0] }),
    ],
  },
]

it.each(LIES)('B-CRASHTEST-11: it finds a tool that is $says', async ({ rule, tools, turns = ['act'] }) => {
  const test = {
    world: ledger,
    options: (world: Ledger) => ({ model: calling(...turns), tools: tools(world) }),
    run: 'Go.',
    replay: (at: number) => `again ${at}`,
  }
  const report = await crashTest(test)
  expect(report.passed).toBe(false)
  const found = report.findings.find((each) => each.rule === rule)
  expect(found).toBeDefined()
  expect(found?.replay).toBe(`again ${found?.point.n}`)
  const again = await crashTest({ ...test, at: found?.point.n ?? 0 })
  expect(again.findings).toEqual(expect.arrayContaining([found]))
})

it('twelve lies are told', () => {
  expect(LIES).toHaveLength(12)
})
