// The possible spellings of a secret, and the three ways to read a text for them: as it is, without the escapes and
// quotes of other languages, and without spaces and line ends. It finds nothing itself; that is scan.ts.
import { INCOMPLETE, NO_CHARACTER, type CharacterReader, type CharacterUnit } from './scan.ts'

/** Letter by letter. */
export const plainReader: CharacterReader = {
  escapes: '',
  read: (text, at, _whole, token) => {
    token.unit = text.charCodeAt(at)
    token.end = at + 1
  },
}

const BACKSLASH = 0x5c
/** Of one sequence of backslashes: JSON in JSON in JSON doubles them each time. */
const BACKSLASHES_MAX = 63
/** The longest sequence that is one character: backslashes and four bytes, each escaped on its own. */
export const TOKEN_MAX = 128
const LETTERS: Readonly<Record<string, number>> = { n: 10, r: NO_CHARACTER, t: 9 }
const ENTITIES: Readonly<Record<string, number>> = { amp: 38, lt: 60, gt: 62, quot: NO_CHARACTER, apos: NO_CHARACTER }
const PERCENT = /%(?:25){0,8}([0-9a-f]{2})/iy
const ESCAPED =
  /\\{0,63}(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|[uUx]\{([0-9a-fA-F]{1,8})\})/y
