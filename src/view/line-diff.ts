// A small unified diff of two texts, for people and models to read. Not for patching: very different texts become one
// block, because a perfect diff is not worth its time here.

const CONTEXT = 3
/** Above this many comparisons the changed middle is shown as a whole, old then new. */
const CELLS_MAX = 4_000_000

export type AlignedLine = { readonly mark: ' ' | '-' | '+'; readonly text: string }
/** One line of a difference. */
export type DiffLine = {
  /** `-` is removed, `+` is added, a blank is unchanged. `@` begins a hunk; a backslash: the line before has no newline. */
  readonly mark: AlignedLine['mark'] | '@' | '\\'
  /** The line without its mark. */
  readonly text: string
}

/** The difference of two texts in the unified format. */
export function diff(path: string, before: string, after: string): string {
  if (before === after) return ''
  const lines = diffLines(before, after).map(({ mark, text }) => mark + text)
  return [`--- ${path}`, `+++ ${path}`, ...lines].join('\n')
}

/** The hunks, line by line. Empty for equal texts. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  return hunksOf(alignLines(linesOf(before), linesOf(after)))
}

function linesOf(text: string): readonly string[] {
  if (text === '') return []
  const lines = text.split('\n')
  const last = lines.pop() ?? ''
  return last === '' ? lines : [...lines, `${last}${UNENDED}`]
}

/** Marks a last line without a newline: no other line contains a line break. */
const UNENDED = '\n'

/** All lines of both texts: the common beginning and end are matched, and only the middle is compared. */
export function alignLines(before: readonly string[], after: readonly string[]): readonly AlignedLine[] {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head += 1
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1
  const same = (text: string): AlignedLine => ({ mark: ' ', text })
  return [
    ...before.slice(0, head).map(same),
    ...alignMiddle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ]
}

/** The longest common subsequence, by the table of lengths read from the front. */
function alignMiddle(before: readonly string[], after: readonly string[]): readonly AlignedLine[] {
  const [rows, columns] = [before.length, after.length]
  // Lines are compared by number: long lines that begin alike would otherwise be compared to their end in every cell.
  const numbered = lineNumbering()
  const [olds, news] = [before.map(numbered), after.map(numbered)]
  const lengths = rows * columns <= CELLS_MAX ? new Uint16Array((rows + 1) * (columns + 1)) : null
  const at = (i: number, j: number) => lengths?.[i * (columns + 1) + j] ?? 0
  for (let i = rows - 1; lengths && i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      const same = olds[i] === news[j]
      lengths[i * (columns + 1) + j] = same ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: AlignedLine[] = []
  for (let i = 0, j = 0; i < rows || j < columns; ) {
    const same = lengths !== null && i < rows && j < columns && olds[i] === news[j]
    const old = i < rows && (j >= columns || at(i + 1, j) >= at(i, j + 1))
    lines.push({ mark: same ? ' ' : old ? '-' : '+', text: (same || old ? before[i] : after[j]) ?? '' })
    if (same || old) i += 1
    if (same || !old) j += 1
  }
  return lines
}

/** Equal texts get the same number. */
function lineNumbering(): (text: string) => number {
  const numbers = new Map<string, number>()
  // A Map's hash uses only the length of very long texts, so those are found by their own hash.
  const long = new Map<number, string[]>()
  return (text) => {
    let key = text
    if (text.length > 1_000) {
      const code = hashOf(text)
      const alike = long.get(code) ?? []
      long.set(code, alike)
      if (!alike.includes(text)) alike.push(text)
      key = `\n${code} ${alike.indexOf(text)}`
    }
    const number = numbers.get(key) ?? numbers.size
    numbers.set(key, number)
    return number
  }
}

/** FNV-1a. Different texts may have the same hash. */
function hashOf(text: string): number {
  let code = 0x811c9dc5
  for (let i = 0; i < text.length; i++) code = Math.imul(code ^ text.charCodeAt(i), 0x01000193)
  return code
}

function hunksOf(lines: readonly AlignedLine[]): readonly DiffLine[] {
  const shown: DiffLine[] = []
  let [oldLine, newLine] = [1, 1]
  for (let start = 0; start < lines.length; ) {
    const end = hunkEnd(lines, start)
    const hunk = lines.slice(start, end)
    const count = (other: AlignedLine['mark']) => hunk.filter(({ mark }) => mark !== other).length
    const [olds, news] = [count('+'), count('-')]
    if (hunk.some(({ mark }) => mark !== ' ')) {
      shown.push({ mark: '@', text: `@ -${hunkRange(oldLine, olds)} +${hunkRange(newLine, news)} @@` })
      for (const { mark, text } of hunk) {
        shown.push({ mark, text: text.endsWith(UNENDED) ? text.slice(0, -1) : text })
        if (text.endsWith(UNENDED)) shown.push({ mark: '\\', text: ' No newline at end of file' })
      }
    }
    oldLine += olds
    newLine += news
    start = end
  }
  return shown
}

/** A hunk starts at most CONTEXT lines before a change and ends CONTEXT lines after the last nearby change. */
function hunkEnd(lines: readonly AlignedLine[], start: number): number {
  const change = (from: number) => {
    for (let index = from; index < lines.length; index++) if (lines[index]?.mark !== ' ') return index
    return -1
  }
  const first = change(start)
  if (first < 0) return lines.length
  if (first - start > CONTEXT) return first - CONTEXT
  let end = first
  for (let near = first; near >= 0 && near - end <= 2 * CONTEXT; near = change(end)) end = near + 1
  return Math.min(end + CONTEXT, lines.length)
}

function hunkRange(line: number, count: number): string {
  return `${count === 0 ? line - 1 : line},${count}`
}
