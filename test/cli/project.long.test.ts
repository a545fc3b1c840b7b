// The project a command is started in: its root, its instructions, and what a model is told about it. On real git.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'protocol.file.allow=always', ...args], {
    cwd: stage.folder,
    encoding: 'utf8',
    stdio: 'pipe',
  })

function repository(): string {
  git('init', '-q', '-b', 'main')
  stage.write('work/a.txt', 'a')
  git('add', '.')
  git('commit', '-qm', 'first')
  return below('packages/x')
}

function below(path: string): string {
  const folder = join(stage.folder, path)
  mkdirSync(folder, { recursive: true })
  return folder
}

const runIn = (cwd: string, ...args: readonly string[]) =>
  stage.terretIn({ cwd }, 'run', '--quiet', '--model', 'offline:any', ...args, 'Say hello.')
/** The folder of the session that was started last, as `list` has it from there. */
async function folderSeen(cwd: string): Promise<unknown> {
  expect(await runIn(cwd)).toMatchObject({ code: 0 })
  const { out } = await stage.terretIn({ cwd }, 'list', '--json', '--limit', '1')
  return (JSON.parse(out) as { folder: unknown }).folder
}

type Body = {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools: unknown
}
const bodies = (): readonly Body[] => (provider.chaos?.requests ?? []).map(({ body }) => body as Body)
const system = (body: Body | undefined): string =>
  JSON.stringify(body?.messages.filter(({ role }) => role === 'system' || role === 'developer'))
const notes = (body: Body | undefined): readonly string[] =>
  [...JSON.stringify(body?.messages).matchAll(/<hook_context>\\n(.*?)\\n<\/hook_context>/g)].map(
    ([, text = '']) => text,
  )

describe('the workspace', () => {
  it('B-CLI-404: is the root of the repository, so every subfolder has the same sessions', async () => {
    const sub = repository()
    expect(await folderSeen(sub)).toBe(stage.folder)
    const ids = async (cwd: string): Promise<readonly string[]> =>
      (await stage.terretIn({ cwd }, 'list')).out.split('\n').map((line) => line.slice(0, 8))
    expect(await ids(stage.folder)).toEqual(await ids(sub))
    expect((await stage.terretIn({ cwd: dirname(sub) }, 'inspect', 'latest')).code).toBe(0)
    expect((await stage.terretIn({ cwd: sub }, 'trust')).out).toContain(`${stage.folder} is trusted.`)
  })

  it('B-CLI-404: a worktree, a submodule and a folder with .terret are workspaces of their own', async () => {
    repository()
    git('worktree', 'add', '-q', '../tree', '-b', 'other')
    const tree = join(dirname(stage.folder), 'tree')
    mkdirSync(join(tree, 'deep'))
    expect(await folderSeen(join(tree, 'deep'))).toBe(tree)
    git('submodule', 'add', '-q', tree, 'module')
    expect(await folderSeen(below('module/deep'))).toBe(join(stage.folder, 'module'))
    below('packages/own/.terret')
    expect(await folderSeen(below('packages/own/deep'))).toBe(join(stage.folder, 'packages/own'))
  })

  it('B-CLI-404: no git, an empty .git, a link to one, and a home folder that is a repository leave the folder itself', async () => {
    const sub = below('packages/x')
    expect(await folderSeen(sub)).toBe(sub)
    below('.git')
    expect(await folderSeen(sub)).toBe(sub)
    execFileSync('git', ['init', '-q', dirname(stage.folder)])
    expect(existsSync(join(dirname(stage.folder), '.git', 'HEAD'))).toBe(true)
    symlinkSync(join(dirname(stage.folder), '.git'), join(sub, '.git'))
    expect(await folderSeen(below('packages/x/deep'))).toBe(join(sub, 'deep'))
  })

  it('B-CLI-404: files that the command line names are those of the current folder', async () => {
    const sub = repository()
    stage.write('work/packages/x/docs/tea.txt', 'Tea\n\nTea is craved by the sick.\n')
    const args = ['start', 'Tea', '--documents', 'docs', '--model', 'offline:any', '--quiet'] as const
    expect((await stage.terretIn({ cwd: sub }, ...args)).code).toBe(0)
    expect((await stage.terretIn({ cwd: sub }, 'approve', '--resume')).code).toBe(0)
    expect(existsSync(join(sub, 'reports', 'tea.md'))).toBe(true)
  })
})

