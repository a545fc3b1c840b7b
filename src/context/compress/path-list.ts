// Shortens lists of files: each folder is named once, with the names in it. Without loss the names keep their order;
// with loss, folders that lie deep or that programs fill are counted.
import { findOddValues, startSplitBudget } from './odd-values.ts'

const PATH = /^[^\s:|]*\/[^\s:|]+$/
const LISTED = /^[-dlcbps][rwxsStT-]{9}[.+@]? +\d+ +\S+ +\S+ +(\d+) +\S+ +\S+ +\S+ +(.+)$/
const LISTING = /^[-dlcbps][rwxsStT-]{9}[.+@]? +\d+ |^\S+:$|^total \d|^$/
const PROBED_LINES = 300
/** The words before the name of a file in a listing, and the number of odd entries that are shown whole. */
const LISTED_WORDS = 8
const ODD_ENTRIES_MAX = 12
const FOLDER_CHARS_MIN = 300
/** Folders that programs fill come last. */
const FILLED_BY_PROGRAMS = /(?:^|\/)(?:node_modules|\.git|vendor|dist|build|target|\.cache|__pycache__)(?:\/|$)/
const FILLED_DEPTH = 20

export type PathList = { readonly text: string; readonly others: readonly string[]; readonly lossy: boolean }

/** Null for a text that is not a list of files. `others`: lines that are not paths. */
export function shortenPathList(lines: readonly string[], charsMax: number): PathList | null {
  const step = Math.max(1, Math.floor(lines.length / PROBED_LINES))
  const probe = lines.filter((_line, i) => i % step === 0)
  const share = (pattern: RegExp): number =>
    probe.filter((line) => pattern.test(line.slice(0, 300))).length / probe.length
  if (share(PATH) >= 0.8) {
    const isPath = (line: string): boolean => /^[^\s:|]+$/.test(line)
    const paths = lines.filter(isPath)
    return { ...renderPaths(paths, charsMax), others: lines.filter((line) => !isPath(line) && line.trim() !== '') }
  }
  return share(LISTING) >= 0.9 ? renderListing(lines, charsMax) : null
}

/** Shortens the output of `ls -l` to names with their sizes. Always lossy. */
function renderListing(lines: readonly string[], charsMax: number): PathList {
  let folder = '.'
  const paths: string[] = []
  const others: string[] = [...findOddEntries(lines)]
  for (const line of lines) {
    const listed = LISTED.exec(line)
    if (listed !== null) paths.push(`${folder}/${listed[2]}${line.startsWith('d') ? '/' : `(${listed[1]})`}`)
    else if (/^\S.*:$/.test(line)) folder = line.slice(0, -1)
    else if (!LISTING.test(line)) others.push(line)
  }
  return { ...renderPaths(paths, charsMax), lossy: true, others }
}

/** Whole lines of a listing with an unusual mode, owner, size or date. */
function findOddEntries(lines: readonly string[]): readonly string[] {
  const entries = lines.filter((line) => LISTED.test(line))
  const words = entries.map((line) => line.split(/ +/, LISTED_WORDS))
  const odd = new Set<number>()
  const budget = startSplitBudget()
  for (let column = 0; column < LISTED_WORDS; column++)
    for (const { row } of findOddValues(
      words.map((each) => each[column] ?? ''),
      budget,
    ))
      odd.add(row)
  return [...odd].slice(0, ODD_ENTRIES_MAX).map((row) => entries[row] ?? '')
}

type FolderNames = { readonly path: string; readonly names: string[] }

function renderPaths(paths: readonly string[], charsMax: number): Omit<PathList, 'others'> {
  const whole = foldPaths(paths)
  if (whole.length <= charsMax) return { text: whole, lossy: true }
  const folders = new Map<string, FolderNames>()
  for (const path of paths) {
    const at = path.endsWith('/') ? path.lastIndexOf('/', path.length - 2) : path.lastIndexOf('/')
    const folder = folders.get(path.slice(0, at + 1)) ?? { path: path.slice(0, at + 1), names: [] }
    folder.names.push(path.slice(at + 1))
    folders.set(folder.path, folder)
  }
  const shown = new Map<string, string>()
  const most = Math.max(FOLDER_CHARS_MIN, charsMax / 12)
  let left = charsMax - 60
  let [folderCount, nameCount] = [0, 0]
  for (const folder of [...folders.values()].sort((a, b) => depthOf(a.path) - depthOf(b.path))) {
    const line = renderFolder(folder, most)
    if (line.length + 1 > left) {
      folderCount += 1
      nameCount += folder.names.length
      continue
    }
    left -= line.length + 1
    shown.set(folder.path, line)
  }
  const lines = [...folders.keys()].flatMap((path) => shown.get(path) ?? [])
  if (folderCount > 0) lines.push(`[… ${nameCount} names in ${folderCount} other folders]`)
  return { text: lines.join('\n'), lossy: true }
}

function renderFolder({ path, names }: FolderNames, most: number): string {
  let line = `${path}:`
  let count = 0
  for (; count < names.length && line.length + (names[count] ?? '').length < most; count++) line += ` ${names[count]}`
  return count < names.length ? `${line} [… ${names.length - count} more]` : line
}

function depthOf(path: string): number {
  return path.split('/').length + (FILLED_BY_PROGRAMS.test(path) ? FILLED_DEPTH : 0)
}

/** Writes consecutive paths of one folder as one line: `src/a/: b.ts c.ts`. */
export function foldPaths(paths: readonly string[]): string {
  const lines: string[] = []
  let last = ''
  for (const path of paths) {
    const at = path.lastIndexOf('/') + 1
    const folder = path.slice(0, at)
    const open = lines.at(-1)
    const isFolded = folder !== '' && at < path.length && !/\s/.test(path)
    if (open !== undefined && isFolded && folder === last) lines[lines.length - 1] = `${open} ${path.slice(at)}`
    else lines.push(isFolded ? `${folder}: ${path.slice(at)}` : path)
    last = isFolded ? folder : ''
  }
  return lines.join('\n')
}

/** Restores the paths, for `light`: this form is used only if it gives back the same text. */
export function unfoldPaths(folded: string): string {
  return folded
    .split('\n')
    .flatMap((line) => {
      const at = line.indexOf('/: ')
      if (at < 0) return [line]
      const folder = line.slice(0, at + 1)
      return line
        .slice(at + 3)
        .split(' ')
        .map((name) => folder + name)
    })
    .join('\n')
}
