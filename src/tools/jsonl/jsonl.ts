// The tool `jsonl_search`: rows of JSONL files by content and by field, whole, in parts or as snippets. It only reads.
import { count, filled, optionsOf } from '../../options.ts'
import { bound, clip, CONTENT_CHARS_MAX } from '../core/bound.ts'
import {
  at,
  compileWhere,
  type Filter,
  judge,
  type Path,
  pathOf,
  filterText,
  COMPARED_AS,
  OPERATORS,
} from './filter.ts'
import { watcher } from './regex.ts'
import { readJson, type Value, writeJson } from './reader.ts'
import { scan, type Scanned } from './scan.ts'
import { compileSearches, renderSearches, type Search } from './snippet.ts'
import { type Output, output } from '../core/output.ts'
import { type Guard, guard, guardIn, GUARD_OPTIONS, type GuardOptions, PATH_ALIASES } from '../files/paths.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import type { Json } from '../../kernel/content.ts'
import { type Field, flag, type Infer, integer, list, object, optional, text } from '../core/schema.ts'
import { isObject } from '../../view/json.ts'

/** The same as those of the file tools: what may be read is what may be searched. */
type JsonlSearchOptions = GuardOptions & {
  /** A ripgrep binary of one's own. */
  readonly ripgrep?: string
  /** How much of a result the model sees at once. */
  readonly contentCharsMax?: number
}

const checkOptions = optionsOf<JsonlSearchOptions>('jsonlSearchTool', {
  ...GUARD_OPTIONS,
  ripgrep: filled,
  contentCharsMax: count(1),
})

/** Rendered rows are held until the end. Beyond this they are only counted. */
const HELD_CHARS_MAX = 2_000_000
/** Lines are judged in batches: a watch over a regex is too dear for each. */
const BATCH_LINES_MAX = 50
const BATCH_CHARS_MAX = 200_000

export function jsonlSearchTool(options: JsonlSearchOptions): Tool {
  checkOptions(options)
  const { ripgrep = null, contentCharsMax = CONTENT_CHARS_MAX } = options
  return made({ guarded: guard(options), ripgrep, contentCharsMax })
}

function made(confines: Confines): Tool {
  const tool = defineTool({
    name: 'jsonl_search',
    description:
      'Search JSONL files: rows by raw text (query), by field (where), and lines inside long text fields (field_searches). ' +
      'Use fields to show only what is needed.',
    input,
    aliases: PATH_ALIASES,
    effect: 'read',
    normalise: writtenValues,
    execute: (args, context) => search(confines, args, context),
  })
  const root = confines.guarded.root
  return { ...tool, root, rooted: (root) => made({ ...confines, guarded: guardIn(confines.guarded, root) }) }
}

type Confines = { readonly guarded: Guard; readonly ripgrep: string | null; readonly contentCharsMax: number }
type Compiled = {
  readonly filters: readonly Filter[]
  readonly fields: readonly { readonly name: string; readonly path: Path; readonly charsMax: number }[]
  readonly searches: readonly Search[]
  readonly redact: ToolContext['redact']
}

async function search(confines: Confines, args: Args, context: ToolContext): Promise<Output> {
  // First of all: what cannot be meant is said before a file is opened.
  const compiled: Compiled = {
    filters: compileWhere(args.where ?? []),
    fields: Object.entries(args.fields ?? {}).map(([name, charsMax]) => ({
      name,
      path: pathOf('fields', name),
      charsMax,
    })),
    searches: compileSearches(args.field_searches ?? []),
    redact: context.redact,
  }
  const tally = new Tally(args, compiled)
  const { path = '.', query = '' } = args
  const line = tally.take.bind(tally)
  const scanned = await scan({
    guard: confines.guarded,
    ripgrep: confines.ripgrep,
    path,
    query,
    context,
    line,
  })
  tally.judge()
  const { content, metadata } = bound(tally.text(scanned), context, confines.contentCharsMax)
  return output({
    content,
    metadata: { ...tally.counts(), files_scanned: scanned.files, ...warned(scanned), ...metadata },
  })
}

function warned({ warnings }: Scanned): { readonly warnings?: readonly string[] } {
  return warnings.length > 0 ? { warnings } : {}
}

type Line = { readonly file: string; readonly number: number; readonly text: string }

