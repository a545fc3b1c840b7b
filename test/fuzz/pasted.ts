// Commands to paste and rows for a terminal, for any text: a real bash reads each quoted value as that value, a command is read with
// just these words, and what is shown of a text holds nothing that a terminal obeys.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { shownId, shownRow } from '../../src/view/clean.ts'
import { shellCommand, shellWord } from '../../src/view/shell-command.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = {
  readonly shellWord: typeof shellWord
  readonly shellCommand: typeof shellCommand
  readonly shownId: typeof shownId
  readonly shownRow: typeof shownRow
}

const SHELL = [
  "'",
  '"',
  '`',
  '$(id)',
  '$HOME',
  '${',
  '}',
  '\\',
  '!',
  '!!',
  '~',
  '~root',
  ':~',
  '*',
  '?',
  '[a]',
  '{a,b}',
]
const SIGNS = [
  ';',
  '&',
  '|',
  '<',
  '>',
  '(',
  ')',
  '#',
  '=',
  ',',
  '%',
  '^',
  ' ',
  '\t',
  '\n',
  '\r',
  '-',
  '--',
  '--yes',
  '-e',
]
const UNSEEN = [
  '\u001b[2J',
  '\u001b]0;x\u0007',
  '\u0008',
  '\u0085',
  '\u009b31m',
  '\u00ad',
  '\u200b',
  '\u202e',
  '\u2028',
]
const LETTERS = [
  'a',
  '0',
  '_',
  '.',
  '/',
  'é',
  '日',
  '👍',
  '\u0301',
  '\ufe0f',
  '\u3164',
  '\u00a0',
  '\u2800',
  '\ufeff',
  '\u{e0041}',
]

const text = (tape: Tape): string => tape.list(6, () => tape.pick([...SHELL, ...SIGNS, ...UNSEEN, ...LETTERS])).join('')
/** A shell takes long to start: it reads many texts at once, and only those of some cases. */
type Case = { readonly texts: readonly string[]; readonly isRead: boolean }
const cases = drawn((tape): Case => {
  return { isRead: tape.below(6) === 1, texts: [text(tape), ...tape.list(60, () => text(tape))] }
}, 300)

const real: Subject = { shellWord, shellCommand, shownId, shownRow }
const OBEYED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
const FLAGS = { by: { type: 'string' }, yes: { type: 'boolean' } } as const

export const pasted = target<Subject, Case>({
  name: 'pasted',
  real,
  cases,
  planted: {
    'a quote ends the word': { ...real, shellWord: (said) => `'${said}'` },
    'double quotes': { ...real, shellWord: (said) => `"${said.replaceAll('"', '\\"')}"` },
    'a tilde is plain': { ...real, shellWord: (said) => (/^[\w./:~-]+$/.test(said) ? said : shellWord(said)) },
    'what is not drawn is quoted as it is': {
      ...real,
      shellWord: (said) => `'${said.replaceAll("'", String.raw`'\''`)}'`,
    },
    'a value becomes a flag': {
      ...real,
      shellCommand: (parts, ...values) => String.raw({ raw: parts }, ...values.map(shellWord)),
    },
    'an id is shown as it is': { ...real, shownId: (said) => said },
    'a row has several': { ...real, shownRow: (said) => said.replaceAll('\u001b', '') },
  },
  check: (subject, { texts, isRead }) => {
    const words = texts.map(subject.shellWord)
    const commands = texts.map((said) => subject.shellCommand`terret approve ${said} 3.0 --by ${said} --yes`)
    for (const line of [...words, ...commands]) hold(!OBEYED.test(line), () => `not drawn: ${JSON.stringify(line)}`)
    for (const said of texts)
      for (const row of [subject.shownId(said), subject.shownRow(`a ${said} b`)])
        hold(!OBEYED.test(row), () => `obeyed by a terminal: ${JSON.stringify(row)}`)
    if (isRead) readByShell(texts, words, commands)
  },
})

function readByShell(texts: readonly string[], words: readonly string[], commands: readonly string[]): void {
  const print = String.raw`printf '%s\1' "$@"; printf '\2'`
  const script = [`set -- ${words.join(' ')}`, print, `terret() { ${print}; }`, ...commands].join('\n')
  const { stdout } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
  const [plain = '', ...runs] = stdout.split('\u0002')
  const read = plain.split('\u0001').slice(0, -1)
  for (const [at, said] of texts.entries()) {
    hold(read[at] === said, () => `${JSON.stringify(said)} was read as ${JSON.stringify(read[at])}`)
    const [, ...args] = (runs[at] ?? '').split('\u0001').slice(0, -1)
    const { values, positionals } = parsed(args)
    const good = positionals.join('\u0001') === `${said}\u00013.0` && values?.by === said && values.yes === true
    hold(good, () => `${JSON.stringify(commands[at])} was read as ${JSON.stringify(args)}`)
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS, allowPositionals: true })
  } catch {
    return { values: null, positionals: [] }
  }
}
