// Children that write: in worktrees of their own, or with paths of their own, as a model starts them.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Json, Request, CompleteStore } from '../../src/index.ts'
import { bashTool, fileTools, worktreeTools } from '../../src/tools/index.ts'
import { makeWorktree, listWorktrees } from '../../src/tools/worktrees/worktree.ts'
import { type FamilyOptions, eventsOf, family, gate, ofType, type Roles, tool, use } from './children-stage.ts'
import { until } from '../until.ts'

function empty(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-work-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function repository(): string {
  const folder = empty()
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: folder, stdio: 'ignore' })
  git('init', '-q')
  writeFileSync(join(folder, 'a.txt'), 'a\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  return folder
}

const spawn = (prompt: string, more: Readonly<Record<string, Json>> = {}) =>
  use('spawn_subagent', { prompt, isolation: 'worktree', ...more })
const write = (path: string, content = 'new\n') => use('write', { path, content })

function stage(folder: string, roles: Roles, options: FamilyOptions = {}) {
  return family(roles, { storage: 'sqlite', detached: true, tools: fileTools({ root: folder }), ...options })
}

async function reportsTo(store: CompleteStore, id: string): Promise<readonly string[]> {
  const reports = ofType(await eventsOf(store, id), 'user.message').filter(({ report }) => report !== undefined)
  return reports.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])))
}

const runs = (store: CompleteStore, id: string, n: number) =>
  until(async () => expect(ofType(await eventsOf(store, id), 'run.settled')).toHaveLength(n))

/** The parent has read of its child, in a run of its own or in the one that started it, and rests. */
const read = (store: CompleteStore, id: string) =>
  until(async () => {
    const events = await eventsOf(store, id)
    expect(ofType(events, 'agent.message').at(-1)).toMatchObject({ parts: [{ type: 'text', text: 'Read.' }] })
    expect(ofType(events, 'run.settled')).toHaveLength(ofType(events, 'run.started').length)
  })

