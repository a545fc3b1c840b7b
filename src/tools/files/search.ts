// `search`: lines that match a regular expression, grouped by file. Found by ripgrep, bounded here. It changes nothing.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { bound, clip } from '../core/bound.ts'
import { inFile, inFolder } from './disk.ts'
import { output, ToolFailure } from '../core/output.ts'
import { type Guard, FOLDER_ALIASES, isShown, leftOut, locateFor, PATH_ALIASES, type Place } from './paths.ts'
import { failedSearch, ignoring, type Ran, ripgrep, troubleOf } from './ripgrep.ts'
import { flag, type Infer, integer, object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const FILES_MAX = 50
const MATCHES_MAX = 10
const LINE_CHARS_MAX = 180

const input = object({
  pattern: text('A regular expression (ripgrep, as in Rust).', { min: 1, max: 10_000 }),
  path: optional(text('A file or folder; the workspace root if left out.', { min: 1 })),
  glob: optional(text('Only files whose name matches, for example "*.ts".', { min: 1, max: 1000 })),
  literal: optional(flag('The pattern is plain text.')),
  ignore_case: optional(flag('Capital and small letters are the same.')),
  context: optional(integer('Lines to show around each match.', { max: 10 })),
  max_files: optional(integer(`Default ${FILES_MAX}.`, { min: 1, max: FILES_MAX })),
  max_matches_per_file: optional(integer(`Default ${MATCHES_MAX}.`, { min: 1, max: 1000 })),
  include_ignored: optional(flag('Also search what .gitignore names, and node_modules, dist, build and the like.')),
})
type Args = Infer<typeof input>

export function searchTool(guarded: Guard, charsMax: number, binary: string | null): Tool {
  const tool = defineTool({
    name: 'search',
    description: 'Searches file contents with ripgrep and shows matching lines by file. Links are not followed.',
    input,
    aliases: { ...PATH_ALIASES, ...FOLDER_ALIASES, regex: 'pattern' },
    effect: 'read',
    timeoutMs: 30_000,
    execute: async (args, context) => {
      const place = await locateFor(guarded, args.path ?? '.', 'read', context)
      const found = new Findings(place, args, context)
      const ran = await run(guarded, binary, { place, args, context, found })
      const warning = troubleOf(ran)
      // Code 2 with matches is part of an answer; without any it is none.
      if (warning !== null && found.matches === 0 && (ran.code ?? 0) > 1) throw failedSearch(warning)
      const said = bound(found.text(warning), context, charsMax)
      const counts = { files: found.files.length, matches: found.matches, more: found.more }
      return output({
        content: said.content,
        metadata: { ...said.metadata, ...counts, ...(warning === null ? {} : { warning, partial: true }) },
      })
    },
  })
  return { ...tool, root: guarded.root }
}

type Search = {
  readonly place: Place
  readonly args: Args
  readonly context: ToolContext
  readonly found: Findings
}

/**
 * ripgrep starts in the folder that was checked, or gets the open file. Below that folder it walks by name and follows no
 * link; a folder swapped for a link in that very moment is what only a sandbox prevents.
 */
async function run(guarded: Guard, binary: string | null, { place, args, context, found }: Search): Promise<Ran> {
  const record = (line: string) => found.take(line)
  const common = { file: binary, separator: '\n', signal: context.signal, record } as const
  if (await isFolder(place)) {
    const options = [...optionsOf(args), '--', args.pattern, '.']
    return inFolder(place, (folder) => ripgrep({ ...common, args: options, cwd: folder.at('.'), stdin: null }))
  }
  const options = [...optionsOf(args), '--', args.pattern, '-']
  return inFile(guarded, place, ({ fd }) => ripgrep({ ...common, args: options, cwd: place.root, stdin: fd }))
}

async function isFolder(place: Place): Promise<boolean> {
  try {
    return (await lstat(place.path)).isDirectory()
  } catch {
    throw new ToolFailure('NotFound', `There is no "${place.shown}".`)
  }
}

function optionsOf(args: Args): readonly string[] {
  const { glob, literal, ignore_case, context = 0, max_matches_per_file = MATCHES_MAX, include_ignored } = args
  return [
    // Sorted, so that the same search shows the same files when it is cut short.
    '--json',
    '--hidden',
    '--sort=path',
    '--max-filesize=50M',
    '--no-ignore-global',
    // One more than is shown, to know whether there are more.
    `--max-count=${max_matches_per_file + 1}`,
    `--context=${context}`,
    ...(literal ? ['--fixed-strings'] : []),
    ...(ignore_case ? ['--ignore-case'] : []),
    ...(glob === undefined ? [] : [`--glob=${glob}`]),
    ...(include_ignored ? ['--no-ignore'] : ignoring([glob ?? '', args.path ?? ''])),
  ]
}

type Bytes = { readonly text: string } | { readonly bytes: string }
type Row = {
  readonly lines: Bytes
  readonly line_number: number
  readonly submatches: readonly { readonly start: number }[]
}
type Message =
  | { readonly type: 'begin'; readonly data: { readonly path: Bytes } }
  | { readonly type: 'match' | 'context'; readonly data: Row }
  | { readonly type: 'end' | 'summary' }

type Found = { readonly path: string; readonly lines: string[]; matches: number; more: boolean }

/** What ripgrep said so far, within the limits. */
class Findings {
  readonly files: Found[] = []
  matches = 0
  more = false
  readonly #place: Place
  readonly #filesMax: number
  readonly #matchesMax: number
  readonly #context: ToolContext
  #hidden = 0
  /** Nothing of the file at hand is shown. */
  #hides = false

  constructor(place: Place, args: Args, context: ToolContext) {
    const { max_files = FILES_MAX, max_matches_per_file = MATCHES_MAX } = args
    this.#context = context
    this.#place = place
    this.#filesMax = max_files
    this.#matchesMax = max_matches_per_file
  }

  /** False when there is enough. */
  take(line: string): boolean {
    const message = JSON.parse(line) as Message
    if (message.type === 'begin') {
      const name = lineText(message.data.path)
      this.#hides = name !== '<stdin>' && !isShown(join(this.#place.path, name), this.#context)
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

  #row(type: 'match' | 'context', row: Row): void {
    const file = this.files.at(-1)
    if (!file || file.more || this.#hides) return
    if (type === 'match' && file.matches === this.#matchesMax) {
      file.more = true
      return
    }
    const mark = type === 'match' ? ':' : '-'
    file.lines.push(`  ${row.line_number}${mark} ${excerpt(row, this.#context.redact)}`)
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
    groups.push(...leftOut(this.#hidden))
    return groups.join('\n')
  }
}

function lineText(value: Bytes): string {
  return 'text' in value ? value.text : Buffer.from(value.bytes, 'base64').toString()
}

/** A long line is cut so that its first match can be seen. */
function excerpt({ lines, submatches }: Row, redact: ToolContext['redact']): string {
  const whole = lineText(lines).replace(/\r?\n$/, '')
  // Before the cut: half of a secret is not recognized.
  const line = redact(whole)
  if (line.length <= LINE_CHARS_MAX) return line
  const start = Buffer.from(whole)
    .subarray(0, submatches[0]?.start ?? 0)
    .toString().length
  const from = Math.max(0, Math.min(start - 60, line.length - LINE_CHARS_MAX))
  const shown = clip(line.slice(from), LINE_CHARS_MAX)
  return `${from > 0 ? '…' : ''}${shown}${from + shown.length < line.length ? '…' : ''}`
}
