// Processes killed right after each of their commits, or after a share of them: the next process goes on, with the same end, and does nothing twice. The script
// they run is child-ends.ts.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { share, upTo } from '../runs.ts'
import { COMMITS_MAX } from '../runtime/killed.ts'
import { makeFile } from '../stores/folder.ts'

type Ended = { readonly status: string; readonly output: Record<string, unknown> | null; readonly failure: string }

/** What it printed; null if it was killed. Compiled by `npm run build:all`, which the tests begin with. */
async function processOf(file: string, which: string, killAt: number): Promise<Ended | null> {
  const script = fileURLToPath(new URL('../../.build/test/graphs/child-ends.js', import.meta.url))
  const child = spawn(process.execPath, [script, file, which, String(killAt)], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  for await (const chunk of child.stdout) said += String(chunk)
  return said.trim() === '' ? null : (JSON.parse(said) as Ended)
}

/** Killed after its n-th commit, and gone on with. Null: it had ended before that. */
async function killedAfter(which: string, n: number) {
  const file = makeFile()
  if ((await processOf(file, which, n)) !== null) return null
  const ended = await processOf(file, which, 0)
  const lines = existsSync(`${file}.journal`) ? readFileSync(`${file}.journal`, 'utf8').trim().split('\n') : []
  return { ended, names: lines.map((line) => line.split(' ')[0]), keys: new Set(lines).size }
}

/** After every commit, or a share of them, four at a time. There are more than `least` commits. */
async function killedEverywhere(
  which: string,
  least: number,
  look: (killed: NonNullable<Awaited<ReturnType<typeof killedAfter>>>) => void,
) {
  const commits = share(upTo(COMMITS_MAX))
  let kills = 0
  for (let i = 0; i < commits.length; i += 4) {
    const round = await Promise.all(commits.slice(i, i + 4).map((at) => killedAfter(which, at)))
    for (const killed of round) {
      if (killed === null) continue
      kills += 1
      look(killed)
    }
    if (round.includes(null)) return expect(kills).toBeGreaterThanOrEqual(commits.filter((n) => n <= least + 1).length)
  }
  throw new Error(`It made more than ${COMMITS_MAX} commits.`)
}

it('B-DELEGATE-8: killed after each commit of a delegation that is never approved, it comes to the same output, and nothing is done twice (E4)', async () => {
  await killedEverywhere('delegate', 20, ({ ended, names, keys }) => {
    expect(ended).toMatchObject({
      status: 'completed',
      output: { executions: 3, reviews: 3, revisions: 2, forced: true },
    })
    expect(names).toEqual(['work', 'work', 'work'])
    expect(keys).toBe(3)
  })
}, 240_000)

it('B-GRAPH-68: killed after each commit of a run that fails, what was done is undone in reverse, each once, and the run has the first reason (E16)', async () => {
  await killedEverywhere('saga', 10, ({ ended, names }) => {
    expect(ended?.failure).toBe('Node "send" failed: Error: No post today. Undone: pay, book.')
    expect(names).toEqual(['book', 'note', 'pay', 'refund', 'unbook'])
  })
}, 120_000)

it('B-GRAPH-69, B-END-2: killed after each commit of a run that is stopped, also after its end was announced, it ends interrupted with what the finalizer came to', async () => {
  await killedEverywhere('stop', 4, ({ ended }) => {
    expect(ended).toMatchObject({ status: 'interrupted', output: { word: 'so far: first' } })
  })
}, 120_000)
