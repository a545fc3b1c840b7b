// What sessions are called in a list.
import { describe, expect, it } from 'vitest'
import { columnWidth } from '../../src/view/columns.ts'
import { titleFromText } from '../../src/view/title.ts'

describe('titles', () => {
  it('B-CARD-8: a title is one line of visible characters', () => {
    const texts: Readonly<Record<string, string | null>> = {
      'Fix the test': 'Fix the test',
      '  Fix\n\tthe   test \r\n': 'Fix the test',
      'a\u202eb\u200bc\u{e0041}d\u0000e\u001b[31mf': 'abcde[31mf',
      'half \ud83d of one': 'half of one',
      '\u2028\u00a0\u2800\u3164\u200f': null,
      '': null,
      'größe 😀 e\u0301': 'größe 😀 e\u0301',
    }
    for (const [text, title] of Object.entries(texts)) expect([text, titleFromText(text)]).toEqual([text, title])
  })

  it('B-CARD-8: a title is at most 80 columns wide, cut between words where there are any', () => {
    const width = (text: string): number => Array.from(text).reduce((sum, each) => sum + columnWidth(each), 0)
    const words = titleFromText(`${'word '.repeat(30)}`) ?? ''
    expect(words).toBe(`${'word '.repeat(15)}word…`)
    expect(titleFromText('x'.repeat(80))).toBe('x'.repeat(80))
    expect(titleFromText('x'.repeat(81))).toBe(`${'x'.repeat(79)}…`)
    expect(titleFromText(`${'x'.repeat(40)} ${'y'.repeat(60)}`)).toBe(`${'x'.repeat(40)} ${'y'.repeat(38)}…`)
    for (const each of ['漢', '😀', 'e\u0301', 'ÿ', '漢 字']) {
      const title = titleFromText(each.repeat(500)) ?? ''
      expect(width(title)).toBeLessThanOrEqual(80)
      expect(width(title)).toBeGreaterThan(55)
    }
    expect(titleFromText(`a${'\u0301'.repeat(5_000)}`)?.length).toBeLessThan(400)
  })

  it('B-CARD-8: of a long text only the beginning is read', () => {
    expect(titleFromText(`${' '.repeat(5_000_000)}here${'x'.repeat(5_000_000)}`)).toMatch(/^herex+…$/)
  })
})
