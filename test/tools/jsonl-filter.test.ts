// Where filters: paths, operators, order of numbers and dates, what is refused, and regexes that cannot hold the process.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compareMoments,
  parseMoment,
  valueAtPath,
  compileWhere,
  applyFilters,
  parseFieldPath,
  type FilterVerdict,
  type WhereClause,
} from '../../src/tools/jsonl/filter.ts'
import { compileFinder, createWatch } from '../../src/tools/jsonl/regex.ts'
import { readExactJson, type ExactValue, writeExactJson } from '../../src/tools/jsonl/exact-json.ts'
import { ToolFailure } from '../../src/tools/core/tool-output.ts'

describe('field paths', () => {
  const row = '{"a":{"b":[10,{"c d":20}],"e-f":30},"":40,"ö":50,"__proto__":60}'

  it.each([
    ['a.b[0]', '10'],
    ['.a.b[-2]', '10'],
    ['a.b[1]["c d"]', '20'],
    ["['a']['b'][1].['c d']", '20'],
    ['a.e-f', '30'],
    ['[""]', '40'],
    ['ö', '50'],
    ['__proto__', '60'],
    ['a.b[2]', null],
    ['a.b.c', null],
    ['a[0]', null],
    ['constructor', null],
    ['a.b.length', null],
  ])('B-JSONL-3: %s leads to %s', (field, expected) => {
    const value = valueAtPath(parsed(row), parseFieldPath('x', field))
    expect(value === undefined ? null : writeExactJson(value)).toBe(expected)
  })

  it.each(['', 'a b', 'a..b', 'a[0]b', 'a[', 'a[x]', 'a.', '.', '*', 'a[1.5]'])(
    'B-JSONL-8: "%s" is refused',
    (field) => {
      expect(() => compileWhere([{ field, op: 'exists' }])).toThrow(ToolFailure)
    },
  )
})

