// Time in a crash test: it jumps where nothing of the user's runs, and with `time: 'jumps'` over the waits of handlers and models.
import { expect, it } from 'vitest'
import { scripted } from '../../src/index.ts'
import { crashTest } from '../../src/testing/index.ts'
import { JumpingClock } from '../../src/testing/crash-test/jumping-clock.ts'
import { calling, ledger, tool } from './ledger.ts'

const HOUR_MS = 60 * 60 * 1_000
const DAY_MS = 24 * HOUR_MS

it('B-CRASHTEST-7: a handler and a model that wait for hours by their clock are tested in moments', async () => {
  let waits = 0
  const report = await crashTest({
    world: ledger,
    options: ({ byKey }) => ({
      model: scripted(({ messages }) => {
        const done = messages.some(({ role }) => role === 'tool')
        return done ? { text: 'Done.', delayMs: 2 * HOUR_MS } : { calls: [{ tool: 'wait', args: { n: 1 } }] }
      }),
      tools: [
        tool(
          'wait',
          'idempotent',
          async ({ n }, { key, clock }) => {
            waits += 1
            const before = clock.now()
            await new Promise<void>((resolve) => void clock.timer(HOUR_MS, resolve))
            byKey.set(key, clock.now() - before >= HOUR_MS && n)
          },
          { timeoutMs: DAY_MS },
        ),
      ],
      limits: { activeMs: DAY_MS, modelMs: DAY_MS },
    }),
    run: 'Go.',
    time: 'jumps',
  })
  expect(report.findings).toEqual([])
  expect(waits).toBeGreaterThan(18)
})

it('B-CRASHTEST-7: a provider that is away for an hour is waited for in moments, without `time`', async () => {
  const report = await crashTest({
    world: ledger,
    options: () => {
      let asked = 0
      return { model: scripted(() => (asked++ === 0 ? { error: 'rate_limit', retryAfterMs: HOUR_MS } : 'Here I am.')) }
    },
    run: 'Go.',
    at: 0,
  })
  expect(report.findings).toEqual([])
})

it('B-CRASHTEST-7: while a handler works in real time, no jump ends it by its timeout', async () => {
  const report = await crashTest({
    world: ledger,
    options: ({ byKey }) => ({
      model: calling('slow'),
      tools: [
        tool('slow', 'idempotent', async (_args, { key }) => {
          await new Promise((resolve) => setTimeout(resolve, 300))
          byKey.set(key, true)
        }),
      ],
    }),
    run: 'Go.',
    at: 12,
  })
  expect(report.findings).toEqual([])
})

it('B-CRASHTEST-7: a hook that works in real time is waited for as well', async () => {
  const report = await crashTest({
    world: ledger,
    options: () => ({
      model: calling('look'),
      tools: [tool('look', 'read', () => 'seen')],
      hooks: [{ type: 'before_tool_call', run: () => new Promise((resolve) => setTimeout(resolve, 300)) }],
    }),
    run: 'Go.',
    at: 9,
  })
  expect(report.findings).toEqual([])
})

it('B-CRASHTEST-7: time passes over a wait of code that runs only while all of it waits, and a timer can be cancelled', async () => {
  const clock = new JumpingClock({ jumps: true, isFirst: false })
  const begun = clock.now()
  const [one, other] = [clock.enter(), clock.enter()]
  const fired: string[] = []
  one.clock?.timer(HOUR_MS, () => fired.push('one'))
  const cancel = one.clock?.timer(HOUR_MS / 2, () => fired.push('cancelled'))
  await new Promise((resolve) => setTimeout(resolve, 40))
  expect(fired).toEqual([])
  cancel?.()
  other.leave()
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(fired).toEqual(['one'])
  expect(clock.now() - begun).toBeGreaterThanOrEqual(HOUR_MS)
  one.leave()
  clock.clear()
})

it('B-CRASHTEST-7: a handler that hangs in the first life does not hold back the time of the second', async () => {
  const report = await crashTest({
    world: ledger,
    options: ({ byKey }) => {
      let asked = 0
      return {
        model: scripted(({ messages }) => {
          const results = messages.filter(({ role }) => role === 'tool').length
          const calls = ['quick', 'slow'].map((name, i) => ({ tool: name, args: { n: i } }))
          if (results === 0) return { calls }
          return asked++ === 0 ? { error: 'rate_limit', retryAfterMs: 60_000 } : 'Done.'
        }),
        tools: [
          tool('quick', 'idempotent', (_args, { key }) => void byKey.set(key, 'quick')),
          tool('slow', 'idempotent', async (_args, { key, clock }) => {
            await new Promise<void>((resolve) => void clock.timer(30, resolve))
            byKey.set(key, 'slow')
          }),
        ],
      }
    },
    run: 'Go.',
    timeoutMs: 10_000,
  })
  expect(report.findings).toEqual([])
})
