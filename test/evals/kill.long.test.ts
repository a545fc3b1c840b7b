// A large suite in a process that is killed ten times.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { sqlite } from '../../src/index.ts'
import { compare, type EvalReport, runSuite } from '../../src/evals/index.ts'
import { answering, numbered, suiteOf } from './stage.ts'

const PROGRAM = fileURLToPath(new URL('../../.build/test/evals/child-suite.js', import.meta.url))
const KILLS = 10

/** Runs it until so many trials have their verdict, or to its end. */
async function run(path: string, trials: number): Promise<string> {
  const child = spawn(process.execPath, [PROGRAM, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += String(chunk)
    if (said.split('trial\n').length > trials) child.kill('SIGKILL')
  })
  await new Promise((resolve) => child.on('close', resolve))
  return said
}

it('B-EVAL-26: 200 cases with 5 trials on SQLite, killed ten times, are 1,000 trials that are each paid once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'terret-evals-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'terret.db')
  for (let kill = 1; kill <= KILLS; kill++) await run(path, kill * 85)
  const last = (await run(path, Number.POSITIVE_INFINITY)).trim().split('\n').at(-1) ?? ''
  expect(JSON.parse(last)).toEqual({
    counts: { passed: 1_000, failed: 0, errored: 0, ungraded: 0 },
    cost: { usd: expect.closeTo(1, 9) as number, judgeUsd: 0 },
    status: 'passed',
  })
  const store = sqlite(path)
  onTestFinished(() => store.close())
  let [trials, replies] = [0, 0]
  for (let after = ''; ; ) {
    const cards = await store.list({ where: { 'eval-kind': 'trial' }, after, limit: 200 })
    for (const { session, cost } of cards) {
      trials += 1
      expect(cost).toBe(1_000)
      const { events } = await store.read(session, 0, 1_000)
      replies += events.filter(({ type }) => type === 'agent.message').length
    }
    if (cards.length < 200) break
    after = cards.at(-1)?.session ?? ''
  }
  expect([trials, replies]).toEqual([1_000, 1_000])
}, 600_000)

it('B-EVAL-11: A against A a thousand times, each a run of its own, differ in at most 6 of 100 comparisons', async () => {
  let different = 0
  const cases = numbered(10)
  const once = (): Promise<EvalReport> =>
    runSuite(
      suiteOf(
        answering(() => (Math.random() < 0.6 ? 'right' : 'wrong')),
        { cases, trials: 2, parallel: 20 },
      ),
    )
  for (let round = 0; round < 1_000; round++) {
    const [before, after] = await Promise.all([once(), once()])
    if (compare(before, after).word !== 'no difference seen') different += 1
  }
  console.log(`${different} of 1,000 comparisons of A with A saw a difference`)
  // Of a share of 5 in 100, a thousand comparisons see more than 75 once in 5,000 runs of this test.
  expect(different).toBeLessThanOrEqual(75)
}, 1_200_000)
