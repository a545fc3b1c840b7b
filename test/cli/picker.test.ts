// The list with search: keys in, a choice out.
import { describe, expect, it } from 'vitest'
import { fuzzyRank, searchTextOf } from '../../src/cli/chat/fuzzy.ts'
import {
  drawPicking,
  numberedLines,
  openPicking,
  type PickEnd,
  type Picking,
  pressPickKey,
  typedChoice,
} from '../../src/cli/chat/picker.ts'
import { createPaint } from '../../src/cli/present/terminal-text.ts'

const ITEMS = [
  { value: 'a1', label: 'Fix the mean', detail: '17 messages · 5 min' },
  { value: 'b2', label: 'Write the docs', detail: '3 messages' },
  { value: 'c3', label: 'The meaning of it', detail: '2 messages' },
]
const OPTIONS = { title: 'Resume', items: ITEMS }

function pressed(picking: Picking, ...names: readonly string[]): { picking: Picking; end: PickEnd | null } {
  let [now, end]: readonly [Picking, PickEnd | null] = [picking, null]
  for (const name of names) {
    const isCtrl = name.startsWith('C-')
    const key =
      name.length === 1 ? { sequence: name } : { name: isCtrl ? name.slice(2) : name, sequence: '\u001b', ctrl: isCtrl }
    ;[now, end] = pressPickKey(now, key)
  }
  return { picking: now, end }
}

const rowsOf = (picking: Picking, columns = 60, rows = 24): readonly string[] =>
  drawPicking(picking, createPaint(false), columns, rows).rows

describe('the list with search', () => {
  it('B-CLI-330: typing narrows, starts of words come first, Enter takes what is marked', () => {
    const { picking, end } = pressed(openPicking(OPTIONS), 'm', 'e', 'a', 'n')
    expect(rowsOf(picking)).toEqual([
      'Resume › mean',
      '❯ Fix the mean · 17 messages · 5 min',
      '  The meaning of it · 2 messages',
      '  2 of 3 · ↑ ↓ · Enter takes · Esc leaves',
    ])
    expect(end).toBeNull()
    expect(pressed(picking, 'return').end).toEqual({ value: 'a1' })
    expect(pressed(picking, 'down', 'down', 'return').end).toEqual({ value: 'c3' })
    expect(pressed(picking, 'backspace', 'backspace', 'backspace', 'backspace').picking.matches).toHaveLength(3)
  })

  it.each(['escape', 'C-c', 'C-d'])('B-CLI-330: %s leaves without a choice', (name) => {
    expect(pressed(openPicking(OPTIONS), name).end).toEqual({ value: null })
  })

  it('B-CLI-330: it starts at the named value, moves by pages, and Enter on nothing does nothing', () => {
    const many = {
      title: 'Model',
      start: 'v30',
      items: [...Array(50).keys()].map((at) => ({ value: `v${at}`, label: `model ${at}` })),
    }
    const open = openPicking(many)
    expect(pressed(open, 'return').end).toEqual({ value: 'v30' })
    expect(pressed(open, 'pagedown', 'return').end).toEqual({ value: 'v38' })
    expect(pressed(open, ...Array<string>(9).fill('pageup'), 'return').end).toEqual({ value: 'v0' })
    expect(rowsOf(open, 60, 10)).toHaveLength(8)
    const none = pressed(open, 'x', 'x').picking
    expect(pressed(none, 'return').end).toBeNull()
    expect(rowsOf(none).at(-1)).toBe('  nothing fits · Esc leaves')
  })

  it('B-CLI-330: labels and details are shown clean and on one line, and values are taken exactly', () => {
    const value = 'a\u001b[2J\nb'
    const hostile = { title: 'T\u001b]0;x\u0007', items: [{ value, label: value, detail: '\u202eabc' }] }
    const rows = rowsOf(openPicking(hostile))
    expect(rows.join('')).not.toMatch(/\p{Cc}|\u202e/u)
    expect(rows).toHaveLength(3)
    expect(pressed(openPicking(hostile), 'return').end).toEqual({ value })
    expect(numberedLines(hostile).join('')).not.toMatch(/\p{Cc}|\u202e/u)
  })

  it('B-CLI-330: on a plain terminal the answer is a number or a name, and any other text is none', () => {
    expect(numberedLines(OPTIONS)[0]).toBe('  1 Fix the mean · 17 messages · 5 min')
    expect(typedChoice(OPTIONS, '2')).toBe('b2')
    expect(typedChoice(OPTIONS, 'c3')).toBe('c3')
    expect(typedChoice(OPTIONS, 'Fix the mean')).toBe('a1')
    for (const typed of ['0', '4', '-1', 'mean', '1.0']) expect(typedChoice(OPTIONS, typed)).toBeUndefined()
  })

  it('B-CLI-330: rows fit the screen, also with wide letters', () => {
    const wide = { title: '日本語'.repeat(20), items: [{ value: 'x', label: '日本語'.repeat(40), detail: 'more' }] }
    for (const row of rowsOf(openPicking(wide), 30)) expect(Array.from(row).length).toBeLessThanOrEqual(30)
  })
})

describe('fuzzy search', () => {
  const order = (query: string, ...texts: readonly string[]): readonly string[] =>
    texts
      .map((text) => ({ text, rank: fuzzyRank(query, searchTextOf(text)) }))
      .filter(({ rank }) => rank !== null)
      .toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0))
      .map(({ text }) => text)

  it.each([
    ['edl', ['sim/scheduler.ts', 'src/cli/chat/edit-line.ts'], ['src/cli/chat/edit-line.ts', 'sim/scheduler.ts']],
    ['read', ['src/spread.ts', 'src/thread/x.ts', 'README.md'], ['README.md', 'src/spread.ts', 'src/thread/x.ts']],
    ['ccel', ['cancel.ts', 'src/cli/chat/edit-line.ts'], ['src/cli/chat/edit-line.ts', 'cancel.ts']],
    ['cm', ['chatModel.ts', 'acme.ts'], ['chatModel.ts', 'acme.ts']],
    ['src/e', ['src/edit.ts', 'src/the.ts'], ['src/edit.ts', 'src/the.ts']],
    ['zz', ['a.ts'], []],
  ])('B-CLI-330: %s finds starts of words first', (query, texts, found) => {
    expect(order(query, ...texts)).toEqual(found)
  })

  it('B-CLI-330: a text and a query of one letter cost no more than others', () => {
    expect(fuzzyRank('a'.repeat(60), searchTextOf('a-'.repeat(5_000)))).not.toBeNull()
    expect(fuzzyRank(`${'a'.repeat(60)}b`, searchTextOf('a-'.repeat(5_000)))).toBeNull()
  })
})
