// A process that makes or merges a worktree is killed with SIGKILL at many moments. The next process finds everything once.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeWorktree, mergeWorktree, listWorktrees } from '../../src/tools/worktrees/worktree.ts'
import { share } from '../runs.ts'
import { until } from '../until.ts'

const MODULE = new URL('../../.build/src/tools/worktrees/worktree.js', import.meta.url).href
/** Over the time that making or merging takes. */
const DELAYS_MS = share([0, 4, 8, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 130])
/** At least those with the shortest delays are killed before they are done. */
const CUT_MIN = DELAYS_MS.filter((ms) => ms <= 12).length

function git(folder: string, ...args: readonly string[]): string {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b']
  return execFileSync('git', [...who, ...args], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

function repository(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-tree-kill-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  git(folder, 'init', '-q')
  writeFileSync(join(folder, 'a.txt'), 'a\n')
  git(folder, 'add', '.')
  git(folder, 'commit', '-qm', 'first')
  return folder
}

/** Runs the code in a process of its own, and kills it so long after it began. Resolves with whether it had ended by itself. */
async function killed(code: string, delayMs: number): Promise<boolean> {
  const text = `import * as trees from ${JSON.stringify(MODULE)}; process.stdout.write('begins'); await ${code}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  await Promise.race([once(child.stdout, 'data'), gone])
  await new Promise((resolve) => setTimeout(resolve, delayMs))
  child.kill('SIGKILL')
  const [code0] = (await gone) as [number | null]
  return code0 === 0
}

it('B-TREE-54: a worktree whose maker is killed at any moment is made whole by the next, once', async () => {
  const folder = repository()
  const cut: boolean[] = []
  for (const [i, delayMs] of DELAYS_MS.entries()) {
    const wanted = { folder, id: `make-${i}`, parent: 'p' }
    cut.push(!(await killed(`trees.makeWorktree(${JSON.stringify(wanted)})`, delayMs)))
    // The git that it had started may still be at work.
    const made = await until(() => makeWorktree(wanted))
    expect(readdirSync(made.folder).sort()).toEqual(['.git', 'a.txt'])
    expect(git(folder, 'worktree', 'list', '--porcelain').split(`worktree ${made.path}\n`)).toHaveLength(2)
    expect(git(made.folder, 'status', '--porcelain')).toBe('')
    expect(git(made.folder, 'symbolic-ref', '--short', 'HEAD')).toBe(`${made.branch}\n`)
  }
  expect(cut.filter(Boolean).length).toBeGreaterThanOrEqual(CUT_MIN)
  expect(await listWorktrees(folder)).toHaveLength(DELAYS_MS.length)
  expect(git(folder, 'status', '--porcelain')).toBe('')
}, 120_000)

it('B-TREE-54: a merge that is killed at any moment loses no change and has each once', async () => {
  const folder = repository()
  const cut: boolean[] = []
  for (const [i, delayMs] of DELAYS_MS.entries()) {
    const id = `merge-${i}`
    const made = await makeWorktree({ folder, id, parent: 'p' })
    writeFileSync(join(made.folder, `${id}.txt`), `of ${id}\n`)
    cut.push(!(await killed(`trees.mergeWorktree(${JSON.stringify(folder)}, ${JSON.stringify(id)})`, delayMs)))
    await until(async () => {
      if ((await listWorktrees(folder)).some((one) => one.id === id)) await mergeWorktree(folder, id)
    })
    expect(readFileSync(join(folder, `${id}.txt`), 'utf8')).toBe(`of ${id}\n`)
    const subjects = git(folder, 'log', '--format=%s').split('\n')
    expect(subjects.filter((one) => one === `Work of ${id}`)).toHaveLength(1)
    expect(subjects.filter((one) => one === `Merge ${made.branch}`)).toHaveLength(1)
  }
  expect(cut.filter(Boolean).length).toBeGreaterThanOrEqual(CUT_MIN)
  expect(await listWorktrees(folder)).toEqual([])
  expect(git(folder, 'status', '--porcelain')).toBe('')
}, 120_000)
