// Detects a text that is really a tool call that its host failed to parse. Such a text is never a final answer, and
// nothing in it is run. Pure, and linear in the text.
import { parseJson } from '../../view/untrusted-json.ts'
import { endOfJson } from './dialects/json-span.ts'
import { FENCE_MARKER, findAny, MARKERS } from './dialects/markers.ts'

/** Every marker that a reader knows is one. That of a fence is searched apart: most texts have backticks. */
const MARKER = findAny(
  Object.keys(MARKERS).filter((marker) => marker !== FENCE_MARKER),
  'g',
)
/** A text with more markers is about markers; only the first ones are tested. */
const MARKERS_MAX = 64
/** A text with more JSON values is data; the rest is not tested. */
const VALUES_MAX = 1_000
/** The tool name comes within this many characters of its marker. */
const NEAR_CHARS = 200

/** The reply to a leaked call. */
export const LEAKED = {
  type: 'retry_user_message',
  text: 'That was a tool call written as text, and nothing was run. Call the tool itself.',
} as const

export function looksLikeCall(text: string, toolNames: readonly string[]): boolean {
  const body = text.trim()
  const names = new Set(toolNames)
  const spans = spansOf(body)
  if (hasMarkedCall(body, spans, names) || hasFencedCall(body, names)) return true
  return spans.some((span) => hasBareCall(body, span, names))
}

/**
 * A part of the text that may hold a call. Code fences are skipped unless one ends the text: it may hold bare JSON that
 * is a call, and after words a marker in it is `quoted`.
 */
type TextSpan = { readonly from: number; readonly to: number; readonly quoted?: true }

function spansOf(body: string): readonly TextSpan[] {
  const spans: TextSpan[] = []
  let from = 0
  let opened = 0
  let fenced = false
  for (let at = 0; at < body.length; ) {
    const end = endOfLine(body, at)
    if (body.startsWith('```', at)) {
      if (!fenced) spans.push({ from, to: at })
      else if (end === body.length) spans.push(opened > 0 ? { from, to: at, quoted: true } : { from, to: at })
      if (!fenced) opened = at
      fenced = !fenced
      from = end
    }
    at = end + 1
  }
  spans.push({ from, to: body.length })
  return spans
}

function endOfLine(body: string, at: number): number {
  const end = body.indexOf('\n', at)
  return end < 0 ? body.length : end
}

function hasMarkedCall(body: string, spans: readonly TextSpan[], names: ReadonlySet<string>): boolean {
  let seen = 0
  let span = 0
  for (const { index, 0: marker } of body.matchAll(MARKER)) {
    // Prose does not begin with a marker.
    if (index === 0) return true
    if (++seen > MARKERS_MAX) return false
    while ((spans[span]?.to ?? body.length) <= index && span < spans.length) span++
    const after = body.slice(index + marker.length).slice(0, NEAR_CHARS)
    const place = spans[span]
    const isProse = place === undefined || index < place.from || place.quoted === true
    if (isProse || body[index - 1] === '`') continue
    if (beginsCall(after, names)) return true
    const rest = body.length - index - marker.length
    if (rest < NEAR_CHARS && UNFINISHED.test(after) && (rest > 0 || /^[ \t]*$/.test(lineBefore(body, index))))
      return true
  }
  return false
}

/** A fence that is marked as a call, at the beginning of the text or of a line. */
function hasFencedCall(body: string, names: ReadonlySet<string>): boolean {
  let at = body.indexOf(FENCE_MARKER)
  if (at <= 0) return at === 0
  if (OTHER_FENCE.test(body)) return false
  for (let seen = 0; at >= 0 && seen < MARKERS_MAX; seen++) {
    const from = at + FENCE_MARKER.length
    if (body[at - 1] === '\n' && beginsCall(body.slice(from, from + NEAR_CHARS), names)) return true
    at = body.indexOf(FENCE_MARKER, from)
  }
  return false
}

