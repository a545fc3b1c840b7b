// Row 20: a repository whose own settings make git run programs.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { z } from 'zod'
import { defineTool } from '../../src/index.ts'
import type { Case, Row } from './case.ts'
import { shell } from './naive.ts'
import { type World, UNTOUCHED } from './world.ts'

/** A repository with one commit, and a program that harms the outside when git runs it. */
function repository(world: World): string {
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: world.workspace,
      env: { PATH: process.env['PATH'] ?? '', HOME: world.home, GIT_CONFIG_NOSYSTEM: '1' },
      stdio: 'ignore',
    })
  git('init', '-q')
  world.put('ws/a.txt', 'a\n')
  git('add', '.')
  git('commit', '-qm', 'a')
  return world.put('ws/trap.sh', `#!/bin/sh\necho evil > ${world.outside}/canary.txt\n`, 0o755)
}

type Trap = { readonly name: string; readonly set: (world: World, trap: string) => void; readonly command: string }

const configured = (section: string, key: string) => (world: World, trap: string) => {
  const text = world.text('ws/.git/config') ?? ''
  world.put('ws/.git/config', `${text}\n[${section}]\n\t${key} = ${trap}\n`)
}

const TRAPS: readonly Trap[] = [
  { name: 'a monitor of files', set: configured('core', 'fsmonitor'), command: 'git status' },
  { name: 'a program for differences', set: configured('diff', 'external'), command: 'echo b > a.txt; git diff' },
  {
    name: 'a program for remote hosts',
    set: configured('core', 'sshCommand'),
    command: 'git ls-remote ssh://localhost/a',
  },
  {
    name: 'hooks in a folder of the workspace',
    set: (world, trap) => {
      world.put('ws/evil-hooks/post-checkout', `#!/bin/sh\n${trap} </dev/null\n`, 0o755)
      configured('core', 'hooksPath')(world, join(world.workspace, 'evil-hooks'))
    },
    command: 'git checkout -q -b other',
  },
  {
    name: 'a filter by attributes',
    set: (world, trap) => {
      world.put('ws/.gitattributes', '*.txt filter=evil\n')
      configured('filter "evil"', 'smudge')(world, trap)
    },
    command: 'rm a.txt; git checkout -q -- a.txt',
  },
  {
    name: 'a cleaning filter',
    set: (world, trap) => {
      world.put('ws/.gitattributes', '*.txt filter=evil\n')
      configured('filter "evil"', 'clean')(world, trap)
    },
    command: 'echo b > a.txt; git add a.txt',
  },
  {
    name: 'a remote that is a program',
    set: (world) => {
      world.put('ws/.git/config', `${world.text('ws/.git/config')}\n[protocol "ext"]\n\tallow = always\n`)
    },
    command: 'git ls-remote "ext::./trap.sh"',
  },
  {
    name: 'an alias that is a command',
    set: (world, trap) => configured('alias', 'st')(world, `"!${trap} </dev/null"`),
    command: 'git st',
  },
]

const commands: readonly Case[] = TRAPS.map(({ name, set, command }) => ({
  name: `runs git over ${name}`,
  needs: ['bubblewrap'],
  attack: (world) => {
    set(world, repository(world))
    return world.run(world.bash('files'), command)
  },
  harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
}))

/** The tools of the harness themselves run no git, whatever the repository says. */
const files: Case = {
  name: 'reads, lists, searches and writes in a repository that is one trap',
  attack: (world) => {
    const trap = repository(world)
    for (const { set } of TRAPS) set(world, trap)
    const listed = defineTool({
      name: 'list',
      description: 'by git, as it respects what is ignored',
      input: z.object({ path: z.string() }),
      execute: () => shell(world, `HOME=${world.home} git status --short`),
    })
    const tools = world.defended ? world.files() : [...world.files().filter((tool) => tool.name !== 'list'), listed]
    const calls = [
      { tool: 'list', args: { path: '.' } },
      { tool: 'read', args: { path: 'a.txt' } },
      { tool: 'search', args: { pattern: 'a', include_ignored: true } },
      { tool: 'glob', args: { pattern: '**' } },
      { tool: 'write', args: { path: 'a.txt', content: 'b\n' } },
    ]
    return world.play(tools, [{ calls }, 'done'])
  },
  harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
}

export const repositories: Row = {
  row: 20,
  title: 'repositories that make git run programs',
  cases: [...commands, files],
}
