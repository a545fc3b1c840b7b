// `terret crash-test --process` over all points of a run: real processes are killed, and the lie that only a dead process shows is found.
import { expect, it } from 'vitest'
import type { CrashReport } from '../../src/testing/index.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()
const dist = new URL('../../dist/', import.meta.url).href

const agentFile = (pay: string): string => `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTool, scripted } from '${dist}index.js'

export const agent = {
  world: ({ folder }) => {
    const file = join(folder, 'payments')
    const look = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\\n') : [])
    return { look, happened: (key) => look().includes(key), add: (row) => appendFileSync(file, row + '\\n') }
  },
  options: ({ happened, add }) => ({
    model: scripted(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: 'Paid.', delayMs: 400 }
        : { calls: [{ tool: 'pay', args: {} }] },
    ),
    tools: [
      defineTool({
        name: 'pay',
        description: 'pays the bill',
        input: { type: 'object' },
        approval: 'ask',
        execute: (_args, { key }) => ${pay},
        reconcile: (_args, { key }) => (happened(key) ? 'paid' : undefined),
      }),
    ],
  }),
  run: 'Pay the bill.',
  people: () => ({ allow: true }),
}
`

it('B-CRASHTEST-9: an honest agent with an approval is killed at every point, and nothing is found', async () => {
  stage.write('work/agent.mjs', agentFile('(add(key), "paid")'))
  const { out, err } = await stage.apart('crash-test', 'agent.mjs', '--process', '--json')
  expect(err).toBe('')
  const report = JSON.parse(out) as CrashReport
  expect(report).toMatchObject({ passed: true, findings: [], missed: [] })
  expect(report.points.length).toBeGreaterThan(20)
  expect(report.rules.find(({ rule }) => rule === 'T7')).toMatchObject({ state: 'held' })
}, 300_000)

it('B-CRASHTEST-9: a handler that returns before its work is done is found only where its process dies', async () => {
  stage.write('work/agent.mjs', agentFile('(setTimeout(() => add(key), 50), "paid")'))
  const here = JSON.parse((await stage.apart('crash-test', 'agent.mjs', '--json')).out) as CrashReport
  const point = here.points.find(({ name }) => name === 'asking the model, request 2')
  expect(here.findings.filter((finding) => finding.point.n === point?.n)).toEqual([])
  const { out, code } = await stage.apart('crash-test', 'agent.mjs', '--process', '--at', String(point?.n))
  expect(out).toContain(`T4 at point ${point?.n}, asking the model, request 2: the world differs: `)
  expect(out).toContain(`   again: terret crash-test agent.mjs --process --at ${point?.n}\n`)
  expect(code).toBe(1)
}, 120_000)
