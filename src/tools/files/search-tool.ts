// The tool `search`: shows lines that match a regular expression, grouped by file. ripgrep finds them; the limits are
// here. It changes nothing.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { boundContent, clip } from '../core/bound-content.ts'
import { withFile, withFolder } from './guarded-disk.ts'
import { output, ToolFailure } from '../core/tool-output.ts'
import {
  type PathGuard,
  FOLDER_ALIASES,
  isListable,
  leftOutNote,
  locateForCall,
  PATH_ALIASES,
  type GuardedPath,
} from './path-guard.ts'
import { searchFailure, ignoreGlobs, type RipgrepResult, runRipgrep, ripgrepTrouble } from './ripgrep.ts'
import { flagField, type Infer, integerField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const FILES_MAX = 50
const MATCHES_MAX = 10
const LINE_CHARS_MAX = 180

const input = objectField({
  pattern: textField('A regular expression (ripgrep, as in Rust).', { min: 1, max: 10_000 }),
  path: optionalField(textField('A file or folder; the workspace root if left out.', { min: 1 })),
  glob: optionalField(textField('Only files whose name matches, for example "*.ts".', { min: 1, max: 1000 })),
  literal: optionalField(flagField('The pattern is plain text.')),
  ignore_case: optionalField(flagField('Capital and small letters are the same.')),
  context: optionalField(integerField('Lines to show around each match.', { max: 10 })),
  max_files: optionalField(integerField(`Default ${FILES_MAX}.`, { min: 1, max: FILES_MAX })),
  max_matches_per_file: optionalField(integerField(`Default ${MATCHES_MAX}.`, { min: 1, max: 1000 })),
  include_ignored: optionalField(
    flagField('Also search what .gitignore names, and node_modules, dist, build and the like.'),
  ),
})
type Args = Infer<typeof input>

export function searchTool(guarded: PathGuard, charsMax: number, binary: string | null): Tool {
  const tool = defineTool({
    name: 'search',
    description: 'Searches file contents with ripgrep and shows matching lines by file. Links are not followed.',
    input,
    aliases: { ...PATH_ALIASES, ...FOLDER_ALIASES, regex: 'pattern' },
    effect: 'read',
    timeoutMs: 30_000,
    execute: async (args, context) => {
      const place = await locateForCall(guarded, args.path ?? '.', 'read', context)
      const found = new SearchFindings(place, args, context)
      const ran = await runSearch(guarded, binary, { place, args, context, found })
      const warning = ripgrepTrouble(ran)
      // Code 2 with matches is a partial answer; without matches it is a failure.
      if (warning !== null && found.matches === 0 && (ran.code ?? 0) > 1) throw searchFailure(warning)
      const said = boundContent(found.text(warning), context, charsMax)
      const counts = { files: found.files.length, matches: found.matches, more: found.more }
      return output({
        content: said.content,
        metadata: { ...said.metadata, ...counts, ...(warning === null ? {} : { warning, partial: true }) },
      })
    },
  })
  return { ...tool, root: guarded.root }
}

type SearchRun = {
  readonly place: GuardedPath
  readonly args: Args
  readonly context: ToolContext
  readonly found: SearchFindings
}

/**
 * ripgrep starts in the checked folder, or gets the open file. Below that folder it walks by name and follows no link.
 * Only a sandbox prevents that a folder is swapped for a link in that moment.
 */
async function runSearch(
  guarded: PathGuard,
  binary: string | null,
  { place, args, context, found }: SearchRun,
): Promise<RipgrepResult> {
  const record = (line: string) => found.take(line)
  const common = { file: binary, separator: '\n', signal: context.signal, record } as const
  if (await isFolder(place)) {
    const options = [...ripgrepArguments(args), '--', args.pattern, '.']
    return withFolder(place, (folder) => runRipgrep({ ...common, args: options, cwd: folder.at('.'), stdin: null }))
  }
  const options = [...ripgrepArguments(args), '--', args.pattern, '-']
  return withFile(guarded, place, ({ fd }) => runRipgrep({ ...common, args: options, cwd: place.root, stdin: fd }))
}

async function isFolder(place: GuardedPath): Promise<boolean> {
  try {
    return (await lstat(place.path)).isDirectory()
  } catch {
    throw new ToolFailure('NotFound', `There is no "${place.shown}".`)
  }
}

function ripgrepArguments(args: Args): readonly string[] {
  const { glob, literal, ignore_case, context = 0, max_matches_per_file = MATCHES_MAX, include_ignored } = args
  return [
    // Sorted, so that a search that is cut short always shows the same files.
    '--json',
    '--hidden',
    '--sort=path',
    '--max-filesize=50M',
    '--no-ignore-global',
    // Ask for one match more than is shown, to know whether there are more.
    `--max-count=${max_matches_per_file + 1}`,
    `--context=${context}`,
    ...(literal ? ['--fixed-strings'] : []),
    ...(ignore_case ? ['--ignore-case'] : []),
    ...(glob === undefined ? [] : [`--glob=${glob}`]),
    ...(include_ignored ? ['--no-ignore'] : ignoreGlobs([glob ?? '', args.path ?? ''])),
  ]
}

type RipgrepText = { readonly text: string } | { readonly bytes: string }
type RipgrepRow = {
  readonly lines: RipgrepText
  readonly line_number: number
  readonly submatches: readonly { readonly start: number }[]
}
type RipgrepMessage =
  | { readonly type: 'begin'; readonly data: { readonly path: RipgrepText } }
  | { readonly type: 'match' | 'context'; readonly data: RipgrepRow }
  | { readonly type: 'end' | 'summary' }

type FoundFile = { readonly path: string; readonly lines: string[]; matches: number; more: boolean }

/** Collects ripgrep's output, within the limits. */
class SearchFindings {
  readonly files: FoundFile[] = []
  matches = 0
  more = false
  readonly #place: GuardedPath
  readonly #filesMax: number
  readonly #matchesMax: number
  readonly #context: ToolContext
  #hidden = 0
  /** The current file must not be shown. */
  #hides = false

  constructor(place: GuardedPath, args: Args, context: ToolContext) {
    const { max_files = FILES_MAX, max_matches_per_file = MATCHES_MAX } = args
    this.#context = context
    this.#place = place
    this.#filesMax = max_files
    this.#matchesMax = max_matches_per_file
  }

  /** Returns false when there is enough. */
  take(line: string): boolean {
    const message = JSON.parse(line) as RipgrepMessage
    if (message.type === 'begin') {
      const name = lineText(message.data.path)
      this.#hides = name !== '<stdin>' && !isListable(join(this.#place.path, name), this.#context)
      if (this.#hides) this.#hidden += 1
      if (this.#hides) return true
      this.more = this.files.length === this.#filesMax
      if (this.more) return false
      const path = this.#pathOf(name)
      this.files.push({ path, lines: [], matches: 0, more: false })
    }
    if (message.type === 'match' || message.type === 'context') this.#row(message.type, message.data)
    return true
  }

  #pathOf(name: string): string {
    return name === '<stdin>' ? this.#place.shown : join(this.#place.shown, name)
  }

  #row(type: 'match' | 'context', row: RipgrepRow): void {
    const file = this.files.at(-1)
    if (!file || file.more || this.#hides) return
    if (type === 'match' && file.matches === this.#matchesMax) {
      file.more = true
      return
    }
    const mark = type === 'match' ? ':' : '-'
    file.lines.push(`  ${row.line_number}${mark} ${cutExcerpt(row, this.#context.redact)}`)
    if (type === 'context') return
    file.matches += 1
    this.matches += 1
  }

  text(warning: string | null): string {
    const groups = this.files.map(({ path, lines, more }) =>
      [path, ...lines, ...(more ? ['  (more matches in this file)'] : [])].join('\n'),
    )
    if (groups.length === 0) groups.push('(no matches)')
    if (this.more) groups.push(`(more files match; these are the first ${this.files.length})`)
    if (warning !== null) groups.push(`(incomplete: ${warning})`)
    groups.push(...leftOutNote(this.#hidden))
    return groups.join('\n')
  }
}

function lineText(value: RipgrepText): string {
  return 'text' in value ? value.text : Buffer.from(value.bytes, 'base64').toString()
}

/** Cuts a long line so that its first match stays visible. */
function cutExcerpt({ lines, submatches }: RipgrepRow, redact: ToolContext['redact']): string {
  const whole = lineText(lines).replace(/\r?\n$/, '')
  // Redact before cutting: half of a secret is not recognized.
  const line = redact(whole)
  if (line.length <= LINE_CHARS_MAX) return line
  const start = Buffer.from(whole)
    .subarray(0, submatches[0]?.start ?? 0)
    .toString().length
  const from = Math.max(0, Math.min(start - 60, line.length - LINE_CHARS_MAX))
  const shown = clip(line.slice(from), LINE_CHARS_MAX)
  return `${from > 0 ? '…' : ''}${shown}${from + shown.length < line.length ? '…' : ''}`
}
