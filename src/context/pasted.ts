// Tells what users wrote themselves from what they pasted: fences, tagged blocks, mail, quoted lines, indented code and comments of code.
// What somebody else wrote must not become a rule of the user, so what is in doubt counts as pasted. Pure, and in one pass over the text.

/** Of a longer line the beginning is read. */
const LINE_CHARS_READ = 4_000
/** `Never use <b>bold</b> text.` is a sentence about a tag: a tag without attributes around so few words encloses nothing pasted. */
const TAGGED_WORDS_MAX = 3
/** A line that announces rules is followed by rules of the user, and a line such as "The page:" by the page. */
const RULES_AHEAD =
  /\b(?:rules?|constraints?|requirements?|guidelines?|conventions?|instructions?|keep in mind|note)\b/i

const FENCE = /^\s*(`{3,}(?=[^`]*$)|~{3,})\s*(\S?)/
const HEADER = /^[\s*]*(?:from|sent|to|cc|bcc|subject|date|reply-to|von|gesendet|an|betreff|datum)[\s*]*:/i
const MAIL =
  /^\W*-{2,}\s*(?:original message|forwarded message|ursprüngliche nachricht)|^\s*begin forwarded message:|^\s*(?:on|am|le) .{5,160} (?:wrote|schrieb|a écrit)\s*:\s*$/i
