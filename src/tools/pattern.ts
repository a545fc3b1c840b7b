// Patterns of policy rules: text, paths and commands. Pure. A pattern that allows is read narrowly, one that asks or
// denies is read widely: in doubt a call is asked about, never let through.

/** `*` stands for any run of characters. Everything else is itself; the whole text must match. */
export function matchesText(pattern: string, text: string): boolean {
  const [head = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return text === pattern
  if (!text.startsWith(head)) return false
  let at = head.length
  for (const piece of rest.slice(0, -1)) {
    const found = text.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  const tail = rest.at(-1) ?? ''
  return text.length - tail.length >= at && text.endsWith(tail)
}

/** Segment by segment: `*` within one segment, `**` for any number of them. Never by prefix of characters. */
export function matchesPath(pattern: string, path: string): boolean {
  const wanted = pattern.split('/').filter((segment) => segment !== '' && segment !== '.')
  const given = segmentsOf(path)
  if (given === null || pattern.startsWith('/') !== path.startsWith('/')) return false
  return matchesSegments(wanted, given)
}

/** The same, but wherever in the path the pattern fits: an absolute path must not slip past a relative rule. */
export function matchesPathAnywhere(pattern: string, path: string): boolean {
  const given = segmentsOf(path)
  if (given === null) return true
  const wanted = pattern.split('/').filter((segment) => segment !== '' && segment !== '.')
  const fold = (segments: readonly string[]): readonly string[] => segments.map((segment) => segment.toLowerCase())
  // The folder itself, too, is somewhere: `**` means it.
  if (given.length === 0) return matchesSegments(wanted, given)
  return given.some((_, i) => matchesSegments(fold(wanted), fold(given.slice(i))))
}

/** Null when the path climbs out of where it starts: such a path matches nothing that allows. */
function segmentsOf(path: string): readonly string[] | null {
  const segments: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue
    if (segment !== '..') segments.push(segment)
    else if (segments.pop() === undefined) return null
  }
  return segments
}

function matchesSegments(pattern: readonly string[], path: readonly string[]): boolean {
  // Which positions of the pattern can be reached after each segment: linear, however many `**` there are.
  let open = expand(pattern, new Set([0]))
  for (const segment of path) {
    const next = new Set<number>()
    for (const at of open) {
      const wanted = pattern[at]
      if (wanted === undefined) continue
      if (wanted === '**') next.add(at)
      else if (matchesText(wanted, segment)) next.add(at + 1)
    }
    open = expand(pattern, next)
  }
  return open.has(pattern.length)
}

function expand(pattern: readonly string[], open: ReadonlySet<number>): ReadonlySet<number> {
  const all = new Set(open)
  for (const at of all) if (pattern[at] === '**') all.add(at + 1)
  return all
}

/** The words of a command that is nothing but words; null as soon as a shell would do more than split it. */
export function plainWords(command: string): readonly string[] | null {
  const words: string[] = []
  let at = 0
  while (at < command.length) {
    if (command[at] === ' ' || command[at] === '\t') {
      at += 1
      continue
    }
    const word = wordAt(command, at)
    // `NAME=value` before a command changes its environment: that is more than a word.
    if (word === null || (words.length === 0 && /^[A-Za-z_]\w*\+?=/.test(word.text))) return null
    words.push(word.text)
    at = word.end
  }
  return words.length > 0 ? words : null
}

const PLAIN = /[A-Za-z0-9_@%+=:,./^-]/

function wordAt(command: string, start: number): { readonly text: string; readonly end: number } | null {
  let text = ''
  let at = start
  while (at < command.length && command[at] !== ' ' && command[at] !== '\t') {
    const char = command[at] ?? ''
    if (char === "'" || char === '"') {
      const end = command.indexOf(char, at + 1)
      const inner = end < 0 ? null : command.slice(at + 1, end)
      // Within double quotes a shell still expands; a quoted line break is nobody's plain word.
      if (inner === null || inner.includes('\n') || (char === '"' && /[$`\\!]/.test(inner))) return null
      text += inner
      at = end + 1
    } else if (PLAIN.test(char)) {
      text += char
      at += 1
    } else return null
  }
  return { text, end: at }
}

/** Word by word; a last `*` stands for any further words, elsewhere it stands for exactly one. */
export function matchesWords(pattern: string, words: readonly string[]): boolean {
  const wanted = pattern.split(/\s+/).filter((word) => word !== '')
  const open = wanted.at(-1) === '*'
  const fixed = open ? wanted.slice(0, -1) : wanted
  if (open ? words.length < fixed.length : words.length !== fixed.length) return false
  return fixed.every((word, i) => word === '*' || word === words[i])
}

/** Every stretch of the command that a shell might run by itself, also inside quotes, substitutions and subshells. */
export function stretches(command: string): readonly (readonly string[])[] {
  return command
    .split(/[;&|\n\r(){}`]|\$\(/)
    .map((part) =>
      part
        .split(/\s+/)
        // Quotes and backslashes anywhere: `g'i't` and `\git` run the same as `git`.
        .map((word) => word.replace(/["'\\]/g, ''))
        .filter((word) => word !== ''),
    )
    .filter((words) => words.length > 0)
}
