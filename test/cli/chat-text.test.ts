// Text on its way to a chat's screen: cleaned in pieces, measured, broken into rows.
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ChatCalls } from '../../src/cli/chat/chat-calls.ts'
import { ChatView } from '../../src/cli/chat/chat-view.ts'
import {
  breakText,
  TextCleaner,
  clipToWidth,
  createPaint,
  cleanModelText,
  widthOf,
  wrapText,
  fitLines,
  wrapAnswers,
} from '../../src/cli/present/terminal-text.ts'
import { Screen } from '../../src/cli/present/screen.ts'

const EVIL = [
  'before \u001b[2J\u001b[H after',
  '\u001b]52;c;ZXZpbA==\u0007',
  'a\r# harmless\nb\r\nc\rd',
  '\u202egnp.exe\u202c and \u2066x\u2069',
  'a\u200b\u200db\ufe0f \ud800 half',
  '👨‍👩‍👧 ⚠️ 👍🏽 1️⃣ #️⃣ ❤️‍🔥 done',
  '👍‍',
  '日本語 e\u0301 \u{e0041}',
]
/** Everything but what is printed as itself, a tab and a new line. */
const UNPRINTABLE = /(?![\t\n])\p{Cc}|[\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

function inPieces(text: string, size: number): string {
  const cleaner = new TextCleaner()
  let out = ''
  for (let at = 0; at < text.length; at += size) out += cleaner.push(text.slice(at, at + size))
  return out + cleaner.end()
}

describe('text in pieces', () => {
  it.each(EVIL)('B-TALK-3: cut anywhere, it is as clean as the whole: %j', (text) => {
    expect(cleanModelText(text)).not.toMatch(UNPRINTABLE)
    for (let size = 1; size <= text.length; size += 1) expect(inPieces(text, size)).toBe(cleanModelText(text))
    for (let cut = 0; cut <= text.length; cut += 1) {
      const cleaner = new TextCleaner()
      const [head, tail] = [cleaner.push(text.slice(0, cut)), cleaner.push(text.slice(cut)) + cleaner.end()]
      for (const piece of [head, tail]) expect(piece).not.toMatch(UNPRINTABLE)
      expect(head + tail).toBe(cleanModelText(text))
    }
  })

  it('B-TALK-3: an escape sequence that comes in two pieces is shown by its number', () => {
    const cleaner = new TextCleaner()
    expect(cleaner.push('a\u001b') + cleaner.push('[31mred') + cleaner.end()).toBe('a\\u{1b}[31mred')
  })

  it('B-TALK-3: an emoji stays one, and what joins nothing is shown', () => {
    expect(cleanModelText('👨‍👩‍👧 ⚠️')).toBe('👨👩👧 ⚠')
    expect(cleanModelText('a\u200db')).toBe('a\\u{200d}b')
  })
})

describe('rows', () => {
  it('B-TALK-18: wide letters take two columns, marks and colours none', () => {
    expect(['abc', '日本', 'e\u0301', '👍', ''].map(widthOf)).toEqual([3, 4, 1, 2, 0])
    expect(widthOf(createPaint(true).red('ab'))).toBe(2)
    expect(clipToWidth('日本語です', 6)).toBe('日本…')
    expect(breakText('日本語', 3)).toEqual(['日', '本', '語'])
  })

  it('B-TALK-18: the answers of a question are not broken, and a note keeps its indentation where it is wrapped', () => {
    const question = 'Allow it? y yes · n no · l later, in another process ›'
    expect(wrapAnswers(question, 30)).toEqual(['Allow it? y yes · n no ·', 'l later, in another process ›'])
    expect(wrapAnswers(question, 60)).toEqual([question])
    for (let columns = 10; columns < 60; columns += 1)
      for (const row of wrapAnswers(question, columns)) expect(widthOf(row)).toBeLessThanOrEqual(columns)
    expect(fitLines('    also allows: npm test with any words', 24)).toBe(
      '    also allows: npm\n    ┆ test with any\n    ┆ words',
    )
  })

  it('B-TALK-18: lines are broken between words and around wide letters, and never too wide', () => {
    expect(wrapText('one two three', 7)).toEqual(['one two', 'three'])
    expect(wrapText('a verylongword b', 6)).toEqual(['a', 'verylo', 'ngword', 'b'])
    expect(wrapText('- 日本語です', 6)).toEqual(['- 日本', '語です'])
    for (const width of [1, 2, 5, 20]) {
      for (const text of ['lorem ipsum dolor sit amet', '日本語 and more 👍 of it', 'x'.repeat(50)])
        for (const row of wrapText(text, width)) expect(widthOf(row)).toBeLessThanOrEqual(Math.max(2, width))
    }
  })

  it('B-TALK-17: without colours nothing is added', () => {
    expect(createPaint(false).bold('a\nb')).toBe('a\nb')
    expect(createPaint(true).bold('a\nb')).toBe('\u001b[1ma\u001b[0m\n\u001b[1mb\u001b[0m')
  })
})

describe('the echo of a message', () => {
  /** The lines that a chat of 80 columns writes above its prompt. */
  function echoed(text: string): readonly string[] {
    const out = Object.assign(new PassThrough(), { columns: 80, rows: 24 })
    const screen = new Screen(out as unknown as NodeJS.WriteStream, { colours: false })
    new ChatView(screen, new ChatCalls(), () => false, {
      window: Number.POSITIVE_INFINITY,
      place: { store: { now: () => 0 } },
    }).echo(text)
    screen.close(false)
    return String(out.read() ?? '')
      .split('\n')
      .filter((line) => /^\P{Cc}*[›┆] /u.test(line))
  }

  it('B-SMALL-27: one long line is shown by its first rows and its length', () => {
    const lines = echoed('word '.repeat(200_000))
    expect(lines).toHaveLength(6)
    expect(lines.at(0)).toContain('› word word')
    expect(lines.at(-1)).toContain('[… 999,999 characters in all]')
  })

  it('B-SMALL-27: many lines are shown by the first ones and their number, a usual message whole', () => {
    expect(echoed('line\n'.repeat(2_000)).at(-1)).toContain('[… 2000 lines in all]')
    expect(echoed(`${'long '.repeat(200_000)}\n`.repeat(3)).length).toBeLessThan(10)
    expect(echoed('word '.repeat(300))).toHaveLength(20)
  })
})