describe('where', () => {
  const row = '{"s":"open","n":5,"d":1.50,"t":true,"z":null,"l":["x",1],"big":9007199254740993,"numeric":"5"}'

  it.each([
    [{ field: 's', op: 'eq', value: 'open' }, 'pass'],
    [{ field: 's', op: 'ne', value: 'open' }, 'fail'],
    [{ field: 's', op: 'ne', value: 'closed' }, 'pass'],
    [{ field: 's', op: 'in', values: ['closed', 'open'] }, 'pass'],
    [{ field: 's', op: 'in', values: ['closed'] }, 'fail'],
    [{ field: 's', op: 'contains', value: 'pe' }, 'pass'],
    [{ field: 'l', op: 'contains', value: '"x"' }, 'pass'],
    [{ field: 's', op: 'regex', value: '^o.*n$' }, 'pass'],
    [{ field: 's', op: 'regex', value: '^O' }, 'fail'],
    [{ field: 't', op: 'eq', value: 'true' }, 'pass'],
    [{ field: 'z', op: 'exists' }, 'fail'],
    [{ field: 'gone', op: 'exists' }, 'fail'],
    [{ field: 'l', op: 'exists' }, 'pass'],
    [{ field: 'z', op: 'ne', value: 'x' }, 'fail'],
    [{ field: 'gone', op: 'ne', value: 'x' }, 'fail'],
    [{ field: 'd', op: 'eq', value: '1.5' }, 'pass'],
    [{ field: 'n', op: 'in', values: ['5.0'] }, 'pass'],
    [{ field: 'big', op: 'eq', value: '9007199254740992' }, 'fail'],
    [{ field: 'big', op: 'eq', value: '9007199254740993' }, 'pass'],
  ] as const satisfies readonly (readonly [WhereClause, FilterVerdict])[])(
    'B-JSONL-4: %j is a %s',
    (where, verdict) => {
      expect(judged(row, where)).toBe(verdict)
    },
  )

  it('B-JSONL-4: all filters must pass', () => {
    const open = { field: 's', op: 'eq', value: 'open' } as const
    expect(judged(row, open, { field: 'n', op: 'gt', value: '4', type: 'number' })).toBe('pass')
    expect(judged(row, open, { field: 'n', op: 'gt', value: '5', type: 'number' })).toBe('fail')
  })

  it('B-JSONL-5: a range on large integers passes exactly the rows it should', () => {
    const rows = ['9007199254740992', '9007199254740993', '9007199254740994'].map((n) => `{"n":${n}}`)
    const passing = (op: WhereClause['op']) =>
      rows.map((text) => judged(text, { field: 'n', op, value: '9007199254740993', type: 'number' }) === 'pass')
    expect(passing('gt')).toEqual([false, false, true])
    expect(passing('gte')).toEqual([false, true, true])
    expect(passing('lt')).toEqual([true, false, false])
    expect(passing('lte')).toEqual([true, true, false])
    expect(passing('eq')).toEqual([false, true, false])
    expect(passing('ne')).toEqual([true, false, true])
  })

  it('B-JSONL-6: booleans, strings, null and missing fields are no numbers: they pass neither eq nor ne', () => {
    for (const field of ['t', 'numeric', 'z', 'gone', 'l']) {
      for (const op of ['gt', 'gte', 'lt', 'lte', 'eq', 'ne'] as const) {
        expect(judged(row, { field, op, value: '1', type: 'number' })).toBe('incomparable')
      }
    }
  })

  it('B-JSONL-9: a row that fails before the comparison is not incomparable', () => {
    const typed = { field: 's', op: 'gt', value: '1', type: 'number' } as const
    expect(judged(row, { field: 's', op: 'eq', value: 'closed' }, typed)).toBe('fail')
    expect(judged(row, { field: 's', op: 'eq', value: 'open' }, typed, typed)).toBe('incomparable')
  })

  it.each<WhereClause>([
    { field: 'n', op: 'gt', value: '1' },
    { field: 'n', op: 'gt', type: 'number' },
    { field: 'n', op: 'gt', value: '', type: 'number' },
    { field: 'n', op: 'gt', value: 'NaN', type: 'number' },
    { field: 'n', op: 'gt', value: '-Infinity', type: 'number' },
    { field: 'n', op: 'gt', value: '1', values: ['1'], type: 'number' },
    { field: 'n', op: 'eq', value: 'x', type: 'number' },
    { field: 'n', op: 'contains', value: '1', type: 'number' },
    { field: 'n', op: 'lt', value: 'not-a-date', type: 'date' },
    { field: 'n', op: 'lt', value: '2026-02-30', type: 'date' },
    { field: 'n', op: 'eq' },
    { field: 'n', op: 'in', values: [] },
    { field: 'n', op: 'in', value: '1' },
    { field: 'n', op: 'exists', value: 'false' },
    { field: 'n', op: 'regex', value: '(' },
  ])('B-JSONL-8: %j is refused and named', (where) => {
    const refused = () => compileWhere([{ field: 'ok', op: 'exists' }, where])
    expect(refused).toThrow(ToolFailure)
    expect(refused).toThrow(`where[1] (n ${where.op})`)
  })
})

describe('dates', () => {
  it.each([
    ['2026-06-11', '2026-06-12', -1],
    ['2026-06-12T15:30:00Z', '2026-06-12', 0],
    ['2026-06-12T23:30:00-04:00', '2026-06-12', 0],
    ['2026-06-13', '2026-06-12T23:59:59', 1],
    ['2026-06-12T10:00:00', '2026-06-12T09:00:00', 1],
    ['2026-06-12T10:00:00+02:00', '2026-06-12T08:00:00Z', 0],
    ['2026-06-12T10:00+0200', '2026-06-12 08:00:00.000Z', 0],
    ['2026-06-12T10:00:00.1Z', '2026-06-12T10:00:00.12Z', -1],
    ['2026-06-12T10:00:00.123456789Z', '2026-06-12T10:00:00.123456788Z', 1],
    ['0099-01-01T00:00:00Z', '1999-01-01T00:00:00Z', -1],
    ['2026-06-12T10:00:00', '2026-06-12T09:00:00Z', null],
  ])('B-JSONL-7: %s against %s is %s', (a, b, expected) => {
    const [left, right] = [parseMoment(a), parseMoment(b)]
    const order = left === null || right === null ? Number.NaN : compareMoments(left, right)
    expect(order === null ? null : Math.sign(order)).toBe(expected)
  })

  it.each([
    '2026-6-1',
    '2026-02-29',
    '2026-13-01',
    '2026-06-12T24:00',
    '2026-06-12T10',
    '2026-06-12T10:00:00+24:00',
    'today',
    '',
  ])('B-JSONL-7: "%s" is no date', (text) => {
    expect(parseMoment(text)).toBeNull()
  })

  it('B-JSONL-7: random instants stand as their milliseconds do, at whatever offset they are written', () => {
    const instant = fc.date({
      min: new Date('0001-01-02T00:00:00Z'),
      max: new Date('9999-12-30T00:00:00Z'),
      noInvalidDate: true,
    })
    const offset = fc.integer({ min: -23 * 60, max: 23 * 60 })
    fc.assert(
      fc.property(instant, offset, instant, offset, (a, ao, b, bo) => {
        const [left, right] = [parseMoment(writtenAt(a, ao)), parseMoment(writtenAt(b, bo))]
        expect(left !== null && right !== null && Math.sign(compareMoments(left, right) ?? Number.NaN)).toBe(
          Math.sign(a.getTime() - b.getTime()),
        )
      }),
    )
  })
})

