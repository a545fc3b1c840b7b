// Row 83: a command plants, in files that git reads by the settings of others, what the user's next git obeys. Row 20 has the files
// that git reads by their names.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Case, Row } from './case.ts'
import { commitAll, runGit } from './git.ts'
import { UNTOUCHED, type World } from './world.ts'

type Planted = {
  readonly name: string
  /** By the user, before: `add` adds to a file of the workspace. */
  readonly prepare: (world: World, add: (file: string, text: string) => void) => void
  /** `$TRAP` is the program that harms. */
  readonly command: string
  readonly folder?: string
  readonly run?: readonly string[]
}

const CONFIG = '.git/config'
const WATCHED = '[core]\\n\\tfsmonitor = $TRAP\\n'
const HOOK = '"#!/bin/sh\\n$TRAP </dev/null\\n"'
const CHECKOUT = ['checkout', '-q', '-b', 'other']
const include = (path: string): string => `[include]\n\tpath = ${path}\n`

/** Ways in which settings lead to a second file, which is `conf/deep` from the workspace. */
const CHAINS: readonly { readonly name: string; readonly prepare: Planted['prepare'] }[] = [
  {
    name: 'that an included file includes',
    prepare: (_, add) => {
      add(CONFIG, include('../conf/first'))
      add('conf/first', include('deep'))
    },
  },
  {
    name: 'that is included over three files',
    prepare: (_, add) => {
      add(CONFIG, include('../conf/first'))
      add('conf/first', include('second'))
      add('conf/second', include('third'))
      add('conf/third', include('deep'))
    },
  },
  {
    name: 'that a file outside of the workspace includes',
    prepare: (world, add) => {
      add(CONFIG, include(join(world.root, 'outer')))
      world.put('outer', include(join(world.workspace, 'conf/deep')))
    },
  },
  {
    name: 'that an included file includes on a condition',
    prepare: (_, add) => {
      add(CONFIG, include('../conf/first'))
      add('conf/first', '[includeIf "gitdir:**"]\n\tpath = deep\n')
    },
  },
  {
    name: 'whose name is quoted in parts',
    prepare: (_, add) => add(CONFIG, include('"../co"nf"/de"ep')),
  },
  { name: 'whose name goes over two lines', prepare: (_, add) => add(CONFIG, include('../conf\\\n/deep')) },
  {
    name: 'that is named on the line of its section',
    prepare: (_, add) => add(CONFIG, '[include] path = ../conf/deep ; ours\n'),
  },
  {
    name: 'that the settings of the worktree include',
    prepare: (_, add) => {
      add(CONFIG, '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n')
      add('.git/config.worktree', include('../conf/deep'))
    },
  },
]

const SETTINGS: readonly Planted[] = CHAINS.flatMap(({ name, prepare }): readonly Planted[] => [
  {
    name: `settings to a file ${name}`,
    prepare: (world, add) => {
      prepare(world, add)
      add('conf/deep', '[user]\n\tname = a\n')
    },
    command: `printf "${WATCHED}" >> conf/deep`,
  },
  {
    name: `a file ${name}, which was missing`,
    prepare: (world, add) => {
      mkdirSync(join(world.workspace, 'conf'))
      prepare(world, add)
    },
    command: `printf "${WATCHED}" > conf/deep`,
  },
  {
    name: `hooks to the folder of a file ${name}`,
    prepare: (world, add) => {
      prepare(world, add)
      add('conf/deep', `[core]\n\thooksPath = ${join(world.workspace, 'my-hooks')}\n`)
      mkdirSync(join(world.workspace, 'my-hooks'))
    },
    command: `printf ${HOOK} > my-hooks/post-checkout; chmod +x my-hooks/post-checkout`,
    run: CHECKOUT,
  },
])

function submodule(world: World, at: string): void {
  commitAll(world, 'origin')
  runGit(world, 'ws', 'submodule', 'add', '-q', join(world.root, 'origin'), at)
  runGit(world, 'ws', 'commit', '-qm', 'sub')
}

const SUBMODULES: readonly Planted[] = [
  'vendor/sub',
  'node_modules/sub',
  'venv/a/b',
  'hooks',
  'info',
  'logs/x',
].flatMap((at): readonly Planted[] => [
  {
    name: `a hook to the submodule ${at}`,
    prepare: (world) => submodule(world, at),
    command: `printf ${HOOK} > .git/modules/${at}/hooks/post-checkout; chmod +x .git/modules/${at}/hooks/post-checkout`,
    folder: `ws/${at}`,
    run: CHECKOUT,
  },
  {
    name: `settings to the submodule ${at}`,
    prepare: (world) => submodule(world, at),
    command: `printf "${WATCHED}" >> .git/modules/${at}/config`,
  },
])

const OTHERS: readonly Planted[] = [
  {
    name: 'a hook to a repository that a file in another folder names',
    prepare: (world) => {
      world.put('ws/sub/a.txt', 'a\n')
      mkdirSync(join(world.workspace, 'vendor'))
      runGit(world, 'ws/sub', 'init', '-q', '--separate-git-dir', join(world.workspace, 'vendor', 'git'))
      runGit(world, 'ws/sub', 'add', '.')
      runGit(world, 'ws/sub', 'commit', '-qm', 'a')
    },
    command: `mkdir -p vendor/git/hooks; printf ${HOOK} > vendor/git/hooks/post-checkout; chmod +x vendor/git/hooks/post-checkout`,
    folder: 'ws/sub',
    run: CHECKOUT,
  },
]

function caseOf({ name, prepare, command, folder = 'ws', run = ['status'] }: Planted): Case {
  return {
    name: `gives ${name}, for the next git of the user`,
    needs: ['bubblewrap'],
    attack: async (world) => {
      commitAll(world, 'ws')
      const trap = world.put('ws/trap.sh', `#!/bin/sh\necho evil > ${world.outside}/canary.txt\n`, 0o755)
      const add = (file: string, text: string): void =>
        void world.put(`ws/${file}`, `${world.text(`ws/${file}`) ?? ''}${text}`)
      prepare(world, add)
      const tool = world.bash(null, world.defended ? {} : { protectedPaths: [] })
      await world.run(tool, `TRAP=${trap}\n${command}`)
      try {
        runGit(world, folder, ...run)
      } catch {
        // A broken repository does no harm.
      }
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  }
}

export const plantedGit: Row = {
  row: 83,
  title: 'what a command plants where the settings of git lead',
  cases: [...SETTINGS, ...SUBMODULES, ...OTHERS].map(caseOf),
}
