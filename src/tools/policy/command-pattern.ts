// Matches the patterns of command rules with what the shell reader found in a command. Pure. To allow, every program
// that the text runs must fit; to ask or deny, one that might run is enough.
import type { ShellReading } from '../shell/risk/read-shell.ts'
import type { ProgramRun } from '../shell/risk/judge-call.ts'
import { UNKNOWN_PART, type ShellWord } from '../shell/risk/shell-words.ts'

/** `maybe`: a part of the command is known only at run time, and the known part fits. */
export type CommandMatch = 'yes' | 'maybe' | 'no'

/** Compares word by word. A last `*` stands for any further words, elsewhere `*` stands for exactly one. */
export function matchesWords(pattern: string, words: readonly string[], from = 0): boolean {
  const { fixed, open } = parseWordPattern(pattern)
  const count = words.length - from
  if (open ? count < fixed.length : count !== fixed.length) return false
  return fixed.every((word, i) => word === '*' || word === words[from + i])
}

/** Whether the text is plain words, was read completely, and each program in it fits one of the patterns. */
export function runsOnly(
  patterns: readonly string[],
  { runs, whole, plain }: Pick<ShellReading, 'runs' | 'whole' | 'plain'>,
): boolean {
  if (!plain || !whole || runs.length === 0) return false
  return runs.every(({ words, programs }) => {
    const texts = words.map(({ text }) => text)
    return programs.every((at) => patterns.some((pattern) => matchesWords(pattern, texts, at)))
  })
}

type WordPattern = { readonly fixed: readonly string[]; readonly open: boolean }

function parseWordPattern(pattern: string): WordPattern {
  const wanted = pattern.split(/\s+/).filter((word) => word !== '')
  const open = wanted.at(-1) === '*'
  return { fixed: open ? wanted.slice(0, -1) : wanted, open }
}

/** Whether a shell with this command might run a program that fits one of the patterns, whatever words precede it. */
export function mayRun(
  patterns: readonly string[],
  { runs, whole }: Pick<ShellReading, 'runs' | 'whole'>,
): CommandMatch {
  const all = patterns.map(parseWordPattern)
  let found: CommandMatch = whole ? 'no' : 'maybe'
  for (const run of runs.map(commandWords)) {
    for (const wanted of all) {
      for (let at = 0; at < run.words.length; at++) {
        const match = fitsAt(wanted, run, at)
        if (match === 'yes') return 'yes'
        if (match === 'maybe') found = 'maybe'
      }
    }
  }
  return found
}

/** `last` holds the last position of each word, and of unknown words. */
type CommandWords = { readonly words: readonly string[]; readonly last: ReadonlyMap<string, number> }

function commandWords({ words: given }: ProgramRun): CommandWords {
  const words = given.map(wordText).filter((word) => word !== '')
  const last = new Map<string, number>()
  for (const [i, word] of words.entries()) last.set(word.includes(UNKNOWN_PART) ? UNKNOWN_PART : word, i)
  return { words, last }
}

/** The result of a file name pattern or of braces is known only at run time. */
function wordText({ text, pattern }: ShellWord): string {
  return pattern ? text.replace(/\{[^}]*\}?|\[[^\]]*\]?|[*?]/g, UNKNOWN_PART) : text
}

function fitsAt({ fixed, open }: WordPattern, { words, last }: CommandWords, start: number): CommandMatch {
  let found: CommandMatch = 'yes'
  let at = start
  for (const [i, wanted] of fixed.entries()) {
    const given = words[at]
    if (given === undefined) return 'no'
    // `git -C folder push`: it is not known here which of these words are values of options.
    if (i === 1 && given.startsWith('-') && wanted !== given && wanted !== '*')
      return Math.max(last.get(wanted) ?? 0, last.get(UNKNOWN_PART) ?? 0) > at ? 'maybe' : 'no'
    at += 1
    const match = fitsWord(wanted, given, i === 0)
    if (match === 'no') return 'no'
    if (match === 'maybe') found = 'maybe'
    // The remaining words may be in it: an expansion can become any number of words.
    if (match === 'maybe' && given.endsWith(UNKNOWN_PART)) return 'maybe'
  }
  if (open || at === words.length) return found
  return words.at(-1)?.includes(UNKNOWN_PART) ? 'maybe' : 'no'
}

function fitsWord(wanted: string, given: string, isFirst: boolean): CommandMatch {
  // `/usr/bin/make` is `make`.
  const word = isFirst && !wanted.includes('/') ? given.slice(given.lastIndexOf('/') + 1) : given
  const from = word.indexOf(UNKNOWN_PART)
  if (from < 0) {
    if (wanted === '*' || wanted === word) return 'yes'
    // `-Smake`: it is not known here how many of its letters are options.
    return isFirst && /^-\w/.test(word) && word.length > wanted.length + 1 && word.endsWith(wanted) ? 'maybe' : 'no'
  }
  if (wanted === '*') return 'maybe'
  // `whole` says whether a completely unknown program may stand there.
  if (
    isFirst &&
    (word === UNKNOWN_PART || (from === 0 && !wanted.endsWith(word.slice(word.lastIndexOf(UNKNOWN_PART) + 1))))
  )
    return 'no'
  return wanted.startsWith(word.slice(0, from)) ? 'maybe' : 'no'
}
