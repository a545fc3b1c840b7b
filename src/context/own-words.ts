// Tells a user's own words from pasted text: fences, tagged blocks, mail, quoted lines, indented code and comments of
// code. Text of another author must not become a rule of the user, so text in doubt counts as pasted. Pure, and in one
// pass over the text.

/** Only the beginning of a longer line is read. */
const LINE_CHARS_READ = 4_000
/**
 * `Never use <b>bold</b> text.` is a sentence about a tag: a tag without attributes around at most this many words
 * encloses no pasted text.
 */
const TAGGED_WORDS_MAX = 3
/** So few words hardly have more characters. */
const MENTION_CHARS_READ = 80
/**
 * A line that announces rules is followed by rules of the user; a line such as "The page:" is followed by pasted text.
 */
const RULES_AHEAD =
  /\b(?:rules?|constraints?|requirements?|guidelines?|conventions?|instructions?|keep in mind|note)\b/i

const FENCE = /^\s*(`{3,}(?=[^`]*$)|~{3,})\s*(\S?)/
const HEADER = /^[\s*]*(from|sent|to|cc|bcc|subject|date|reply-to|von|gesendet|an|betreff|datum)[\s*]*:/i
/** A mail is recognized by at most this many headers. */
const HEADERS_READ = 8
/** The dashes before the words are bounded: otherwise a long line of dashes takes quadratic time. */
const MAIL =
  /^\W{0,400}(?<=--\s{0,9})(?:original message|forwarded message|ursprüngliche nachricht)|^\s*begin forwarded message:|^\s*(?:on|am|le) .{5,160} (?:wrote|schrieb|a écrit)\s*:\s*$/i
