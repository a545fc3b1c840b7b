// Where a JSON value in a text ends. Pure, and linear in the value.

/** A call that a model wrote as text is not nested deeper. */
const DEPTH_MAX = 64

/** The position after the value that begins at `from`. -1 if it does not close before `to`, or is nested too deeply. */
export function endOfJson(body: string, from: number, to: number): number {
  let depth = 0
  let quoted = false
  for (let at = from; at < to; at++) {
    const char = body[at]
    if (quoted) {
      if (char === '\\') at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{' || char === '[') {
      if (++depth > DEPTH_MAX) return -1
    } else if ((char === '}' || char === ']') && --depth === 0) return at + 1
  }
  return -1
}

/** The first position at or after `from` that is no white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\r\n'.includes(text[at] as string)) at++
  return at
}
