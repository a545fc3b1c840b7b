// What /metrics says after a thousand sessions on SQLite, beside a recount of their logs.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, scripted, sqlite, type Step } from '../../src/index.ts'
import { counted, recounted, seriesOf, told } from './recount.ts'

const SESSIONS = 1_000
const WIDTH = 50
const USAGE = { inputTokens: 100, outputTokens: 7, cachedTokens: 60 }

/** What a session is told says how it goes. */
const STEPS: Readonly<Record<string, Step>> = {
  look: { calls: [{ tool: 'look' }, { tool: 'look' }], usage: USAGE, cost: 3 },
  pay: { calls: [{ tool: 'pay' }], usage: USAGE, cost: 5 },
  help: { calls: [{ tool: 'subagent', args: { agent: 'helper', task: 'Help.' } }], cost: 7 },
  invent: { calls: [{ tool: 'made_up' }], usage: USAGE },
  break: { error: 'auth' },
  loop: { calls: [{ tool: 'look' }] },
}

it('B-METRIC-5: after 1,000 sessions that end in every way the counts equal a recount of their logs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'terret-metrics-'))
  const store = sqlite(join(folder, 'a.db'))
  onTestFinished(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const common = { input: z.object({}), execute: () => 'done' }
  const { harness, metrics } = counted({
    store,
    tools: [
      defineTool({ name: 'look', description: 'Looks.', effect: 'read', ...common }),
      defineTool({ name: 'pay', description: 'Pays.', approval: 'ask', ...common }),
    ],
    subagents: {
      helper: { description: 'Helps.', model: scripted(() => ({ text: 'Helped.', usage: USAGE, cost: 2 })) },
    },
    model: scripted(({ messages }) => {
      const [first] = messages
      const said = first?.role === 'user' && first.parts[0]?.type === 'text' ? first.parts[0].text : ''
      return messages.length === 1 || said === 'loop'
        ? (STEPS[said] ?? 'Hello.')
        : { text: 'Done.', usage: USAGE, cost: 1 }
    }),
  })
  const ways = [...Object.keys(STEPS), 'talk', 'talk']
  for (let at = 0; at < SESSIONS; at += WIDTH)
    await Promise.all(
      Array.from({ length: WIDTH }, (_, n) => {
        const way = ways[(at + n) % ways.length] ?? ''
        return harness.run(way, way === 'loop' ? { limits: { modelRequests: 2 } } : {})
      }),
    )
  const counts = await told(metrics)
  expect(counts).toEqual(await recounted(store))
  const ended = (end: string) => counts[`runs_total{agent="default",end="${end}"}`] ?? 0
  const waiting = seriesOf(await metrics.text()).get('terret_approvals_waiting{agent="default"}') ?? 0
  expect(ended('completed') + ended('limit') + ended('failed') + waiting).toBe(SESSIONS)
  for (const n of [ended('limit'), ended('failed'), waiting]) expect(n).toBeGreaterThan(30)
  expect(counts['tool_calls_total{agent="default",tool="(unknown)",status="error"}']).toBeGreaterThan(100)
})
