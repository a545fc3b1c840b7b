// Worktrees of children on the command line, with real repositories: who has the tools, what is listed, merged, discarded and swept.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeWorktree, type Worktree } from '../../src/tools/worktrees/worktree.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: stage.folder, encoding: 'utf8' })

/** The folder of the stage as a repository with one commit. */
function repository(): string {
  const folder = realpathSync(stage.folder)
  git('init', '-q')
  writeFileSync(join(folder, 'a.txt'), 'a\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  return folder
}

const use = (tool: string, args: Record<string, string>) => ({ calls: [{ tool, args }] })
type Asked = { readonly body: unknown }
const has = ({ body }: Asked, text: string): boolean => JSON.stringify(body).includes(text)
type Listed = { readonly id: string; readonly branch: string; readonly path: string; readonly files: readonly string[] }

/** A lead with one child that writes a file in a worktree of its own. */
const WRITING = (request: Asked) => {
  if (has(request, '<subagent_report')) return 'It wrote.'
  if (has(request, 'spawned_new')) return 'I started it.'
  if (has(request, 'Lead them.')) return use('spawn_subagent', { prompt: 'Write it.', isolation: 'worktree' })
  return has(request, '"role":"tool"') ? 'Done.' : use('write', { path: 'b.txt', content: 'new\n' })
}

async function wrote(): Promise<Listed> {
  repository()
  await scriptedBy(WRITING)
  expect(await stage.terret('run', '--mode', 'auto', 'Lead them.')).toMatchObject({ code: 0, out: 'It wrote.\n' })
  return (await stage.json('worktree')) as Listed
}

it('B-TREE-42: terret worktree lists the worktrees of a folder, and merges or discards one by its id, branch or path', async () => {
  expect(await stage.terret('worktree')).toMatchObject({
    code: 2,
    err: expect.stringContaining('git repository') as unknown,
  })
  const tree = await wrote()
  expect(tree).toMatchObject({ branch: `terret/${tree.id}-${tree.branch.split('-').at(-1)}`, files: ['b.txt'] })
  const { out } = await stage.terret('worktree', 'list')
  expect(out).toBe(`${tree.id}  idle  ${tree.branch}  changed: b.txt\n`)
  expect(await stage.terret('worktree', 'merge', 'other')).toMatchObject({ code: 6 })
  const refused = await stage.terret('worktree', 'discard', tree.id)
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('has changes in b.txt')])
  const merged = await stage.terret('worktree', 'merge', tree.branch)
  expect(merged).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Merged terret\/.* into .*: b\.txt\.\n$/) as unknown,
  })
  expect(readFileSync(join(stage.folder, 'b.txt'), 'utf8')).toBe('new\n')
  expect(await stage.terret('worktree')).toMatchObject({ code: 0, out: '' })
  const other = await makeWorktree({ folder: stage.folder, id: 'second', parent: 'p' })
  writeFileSync(join(other.path, 'c.txt'), 'c\n')
  expect(await stage.terret('worktree', 'discard', other.path, '--force')).toMatchObject({ code: 0 })
  expect([existsSync(other.path), git('branch', '--list', 'terret/*')]).toEqual([false, ''])
})

it('B-TREE-51: a session that is deleted or pruned takes its clean worktrees along; one with changes stays and is named', async () => {
  const tree = await wrote()
  const { session } = (await stage.json('list')) as { session: string }
  const clean = (id: string): Promise<Worktree> => makeWorktree({ folder: stage.folder, id, parent: session })
  const first = await clean('first')
  const deleted = await stage.terret('delete', session, '--yes')
  expect(deleted.code).toBe(0)
  expect(deleted.err).toContain(`The worktree ${tree.path} (${tree.branch}) has changes or is in use, and stays.`)
  expect([existsSync(first.path), readFileSync(join(tree.path, 'b.txt'), 'utf8')]).toEqual([false, 'new\n'])
  expect(git('branch', '--list', 'terret/*')).not.toContain(first.branch)
  await scriptedBy(['Done.'])
  await stage.terret('run', 'Work.')
  const { session: next } = (await stage.json('list')) as { session: string }
  const second = await makeWorktree({ folder: stage.folder, id: 'second', parent: next })
  const strange = await makeWorktree({ folder: stage.folder, id: 'third', parent: 'of another store' })
  expect(await stage.terret('prune', '--older', '0', '--yes')).toMatchObject({ code: 0, err: '' })
  expect([second, strange, tree].map(({ path }) => existsSync(path))).toEqual([false, true, true])
})

it('B-TREE-52: the end of a run says which worktrees with changes are not merged', async () => {
  repository()
  await scriptedBy(WRITING)
  const { err } = await stage.terret('run', '--mode', 'auto', 'Lead them.')
  expect(err).toMatch(/Not merged yet: terret\/\S+, with changes in b\.txt\. See: .*terret worktree/)
})

it('B-TREE-53: in a repository the agent has the tools for worktrees, unless "worktrees" is false', async () => {
  const offered = async (more: object = {}): Promise<boolean> => {
    const chaos = await scriptedBy(['Done.'], more)
    expect((await stage.terret('run', 'Work.')).code).toBe(0)
    return JSON.stringify(chaos.requests[0]?.body).includes('worktree_merge')
  }
  expect(await offered()).toBe(false)
  repository()
  expect(await offered()).toBe(true)
  expect([await offered({ worktrees: false }), await offered({ subagents: false })]).toEqual([false, false])
  await scriptedBy(['Done.'])
  stage.write('work/.terret/config.json', JSON.stringify({ worktrees: true }))
  await stage.terret('trust')
  expect((await stage.refused('run', 'Work.')).err).toContain('"worktrees" is not for a workspace to choose')
})
