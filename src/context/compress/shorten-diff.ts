// Shortens diffs: changes stay, long runs of unchanged lines are counted, and generated files are one line each. Always
// lossy.
import type { Shortener } from './text-kind.ts'
import { cutLine } from './cut-lines.ts'

const CONTEXT = 3
const RUN_MAX = 8
const LINE_CHARS_MAX = 500
const HUNK = /^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@/
/** Generated files: only their size is shown. */
const GENERATED =
  /(?:^|\/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock|poetry\.lock|uv\.lock|Pipfile\.lock|Gemfile\.lock|composer\.lock|go\.sum|flake\.lock)$|\.(?:min\.(?:js|css)|map|snap)$/

/** After this many characters, other work of the process gets a turn. */
const STRETCH_CHARS = 1024 * 1024

export const shortenDiff: Shortener = async (text, { lossless, signal }) => {
  if (lossless) return null
  const diff = new DiffShortener()
  let pause = STRETCH_CHARS
  for (let at = 0; at <= text.length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline
    diff.take(text.slice(at, end), text.startsWith('+++ ', end + 1) ? lineAt(text, end + 1) : null)
    at = end + 1
    if (at < pause) continue
    pause = at + STRETCH_CHARS
    diff.pack()
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
  }
  return { text: diff.end(), lossy: true }
}

function lineAt(text: string, at: number): string {
  const newline = text.indexOf('\n', at)
  return text.slice(at, newline < 0 ? text.length : newline)
}

/** Reads a diff line by line and file by file: each line is read once. */
class DiffShortener {
  readonly #done: string[] = []
  /** Null until the first file begins. */
  #path: string | null = null
  #generated = false
  #deleted = false
  #shown: string[] = []
  #packed: string[] = []
  #plus = 0
  #minus = 0
  #hunks = 0
  /**
   * Lines of the open hunk that are still to come. They tell its lines from headers: a removed `-- x` looks like a
   * header.
   */
  #before = 0
  #after = 0
  /** Consecutive unchanged lines; `opens` if they begin a hunk. */
  #run: string[] = []
  #opens = false

  /** `named`: the next line, if it is the second line of a header. */
  take(line: string, named: string | null): void {
    if (this.#hunks > 0 && (this.#before > 0 || this.#after > 0 || line.startsWith('\\'))) return this.#inHunk(line)
    this.#endRun(true)
    const counts = this.#path === null ? null : HUNK.exec(line)
    if (counts !== null) return this.#openHunk(line, Number(counts[1] ?? 1), Number(counts[2] ?? 1))
    const bare = line.startsWith('--- ') && named !== null
    if (line.startsWith('diff --git ')) this.#begin(pathIn(line))
    else if (this.#path === null || (bare && this.#hunks > 0)) this.#begin(bare ? pathIn(named ?? '') : '')
    this.#deleted ||= line.startsWith('deleted file ')
    if (!/^index [0-9a-f]/.test(line)) this.#shown.push(cutLine(line, LINE_CHARS_MAX))
  }

  end(): string {
    this.#endRun(true)
    this.#close()
    return this.#done.join('\n')
  }

  /** Joins the lines shown so far into one text: joining a million lines at the end would take long. */
  pack(): void {
    if (this.#generated || this.#deleted || this.#shown.length === 0) return
    this.#packed.push(this.#shown.join('\n'))
    this.#shown = []
  }

  #openHunk(title: string, before: number, after: number): void {
    this.#before = before
    this.#after = after
    this.#hunks += 1
    this.#opens = true
    this.#shown.push(title)
  }

  #inHunk(line: string): void {
    const sign = line[0]
    if (sign === '+') this.#plus += 1
    if (sign === '-') this.#minus += 1
    if (sign !== '+' && sign !== '\\') this.#before -= 1
    if (sign !== '-' && sign !== '\\') this.#after -= 1
    // Of these files only the size is shown.
    if (this.#generated || this.#deleted) return
    if (sign !== '+' && sign !== '-') return void this.#run.push(line)
    this.#endRun(false)
    this.#opens = false
    this.#shown.push(cutLine(line, LINE_CHARS_MAX))
  }

  /** Of a long run of unchanged lines, shows those next to a change. */
  #endRun(last: boolean): void {
    const run = this.#run
    if (run.length === 0) return
    const [head, tail] = [this.#opens ? 0 : CONTEXT, last ? 0 : CONTEXT]
    const left = run.length > RUN_MAX ? run.length - head - tail : 0
    for (const [i, line] of run.entries()) {
      if (i === head && left > 0) this.#shown.push(`[… ${left} unchanged lines …]`)
      if (left === 0 || i < head || i >= head + left) this.#shown.push(line)
    }
    this.#run = []
  }

  #begin(path: string): void {
    this.#close()
    this.#path = path
    this.#generated = GENERATED.test(path)
    this.#deleted = false
    this.#shown = []
    this.#plus = 0
    this.#minus = 0
    this.#hunks = 0
  }

  #close(): void {
    if (this.#path === null) return
    const [plus, minus] = [this.#plus, this.#minus]
    if (this.#generated) this.#done.push(`${this.#path}: generated, +${plus} -${minus} lines left out`)
    else if (this.#deleted) this.#done.push(this.#shown[0] ?? this.#path, `deleted, ${minus} lines left out`)
    else for (const lines of [this.#packed, this.#shown]) for (const line of lines) this.#done.push(line)
    this.#packed = []
  }
}

/** The last path in a header, without the prefix letter. */
function pathIn(header: string): string {
  const path = header.slice(header.lastIndexOf(' ') + 1)
  return /^[abciw]\//.test(path) ? path.slice(2) : path
}
