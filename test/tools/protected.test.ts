// What commands and file tools cannot change, and what becomes of what a command makes there. Judged by the files.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bashTool } from '../../src/tools/bash.ts'
import { fileTools } from '../../src/tools/files.ts'
import type { Output } from '../../src/tools/output.ts'
import { PROTECTED } from '../../src/tools/protected.ts'
import { Box, noBubblewrap } from './box.ts'
import { toolContext } from './context.ts'

let box: Box
beforeEach(() => {
  box = new Box()
})
afterEach(() => {
  vi.unstubAllEnvs()
  box.close()
})

describe('a confined command (needs bubblewrap)', () => {
  it.skipIf(noBubblewrap)('B-BASH-13: cannot change protected files, nor move the folder they are in', async () => {
    box.write('ws/.git/hooks/pre-commit', 'ours')
    box.write('ws/.git/config', 'ours')
    box.write('ws/.mcp.json', 'ours')
    mkdirSync(join(box.workspace, 'elsewhere'))
    box.write('ws/settings/real.json', 'ours')
    symlinkSync('settings', join(box.workspace, '.vscode'))
    await box.run(
      `echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/post-commit; echo evil > .git/config; rm -rf .mcp.json
       mv .git gone; mv .git/hooks gone; mkdir -p .git/hooks; echo evil > .git/hooks/evil; mv elsewhere/x .mcp.json
       echo evil > .vscode/real.json; echo evil > settings/tasks.json; echo fine > .git/HEAD`,
    )
    expect(readdirSync(join(box.workspace, '.git/hooks'))).toEqual(['pre-commit'])
    for (const path of ['.git/hooks/pre-commit', '.git/config', '.mcp.json', 'settings/real.json']) {
      expect(readFileSync(join(box.workspace, path), 'utf8')).toBe('ours')
    }
    expect(readdirSync(join(box.workspace, 'settings'))).toEqual(['real.json'])
    expect(readFileSync(join(box.workspace, '.git/HEAD'), 'utf8')).toBe('fine\n')
  })

  it.skipIf(noBubblewrap)('B-BASH-13: cannot turn a repository to another place', async () => {
    box.write('ws/.git', 'gitdir: /somewhere')
    const file = await box.run('echo "gitdir: /evil" > .git; mv .git gone; rm -f .git')
    expect([file.success, readFileSync(join(box.workspace, '.git'), 'utf8')]).toEqual([false, 'gitdir: /somewhere'])
  })

  it.skipIf(noBubblewrap)('B-BASH-13: finds closed what the file tools do not write, at any depth', async () => {
    const write = fileTools({ root: box.workspace }).find(({ name }) => name === 'write')
    for (const folder of ['', 'pkg/deep/']) {
      const files = PROTECTED.map((name) => `${folder}${name}/x`)
      for (const file of files) box.write(`ws/${file}`, 'ours')
      await box.run(files.map((file) => `echo evil > "${file}"; rm -rf "${file}"`).join('\n'))
      for (const path of files) {
        await expect(write?.execute({ path, content: 'evil' }, box.context())).rejects.toMatchObject({ kind: 'Denied' })
        expect(readFileSync(join(box.workspace, path), 'utf8')).toBe('ours')
      }
      for (const name of readdirSync(box.workspace)) rmSync(join(box.workspace, name), { recursive: true })
    }
  })

  it.skipIf(noBubblewrap)('B-BASH-26: leaves no trace of what is protected and missing', async () => {
    const quiet = await box.output({ command: 'true' })
    expect(readdirSync(box.workspace)).toEqual([])
    expect(Object.keys(quiet.metadata).filter((name) => name.startsWith('protected'))).toEqual([])
  })

  it.skipIf(noBubblewrap)(
    'B-BASH-26: makes what is protected and missing in vain, unless it was allowed: it is renamed, and that is said',
    async () => {
      const command = 'mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo x > .mcp.json'
      const at = (path: string) => join(box.workspace, path)
      const made = ['.git/hooks', '.mcp.json'].map(at)
      const result = await box.run(command)
      expect(result.protected_changed).toBeUndefined()
      expect(result.protected_set_aside).toEqual(made.map((path) => ({ path, now: `${path}.unapproved` })))
      expect(made.filter(existsSync)).toEqual([])
      expect(readFileSync(at('.git/hooks.unapproved/pre-commit'), 'utf8')).toBe('evil\n')
      const again = await box.run('echo y > .mcp.json')
      expect(again.protected_set_aside).toEqual([{ path: at('.mcp.json'), now: at('.mcp.json.unapproved-2') }])
      const tool = bashTool({ workspace: box.workspace })
      const allowed = (await tool.execute({ command }, toolContext({ approved: true }))) as Output
      expect(allowed.metadata['protected_changed']).toEqual(made)
      expect(made.filter(existsSync)).toEqual(made)
    },
  )

  it.skipIf(noBubblewrap)('B-BASH-26: is looked after also when it is stopped', async () => {
    const stop = new AbortController()
    const done = box.output({ command: 'echo evil > .envrc; sleep 60' }, {}, stop.signal)
    const made = join(box.workspace, '.envrc')
    await vi.waitFor(() => expect(existsSync(made)).toBe(true), 5_000)
    stop.abort()
    await expect(done).rejects.toMatchObject({ kind: 'Interrupted' })
    expect([existsSync(made), existsSync(`${made}.unapproved`)]).toEqual([false, true])
  })

  it.skipIf(noBubblewrap)('B-BASH-26: makes a repository that works, without what git obeys', async () => {
    const made = await box.run('git init -q . && ls .git')
    expect(made.success).toBe(true)
    const used = await box.run(
      'echo a > a; git add a; git -c user.name=a -c user.email=a@b commit -qm a && git log --oneline',
    )
    expect([used.success, used.stdout]).toEqual([true, expect.stringMatching(/ a\n$/)])
    expect(readdirSync(join(box.workspace, '.git'))).toEqual(expect.arrayContaining(['config.unapproved']))
  })

  it.skipIf(noBubblewrap)(
    'B-BASH-26: does not lose what it moves to such a place, nor rename what was there',
    async () => {
      box.write('ws/work/notes.txt', 'work of a day')
      for (let n = 0; n < 1_200; n++) mkdirSync(join(box.workspace, `many/${n}`), { recursive: true })
      box.write('ws/zz/zz/.npmrc', 'ours')
      await box.run('mv work .vscode; rm -r many')
      expect(readFileSync(join(box.workspace, '.vscode.unapproved/notes.txt'), 'utf8')).toBe('work of a day')
      expect(readFileSync(join(box.workspace, 'zz/zz/.npmrc'), 'utf8')).toBe('ours')
    },
  )
})

