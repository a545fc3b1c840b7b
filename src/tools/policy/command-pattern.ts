// Patterns of command rules against what the reader of shell found in a command. Pure. To allow, every program that the text runs
// must fit; to ask or deny, one that might run is enough.
import type { ShellReading } from '../shell/risk/read.ts'
import type { Run } from '../shell/risk/call.ts'
import { UNKNOWN, type Word } from '../shell/risk/words.ts'

/** `maybe`: some of the command is only known when it runs, and what is known fits. */
export type Match = 'yes' | 'maybe' | 'no'

/** Word by word; a last `*` stands for any further words, elsewhere it stands for exactly one. */
export function matchesWords(pattern: string, words: readonly string[], from = 0): boolean {
  const { fixed, open } = wantedIn(pattern)
  const count = words.length - from
  if (open ? count < fixed.length : count !== fixed.length) return false
  return fixed.every((word, i) => word === '*' || word === words[from + i])
}

/** Whether the text is nothing but words, was read whole, and each program in it fits one of the patterns. */
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

type Wanted = { readonly fixed: readonly string[]; readonly open: boolean }

function wantedIn(pattern: string): Wanted {
  const wanted = pattern.split(/\s+/).filter((word) => word !== '')
  const open = wanted.at(-1) === '*'
  return { fixed: open ? wanted.slice(0, -1) : wanted, open }
}

/** Whether a shell that is given this command might run one that fits one of the patterns, behind whatever other words. */
export function mayRun(patterns: readonly string[], { runs, whole }: Pick<ShellReading, 'runs' | 'whole'>): Match {
  const all = patterns.map(wantedIn)
  let found: Match = whole ? 'no' : 'maybe'
  for (const run of runs.map(wordsOf)) {
    for (const wanted of all) {
      for (let at = 0; at < run.words.length; at++) {
        const match = fits(wanted, run, at)
        if (match === 'yes') return 'yes'
        if (match === 'maybe') found = 'maybe'
      }
    }
  }
  return found
}

/** `last` is where a word stands last, and where one that is not known does. */
type Words = { readonly words: readonly string[]; readonly last: ReadonlyMap<string, number> }

function wordsOf({ words: given }: Run): Words {
  const words = given.map(textOf).filter((word) => word !== '')
  const last = new Map<string, number>()
  for (const [i, word] of words.entries()) last.set(word.includes(UNKNOWN) ? UNKNOWN : word, i)
  return { words, last }
}

/** What a pattern of file names or braces becomes is only known when it runs. */
function textOf({ text, pattern }: Word): string {
  return pattern ? text.replace(/\{[^}]*\}?|\[[^\]]*\]?|[*?]/g, UNKNOWN) : text
}

function fits({ fixed, open }: Wanted, { words, last }: Words, start: number): Match {
  let found: Match = 'yes'
  let at = start
  for (const [i, wanted] of fixed.entries()) {
    const given = words[at]
    if (given === undefined) return 'no'
    // `git -C folder push`: which of these words are values of options is not known here.
    if (i === 1 && given.startsWith('-') && wanted !== given && wanted !== '*')
      return Math.max(last.get(wanted) ?? 0, last.get(UNKNOWN) ?? 0) > at ? 'maybe' : 'no'
    at += 1
    const match = fitsWord(wanted, given, i === 0)
    if (match === 'no') return 'no'
    if (match === 'maybe') found = 'maybe'
    // The rest may be in it: an expansion can become any number of words.
    if (match === 'maybe' && given.endsWith(UNKNOWN)) return 'maybe'
  }
  if (open || at === words.length) return found
  return words.at(-1)?.includes(UNKNOWN) ? 'maybe' : 'no'
}

function fitsWord(wanted: string, given: string, isFirst: boolean): Match {
  // `/usr/bin/make` is `make`.
  const word = isFirst && !wanted.includes('/') ? given.slice(given.lastIndexOf('/') + 1) : given
  const from = word.indexOf(UNKNOWN)
  if (from < 0) {
    if (wanted === '*' || wanted === word) return 'yes'
    // `-Smake`: how many letters of it are options is not known here.
    return isFirst && /^-\w/.test(word) && word.length > wanted.length + 1 && word.endsWith(wanted) ? 'maybe' : 'no'
  }
  if (wanted === '*') return 'maybe'
  // Whether a program of which nothing is known stands there is what `whole` says.
  if (isFirst && (word === UNKNOWN || (from === 0 && !wanted.endsWith(word.slice(word.lastIndexOf(UNKNOWN) + 1)))))
    return 'no'
  return wanted.startsWith(word.slice(0, from)) ? 'maybe' : 'no'
}