const SEPARATOR = /^\s*([-=*#_+~%$])\1{2,}\s*$/
const BEGIN = /^\s*[-=*#<>]{3,} ?(?:begin|start)\b.{0,200}[-=*#<>]{3,}\s*$/i
const END = /^\s*[-=*#<>]{3,} ?end\b/i
/** "Translate: …" and "Summarise this for me: …". */
const MATERIAL =
  /^\s*(?:please )?(?:translate|summari[sz]e|proofread|rephrase|paraphrase)(?: (?!like\b|with\b|under\b|by\b)[\w-]+){0,6}:\s*(.?)/i
/**
 * In "Translate the page to German: …" the text after the colon says how to translate. In "Translate this text: …" it
 * is the text to translate.
 */
const NAMED_MATERIAL =
  /^[^:]*\b(?:everything\b|(?:the|my|our|all|each|every|this|that|these|those) (?!(?:following|texts?|sentences?|paragraphs?|phrases?|words?|lines?|mails?|messages?|quotes?|to|into|from|for|in|as|please)\b)\w)/i
const QUOTED_LINE = /^\s*>|^\s*(?!"""|''')["“”„«'‘].*["“”»'’][.,;:!?]?\s*$/
const INDENTED = /^(?: {4}|\t)\s*\S/
const BULLET = /^\s*(?:[-*+•]|\d+[.)])\s/
/** Comments that may also be a heading or a dash: they count only beside a line of code. */
const HASH_COMMENT = /^\s*(?:#|--)\s/
const CODE_LINE =
  /[;{}]\s*$|^\s*(?:#!|def |class |import |from \w+ import|function |const |let |var |return\b|export |SELECT |INSERT |UPDATE |DELETE )|^\s*[\w.]+ ?[+:]?= ?\S|^\s*[\w.]+\(.*\)\s*$/
/**
 * The code before a comment in a line, besides the forms of CODE_LINE: a short label, a part of a list or of a call, a
 * keyword.
 */
const CODE_BEFORE =
  /^\s*\S+(?: \S+)?:\s*$|^\s*\S+(?:\s\S+){0,2}(?<=[,()[\]=&|+>])\s+$|^\s*(?:[})\]&|?@]|(?:if|for|while|switch) ?\(|(?:else|throw|await|public|private|protected|static|fn|func|struct|int|void) |(["'])[^"']*\1\s*:)/
const CODE_BEFORE_CHARS = 300
/** Tags around a user's own instructions. */
const OWN_TAG = /^<\/?(?:rules|instructions|constraints|guidelines|requirements)\s*>$/i
/** Openings inside a line that may close in a later one, and the closing tags of a user's own instructions. */
const OPENING =
  /<\/(?:rules|instructions|constraints|guidelines|requirements)\s*>|<!--|"""|'''|(?<!\S)\/\*|(?<![:\w])\/\/(?=[\sA-Z])|<([a-z][\w:.-]*)(\s[^<>]*)?>|\[(quote|code|pre|spoiler)\b[^[\]]*\]/gi
const CLOSING = /<\/([a-z][\w:.-]*)\s*>|\[\/(quote|code|pre|spoiler)\]/gi
const CLOSERS: Readonly<Record<string, string>> = { '<!--': '-->', '"""': '"""', "'''": "'''", '/*': '*/' }

export type OwnWords = {
  /** The lines that the user wrote. Pasted lines are empty. */
  readonly lines: readonly string[]
  /** Pasted text was left out. */
  readonly hasPasted: boolean
}

export function findOwnWords(text: string): OwnWords {
  // If the whole message is indented, as in the code of a program, indentation does not mean code.
  const isIndented = !/^ {0,3}\S/m.test(text)
  const page: ScannedText = { text, isIndented, closings: lastClosings(text), unclosed: new Set() }
  const lines: string[] = []
  let hasPasted = false
  let lineEnd = -1
  let before = ''
  let isBlankBefore = true
  let isCut = false
  for (let from = 0; from <= text.length; ) {
    if (from > lineEnd) lineEnd = endOfLine(text, from)
    const line = lineUntil(text, from, lineEnd)
    const isStart = from === 0 || text[from - 1] === '\n'
    const { shown, next } = line
    const end = isStart && shown !== '' ? endOfBlock(page, { shown, next, before, isBlankBefore }) : null
    const read: ReadLine = end === null ? readInside(page, line, from) : { own: '', to: end, isCut: false }
    const { to } = read
    const isHalf: boolean = isCut && !isStart
    const own = isHalf ? dropHalfSentence(read.own) : read.own
    isCut = read.isCut || (isHalf && isBlank(read.own))
    lines.push(own)
    hasPasted ||= end !== null || own.length !== shown.length
    isBlankBefore = !/\S/.test(shown)
    // Indented rules below a line that announces them keep that line as the line above.
    if (/\S/.test(own) && !(INDENTED.test(own) && announcesRules(before))) before = own
    from = to
  }
  return { lines, hasPasted }
}

type ScannedText = {
  readonly text: string
  /** All its lines are indented. */
  readonly isIndented: boolean
  /** The end of the last closing tag of each name. An earlier one may be part of the pasted text. */
  readonly closings: ReadonlyMap<string, number>
  /** Closing signs that do not occur in the rest of the text. */
  readonly unclosed: Set<string>
}
/** `next`: the start of the next line. */
type TextLine = { readonly shown: string; readonly next: number }
/** `before`: the user's last own line above it. */
type BlockStart = TextLine & { readonly before: string; readonly isBlankBefore: boolean }

function lineAt(text: string, from: number): TextLine {
  return lineUntil(text, from, endOfLine(text, from))
}

function endOfLine(text: string, from: number): number {
  const found = text.indexOf('\n', from)
  return found < 0 ? text.length : found
}

function lineUntil(text: string, from: number, end: number): TextLine {
  return { shown: text.slice(from, Math.min(end, from + LINE_CHARS_READ)), next: end + 1 }
}

function lastClosings(text: string): ReadonlyMap<string, number> {
  const closings = new Map<string, number>()
  for (const match of text.matchAll(CLOSING))
    closings.set((match[1] ?? `[${match[2]}`).toLowerCase(), match.index + match[0].length)
  return closings
}

/** The end of the pasted block that begins with this line. Null if none begins here. */
function endOfBlock({ text, isIndented }: ScannedText, place: BlockStart): number | null {
  const { shown, next, before, isBlankBefore } = place
  if (QUOTED_LINE.test(shown)) return next
  if (FENCE.test(shown)) return endOfFence(text, place)
  if (MAIL.test(shown) || beginsMail(text, place)) return text.length + 1
  const isAnnounced = before.trimEnd().endsWith(':') && !RULES_AHEAD.test(before)
  if (BEGIN.test(shown)) return endAfterLine(text, next, (line) => END.test(line)) ?? text.length + 1
  if (isAnnounced && SEPARATOR.test(shown))
    return endAfterLine(text, next, (line) => line.trim() === shown.trim()) ?? text.length + 1
  if (bringsMaterial(shown)) return shown.trimEnd().endsWith(':') && !RULES_AHEAD.test(shown) ? text.length + 1 : next
  if (HASH_COMMENT.test(shown) && (CODE_LINE.test(lineAt(text, next).shown) || CODE_LINE.test(before))) return next
  const isSetOff = isAnnounced || (isBlankBefore && !announcesRules(before))
  const isCode = INDENTED.test(shown) && isSetOff && !BULLET.test(before) && !BULLET.test(shown)
  return isCode && !isIndented ? endOfIndented(text, next) : null
}

function announcesRules(line: string): boolean {
  return line.trimEnd().endsWith(':') && RULES_AHEAD.test(line)
}

/** "From: v1" above "To: v2" is not a mail: a mail has an address, or a sender and a subject, or three headers. */
function beginsMail(text: string, { shown, next }: BlockStart): boolean {
  const names = new Set<string>()
  let hasAddress = false
  let line: TextLine = { shown, next }
  for (let read = 0; read < HEADERS_READ; read++) {
    const name = HEADER.exec(line.shown)?.[1]
    if (name === undefined) break
    names.add(name.toLowerCase())
    hasAddress ||= /@|<[^<>]*>/.test(line.shown)
    if (line.next > text.length) break
    line = lineAt(text, line.next)
  }
  const has = (...some: readonly string[]): boolean => some.some((name) => names.has(name))
  if (names.size < 2) return false
  if (hasAddress || (has('from', 'von') && has('subject', 'betreff', 'sent', 'gesendet'))) return true
  return names.size > 2 && has('subject', 'betreff', 'date', 'datum', 'sent', 'gesendet')
}

/** The text to translate or summarise follows the colon, in this line or below it. */
function bringsMaterial(line: string): boolean {
  const first = MATERIAL.exec(line)?.[1]
  if (first === undefined) return false
  return first === '' || /["“”„«'‘`]/.test(first) || !NAMED_MATERIAL.test(line)
}

/** The start of the line after the first one for which `isEnd` is true. */
function endAfterLine(text: string, from: number, isEnd: (line: string) => boolean): number | null {
  for (let at = from; at <= text.length; ) {
    const { shown, next } = lineAt(text, at)
    if (isEnd(shown)) return next
    at = next
  }
  return null
}

/**
 * A fence inside a fence is part of it: a fence with a language opens another one, and a bare fence closes the last
 * one.
 */
function endOfFence(text: string, { shown, next }: BlockStart): number {
  const [, outer = ''] = FENCE.exec(shown) ?? []
  let open = 1
  const isEnd = (line: string): boolean => {
    const [, mark = '', language] = FENCE.exec(line) ?? []
    if (mark[0] !== outer[0] || mark.length < outer.length) return false
    open += language === '' ? -1 : 1
    return open === 0
  }
  return endAfterLine(text, next, isEnd) ?? text.length + 1
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

/** `to`: the place at which reading goes on. `isCut`: a sentence was cut in two there. */
type ReadLine = { readonly own: string; readonly to: number; readonly isCut: boolean }

/** The user's own part of a line, up to the first pasted text in it. */
function readInside(page: ScannedText, { shown, next }: TextLine, from: number): ReadLine {
  const whole: ReadLine = { own: shown, to: next, isCut: false }
  if (!/[<"'/[]/.test(shown)) return whole
  let mentionEnd = 0
  const lastStar = shown.lastIndexOf('*/')
  for (const match of shown.matchAll(OPENING)) {
    if (match.index < mentionEnd) continue
    const begin = match.index + match[0].length
    const opened: OpenedSpan = {
      match,
      head: shown.slice(0, match.index),
      rest: shown.slice(begin),
      isStarClosed: lastStar >= begin,
    }
    const at = from + match.index
    if (OWN_TAG.test(match[0])) {
      if (isBlank(opened.head) || (match[0].startsWith('</') && isBlank(opened.rest)))
        return { own: opened.head, to: at + match[0].length, isCut: false }
      continue
    }
    const end = match[0] === '//' ? endOfLineComment(opened, next) : endOfOpened(page, opened, at)
    if (end !== null) return cutBefore(opened.head, end)
    mentionEnd = begin + mentionedChars(opened)
  }
  return whole
}

/** An opening sign, and the text before and behind it in its line. */
type OpenedSpan = {
  readonly match: RegExpExecArray
  readonly head: string
  readonly rest: string
  /** A closing comment sign stands behind it in the line. */
  readonly isStarClosed: boolean
}

function isBlank(text: string): boolean {
  return !/\S/.test(text)
}

/** Keeps only whole sentences before pasted text. A sentence that is cut in two might say the opposite. */
function cutBefore(head: string, to: number): ReadLine {
  if (isBlank(head) || /[.:;!?]$/.test(head.trimEnd())) return { own: head, to, isCut: false }
  return { own: /^.*[.!?](?=\s)/s.exec(head)?.[0] ?? '', to, isCut: true }
}

/** Leaves out the second half of a sentence that was cut in two. */
function dropHalfSentence(words: string): string {
  return words.slice(/[.!?](?=\s)/.exec(words)?.index ?? words.length).slice(1)
}

/** A comment begins its line or follows code. In prose, `//` and `/*` are ordinary words. */
function standsInCode(head: string): boolean {
  const near = head.slice(-CODE_BEFORE_CHARS)
  return isBlank(head) || CODE_LINE.test(near) || CODE_BEFORE.test(near)
}

function endOfLineComment({ head }: OpenedSpan, next: number): number | null {
  return standsInCode(head) ? next : null
}

/** Null if no pasted text begins here. */
function endOfOpened(page: ScannedText, opened: OpenedSpan, at: number): number | null {
  const { match, head, rest } = opened
  const [sign, tag, attributes = '', bracket] = match
  const begin = at + sign.length
  if (CLOSERS[sign] !== undefined) return endOfClosed(page, opened, begin)
  const name = (tag ?? `[${bracket}`).toLowerCase()
  if (attributes.endsWith('/') || name === 'br' || name === 'hr') return null
  if (attributes.trim() === '' && tag !== undefined) {
    const few = /^([^<>]{0,60})<\/([\w:.-]+)>/.exec(rest)
    if (few?.[2]?.toLowerCase() === name && areFewWords(few[1] ?? '')) return null
  }
  const end = page.closings.get(name) ?? 0
  if (end > begin) return end
  return isBlank(head) && isBlank(rest) ? page.text.length + 1 : null
}

function areFewWords(text: string): boolean {
  return text.trim().split(/\s+/).length <= TAGGED_WORDS_MAX
}

function endOfClosed({ text, unclosed }: ScannedText, opened: OpenedSpan, begin: number): number | null {
  const { match, head, rest } = opened
  const closer = CLOSERS[match[0]] ?? ''
  const isQuotation = closer === match[0]
  const isBlockStart = isBlank(head) || isBlank(rest)
  if (!isBlockStart && !standsInCode(head)) {
    if (mentionedChars(opened) > 0) return null
    // In prose, "lib /*" names files.
    if (closer === '*/' && !opened.isStarClosed) return null
  }
  const found = unclosed.has(closer) ? -1 : text.indexOf(closer, begin)
  if (found >= 0) return found + closer.length
  unclosed.add(closer)
  // Only three quotation marks at the start of a line, or alone behind a colon, may stay open. The other signs also
  // stand in file names.
  const isOpen = isBlank(head) || (isBlank(rest) && head.trimEnd().endsWith(':'))
  return isQuotation && isOpen ? text.length + 1 : null
}

/**
 * The length of a few words in a comment or between three quotation marks, with the closing sign: such a sentence is
 * about the signs.
 */
function mentionedChars({ match, rest }: OpenedSpan): number {
  const closer = CLOSERS[match[0]]
  if (closer === undefined) return 0
  const end = rest.slice(0, MENTION_CHARS_READ).indexOf(closer)
  return end >= 0 && areFewWords(rest.slice(0, end)) ? end + closer.length : 0
}
