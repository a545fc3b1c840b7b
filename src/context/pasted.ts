// Tells what users wrote themselves from what they pasted: fences, tagged blocks, mail, quoted lines, indented code and comments of code.
// What somebody else wrote must not become a rule of the user, so what is in doubt counts as pasted. Pure, and in one pass over the text.

/** Of a longer line the beginning is read. */
const LINE_CHARS_READ = 4_000
/** `Never use <b>bold</b> text.` is a sentence about a tag: a tag without attributes around so few words encloses nothing pasted. */
const TAGGED_WORDS_MAX = 3
/** So few words have hardly more characters. */
const MENTION_CHARS_READ = 80
/** A line that announces rules is followed by rules of the user, and a line such as "The page:" by the page. */
const RULES_AHEAD =
  /\b(?:rules?|constraints?|requirements?|guidelines?|conventions?|instructions?|keep in mind|note)\b/i

const FENCE = /^\s*(`{3,}(?=[^`]*$)|~{3,})\s*(\S?)/
const HEADER = /^[\s*]*(from|sent|to|cc|bcc|subject|date|reply-to|von|gesendet|an|betreff|datum)[\s*]*:/i
/** More headers than these need not be read to know a mail. */
const HEADERS_READ = 8
/** The dashes before the words are bounded: without that a long line of dashes takes quadratic time. */
const MAIL =
  /^\W{0,400}(?<=--\s{0,9})(?:original message|forwarded message|ursprüngliche nachricht)|^\s*begin forwarded message:|^\s*(?:on|am|le) .{5,160} (?:wrote|schrieb|a écrit)\s*:\s*$/i
