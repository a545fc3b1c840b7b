// Diffs: what changed stays, long runs of unchanged lines are counted, and files that programs write are one line each. Always lossy.
import type { Shorten } from './kind.ts'
import { cutLine } from './lines.ts'

const CONTEXT = 3
const RUN_MAX = 8
const LINE_CHARS_MAX = 500
const HUNK = /^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@/
/** Written by programs: only their size says something. */
const GENERATED =
  /(?:^|\/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock|poetry\.lock|uv\.lock|Pipfile\.lock|Gemfile\.lock|composer\.lock|go\.sum|flake\.lock)$|\.(?:min\.(?:js|css)|map|snap)$/

export const shortenDiff: Shorten = (text, { lossless }) => {
  if (lossless) return null
  return { text: sectionsOf(text.split('\n')).flatMap(shortened).join('\n'), lossy: true }
}

type Section = { readonly path: string; readonly head: string[]; readonly hunks: Hunk[] }
type Hunk = { readonly title: string; readonly lines: string[] }

/** By files. The counts of a hunk say which lines are its own: a removed `-- x` looks like a header. */
function sectionsOf(lines: readonly string[]): readonly Section[] {
  const sections: Section[] = []
  let [before, after] = [0, 0]
  let section: Section = { path: '', head: [], hunks: [] }
  const begin = (path: string): void => {
    section = { path, head: [], hunks: [] }
    sections.push(section)
  }
  for (const [i, line] of lines.entries()) {
    const hunk = section.hunks.at(-1)
    if (hunk !== undefined && (before > 0 || after > 0 || line.startsWith('\\'))) {
      hunk.lines.push(line)
      if (!line.startsWith('+') && !line.startsWith('\\')) before -= 1
      if (!line.startsWith('-') && !line.startsWith('\\')) after -= 1
      continue
    }
    const counts = HUNK.exec(line)
    if (counts !== null) {
      ;[before, after] = [Number(counts[1] ?? 1), Number(counts[2] ?? 1)]
      section.hunks.push({ title: line, lines: [] })
      continue
    }
    const bare = line.startsWith('--- ') && lines[i + 1]?.startsWith('+++ ') === true
    if (line.startsWith('diff --git ')) begin(pathIn(line))
    else if (sections.length === 0 || (bare && section.hunks.length > 0)) begin(bare ? pathIn(lines[i + 1] ?? '') : '')
    section.head.push(line)
  }
  return sections
}

/** The last path that a header names, without the letter before it. */
function pathIn(header: string): string {
  const path = header.slice(header.lastIndexOf(' ') + 1)
  return /^[abciw]\//.test(path) ? path.slice(2) : path
}

function shortened({ path, head, hunks }: Section): readonly string[] {
  const changed = hunks.flatMap(({ lines }) => lines)
  const [plus, minus] = ['+', '-'].map((sign) => changed.filter((line) => line.startsWith(sign)).length)
  if (GENERATED.test(path)) return [`${path}: generated, +${plus} -${minus} lines left out`]
  const titles = head.filter((line) => !/^index [0-9a-f]/.test(line)).map((line) => cutLine(line, LINE_CHARS_MAX))
  if (head.some((line) => line.startsWith('deleted file ')))
    return [titles[0] ?? path, `deleted, ${minus} lines left out`]
  return [...titles, ...hunks.flatMap(({ title, lines }) => [title, ...collapsed(lines)])]
}

/** Of a long run of unchanged lines, those next to a change. */
function collapsed(lines: readonly string[]): readonly string[] {
  const shown: string[] = []
  for (let from = 0; from < lines.length; ) {
    let to = from
    while (to < lines.length && !isChange(lines[to] ?? '')) to += 1
    const [first, last] = [from === 0, to === lines.length]
    if (to - from > RUN_MAX) {
      const [head, tail] = [first ? from : from + CONTEXT, last ? to : to - CONTEXT]
      shown.push(...lines.slice(from, head), `[… ${tail - head} unchanged lines …]`, ...lines.slice(tail, to))
    } else shown.push(...lines.slice(from, to))
    for (from = to; from < lines.length && isChange(lines[from] ?? ''); from++)
      shown.push(cutLine(lines[from] ?? '', LINE_CHARS_MAX))
  }
  return shown
}

function isChange(line: string): boolean {
  return line.startsWith('+') || line.startsWith('-')
}
