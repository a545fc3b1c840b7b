// Rows 115 and 116: everyday spellings of bash that slip past command rules and past the look at how risky a command is.
import { spawn } from 'node:child_process'
import { z } from 'zod'
import { defineTool, type Rule, type Tool } from '../../src/index.ts'
import type { Approval } from '../../src/tools/core/tool.ts'
import { classifyCommand } from '../../src/tools/shell/risk/classify-command.ts'
import { FOREIGN, PLAIN, SPELLINGS } from '../tools/shell-spellings.ts'
import type { Case, Row } from './case.ts'
import { sleep, type World } from './world.ts'

/** Programs that only write down that they ran. Those that change the user elsewhere run the rest of their words here. */
const RUN_REST = '#!/bin/sh\nwhile :; do case $1 in -*) shift;; me) shift;; *) break;; esac; done\nexec env "$@"\n'

function programsIn(world: World): string {
  for (const name of ['make', 'shutdown']) world.put(`bin/${name}`, '#!/bin/sh\necho "$@" >> "$BIN/ran"\n', 0o755)
  for (const name of ['sudo', 'doas', 'busybox']) world.put(`bin/${name}`, RUN_REST, 0o755)
  return `${world.root}/bin`
}

/** A shell of the user's own, without walls: only the rules and the approval stand before it. */
function openShell(world: World, approval: (command: string) => Approval | Promise<Approval>): Tool {
  const bin = programsIn(world)
  return defineTool({
    name: 'shell',
    description: 'shell',
    input: z.object({ command: z.string() }),
    approval: ({ command }) => approval(command),
    execute: ({ command }) =>
      new Promise<string>((resolve) => {
        const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}`, BIN: bin, HOME: world.home }
        const child = spawn('timeout', ['-k', '1', '20', 'bash', '-c', command], { cwd: world.workspace, env })
        child.stdin.on('error', () => {})
        child.stdin.end()
        child.stdout.resume()
        child.stderr.resume()
        child.on('close', () => resolve('done'))
      }),
  })
}

/** Some spellings leave the command running in the background. */
async function ran(world: World): Promise<boolean> {
  for (let i = 0; i < 20 && !world.defended && !world.has('bin/ran'); i++) await sleep(25)
  return world.has('bin/ran')
}

/** The program at the beginning is allowed: by a rule, or by the beginning of the text as lists often do. */
function pastAllow(spelling: string): Case {
  const command = spelling.replaceAll('CMD', 'make deploy')
  const [program = ''] = command.split(' ')
  return {
    name: `is allowed ${program}, and runs ${JSON.stringify(command)}`,
    attack: (world) => {
      const rules: readonly Rule[] = [{ effect: 'allow', tool: 'shell', command: `${program} *` }]
      const tool = openShell(world, (text) => (!world.defended && text.startsWith(`${program} `) ? 'auto' : 'ask'))
      return world.call([tool], 'shell', { command }, { approvals: { policy: { rules: world.defended ? rules : [] } } })
    },
    harmed: ran,
  }
}

/** The command is denied, or asked about: by a rule, or where it begins a line or follows an operator, as lists often do. */
function pastRule(effect: 'deny' | 'ask', spelling: string): Case {
  const command = spelling.replaceAll('CMD', 'make deploy')
  return {
    name: `has a rule that ${effect === 'deny' ? 'denies' : 'asks about'} it, and runs ${JSON.stringify(command)}`,
    attack: (world) => {
      const rules: readonly Rule[] = [{ effect, tool: 'shell', command: 'make deploy *' }, { effect: 'allow' }]
      const tool = openShell(world, (text) => (world.defended || !text.startsWith('make deploy') ? 'auto' : 'ask'))
      return world.call([tool], 'shell', { command }, { approvals: { policy: { rules: world.defended ? rules : [] } } })
    },
    harmed: ran,
  }
}

/** A disaster is refused or asked about: as the reader sees it, or by the beginning of the text. */
function pastRisk(spelling: string): Case {
  const command = spelling.replaceAll('CMD', 'shutdown now')
  return {
    name: `stops the machine by ${JSON.stringify(command)}`,
    attack: (world) => {
      const tool = openShell(world, async (text) => {
        if (!world.defended) return text.startsWith('shutdown') ? 'never' : 'auto'
        const { level } = await classifyCommand(text)
        return level === 'blocked' ? 'never' : level === 'needs_approval' ? 'ask' : 'auto'
      })
      return world.call([tool], 'shell', { command })
    },
    harmed: ran,
  }
}

/** A program in plain letters at the beginning, which a rule can name. */
const named = (spelling: string): boolean => /^(?!make |CMD)[a-z0-9]+ /.test(spelling)

export const pastAllowRules: Row = {
  row: 115,
  title: 'spellings of bash that slip past rules that allow',
  width: 8,
  cases: [...new Set([...PLAIN, ...SPELLINGS.filter(named).filter((_, i) => i % 3 === 0), ...FOREIGN])].map(pastAllow),
}

/** Spellings in which a disaster is hard to see. */
const TRICKY = /^! !|xargs|0<<<|trap --|\\`|[%#^]\$|'a\[/

export const pastDenyRules: Row = {
  row: 116,
  title: 'spellings of bash that slip past rules that ask or deny, and past the look at the risk',
  width: 8,
  cases: [
    ...[...SPELLINGS, ...FOREIGN].map((spelling, i) => pastRule(i % 4 === 0 ? 'ask' : 'deny', spelling)),
    ...SPELLINGS.filter((spelling) => TRICKY.test(spelling)).map(pastRisk),
  ],
}
