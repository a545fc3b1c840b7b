// Field searches: which lines of a field are shown under a row, and what is said about the rest.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readExactJson } from '../../src/tools/jsonl/exact-json.ts'
import {
  cutAroundMatch,
  compileFieldSearches,
  chooseMatchLines,
  type FieldSearch,
  renderSearches,
} from '../../src/tools/jsonl/snippet.ts'
import { ToolFailure } from '../../src/tools/core/tool-output.ts'

describe('an excerpt', () => {
  const cases = fc
    .record({
      hits: fc.array(fc.boolean(), { maxLength: 60 }),
      context: fc.nat(6),
      max: fc.integer({ min: 1, max: 12 }),
    })
    .map(({ hits, context, max }) => ({
      matches: [...hits.keys()].filter((index) => hits[index]),
      lines: hits.length,
      context,
      max,
    }))

  it('B-JSONL-12: never repeats a line, keeps the order and never loses a match', () => {
    fc.assert(
      fc.property(cases, (of) => {
        const { shown, omitted } = chooseMatchLines(of)
        expect(shown.every((line, index) => index === 0 || line > (shown[index - 1] ?? -1))).toBe(true)
        const visible = of.matches.filter((match) => shown.includes(match)).length
        expect(visible + omitted).toBe(of.matches.length)
        expect(visible).toBeGreaterThanOrEqual(Math.min(of.max, of.matches.length))
      }),
    )
  })

  it('B-JSONL-12: shows exactly the lines within reach of the first matches', () => {
    fc.assert(
      fc.property(cases, (of) => {
        const primary = of.matches.slice(0, of.max)
        const near = [...Array(of.lines).keys()].filter((line) => primary.some((m) => Math.abs(m - line) <= of.context))
        expect(chooseMatchLines(of).shown).toEqual(near)
      }),
    )
  })
})

describe('field searches', () => {
  const log = ['start', 'Error one', 'middle', 'error two', 'calm', 'calm', 'calm', 'error three', 'end'].join('\n')

  it('B-JSONL-12: contexts that overlap become one, and a colon marks the match', () => {
    expect(render({ log }, { query: 'error', context_lines: 1 })).toEqual([
      'log matches:',
      '  1- start',
      '  2: Error one',
      '  3- middle',
      '  4: error two',
      '  5- calm',
      '  7- calm',
      '  8: error three',
      '  9- end',
    ])
  })

  it('B-JSONL-12: matches over the limit are counted, but not those that stand in a shown context', () => {
    expect(render({ log }, { query: 'error', max_matches: 1 }).at(-1)).toBe('  … 2 more match(es)')
    expect(render({ log }, { query: 'error', max_matches: 1, context_lines: 2 }).at(-1)).toBe('  … 1 more match(es)')
    expect(render({ log }, { query: 'error', max_matches: 1, context_lines: 9 }).at(-1)).toBe('  9- end')
  })

  it('B-JSONL-12: case counts only when asked, for text and regex alike', () => {
    expect(render({ log }, { query: 'ERROR' })).toHaveLength(4)
    expect(render({ log }, { query: 'Error', case_sensitive: true })).toHaveLength(2)
    expect(render({ log }, { query: '^ERR', regex: true })).toHaveLength(4)
    expect(render({ log }, { query: '^Err', regex: true, case_sensitive: true })).toHaveLength(2)
    expect(render({ log }, { query: '.rror', regex: false })).toEqual(['log matches: none'])
  })

  it('B-JSONL-12: a long line is cut around its match', () => {
    const long = `${'a'.repeat(1_000)}needle${'b'.repeat(1_000)}`
    const line = render({ log: long }, { query: 'needle', max_line_chars: 40 })[1]
    expect(line).toMatch(/^ {2}1: …a+needleb+…$/)
    expect(line?.length).toBeLessThanOrEqual(5 + 42)
    expect(cutAroundMatch('abcdef', -1, 3)).toBe('abc…')
    expect(cutAroundMatch('abcdef', 5, 3)).toBe('…def')
    expect(() => encodeURIComponent(cutAroundMatch('ab😀😀😀😀', 8, 3))).not.toThrow()
  })

  it('B-JSONL-12: a cut line holds its match and no more than it may, wherever the match is', () => {
    fc.assert(
      fc.property(fc.nat(500), fc.nat(500), fc.integer({ min: 4, max: 60 }), (before, after, max) => {
        const cut = cutAroundMatch(`${'a'.repeat(before)}X${'b'.repeat(after)}`, before, max)
        expect(cut).toContain('X')
        expect(cut.length).toBeLessThanOrEqual(max + 2)
      }),
    )
  })

  it('B-JSONL-12: a search without a match says why, unless another found something', () => {
    const row = { none: null, list: [1], text: 'x' }
    const search = (field: string) => ({ field, query: 'x' })
    expect(renderAll(row, [search('gone'), search('none'), search('list')], true)).toEqual([
      'gone matches: none (missing field)',
      'none matches: none (null field)',
      'list matches: none (not a text field)',
    ])
    expect(renderAll(row, [search('gone'), search('text')], true)).toEqual(['text matches:', '  1: x'])
    expect(renderAll(row, [search('gone')], false)).toEqual([])
  })

  it('B-JSONL-12: two searches of one field are told apart', () => {
    const lines = renderAll(
      { t: 'ab' },
      [
        { field: 't', query: 'a' },
        { field: 't', query: 'b' },
      ],
      true,
    )
    expect(lines).toEqual(['t matches #1 "a":', '  1: ab', 't matches #2 "b":', '  1: ab'])
  })

  it('B-JSONL-8: a bad search is refused by name', () => {
    for (const search of [
      { field: 'a b', query: 'x' },
      { field: 'a', query: '' },
      { field: 'a', query: '(', regex: true },
    ]) {
      expect(() => compileFieldSearches([search])).toThrow(ToolFailure)
      expect(() => compileFieldSearches([search])).toThrow(`field_searches[0] (${search.field})`)
    }
  })
})

function render(row: unknown, search: Omit<FieldSearch, 'field'>): readonly string[] {
  return renderAll(row, [{ field: 'log', ...search }], true)
}

function renderAll(row: unknown, searches: readonly FieldSearch[], explain: boolean): readonly string[] {
  return renderSearches(
    readExactJson(JSON.stringify(row)) ?? null,
    compileFieldSearches(searches),
    explain,
    (text) => text,
  )
}