describe('the file tools', () => {
  const writes = async (root: string, path: string): Promise<boolean> => {
    const write = fileTools({ root }).find(({ name }) => name === 'write')
    try {
      await write?.execute({ path, content: 'evil' }, toolContext())
    } catch (error) {
      expect(error).toMatchObject({ kind: 'Denied' })
    }
    return existsSync(join(root, path))
  }

  it('B-FILES-71: write nothing where the harness keeps its keys and records, wherever that is', async () => {
    vi.stubEnv('HOME', box.home)
    vi.stubEnv('TERRET_HOME', join(box.home, 'chosen'))
    vi.stubEnv('XDG_CONFIG_HOME', join(box.home, 'settings'))
    for (const path of ['chosen/x', 'settings/terret/config.json', '.config/terret/config.json', '.terret/x']) {
      expect([path, await writes(box.home, path)]).toEqual([path, false])
    }
    expect(await writes(box.home, 'settings/other/config.json')).toBe(true)
  })

  it('B-FILES-72: write nothing that git obeys, also in a repository of another name', async () => {
    for (const file of ['.bare/HEAD', '.bare/objects/x', '.bare/worktrees/a/HEAD', '.bare/worktrees/a/commondir']) {
      box.write(`ws/${file}`, 'ours')
    }
    for (const path of [
      '.bare/config',
      '.bare/hooks/pre-commit',
      '.bare/info/attributes',
      '.bare/worktrees/a/CONFIG.worktree',
    ]) {
      expect([path, await writes(box.workspace, path)]).toEqual([path, false])
    }
    for (const path of ['config', 'hooks/a', 'src/.bare/config']) {
      expect([path, await writes(box.workspace, path)]).toEqual([path, true])
    }
  })
})
