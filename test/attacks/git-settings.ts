// Rows 80 and 81: a repository whose settings run programs when the harness itself uses git for worktrees, and a git that the
// repository brings along. The control does the same work by git as it is.
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { changesOf, discardWorktree, makeWorktree, mergeWorktree } from '../../src/tools/worktrees/worktree.ts'
import type { Case, Row } from './case.ts'
import { UNTOUCHED, type World } from './world.ts'

const SETTINGS = ['user.name=a', 'user.email=a@b', 'init.defaultBranch=main', 'protocol.file.allow=always']

function git(folder: string, ...args: readonly string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }
  return execFileSync('git', [...SETTINGS.flatMap((one) => ['-c', one]), ...args], {
    cwd: folder,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** As the user would run it. It may fail: whether it ran a program is what counts. */
async function plain(folder: string, ...args: readonly string[]): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_TERMINAL_PROMPT: '0' }
  const options = { cwd: folder, env, timeout: 10_000 }
  const given = SETTINGS.slice(0, 2).flatMap((one) => ['-c', one])
  await promisify(execFile)('git', [...given, ...args], options).catch(() => {})
}

/** Made once, and copied for each case: a repository with a commit. `a.txt` is of the type that the traps go for. */
let template: string | null = null

function repository(world: World): void {
  if (template === null) {
    const made = mkdtempSync(join(tmpdir(), 'terret-attack-template-'))
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    const attributes = NAMES.map((name, i) => `*.t${i} filter=${name} merge=${name} diff=${name}\n`).join('')
    const put = (name: string, text: string): void => writeFileSync(join(made, name), text)
    git(made, 'init', '-q')
    put('.gitattributes', attributes)
    for (const i of NAMES.keys()) put(`a.t${i}`, 'one\ntwo\nthree\n')
    put('plain.txt', 'a\n')
    git(made, 'add', '.')
    git(made, 'commit', '-qm', 'first')
    template = made
  }
  cpSync(template, world.workspace, { recursive: true, verbatimSymlinks: true })
  world.put('trap.sh', `#!/bin/sh\necho evil > ${world.outside}/canary.txt\ncat\n`, 0o755)
}

const trapOf = (world: World): string => join(world.root, 'trap.sh')

/** Names of filters and drivers. `-c name=value` can say only the first one. */
const NAMES = ['evil', 'a=b', 'x=y=z', '=']

type Entry = 'add' | 'list' | 'merge' | 'discard'

/** The same work by the harness and by plain git. Each entry has been prepared by those before it, without the trap. */
const WORK: Record<
  Entry,
  { readonly ours: (world: World) => Promise<unknown>; readonly plain: (world: World) => Promise<unknown> }
> = {
  add: {
    ours: (world) => makeWorktree({ folder: world.workspace, id: 'c', parent: 'p' }),
    plain: (world) => plain(world.workspace, 'worktree', 'add', '-q', '-b', 'terret/c', join(world.root, 'tree')),
  },
  list: {
    ours: async (world) => {
      const made = await makeWorktree({ folder: world.workspace, id: 'c', parent: 'p' })
      return changesOf(world.workspace, made)
    },
    plain: async (world) => {
      await plain(join(world.root, 'tree'), 'status', '--porcelain')
      await plain(join(world.root, 'tree'), 'diff', 'HEAD')
    },
  },
  merge: {
    ours: (world) => mergeWorktree(world.workspace, 'c'),
    plain: async (world) => {
      await plain(join(world.root, 'tree'), 'add', '--all')
      await plain(join(world.root, 'tree'), 'commit', '-q')
      await plain(join(world.root, 'tree'), 'commit', '-qm', 'work')
      await plain(world.workspace, 'merge', '--no-ff', '-m', 'merged', 'terret/c')
    },
  },
  discard: {
    ours: (world) => discardWorktree(world.workspace, 'c', true),
    plain: async (world) => {
      await plain(world.workspace, 'worktree', 'remove', '--force', join(world.root, 'tree'))
      await plain(world.workspace, 'branch', '-D', 'terret/c')
    },
  },
}