const LOW = /\\{1,63}u(d[c-f][0-9a-f]{2})/iy
const ENTITY = /&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-f]{1,6}));/iy
/** Text that more text may turn into one of the above. */
const BEGUN = /(?:\\[\\uUx0-9a-fA-F{]*|%[%0-9a-fA-F]*|&#?\w*|[\ud800-\udbff])$/y

/** Reads escapes of JSON, Python, JavaScript, shells, addresses and HTML, also nested. Quotes are left out. */
export const unescapingReader: CharacterReader = {
  escapes: '\\%&',
  read: (text, at, whole, token) => {
    const code = text.charCodeAt(at)
    token.unit = code
    token.end = at + 1
    if (code === 0x22 || code === 0x27 || code === 13 || code === 0) token.unit = NO_CHARACTER
    else if (code === BACKSLASH) readEscape(text, at, token)
    else if (code === 0x25) readEscapedBytes(PERCENT, text, at, token)
    else if (code === 0x26) readEntity(text, at, token)
    else if (code >= 0xd800 && code <= 0xdbff) readSurrogatePair(text, at, token)
    else return
    if (!whole && text.length - at < TOKEN_MAX && mayContinue(text, at)) token.unit = INCOMPLETE
  },
}

function mayContinue(text: string, at: number): boolean {
  BEGUN.lastIndex = at
  return BEGUN.test(text)
}

function readEscape(text: string, at: number, token: CharacterUnit): void {
  let behind = at + 1
  while (text.charCodeAt(behind) === BACKSLASH && behind - at < BACKSLASHES_MAX) behind += 1
  const letter = LETTERS[text.charAt(behind)]
  token.unit = NO_CHARACTER
  token.end = behind
  if (letter !== undefined) {
    token.unit = letter
    token.end = behind + 1
    return
  }
  ESCAPED.lastIndex = behind
  const [said, short, long, byte, octal, braced] = ESCAPED.exec(text) ?? []
  if (said === undefined) return
  if (byte !== undefined || octal !== undefined) return readEscapedBytes(ESCAPED, text, at, token, behind)
  const unit = Number.parseInt(short ?? long ?? braced ?? '', 16)
  token.unit = comparedUnit(unit)
  token.end = behind + said.length
  if (unit < 0xd800 || unit > 0xdbff) return
  LOW.lastIndex = token.end
  const low = LOW.exec(text)
  if (low === null) return
  token.unit = comparedUnit(0x10000 + (unit - 0xd800) * 0x400 + (Number.parseInt(low[1] ?? '', 16) - 0xdc00))
  token.end += low[0].length
}

/** These are left out even when escaped: NUL, CR, quotes and backslashes. */
const LEFT_OUT_UNITS: ReadonlySet<number> = new Set([0, 13, 0x22, 0x27, BACKSLASH])

/**
 * A letter beyond the first 65,536 gets the unit of one of the first. That is enough, because units are only compared.
 */
function comparedUnit(point: number): number {
  return LEFT_OUT_UNITS.has(point) ? NO_CHARACTER : point % 0x10000
}

/** Reads bytes that are escaped one by one as the letter that they make in UTF-8. */
function readEscapedBytes(pattern: RegExp, text: string, at: number, token: CharacterUnit, from = at): void {
  const read: number[] = []
  let end = from
  let wanted = 1
  while (read.length < wanted) {
    pattern.lastIndex = end
    const match = pattern.exec(text)
    if (match === null) break
    const [whole, one, , hex, octal] = match
    const value = octal === undefined ? Number.parseInt(hex ?? one ?? '', 16) : Number.parseInt(octal, 8)
    if (read.length > 0 && (value & 0xc0) !== 0x80) break
    read.push(value)
    end = match.index + whole.length
    if (read.length === 1) wanted = value >= 0xf0 ? 4 : value >= 0xe0 ? 3 : value >= 0xc0 ? 2 : 1
    token.end = end
  }
  const [first] = read
  if (first === undefined) return
  const point = read.length === wanted ? Buffer.from(read).toString().codePointAt(0) : undefined
  token.unit = comparedUnit(first < 0x80 || point === undefined || point === 0xfffd ? first : point)
}

function readEntity(text: string, at: number, token: CharacterUnit): void {
  ENTITY.lastIndex = at
  const [whole, name, decimal, hex] = ENTITY.exec(text) ?? []
  if (whole === undefined) return
  token.end = at + whole.length
  const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  token.unit = name === undefined ? comparedUnit(point) : (ENTITIES[name.toLowerCase()] ?? NO_CHARACTER)
}

function readSurrogatePair(text: string, at: number, token: CharacterUnit): void {
  const point = text.codePointAt(at) ?? 0
  if (point < 0x10000) return
  token.unit = comparedUnit(point)
  token.end = at + 2
}

/**
 * Skips what wraps long texts: spaces, line ends (escaped ones too) and the NULs of UTF-16. Both alphabets of base64
 * are read as one.
 */
export const unwrappingReader: CharacterReader = {
  escapes: '\\',
  read: (text, at, whole, token) => {
    const code = text.charCodeAt(at)
    token.end = at + 1
    token.unit = code
    if (code === 32 || code === 0 || code === 0x3a || (code >= 9 && code <= 13)) token.unit = NO_CHARACTER
    else if (code === 0x2d) token.unit = 0x2b
    else if (code === 0x5f) token.unit = 0x2f
    if (code !== BACKSLASH) return
    token.unit = NO_CHARACTER
    while (text.charCodeAt(token.end) === BACKSLASH && token.end - at < BACKSLASHES_MAX) token.end += 1
    if (/[nrt]/.test(text.charAt(token.end))) token.end += 1
    else if (!whole && token.end >= text.length) token.unit = INCOMPLETE
  },
}

/** Lines of armour around a key are no secret. */
const ARMOUR = /^-{4,}[^]*-{4,}$/
const WIDTHS = [76, 64]

/**
 * The value and, if it has several lines, each line: with a number or a mark before each line, the lines alone can be
 * found.
 */
export function plainSpellings(value: string, charsMin: number): readonly string[] {
  const lines = value.split(/\r?\n|\\n/).map((line) => line.trim())
  return [value, ...(lines.length > 1 ? lines.filter((line) => line.length >= charsMin && !ARMOUR.test(line)) : [])]
}

/** The value in base64 at any alignment, also in rows of the usual widths, and in hexadecimal. */
export function encodedSpellings(value: string): readonly string[] {
  const all: string[] = []
  for (const bytes of [Buffer.from(value), Buffer.from(`${value}\n`), Buffer.from(value, 'utf16le')]) {
    for (const before of [0, 1, 2]) {
      const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
      // The characters at both ends also hold bits of the bytes beside them.
      all.push(text.slice(before === 0 ? 0 : before + 1, Math.floor(((before + bytes.length) * 8) / 6)))
    }
    const text = bytes.toString('base64')
    for (const width of WIDTHS)
      if (text.length > width) all.push(...(text.match(new RegExp(`.{8,${width}}`, 'g')) ?? []))
    all.push(bytes.toString('hex'), bytes.toString('hex').toUpperCase())
  }
  return all
}
