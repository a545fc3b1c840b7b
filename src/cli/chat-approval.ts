// What a call would do, shown so that it can be judged: for writes and edits the difference to the files as they are now, for all
// others the exact arguments. It looks; what is allowed are the arguments of the call, and nothing else.
import type { Pending } from '../index.ts'
import type { Json } from '../kernel/index.ts'
import { diff } from '../tools/diff.ts'
import { look } from '../tools/disk.ts'
import { guard, locate } from '../tools/paths.ts'
import { aboutOf, linesChanged } from './chat-call.ts'
import { broken, type Paint } from './chat-text.ts'
import { clean, oneLine, shownArgs } from './clean.ts'

/** Clean, and without colours: they come when it is known what is shown of it. */
export type Shown = { readonly title: string; readonly rows: readonly string[]; readonly type: 'diff' | 'arguments' }

export async function shownAction(folder: string, pending: Pending): Promise<Shown> {
  const { tool, args } = pending
  const rows = shownArgs(args, Number.POSITIVE_INFINITY).split('\n')
  const plain = { title: aboutOf(pending), rows, type: 'arguments' } as const
  try {
    const changes = await changesOf(folder, tool, args)
    if (changes === null) return plain
    const text = changes.map(({ path, before, after }) => diff(path, before, after)).join('\n')
    const fresh = changes.some(({ isNew }) => isNew) ? ' · new file' : ''
    if (text === '') return { ...plain, title: `${plain.title} · nothing would change` }
    const lines = text.split('\n').map((line) => `  ${clean(line)}`)
    return { title: `${plain.title}${fresh} · ${linesChanged(text)}`, rows: lines, type: 'diff' }
  } catch (error) {
    // It would fail now. Whoever decides sees why, and the arguments as they are.
    const why = error instanceof Error ? error.message : String(error)
    return { ...plain, rows: [`  ! as things are it would fail: ${oneLine(why, 300)}`, ...rows] }
  }
}

/** Coloured by what happens to a line. */
export function paintedRows({ type }: Shown, rows: readonly string[], paint: Paint): readonly string[] {
  return rows.map((row) => {
    if (type === 'arguments') return row.startsWith('  ! ') ? paint.yellow(row) : row
    if (/^ {2}(\+\+\+|---) /.test(row)) return paint.bold(row)
    if (row.startsWith('  @@')) return paint.cyan(row)
    if (row.startsWith('  +')) return paint.green(row)
    return row.startsWith('  -') ? paint.red(row) : row
  })
}

/** Never cut in silence: the beginning, the end, and how much is between. Null if all of it fits. */
export function clippedRows(rows: readonly string[], most: number, width: number): readonly string[] | null {
  const long = rows.some((row) => row.length > 4 * width)
  if (rows.length <= most && !long) return null
  const head = Math.ceil(most * 0.7)
  const tail = most - head
  const short = rows.map((row) => (row.length > 4 * width ? shortened(row, width) : row))
  if (rows.length <= most) return short
  return [
    ...short.slice(0, head),
    `  [… ${rows.length - most} of ${rows.length} lines are not shown here …]`,
    ...short.slice(-tail),
  ]
}

/** A line of a whole screen: its first two rows and its last one. */
function shortened(row: string, width: number): string {
  const pieces = broken(row, width)
  const [first = '', second = ''] = pieces
  return `${first}${second}\n  [… ${row.length} characters in this line …]\n${pieces.at(-1) ?? ''}`
}

type Change = { readonly path: string; readonly before: string; readonly after: string; readonly isNew: boolean }

/** What the files would become. Null for a call that is no plain write or edit. */
async function changesOf(folder: string, tool: string, args: Json): Promise<readonly Change[] | null> {
  const files = new Map<string, Change>()
  const guarded = guard({ root: folder })
  const open = async (path: string): Promise<Change> => {
    const place = await locate(guarded, path, 'write')
    const known = files.get(place.shown)
    if (known) return known
    const seen = await look(guarded, place)
    const before = seen?.bytes.toString() ?? ''
    return { path: place.shown, before, after: before, isNew: seen === null }
  }
  const keep = (change: Change, after: string): void => void files.set(change.path, { ...change, after })
  if (tool === 'write') {
    const { path, content, append } = args as Fields
    if (typeof path !== 'string' || typeof content !== 'string') return null
    const file = await open(path)
    keep(file, append === true ? file.after + content : content)
  } else if (tool === 'edit') {
    const { edits } = args as Fields
    if (!Array.isArray(edits)) return null
    for (const edit of edits as readonly Fields[]) {
      const { path, old_string: old, new_string: fresh } = edit
      if (typeof path !== 'string' || typeof old !== 'string' || typeof fresh !== 'string' || old === '') return null
      const file = await open(path)
      keep(file, replaced(file, { old, fresh, all: edit['replace_all'] === true }))
    }
  } else return null
  return [...files.values()]
}

type Fields = { readonly [key: string]: Json }
type Replacing = { readonly old: string; readonly fresh: string; readonly all: boolean }

/** As `edit` does it, and with its words where it does not. */
function replaced({ path, after, isNew }: Change, { old, fresh, all }: Replacing): string {
  if (isNew) throw new Error(`there is no ${path}`)
  const pieces = after.split(old)
  if (pieces.length === 1) throw new Error(`the text to replace is not in ${path}`)
  if (pieces.length > 2 && !all) throw new Error(`the text to replace is in ${path} ${pieces.length - 1} times`)
  return pieces.join(fresh)
}

export type Word =
  | { readonly type: 'yes' | 'all' | 'always' | 'later' | 'whole' | 'unclear' }
  | { readonly type: 'no'; readonly why: string }

/** Only a plain yes is one. What comes after a no is its reason. */
export function wordOf(text: string | null): Word {
  const said = (text ?? '').trim()
  const [, first = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(said) ?? []
  const word = first.toLowerCase().replace(/[,.:;!]$/, '')
  if (word === 'n' || word === 'no') return { type: 'no', why: rest.trim() }
  if (rest !== '') return { type: 'unclear' }
  if (word === 'y' || word === 'yes') return { type: 'yes' }
  if (word === 'a' || word === 'all') return { type: 'all' }
  if (word === 'k' || word === 'always') return { type: 'always' }
  if (word === 'd' || word === 'diff') return { type: 'whole' }
  return word === '' || word === 'l' || word === 'later' ? { type: 'later' } : { type: 'unclear' }
}