describe('a regex of the model (B-JSONL-13)', () => {
  it.each(['(a+)+$', '(a*)*b', '(?:a|b)*c', '((x?)y)+', '(a?){30}', '(?<n>a{1,5}){2,}', '([^,]+,)+x', '((a)|b)+'])(
    'B-JSONL-13: %s is refused before the scan',
    (source) => {
      expect(() => compileFinder('where[0]', source, '')).toThrow(/where\[0\].*refused/)
    },
  )

  it.each(['error.*timeout', '(foo|bar)', '(\\.\\d+)?', '[(+]+', '\\(a+\\)+', '(abc)+', '\\p{L}{2,}', '(?:ab|cd)?x+'])(
    'B-JSONL-13: %s is not',
    (source) => {
      expect(() => compileFinder('where[0]', source, '')).not.toThrow()
    },
  )

  it.each(['a?'.repeat(21), '(?:a|)'.repeat(21), 'a{0,3}'.repeat(7)])(
    'B-JSONL-13: %s has too many choices',
    (source) => {
      expect(() => compileFinder('where[0]', source, '')).toThrow(/too many/)
    },
  )

  it.each([
    ['a?'.repeat(18) + '.*b.*c', 'a'.repeat(20_000)],
    ['.*a.*b.*c', 'a'.repeat(20_000)],
    ['(?:a|a)'.repeat(16) + '.*.*b', 'a'.repeat(1_000)],
  ])('B-JSONL-13: %s is stopped within its time', (source, text) => {
    const find = compileFinder('where[0]', source, '')
    const watch = createWatch()
    const from = performance.now()
    expect(() => watch(() => void find([text]))).toThrow(/where\[0\].*stopped after 1000 ms/)
    expect(performance.now() - from).toBeLessThan(5_000)
  })

  it('B-JSONL-13: a pattern over 500 characters is refused, and a text is searched to its end', () => {
    expect(() => compileFinder('where[0]', 'a'.repeat(501), '')).toThrow(/500 characters/)
    const find = compileFinder('where[0]', 'needle', '')
    expect(find(['needle', `${'x'.repeat(500_000)}needle`])).toEqual([0, 500_000])
  })

  it('B-JSONL-13: a watch lets ordinary work and its errors through, and serves again after it stopped something', () => {
    const watch = createWatch()
    const find = compileFinder('x', 'A+B', 'i')
    expect(() => watch(() => void compileFinder('where[3]', '.*a.*b.*c', '')(['a'.repeat(20_000)]))).toThrow('where[3]')
    let found: readonly number[] = []
    watch(() => void (found = find(['', 'ab', 'xxaby'])))
    expect(found).toEqual([-1, 0, 2])
    expect(() => watch(() => void compileWhere([{ field: '', op: 'exists' }]))).toThrow(ToolFailure)
  })
})

function judged(row: string, ...where: readonly WhereClause[]): FilterVerdict {
  return applyFilters(parsed(row), compileWhere(where))
}

function parsed(text: string): ExactValue {
  const value = readExactJson(text)
  if (value === undefined) throw new Error(`not JSON: ${text}`)
  return value
}

function writtenAt(instant: Date, offsetMinutes: number): string {
  const local = new Date(instant.getTime() + offsetMinutes * 60_000).toISOString().slice(0, -1)
  const minutes = Math.abs(offsetMinutes)
  const two = (n: number) => `${n}`.padStart(2, '0')
  return `${local}${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}
