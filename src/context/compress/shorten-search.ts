// Shortens the matches of a search: each path is named once. With loss, the most relevant matches of each file stay and
// the others are counted.
import { parseMatchLine } from './detect-kind.ts'
import type { Shortener } from './text-kind.ts'
import { cutLine } from './cut-lines.ts'
import { chooseLines } from './choose-lines.ts'

const MATCHES_MIN = 40
const PER_FILE = 5
const LINES_MAX = 200
const LINE_CHARS_MAX = 300
const SCORED_CHARS = 400
const WORDS_MAX = 8
/** The room for lines that are not matches. */
const OTHER_CHARS_MAX = 2_000

type SearchMatch = { readonly at: string; readonly text: string }
type FileMatches = { readonly path: string; readonly matches: SearchMatch[] }
type ParsedMatches = {
  readonly files: readonly FileMatches[]
  readonly other: readonly string[]
  readonly count: number
}

export const shortenSearch: Shortener = (text, { lossless, hint }) => {
  const parsed = parseMatches(text)
  if (parsed.count < MATCHES_MIN) return null
  if (lossless) {
    const folded = foldMatches(text)
    return folded !== null && unfoldMatches(folded) === text ? { text: folded, lossy: false } : null
  }
  return { text: renderBestMatches(parsed, wordsOf(hint.query)), lossy: true }
}

/** Writes consecutive matches of one file below its path. Null if another line stands between matches. */
function foldMatches(text: string): string | null {
  const lines: string[] = []
  let path = ''
  for (const line of text.split('\n')) {
    const match = parseMatchLine(line.slice(0, SCORED_CHARS))
    if (match === null && line !== '') return null
    if (match !== null && match.path !== path) lines.push(match.path)
    path = match?.path ?? ''
    lines.push(match === null ? line : `  ${match.line}:${line.slice(match.end)}`)
  }
  return lines.join('\n')
}

/** Restores the path in each line: the folded form is used without loss only if it gives back the same text. */
function unfoldMatches(folded: string): string {
  const lines: string[] = []
  let path = ''
  for (const line of folded.split('\n')) {
    if (line.startsWith('  ')) lines.push(`${path}:${line.slice(2)}`)
    else if (line === '') lines.push(line)
    else path = line
  }
  return lines.join('\n')
}

/**
 * Reads both forms: the path in each line (`grep -n`), or in a line above its matches (`rg`, and the tool `search`).
 */
function parseMatches(text: string): ParsedMatches {
  const files = new Map<string, FileMatches>()
  const other: string[] = []
  let above: string | null = null
  let count = 0
  let last: FileMatches = { path: '', matches: [] }
  const add = (path: string, match: SearchMatch): void => {
    // Most matches follow another match of the same file.
    if (path !== last.path || count === 0) {
      last = files.get(path) ?? { path, matches: [] }
      files.set(path, last)
    }
    last.matches.push(match)
    count += 1
  }
  for (const line of text.split('\n')) {
    const head = line.slice(0, SCORED_CHARS)
    const match = parseMatchLine(head)
    const below = match === null && above !== null ? /^\s{0,4}(\d{1,7})[:-] ?/.exec(head) : null
    if (match !== null) add(match.path, { at: match.line, text: line.slice(match.end) })
    else if (below !== null && above !== null) add(above, { at: below[1] ?? '', text: line.slice(below[0].length) })
    else if (/^[^\s:]{1,300}$/.test(head)) above = line
    else if (line.trim() !== '' && line !== '--') other.push(line)
  }
  return { files: [...files.values()], other, count }
}

function renderMatch({ at, text }: SearchMatch): string {
  return `  ${at}:${text}`
}

function renderBestMatches({ files, other, count }: ParsedMatches, words: readonly string[]): string {
  const fits = files.reduce((sum, { matches }) => sum + Math.min(matches.length, PER_FILE) + 2, 1) < LINES_MAX
  const ranked = files.map((file) => {
    // If all matches of a file are shown, they need no ranking.
    const all = fits && file.matches.length <= PER_FILE
    const away = all || !AWAY.test(file.path) ? 0 : 2
    const scored = file.matches.map((match, i) => ({ match, i, score: all ? 0 : scoreMatch(match, words) - away }))
    const top = scored.toSorted((a, b) => b.score - a.score || a.i - b.i).slice(0, PER_FILE)
    return { file, top: top.toSorted((a, b) => a.i - b.i), score: top[0]?.score ?? 0 }
  })
  // Files stay in their order; if there is no room, the least relevant are left out.
  const allowed = new Set<FileMatches>()
  let room = LINES_MAX - 1
  for (const { file, top } of ranked.toSorted((a, b) => b.score - a.score)) {
    room -= top.length + 2
    if (room < 0) break
    allowed.add(file)
  }
  const lines = [`${count} matches in ${files.length} files`]
  for (const { file, top } of ranked) {
    if (!allowed.has(file)) continue
    const more = file.matches.length - top.length
    lines.push(file.path, ...top.map(({ match }) => cutLine(renderMatch(match), LINE_CHARS_MAX)))
    if (more > 0) lines.push(`  +${more} more`)
  }
  const left = files.filter((file) => !allowed.has(file))
  const missed = left.reduce((sum, { matches }) => sum + matches.length, 0)
  if (left.length > 0) lines.push(`+${missed} more in ${left.length} other files`)
  // Lines that are not matches may say why some matches are missing.
  const aside = other.length === 0 ? [] : [chooseLines(other.join('\n'), OTHER_CHARS_MAX)]
  return [...aside, ...lines].join('\n')
}

function wordsOf(query: string | undefined): readonly string[] {
  return (
    (query ?? '')
      .slice(0, SCORED_CHARS)
      .match(/\w{2,}/g)
      ?.slice(0, WORDS_MAX) ?? []
  )
}

const DEFINES = /\b(?:function|class|def|fn|interface|struct|enum|trait|type|const|let|impl|func)\s{1,4}(\w{1,80})/
const TROUBLE = /error|exception|fail|throw|panic|deprecated/i
const ASIDE = /^\s*(?:\/\/|#|\*|\/\*|import\b|from\b|use\b)/
const AWAY =
  /(?:^|[/\\])(?:node_modules|vendor|dist|build|target|\.git|tests?|__tests__|fixtures)[/\\]|\.(?:min|snap|lock|map)\b/

/**
 * Definitions and lines that contain the words exactly come first; comments, imports, tests and generated files last.
 */
function scoreMatch({ text }: SearchMatch, words: readonly string[]): number {
  const line = text.slice(0, SCORED_CHARS)
  const named = words.filter((word) => line.includes(word)).length
  const long = text.length > LINE_CHARS_MAX ? 1 : 0
  const defined = DEFINES.exec(line)?.[1] ?? ''
  const plus = 2 * named + (words.includes(defined) ? 4 : 0) + (TROUBLE.test(line) ? 1 : 0)
  return plus - (ASIDE.test(line) ? 2 : 0) - long
}
