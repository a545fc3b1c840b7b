// Searches inside one text field of a row: which lines are shown, and how. Rows are chosen elsewhere.
import { clip } from '../core/bound.ts'
import { at, pathOf, type Path } from './filter.ts'
import { type Finder, finderOf } from './regex.ts'
import type { Value } from './reader.ts'
import { ToolFailure } from '../core/output.ts'

export type FieldSearch = {
  readonly field: string
  readonly query: string
  readonly regex?: boolean | undefined
  readonly case_sensitive?: boolean | undefined
  readonly context_lines?: number | undefined
  readonly max_matches?: number | undefined
  readonly max_line_chars?: number | undefined
}

export type Search = {
  readonly label: string
  readonly path: Path
  readonly find: Finder
  readonly contextLines: number
  readonly matchesMax: number
  readonly lineCharsMax: number
}

export function compileSearches(searches: readonly FieldSearch[]): readonly Search[] {
  return searches.map((search, index) => {
    const name = `field_searches[${index}] (${search.field})`
    if (search.query === '') throw new ToolFailure('InvalidInput', `${name}: the query is empty.`)
    // Two searches of one field are told apart by what they look for.
    const twice = searches.filter((other) => other.field === search.field).length > 1
    return {
      label: twice
        ? `${search.field} matches #${index + 1} ${JSON.stringify(search.query)}`
        : `${search.field} matches`,
      path: pathOf(name, search.field),
      find: search.regex ? finderOf(name, search.query, search.case_sensitive ? '' : 'i') : substring(search),
      contextLines: search.context_lines ?? 0,
      matchesMax: search.max_matches ?? 20,
      lineCharsMax: search.max_line_chars ?? 300,
    }
  })
}

function substring({ query, case_sensitive }: FieldSearch): Finder {
  if (case_sensitive) return (texts) => texts.map((text) => text.indexOf(query))
  const wanted = query.toLowerCase()
  return (texts) => texts.map((text) => text.toLowerCase().indexOf(wanted))
}

/**
 * The lines to print under a row. A search that found nothing says so only when no other search of the row found
 * something and `explain` is set: otherwise the row itself is there to be read.
 */
export function renderSearches(
  row: Value,
  searches: readonly Search[],
  explain: boolean,
  redact: (text: string) => string,
): readonly string[] {
  const blocks = searches.map((search) => renderSearch(row, search, redact))
  const found = blocks.filter((block) => block.found)
  if (found.length === 0 && !explain) return []
  return (found.length > 0 ? found : blocks).flatMap((block) => block.lines)
}

function renderSearch(
  row: Value,
  search: Search,
  redact: (text: string) => string,
): { readonly found: boolean; readonly lines: readonly string[] } {
  const none = (why: string) => ({ found: false, lines: [`${search.label}: none${why}`] })
  const value = at(row, search.path)
  if (value === undefined) return none(' (missing field)')
  if (value === null) return none(' (null field)')
  if (typeof value !== 'string') return none(' (not a text field)')
  // Before anything is cut: half of a secret is not recognized.
  const lines = linesOf(redact(value))
  const positions = search.find(lines)
  const matches = [...positions.keys()].filter((index) => positions[index] !== -1)
  if (matches.length === 0) return none('')
  const { shown, omitted } = excerpt({
    matches,
    lines: lines.length,
    context: search.contextLines,
    max: search.matchesMax,
  })
  const text = shown.map((index) => {
    const position = positions[index] ?? -1
    // As grep has it: a colon behind the number of a match, a hyphen behind that of its context.
    return `  ${index + 1}${position < 0 ? '-' : ':'} ${around(lines[index] ?? '', position, search.lineCharsMax)}`
  })
  const more = omitted === 0 ? [] : [`  … ${omitted} more match(es)`]
  return { found: true, lines: [`${search.label}:`, ...text, ...more] }
}

export type Excerpt = { readonly shown: readonly number[]; readonly omitted: number }

/**
 * The first `max` matches with their context, each line once and in order. A further match that stands in the context
 * of a shown one is visible, so it is not omitted.
 */
export function excerpt(of: {
  readonly matches: readonly number[]
  readonly lines: number
  readonly context: number
  readonly max: number
}): Excerpt {
  const shown: number[] = []
  for (const match of of.matches.slice(0, of.max)) {
    const from = Math.max(0, match - of.context, (shown.at(-1) ?? -1) + 1)
    const to = Math.min(of.lines - 1, match + of.context)
    for (let line = from; line <= to; line++) shown.push(line)
  }
  const visible = new Set(shown)
  return { shown, omitted: of.matches.filter((match) => !visible.has(match)).length }
}

/** A line that is too long is cut around its match, so that the match stays in sight. */
export function around(line: string, position: number, max: number): string {
  if (line.length <= max) return line
  const from = position < max ? 0 : Math.min(position - Math.floor(max / 4), line.length - max)
  // A cut between the halves of one character moves behind it.
  const part = clip(line.slice(from).replace(/^[\uDC00-\uDFFF]/, ''), max)
  return `${from > 0 ? '…' : ''}${part}${from + max < line.length ? '…' : ''}`
}

/** A line end at the end of the text ends its last line and begins no other. */
function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/)
  return lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines
}
