// The tool `jsonl_search`: finds rows of JSONL files by content and by field, and shows them whole, in parts or as
// snippets. It only reads.
import { countCheck, nonEmptyCheck, optionsChecker } from '../../options.ts'
import { boundContent, clip, CONTENT_CHARS_MAX } from '../core/bound-content.ts'
import {
  valueAtPath,
  compileWhere,
  type RowFilter,
  applyFilters,
  type FieldPath,
  parseFieldPath,
  filterText,
  COMPARED_AS,
  OPERATORS,
} from './filter.ts'
import { createWatch } from './regex.ts'
import { readExactJson, type ExactValue, writeExactJson } from './exact-json.ts'
import { scanJsonl, type ScanResult } from './scan-jsonl.ts'
import { compileFieldSearches, renderSearches, type CompiledFieldSearch } from './snippet.ts'
import { type Output, output } from '../core/tool-output.ts'
import {
  type PathGuard,
  createPathGuard,
  guardInFolder,
  GUARD_OPTIONS,
  type PathGuardOptions,
  PATH_ALIASES,
} from '../files/path-guard.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import type { Json } from '../../kernel/content.ts'
import {
  type Field,
  flagField,
  type Infer,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from '../core/argument-schema.ts'
import { isObject } from '../../view/untrusted-json.ts'

/** The same options as the file tools: a file that may be read may be searched. */
type JsonlSearchOptions = PathGuardOptions & {
  /** The path of your own ripgrep binary. */
  readonly ripgrep?: string
  /** How many characters of a result the model sees at once. */
  readonly contentCharsMax?: number
}

const checkOptions = optionsChecker<JsonlSearchOptions>('jsonlSearchTool', {
  ...GUARD_OPTIONS,
  ripgrep: nonEmptyCheck,
  contentCharsMax: countCheck(1),
})

/** Rendered rows are held in memory until the end. Beyond this limit rows are only counted. */
const HELD_CHARS_MAX = 2_000_000
/** Lines are judged in batches, because watching a regex costs too much for each line. */
const BATCH_LINES_MAX = 50
const BATCH_CHARS_MAX = 200_000

/** A tool that finds and filters lines of JSONL files without reading them whole into the context. */
export function jsonlSearchTool(options: JsonlSearchOptions): Tool {
  checkOptions(options)
  const { ripgrep = null, contentCharsMax = CONTENT_CHARS_MAX } = options
  return makeJsonlTool({ guarded: createPathGuard(options), ripgrep, contentCharsMax })
}

function makeJsonlTool(confines: JsonlSetup): Tool {
  const tool = defineTool({
    name: 'jsonl_search',
    description:
      'Search JSONL files: rows by raw text (query), by field (where), and lines inside long text fields (field_searches). ' +
      'Use fields to show only what is needed.',
    input,
    aliases: PATH_ALIASES,
    effect: 'read',
    normalise: normaliseWhere,
    execute: (args, context) => searchJsonl(confines, args, context),
  })
  const root = confines.guarded.root
  return {
    ...tool,
    root,
    rooted: (root) => makeJsonlTool({ ...confines, guarded: guardInFolder(confines.guarded, root) }),
  }
}

type JsonlSetup = { readonly guarded: PathGuard; readonly ripgrep: string | null; readonly contentCharsMax: number }
type CompiledSearch = {
  readonly filters: readonly RowFilter[]
  readonly fields: readonly { readonly name: string; readonly path: FieldPath; readonly charsMax: number }[]
  readonly searches: readonly CompiledFieldSearch[]
  readonly redact: ToolContext['redact']
}

async function searchJsonl(confines: JsonlSetup, args: Args, context: ToolContext): Promise<Output> {
  // Compile first, so that invalid arguments are reported before a file is opened.
  const compiled: CompiledSearch = {
    filters: compileWhere(args.where ?? []),
    fields: Object.entries(args.fields ?? {}).map(([name, charsMax]) => ({
      name,
      path: parseFieldPath('fields', name),
      charsMax,
    })),
    searches: compileFieldSearches(args.field_searches ?? []),
    redact: context.redact,
  }
  const tally = new SearchTally(args, compiled)
  const { path = '.', query = '' } = args
  const line = tally.take.bind(tally)
  const scanned = await scanJsonl({
    guard: confines.guarded,
    ripgrep: confines.ripgrep,
    path,
    query,
    context,
    line,
  })
  tally.judge()
  const { content, metadata } = boundContent(tally.text(scanned), context, confines.contentCharsMax)
  return output({
    content,
    metadata: { ...tally.counts(), files_scanned: scanned.files, ...warningField(scanned), ...metadata },
  })
}

function warningField({ warnings }: ScanResult): { readonly warnings?: readonly string[] } {
  return warnings.length > 0 ? { warnings } : {}
}

type JsonlLine = { readonly file: string; readonly number: number; readonly text: string }

/** The findings of one search. Rows are rendered at once, so that only the shown ones are held. */
class SearchTally {
  readonly #args: Args
  readonly #compiled: CompiledSearch
  /** Files in the order they were met, each with its number of matching rows and the lines to show. */
  readonly #files = new Map<string, { matched: number; shown: number; readonly lines: string[] }>()
  readonly #batch: JsonlLine[] = []
  readonly #watch: ((work: () => void) => void) | null
  #batchChars = 0
  #filesShown = 0
  #rows = 0
  #held = 0
  #malformed = 0
  #incomparable = 0

  constructor(args: Args, compiled: CompiledSearch) {
    this.#args = args
    this.#compiled = compiled
    const patterns = args.where?.some(({ op }) => op === 'regex') || args.field_searches?.some(({ regex }) => regex)
    this.#watch = patterns ? createWatch() : null
  }

  take(file: string, number: number, text: string): void {
    this.#batch.push({ file, number, text })
    this.#batchChars += text.length
    if (this.#batch.length >= BATCH_LINES_MAX || this.#batchChars >= BATCH_CHARS_MAX) this.judge()
  }

  /** Judges all lines taken since the last time. */
  judge(): void {
    const batch = this.#batch.splice(0)
    this.#batchChars = 0
    const work = () => batch.forEach((line) => this.#judge(line))
    if (this.#watch) this.#watch(work)
    else work()
  }

  #judge({ file, number, text: line }: JsonlLine): void {
    const json = number === 1 ? line.replace(/^\uFEFF/, '') : line
    if (json.trim() === '') return
    const row = readExactJson(json)
    if (row === undefined) {
      this.#malformed++
      return
    }
    const verdict = applyFilters(row, this.#compiled.filters)
    if (verdict === 'incomparable') this.#incomparable++
    if (verdict === 'pass') this.#show(file, number, row)
  }

  #show(file: string, number: number, row: ExactValue): void {
    this.#rows++
    const entry = this.#files.get(file) ?? { matched: 0, shown: 0, lines: [] }
    this.#files.set(file, entry)
    entry.matched++
    const { max_files = 100, max_matches_per_file = 25 } = this.#args
    const room = entry.shown > 0 || this.#filesShown < max_files
    if (!room || entry.shown >= max_matches_per_file || this.#held >= HELD_CHARS_MAX) return
    const lines = renderRow(number, row, this.#compiled)
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

  text({ files, warnings }: ScanResult): string {
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

/** Renders one row: its number, the whole row or the chosen fields, and then the lines found inside. */
function renderRow(number: number, row: ExactValue, { fields, searches, redact }: CompiledSearch): readonly string[] {
  const snippets = renderSearches(row, searches, fields.length === 0, redact).map((line) => `    ${line}`)
  if (fields.length === 0)
    return searches.length > 0 ? [`  ${number}:`, ...snippets] : [`  ${number}: ${writeExactJson(row)}`]
  const chosen = new Map(
    fields.map(
      ({ name, path, charsMax }) => [name, cutValue(valueAtPath(row, path) ?? null, charsMax, redact)] as const,
    ),
  )
  return [`  ${number}: ${writeExactJson(chosen)}`, ...snippets]
}

/** A value that fits stays unchanged; a longer one becomes the beginning of its text. */
function cutValue(value: ExactValue, charsMax: number, redact: ToolContext['redact']): ExactValue {
  const whole = filterText(value)
  return charsMax === 0 || whole.length <= charsMax ? value : `${clip(redact(whole), charsMax)}…`
}

// The arguments of `jsonl_search`: their shape, their descriptions, and the one alternative shape that is accepted.

const where = objectField({
  field: textField('Field path: a.b, a[0], a[-1] or a["any key"].', { min: 1 }),
  op: enumField('exists takes no value, in takes values, gt/gte/lt/lte need a type.', OPERATORS),
  value: optionalField(
    textField('Compared with the field. Numbers too are written as text, so that large ones stay exact.'),
  ),
  values: optionalField(listField('For in: the texts to choose from.', textField('One of them.'))),
  type: optionalField(enumField('Compare as number or date. For gt, gte, lt, lte, eq and ne.', COMPARED_AS)),
})

const fieldSearch = objectField({
  field: textField('Path of a text field.', { min: 1 }),
  query: textField('What its lines must hold.', { min: 1 }),
  regex: optionalField(
    flagField('The query is a JavaScript regex; repeated groups that repeat or branch are refused.'),
  ),
  case_sensitive: optionalField(flagField('Default false.')),
  context_lines: optionalField(integerField('Lines shown before and after a match. Default 0.', { max: 100 })),
  max_matches: optionalField(integerField('Default 20.', { min: 1, max: 1_000 })),
  max_line_chars: optionalField(
    integerField('Longer lines are cut around the match. Default 300.', { min: 1, max: 10_000 }),
  ),
})

const input = objectField({
  path: optionalField(
    textField('A file, a folder (searched with all below it) or a glob. Default: everything.', { min: 1 }),
  ),
  query: optionalField(textField('A ripgrep regex that the raw line must match. Default: every line.')),
  where: optionalField(listField('Filters; a row must pass all of them.', where, { max: 50 })),
  fields: optionalField(
    lengthsField('Field path to the most characters shown of it, 0 for no cut. Default: the whole row.'),
  ),
  field_searches: optionalField(
    listField('Show the matching lines inside long text fields.', fieldSearch, { max: 20 }),
  ),
  max_files: optionalField(integerField('Files shown. Default 100.', { min: 1, max: 1_000 })),
  max_matches_per_file: optionalField(integerField('Rows shown of each file. Default 25.', { min: 1, max: 1_000 })),
})

type Args = Infer<typeof input>

/** Models often write numbers and booleans as such. Values that a double holds exactly become their text. */
function normaliseWhere(args: Json): Json {
  if (!isObject(args) || !Array.isArray(args['where'])) return args
  return { ...args, where: args['where'].map((one) => normaliseFilter(one as Json)) }
}

function normaliseFilter(filter: Json): Json {
  if (!isObject(filter)) return filter
  const { value, values } = filter
  if (Array.isArray(values)) return { ...filter, values: values.map(valueToText) }
  return value === undefined ? filter : { ...filter, value: valueToText(value) }
}

function valueToText(value: Json): Json {
  if (typeof value === 'boolean') return String(value)
  const exact = typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value))
  return exact ? String(value) : value
}

/** An object from any key to a length: the one shape that argument-schema.ts does not have. */
function lengthsField(description: string): Field<Readonly<Record<string, number>>> {
  const length = integerField(description)
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

function enumField<const T extends string>(description: string, values: readonly T[]): Field<T> {
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