const SEPARATOR = /^\s*([-=*#_+~%$])\1{2,}\s*$/
const BEGIN = /^\s*[-=*#<>]{3,} ?(?:begin|start)\b.{0,200}[-=*#<>]{3,}\s*$/i
const END = /^\s*[-=*#<>]{3,} ?end\b/i
/** "Translate: …" and "Summarise this for me: …". */
const MATERIAL =
  /^\s*(?:please )?(?:translate|summari[sz]e|proofread|rephrase|paraphrase)(?: (?!like\b|with\b|under\b|by\b)[\w-]+){0,6}:/i
const QUOTED_LINE = /^\s*>|^\s*(?!"""|''')["“”„«'‘].*["“”»'’][.,;:!?]?\s*$/
const INDENTED = /^(?: {4}|\t)\s*\S/
const BULLET = /^\s*(?:[-*+•]|\d+[.)])\s/
/** Comments that are also a heading or a dash: they count beside a line of code. */
const HASH_COMMENT = /^\s*(?:#|--)\s/
const CODE_LINE =
  /[;{}]\s*$|^\s*(?:#!|def |class |import |from \w+ import|function |const |let |var |return\b|export |SELECT |INSERT |UPDATE |DELETE )|^\s*[\w.]+ ?[+:]?= ?\S|^\s*[\w.]+\(.*\)\s*$/
/** What begins inside of a line and may end in a later one. */
const OPENING =
  /<!--|"""|'''|(?<!\S)\/\*|(?<![:\w])\/\/(?=[\sA-Z])|<([a-z][\w:.-]*)(\s[^<>]*)?>|\[(quote|code|pre|spoiler)\b[^[\]]*\]/gi
const CLOSING = /<\/([a-z][\w:.-]*)\s*>|\[\/(quote|code|pre|spoiler)\]/gi
const CLOSERS: Readonly<Record<string, string>> = { '<!--': '-->', '"""': '"""', "'''": "'''", '/*': '*/' }

export type OwnWords = {
  /** What the user wrote. Pasted lines are empty. */
  readonly lines: readonly string[]
  /** Something was left out. */
  readonly hasPasted: boolean
}

export function ownWordsOf(text: string): OwnWords {
  // A message that stands indented in the code of a program is no code itself.
  const isIndented = !/^ {0,3}\S/m.test(text)
  const page: Page = { text, isIndented, closings: lastClosings(text), unclosed: new Set() }
  const lines: string[] = []
  let hasPasted = false
  let lineEnd = -1
  let before = ''
  let isBlankBefore = true
  for (let from = 0; from <= text.length; ) {
    if (from > lineEnd) lineEnd = endOfLine(text, from)
    const line = lineUntil(text, from, lineEnd)
    const isStart = from === 0 || text[from - 1] === '\n'
    const { shown, next } = line
    const end = isStart && shown !== '' ? endOfBlock(page, { shown, next, before, isBlankBefore }) : null
    const { own, to } = end === null ? readInside(page, line, from) : { own: '', to: end }
    lines.push(own)
    hasPasted ||= end !== null || own.length !== shown.length
    isBlankBefore = !/\S/.test(shown)
    if (/\S/.test(own)) before = own
    from = to
  }
  return { lines, hasPasted }
}

type Page = {
  readonly text: string
  /** All its lines are. */
  readonly isIndented: boolean
  /** Where the last closing tag of each name ends. An earlier one may be part of what was pasted. */
  readonly closings: ReadonlyMap<string, number>
  /** Closers that do not occur any more. */
  readonly unclosed: Set<string>
}
/** `next`: where the line after it begins. */
type Line = { readonly shown: string; readonly next: number }
/** `before`: the last line of the user above it. */
type Place = Line & { readonly before: string; readonly isBlankBefore: boolean }

function lineAt(text: string, from: number): Line {
  return lineUntil(text, from, endOfLine(text, from))
}

function endOfLine(text: string, from: number): number {
  const found = text.indexOf('\n', from)
  return found < 0 ? text.length : found
}

function lineUntil(text: string, from: number, end: number): Line {
  return { shown: text.slice(from, Math.min(end, from + LINE_CHARS_READ)), next: end + 1 }
}

function lastClosings(text: string): ReadonlyMap<string, number> {
  const closings = new Map<string, number>()
  for (const match of text.matchAll(CLOSING))
    closings.set((match[1] ?? `[${match[2]}`).toLowerCase(), match.index + match[0].length)
  return closings
}

/** Where a pasted block ends that begins with this line. Null: none begins here. */
function endOfBlock({ text, isIndented }: Page, place: Place): number | null {
  const { shown, next, before, isBlankBefore } = place
  if (QUOTED_LINE.test(shown)) return next
  if (FENCE.test(shown)) return endOfFence(text, place)
  if (MAIL.test(shown) || (HEADER.test(shown) && HEADER.test(lineAt(text, next).shown))) return text.length + 1
  const isAnnounced = before.trimEnd().endsWith(':') && !RULES_AHEAD.test(before)
  if (BEGIN.test(shown)) return endWhere(text, next, (line) => END.test(line)) ?? text.length + 1
  if (isAnnounced && SEPARATOR.test(shown))
    return endWhere(text, next, (line) => line.trim() === shown.trim()) ?? text.length + 1
  if (MATERIAL.test(shown)) return shown.trimEnd().endsWith(':') && !RULES_AHEAD.test(shown) ? text.length + 1 : next
  if (HASH_COMMENT.test(shown) && (CODE_LINE.test(lineAt(text, next).shown) || CODE_LINE.test(before))) return next
  const isCode = INDENTED.test(shown) && (isBlankBefore || isAnnounced) && !BULLET.test(before)
  return isCode && !isIndented ? endOfIndented(text, next) : null
}

/** Where the line after the first one that `isEnd` names begins. */
function endWhere(text: string, from: number, isEnd: (line: string) => boolean): number | null {
  for (let at = from; at <= text.length; ) {
    const { shown, next } = lineAt(text, at)
    if (isEnd(shown)) return next
    at = next
  }
  return null
}

/** A fence in a fence is a part of it: one that is longer or has the name of a language opens, and a bare one closes the last. */
function endOfFence(text: string, { shown, next }: Place): number {
  const [, outer = ''] = FENCE.exec(shown) ?? []
  let open = 1
  const isEnd = (line: string): boolean => {
    const [, mark = '', language] = FENCE.exec(line) ?? []
    if (mark[0] !== outer[0] || mark.length < outer.length) return false
    open += language === '' ? -1 : 1
    return open === 0
  }
  return endWhere(text, next, isEnd) ?? text.length + 1
}

function endOfIndented(text: string, from: number): number {
  let at = from
  while (at <= text.length) {
    const { shown, next } = lineAt(text, at)
    if (shown.trim() !== '' && !INDENTED.test(shown)) break
    at = next
  }
  return at
}

/** What of a line is the user's, up to the first thing in it that was pasted, and where reading goes on. */
function readInside(page: Page, { shown, next }: Line, from: number): { readonly own: string; readonly to: number } {
  if (!/[<"'/[]/.test(shown)) return { own: shown, to: next }
  for (const match of shown.matchAll(OPENING)) {
    const at = from + match.index
    const end = match[0] === '//' ? next : endOfOpened(page, match, shown, at)
    if (end !== null) return { own: shown.slice(0, match.index), to: end }
  }
  return { own: shown, to: next }
}

/** Null: nothing pasted begins here. */
function endOfOpened(page: Page, match: RegExpExecArray, shown: string, at: number): number | null {
  const [opened, tag, attributes = '', bracket] = match
  const begin = at + opened.length
  const closer = CLOSERS[opened]
  if (closer !== undefined) return endOfClosed(page, closer, begin)
  const name = (tag ?? `[${bracket}`).toLowerCase()
  const inside = shown.slice(match.index + opened.length)
  if (attributes.endsWith('/') || name === 'br' || name === 'hr') return null
  if (attributes.trim() === '' && tag !== undefined) {
    const few = /^([^<>]{0,60})<\/([\w:.-]+)>/.exec(inside)
    const words = few?.[1]?.trim().split(/\s+/).length ?? 0
    if (few?.[2]?.toLowerCase() === name && words <= TAGGED_WORDS_MAX) return null
  }
  const end = page.closings.get(name) ?? 0
  if (end > begin) return end
  return shown.trim() === opened ? page.text.length + 1 : null
}

function endOfClosed({ text, unclosed }: Page, closer: string, begin: number): number | null {
  const found = unclosed.has(closer) ? -1 : text.indexOf(closer, begin)
  if (found >= 0) return found + closer.length
  unclosed.add(closer)
  // Three quotation marks open nothing else. The others also stand in names of files and in drawings.
  return /^(?:"""|''')$/.test(closer) ? text.length + 1 : null
}
