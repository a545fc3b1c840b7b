// The files of a folder for the menu after `@`: those that git knows and those it would take, or without git a bounded
// walk. A search narrows the last matches and works in slices, so that typing stays quick with 50,000 files.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fuzzyRank, type SearchText, searchTextOf } from './fuzzy.ts'

const FILES_MAX = 100_000
const SHOWN_MAX = 50
/** How long one slice of a search works, and for how many files the clock is not looked at. */
const SLICE_MS = 8
const FILES_PER_LOOK = 256
/** A list that is older than this is read again when the next word is begun. */
const FRESH_MS = 3_000

type Found = { readonly path: string; readonly rank: number }

/** The search for one query; `next`: the first file that was not looked at. */
type Search = {
  readonly query: string
  readonly among: readonly SearchText[]
  next: number
  readonly matches: SearchText[]
  readonly best: Found[]
}

export class FileSearch {
  readonly #folder: string
  #files: readonly SearchText[] = []
  #readAt: number | null = null
  #isReading = false
  #search: Search | null = null

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The best matches so far. `changed` is called when there are more. */
  find(query: string, changed: () => void): readonly string[] {
    const wanted = query.toLowerCase()
    if (this.#readAt === null || (wanted === '' && performance.now() - this.#readAt > FRESH_MS))
      void this.#read(changed)
    if (this.#search?.query !== wanted) {
      this.#search = this.#begin(wanted)
      this.#work(this.#search, changed)
    }
    return this.#search.best.map(({ path }) => path)
  }

  #begin(query: string): Search {
    const last = this.#search
    const isNarrower = last !== null && last.query !== '' && query.startsWith(last.query)
    // Files that the last search had not reached yet come after its matches.
    const among = isNarrower
      ? last.next < last.among.length
        ? [...last.matches, ...last.among.slice(last.next)]
        : last.matches
      : this.#files
    return { query, among, next: 0, matches: [], best: [] }
  }

  #work(search: Search, changed: () => void): void {
    if (this.#search !== search) return
    const end = performance.now() + SLICE_MS
    const { among, query } = search
    while (search.next < among.length) {
      const to = Math.min(among.length, search.next + FILES_PER_LOOK)
      for (; search.next < to; search.next += 1) {
        const file = among[search.next]
        const rank = file ? fuzzyRank(query, file, worstOf(search.best)) : null
        if (file === undefined || rank === null) continue
        search.matches.push(file)
        keepBest(search.best, { path: file.text, rank })
      }
      if (performance.now() > end) break
    }
    if (search.next >= among.length) return
    setImmediate(() => {
      this.#work(search, changed)
      if (this.#search === search) changed()
    })
  }

  async #read(changed: () => void): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    this.#readAt = performance.now()
    const paths = (await gitFiles(this.#folder)) ?? (await walkFiles(this.#folder))
    this.#files = await inSlices(paths)
    this.#isReading = false
    this.#search = null
    changed()
  }
}

/** A file of this rank or above is not among the best. */
function worstOf(best: readonly Found[]): number {
  return best.length < SHOWN_MAX ? Number.POSITIVE_INFINITY : (best.at(-1)?.rank ?? 0)
}

/** Keeps the best few, in order. */
function keepBest(best: Found[], found: Found): void {
  if (found.rank >= worstOf(best)) return
  let at = best.length
  while (at > 0 && (best[at - 1]?.rank ?? 0) > found.rank) at -= 1
  best.splice(at, 0, found)
  if (best.length > SHOWN_MAX) best.pop()
}

async function inSlices(paths: readonly string[]): Promise<readonly SearchText[]> {
  const files: SearchText[] = []
  for (let at = 0; at < paths.length; at += 5_000) {
    for (const path of paths.slice(at, at + 5_000)) files.push(searchTextOf(path))
    await new Promise((resolve) => void setImmediate(resolve))
  }
  return files
}

const LIST = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate']
const GIT_MS = 30_000

/**
 * Null: the folder is in no repository, or there is no git. It runs git as run-git.ts does, so that no setting of the
 * repository can start a program: the menu opens also in folders that are not trusted.
 */
async function gitFiles(folder: string): Promise<readonly string[] | null> {
  try {
    const { openRepository, runGit } = await import('../../tools/worktrees/run-git.ts')
    const at = await openRepository(folder, GIT_MS)
    if (typeof at === 'string') return null
    const { code, stdout } = await runGit(at, LIST, { timeoutMs: GIT_MS })
    return code === 0 ? namesIn(stdout) : null
  } catch {
    return null
  }
}

/** A name that is no UTF-8 could not be written back, so it is left out. */
function namesIn(text: string): readonly string[] {
  return text
    .split('\0')
    .filter((name) => name !== '' && !name.includes('\ufffd'))
    .slice(0, FILES_MAX)
}

/** Folders that hold what programs made, not people. */
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', '.git', '.hg', '.svn', '__pycache__', '.venv', 'target'])
const WALKED_MAX = 50_000

/** Folder by folder, so that files near the top are found first. Links are not followed. */
async function walkFiles(folder: string): Promise<readonly string[]> {
  const files: string[] = []
  const folders = ['']
  for (const below of folders) {
    const entries = await readdir(join(folder, below), { withFileTypes: true }).catch(() => [])
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) folders.push(path)
      else if (entry.isFile() && !path.includes('\ufffd')) files.push(path)
      if (files.length >= WALKED_MAX) return files
    }
    if (folders.length > WALKED_MAX) break
  }
  return files
}
