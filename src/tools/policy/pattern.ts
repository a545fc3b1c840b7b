// Patterns of policy rules for texts and paths; those for commands are in command-pattern.ts. Pure. A pattern that
// allows is read narrowly, one that asks or denies is read widely: in doubt a call is asked about, never let through.
// Each text is read once.

/** `*` stands for any run of characters. The whole text must match. */
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

/**
 * Compares segments: `*` stands within one segment, `**` for any number of them. It never compares by character prefix.
 */
export function matchesPath(pattern: string, path: string): boolean {
  const wanted = patternSegments(pattern)
  const given = pathSegments(path)
  if (given === null || pattern.startsWith('/') !== path.startsWith('/')) return false
  return matchesSegments(wanted, given)
}

/** As `matchesPath`, starting anywhere in the path: an absolute path must not evade a relative rule. */
export function matchesPathAnywhere(pattern: string, path: string): boolean {
  const given = pathSegments(path)
  // Compare in lower case, because some disks ignore case.
  return (
    given === null ||
    matchesSegments(
      patternSegments(pattern.toLowerCase()),
      given.map((one) => one.toLowerCase()),
      true,
    )
  )
}

function patternSegments(pattern: string): readonly string[] {
  return pattern.split('/').filter((segment) => segment !== '' && segment !== '.')
}

/** Null if the path climbs above its start: such a path matches no allowing pattern. */
function pathSegments(path: string): readonly string[] | null {
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
  // Tracks the reachable positions of the pattern after each segment: linear, however many `**` there are.
  const start = expandStars(pattern, new Set([0]))
  let open = start
  for (const [i, segment] of path.entries()) {
    const next = new Set<number>()
    for (const at of anywhere && i > 0 ? new Set([...open, ...start]) : open) {
      const wanted = pattern[at]
      if (wanted === undefined) continue
      if (wanted === '**') next.add(at)
      else if (matchesText(wanted, segment)) next.add(at + 1)
    }
    open = expandStars(pattern, next)
  }
  return open.has(pattern.length)
}

function expandStars(pattern: readonly string[], open: ReadonlySet<number>): ReadonlySet<number> {
  const all = new Set(open)
  for (const at of all) if (pattern[at] === '**') all.add(at + 1)
  return all
}
