// Which settings git obeys when the harness uses it, and which git that is. Real git in folders of their own; the traps that
// repositories can lay are rows 80 and 81 of the attacks.
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
import { afterEach, expect, it } from 'vitest'
import { changesOf, discardWorktree, makeWorktree, mergeWorktree } from '../../src/tools/worktrees/worktree.ts'

const folders: string[] = []
const { PATH, HOME } = process.env
afterEach(() => {
  Object.assign(process.env, { PATH, HOME })
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function empty(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-gitset-')))
  folders.push(folder)
  return folder
}

function git(folder: string, ...args: readonly string[]): string {
  return execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
}

function repository(...init: readonly string[]): string {
  const folder = empty()
  git(folder, 'init', '-q', ...init)
  writeFileSync(join(folder, 'a.txt'), 'a\n')
  git(folder, 'add', '.')
  git(folder, 'commit', '-qm', 'first')
  return folder
}

const make = (folder: string, id = 'c') => makeWorktree({ folder, id, parent: 'p' })
const codeOf = (code: string) => ({ metadata: { error_type: code } })

it('B-GITSET-1: the name of the user and how files are written are taken from the settings of the repository and of its worktree', async () => {
  const folder = repository()
  git(folder, 'config', 'user.name', 'Ada = "L" B')
  git(folder, 'config', 'user.email', 'ada@example.com')
  git(folder, 'config', 'extensions.worktreeConfig', 'true')
  git(folder, 'config', 'core.repositoryFormatVersion', '1')
  const made = await make(folder)
  git(made.path, 'config', '--worktree', 'core.autocrlf', 'true')
  writeFileSync(join(made.folder, 'b.txt'), 'b\r\n')
  await mergeWorktree(folder, 'c')
  expect(git(folder, 'log', '-2', '--format=%an <%ae> %s')).toContain('Ada = "L" B <ada@example.com> Work of c')
  expect(git(folder, 'cat-file', '-s', 'HEAD:b.txt')).toBe('2')
  expect(readFileSync(join(folder, '.git', 'config'), 'utf8')).toContain('worktreeConfig')
})

it('B-GITSET-1: a repository with sha256, with packed refs and with two worktrees works, and its branches are removed from the packed refs', async () => {
  const folder = repository('--object-format=sha256')
  const [made, other] = [await make(folder), await make(folder, 'd')]
  git(folder, 'pack-refs', '--all')
  writeFileSync(join(made.folder, 'b.txt'), 'b\n')
  expect((await changesOf(folder, made)).files).toEqual(['b.txt'])
  await mergeWorktree(folder, 'c')
  await discardWorktree(folder, 'd')
  expect([readFileSync(join(folder, 'b.txt'), 'utf8'), existsSync(other.path)]).toEqual(['b\n', false])
  expect(git(folder, 'for-each-ref', 'refs/heads/terret')).toBe('')
  expect(readFileSync(join(folder, '.git', 'packed-refs'), 'utf8')).not.toContain('terret/')
  expect(git(folder, 'worktree', 'list').split('\n')).toHaveLength(1)
})

it('B-GITSET-1: the worktree is one of the repository for every git, and nothing stays in the folder for temporary files', async () => {
  const folder = repository()
  const left = () => readdirSync(tmpdir()).filter((name) => name.startsWith('terret-git-') && name.length === 17)
  const before = left()
  const made = await make(folder)
  expect(git(made.path, 'rev-parse', '--git-common-dir')).toBe(join(folder, '.git'))
  expect(git(made.path, 'status', '--porcelain')).toBe('')
  expect(left().filter((name) => !before.includes(name))).toEqual([])
})

it('B-GITSET-2: filters that the user has set for all repositories still run, and hooks do not', async () => {
  const [folder, home] = [repository(), empty()]
  mkdirSync(join(home, 'hooks'))
  writeFileSync(join(home, 'hooks', 'post-checkout'), `#!/bin/sh\ntouch ${home}/ran\n`, { mode: 0o755 })
  writeFileSync(
    join(home, '.gitconfig'),
    `[core]\n\thooksPath = ${home}/hooks\n[filter "mine"]\n\tsmudge = sed s/a/SMUDGED/\n\tclean = sed s/SMUDGED/a/\n`,
  )
  writeFileSync(join(folder, '.gitattributes'), '*.txt filter=mine\n')
  git(folder, 'add', '.')
  git(folder, 'commit', '-qm', 'attributes')
  process.env['HOME'] = home
  const made = await make(folder)
  expect(readFileSync(join(made.folder, 'a.txt'), 'utf8')).toBe('SMUDGED\n')
  expect((await changesOf(folder, made)).files).toEqual([])
  expect(existsSync(join(home, 'ran'))).toBe(false)
})

it('B-GITSET-3: a repository that keeps its files elsewhere, or needs what is not known here, is refused with its code', async () => {
  const folder = repository()
  const sub = join(folder, 'sub')
  mkdirSync(sub)
  git(folder, 'config', 'core.worktree', '../..')
  await expect(make(folder)).rejects.toMatchObject(codeOf('WorktreeNoRepository'))
  git(folder, 'config', '--unset', 'core.worktree')
  git(folder, 'config', 'extensions.compatObjectFormat', 'sha1')
  await expect(make(folder)).rejects.toMatchObject(codeOf('WorktreeExtension'))
  git(folder, 'config', '--unset', 'extensions.compatObjectFormat')
  await expect(make(folder)).resolves.toMatchObject({ id: 'c' })
})

it('B-GITSET-6: a .git that leads to a repository which does not know the folder is refused, and a worktree of a user is not', async () => {
  const [other, linked, named, common, own] = [repository(), empty(), empty(), repository(), repository()]
  symlinkSync(join(other, '.git'), join(linked, '.git'))
  writeFileSync(join(named, '.git'), `gitdir: ${join(other, '.git')}\n`)
  writeFileSync(join(common, '.git', 'commondir'), `${join(other, '.git')}\n`)
  for (const folder of [linked, named, common])
    await expect(make(folder)).rejects.toMatchObject(codeOf('WorktreeNoRepository'))
  expect(git(other, 'worktree', 'list').trim().split('\n')).toHaveLength(1)
  const mine = join(empty(), 'mine')
  git(own, 'worktree', 'add', '-q', mine)
  await expect(make(mine)).resolves.toMatchObject({ id: 'c' })
})

it('B-GITSET-4: a git that only a folder of the repository offers is not started', async () => {
  const folder = repository()
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'git'), `#!/bin/sh\ntouch ${folder}/ran\n`, { mode: 0o755 })
  process.env['PATH'] = ['.', '', 'bin', bin].join(':')
  const here = process.cwd()
  process.chdir(folder)
  try {
    await expect(make(folder)).rejects.toMatchObject(codeOf('GitMissing'))
  } finally {
    process.chdir(here)
  }
  expect(existsSync(join(folder, 'ran'))).toBe(false)
})

it('B-GITSET-5: a worktree that was made again and killed before its files were there gets them by the next', async () => {
  const folder = repository()
  const made = await make(folder)
  writeFileSync(join(made.folder, 'b.txt'), 'b\n')
  git(made.path, 'add', '.')
  git(made.path, 'commit', '-qm', 'work')
  git(folder, 'worktree', 'remove', '--force', made.path)
  git(folder, 'worktree', 'add', '-q', '--no-checkout', '--lock', made.path, made.branch)
  const again = await make(folder)
  expect(readFileSync(join(again.folder, 'b.txt'), 'utf8')).toBe('b\n')
  expect((await changesOf(folder, again)).files).toEqual(['b.txt'])
})
