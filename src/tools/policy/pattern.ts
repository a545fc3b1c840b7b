// Patterns of policy rules: text and paths; commands are command-pattern.ts. Pure. A pattern that allows is read narrowly, one
// that asks or denies is read widely: in doubt a call is asked about, never let through. Each text is looked at once.

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
  const wanted = wantedOf(pattern)
  const given = segmentsOf(path)
  if (given === null || pattern.startsWith('/') !== path.startsWith('/')) return false
  return matchesSegments(wanted, given)
}

/** The same, but wherever in the path the pattern fits: an absolute path must not slip past a relative rule. */
export function matchesPathAnywhere(pattern: string, path: string): boolean {
  const given = segmentsOf(path)
  // In small letters, because some disks take them for the same.
  return (
    given === null ||
    matchesSegments(
      wantedOf(pattern.toLowerCase()),
      given.map((one) => one.toLowerCase()),
      true,
    )
  )
}

function wantedOf(pattern: string): readonly string[] {
  return pattern.split('/').filter((segment) => segment !== '' && segment !== '.')
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

/** `anywhere`: the pattern may begin at any segment. */
function matchesSegments(pattern: readonly string[], path: readonly string[], anywhere = false): boolean {
  // Which positions of the pattern can be reached after each segment: linear, however many `**` there are.
  const start = expand(pattern, new Set([0]))
  let open = start
  for (const [i, segment] of path.entries()) {
    const next = new Set<number>()
    for (const at of anywhere && i > 0 ? new Set([...open, ...start]) : open) {
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
