// Detects the kind of a text: from its hint, else from its structure. It looks at the beginning of the text and of each
// line only, so a hostile text costs no more than any other.
import type { TextHint, TextKind } from './text-kind.ts'
import { programOfCommand } from './command-noise.ts'

/** The number of lines that are read, and of characters of each. */
const LINES_MAX = 400
const LINE_CHARS = 300
const HEAD_CHARS = 4_096
const SEARCH_SHARE = 0.6
const LOG_SHARE = 0.5
const CODE_SHARE = 0.4
const DIFF_SHARE = 0.9
/** A text with a smaller share of prose was printed by a program. */
const PROSE_SHARE = 0.3

export function detectKind(text: string, hint: TextHint): TextKind {
  const lines = firstLines(text)
  if (isDiff(lines)) return 'diff'
  const said = hint.kind ?? kindByMime(hint.mime) ?? kindByExtension(hint.path)
  if (said !== null && said !== undefined) return said
  if (isSearchTool(hint)) return 'search'
  if (isJson(text)) return 'json'
  if (isHtml(text)) return 'html'
  // The output of a command is a log, unless it is clearly something else.
  return hint.command === undefined ? kindByLines(lines) : (kindByExtension(printedFile(hint.command)) ?? 'log')
}

/** The language of source code, as a file extension; empty if it is not known. */
export function languageOf({ path, command }: TextHint): string {
  const file = path ?? (command === undefined ? undefined : printedFile(command)) ?? ''
  return extensionOf(file)
}

function kindByLines(lines: readonly string[]): TextKind {
  const filled = lines.filter((line) => line.trim() !== '')
  if (filled.length === 0) return 'plain'
  const share = (test: (line: string) => boolean): number => filled.filter(test).length / filled.length
  if (share((line) => parseMatchLine(line) !== null) >= SEARCH_SHARE) return 'search'
  if (filled.filter((line) => DECLARES.test(line)).length >= 3 && share(isCode) >= CODE_SHARE) return 'code'
  return share((line) => LOGGED.test(line)) >= LOG_SHARE || share(isProse) < PROSE_SHARE ? 'log' : 'plain'
}

function firstLines(text: string): readonly string[] {
  const lines: string[] = []
  for (let at = 0; at < text.length && lines.length < LINES_MAX; ) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline
    lines.push(text.slice(at, Math.min(end, at + LINE_CHARS)))
    at = end + 1
  }
  return lines
}

const MIMES: readonly (readonly [pattern: RegExp, kind: TextKind])[] = [
  [/[/+](?:json|x-ndjson|jsonl)$/, 'json'],
  [/^(?:text\/html|application\/xhtml\+xml)$/, 'html'],
  [/^text\/(?:x-diff|x-patch)$/, 'diff'],
  [/^(?:text|application)\/(?:javascript|typescript|x-python|x-rust|ecmascript)$/, 'code'],
]

function kindByMime(mime: string | undefined): TextKind | null {
  const type = (mime ?? '').slice(0, 200).split(';')[0]?.trim().toLowerCase() ?? ''
  return MIMES.find(([pattern]) => pattern.test(type))?.[1] ?? null
}

const EXTENSIONS: Readonly<Record<string, TextKind>> = {
  ...entriesOfKind('json', 'json jsonl ndjson geojson'),
  ...entriesOfKind('code', 'ts tsx mts cts js jsx mjs cjs py pyi rs go java kt c h cc cpp hpp cs swift php scala'),
  ...entriesOfKind('log', 'log csv tsv yaml yml'),
  ...entriesOfKind('html', 'html htm xhtml'),
  ...entriesOfKind('diff', 'diff patch'),
  ...entriesOfKind('plain', 'md txt rst'),
}

function entriesOfKind(kind: TextKind, extensions: string): Readonly<Record<string, TextKind>> {
  return Object.fromEntries(extensions.split(' ').map((extension) => [extension, kind]))
}

function kindByExtension(path: string | undefined): TextKind | null {
  const extension = extensionOf(path ?? '')
  return Object.hasOwn(EXTENSIONS, extension) ? (EXTENSIONS[extension] ?? null) : null
}

function extensionOf(path: string): string {
  const name = path.slice(-100)
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase()
}

const SEARCHES = new Set(['grep', 'search', 'rg', 'ripgrep', 'ag', 'ack'])

