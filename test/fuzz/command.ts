// Commands as a shell reads them, built from pieces whose meaning is known: what the words are, and whether anything but
// words is in it. The oracle of command rules; it reads no command.
import type { Tape } from './tape.ts'

export type Command = {
  readonly text: string
  /** The words a shell would split it into; null when it would do anything else. */
  readonly words: readonly string[] | null
  /** Words that stand in the text in a row where a shell may run them, whatever is around them. */
  readonly runs: readonly (readonly string[])[]
}

export const VOCABULARY = ['git', 'push', 'status', 'echo', 'rm', '-f', 'a.txt', 'X=1', 'a/b']

/** Quotes that change nothing about a word. */
const QUOTES: readonly ((word: string) => string)[] = [
  (word) => word,
  (word) => word,
  (word) => `'${word}'`,
  (word) => `"${word}"`,
  (word) => `${word.slice(0, 1)}'${word.slice(1)}'`,
]

/** Words in which a shell sees more than a word. */
const ACTIVE = [
  '$HOME',
  '${HOME}',
  '$(id)',
  '`id`',
  '"$(id)"',
  '"`id`"',
  '"$HOME"',
  '"a\\$b"',
  '$((1+1))',
  '<(id)',
  '>(id)',
  "$'a'",
  '$"a"',
  '~',
  '~root',
  '*.txt',
  'a?',
  '[ab]',
  '{a,b}',
  '!!',
  '"!x"',
  '\\a',
  'a\\ b',
  '#',
  "'open",
  '"open',
  '"a\nb"',
  "'a\nb'",
  '$',
  '"$"',
]
const OPERATORS = [
  ';',
  '&&',
  '||',
  '|',
  '&',
  '|&',
  '\n',
  '\r',
  '>',
  '>>',
  '<',
  '2>',
  '&>',
  '<<EOF',
  '<<<',
  '>|',
  '(',
  ')',
  '{ ',
  '; }',
  ';;',
  '!',
  '\u00a0',
  '\v',
]
/** Around a command, and still running it. */
const AROUND: readonly ((text: string) => string)[] = [
  (text) => `true; ${text}`,
  (text) => `${text}; true`,
  (text) => `true && ${text}`,
  (text) => `false || ${text}`,
  (text) => `yes | ${text}`,
  (text) => `(${text})`,
  (text) => `{ ${text}; }`,
  (text) => `echo $(${text})`,
  (text) => `echo "$(${text})"`,
  (text) => `echo \`${text}\``,
  (text) => `true\n${text}`,
  (text) => `${text} &`,
  (text) => `if ${text}\nthen true; fi`,
]
/** Before a command of words, and still running it. */
const BEFORE = ['sudo', 'env', 'nohup', 'time', 'exec', 'X=1', 'A=1 B=2', ' X=1']

export function command(tape: Tape): Command {
  const words = tape.list(4, () => tape.pick(VOCABULARY), 1)
  const assigns = /^[A-Za-z_]\w*=/.test(words[0] ?? '')
  switch (tape.below(5)) {
    case 0: {
      const gap = tape.pick([' ', '  ', '\t'])
      const text = tape.pick(['', ' ']) + words.map((word) => tape.pick(QUOTES)(word)).join(gap) + tape.pick(['', ' '])
      return { text, words: assigns ? null : words, runs: [] }
    }
    case 1:
      return {
        text: words.toSpliced(tape.below(words.length + 1), 0, tape.pick(ACTIVE)).join(' '),
        words: null,
        runs: [],
      }
    case 2: {
      const text = words
        .toSpliced(tape.below(words.length + 1), 0, tape.pick(OPERATORS))
        .join(tape.pick([' ', ' ', '']))
      return { text: OPERATORS.some((one) => text.includes(one)) ? text : `${text};`, words: null, runs: [] }
    }
    case 3:
      return { text: tape.pick(AROUND)(words.join(' ')), words: null, runs: [words] }
    default: {
      const before = tape.pick(BEFORE)
      const text = `${before} ${words.join(' ')}`
      return { text, words: before.includes('=') ? null : text.split(' '), runs: [words] }
    }
  }
}
