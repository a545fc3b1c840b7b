// What a command in the sandbox sees of the home folder, with real bubblewrap. The places that must not be seen are row 82 of the
// attacks.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { bashTool, type BashOptions } from '../../src/tools/shell/bash.ts'
import { homeView } from '../../src/tools/shell/home-view.ts'
import { noBubblewrap } from './box.ts'
import { toolContext } from './context.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function room() {
  const root = realpathSync(mkdtempSync('/var/tmp/terret-home-'))
  folders.push(root)
  const home = join(root, 'home')
  const put = (path: string, text: string, mode = 0o644): string => {
    const whole = join(home, path)
    mkdirSync(dirname(whole), { recursive: true })
    writeFileSync(whole, text, { mode })
    return whole
  }
  mkdirSync(join(home, 'project'), { recursive: true })
  return { root, home, put, workspace: join(home, 'project') }
}

async function run(options: BashOptions, command: string): Promise<string> {
  const tool = bashTool(options)
  const { content } = (await tool.execute({ command }, toolContext())) as { content: string }
  const { stdout, stderr } = JSON.parse(content) as { stdout: string; stderr: string }
  return stdout + stderr
}

describe.skipIf(noBubblewrap)('the home folder in the sandbox', () => {
  it('B-HOME-1: holds the workspace, which can be written, and nothing of the user', async () => {
    const { home, put, workspace } = room()
    put('.token', 'secret')
    put('other/file', 'secret')
    const env = { ...process.env, HOME: home }
    expect(await run({ workspace, env }, 'echo a > a; ls -A ~; cat ~/.token ~/other/file; touch ~/x')).toMatch(
      /^project\n.*No such file.*\n.*No such file.*\n.*Read-only/s,
    )
  })

  it('B-HOME-2: has the programs that tools need, also behind links and where a folder of PATH is part of an installation', async () => {
    const { home, put, workspace } = room()
    put('.local/share/pipx/venvs/tool/bin/tool', '#!/bin/sh\necho piped\n', 0o755)
    put('.local/bin/own', '#!/bin/sh\necho own\n', 0o755)
    symlinkSync(join(home, '.local/share/pipx/venvs/tool/bin/tool'), join(home, '.local/bin/tool'))
    put('real-nvm/nvm.sh', 'echo nvm')
    symlinkSync(join(home, 'real-nvm'), join(home, '.nvm'))
    put('node-v24/lib/part', 'lib\n')
    put('node-v24/bin/n24', '#!/bin/sh\ncat "$(dirname "$0")/../lib/part"\n', 0o755)
    const PATH = `${home}/.local/bin:${home}/node-v24/bin:${process.env['PATH']}`
    const env = { ...process.env, HOME: home, PATH }
    expect(await run({ workspace, env }, 'tool; own; n24; . ~/.nvm/nvm.sh')).toBe('piped\nown\nlib\nnvm\n')
  })

  it('B-HOME-3: has the settings of git, and the repository that the workspace is a part of', async () => {
    const { home, put } = room()
    put('.gitconfig', '[user]\n\tname = Ada\n\temail = ada@example.com\n')
    put('repo/a.txt', 'a\n')
    put('repo/pkg/b.txt', 'b\n')
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: join(home, 'repo'), env: { ...process.env, HOME: home } })
    git('init', '-q')
    git('add', '.')
    git('commit', '-qm', 'first')
    const env = { ...process.env, HOME: home }
    const workspace = join(home, 'repo', 'pkg')
    const command =
      'echo c > c.txt; git -c safe.directory="*" status --porcelain; git config user.name; cat ../a.txt; touch ../x'
    expect(await run({ workspace, env }, command)).toMatch(/^\?\? pkg\/c\.txt\nAda\na\n.*Read-only/s)
  })

  it('B-HOME-4: has what the host shows with "readable", and not what it hides with "masked"', async () => {
    const { home, put, workspace } = room()
    put('data/a', 'shown\n')
    put('.nvm/b', 'hidden\n')
    const env = { ...process.env, HOME: home }
    const options = { workspace, env, readable: [join(home, 'data')], masked: [join(home, '.nvm')] }
    expect(await run(options, 'cat ~/data/a; cat ~/.nvm/b')).toMatch(/^shown\n.*No such file/s)
  })
})

it('B-HOME-5: a home folder that is the root of the disk or one of the system hides nothing', () => {
  const homes = (HOME: string) => homeView('/var/tmp', { HOME, PATH: '' }).masked
  for (const home of ['/', '/usr', '/usr/sbin', '/bin', '/nonexistent', '']) expect(homes(home)).not.toContain(home)
})