type Trap = {
  readonly name: string
  readonly at: readonly Entry[]
  /** Where the worktree is, if there is one already. */
  readonly set: (world: World, tree: string) => void
}

/** A worktree with work in it, made before the trap is set. Returns where it is. */
async function begun(world: World, entry: Entry): Promise<string> {
  if (entry === 'add') return ''
  const tree = world.defended
    ? (await makeWorktree({ folder: world.workspace, id: 'c', parent: 'p' })).path
    : join(world.root, 'tree')
  if (!world.defended) git(world.workspace, 'worktree', 'add', '-q', '-b', 'terret/c', tree)
  const changed = (place: string, by: string): void => {
    for (const i of NAMES.keys()) world.put(`${place}/a.t${i}`, `one\ntwo\nthree ${by}\n`)
  }
  changed(tree.slice(world.root.length + 1), 'by the child')
  world.put(`${tree.slice(world.root.length + 1)}/plain.txt`, 'b\n')
  if (entry === 'merge') {
    for (const i of NAMES.keys()) world.put(`ws/a.t${i}`, 'one of the parent\ntwo\nthree\n')
    git(world.workspace, 'commit', '-qam', 'parent')
  }
  return tree
}

function caseOf({ name, set }: Trap, entry: Entry): Case {
  return {
    name: `${name}, at ${entry}`,
    attack: async (world) => {
      repository(world)
      const tree = await begun(world, entry)
      set(world, tree)
      // What refuses the work in its sentence has run nothing.
      if (world.defended) await WORK[entry].ours(world).catch(() => {})
      else await WORK[entry].plain(world)
    },
    harmed: (world) => !world.intact,
  }
}

function append(world: World, file: string, text: string): void {
  world.put(file, `${world.text(file) ?? ''}\n${text}\n`)
}

const CONFIG = 'ws/.git/config'
const INCLUDED = 'ws/.git/more'

/** Ways by which a text comes to be a setting of the repository. */
const WAYS: readonly { readonly name: string; readonly set: (world: World, text: string, tree: string) => void }[] = [
  { name: 'in the settings', set: (world, text) => append(world, CONFIG, text) },
  {
    name: 'in an included file',
    set: (world, text) => {
      append(world, CONFIG, '[include]\n\tpath = more')
      append(world, INCLUDED, text)
    },
  },
  {
    name: 'in a file that an included file includes',
    set: (world, text) => {
      append(world, CONFIG, '[include]\n\tpath = more')
      append(world, INCLUDED, '[include]\n\tpath = ../deeper')
      append(world, 'ws/deeper', text)
    },
  },
  ...['onbranch:terret/**', 'gitdir:**/worktrees/**', 'gitdir/i:**/WORKTREES/**', 'gitdir:**'].map((condition) => ({
    name: `included if ${condition}`,
    set: (world: World, text: string) => {
      append(world, CONFIG, `[includeIf "${condition}"]\n\tpath = more`)
      append(world, INCLUDED, text)
    },
  })),
  {
    name: 'included if a remote has an address',
    set: (world, text) => {
      append(
        world,
        CONFIG,
        '[remote "origin"]\n\turl = x://y\n[includeIf "hasconfig:remote.*.url:x://**"]\n\tpath = more',
      )
      append(world, INCLUDED, text)
    },
  },
]

/** Settings of the worktree alone. It must be there. */
const OF_WORKTREE = (world: World, text: string, tree: string): void => {
  append(world, CONFIG, '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true')
  const name = tree.split('/').at(-1)
  append(world, `ws/.git/worktrees/${name}/config.worktree`, text)
}