const SEPARATOR = /^\s*([-=*#_+~%$])\1{2,}\s*$/
const BEGIN = /^\s*[-=*#<>]{3,} ?(?:begin|start)\b.{0,200}[-=*#<>]{3,}\s*$/i
const END = /^\s*[-=*#<>]{3,} ?end\b/i
/** "Translate: …" and "Summarise this for me: …". */
const MATERIAL =
  /^\s*(?:please )?(?:translate|summari[sz]e|proofread|rephrase|paraphrase)(?: (?!like\b|with\b|under\b|by\b)[\w-]+){0,6}:\s*(.?)/i
/** "Translate the page to German: …" says what is to be translated, and what follows says how. "Translate this text: …" is followed by it. */
const NAMED_MATERIAL =
  /^[^:]*\b(?:everything\b|(?:the|my|our|all|each|every|this|that|these|those) (?!(?:following|texts?|sentences?|paragraphs?|phrases?|words?|lines?|mails?|messages?|quotes?|to|into|from|for|in|as|please)\b)\w)/i
const QUOTED_LINE = /^\s*>|^\s*(?!"""|''')["“”„«'‘].*["“”»'’][.,;:!?]?\s*$/
const INDENTED = /^(?: {4}|\t)\s*\S/
const BULLET = /^\s*(?:[-*+•]|\d+[.)])\s/
/** Comments that are also a heading or a dash: they count beside a line of code. */
const HASH_COMMENT = /^\s*(?:#|--)\s/
const CODE_LINE =
  /[;{}]\s*$|^\s*(?:#!|def |class |import |from \w+ import|function |const |let |var |return\b|export |SELECT |INSERT |UPDATE |DELETE )|^\s*[\w.]+ ?[+:]?= ?\S|^\s*[\w.]+\(.*\)\s*$/
/** What stands before a comment on a line of code, beside what CODE_LINE knows: a short label, a part of a list or of a call, a keyword. */
const CODE_BEFORE =
  /^\s*\S+(?: \S+)?:\s*$|^\s*\S+(?:\s\S+){0,2}(?<=[,()[\]=&|+>])\s+$|^\s*(?:[})\]&|?@]|(?:if|for|while|switch) ?\(|(?:else|throw|await|public|private|protected|static|fn|func|struct|int|void) |(["'])[^"']*\1\s*:)/
const CODE_BEFORE_CHARS = 300
/** Tags around what users themselves tell. */
const OWN_TAG = /^<\/?(?:rules|instructions|constraints|guidelines|requirements)\s*>$/i
/** What begins inside of a line and may end in a later one, and the ends of what users themselves tell. */
const OPENING =
  /<\/(?:rules|instructions|constraints|guidelines|requirements)\s*>|<!--|"""|'''|(?<!\S)\/\*|(?<![:\w])\/\/(?=[\sA-Z])|<([a-z][\w:.-]*)(\s[^<>]*)?>|\[(quote|code|pre|spoiler)\b[^[\]]*\]/gi
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
  let isCut = false
  for (let from = 0; from <= text.length; ) {
    if (from > lineEnd) lineEnd = endOfLine(text, from)
    const line = lineUntil(text, from, lineEnd)
    const isStart = from === 0 || text[from - 1] === '\n'
    const { shown, next } = line
    const end = isStart && shown !== '' ? endOfBlock(page, { shown, next, before, isBlankBefore }) : null
    const read: Read = end === null ? readInside(page, line, from) : { own: '', to: end, isCut: false }
    const { to } = read
    const isHalf: boolean = isCut && !isStart
    const own = isHalf ? afterHalf(read.own) : read.own
    isCut = read.isCut || (isHalf && isBlank(read.own))
    lines.push(own)
    hasPasted ||= end !== null || own.length !== shown.length
    isBlankBefore = !/\S/.test(shown)
    // Rules that stand indented below a line that announces them leave it the line above.
    if (/\S/.test(own) && !(INDENTED.test(own) && announcesRules(before))) before = own
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
  if (MAIL.test(shown) || beginsMail(text, place)) return text.length + 1
  const isAnnounced = before.trimEnd().endsWith(':') && !RULES_AHEAD.test(before)
  if (BEGIN.test(shown)) return endWhere(text, next, (line) => END.test(line)) ?? text.length + 1
  if (isAnnounced && SEPARATOR.test(shown))
    return endWhere(text, next, (line) => line.trim() === shown.trim()) ?? text.length + 1
  if (bringsMaterial(shown)) return shown.trimEnd().endsWith(':') && !RULES_AHEAD.test(shown) ? text.length + 1 : next
  if (HASH_COMMENT.test(shown) && (CODE_LINE.test(lineAt(text, next).shown) || CODE_LINE.test(before))) return next
  const isSetOff = isAnnounced || (isBlankBefore && !announcesRules(before))
  const isCode = INDENTED.test(shown) && isSetOff && !BULLET.test(before) && !BULLET.test(shown)
  return isCode && !isIndented ? endOfIndented(text, next) : null
}

function announcesRules(line: string): boolean {
  return line.trimEnd().endsWith(':') && RULES_AHEAD.test(line)
}

/** "From: v1" above "To: v2" is no mail: a mail names an address, or who sent it and its subject, or it has three headers. */
function beginsMail(text: string, { shown, next }: Place): boolean {
  const names = new Set<string>()
  let hasAddress = false
  let line: Line = { shown, next }
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

/** `to`: where reading goes on. `isCut`: a sentence was cut in two there. */
type Read = { readonly own: string; readonly to: number; readonly isCut: boolean }

/** What of a line is the user's, up to the first thing in it that was pasted. */
function readInside(page: Page, { shown, next }: Line, from: number): Read {
  const whole: Read = { own: shown, to: next, isCut: false }
  if (!/[<"'/[]/.test(shown)) return whole
  let mentionEnd = 0
  const lastStar = shown.lastIndexOf('*/')
  for (const match of shown.matchAll(OPENING)) {
    if (match.index < mentionEnd) continue
    const begin = match.index + match[0].length
    const opened: Opened = {
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

/** What opens, and what of its line stands before and behind it. */
type Opened = {
  readonly match: RegExpExecArray
  readonly head: string
  readonly rest: string
  /** The end of a comment stands behind it in the line. */
  readonly isStarClosed: boolean
}

function isBlank(text: string): boolean {
  return !/\S/.test(text)
}

/** Only whole sentences are kept of the words before what was pasted. A sentence that is cut in two might say the opposite. */
function cutBefore(head: string, to: number): Read {
  if (isBlank(head) || /[.:;!?]$/.test(head.trimEnd())) return { own: head, to, isCut: false }
  return { own: /^.*[.!?](?=\s)/s.exec(head)?.[0] ?? '', to, isCut: true }
}

/** The other half of a sentence that was cut in two is left out too. */
function afterHalf(words: string): string {
  return words.slice(/[.!?](?=\s)/.exec(words)?.index ?? words.length).slice(1)
}

/** A comment begins its line or follows code. In prose, `//` and `/*` are ordinary words. */
function standsInCode(head: string): boolean {
  const near = head.slice(-CODE_BEFORE_CHARS)
  return isBlank(head) || CODE_LINE.test(near) || CODE_BEFORE.test(near)
}

function endOfLineComment({ head }: Opened, next: number): number | null {
  return standsInCode(head) ? next : null
}

/** Null: nothing pasted begins here. */
function endOfOpened(page: Page, opened: Opened, at: number): number | null {
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

function endOfClosed({ text, unclosed }: Page, opened: Opened, begin: number): number | null {
  const { match, head, rest } = opened
  const closer = CLOSERS[match[0]] ?? ''
  const isQuotation = closer === match[0]
  const isBlockStart = isBlank(head) || isBlank(rest)
  if (!isBlockStart && !standsInCode(head)) {
    if (mentionedChars(opened) > 0) return null
    // In prose "lib /*" names files.
    if (closer === '*/' && !opened.isStarClosed) return null
  }
  const found = unclosed.has(closer) ? -1 : text.indexOf(closer, begin)
  if (found >= 0) return found + closer.length
  unclosed.add(closer)
  // Three quotation marks at the start of a line, or alone behind a colon, open nothing else. The others also stand in names of files.
  const isOpen = isBlank(head) || (isBlank(rest) && head.trimEnd().endsWith(':'))
  return isQuotation && isOpen ? text.length + 1 : null
}

/** How far a few words in a comment or between three quotation marks reach, with the closing sign: the sentence is about the signs. */
function mentionedChars({ match, rest }: Opened): number {
  const closer = CLOSERS[match[0]]
  if (closer === undefined) return 0
  const end = rest.slice(0, MENTION_CHARS_READ).indexOf(closer)
  return end >= 0 && areFewWords(rest.slice(0, end)) ? end + closer.length : 0
}
