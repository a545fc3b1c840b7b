// Matching costs what the text is long. Inputs here would take minutes if anything looked at them more often than once.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { matchesPathAnywhere, matchesText } from '../../src/tools/policy/pattern.ts'
import { mayRun } from '../../src/tools/policy/command-pattern.ts'
import { judge, type Rule } from '../../src/tools/policy/policy.ts'
import { readShell } from '../../src/tools/shell/risk/read-shell.ts'
import { one, tool } from './admitting.ts'

const verdict = (rule: Rule, args: Parameters<typeof judge>[1]['args']) =>
  judge({ rules: [rule] }, { tool: 'bash', args, approval: 'auto' })

const gateOf = (text: string) => one(tool(z.looseObject({})), text).gate

const LONG = 400_000

describe('matching', () => {
  it.each([
    ['segments', () => matchesPathAnywhere('secrets/**/x', 'a/'.repeat(LONG))],
    ['segments that begin the pattern', () => matchesPathAnywhere('**/a/**/b', 'a/'.repeat(LONG))],
    ['stars', () => matchesText('*a*a*a*b', 'a'.repeat(LONG))],
  ])('B-MATCH-1: reads a path or text of many %s once', (_name, match) => {
    expect(match()).toBe(false)
  })

  it.each([
    'a ',
    'git ',
    'git -a ',
    'env ',
    'X=1 ',
    '$(',
    '`',
    '$(`',
    '"',
    "'",
    '\\',
    '{',
    '{a',
    '${',
    '<',
    '<(',
    '[',
    '*',
    "$'",
    '"$(',
    ';',
    '$x',
    "sh -c '",
  ])('B-MATCH-1: reads a command of many %j once', async (piece) => {
    // The longest command that rules read.
    const reading = await readShell(piece.repeat(100_000 / piece.length), { mentions: true })
    expect(mayRun(['make deploy *'], reading)).not.toBe('yes')
    expect(mayRun(['git push *'], reading)).not.toBe('yes')
  })

  it('B-MATCH-1: reads a long name of a field and a long number once', () => {
    const rule = { effect: 'deny', path: 'x' } as const
    expect(verdict(rule, { [`${'A'.repeat(LONG)}!`]: 'a' }).type).toBe('allow')
    expect(verdict(rule, { to: `${'1.'.repeat(2000)}!` }).type).toBe('allow')
  })

  it('B-MATCH-2: denies a path or command that is too long where a rule would have to read it, and says what is too long', () => {
    expect(verdict({ effect: 'deny', path: 'secrets/**' }, { path: 'a/'.repeat(8000) })).toEqual({
      type: 'deny',
      reason:
        'Tool "bash" is denied by policy: a path in it has 16000 characters, and rules read at most 4096. Use a shorter path.',
    })
    expect(verdict({ effect: 'allow', command: 'ls *' }, { command: 'ls '.repeat(50_000) })).toEqual({
      type: 'deny',
      reason:
        'Tool "bash" is denied by policy: the command has 150000 characters, and rules read at most 100000. Put it into a file.',
    })
    const many = verdict({ effect: 'deny', path: 'x' }, { files: Array.from({ length: 10_001 }, () => 'a') })
    expect(many).toMatchObject({ type: 'deny', reason: expect.stringContaining('it names 10001 paths') as string })
    // Without such a rule the tool says what is too long for it.
    expect(verdict({ effect: 'deny', tool: 'other' }, { path: 'a/'.repeat(8000) }).type).toBe('allow')
  })

  it('B-MATCH-3: refuses arguments with too many characters or values, and says so', () => {
    const keys = `{${Array.from({ length: 300_000 }, (_, i) => `"k${i}":1`).join()}}`
    for (const [args, said] of [
      [keys, 'more than 100000 values'],
      [`{"list":[${'1,'.repeat(300_000)}1]}`, 'more than 100000 values'],
      [`{"text":"${'x'.repeat(16_000_000)}"}`, '16000011 characters'],
    ] as const) {
      const gate = gateOf(args)
      expect(gate).toMatchObject({ type: 'refuse', failure: { kind: 'InvalidInput' } })
      expect(JSON.stringify(gate)).toContain(said)
    }
    expect(gateOf(`{"text":"${'x'.repeat(1_000_000)}"}`)).toBeUndefined()
  })
})
