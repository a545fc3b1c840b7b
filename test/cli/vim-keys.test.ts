// The keys of vi: letters in, line out.
import { describe, expect, it } from 'vitest'
import { type InputLine, lineFromText, lineText } from '../../src/cli/chat/edit-line.ts'
import { pressVim, type Vim, VIM_START } from '../../src/cli/chat/vim-keys.ts'

/** The text with a bar before the cursor, after Esc and these letters. */
function typed(text: string, letters: string): string {
  let [vim, line]: readonly [Vim, InputLine] = [VIM_START, lineFromText(text)]
  for (const key of [{ name: 'escape', sequence: '' }, ...Array.from(letters, (sequence) => ({ sequence }))]) {
    const pressed = pressVim(vim, line, key)
    if (pressed) ({ vim, line } = pressed)
  }
  const at = (from: number, to?: number): string => lineText({ ...line, cells: line.cells.slice(from, to) })
  return `${at(0, line.at)}|${at(line.at)}`
}

describe('the keys of vi', () => {
  it.each([
    ['abc', '', 'ab|c'],
    ['abc', 'hh', '|abc'],
    ['abc', '0ll', 'ab|c'],
    ['one two.three', '0w', 'one |two.three'],
    ['one two.three', '0we', 'one tw|o.three'],
    ['one two.three', 'b', 'one two.|three'],
    ['one two.three', 'bbb', 'one |two.three'],
    ['one two', '0wD', 'one| '],
    ['one two', '0x$', 'ne tw|o'],
    ['one two', '0xu', '|one two'],
    ['one two', '0xp', 'n|oe two'],
    ['one\ntwo\nthree', 'kdd', 'one\n|three'],
    ['one\ntwo\nthree', 'kddp', 'one\nthree\n|two'],
    ['one\ntwo', 'dd', '|one'],
    ['one', 'ddu', 'on|e'],
    ['one', 'dd', '|'],
    ['one', 'dw', 'on|e'],
    ['one\ntwo', 'k0', '|one\ntwo'],
    ['', 'xDddjkwbeup$', '|'],
    ['日本 語', '0wx', '日本| '],
  ])('B-CLI-344: %j and %s give %s', (text, letters, seen) => {
    expect(typed(text, letters)).toBe(seen)
  })

  it.each([
    ['i', 'on|e'],
    ['a', 'one|'],
    ['I', '|one'],
    ['A', 'one|'],
    ['o', 'one\n|'],
  ])('B-CLI-344: %s begins to insert', (letter, seen) => {
    expect(typed('one', letter)).toBe(seen)
  })
})