const escaped = (name: string): string => name.replaceAll('\\', '\\\\').replaceAll('"', '\\"')
const smudge = (name: string, trap: string): string => `[filter "${escaped(name)}"]\n\tsmudge = ${trap}`
const clean = (name: string, trap: string): string => `[filter "${escaped(name)}"]\n\tclean = ${trap}`
const running = (name: string, trap: string): string =>
  `[filter "${escaped(name)}"]\n\tprocess = ${trap}\n\trequired = true`
const driver = (name: string, trap: string): string => `[merge "${escaped(name)}"]\n\tdriver = "${trap} %A"`
const monitor = (_: string, trap: string): string => `[core]\n\tfsmonitor = ${trap}`

const NAMED_FILTERS: readonly Trap[] = NAMES.flatMap((name): readonly Trap[] => [
  {
    name: `a filter "${name}" that writes files`,
    at: ['add'],
    set: (world) => append(world, CONFIG, smudge(name, trapOf(world))),
  },
  {
    name: `a filter "${name}" that reads files`,
    at: ['list', 'merge'],
    set: (world) => append(world, CONFIG, clean(name, trapOf(world))),
  },
  {
    name: `a filter "${name}" that keeps running`,
    at: ['add', 'list'],
    set: (world) => append(world, CONFIG, running(name, trapOf(world))),
  },
  {
    name: `a program "${name}" for merges`,
    at: ['merge'],
    set: (world) => append(world, CONFIG, driver(name, trapOf(world))),
  },
])

const BY_WAYS: readonly Trap[] = WAYS.slice(1)
  .flatMap(({ name, set }): readonly Trap[] => [
    { name: `a filter ${name}`, at: ['add'], set: (world, tree) => set(world, smudge('a=b', trapOf(world)), tree) },
    {
      name: `a monitor of files ${name}`,
      at: ['list'],
      set: (world, tree) => set(world, monitor('', trapOf(world)), tree),
    },
    {
      name: `a reading filter ${name}`,
      at: ['merge'],
      set: (world, tree) => set(world, clean('evil', trapOf(world)), tree),
    },
    {
      name: `a folder of hooks ${name}`,
      at: ['discard'],
      set: (world, tree) => {
        world.put('ws/evil-hooks/reference-transaction', `#!/bin/sh\n${trapOf(world)} </dev/null\n`, 0o755)
        set(world, `[core]\n\thooksPath = ${world.workspace}/evil-hooks`, tree)
      },
    },
  ])
  // Plain git removes a worktree from the main one, for which these conditions do not hold.
  .filter(({ name, at }) => !(at[0] === 'discard' && /onbranch|WORKTREES|worktrees/.test(name)))

const OF_ONE_WORKTREE: readonly Trap[] = [
  { name: 'a monitor of files', at: ['list', 'merge'] as const, text: monitor },
  { name: 'a reading filter', at: ['list', 'merge'] as const, text: clean },
].map(({ name, at, text }) => ({
  name: `${name} in the settings of a worktree`,
  at,
  set: (world, tree) => OF_WORKTREE(world, text('a=b', trapOf(world)), tree),
}))

const HOOKS: readonly Trap[] = (
  [
    ['post-checkout', 'add'],
    ['reference-transaction', 'add'],
    ['post-index-change', 'list'],
    ['pre-commit', 'merge'],
    ['prepare-commit-msg', 'merge'],
    ['commit-msg', 'merge'],
    ['post-commit', 'merge'],
    ['pre-merge-commit', 'merge'],
    ['post-merge', 'merge'],
    ['reference-transaction', 'discard'],
  ] as const
).map(([hook, at]) => ({
  name: `a hook ${hook}`,
  at: [at],
  set: (world) => void world.put(`ws/.git/hooks/${hook}`, `#!/bin/sh\n${trapOf(world)} </dev/null\n`, 0o755),
}))