/** Whether the text comes from a search, in whatever form the matches are. */
function isSearchTool({ tool, command }: TextHint): boolean {
  if (tool !== undefined && SEARCHES.has(tool.toLowerCase())) return true
  const { program, verb } = programOfCommand(command ?? '')
  return SEARCHES.has(program) || (program === 'git' && verb === 'grep')
}

/** The one file that a command prints unchanged. */
function printedFile(command: string): string | undefined {
  const words = command.slice(0, 400).trim().split(/\s+/)
  return words.length === 2 && words[0] === 'cat' ? words[1] : undefined
}

const JSON_ENDS: Readonly<Record<string, string>> = { '{': '}', '[': ']' }

/** Checks the first and last character. Parsing shows later whether it is JSON. */
function isJson(text: string): boolean {
  const first = text.slice(0, HEAD_CHARS).trimStart()
  const close = Object.hasOwn(JSON_ENDS, first[0] ?? '') ? JSON_ENDS[first[0] ?? ''] : undefined
  if (close === undefined || !/^(?:\{\s*["}]|\[\s*["{[\]\dtfn-])/.test(first)) return false
  return text.slice(-HEAD_CHARS).trimEnd().endsWith(close)
}

function isHtml(text: string): boolean {
  const head = text
    .slice(0, HEAD_CHARS)
    .replace(/^\uFEFF/, '')
    .trimStart()
  if (/^<(?:!doctype html|html|head|body)\b/i.test(head)) return true
  const part = /^<(?:div|p|table|ul|ol|section|article|main|header|nav|h[1-6])\b[^<>]{0,300}>/i.test(head)
  return part && text.slice(-HEAD_CHARS).trimEnd().endsWith('>')
}

const DIFF_LINE =
  /^(?:[ +\-\\]|@@ |diff --git |index [0-9a-f]|(?:new|deleted|old) (?:file )?mode |rename |copy |(?:dis)?similarity |Binary files |commit [0-9a-f]{7}|Author: |Date: |Merge: |$)/

/** A page that only quotes a diff is not a diff. */
function isDiff(lines: readonly string[]): boolean {
  const begun = lines.some((line, i) => {
    return line.startsWith('diff --git ') || (line.startsWith('--- ') && (lines[i + 1] ?? '').startsWith('+++ '))
  })
  if (!begun || !lines.some((line) => line.startsWith('@@ -'))) return false
  return lines.filter((line) => DIFF_LINE.test(line)).length / lines.length >= DIFF_SHARE
}

const MATCH = /^([^\s:]{1,200}):(\d{1,7}):/
const PATH = /[/\\]|\.[A-Za-z]{1,8}$/

/** The place in a line of `grep -n` output; null for another line, such as one that begins with a time. */
export function parseMatchLine(
  line: string,
): { readonly path: string; readonly line: string; readonly end: number } | null {
  const found = MATCH.exec(line)
  const [all = '', path = '', number = ''] = found ?? []
  return found !== null && PATH.test(path) && !/^\[?\d{4}-\d\d/.test(path)
    ? { path, line: number, end: all.length }
    : null
}

const DECLARES =
  /^\s{0,20}(?:export |public |private |protected |static |async |pub(?:\([a-z]{1,9}\))? )*(?:import|from|class|function|def|fn|interface|struct|enum|impl|trait|const|let|use|type|package|#include|namespace)\b/
const STATEMENT =
  /[;{}),]\s*$|^\s*(?:"""|'''|\w{1,60} [-+]?= \S|\/\/|\/\*|\*|#|@\w|return\b|if\b|for\b|while\b|else\b|try\b|elif\b|with\b)|:\s*$/

function isCode(line: string): boolean {
  return DECLARES.test(line) || STATEMENT.test(line)
}

const LOGGED =
  /^\s{0,20}(?:\[?\d{4}[-/]\d\d[-/]\d\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2}\s{1,2}\d{1,2} \d\d:\d\d:|\[|npm |at |(?:PASS|FAIL|ok|not ok|Compiling|warning|error|remote:|PASSED|FAILED|Downloading|Step)\b|[✓✔✗✘×√>]|={3}|-{3})|\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b|\.\.\. (?:ok|FAILED)/

const PROSE_WORDS_MIN = 4

/** Most words of the line have only letters, and there are at least a few. */
function isProse(line: string): boolean {
  const words = line.trim().split(/\s+/)
  if (words.length < PROSE_WORDS_MIN) return false
  const plain = words.filter((word) => /^["'(*_]{0,2}[\p{L}’'-]+["')*_.,;:!?]{0,3}$/u.test(word)).length
  return plain >= words.length * 0.8
}
