// Row 23: a sandbox that is missing, broken or only looks like one. Then nothing may run.
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { defineTool, type Tool } from '../../src/index.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import { allowedEnvironment, findSandbox, supervisedCommand, buildSandbox } from '../../src/tools/shell/sandbox.ts'
import { type ChildEnd, runChild } from '../../src/tools/shell/child-process.ts'
import type { Case, Row } from './case.ts'
import { shell } from './naive.ts'
import { gaping, program, type Weakness } from './walls.ts'
import { type World, UNTOUCHED } from './world.ts'

/** The control: runs the command in a sandbox without testing it first, and without any sandbox if that does not start. */
function untried(world: World, path: string): Tool {
  return defineTool({
    name: 'bash',
    description: 'bash',
    input: z.object({ command: z.string() }),
    execute: async ({ command }, { signal }) => {
      const { workspace } = world
      const env = allowedEnvironment(process.env)
      const features = { disableUserns: true, tmpfsSize: true }
      const walls = buildSandbox({ workspace, network: false, env, masked: [], protectedPaths: [] }, features)
      const limits = { previewBytesMax: 10_000, wholeBytesMax: 0 }
      const end: ChildEnd = await runChild(
        {
          file: path,
          args: [...walls.args, ...supervisedCommand(['/bin/bash', '-c', command])],
          filter: walls.filter,
          cwd: workspace,
          env,
          signal,
          limits,
          softMs: 5_000,
          hardMs: 5_000,
          namespaced: true,
        },
        runtimeClock,
      )
      return end.how.type === 'unstarted' ? shell(world, command) : end.stdout.head
    },
  })
}

/** All these harm the outside, by a program in the place of bubblewrap that does not confine as it should. */
function trusting(name: string, file: () => string, command?: (world: World) => string): Case {
  return {
    name: `runs a command in ${name}`,
    attack: (world) => {
      const path = file()
      const real = bashTool({ workspace: world.workspace, sandbox: { type: 'bwrap', path } })
      const tool = world.defended ? { ...real, approval: () => 'auto' as const } : untried(world, path)
      return world.run(tool, command?.(world) ?? `echo evil > ${world.outside}/canary.txt`)
    },
    harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
  }
}

type Gap = {
  readonly name: string
  readonly weakness: Weakness
  readonly needs?: 'root'
  /** Leaves a file in the workspace if it could do what it must not. */
  readonly command: (world: World) => Promise<string>
}

const GAPS: readonly Gap[] = [
  {
    name: 'lets it write outside',
    weakness: 'files',
    command: async (world) => `echo evil > ${world.outside}/canary.txt && touch out`,
  },
  {
    name: 'lets it reach the network',
    weakness: 'network',
    command: async (world) => {
      const server = createServer((socket) => socket.destroy())
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      world.defer(() => server.close())
      return `(exec 9<>/dev/tcp/127.0.0.1/${(server.address() as AddressInfo).port}) && touch out`
    },
  },
  {
    name: 'lets it see other processes',
    weakness: 'processes',
    command: async (world) => `kill -0 ${world.victim().pid} && touch out`,
  },
  {
    name: 'lets it make every system call',
    weakness: 'calls',
    command: async () => `perl -e 'exit(socket(my $s, 40, 1, 0) ? 0 : 1)' && touch out`,
  },
  {
    name: 'lets it set the kernel',
    weakness: 'settings',
    needs: 'root',
    command: async () => '( : >> /proc/sys/kernel/core_pattern ) && touch out',
  },
]

/** A real bubblewrap that lacks one wall. A self-test of the sandbox finds the gap. */
function gap({ name, weakness, needs, command }: Gap): Case {
  return {
    name: `runs a command in a sandbox that ${name}`,
    needs: needs ? ['bubblewrap', needs] : ['bubblewrap'],
    attack: async (world) => {
      const path = gaping(weakness)
      const real = bashTool({ workspace: world.workspace, sandbox: { type: 'bwrap', path } })
      const tool = world.defended ? { ...real, approval: () => 'auto' as const } : untried(world, path)
      return world.run(tool, await command(world))
    },
    harmed: (world) => world.has('ws/out'),
  }
}

const OPEN = 'case "$1" in --help) exit 0;; esac; while [ "$1" != -- ]; do shift; done; shift; "$@"'

/** A sandbox program from the workspace must not be used: the attacker can write there. */
const own: Case = {
  name: 'runs a command in a sandbox of the workspace itself',
  attack: (world) => {
    world.put('ws/bwrap', `#!/bin/bash\n${OPEN}\n`, 0o755)
    const path = join(world.workspace, 'bwrap')
    const env = { ...process.env, PATH: `${world.workspace}:${process.env['PATH']}` }
    const sandbox = findSandbox(world.workspace, env)
    const real = bashTool({ workspace: world.workspace, env, sandbox, attended: false })
    const tool = world.defended ? real : untried(world, path)
    return world.run(tool, `echo evil > ${world.outside}/canary.txt`)
  },
  harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
}

/** Without any sandbox a person must say yes; where there is none, the answer is no, whatever rules say. */
const absent: Case = {
  name: 'runs a command where there is no sandbox and nobody to ask',
  attack: (world) => {
    const sandbox = { type: 'none', reason: 'none is here' } as const
    const real = bashTool({ workspace: world.workspace, sandbox, attended: false })
    const tool = world.defended ? real : { ...real, approval: () => 'auto' as const }
    const rules = [{ effect: 'allow' as const }]
    return world.call(
      [tool],
      'bash',
      { command: `echo evil > ${world.outside}/canary.txt` },
      { approvals: { policy: { rules } } },
    )
  },
  harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
}

const waved: Case = {
  name: 'runs a command where there is no sandbox and a rule that allows everything',
  attack: (world) => {
    const sandbox = { type: 'none', reason: 'none is here' } as const
    const real = bashTool({ workspace: world.workspace, sandbox, attended: true })
    const tool = world.defended ? real : { ...real, approval: () => 'ask' as const }
    const rules = [{ effect: 'allow' as const }]
    return world.call(
      [tool],
      'bash',
      { command: `echo evil > ${world.outside}/canary.txt` },
      { approvals: { policy: { rules } } },
    )
  },
  harmed: (world) => world.text('ws-evil/canary.txt') !== UNTOUCHED,
}

export const brokenWalls: Row = {
  row: 23,
  title: 'sandboxes that are missing or broken',
  cases: [
    trusting('a sandbox that confines nothing', () => program('open', OPEN)),
    trusting('a sandbox that fails', () => program('failing', 'echo "no namespaces" >&2; exit 1')),
    trusting('a sandbox that is not there', () => '/var/tmp/terret-no-such-bwrap'),
    trusting('a sandbox that dies at once', () => program('dying', 'kill -9 $$')),
    ...GAPS.map(gap),
    own,
    absent,
    waved,
  ],
}