/** An object is missing, and git fetches it from a remote that promised to have it. */
const FETCHES: readonly Trap[] = (
  [
    ['a program for remote hosts', 'url = ssh://localhost/a', (trap: string) => `[core]\n\tsshCommand = ${trap}`],
    ['a program of the remote', 'url = file:///nowhere', (trap: string) => `[remote "o"]\n\tuploadpack = ${trap}`],
    [
      'a remote that is a program',
      '',
      (trap: string) => `[remote "o"]\n\turl = "ext::${trap}"\n[protocol]\n\tallow = always`,
    ],
    ['a proxy that is a program', 'url = git://localhost/a', (trap: string) => `[core]\n\tgitProxy = ${trap}`],
    [
      'a remote that is rewritten to a program',
      'url = q://a',
      (trap: string) => `[url "ext::${trap} "]\n\tinsteadOf = q://\n[protocol]\n\tallow = always`,
    ],
  ] as const
).map(([name, url, more]) => ({
  name: `${name}, for an object that is missing`,
  at: ['add'],
  set: (world) => {
    const hash = git(world.workspace, 'rev-parse', 'HEAD:plain.txt').trim()
    unlinkSync(join(world.workspace, '.git', 'objects', hash.slice(0, 2), hash.slice(2)))
    append(world, CONFIG, '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = o')
    append(world, CONFIG, `[remote "o"]\n\tpromisor = true\n\t${url}\n${more(trapOf(world))}`)
  },
}))

const OTHERS: readonly Trap[] = [
  {
    name: 'a program for all merges',
    at: ['merge'],
    set: (world) => {
      append(world, 'ws/.git/info/attributes', '*.t0 !merge')
      append(world, CONFIG, `[merge]\n\tdefault = own\n${driver('own', trapOf(world))}`)
    },
  },
  {
    name: 'attributes beside the repository',
    at: ['list', 'merge'],
    set: (world) => {
      append(world, 'ws/.git/info/attributes', '* filter=own')
      append(world, CONFIG, clean('own', trapOf(world)))
    },
  },
  {
    name: 'attributes of a file that settings name',
    at: ['list', 'merge'],
    set: (world) => {
      const file = world.put('attributes', 'plain.txt filter=own\n')
      append(world, CONFIG, `[core]\n\tattributesFile = ${file}\n${clean('own', trapOf(world))}`)
    },
  },
  {
    name: 'a program that shows differences',
    at: ['list'],
    set: (world) => append(world, CONFIG, `[diff]\n\texternal = ${trapOf(world)}`),
  },
  {
    name: 'a program that makes text of files',
    at: ['list'],
    set: (world) => append(world, CONFIG, `[diff "a=b"]\n\ttextconv = ${trapOf(world)}`),
  },
  {
    name: 'a program for one kind of differences',
    at: ['list'],
    set: (world) => append(world, CONFIG, `[diff "a=b"]\n\tcommand = ${trapOf(world)}`),
  },
  {
    name: 'an editor',
    at: ['merge'],
    set: (world) => append(world, CONFIG, `[core]\n\teditor = ${trapOf(world)}`),
  },
  {
    name: 'a program that signs',
    at: ['merge'],
    set: (world) => append(world, CONFIG, `[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = ${trapOf(world)}`),
  },
  {
    name: 'a program that signs by ssh',
    at: ['merge'],
    set: (world) =>
      append(
        world,
        CONFIG,
        `[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = /dev/null\n[gpg "ssh"]\n\tprogram = ${trapOf(world)}`,
      ),
  },
  ...(['list', 'merge'] as const).flatMap((entry): readonly Trap[] =>
    (['a monitor of files', 'a filter'] as const).map((kind) => ({
      name: `${kind} of a repository that the index of a worktree names`,
      at: [entry],
      set: (world, tree) => {
        const inner = join(tree, 'inner')
        mkdirSync(inner)
        git(inner, 'init', '-q')
        world.put(`${inner.slice(world.root.length + 1)}/x.txt`, 'x\n')
        git(inner, 'add', '.')
        git(inner, 'commit', '-qm', 'x')
        git(tree, 'update-index', '--add', '--cacheinfo', `160000,${git(inner, 'rev-parse', 'HEAD').trim()},inner`)
        const config = `${inner.slice(world.root.length + 1)}/.git/config`
        append(world, config, kind === 'a filter' ? clean('q=r', trapOf(world)) : monitor('', trapOf(world)))
        world.put(`${inner.slice(world.root.length + 1)}/x.txt`, 'y\n')
        world.put(`${inner.slice(world.root.length + 1)}/.gitattributes`, '* filter=q=r\n')
      },
    })),
  ),
  {
    name: 'files that lie elsewhere',
    at: ['merge'],
    set: (world, tree) => {
      // The files of the repository are said to be those of a folder around the workspace.
      world.put(`${tree.slice(world.root.length + 1)}/ws-evil/new.txt`, 'evil\n')
      for (const i of NAMES.keys()) world.put(`a.t${i}`, world.text(`ws/a.t${i}`) ?? '')
      for (const name of ['.gitattributes', 'plain.txt']) world.put(name, world.text(`ws/${name}`) ?? '')
      append(world, CONFIG, `[core]\n\tworktree = ${world.root}`)
    },
  },
]

