// Logs and what commands print: errors, warnings and stack traces stay, what says nothing is counted. At most a hundred lines are
// shown. Without loss, only lines that repeat are counted.
import { noiseOf } from './command.ts'
import type { Shorten, Shorter } from './kind.ts'
import { type Choice, choiceOf, chosenText, cutLine, type Lines, linesOf } from './lines.ts'

/** A hundred with the footer and the number of lines of progress. */
const LINES_MAX = 98
const LINE_CHARS_MAX = 1_000
const ERRORS_MAX = 40
const WARNINGS_MAX = 10
const STACKS_MAX = 3
const STACK_LINES_MAX = 20
const HEAD_LINES = 5
const TAIL_LINES = 10
/** So many lines are shown where little stands out. */
const QUIET_LINES = 60
/** Of more lines than this only what stands out is looked for. */
const RULED_LINES_MAX = 20_000
/** Of more errors than these, kinds that only the middle has are not looked for. */
const FIRST_ERRORS = 4_000
const LAST_ERRORS = 1_000
const TEMPLATE_CHARS = 200

export const shortenLog: Shorten = (text, { lossless, hint }) => {
  return lossless ? withoutRepeats(text) : { text: signals(text, hint.command), lossy: true }
}

const SIGNAL =
  /[Ee]rror|ERR!|ERROR|[Ff]atal|FATAL|[Ff]ail(?:ed|ure|ing)|FAIL|[Ee]xception|[Pp]anic|CRITICAL|Traceback|✗|✘|×|not ok|\nE {3}|[Ww]arn|WARN/g
const WARNING = /[Ww]arn|WARN/
const SERIOUS =
  /[Ee]rror|ERR!|ERROR|[Ff]atal|FATAL|[Ff]ail|FAIL|[Ee]xception|[Pp]anic|CRITICAL|Traceback|[✗✘×]|not ok|^E {3}/
/** Lines that name a failure to say that there is none. */
const NONE_OF_IT =
  /\b(?:0|no) (?:errors?|failures?|failed|warnings?)\b|\b(?:errors?|failures?|failed|warnings?)[:=] ?0\b/i
