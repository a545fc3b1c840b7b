// Programs that try to get out, to take all there is, or never to end. Each runs behind its control, in a thread of its
// own. Meanwhile another session of this process goes on; how long it had to wait is printed.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import type { CellDone } from '../../src/scripts/cell.ts'
import { SIZES } from '../../src/scripts/prelude.ts'
import type { CellOutcome } from '../../src/scripts/sandbox.ts'
import { runCell, startThread } from './engine-stage.ts'
import { ESCAPES, type Escape } from './escapes.ts'

const ATTACK_MS = 200
/** For those that are to meet something else than the end of their time. */
const LIMIT_MS = 20_000
const TOOLS: ReadonlySet<string> = new Set(['read', 'send', 'agent_query', 'model_query'])
const KINDS: ReadonlySet<string> = new Set([
  'script_error',
  'timeout',
  'limit_exceeded',
  'unknown_capability',
  'cancelled',
])

const waits = monitorEventLoopDelay({ resolution: 1 })
const other = { turns: 0, over: false, ended: Promise.resolve() }

beforeAll(() => {
  const harness = new Harness({ model: scripted(() => 'done'), secrets: {} })
  const goOn = async (): Promise<void> => {
    while (!other.over) {
      await harness.run('go')
      other.turns += 1
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await harness.close()
  }
  other.ended = goOn()
  waits.enable()
})

afterAll(async () => {
  waits.disable()
  other.over = true
  await other.ended
  const [most, often] = [waits.max, waits.percentile(99)].map((ns) => (ns / 1e6).toFixed(1))
  console.log(
    `${ESCAPES.length} escapes. Another session took ${other.turns} turns and waited ${most} ms at most, ${often} ms in 99 %.`,
  )
})

/** Whatever a program did, nothing else crosses from its thread. */
function expectNothingOut(outcome: CellOutcome): void {
  if (outcome.type === 'lost') return
  expect(JSON.stringify(outcome).length).toBeLessThan(2 * SIZES.partChars)
  if (outcome.type === 'ended') {
    expect(KINDS).toContain(outcome.error.kind)
    return
  }
  expect(outcome.calls.filter(({ tool }) => !TOOLS.has(tool))).toEqual([])
  expect(Math.min(outcome.left.tool, outcome.left.model)).toBeGreaterThanOrEqual(0)
  expect((outcome.done?.stdout ?? '').length).toBeLessThanOrEqual(24_000)
  if (outcome.done?.error) expect(KINDS).toContain(outcome.done.error.kind)
}

async function endOf({ attack, ends, control, works }: Escape): Promise<CellDone> {
  const thread = await startThread()
  expect(await runCell(thread, control)).toMatchObject({ value: works })
  const isBounded = 'kinds' in ends && ends.kinds.includes('timeout')
  const computeMs = isBounded ? ATTACK_MS : LIMIT_MS
  const polluted = JSON.stringify(Object.getOwnPropertyNames(Object.prototype))
  const done = await runCell(thread, attack, { cell: 2, computeMs, look: expectNothingOut })
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(polluted)
  return done
}

it('B-CELL-34: there are at least 150 escapes, and no two are the same', () => {
  const attacks = new Set(ESCAPES.map(({ attack }) => attack))
  expect(attacks.size).toBe(ESCAPES.length)
  expect(attacks.size).toBeGreaterThanOrEqual(150)
})

it.each(ESCAPES)('B-CELL-5, B-CELL-9, B-CELL-34: $attack reaches nothing, and its control works', async (escape) => {
  const { error, value } = await endOf(escape)
  if ('value' in escape.ends) expect({ value, error }).toEqual({ value: escape.ends.value, error: undefined })
  else expect(escape.ends.kinds).toContain(error?.kind)
})