/** What one search has found so far. Rows are rendered at once, so that only what is shown is held. */
class Tally {
  readonly #args: Args
  readonly #compiled: Compiled
  /** Files in the order they were met, each with how many rows matched and the lines to show. */
  readonly #files = new Map<string, { matched: number; shown: number; readonly lines: string[] }>()
  readonly #batch: Line[] = []
  readonly #watch: ((work: () => void) => void) | null
  #batchChars = 0
  #filesShown = 0
  #rows = 0
  #held = 0
  #malformed = 0
  #incomparable = 0

  constructor(args: Args, compiled: Compiled) {
    this.#args = args
    this.#compiled = compiled
    const patterns = args.where?.some(({ op }) => op === 'regex') || args.field_searches?.some(({ regex }) => regex)
    this.#watch = patterns ? watcher() : null
  }

  take(file: string, number: number, text: string): void {
    this.#batch.push({ file, number, text })
    this.#batchChars += text.length
    if (this.#batch.length >= BATCH_LINES_MAX || this.#batchChars >= BATCH_CHARS_MAX) this.judge()
  }

  /** Everything taken since the last time. */
  judge(): void {
    const batch = this.#batch.splice(0)
    this.#batchChars = 0
    const work = () => batch.forEach((line) => this.#judge(line))
    if (this.#watch) this.#watch(work)
    else work()
  }

  #judge({ file, number, text: line }: Line): void {
    const json = number === 1 ? line.replace(/^\uFEFF/, '') : line
    if (json.trim() === '') return
    const row = readJson(json)
    if (row === undefined) {
      this.#malformed++
      return
    }
    const verdict = judge(row, this.#compiled.filters)
    if (verdict === 'incomparable') this.#incomparable++
    if (verdict === 'pass') this.#show(file, number, row)
  }

  #show(file: string, number: number, row: Value): void {
    this.#rows++
    const entry = this.#files.get(file) ?? { matched: 0, shown: 0, lines: [] }
    this.#files.set(file, entry)
    entry.matched++
    const { max_files = 100, max_matches_per_file = 25 } = this.#args
    const room = entry.shown > 0 || this.#filesShown < max_files
    if (!room || entry.shown >= max_matches_per_file || this.#held >= HELD_CHARS_MAX) return
    const lines = rendered(number, row, this.#compiled)
    if (entry.shown === 0) this.#filesShown++
    entry.shown++
    for (const line of lines) {
      entry.lines.push(line)
      this.#held += line.length
    }
  }

  counts() {
    return {
      files_matched: this.#files.size,
      rows_matched: this.#rows,
      ...(this.#incomparable > 0 ? { compare_warnings: this.#incomparable } : {}),
      ...(this.#malformed > 0 ? { malformed_lines: this.#malformed } : {}),
    }
  }

  text({ files, warnings }: Scanned): string {
    const shown = [...this.#files].filter(([, entry]) => entry.shown > 0)
    const rowsShown = shown.reduce((sum, [, entry]) => sum + entry.shown, 0)
    const head = [
      `rows_matched: ${this.#rows} (${rowsShown} shown)`,
      `files: ${files} searched, ${this.#files.size} with matches, ${shown.length} shown`,
      ...(this.#incomparable > 0
        ? [`compare_warnings: ${this.#incomparable} row(s) had a value that cannot be compared`]
        : []),
      ...(this.#malformed > 0 ? [`malformed_lines: ${this.#malformed} line(s) are not JSON and were skipped`] : []),
      ...warnings.map((warning) => `warning: ${warning}`),
    ]
    const body = shown.flatMap(([file, { matched, shown: rows, lines }]) => [
      '',
      file,
      ...lines,
      ...(matched > rows ? [`  … ${matched - rows} more row(s)`] : []),
    ])
    const left = this.#files.size - shown.length
    return [...head, ...body, ...(left > 0 ? ['', `… ${left} more file(s) with matches`] : [])].join('\n')
  }
}

/** One row: its number, then the whole of it or the chosen fields, then what was found inside. */
function rendered(number: number, row: Value, { fields, searches, redact }: Compiled): readonly string[] {
  const snippets = renderSearches(row, searches, fields.length === 0, redact).map((line) => `    ${line}`)
  if (fields.length === 0)
    return searches.length > 0 ? [`  ${number}:`, ...snippets] : [`  ${number}: ${writeJson(row)}`]
  const chosen = new Map(
    fields.map(({ name, path, charsMax }) => [name, cut(at(row, path) ?? null, charsMax, redact)] as const),
  )
  return [`  ${number}: ${writeJson(chosen)}`, ...snippets]
}

/** What fits stays as it is; what does not becomes the beginning of its text. */
function cut(value: Value, charsMax: number, redact: ToolContext['redact']): Value {
  const whole = filterText(value)
  return charsMax === 0 || whole.length <= charsMax ? value : `${clip(redact(whole), charsMax)}…`
}

// The arguments of `jsonl_search`: their shape, what the model is told about them, and the one other shape that is taken.

const where = object({
  field: text('Field path: a.b, a[0], a[-1] or a["any key"].', { min: 1 }),
  op: choice('exists takes no value, in takes values, gt/gte/lt/lte need a type.', OPERATORS),
  value: optional(text('Compared with the field. Numbers too are written as text, so that large ones stay exact.')),
  values: optional(list('For in: the texts to choose from.', text('One of them.'))),
  type: optional(choice('Compare as number or date. For gt, gte, lt, lte, eq and ne.', COMPARED_AS)),
})

const fieldSearch = object({
  field: text('Path of a text field.', { min: 1 }),
  query: text('What its lines must hold.', { min: 1 }),
  regex: optional(flag('The query is a JavaScript regex; repeated groups that repeat or branch are refused.')),
  case_sensitive: optional(flag('Default false.')),
  context_lines: optional(integer('Lines shown before and after a match. Default 0.', { max: 100 })),
  max_matches: optional(integer('Default 20.', { min: 1, max: 1_000 })),
  max_line_chars: optional(integer('Longer lines are cut around the match. Default 300.', { min: 1, max: 10_000 })),
})

const input = object({
  path: optional(text('A file, a folder (searched with all below it) or a glob. Default: everything.', { min: 1 })),
  query: optional(text('A ripgrep regex that the raw line must match. Default: every line.')),
  where: optional(list('Filters; a row must pass all of them.', where, { max: 50 })),
  fields: optional(lengths('Field path to the most characters shown of it, 0 for no cut. Default: the whole row.')),
  field_searches: optional(list('Show the matching lines inside long text fields.', fieldSearch, { max: 20 })),
  max_files: optional(integer('Files shown. Default 100.', { min: 1, max: 1_000 })),
  max_matches_per_file: optional(integer('Rows shown of each file. Default 25.', { min: 1, max: 1_000 })),
})

type Args = Infer<typeof input>

/** Models like to write numbers and truth values as such. Those that a double holds exactly become the text they are. */
function writtenValues(args: Json): Json {
  if (!isObject(args) || !Array.isArray(args['where'])) return args
  return { ...args, where: args['where'].map((one) => writtenValue(one as Json)) }
}

function writtenValue(filter: Json): Json {
  if (!isObject(filter)) return filter
  const { value, values } = filter
  if (Array.isArray(values)) return { ...filter, values: values.map(writtenOf) }
  return value === undefined ? filter : { ...filter, value: writtenOf(value) }
}

function writtenOf(value: Json): Json {
  if (typeof value === 'boolean') return String(value)
  const exact = typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value))
  return exact ? String(value) : value
}

/** An object from any key to a length: the one shape that schema.ts has no word for. */
function lengths(description: string): Field<Readonly<Record<string, number>>> {
  const length = integer(description)
  return {
    schema: { type: 'object', description, additionalProperties: length.schema },
    required: true,
    check: (value) => {
      if (value === null || typeof value !== 'object' || Array.isArray(value)) {
        return { issues: [{ path: [], message: 'must be an object from field paths to numbers, like {"id": 0}' }] }
      }
      const entries = Object.entries(value)
      const issues = entries.flatMap(([key, one]) =>
        (length.check(one).issues ?? []).map((issue) => ({ ...issue, path: [key] })),
      )
      return issues.length > 0 ? { issues } : { value: Object.fromEntries(entries) }
    },
  }
}

function choice<const T extends string>(description: string, values: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', description, enum: values },
    required: true,
    check: (value) => {
      const found = values.find((one) => one === value)
      return found === undefined
        ? { issues: [{ path: [], message: `must be one of ${values.join(', ')}` }] }
        : { value: found }
    },
  }
}
