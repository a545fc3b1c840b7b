// The reader of shell, which rules on commands and the risk of a command share. The attacks of rows 115 and 116 run the same spellings
// with a real bash.
import { describe, expect, it } from 'vitest'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { judge, judgeCall, readCommands, type Rule } from '../../src/tools/policy/policy.ts'
import { readShell } from '../../src/tools/shell/risk/read-shell.ts'
import { classifyCommand } from '../../src/tools/shell/risk/classify-command.ts'
import { FOREIGN, PLAIN, SPELLINGS } from './shell-spellings.ts'

const filled = (spelling: string, command: string): string => spelling.replaceAll('CMD', command)
const action = (command: string) => ({ tool: 'bash', args: { command }, approval: 'ask' }) as const
const verdict = async (command: string, ...rules: Rule[]): Promise<string> =>
  (await judgeCall({ rules }, action(command))).type
const DENY: Rule = { effect: 'deny', command: 'make deploy *' }

describe('the reader of shell', () => {
  it.each([...SPELLINGS, ...FOREIGN])(
    'B-SHELL-1: finds the command in %j, so that a rule denies it',
    async (spelling) => {
      expect(await verdict(filled(spelling, 'make deploy'), DENY, { effect: 'allow' })).toBe('deny')
    },
  )

  it.each(SPELLINGS)('B-SHELL-2: finds a disaster in %j, or asks', async (spelling) => {
    const { level } = await classifyCommand(filled(spelling, 'rm -rf /'))
    expect(['blocked', 'needs_approval']).toContain(level)
  })

  it('B-SHELL-3: refuses a disaster that stands in the text, also behind a second "!" and behind xargs', async () => {
    for (const command of [
      '! ! rm -rf /',
      'echo rm -rf / | xargs env',
      'echo / | xargs rm -rf',
      'xargs rm -rf <<< /',
      'echo / | xargs -I{} rm -rf {}',
      'echo "rm -rf /" | xargs -I{} sh -c "{}"',
      "env -S'rm -rf' /",
      "env -S'rm\\_-rf\\_/'",
      '. <(echo rm -rf /)',
      'eval "$(echo rm -rf /)"',
      '$(echo rm -rf /)',
      'echo rm -rf / > >(sh)',
      "git -c alias.x='!rm -rf /' x",
      'cat <<EOF\n`rm -rf /`\nEOF',
      'coproc X { rm -rf /; }',
    ]) {
      expect([command, (await classifyCommand(command)).level]).toEqual([command, 'blocked'])
    }
    // What is read from elsewhere is not known.
    expect((await classifyCommand('cat list | xargs env')).level).toBe('needs_approval')
  })

  it.each(PLAIN)('B-SHELL-4: does not let a rule that allows the first program allow %j', async (spelling) => {
    const command = filled(spelling, 'make deploy')
    const program = command.slice(0, command.indexOf(' '))
    expect(await verdict(command, { effect: 'allow', command: `${program} *` })).toBe('ask')
  })

  it('B-SHELL-4: lets a rule allow a text whose every program it names', async () => {
    const both: Rule = { effect: 'allow', command: ['timeout *', 'make test *'] }
    expect(await verdict('timeout 5 make test', both)).toBe('allow')
    expect(await verdict('timeout 5 make deploy', both)).toBe('ask')
    expect(await verdict('timeout 5 make test', { effect: 'allow', command: 'make *' })).toBe('ask')
    expect(await verdict("find . -name '*.ts'", { effect: 'allow', command: 'find *' })).toBe('allow')
    expect(await verdict('git checkout -', { effect: 'allow', command: 'git *' })).toBe('allow')
    expect(await verdict('bash scripts/check.sh', { effect: 'allow', command: 'bash *' })).toBe('allow')
  })

  it.each([
    'echo $(',
    "echo 'open",
    'if ls',
    'ls ;; ls',
    '$x',
    'ma*e x',
    'eval "$x"',
    'source "$x"',
    'bash',
    'curl x | sh',
    'python3 -',
    'alias x=y',
    'hash -p /bin/ls x',
    'BASH_ENV=x ls',
    'echo ${x@P}',
    'ls \u0001',
  ])(
    'B-SHELL-5: says that %j cannot be read whole, so that it is asked about under a rule that denies another',
    async (command) => {
      expect((await readShell(command)).whole).toBe(false)
      expect(await verdict(command, { effect: 'deny', command: 'make deploy *' }, { effect: 'allow' })).toBe('ask')
      expect(await verdict(command, { effect: 'allow', command: '*' })).toBe('ask')
    },
  )

  it('B-SHELL-6: a command that was not read is allowed by no rule, and asked about where one would be denied', () => {
    const ls = { ...action('ls'), approval: 'ask' } as const
    expect(judge({ rules: [{ effect: 'allow', command: 'ls' }] }, ls).type).toBe('ask')
    expect(judge({ rules: [DENY, { effect: 'allow' }] }, ls).type).toBe('ask')
    expect(judge({ rules: [{ effect: 'ask', command: 'x' }] }, { ...ls, approval: 'auto' }).type).toBe('ask')
  })

  it('B-SHELL-7: is loaded only for a call with a command that a rule looks at', () => {
    expect(readCommands({ rules: [{ effect: 'deny', tool: 'bash' }] }, { command: 'ls' })).toBeNull()
    expect(readCommands({ rules: [DENY] }, { path: 'x' })).toBeNull()
    expect(readCommands({ rules: [DENY] }, { command: 'x'.repeat(100_001) })).toBeNull()
    const index = new URL('../../.build/src/index.js', import.meta.url).href
    const script = `
      import { createRequire, syncBuiltinESMExports } from 'node:module'
      const fs = createRequire(import.meta.url)('node:fs/promises')
      const files = []
      const read = fs.readFile
      fs.readFile = (path, ...more) => (files.push(String(path)), read(path, ...more))
      syncBuiltinESMExports()
      const { judgeCall } = await import(${JSON.stringify(index)})
      const ask = (rules, args) => judgeCall({ rules }, { tool: 'bash', args, approval: 'auto' })
      await ask([{ effect: 'deny', tool: 'x' }], { command: 'ls' })
      const before = files.filter((file) => file.endsWith('.wasm')).length
      await ask([{ effect: 'deny', command: 'x' }], { command: 'ls' })
      console.log(before, files.filter((file) => file.endsWith('.wasm')).length)`
    const cwd = join(import.meta.dirname, '../..')
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd,
      encoding: 'utf8',
    })
    expect([stdout.trim(), stderr]).toEqual(['0 2', ''])
  })
})