describe('instructions of a project', () => {
  it('B-CLI-405: AGENTS.md from the root down to the folder, CLAUDE.md where there is none, all of a trusted one', async () => {
    const sub = repository()
    stage.write('work/AGENTS.md', 'Root rule.')
    stage.write('work/CLAUDE.md', 'Never read.')
    stage.write('work/packages/CLAUDE.md', 'Package rule.\u200b')
    stage.write('work/packages/x/AGENTS.md', 'Deep rule.')
    stage.write('work/packages/y/AGENTS.md', 'Another one.')
    await scriptedBy(['One.', 'Two.', 'Three.'])
    expect((await stage.terretIn({ cwd: sub }, 'run', 'Hi.')).err).toContain('its AGENTS.md is not read')
    expect(system(bodies()[0])).not.toContain('rule.')
    const { err } = await stage.terretIn({ cwd: sub }, 'run', '--trust', 'Hi.')
    expect(err).toContain('packages/CLAUDE.md has 1 invisible characters')
    expect(system(bodies()[1])).toMatch(
      /workspace \(AGENTS\.md\):\\n\\nRoot rule\..*for packages\/ \(packages\/CLAUDE\.md\):\\n\\nPackage rule\..*for packages\/x\/ \(packages\/x\/AGENTS\.md\):\\n\\nDeep rule\./,
    )
    for (const absent of ['Never read', 'Another one']) expect(system(bodies()[1])).not.toContain(absent)
    await stage.terret('run', 'Hi.')
    expect(system(bodies()[2])).toContain('Root rule.')
    expect(system(bodies()[2])).not.toContain('Package rule.')
  })

  it('B-CLI-190: CLAUDE.md alone is named; B-CLI-405: one that leads out of the workspace is refused', async () => {
    stage.write('work/CLAUDE.md', 'x')
    expect((await stage.terret('run', '--model', 'offline:any', 'Hi.')).err).toContain('its CLAUDE.md is not read')
    repository()
    stage.write('secret', 's3cret')
    symlinkSync(join(stage.folder, '..', 'secret'), join(below('packages/x'), 'AGENTS.md'))
    const { code, err } = await stage.terretIn({ cwd: below('packages/x') }, 'run', '--trust', 'Hi.')
    expect(code).toBe(7)
    expect(err).toContain('leads out of its folder')
    expect(err).not.toContain('s3cret')
  })
})

describe('what a model is told about the project', () => {
  it('B-CLI-406: date, system, subfolder and git in a note, only when they changed, and the prefix stays the same bytes', async () => {
    const sub = repository()
    await scriptedBy(['One.', 'Two.', 'Three.'])
    await stage.terretIn({ cwd: sub }, 'run', 'Hi.')
    expect(notes(bodies()[0])).toEqual([
      expect.stringMatching(
        /^Today is \w+day, \d{4}-\d\d-\d\d \(.+\)\. The system is \w+ \w+\.\\nThe person works in packages\/x\/ of this workspace\.\\nGit: branch main, no changed files\.$/,
      ),
    ])
    stage.write('work/a.txt', 'b')
    stage.write('work/new.txt', 'b')
    git('checkout', '-qb', '<x>')
    await stage.terretIn({ cwd: sub }, 'run', '-c', 'Again.')
    expect(notes(bodies()[1]).at(-1)).toContain('Git: branch ?x?, 1 changed file, 1 untracked file.')
    expect(system(bodies()[1])).toBe(system(bodies()[0]))
    expect(bodies()[1]?.tools).toEqual(bodies()[0]?.tools)
    expect(system(bodies()[1])).not.toContain('Today is')
    git('checkout', '-q', '--detach')
    await stage.terretIn({ cwd: sub }, 'run', '-c', 'Again.')
    expect(notes(bodies()[2]).at(-1)).toContain('Git: no branch is checked out, 1 changed file')
  })

  it('B-CLI-406: without git, and in a repository whose settings name programs, nothing is started', async () => {
    await scriptedBy(['One.', 'Two.'])
    await stage.terretIn({ cwd: stage.folder, env: { PATH: dirname(process.execPath) } }, 'run', 'Hi.')
    expect(notes(bodies()[0])).toEqual([expect.stringMatching(/^Today is [^\\]+\.$/)])
    repository()
    const trap = `touch ${join(stage.folder, 'started')}`
    for (const name of ['core.fsmonitor', 'core.sshCommand', 'filter.x.clean']) git('config', name, trap)
    stage.write('work/.gitattributes', '* filter=x\n')
    await stage.terret('run', 'Hi.')
    expect(notes(bodies()[1])[0]).toContain('Git: branch main')
    expect(existsSync(join(stage.folder, 'started'))).toBe(false)
  })
})