/** A fence that can quote the fence of a call. */
const OTHER_FENCE = /^ {0,3}(?:`{4,}|~{3,})/m
/** The text ends within the JSON of a call. */
const UNFINISHED = /^\s*(?:[[{][^}\]]*)?$/
/** After a marker: what can only be a call, also of a tool that does not exist. */
const CALL_SHAPES = [
  /^\s*\[?\s*\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"[^"\\]{1,80}"\s*,\s*"(?:arguments|parameters|args|input)"\s*:/,
  /^\s*[\w.:-]{1,80}\[[^\n]*\]\s*<\//,
  /^"?[\w.:-]{1,80}"?>\s*<(?:parameter|\/(?:invoke|function)>)/,
]

function beginsCall(after: string, names: ReadonlySet<string>): boolean {
  return namesTool(after, names) || CALL_SHAPES.some((shape) => shape.test(after))
}

function lineBefore(body: string, index: number): string {
  return body.slice(Math.max(body.lastIndexOf('\n', index - 1) + 1, index - NEAR_CHARS), index)
}

/** After a marker: JSON that names a tool, or the name itself followed by punctuation of a call. */
function namesTool(after: string, names: ReadonlySet<string>): boolean {
  if (/^\s*[[{]/.test(after)) {
    return [...after.matchAll(/"([^"]{1,80})"/g)].slice(0, 6).some(([, word]) => names.has(bareName(word)))
  }
  const named = /^[\s"']*([\w.:-]{1,80})(?=$|[\s"']*[\n{([<>|])/.exec(after)
  return named !== null && names.has(bareName(named[1]))
}

/** `functions.read:0` is a call of `read`. */
function bareName(word = ''): string {
  const name = word.slice(word.lastIndexOf('.') + 1)
  const colon = name.indexOf(':')
  return colon < 0 ? name : name.slice(0, colon)
}

/** JSON at the start of a line that is a call of a tool. */
function hasBareCall(body: string, { from, to }: TextSpan, names: ReadonlySet<string>): boolean {
  let balanced = true
  let seen = 0
  for (let at = from; at < to && seen < VALUES_MAX; ) {
    while (at < to && ' \t\r\n'.includes(body[at] as string)) at++
    const first = body[at]
    if (first !== '{' && first !== '[') {
      at = endOfLine(body, at) + 1
      continue
    }
    seen += 1
    if (isCutCall(body.slice(at, at + NEAR_CHARS), names)) return true
    const end = balanced ? endOfJson(body, at, to) : -1
    // Unclosed JSON was scanned to the end; do not scan it again.
    if (end < 0) balanced = false
    else if (isCall(parseJson(body.slice(at, end)), names)) return true
    at = endOfLine(body, Math.max(at, end)) + 1
  }
  return false
}

const CUT =
  /^[{[\s]*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,80})"\s*,\s*"(?:arguments|parameters|args|input)"\s*:/

function isCutCall(start: string, names: ReadonlySet<string>): boolean {
  const found = CUT.exec(start)
  return found !== null && names.has(bareName(found[1]))
}

const NAMES = ['name', 'tool', 'tool_name', 'function', 'recipient_name', 'action']
const ARGUMENTS = ['arguments', 'parameters', 'args', 'input', 'tool_input', 'action_input']
const LISTS = ['tool_calls', 'tool_uses', 'function', 'function_call']

function isCall(value: unknown, names: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return value.length > 0 && isCall(value[0], names)
  if (typeof value !== 'object' || value === null) return false
  const fields = value as Readonly<Record<string, unknown>>
  const named = NAMES.some((key) => typeof fields[key] === 'string' && names.has(bareName(fields[key])))
  if (named && ARGUMENTS.some((key) => Object.hasOwn(fields, key))) return true
  return LISTS.some(
    (key) => Object.hasOwn(fields, key) && typeof fields[key] === 'object' && isCall(fields[key], names),
  )
}
