// Commands under policy rules: which words a shell would run, read from the text alone. Pure. To allow, a command must be
// nothing but words. To ask or deny it is read widely, and what cannot be read for certain may be anything.
import { ansi, plainWord, type Word } from '../shell/risk/words.ts'
import { unwrap, WRAPPERS } from '../shell/risk/wrappers.ts'

/** `maybe`: some of the command is only known when it runs, and what is known fits. */
export type Match = 'yes' | 'maybe' | 'no'

/** The words of a command that is nothing but words; null as soon as a shell would do more than split it. */
export function plainWords(command: string): readonly string[] | null {
  const words: string[] = []
  let at = 0
  while (at < command.length) {
    if (command[at] === ' ' || command[at] === '\t') {
      at += 1
      continue
    }
    const word = wordAt(command, at)
    // `NAME=value` before a command changes its environment: that is more than a word.
    if (word === null || (words.length === 0 && ASSIGNMENT.test(word.text))) return null
    words.push(word.text)
    at = word.end
  }
  return words.length > 0 ? words : null
}

const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/
const PLAIN = /[A-Za-z0-9_@%+=:,./^-]/

function wordAt(command: string, start: number): { readonly text: string; readonly end: number } | null {
  let text = ''
  let at = start
  while (at < command.length && command[at] !== ' ' && command[at] !== '\t') {
    const char = command[at] ?? ''
    if (char === "'" || char === '"') {
      const end = command.indexOf(char, at + 1)
      const inner = end < 0 ? null : command.slice(at + 1, end)
      // Within double quotes a shell still expands; a quoted line break is not a plain word.
      if (inner === null || inner.includes('\n') || (char === '"' && /[$`\\!]/.test(inner))) return null
      text += inner
      at = end + 1
    } else if (PLAIN.test(char)) {
      text += char
      at += 1
    } else return null
  }
  return { text, end: at }
}

/** Word by word; a last `*` stands for any further words, elsewhere it stands for exactly one. */
export function matchesWords(pattern: string, words: readonly string[]): boolean {
  const { fixed, open } = wantedIn(pattern)
  if (open ? words.length < fixed.length : words.length !== fixed.length) return false
  return fixed.every((word, i) => word === '*' || word === words[i])
}

type Wanted = { readonly fixed: readonly string[]; readonly open: boolean }

function wantedIn(pattern: string): Wanted {
  const wanted = pattern.split(/\s+/).filter((word) => word !== '')
  const open = wanted.at(-1) === '*'
  return { fixed: open ? wanted.slice(0, -1) : wanted, open }
}

/** Whether a shell that is given this command might run one that fits the pattern, behind whatever other words. */
export function mayRun(pattern: string, { runs, uncertain }: Reading): Match {
  const wanted = wantedIn(pattern)
  let found: Match = uncertain ? 'maybe' : 'no'
  for (const run of runs) {
    for (let at = 0; at < run.words.length; at++) {
      const match = fits(wanted, run, at)
      if (match === 'yes') return 'yes'
      if (match === 'maybe') found = 'maybe'
    }
  }
  return found
}

const UNKNOWN = '\0'

function fits({ fixed, open }: Wanted, { words, last }: Run, start: number): Match {
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
  const word = isFirst && !wanted.includes('/') ? baseOf(given) : given
  const from = word.indexOf(UNKNOWN)
  if (from < 0) return wanted === '*' || wanted === word ? 'yes' : 'no'
  if (wanted === '*') return 'maybe'
  // Whether a program of which nothing is known stands there is what `uncertain` says.
  if (isFirst && (word === UNKNOWN || (from === 0 && !wanted.endsWith(word.slice(word.lastIndexOf(UNKNOWN) + 1)))))
    return 'no'
  return wanted.startsWith(word.slice(0, from)) ? 'maybe' : 'no'
}

/** `\0` stands for what is only known when it runs. `last` is where a word stands last, and where one that is not known does. */
type Run = { readonly words: readonly string[]; readonly last: ReadonlyMap<string, number> }

/** What a shell might run by itself. */
export type Reading = {
  readonly runs: readonly Run[]
  /** A program may run of which the text does not give the name. */
  readonly uncertain: boolean
}

/** Texts within texts (`sh -c '…'`) are read too, up to so many times the command. */
const AGAIN_MAX = 4

/** Also inside quotes, substitutions, subshells and here-documents. In one pass over each text. */
export function readCommand(command: string): Reading {
  const runs: Run[] = []
  // A set is read in the order of its additions, also of those made while it is read.
  const texts = new Set([command])
  let left = AGAIN_MAX * command.length + 1000
  let uncertain = false
  let runsText = false
  for (const text of texts) {
    left -= text.length
    if (left < 0) return { runs, uncertain: true }
    const lexer = new Lexer(text)
    lexer.read()
    for (const words of lexer.runs) {
      runs.push({ words, last: lastOf(words) })
      runsText ||= words.some((word) => RUN_TEXT.has(baseOf(word)))
      // A quoted text is a command only to what runs texts; to others it is a message or a pattern.
      if ((text === command || runsText) && isUncertain(words)) uncertain = true
    }
    for (const inner of lexer.inner) texts.add(inner)
  }
  return { runs, uncertain }
}

function lastOf(words: readonly string[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>()
  for (const [i, word] of words.entries()) last.set(word.includes(UNKNOWN) ? UNKNOWN : word, i)
  return last
}

const RESERVED = new Set(['if', 'then', 'else', 'elif', 'do', 'while', 'until', '!', 'eval', 'function'])
const SHELLS = ['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'rbash', 'fish', 'csh', 'tcsh']
const RUN_TEXT = new Set([
  ...SHELLS,
  ...'eval trap env su runuser watch parallel flock script ssh find rebase'.split(' '),
])
/** They give a program another name. */
const RENAMES = new Set(['alias', 'hash', 'enable'])
const SCRIPTED = /^(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|osascript|pwsh)[\d.]*$/

/** Is the program unknown, or one that runs what is not in the text, or what is in another language? */
function isUncertain(words: readonly string[]): boolean {
  const at = programAt(words)
  const program = words[at]
  if (program === undefined) return false
  const name = baseOf(program)
  if (name.includes(UNKNOWN) || RENAMES.has(name)) return true
  const args = words.slice(at + 1)
  if (name === 'source' || name === '.') return args[0]?.includes(UNKNOWN) ?? false
  if (SCRIPTED.test(name)) return args.some((word) => /^-\w*[ceEr]$|^--(eval|print)\b|^-$/.test(word))
  if (!SHELLS.includes(name)) return false
  const first = args.find((word) => !/^[-+]/.test(word))
  return first === undefined ? !args.some((word) => /^--(version|help)$/.test(word)) : first.includes(UNKNOWN)
}

function baseOf(program: string): string {
  return program.slice(program.lastIndexOf('/') + 1)
}

/** Behind assignments, words of the grammar, and programs that only run another one. */
function programAt(words: readonly string[]): number {
  let at = 0
  let all: readonly Word[] | null = null
  for (let word = words[at]; word !== undefined; word = words[at]) {
    const wrapper = WRAPPERS.get(baseOf(word))
    if (ASSIGNMENT.test(word) || RESERVED.has(word)) at += 1
    else if (wrapper === undefined) return at
    else {
      all ??= words.map(plainWord)
      at = unwrap(wrapper, all, at + 1).at
    }
  }
  return at
}

/** Where a run goes on when what was opened in it is closed. */
type Open = { readonly close: ')' | '`' | '"'; readonly words: string[]; readonly word: string | null }

const BRACE_CHARACTERS_MAX = 100

/** One text, character by character. It knows quotes, expansions, redirections and what ends a command, and no more. */
class Lexer {
  readonly runs: string[][] = []
  /** Texts in the words that would be commands to a shell which is given them. */
  readonly inner: string[] = []
  readonly #text: string
  #at = 0
  #words: string[] = []
  /** Null between words. */
  #word: string | null = null
  /** The next word is where a redirection leads. */
  #target = false
  readonly #open: Open[] = []
  #backticks = 0

  constructor(text: string) {
    // A backslash at the end of a line joins it to the next.
    this.#text = text.replaceAll('\\\n', '').replaceAll(UNKNOWN, ' ')
  }

  read(): void {
    while (this.#at < this.#text.length) {
      if (this.#open.at(-1)?.close === '"') this.#quoted()
      else this.#plain()
    }
    while (this.#open.length > 0) this.#leave()
    this.#endRun()
  }

  #plain(): void {
    const char = this.#text.charAt(this.#at)
    const next = this.#text.charAt(this.#at + 1)
    if (/[\n;|()]/.test(char) || (char === '&' && next !== '>')) this.#operator(char)
    else if (/\s/.test(char)) this.#skip(() => this.#endWord())
    else if (char === '\\') this.#take(next, 2)
    else if (char === "'") this.#take(this.#upTo("'", 1))
    else if (char === '"') this.#enter('"', 1)
    else if (char === '`') this.#backtick()
    else if (char === '$') this.#dollar(next)
    else if (char === '<' || char === '>' || char === '&') this.#redirect(char, next)
    else if (char === '{' && /[\s]|^$/.test(next)) this.#skip(() => this.#endRun())
    else if (char === '}' && this.#word === null) this.#skip(() => this.#endRun())
    else if (char === '{') this.#brace()
    else if (char === '[' && this.#isTest(next)) this.#take(char, 1)
    else if (/[*?[]/.test(char)) this.#take(UNKNOWN, 1)
    else if (char === '#' && this.#word === null) this.#skip(() => this.#endRun())
    else this.#take(char, 1)
  }

  /** Within double quotes. */
  #quoted(): void {
    const char = this.#text.charAt(this.#at)
    const next = this.#text.charAt(this.#at + 1)
    if (char === '"') this.#skip(() => this.#leave())
    else if (char === '\\') this.#take(/[$`"\\]/.test(next) ? next : `\\${next}`, 2)
    else if (char === '`') this.#backtick()
    else if (char === '$' && next !== '"' && next !== "'") this.#dollar(next)
    else this.#take(char, 1)
  }

  #skip(act: () => void): void {
    this.#at += 1
    act()
  }

  #take(text: string, chars = 0): void {
    this.#word = (this.#word ?? '') + text
    this.#at += chars
  }

  /** The text up to this character, and behind it; to the end if it is missing. */
  #upTo(end: string, skipped: number): string {
    const from = this.#at + skipped
    const found = this.#text.indexOf(end, from)
    this.#at = found < 0 ? this.#text.length : found + end.length
    return this.#text.slice(from, found < 0 ? undefined : found)
  }

  #operator(char: string): void {
    this.#at += 1
    if (char === ')' && this.#open.at(-1)?.close === ')') this.#leave()
    else this.#endRun()
  }

  #enter(close: Open['close'], chars: number): void {
    this.#at += chars
    if (close === '"') {
      // The same word goes on: only its characters are read in another way.
      this.#open.push({ close, words: this.#words, word: null })
      this.#take('')
      return
    }
    this.#open.push({ close, words: this.#words, word: (this.#word ?? '') + UNKNOWN })
    if (close === '`') this.#backticks += 1
    this.#words = []
    this.#word = null
  }

  #leave(): void {
    const open = this.#open.pop()
    if (open === undefined || open.close === '"') return
    if (open.close === '`') this.#backticks -= 1
    this.#endRun()
    this.#words = open.words
    this.#word = open.word
  }

  #backtick(): void {
    if (this.#backticks === 0) return this.#enter('`', 1)
    while (this.#backticks > 0) this.#leave()
    this.#at += 1
  }

  #dollar(next: string): void {
    if (next === '(') return this.#enter(')', 2)
    if (next === "'") return this.#ansi()
    if (next === '"') return this.#skip(() => {})
    if (next === '{') {
      const inner = this.#upTo('}', 2)
      // `${x:-make deploy}`: what is given in place of nothing is text too.
      const [, given] = /^\w*:?[-=+]([^]+)$/.exec(inner) ?? []
      if (given !== undefined) this.inner.push(given)
      return this.#take(UNKNOWN)
    }
    const name = /^(\w+|[@*#?$!-])/.exec(this.#text.slice(this.#at + 1, this.#at + 100))?.[0]
    return name === undefined ? this.#take('$', 1) : this.#take(UNKNOWN, 1 + (/^\d/.test(name) ? 1 : name.length))
  }

  /** `[` and `[[` are programs. */
  #isTest(next: string): boolean {
    return this.#word === null ? /[\s[]/.test(next) : this.#word === '[' && /\s/.test(next)
  }

  #ansi(): void {
    const from = this.#at + 2
    let to = from
    while (to < this.#text.length && this.#text[to] !== "'") to += this.#text[to] === '\\' ? 2 : 1
    this.#at = to + 1
    this.#take(ansi(this.#text.slice(from, to)))
  }

  #redirect(char: string, next: string): void {
    if ((char === '<' || char === '>') && next === '(') return this.#enter(')', 2)
    // `2>` and `{fd}>`: the number is no word of the command.
    if (this.#word !== null && /^(\d+|\0)$/.test(this.#word)) this.#word = null
    this.#endWord()
    while (/[<>&|-]/.test(this.#text.charAt(this.#at))) this.#at += 1
    this.#target = true
  }

  /** `{a,b}` and `{1..3}` become several words. */
  #brace(): void {
    const [whole] = /^\{[^\s}]*\}/.exec(this.#text.slice(this.#at, this.#at + BRACE_CHARACTERS_MAX)) ?? []
    this.#take(UNKNOWN, whole?.length ?? 1)
  }

  #endWord(): void {
    const word = this.#word
    this.#word = null
    if (word === null) return
    if (this.#target) this.#target = false
    else if (word !== '') this.#words.push(word)
    const value = word.slice(ASSIGNMENT.exec(word)?.[0].length ?? 0)
    if (value !== this.#text && /[\s;|&<>()`$'"\\]/.test(value)) this.inner.push(value)
  }

  #endRun(): void {
    this.#endWord()
    this.#target = false
    const words = this.#words
    this.#words = []
    if (words.length === 0) return
    // What they read becomes further words.
    if (words.some((word) => /^(.*\/)?(xargs|parallel)$/.test(word))) words.push(UNKNOWN)
    this.runs.push(words)
  }
}