describe('a child in a worktree that a model starts', () => {
  it('B-TREE-33, B-END-4: works in a worktree made before it, and its report has the path, the branch and the changed files', async () => {
    const folder = repository()
    const roles = { root: [spawn('dig'), 'Started.', 'Read.'], dig: [write('b.txt'), 'Done.'] }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await read(store, session.id)
    const [tree] = await listWorktrees(folder)
    expect(readFileSync(join(tree?.path ?? '', 'b.txt'), 'utf8')).toBe('new\n')
    expect(existsSync(join(folder, 'b.txt'))).toBe(false)
    const [report = ''] = await reportsTo(store, session.id)
    expect(report).toContain(
      `Done.\nWorktree: ${tree?.path}\nBranch: ${tree?.branch}\nChanged files (1): b.txt\n</subagent_report>`,
    )
    // Its own log announces the end, and says the same.
    const [child] = (await session.status({ include: ['children'] })).children
    const end = (await eventsOf(store, child?.sessionId ?? '')).slice(-2)
    expect(end).toMatchObject([
      { type: 'run.ending' },
      {
        type: 'run.settled',
        workspace: { lines: [`Worktree: ${tree?.path}`, `Branch: ${tree?.branch}`, 'Changed files (1): b.txt'] },
      },
    ])
  })

  it('B-TREE-33: one that its parent waits for says the same in its result, and what it starts works there too', async () => {
    const folder = repository()
    const below = use('spawn_subagent', { prompt: 'below', blocking: true })
    const roles = {
      root: [spawn('dig', { blocking: true }), (request: Request) => JSON.stringify(request.messages.at(-1))],
      dig: [below, 'Done.'],
      below: [write('c.txt'), 'Wrote.'],
    }
    const { harness } = stage(folder, roles)
    const session = await harness.open({ folder })
    const result = await session.run('Go.')
    const [tree] = await listWorktrees(folder)
    expect(result.text).toContain(`Worktree: ${tree?.path}`)
    expect(result.text).toContain('Changed files (1): c.txt')
    expect(existsSync(join(folder, 'c.txt'))).toBe(false)
  })

  it('B-TREE-34: a folder that is no repository, and a session without a folder, refuse the call in a sentence, and no child is made', async () => {
    const folder = empty()
    for (const place of [{ folder }, {}]) {
      const { harness } = stage(folder, { root: [spawn('dig'), 'Well.'] })
      const session = await harness.open(place)
      const { calls } = await session.run('Go.')
      expect(calls).toMatchObject([
        { status: 'denied', content: expect.stringContaining('isolation "none"') as unknown },
      ])
      expect((await session.status({ include: ['children'] })).children).toEqual([])
    }
  })

  it('B-TREE-35: two that change one file: the later report names the file and both', async () => {
    const folder = repository()
    const first = gate()
    const roles = {
      root: [spawn('one'), spawn('two'), 'Started.', 'Read.', 'Read.', 'Read.'],
      one: [write('a.txt', 'one\n'), 'Done.'],
      two: [async () => (await first.opened, write('a.txt', 'two\n')), 'Done.'],
    }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await until(async () => expect(await reportsTo(store, session.id)).toHaveLength(1))
    first.open()
    await until(async () => expect(await reportsTo(store, session.id)).toHaveLength(2))
    const [one, two] = (await session.status({ include: ['children'] })).children.map(({ sessionId }) => sessionId)
    const [, later = ''] = await reportsTo(store, session.id)
    expect(later).toContain(`Overlap: a.txt was changed by ${two} and by ${one}.`)
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('a\n')
    const kept = (await listWorktrees(folder)).map(({ path }) => readFileSync(join(path, 'a.txt'), 'utf8'))
    expect(kept.sort()).toEqual(['one\n', 'two\n'])
  })

  it('B-TREE-52: the report of a child names the worktrees with changes that its own children left', async () => {
    const folder = repository()
    const below = use('spawn_subagent', { prompt: 'below', blocking: true, isolation: 'worktree' })
    const roles = {
      root: [spawn('dig'), 'Started.', 'Read.'],
      dig: [below, 'Done.'],
      below: [write('c.txt'), 'Wrote.'],
    }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await read(store, session.id)
    const [outer] = await listWorktrees(folder)
    const [tree] = await listWorktrees(outer?.folder ?? '')
    const [report = ''] = await reportsTo(store, session.id)
    expect(report).toContain(
      `Not merged yet: ${tree?.branch} in ${tree?.path}, with changes in c.txt.\n</subagent_report>`,
    )
  })

  it('B-TREE-51, B-VERB-43: a session that a host removes takes its clean worktrees along, and says which others stay', async () => {
    const folder = repository()
    const roles = { root: [spawn('dig'), 'Started.', 'Read.'], dig: [write('b.txt'), 'Done.'] }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await read(store, session.id)
    const clean = await makeWorktree({ folder, id: 'clean', parent: session.id })
    const other = await makeWorktree({ folder, id: 'other', parent: 'another' })
    const removed = await harness.remove(session.id)
    expect([clean, other].map(({ path }) => existsSync(path))).toEqual([false, true])
    const left = (await listWorktrees(folder)).filter(({ parent }) => parent === session.id)
    expect(left).toHaveLength(1)
    expect(removed.flatMap(({ worktrees = [] }) => worktrees)).toEqual(
      left.map(({ path, branch }) => ({ path, branch })),
    )
  })

  it('B-TREE-36: the end of a run removes what is clean and not in use; a child that goes on gets its worktree again', async () => {
    const folder = repository()
    const [first, then] = [gate(), gate()]
    const roles = {
      root: [spawn('dig', { task_key: 'k' }), 'Started.', 'Read.', spawn('more', { task_key: 'k' }), 'Again.', 'Read.'],
      dig: [
        async () => (await first.opened, 'Nothing to do.'),
        write('b.txt'),
        async () => (await then.opened, 'Done.'),
      ],
    }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    first.open()
    await runs(store, session.id, 2)
    expect(await listWorktrees(folder)).toEqual([])
    const again = await session.run('Go on.')
    expect(again.calls[0]?.content).toContain('reused_idle')
    then.open()
    await runs(store, session.id, 4)
    const [tree] = await listWorktrees(folder)
    expect(existsSync(join(tree?.path ?? '', 'b.txt'))).toBe(true)
  })

  it('B-END-5: a session that closes removes the worktrees of its children that are clean by then', async () => {
    const folder = repository()
    const roles = { root: [spawn('dig'), 'Started.', 'Read.'], dig: [write('b.txt'), 'Done.'] }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await read(store, session.id)
    const [tree] = await listWorktrees(folder)
    rmSync(join(tree?.path ?? '', 'b.txt'))
    await session.close()
    await until(async () => expect((await eventsOf(store, session.id)).at(-1)?.type).toBe('session.closed'))
    expect(await listWorktrees(folder)).toEqual([])
  })

  it('B-TREE-37: a stop of the parent stops the child, and a worktree with changes stays', async () => {
    const folder = repository()
    const held = gate()
    const roles = {
      root: [spawn('dig'), 'Started.', 'Read.'],
      dig: [write('b.txt'), async () => (await held.opened, 'Done.')],
    }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await until(async () => {
      const [tree] = await listWorktrees(folder)
      expect(existsSync(join(tree?.path ?? '', 'b.txt'))).toBe(true)
    })
    await session.interrupt()
    held.open()
    await until(async () =>
      expect((await session.status({ include: ['children'] })).children).toMatchObject([{ status: 'idle' }]),
    )
    await runs(store, session.id, 1)
    const [tree] = await listWorktrees(folder)
    expect(readFileSync(join(tree?.path ?? '', 'b.txt'), 'utf8')).toBe('new\n')
  })
})