const TRAPS = [...NAMED_FILTERS, ...BY_WAYS, ...OF_ONE_WORKTREE, ...HOOKS, ...FETCHES, ...OTHERS]

export const gitSettings: Row = {
  row: 80,
  title: 'settings of a repository, when the harness uses git for worktrees',
  cases: TRAPS.flatMap((trap) => trap.at.map((entry) => caseOf(trap, entry))),
}

/** PATH as the user has it, and the folder with another git in it. */
const PATHS: readonly { readonly name: string; readonly folder: string; readonly entry: (world: World) => string }[] = [
  { name: 'by a dot', folder: 'ws', entry: () => '.' },
  { name: 'by nothing at all', folder: 'ws', entry: () => '' },
  { name: 'by a relative folder', folder: 'ws/bin', entry: () => 'bin' },
  { name: 'by a relative folder with a dot', folder: 'ws/bin', entry: () => './bin' },
  { name: 'by a way up and down', folder: 'ws/bin', entry: () => '../ws/bin' },
  { name: 'by its path', folder: 'ws/node_modules/.bin', entry: (world) => join(world.workspace, 'node_modules/.bin') },
  {
    name: 'by a link to it',
    folder: 'ws/bin',
    entry: (world) => {
      symlinkSync(join(world.workspace, 'bin'), join(world.root, 'bin-link'))
      return join(world.root, 'bin-link')
    },
  },
  {
    name: 'by a link to the program',
    folder: 'ws/bin',
    entry: (world) => {
      mkdirSync(join(world.root, 'own'))
      symlinkSync(join(world.workspace, 'bin', 'git'), join(world.root, 'own', 'git'))
      return join(world.root, 'own')
    },
  },
]

/** Each changes PATH of this process, so they are played one after the other. */
export const gitPrograms: Row = {
  row: 81,
  title: 'a git that the repository brings along',
  width: 1,
  cases: PATHS.flatMap(({ name, folder, entry }) =>
    (['add', 'list'] as const).map(
      (work): Case => ({
        name: `is found ${name}, at ${work}`,
        attack: async (world) => {
          repository(world)
          await begun(world, work)
          world.put(`${folder}/git`, `#!/bin/sh\necho evil > ${world.outside}/canary.txt\n`, 0o755)
          if (!world.defended)
            cpSync(join(world.root, folder, 'git'), join(world.root, folder.replace('ws', 'tree'), 'git'))
          const { PATH } = process.env
          process.env['PATH'] = `${entry(world)}${delimiter}${PATH}`
          try {
            if (world.defended) await WORK[work].ours(world).catch(() => {})
            else await WORK[work].plain(world)
          } finally {
            process.env['PATH'] = PATH
          }
        },
        harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
      }),
    ),
  ),
}
