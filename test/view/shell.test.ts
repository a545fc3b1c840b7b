// What is pasted into a shell, and what reaches a terminal.
import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { shownId, shownRow } from '../../src/view/clean.ts'
import { shellCommand, shellWord } from '../../src/view/shell-command.ts'

const ODD = [
  '',
  '-a',
  '~',
  '~root',
  'a:~b',
  '$(id)',
  '`id`',
  "a'b",
  'a"b',
  'a b',
  'a\nb',
  '\u001b[2J',
  '\u202eabc',
  'a!b',
  '!!',
]
ODD.push(
  '\\',
  "a'\n!\\",
  'é',
  '日本',
  '\u200b',
  'a;b',
  'a|b',
  '*',
  '?',
  '[a]',
  '{a,b}',
  '#',
  '&',
  '\t',
  '\u00a0',
  '\u2028',
)

it('B-ID-6: a quoted word is the same word to a shell, and shows nothing that is not drawn', () => {
  const said = execFileSync('bash', ['-c', `printf '%s\\0' ${ODD.map(shellWord).join(' ')}`], { encoding: 'utf8' })
  expect(said.split('\0').slice(0, -1)).toEqual(ODD)
  for (const text of ODD) expect(shellWord(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(['1a2b3c4d', '1a2b3c4d~3.0', 'a_b.c:d'].map(shellWord)).toEqual(['1a2b3c4d', '1a2b3c4d~3.0', 'a_b.c:d'])
})

it('B-ID-6: a value of a command to paste is never read as a flag', () => {
  const id = 'abc'
  expect(shellCommand`terret approve ${id} ${'3.0'} --resume`).toBe('terret approve abc 3.0 --resume')
  const dashed = '--yes'
  expect(shellCommand`terret approve ${dashed} ${'3.0'} --usd 1 --resume`).toBe(
    'terret approve --usd 1 --resume -- --yes 3.0',
  )
  expect(shellCommand`approve ${dashed}`).toBe('approve -- --yes')
  expect(shellCommand`terret doctor --session ${dashed}`).toBe('terret doctor --session=--yes')
  expect(shellCommand`run --continue --session ${dashed} TASK`).toBe('run --continue --session=--yes TASK')
  expect(shellCommand`export ${'a b'} --out report-${'a b'}`).toBe("export 'a b' --out report-'a b'")
})

it('B-ID-5: an id and a row move no cursor, hide nothing and begin no other row', () => {
  expect(shownId('a\nb\u001b[2J\u202e é')).toBe('a\\u{a}b\\u{1b}[2J\\u{202e}␣\\u{e9}')
  expect(shownId('1a2b3c4d~3.0')).toBe('1a2b3c4d~3.0')
  expect(shownId('x'.repeat(1_000))).toHaveLength(200 + '… (1000 characters)'.length)
  expect(shownRow('\u001b[31mred\u001b[0m\nx\u001b[2J\r')).toBe('\u001b[31mred\u001b[0m ⏎ x\\u{1b}[2J\\u{d}')
})