describe('children with paths of their own', () => {
  const many = (...tasks: readonly Record<string, unknown>[]) => use('spawn_parallel_agents', { tasks } as never)

  it('B-TREE-38: several that write need paths of their own, which are checked before any starts', async () => {
    const folder = empty()
    const roles = {
      root: [
        many({ prompt: 'x' }, { prompt: 'one', ownership: ['src'] }, { prompt: 'y', ownership: ['../x'] }),
        'Started.',
        'Read.',
      ],
      one: ['Done.'],
    }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    const { calls } = await session.run('Go.')
    const content = calls[0]?.content
    expect(JSON.parse(typeof content === 'string' ? content : '')).toMatchObject([
      { status: 'failed', error: expect.stringContaining('ownership') as unknown },
      { decision: 'spawned_new' },
      { status: 'failed', error: expect.stringContaining('does not lead upwards') as unknown },
    ])
    await read(store, session.id)
    expect((await session.status({ include: ['children'] })).children).toHaveLength(1)
  })

  it('B-TREE-39: each writes only its own paths, has no tool that runs programs, and neither has what it starts', async () => {
    const folder = empty()
    const names: string[] = []
    const below = use('spawn_subagent', { prompt: 'below', blocking: true })
    const roles = {
      root: [
        many({ prompt: 'one', ownership: ['one'] }, { prompt: 'two', ownership: ['two'] }),
        'Started.',
        'Read.',
        'Read.',
      ],
      one: [write('one/a.txt'), write('two/a.txt'), 'Done.'],
      two: [(request: Request) => (names.push(...request.tools.map(({ name }) => name)), below), 'Done.'],
      below: [write('two/b.txt'), write('three.txt'), 'Done.'],
    }
    const tools = [...fileTools({ root: folder }), bashTool({ workspace: folder })]
    const { harness, store } = stage(folder, roles, { tools })
    const session = await harness.open({ folder })
    await session.run('Go.')
    await until(async () => expect(await reportsTo(store, session.id)).toHaveLength(2))
    expect(existsSync(join(folder, 'one', 'a.txt'))).toBe(true)
    expect(existsSync(join(folder, 'two', 'a.txt'))).toBe(false)
    expect(existsSync(join(folder, 'two', 'b.txt'))).toBe(true)
    expect(existsSync(join(folder, 'three.txt'))).toBe(false)
    expect(names).toContain('write')
    expect(names).not.toContain('bash')
  })
})

describe('a toolkit', () => {
  it('B-TREE-40: gives the child the tools of one server that fit, and one that is not there is refused with those that are', async () => {
    const names: string[][] = []
    const of = (server: string, name: string) => ({ ...tool(`${server}_${name}`), mcp: { server, tool: name } })
    const parts = ['request', 'issue', 'label', 'branch']
    const tools = [
      ...parts.flatMap((part) => [of('github', `create_pull_${part}`), of('github', `delete_pull_${part}`)]),
      of('github', 'list_gists'),
      of('mail', 'send'),
    ]
    const ask = { prompt: 'open a PR', isolation: 'none' }
    const roles = {
      root: [spawn('', { ...ask, toolkit: 'gitlab' }), spawn('', { ...ask, toolkit: 'github' }), 'Started.', 'Read.'],
      'open a PR': [(request: Request) => (names.push(request.tools.map(({ name }) => name)), 'Done.')],
    }
    const { harness, store } = family(roles, { detached: true, tools })
    const session = await harness.open()
    const { calls } = await session.run('Go.')
    expect(calls[0]?.content).toContain('There is no toolkit "gitlab"; "subagent" has: github, mail.')
    await read(store, session.id)
    const fitting = parts.flatMap((part) => [`github_create_pull_${part}`, `github_delete_pull_${part}`])
    expect(names[0]?.toSorted()).toEqual(fitting.toSorted())
  })
})

describe('merge and discard', () => {
  it('B-TREE-41: both are asked about; changes are lost only with force, and a worktree in use is left alone', async () => {
    const folder = repository()
    const held = gate()
    const roles = {
      root: [spawn('dig'), 'Started.', 'Read.'],
      dig: [write('b.txt'), async () => (await held.opened, 'Done.')],
    }
    const { harness, store } = stage(folder, roles)
    const session = await harness.open({ folder })
    await session.run('Go.')
    await until(async () => expect(existsSync(join((await listWorktrees(folder))[0]?.path ?? '', 'b.txt'))).toBe(true))
    const [tree] = await listWorktrees(folder)
    const id = tree?.branch ?? ''
    const [merge, discard] = worktreeTools({ root: folder, store })
    expect([merge?.approval({ id }), discard?.approval({ id })]).toEqual(['ask', 'ask'])
    const call = (one: typeof merge, args: object) => Promise.resolve(one?.execute(args, {} as never))
    await expect(call(merge, { id })).rejects.toMatchObject({ metadata: { error_type: 'WorktreeInUse' } })
    held.open()
    await read(store, session.id)
    await expect(call(discard, { id })).rejects.toMatchObject({ metadata: { error_type: 'WorktreeDirty' } })
    expect(await call(merge, { id })).toContain('b.txt')
    expect(existsSync(join(folder, 'b.txt'))).toBe(true)
    expect(await listWorktrees(folder)).toEqual([])
  })
})
