// What commands and file tools cannot change, and what becomes of what a command makes there. Judged by the files.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { protectedChanges } from '../../src/tools/shell/protected-changes.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import type { Output } from '../../src/tools/core/tool-output.ts'
import { PROTECTED } from '../../src/tools/files/protected-names.ts'
import { scanProtected, NOTHING_SEEN } from '../../src/tools/shell/scan-protected.ts'
import { Box, noBubblewrap } from './box.ts'
import { toolContext } from './context.ts'
import { until } from '../until.ts'

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
    // In lots that fit: only 50 names at a time are closed before the command, the rest is compared after it.
    const lots = Array.from({ length: Math.ceil(PROTECTED.length / 40) }, (_, lot) =>
      PROTECTED.slice(40 * lot, 40 * lot + 40),
    )
    for (const [folder, lot] of lots.flatMap((lot) => [['', lot] as const, ['pkg/deep/', lot] as const])) {
      const files = lot.map((name) => `${folder}${name}/x`)
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
    await until(() => expect(existsSync(made)).toBe(true))
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

describe('what a confined command plants (needs bubblewrap)', () => {
  const at = (path: string): string => join(box.workspace, path)
  const asidesOf = (result: Awaited<ReturnType<Box['run']>>): readonly string[] =>
    (result.protected_set_aside ?? []).map(({ path }) => path)

  it.skipIf(noBubblewrap)('B-PROTECT-1: is found at any depth and behind any number of folders', async () => {
    const deep = `${'d/'.repeat(30)}.envrc`
    const result = await box.run(
      `mkdir many{1..1100}; mkdir -p z/y dist $(dirname ${deep})
       for file in z/y/.envrc dist/.envrc ${deep}; do echo evil > $file; done`,
      { soft_timeout_ms: 60_000 },
    )
    expect(asidesOf(result)).toEqual([deep, 'dist/.envrc', 'z/y/.envrc'].map(at))
  })

  it.skipIf(noBubblewrap)(
    'B-PROTECT-1: is found when it is moved or linked out of a folder that is skipped',
    async () => {
      box.write('ws/node_modules/x/.vscode/tasks.json', 'theirs')
      box.write('ws/node_modules/y/.envrc', 'theirs')
      expect(asidesOf(await box.run('echo fine > node_modules/x/.envrc'))).toEqual([])
      expect(asidesOf(await box.run('mv node_modules/x x'))).toEqual(['x/.envrc', 'x/.vscode'].map(at))
      expect(asidesOf(await box.run('ln -s node_modules/y y'))).toEqual([at('node_modules/y/.envrc')])
      const dotted = 'mkdir -p ..a/node_modules/z; echo evil > ..a/node_modules/z/.envrc; ln -s ..a/node_modules/z z'
      expect(asidesOf(await box.run(dotted))).toEqual([at('..a/node_modules/z/.envrc')])
      const behind = 'mkdir -p x/fish; echo evil > x/fish/config.fish; ln -s x .config'
      expect(asidesOf(await box.run(behind))).toEqual([at('.config')])
      symlinkSync('x', at('.config'))
      expect(asidesOf(await box.run('mkdir x/sway; echo evil > x/sway/config'))).toEqual([at('x/sway')])
      box.write('ws/plain/a', '')
      expect(asidesOf(await box.run('true'))).toEqual([])
      const disguised = 'touch -r plain stamp; echo evil > plain/.envrc; touch -r stamp plain'
      expect(asidesOf(await box.run(disguised))).toEqual([at('plain/.envrc')])
    },
  )

  it.skipIf(noBubblewrap)('B-PROTECT-2: is set aside with the new folder that cannot be looked into', async () => {
    // So long that no path leads to its end.
    const name = 'l'.repeat(200)
    const result = await box.run(
      `mkdir long; cd long; for i in $(seq 25); do mkdir ${name}; cd ${name}; done; echo evil > .envrc
       cd ${box.workspace}; mkdir $'\\xff'; echo evil > $'\\xff/.envrc'; mkdir fine`,
    )
    expect(asidesOf(result)).toEqual([at('long'), at('\ufffd')])
    expect(readdirSync(box.workspace)).toEqual(['fine', 'long.unapproved', '\ufffd.unapproved'])
    // The library cannot remove a path that is too long either.
    execFileSync('rm', ['-rf', at('long.unapproved')])
  })

  it('B-PROTECT-2: beyond the number of folders that are looked into is set aside, and what was there is not', () => {
    box.write('ws/old/deep/a', '')
    const bounds = { now: 0, foldersMax: 5 }
    const before = scanProtected(box.workspace, NOTHING_SEEN, bounds)
    expect([before.partly, before.folders.size]).toEqual([false, 3])
    for (let n = 0; n < 20; n++) box.write(`ws/made/${n}/.envrc`, 'evil')
    mkdirSync(at('old/new'))
    const after = scanProtected(box.workspace, before, bounds)
    expect(after.partly).toBe(true)
    const frame = { workspace: box.workspace, look: before, told: new Map(), links: new Map() }
    const { setAside, unchecked } = protectedChanges(frame, after, false)
    expect(setAside.map(({ path }) => path)).toContain(at('made'))
    expect([existsSync(at('made')), existsSync(at('old/deep/a')), unchecked]).toEqual([false, true, []])
  })

  it.skipIf(noBubblewrap)(
    'B-PROTECT-3: cannot be checked in a workspace that is too large, so a person is asked',
    async () => {
      const tool = bashTool({ workspace: box.workspace, foldersMax: 5 })
      const args = { command: 'echo x > ran' }
      const call = (approved: boolean) => tool.execute(args, toolContext({ approved }))
      await call(false)
      expect(await tool.approval?.(args)).toBe('auto')
      rmSync(at('ran'))
      for (let n = 0; n < 5; n++) mkdirSync(at(`${n}`))
      await expect(call(false)).rejects.toMatchObject({
        kind: 'Denied',
        message: expect.stringMatching(/more than 5 folders/) as string,
      })
      expect([existsSync(at('ran')), await tool.approval?.(args)]).toEqual([false, 'always'])
      await call(true)
      expect(existsSync(at('ran'))).toBe(true)
      rmSync(at('0'), { recursive: true })
      expect(await tool.approval?.(args)).toBe('auto')
      for (const foldersMax of [0, -1, 1.5, Number.NaN]) {
        expect(() => bashTool({ workspace: box.workspace, foldersMax })).toThrow(/foldersMax/)
      }
    },
  )

  it.skipIf(noBubblewrap)('B-PROTECT-4: is no line that a rebase would run, but a rebase itself works', async () => {
    const git = 'git -c user.name=a -c user.email=a@b -c core.hooksPath=/dev/null'
    box.write('ws/a', 'a\n')
    const begun = `git init -q . && git add a && ${git} commit -qm a && git checkout -q -b other && echo b > a && ${git} commit -qam b
      git checkout -q - && echo c > a && ${git} commit -qam c; ${git} rebase other`
    const stopped = await box.run(begun)
    expect(stopped.stdout + stopped.stderr).toContain('CONFLICT')
    const todo = at('.git/rebase-merge/git-rebase-todo')
    expect([existsSync(todo), asidesOf(stopped).includes(todo)]).toEqual([true, false])
    const went = await box.run(`echo d > a; git add a; GIT_EDITOR=true ${git} rebase --continue && git log --format=%s`)
    expect(went.stdout).toContain('c\nb\na\n')
    const planted = `mkdir .git/rebase-merge; printf 'pick 1\\nexec evil\\n' > .git/rebase-merge/git-rebase-todo`
    expect(asidesOf(await box.run(planted))).toEqual([todo])
    box.write('ws/.git/rebase-merge/git-rebase-todo', 'exec ours\nexec ours too\n')
    const shorter = `echo 'exec ours too' > .git/rebase-merge/git-rebase-todo`
    expect(asidesOf(await box.run(shorter))).toEqual([])
    expect(asidesOf(await box.run(`echo ' x evil' >> .git/rebase-merge/git-rebase-todo`))).toEqual([todo])
  })

  it.skipIf(noBubblewrap)('B-PROTECT-5: is nothing that the settings of git name within the workspace', async () => {
    box.write(
      'ws/.git/config',
      '[core]\n\thooksPath = scripts/hooks\n[include] path = "../shared.conf"\n[a]\n\tpath = .\n',
    )
    const [hook, shared] = [box.write('ws/scripts/hooks/pre-commit', 'ours'), box.write('ws/shared.conf', 'ours')]
    await box.run('echo evil > shared.conf; mv scripts gone; echo evil > scripts/hooks/pre-commit; echo fine > fine')
    expect([hook, shared, at('fine')].map((path) => readFileSync(path, 'utf8'))).toEqual(['ours', 'ours', 'fine\n'])
  })

  it.skipIf(noBubblewrap)(
    'B-PROTECT-6: is set aside also where too much is protected to be closed, and not all of it is listed',
    async () => {
      for (let n = 100; n < 260; n++) box.write(`ws/pkg${n}/.npmrc`, 'ours')
      const result = await box.run('for i in pkg*; do echo evil > $i/.npmrc; done; rm pkg259/.npmrc')
      const evil = Array.from({ length: 160 }, (_, n) => `pkg${n + 100}/.npmrc`).filter(
        (path) => existsSync(at(path)) && readFileSync(at(path), 'utf8') !== 'ours',
      )
      expect([evil, result.protected_set_aside?.length, result.protected_not_listed]).toEqual([[], 50, 59])
      expect(result.protected_changed).toEqual([at('pkg259/.npmrc')])
    },
  )

  it('B-PROTECT-7: is looked for without reading again what did not change', () => {
    for (const path of ['a/b/x', 'c/x']) box.write(`ws/${path}`, '')
    const later = { now: Date.now() + 10_000, foldersMax: 100 }
    const first = scanProtected(box.workspace, NOTHING_SEEN, later)
    box.write('ws/c/d/.envrc', '')
    const second = scanProtected(box.workspace, first, later)
    const same = [...second.folders].filter(([path, seen]) => first.folders.get(path) === seen).map(([path]) => path)
    expect([same.toSorted(), [...second.paths]]).toEqual([['', 'a', 'a/b'], ['c/d/.envrc']])
    // What had just changed when it was read may have changed once more at the same time.
    const third = scanProtected(
      box.workspace,
      scanProtected(box.workspace, NOTHING_SEEN, { ...later, now: Date.now() }),
      later,
    )
    expect(third.paths).toEqual(second.paths)
  })
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
