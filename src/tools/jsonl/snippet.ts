// Searches inside one text field of a row: which lines are shown, and how. Rows are chosen elsewhere.
import { clip } from '../core/bound-content.ts'
import { valueAtPath, parseFieldPath, type FieldPath } from './filter.ts'
import { type TextFinder, compileFinder } from './regex.ts'
import type { ExactValue } from './exact-json.ts'
import { ToolFailure } from '../core/tool-output.ts'

export type FieldSearch = {
  readonly field: string
  readonly query: string
  readonly regex?: boolean | undefined
  readonly case_sensitive?: boolean | undefined
  readonly context_lines?: number | undefined
  readonly max_matches?: number | undefined
  readonly max_line_chars?: number | undefined
}

export type CompiledFieldSearch = {
  readonly label: string
  readonly path: FieldPath
  readonly find: TextFinder
  readonly contextLines: number
  readonly matchesMax: number
  readonly lineCharsMax: number
}

export function compileFieldSearches(searches: readonly FieldSearch[]): readonly CompiledFieldSearch[] {
  return searches.map((search, index) => {
    const name = `field_searches[${index}] (${search.field})`
    if (search.query === '') throw new ToolFailure('InvalidInput', `${name}: the query is empty.`)
    // Two searches of one field are labelled by their queries.
    const twice = searches.filter((other) => other.field === search.field).length > 1
    return {
      label: twice
        ? `${search.field} matches #${index + 1} ${JSON.stringify(search.query)}`
        : `${search.field} matches`,
      path: parseFieldPath(name, search.field),
      find: search.regex
        ? compileFinder(name, search.query, search.case_sensitive ? '' : 'i')
        : substringFinder(search),
      contextLines: search.context_lines ?? 0,
      matchesMax: search.max_matches ?? 20,
      lineCharsMax: search.max_line_chars ?? 300,
    }
  })
}

function substringFinder({ query, case_sensitive }: FieldSearch): TextFinder {
  if (case_sensitive) return (texts) => texts.map((text) => text.indexOf(query))
  const wanted = query.toLowerCase()
  return (texts) => texts.map((text) => text.toLowerCase().indexOf(wanted))
}

/**
 * The lines to print under a row. A search without matches is reported only if no other search of the row matched and
 * `explain` is set: otherwise the row itself is shown.
 */
export function renderSearches(
  row: ExactValue,
  searches: readonly CompiledFieldSearch[],
  explain: boolean,
  redact: (text: string) => string,
): readonly string[] {
  const blocks = searches.map((search) => renderSearch(row, search, redact))
  const found = blocks.filter((block) => block.found)
  if (found.length === 0 && !explain) return []
  return (found.length > 0 ? found : blocks).flatMap((block) => block.lines)
}

function renderSearch(
  row: ExactValue,
  search: CompiledFieldSearch,
  redact: (text: string) => string,
): { readonly found: boolean; readonly lines: readonly string[] } {
  const none = (why: string) => ({ found: false, lines: [`${search.label}: none${why}`] })
  const value = valueAtPath(row, search.path)
  if (value === undefined) return none(' (missing field)')
  if (value === null) return none(' (null field)')
  if (typeof value !== 'string') return none(' (not a text field)')
  // Redact before cutting: half of a secret is not recognized.
  const lines = splitLines(redact(value))
  const positions = search.find(lines)
  const matches = [...positions.keys()].filter((index) => positions[index] !== -1)
  if (matches.length === 0) return none('')
  const { shown, omitted } = chooseMatchLines({
    matches,
    lines: lines.length,
    context: search.contextLines,
    max: search.matchesMax,
  })
  const text = shown.map((index) => {
    const position = positions[index] ?? -1
    // As in grep: a colon follows the line number of a match, a hyphen that of a context line.
    return `  ${index + 1}${position < 0 ? '-' : ':'} ${cutAroundMatch(lines[index] ?? '', position, search.lineCharsMax)}`
  })
  const more = omitted === 0 ? [] : [`  … ${omitted} more match(es)`]
  return { found: true, lines: [`${search.label}:`, ...text, ...more] }
}

export type ChosenLines = { readonly shown: readonly number[]; readonly omitted: number }

/**
 * The first `max` matches with their context, each line once and in order. A further match within the context of a
 * shown one is visible, so it does not count as omitted.
 */
export function chooseMatchLines(of: {
  readonly matches: readonly number[]
  readonly lines: number
  readonly context: number
  readonly max: number
}): ChosenLines {
  const shown: number[] = []
  for (const match of of.matches.slice(0, of.max)) {
    const from = Math.max(0, match - of.context, (shown.at(-1) ?? -1) + 1)
    const to = Math.min(of.lines - 1, match + of.context)
    for (let line = from; line <= to; line++) shown.push(line)
  }
  const visible = new Set(shown)
  return { shown, omitted: of.matches.filter((match) => !visible.has(match)).length }
}

/** Cuts a long line around its match, so that the match stays visible. */
export function cutAroundMatch(line: string, position: number, max: number): string {
  if (line.length <= max) return line
  const from = position < max ? 0 : Math.min(position - Math.floor(max / 4), line.length - max)
  // A cut between the halves of a surrogate pair moves behind it.
  const part = clip(line.slice(from).replace(/^[\uDC00-\uDFFF]/, ''), max)
  return `${from > 0 ? '…' : ''}${part}${from + max < line.length ? '…' : ''}`
}

/** A line end at the end of the text ends its last line and does not begin another. */
function splitLines(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/)
  return lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines
}
