// What a crash test refuses, each with one sentence: nothing could be compared with such a run.
import { expect, it } from 'vitest'
import { defineTool, scripted } from '../../src/index.ts'
import { crashTest, type CrashTestOptions } from '../../src/testing/index.ts'
import { calling, ledger, tool } from './ledger.ts'

const hello = { world: ledger, options: () => ({ model: scripted(() => 'Hello.') }), run: 'Hi.' }
let ticks = 0

const WRONG: readonly (readonly [string, unknown, RegExp])[] = [
  ['no object', 'agent.js', /^The options of crashTest must be an object/],
  ['no world', { ...hello, world: undefined }, /"world" of crashTest is missing.*world: \(\) =>/],
  ['a misspelled option', { ...hello, peopel: () => null }, /Unknown option "peopel" of crashTest/],
  ['an unknown kind of time', { ...hello, time: 'stops' }, /"time" of crashTest must be/],
  ['a world without look', { ...hello, world: () => ({}) }, /must return an object with look\(\)/],
  ['no agent', { ...hello, options: () => null }, /must return the options of a harness/],
  [
    'an agent with a store',
    { ...hello, options: () => ({ ...hello.options(), store: null }) },
    /crashTest sets "store" of the harness itself/,
  ],
  ['a wrong option of the agent', { ...hello, options: () => ({ model: 7 }) }, /model/],
  ['a point that is not there', { ...hello, at: 99 }, /There is no point 99: this run has the points 1 to 10/],
  [
    'a look that differs by itself',
    { ...hello, world: () => ({ look: () => ++ticks }) },
    /look\(\) differs by itself: it was/,
  ],
  [
    'a look with a table that JSON does not know',
    { ...hello, world: () => ({ look: () => ({ rows: new Map([[1, 2]]) }) }) },
    /look\(\) has a Map: return plain JSON/,
  ],
  [
    'a look that holds itself',
    {
      ...hello,
      world: () => ({
        look: () => {
          const rows: unknown[] = []
          rows.push(rows)
          return rows
        },
      }),
    },
    /look\(\) returns what JSON cannot hold: return plain JSON/,
  ],
  [
    'a look that never returns',
    { ...hello, world: () => ({ look: () => new Promise(() => {}) }), timeoutMs: 200 },
    /^look\(\) of crashTest has not returned after 0\.2 s/,
  ],
  [
    'a world that never comes',
    { ...hello, world: () => new Promise(() => {}), timeoutMs: 200 },
    /^world\(\) of crashTest has not returned after 0\.2 s/,
  ],
  [
    'people who give a number',
    {
      ...hello,
      options: () => ({
        model: calling('ask'),
        tools: [tool('ask', 'once', () => 1, { approval: 'ask' })],
      }),
      people: () => 7,
    },
    /^people\(\) of crashTest gives \{ allow: true \}/,
  ],
  ['a look that says nothing', { ...hello, world: () => ({ look: () => undefined }) }, /look\(\) returns undefined/],
  [
    'a world that differs in each run',
    {
      world: () => {
        const n = ++ticks
        return { look: () => ({ made: n }) }
      },
      options: hello.options,
      run: 'Hi.',
    },
    /Two runs without a crash left different worlds: made was/,
  ],
  [
    'a model that goes another way each time',
    {
      ...hello,
      options: () => ({
        model: calling(++ticks % 2 === 0 ? 'a' : 'b'),
        tools: [tool('a', 'read', () => 1), tool('b', 'read', () => 1)],
      }),
    },
    /Two runs without a crash went different ways: crash-test\[0\]\.tool was/,
  ],
  [
    'a run that fails',
    { ...hello, options: () => ({ model: scripted([]) }) },
    /Without a crash the run fails, so nothing can be compared with it: .*/,
  ],
  [
    'a run that waits for nobody',
    {
      ...hello,
      options: () => ({ model: calling('ask'), tools: [tool('ask', 'once', () => 1, { approval: 'ask' })] }),
    },
    /does not settle: it waits for a person \(ask\), and people of the test decides nothing/,
  ],
]

it.each(WRONG)('B-CRASHTEST-5: it refuses %s with one sentence', async (_name, test, says) => {
  const refused = crashTest(test as CrashTestOptions)
  await expect(refused).rejects.toMatchObject({
    name: 'Fault',
    code: expect.stringMatching(/^invalid_(config|input)$/) as string,
    message: expect.stringMatching(says) as string,
  })
})

it('B-CRASHTEST-3: a second life that cannot begin, or does not settle, is a finding of T1', async () => {
  let lives = 0
  const locked = await crashTest({
    world: () => ({ ...ledger(), locked: false }),
    options: (world) => {
      lives += 1
      if (world.locked) throw new Error('The lock of the first life is still there.')
      const lock = defineTool({
        name: 'lock',
        description: 'takes a lock that the process gives back when it ends',
        input: { type: 'object' },
        effect: 'idempotent',
        execute: () => void (world.locked = true),
      })
      return { model: calling('lock'), tools: [lock] }
    },
    run: 'Go.',
  })
  expect(lives).toBeGreaterThan(20)
  const [first] = locked.findings
  expect(first).toMatchObject({
    rule: 'T1',
    why: 'it ended with an error: The lock of the first life is still there.',
  })
  const hanging = await crashTest({
    world: ledger,
    options: ({ rows }) => ({
      model: calling('wait'),
      tools: [
        tool('wait', 'idempotent', async ({ n }) => {
          rows.push(n)
          if (rows.length > 1) await new Promise(() => {})
        }),
      ],
    }),
    run: 'Go.',
    at: 13,
    timeoutMs: 200,
  })
  expect(hanging.findings).toMatchObject([{ rule: 'T1', why: 'it has not settled after 0.2 s' }])
})

it('B-CRASHTEST-12: a finding names the command that tests its point again, also from the environment', async () => {
  const test = {
    world: ledger,
    options: ({ rows }: ReturnType<typeof ledger>) => ({
      model: calling('act'),
      tools: [tool('act', 'read', ({ n }) => void rows.push(n))],
    }),
    run: 'Go.',
  }
  const { findings } = await crashTest({ ...test, at: 12 })
  expect(findings.map(({ point, replay }) => [point.n, replay])).toEqual([
    [0, 'TERRET_CRASH_AT=0 npx vitest run'],
    [12, 'TERRET_CRASH_AT=12 npx vitest run'],
    [12, 'TERRET_CRASH_AT=12 npx vitest run'],
  ])
  process.env['TERRET_CRASH_AT'] = '12'
  try {
    expect((await crashTest(test)).findings).toEqual(findings)
    process.env['TERRET_CRASH_AT'] = 'twelve'
    await expect(crashTest(test)).rejects.toThrow('TERRET_CRASH_AT must be the number of a point, not "twelve".')
  } finally {
    delete process.env['TERRET_CRASH_AT']
  }
})
