// Worktrees of children, with real git in folders of their own.
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import {
  changesOf,
  discardWorktree,
  makeWorktree,
  mergeWorktree,
  overlapsOf,
  sweepWorktrees,
  worktreeName,
  listWorktrees,
} from '../../src/tools/worktrees/worktree.ts'

const folders: string[] = []
const { PATH } = process.env
afterEach(() => {
  process.env['PATH'] = PATH
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function empty(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-tree-')))
  folders.push(folder)
  return folder
}

function git(folder: string, ...args: readonly string[]): string {
  const settings = ['user.name=a', 'user.email=a@b', 'init.defaultBranch=main', 'protocol.file.allow=always']
  return execFileSync('git', [...settings.flatMap((one) => ['-c', one]), ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

function repository(): string {
  const folder = empty()
  git(folder, 'init', '-q')
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\nthree\n')
  writeFileSync(join(folder, 'b.txt'), 'b\n')
  git(folder, 'add', '.')
  git(folder, 'commit', '-qm', 'first')
  return folder
}

const PARENT = 'p-1'
const make = (folder: string, id: string, base: 'head' | 'fresh' = 'head') =>
  makeWorktree({ folder, id, parent: PARENT, base })
const codeOf = (code: string) => ({ metadata: { error_type: code } })

describe('a worktree', () => {
  it('B-TREE-3: lies in .terret/worktrees with a branch of its own, holds the commit of its parent and leaves the parent clean', async () => {
    const folder = repository()
    writeFileSync(join(folder, 'open.txt'), 'not committed')
    const made = await make(folder, 'p-1~4.0')
    expect(made.path).toBe(join(folder, '.terret', 'worktrees', worktreeName('p-1~4.0')))
    expect(made.branch).toMatch(/^terret\/p-1-4-0-[0-9a-f]{10}$/)
    expect(readdirSync(made.folder).sort()).toEqual(['.git', 'a.txt', 'b.txt'])
    expect(git(folder, 'status', '--porcelain')).toBe('?? open.txt\n')
    expect(await changesOf(folder, made)).toEqual({ files: [], nested: [] })
    expect(git(folder, 'rev-parse', made.branch).trim()).toBe(made.base)
  })

  it('B-TREE-3: ids that differ only in case or in odd characters have different folders and branches', () => {
    const ids = ['a~1.0', 'A~1.0', 'a-1-0', '../x', '..', '', 'é', '🙂', 'x'.repeat(500), 'y.lock', '-d', 'a..b', '@{']
    const names = ids.map(worktreeName)
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length)
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,51}$/)
  })

  it('B-TREE-4: is found again by its id with all that is in it, in whatever state a kill left it', async () => {
    const folder = repository()
    const made = await make(folder, 'c')
    writeFileSync(join(made.folder, 'new.txt'), 'work')
    expect(await make(folder, 'c')).toEqual(made)
    expect(readFileSync(join(made.folder, 'new.txt'), 'utf8')).toBe('work')
    // Killed while it was made: the record says that it is not ready, and what is there is half of it.
    const record = `${made.path}.json`
    const text = readFileSync(record, 'utf8')
    writeFileSync(record, text.replace('"ready":true', '"ready":false'))
    rmSync(join(made.path, 'a.txt'))
    expect(await make(folder, 'c')).toEqual(made)
    expect(readdirSync(made.folder).sort()).toEqual(['.git', 'a.txt', 'b.txt'])
    // Killed right after the record: nothing else is there.
    git(folder, 'worktree', 'remove', '--force', made.path)
    git(folder, 'branch', '-D', made.branch)
    writeFileSync(record, text.replace('"ready":true', '"ready":false'))
    expect(await make(folder, 'c')).toEqual(made)
    // Killed after the branch, while the parent went on to another commit.
    git(folder, 'worktree', 'remove', '--force', made.path)
    writeFileSync(record, text.replace('"ready":true', '"ready":false'))
    git(folder, 'commit', '-q', '--allow-empty', '-m', 'later')
    expect(await make(folder, 'c')).toEqual(made)
  })

  it('B-TREE-5: names the files that siblings have changed too, to both, and merging the second says which and loses nothing', async () => {
    const folder = repository()
    const [one, two, three] = [await make(folder, 'one'), await make(folder, 'two'), await make(folder, 'three')]
    for (const { id, folder: place } of [one, two]) writeFileSync(join(place, 'a.txt'), `${id}\n`)
    writeFileSync(join(three.folder, 'c.txt'), 'c')
    expect(await overlapsOf(folder, one)).toEqual([{ file: 'a.txt', with: ['two'] }])
    expect(await overlapsOf(folder, two)).toEqual([{ file: 'a.txt', with: ['one'] }])
    expect(await overlapsOf(folder, three)).toEqual([])
    expect(await mergeWorktree(folder, 'one')).toMatchObject({ into: 'main', files: ['a.txt'] })
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('one\n')
    await expect(mergeWorktree(folder, 'two')).rejects.toMatchObject({
      metadata: { error_type: 'WorktreeConflict', files: ['a.txt'] },
    })
    expect(git(folder, 'status', '--porcelain')).toBe('')
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('one\n')
    expect(readFileSync(join(two.folder, 'a.txt'), 'utf8')).toBe('two\n')
    expect((await listWorktrees(folder)).map(({ id }) => id).sort()).toEqual(['three', 'two'])
  })

  it('B-TREE-6: with changes is not removed without force, and the end of a parent removes only its own clean ones', async () => {
    const folder = repository()
    const [clean, dirty, told] = [await make(folder, 'clean'), await make(folder, 'dirty'), await make(folder, 'told')]
    const strange = await makeWorktree({ folder, id: 'strange', parent: 'p-2' })
    writeFileSync(join(dirty.folder, 'new.txt'), 'work')
    writeFileSync(join(told.folder, 'b.txt'), 'committed')
    git(told.folder, 'commit', '-qam', 'by hand')
    await expect(discardWorktree(folder, 'dirty')).rejects.toMatchObject(codeOf('WorktreeDirty'))
    await expect(discardWorktree(folder, 'told')).rejects.toMatchObject(codeOf('WorktreeDirty'))
    expect((await sweepWorktrees(folder, PARENT)).map(({ id }) => id).sort()).toEqual(['dirty', 'told'])
    expect([clean, dirty, told, strange].map(({ path }) => existsSync(path))).toEqual([false, true, true, true])
    await discardWorktree(folder, 'dirty', true)
    expect(existsSync(dirty.path)).toBe(false)
    expect(git(folder, 'branch', '--list', 'terret/*')).not.toContain('dirty')
    await expect(discardWorktree(folder, 'dirty')).rejects.toMatchObject(codeOf('WorktreeMissing'))
  })

  it('B-TREE-7: is merged with what was not committed in it, over other open changes of the parent, and a merge that was killed is finished', async () => {
    const folder = repository()
    const made = await make(folder, 'c')
    writeFileSync(join(made.folder, 'new.txt'), 'work')
    rmSync(join(made.folder, 'b.txt'))
    writeFileSync(join(folder, 'a.txt'), 'open change of the parent\n')
    // As after a kill between the merge and what follows it.
    git(made.folder, 'add', '-A')
    git(made.folder, 'commit', '-qm', 'work')
    git(folder, 'merge', '-q', '--no-ff', '-m', 'merged', made.branch)
    expect(await mergeWorktree(folder, 'c')).toMatchObject({ files: ['b.txt', 'new.txt'] })
    expect(git(folder, 'status', '--porcelain')).toBe(' M a.txt\n')
    expect(readFileSync(join(folder, 'new.txt'), 'utf8')).toBe('work')
    expect(existsSync(join(folder, 'b.txt'))).toBe(false)
    expect(await listWorktrees(folder)).toEqual([])
    const next = await make(folder, 'd')
    writeFileSync(join(next.folder, 'a.txt'), 'of the child\n')
    await expect(mergeWorktree(folder, 'd')).rejects.toMatchObject(codeOf('GitFailed'))
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('open change of the parent\n')
  })

  it('B-TREE-8: in a subfolder of a repository the child works in the same subfolder', async () => {
    const folder = repository()
    mkdirSync(join(folder, 'deep', 'er'), { recursive: true })
    await expect(make(join(folder, 'deep'), 'c')).rejects.toMatchObject(codeOf('WorktreeFolder'))
    writeFileSync(join(folder, 'deep', 'd.txt'), 'd')
    git(folder, 'add', '.')
    git(folder, 'commit', '-qm', 'deep')
    const made = await make(join(folder, 'deep'), 'c')
    expect(made.folder).toBe(join(made.path, 'deep'))
    expect(readdirSync(made.folder)).toEqual(['d.txt'])
  })

  it('B-TREE-9: from a fresh base begins with the default branch of origin as it was fetched', async () => {
    const upstream = repository()
    const folder = join(empty(), 'clone')
    git(upstream, 'clone', '-q', upstream, folder)
    git(folder, 'commit', '-q', '--allow-empty', '-m', 'mine')
    const made = await make(folder, 'c', 'fresh')
    expect(made.base).toBe(git(upstream, 'rev-parse', 'HEAD').trim())
    expect((await make(folder, 'd')).base).toBe(git(folder, 'rev-parse', 'HEAD').trim())
    await expect(make(upstream, 'e', 'fresh')).rejects.toMatchObject(codeOf('WorktreeNoRemote'))
  })
})

describe('what is no place for a worktree', () => {
  it('B-TREE-10: is refused in one sentence with its own code, and nothing is made', async () => {
    const plain = empty()
    await expect(make(plain, 'c')).rejects.toMatchObject(codeOf('WorktreeNoRepository'))
    expect(readdirSync(plain)).toEqual([])
    await expect(make(join(plain, 'gone'), 'c')).rejects.toMatchObject(codeOf('WorktreeNoRepository'))
    git(plain, 'init', '-q')
    await expect(make(plain, 'c')).rejects.toMatchObject(codeOf('WorktreeNoCommit'))
    const bare = empty()
    git(bare, 'init', '-q', '--bare')
    await expect(make(bare, 'c')).rejects.toMatchObject(codeOf('WorktreeNoRepository'))

    const folder = repository()
    git(folder, 'branch', `terret/${worktreeName('c')}`)
    await expect(make(folder, 'c')).rejects.toMatchObject(codeOf('WorktreeBranch'))
    expect(existsSync(join(folder, '.terret'))).toBe(false)
    git(folder, 'branch', '-D', `terret/${worktreeName('c')}`)
    git(folder, 'branch', 'terret')
    await expect(make(folder, 'c')).rejects.toMatchObject(codeOf('WorktreeBranch'))

    const modules = repository()
    git(modules, 'submodule', 'add', '-q', folder, 'sub')
    git(modules, 'commit', '-qm', 'sub')
    await expect(make(modules, 'c')).rejects.toMatchObject(codeOf('WorktreeSubmodules'))
  })

  it('B-TREE-10: a link or a file at .terret/worktrees, or a file where the worktree would lie, is left as it is', async () => {
    const elsewhere = empty()
    for (const place of ['.terret', '.terret/worktrees']) {
      const folder = repository()
      if (place !== '.terret') mkdirSync(join(folder, '.terret'))
      symlinkSync(elsewhere, join(folder, place))
      await expect(make(folder, 'c')).rejects.toMatchObject(codeOf('WorktreePlace'))
      expect(readdirSync(elsewhere)).toEqual([])
    }
    const folder = repository()
    mkdirSync(join(folder, '.terret', 'worktrees', worktreeName('c')), { recursive: true })
    await expect(make(folder, 'c')).rejects.toMatchObject(codeOf('WorktreePlace'))
    writeFileSync(join(folder, '.terret', 'worktrees', `${worktreeName('d')}.json`), '{"id":"d"}')
    await expect(make(folder, 'd')).rejects.toMatchObject(codeOf('WorktreeRecord'))
  })

  it('B-TREE-10: without git, it is said that git is missing', async () => {
    const folder = repository()
    process.env['PATH'] = empty()
    await expect(make(folder, 'c')).rejects.toMatchObject(codeOf('GitMissing'))
  })

  it('B-TREE-10: a detached HEAD is a base, and nothing is merged into it', async () => {
    const folder = repository()
    git(folder, 'checkout', '-q', '--detach')
    const made = await make(folder, 'c')
    writeFileSync(join(made.folder, 'new.txt'), 'work')
    await expect(mergeWorktree(folder, 'c')).rejects.toMatchObject(codeOf('WorktreeDetached'))
    expect(readFileSync(join(made.folder, 'new.txt'), 'utf8')).toBe('work')
  })

  it('B-TREE-10: a repository that a child made in its worktree is not merged, since git would not keep it', async () => {
    const folder = repository()
    const made = await make(folder, 'c')
    mkdirSync(join(made.folder, 'inner'))
    git(join(made.folder, 'inner'), 'init', '-q')
    writeFileSync(join(made.folder, 'inner', 'x.txt'), 'x')
    await expect(mergeWorktree(folder, 'c')).rejects.toMatchObject(codeOf('WorktreeNested'))
    expect(existsSync(join(made.folder, 'inner', 'x.txt'))).toBe(true)
  })

  it('B-TREE-10: a disk that is full while git writes leaves no worktree, no branch and no record', async () => {
    const folder = repository()
    const bin = empty()
    const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
    const fails = `case "$*" in *"worktree add"*) echo "fatal: could not write: No space left on device" >&2; exit 128;; esac`
    writeFileSync(join(bin, 'git'), `#!/bin/sh\n${fails}\nexec ${real} "$@"\n`, { mode: 0o755 })
    process.env['PATH'] = `${bin}:${PATH}`
    await expect(make(folder, 'c')).rejects.toMatchObject(codeOf('DiskFull'))
    expect(readdirSync(join(folder, '.terret', 'worktrees'))).toEqual(['.gitignore'])
    process.env['PATH'] = PATH
    expect(git(folder, 'branch', '--list', 'terret/*')).toBe('')
  })
})

describe('the programs that a repository names', () => {
  it('B-TREE-11: hooks, filters, merge programs and file monitors of a repository are not run', async () => {
    const folder = repository()
    const outside = empty()
    const trap = join(folder, 'trap.sh')
    writeFileSync(trap, `#!/bin/sh\necho ran >> ${outside}/ran\ncat\n`, { mode: 0o755 })
    writeFileSync(join(folder, '.gitattributes'), '*.txt filter=evil merge=evil diff=evil\n')
    git(folder, 'add', '.')
    git(folder, 'commit', '-qm', 'attributes')
    for (const hook of ['post-checkout', 'pre-commit', 'commit-msg', 'post-commit', 'pre-merge-commit', 'post-merge'])
      writeFileSync(join(folder, '.git', 'hooks', hook), `#!/bin/sh\n${trap} </dev/null\n`, { mode: 0o755 })
    for (const [name, value] of [
      ['filter.evil.smudge', trap],
      ['filter.evil.clean', trap],
      ['filter.evil.process', trap],
      ['filter.evil.required', 'true'],
      ['merge.evil.driver', trap],
      ['diff.evil.textconv', trap],
      ['diff.external', trap],
      ['core.fsmonitor', trap],
      ['core.sshCommand', trap],
      ['gpg.program', trap],
      ['commit.gpgSign', 'true'],
    ] as const)
      git(folder, 'config', name, value)
    const [one, two] = [await make(folder, 'one'), await make(folder, 'two')]
    for (const { id, folder: place } of [one, two]) writeFileSync(join(place, 'a.txt'), `by ${id}\ntwo\nthree\n`)
    await overlapsOf(folder, one)
    await mergeWorktree(folder, 'one')
    await expect(mergeWorktree(folder, 'two')).rejects.toMatchObject(codeOf('WorktreeConflict'))
    await discardWorktree(folder, 'two', true)
    expect(existsSync(join(outside, 'ran'))).toBe(false)
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('by one\ntwo\nthree\n')
  })
})