/** What a tool left out itself, and says how to get. */
const GAP = /^\[.{1,60} left out\b/
/** Lines that belong to the error above them: indented, a line of source that a compiler quotes, or the cause. */
const STACK = /^(?:\s+\S|\d{1,7} +\||Caused by|Traceback|\S{1,80}Error\b)/
// oxlint-disable-next-line no-control-regex -- they are what it is about
const ANSI = /\u001B\[[0-9;?]{0,24}[A-Za-z]/g

function signals(colored: string, command: string | undefined): string {
  const text = colored.includes('\u001B') ? colored.replace(ANSI, '') : colored
  const all = linesOf(text)
  const noise = all.count <= RULED_LINES_MAX ? noiseOf(command) : null
  if (noise === null) return chosen(text, all, true)
  const told: string[] = []
  for (let i = 0; i < all.count; i++) {
    const line = plain(all.at(i))
    if (!noise(line)) told.push(line)
  }
  const left = all.count - told.length
  if (left === 0) return chosen(text, all, true)
  const rest = told.join('\n')
  return `${chosen(rest, linesOf(rest), false)}\n[${left} lines of progress left out]`
}

/** `numbered`: gaps say which lines of the original they are. */
function chosen(text: string, lines: Lines, numbered: boolean): string {
  const choice = choiceOf(lines.count, LINES_MAX)
  const found = signalsIn(text, lines)
  const counted: Counted = { counts: new Map(), repeats: new Uint8Array(lines.count) }
  const kinds = templatesOf(lines, found.errors, counted)
  const warnings = templatesOf(lines, found.warnings, counted)
  for (const line of [found.errors[0], found.errors.at(-1)]) if (line !== undefined) choice.take(line)
  takeGaps(text, lines, choice)
  // Few lines are shown whole. Of many, a line that says what a counted one says takes no room.
  const take = (line: number): void => {
    if (lines.count <= LINES_MAX || counted.repeats[line] !== 1) choice.take(line)
  }
  for (let i = 1; i <= TAIL_LINES; i++) take(lines.count - i)
  for (let i = 0; i < HEAD_LINES; i++) take(i)
  let stacks = 0
  for (const line of kinds.slice(0, ERRORS_MAX)) if (stacks < STACKS_MAX && takeStack(lines, line, choice)) stacks += 1
  for (const line of kinds.slice(0, ERRORS_MAX)) choice.take(line)
  for (const line of warnings.slice(0, WARNINGS_MAX)) choice.take(line)
  fill(lines.count, choice, take)
  const show = (line: number): string => {
    const times = counted.counts.get(line) ?? 1
    return `${cutLine(plain(lines.at(line)), LINE_CHARS_MAX)}${times > 1 ? ` (×${times})` : ''}`
  }
  return chosenText(lines, choice, show, numbered)
}

/** A line as a terminal would leave it: what came before a carriage return was written over. */
function plain(line: string): string {
  if (!line.includes('\r')) return line
  const kept = line.endsWith('\r') ? line.slice(0, -1) : line
  return kept.slice(kept.lastIndexOf('\r') + 1)
}

function signalsIn(text: string, lines: Lines): { readonly errors: number[]; readonly warnings: number[] } {
  const [errors, warnings]: [number[], number[]] = [[], []]
  SIGNAL.lastIndex = 0
  for (let found = SIGNAL.exec(text); found !== null; found = SIGNAL.exec(text)) {
    const { line, end } = lines.of(found[0].startsWith('\n') ? found.index + 1 : found.index)
    SIGNAL.lastIndex = Math.max(end, SIGNAL.lastIndex)
    const said = lines.at(line).slice(0, LINE_CHARS_MAX)
    if (NONE_OF_IT.test(said)) continue
    if (SERIOUS.test(said) || !WARNING.test(found[0])) errors.push(line)
    else warnings.push(line)
  }
  return { errors, warnings }
}

/** Numbers, with the hex digits after them, and hashes that begin with a letter. */
const NUMBERS = /\d[\da-fA-Fx]*|\b[a-fA-F][\da-fA-F]{7,}/g

/** How many lines there are of the kind of this line, and which lines only repeat such a line word for word. */
type Counted = { readonly counts: Map<number, number>; readonly repeats: Uint8Array }

/** The first line of each kind, where numbers and hashes make no other kind. */
function templatesOf(lines: Lines, found: readonly number[], { counts, repeats }: Counted): readonly number[] {
  const first = new Map<string, { readonly line: number; readonly said: string }>()
  const count = (line: number, mayBegin: boolean): void => {
    const said = lines.at(line)
    const template = said.slice(0, TEMPLATE_CHARS).replace(NUMBERS, '#')
    const known = first.get(template)
    if (known !== undefined) {
      counts.set(known.line, (counts.get(known.line) ?? 1) + 1)
      if (said === known.said) repeats[line] = 1
    } else if (mayBegin) first.set(template, { line, said })
  }
  const middle = Math.max(FIRST_ERRORS, found.length - LAST_ERRORS)
  for (const line of found.slice(0, FIRST_ERRORS)) count(line, true)
  for (const line of found.slice(middle)) count(line, true)
  for (const line of found.slice(FIRST_ERRORS, middle)) count(line, false)
  return [...first.values()].map(({ line }) => line)
}

function takeGaps(text: string, lines: Lines, choice: Choice): void {
  for (let at = text.indexOf(' left out'); at >= 0; at = text.indexOf(' left out', at + 1)) {
    const { line } = lines.of(at)
    if (GAP.test(lines.at(line)) && !choice.take(line)) return
  }
}

/** Takes an error and what follows and belongs to it. False: nothing does, and nothing is taken. */
function takeStack(lines: Lines, error: number, choice: Choice): boolean {
  const isStack = (line: number): boolean => line < lines.count && STACK.test(lines.at(line).slice(0, LINE_CHARS_MAX))
  if (!isStack(error + 1) || (!choice.take(error) && !choice.has(error))) return false
  for (let line = error + 1; line < error + STACK_LINES_MAX && isStack(line); line++) choice.take(line)
  return true
}

/** Few lines are shown whole. Of more, the beginning and the end in turn where there is room: two thirds for the beginning. */
function fill(count: number, choice: Choice, take: (line: number) => void): void {
  const most = count <= LINES_MAX ? LINES_MAX : QUIET_LINES
  let [head, tail] = [0, count - 1]
  for (let turn = 0; head <= tail && choice.size() < most; turn++) take(turn % 3 === 2 ? tail-- : head++)
}

const REPEATED = /\(×\d{1,9}\)$/m

/** Equal lines that follow each other, as one line with their number. Null where that could be read in two ways. */
function withoutRepeats(text: string): Shorter | null {
  if (REPEATED.test(text)) return null
  const shown: string[] = []
  let [last, times]: [string | null, number] = [null, 0]
  const flush = (): void => {
    if (last !== null) shown.push(times > 1 ? `${last} (×${times})` : last)
  }
  for (const line of text.split('\n')) {
    if (line === last) {
      times += 1
      continue
    }
    flush()
    ;[last, times] = [line, 1]
  }
  flush()
  return { text: shown.join('\n'), lossy: false }
}
