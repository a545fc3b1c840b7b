// Detects a text that is really a tool call that its host failed to parse. Such a text is never a final answer, and
// nothing in it is run. Pure, and linear in the text.
import { parseJson } from '../../view/untrusted-json.ts'

/** The markers before a call in the formats of Hermes, Llama, Qwen, GLM, Mistral, Kimi, DeepSeek, MiniMax, gpt-oss and Gemma. */
const MARKER = new RegExp(
  [
    '<(?:minimax:)?tool_calls?>|<toolcall>|<function(?:=| name=)|<function_calls?>|<invoke name=|<tool_use>|\\[TOOL_CALLS\\]|<\\|python_tag\\|>',
    '<\\|tool_calls?(?:_section)?(?:_begin)?\\|>|<｜tool▁(?:calls?▁begin|sep)｜>|<｜DSML｜(?:function_calls>|invoke name=)',
    '<\\|channel\\|>commentary to=|<start_function_call>call:',
  ].join('|'),
  'g',
)
/** A text with more markers is about markers; only the first ones are tested. */
const MARKERS_MAX = 64
/** A text with more JSON values is data; the rest is not tested. */
const VALUES_MAX = 1_000
/** A leaked call is not nested deeper. */
const DEPTH_MAX = 64
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
  return hasMarkedCall(body, spans, names) || spans.some((span) => hasBareCall(body, span, names))
}

/** A part of the text that may hold a call. Code fences are skipped unless one ends the text. */
type TextSpan = { readonly from: number; readonly to: number }

function spansOf(body: string): readonly TextSpan[] {
  const spans: TextSpan[] = []
  let from = 0
  let fenced = false
  for (let at = 0; at < body.length; ) {
    const end = endOfLine(body, at)
    if (body.startsWith('```', at)) {
      if (!fenced) spans.push({ from, to: at })
      else if (end === body.length) spans.push({ from, to: at })
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
    const outside = index < (spans[span]?.from ?? body.length)
    const quoted = body[index - 1] === '`'
    if (!outside && !quoted && namesTool(body.slice(index + marker.length).slice(0, NEAR_CHARS), names)) return true
  }
  return false
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

/** -1 if it does not close or is nested too deeply. */
function endOfJson(body: string, from: number, to: number): number {
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
