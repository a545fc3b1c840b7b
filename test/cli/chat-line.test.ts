// The line a person edits: keys in, line out.
import { describe, expect, it } from 'vitest'
import {
  type KeyAction,
  drawLine,
  EMPTY_LINE,
  type EditContext,
  type InputLine,
  lineFromText,
  pressKey,
  lineText,
} from '../../src/cli/chat/edit-line.ts'
import type { KeyPress } from '../../src/cli/chat/keys.ts'

const KNOWN: EditContext = {
  history: ['first', 'second'],
  hasQueued: () => false,
}
const NAMES: Readonly<Record<string, string>> = { Enter: 'return', Tab: 'tab', Newline: 'enter' }

/** `<C-a>`, `<A-b>`, `<Left>` are keys; all else is typed. */
function keysOf(text: string): readonly KeyPress[] {
  return [...text.matchAll(/<(?:([CA])-)?(\w[\w-]*)>|([\s\S])/gu)].map(([, modifier, name, letter]) => {
    if (letter !== undefined) return { sequence: letter }
    const known = NAMES[name ?? ''] ?? (name ?? '').toLowerCase()
    return { name: known, sequence: '\u001b', ctrl: modifier === 'C', meta: modifier === 'A' }
  })
}

function typed(text: string, from: InputLine = EMPTY_LINE): { line: InputLine; deeds: readonly KeyAction[] } {
  let line = from
  const deeds: KeyAction[] = []
  for (const key of keysOf(text)) {
    const [next, deed] = pressKey(line, key, KNOWN)
    line = next
    if (deed) deeds.push(deed)
  }
  return { line, deeds }
}

function pasted(before: string, text: string, after: string): ReturnType<typeof typed> {
  const [line] = pressKey(typed(before).line, { name: 'paste', sequence: text }, KNOWN)
  return typed(after, line)
}

/** The text with a bar where the cursor is. */
function seen(text: string): string {
  const { line } = typed(text)
  return `${lineText({ ...line, cells: line.cells.slice(0, line.at) })}|${lineText({ ...line, cells: line.cells.slice(line.at) })}`
}

describe('the edited line', () => {
  it.each([
    ['abc<Left>x', 'abx|c'],
    ['abc<Home>x<End>y', 'xabcy|'],
    ['abc<C-a><C-f><Delete>', 'a|c'],
    ['one two<C-w>', 'one |'],
    ['one two<A-b><C-u>', '|two'],
    ['one two<C-left><C-k>', 'one |'],
    ['abc<Backspace><Backspace>', 'a|'],
    ['a<Newline>bc<Up>x', 'ax|\nbc'],
    ['a<A-enter>bc<Home>x', 'a\nx|bc'],
    ['ab<Newline>c<Up><Down>x', 'ab\ncx|'],
    ['e\u0301👍🏽<Backspace>', 'e\u0301|'],
    ['e\u0301<Left>x', 'x|e\u0301'],
    ['<F5><Escape><C-t><A-x>a', 'a|'],
  ])('B-TALK-13: %s gives %j', (keys, line) => {
    expect(seen(keys)).toBe(line)
  })

  it('B-TALK-13: Enter gives the text and an empty line; Ctrl-D ends only where nothing is; Ctrl-C is told', () => {
    expect(typed('hello<Enter>')).toEqual({
      line: EMPTY_LINE,
      deeds: [{ type: 'entered', text: 'hello', shown: 'hello' }],
    })
    expect(typed('<C-d>').deeds).toEqual([{ type: 'end' }])
    expect(lineText(typed('ab<Left><C-d>').line)).toBe('a')
    expect(typed('ab<C-c>').deeds).toEqual([{ type: 'interrupt' }])
  })

  it('B-TALK-14: the arrows go back and forth in what was said before, and the draft comes back', () => {
    expect(lineText(typed('draft<Up>').line)).toBe('second')
    expect(lineText(typed('draft<Up><Up><Up>').line)).toBe('first')
    expect(lineText(typed('draft<Up><Up><Down>').line)).toBe('second')
    expect(lineText(typed('draft<Up><Up><Down><Down><Down>').line)).toBe('draft')
  })

  it('B-TALK-12: a paste of several lines is one piece, sends nothing, and is taken back as one', () => {
    const three = pasted('see ', 'one\r\ntwo\rthree\n', '!')
    expect(three.deeds).toEqual([])
    expect(lineText(three.line)).toBe('see one\ntwo\nthree\n!')
    expect(drawLine(PROMPT, three.line, 80).rows).toEqual(['› see [pasted 3 lines]!'])
    expect(lineText(typed('<Backspace><Backspace>', three.line).line)).toBe('see ')
  })

  it('B-LONGLINE-1: a very long line is one piece, pasted, typed at once or taken from the history, and a megabyte is no more work', () => {
    const long = 'a line that never ends, é 👩‍👩‍👧 '.repeat(40_000)
    const whole = `[pasted ${long.length.toLocaleString('en')} characters]`
    const { line: pastedLine } = pasted('', long, '')
    const [typedAtOnce] = pressKey(EMPTY_LINE, { sequence: long }, KNOWN)
    const [older] = pressKey(EMPTY_LINE, { name: 'up', sequence: '' }, { ...KNOWN, history: [long] })
    for (const line of [pastedLine, typedAtOnce, older]) {
      expect(line.cells).toHaveLength(1)
      expect(lineText(line)).toBe(long)
      expect(drawLine(PROMPT, line, 80).rows).toEqual([`› ${whole}`])
    }
  })

  it('B-TALK-12: a paste of one line is typed, and keys in it are only text', () => {
    const { line, deeds } = pasted('', 'a\u001bb\u0007', '')
    expect([lineText(line), deeds]).toEqual(['a\u001bb\u0007', []])
    expect(drawLine(PROMPT, line, 80).rows).toEqual(['› a\\u{1b}b\\u{7}'])
  })

  it('B-TALK-12: a line that ends in a backslash goes on below', () => {
    const { line, deeds } = typed('one\\<Enter>two<Enter>')
    expect(deeds).toEqual([{ type: 'entered', text: 'one\ntwo', shown: 'one\ntwo' }])
    expect(line).toEqual(EMPTY_LINE)
  })

  it('B-TALK-18: it is drawn in rows that fit, with the cursor where it belongs', () => {
    expect(drawLine(PROMPT, lineFromText('日本語日本語'), 8)).toEqual({
      rows: ['› 日本語', '  日本語'],
      row: 1,
      column: 8,
    })
    const { line } = typed('abcdef<Newline>gh<Left>')
    expect(drawLine(PROMPT, line, 6)).toEqual({ rows: ['› abcd', '  ef', '  gh'], row: 2, column: 3 })
    const asked = { ...PROMPT, text: 'Allow it? y yes ›' }
    expect(drawLine(asked, lineFromText('y'), 10)).toEqual({ rows: ['Allow it?', 'y yes ›y'], row: 1, column: 8 })
  })
})

const PROMPT = { text: '› ', paint: (text: string) => text }
