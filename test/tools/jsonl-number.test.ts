// Exact numbers against BigInt arithmetic, and the reader against JSON.parse. Rows and filters are tested elsewhere.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareExact, parseExact } from '../../src/tools/jsonl/filter.ts'
import { isList, isNumeral, readExactJson, type ExactValue, writeExactJson } from '../../src/tools/jsonl/exact-json.ts'

describe('numbers compare exactly (B-JSONL-5)', () => {
  const integer = fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n })

  it('B-JSONL-5: random integers of any size stand as BigInt has them', () => {
    fc.assert(
      fc.property(integer, fc.oneof(integer, fc.bigInt({ min: -3n, max: 3n })), (a, delta) => {
        expect(order(`${a}`, `${a + delta}`)).toBe(sign(-delta))
      }),
    )
  })

  it('B-JSONL-5: random decimals with exponents stand as scaled integers have them', () => {
    const decimal = fc.record({
      digits: fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
      places: fc.integer({ min: 0, max: 40 }),
      exponent: fc.integer({ min: -40, max: 40 }),
    })
    fc.assert(
      fc.property(decimal, decimal, (a, b) => {
        // Both times 10^80, so that every one of them is an integer.
        const scaled = ({ digits, places, exponent }: typeof a) => digits * 10n ** BigInt(80 + exponent - places)
        expect(order(written(a), written(b))).toBe(sign(scaled(a) - scaled(b)))
      }),
      { numRuns: 1_000 },
    )
  })

  it('B-JSONL-5: a number equals every way of writing it', () => {
    for (const [a, b] of [
      ['1', '1.0'],
      ['100', '1e2'],
      ['0.1', '1E-1'],
      ['-0', '0.000e9'],
      ['+5.', '05'],
      ['.5', '0.50'],
    ] as const) {
      expect(order(a, b)).toBe(0)
    }
  })

  it('B-JSONL-5: what a double would round away still counts', () => {
    expect(order('9007199254740992', '9007199254740993')).toBe(-1)
    expect(order('0.1', '0.1000000000000000055511151231257827')).toBe(-1)
    expect(order('1e400', '1e401')).toBe(-1)
    expect(order('-1e400', '1e-400')).toBe(-1)
    expect(order('1e99999999999999999999', '1e99999999999999999998')).toBe(1)
  })

  it.each([
    '',
    '-',
    '.',
    'e5',
    'NaN',
    'Infinity',
    '-Infinity',
    '1_000',
    '0x10',
    ' 1',
    '1 ',
    '1e',
    `1e${'9'.repeat(2_000)}`,
  ])('B-JSONL-5: "%s" is no number', (text) => {
    expect(parseExact(text)).toBeNull()
  })

  it('B-JSONL-5: a million zeros are read in linear time', () => {
    const zeros = '0'.repeat(1_000_000)
    expect(order(`1${zeros}1${zeros}`, `1${zeros}2${zeros}`)).toBe(-1)
    expect(order(`0.${zeros}1`, `0.${zeros}01`)).toBe(1)
  })
})

describe('the reader', () => {
  it('B-JSONL-5: agrees with JSON.parse on every value, and keeps every number as it was written', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(0, 1, '\t'), (json, indent) => {
        const text = JSON.stringify(JSON.parse(json), null, indent)
        const value = readExactJson(text)
        expect(plain(value)).toEqual(JSON.parse(text))
        expect(value === undefined ? '' : writeExactJson(value)).toBe(compact(text))
      }),
    )
  })

  it('B-JSONL-10: refuses exactly the texts that JSON.parse refuses', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '1',
      '0',
      '-',
      '.',
      'e',
      ' ',
      'null',
      'true',
      '\n',
    )
    const broken = fc.tuple(fc.json(), fc.nat(), fc.array(piece, { maxLength: 3 })).map(([json, at, pieces]) => {
      const cut = at % (json.length + 1)
      return json.slice(0, cut) + pieces.join('') + json.slice(cut + 1)
    })
    const texts = fc.oneof(
      broken,
      fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
    )
    fc.assert(
      fc.property(texts, (text) => {
        expect(readExactJson(text) === undefined).toBe(!parses(text))
      }),
      { numRuns: 3_000 },
    )
  })

  it('B-JSONL-5: writes numbers back as they came', () => {
    const text = '{"a":9007199254740993,"b":[1.10,-0,1E+2,0.1000000000000000055511151231257827],"c":{"d":1e400}}'
    const value = readExactJson(text)
    expect(value === undefined ? '' : writeExactJson(value)).toBe(text)
  })

  it('B-JSONL-3: takes any key for a key, and the last of two equal ones', () => {
    const value = readExactJson('{"__proto__":{"x":1},"type":"number","text":"5","a":1,"a":2}')
    expect(value instanceof Map && [...value.keys()]).toEqual(['__proto__', 'type', 'text', 'a'])
    expect(value instanceof Map && value.get('a')).toEqual({ type: 'number', text: '2' })
    expect(isNumeral(value)).toBe(false)
  })

  it('B-JSONL-10: reads 500 levels and calls deeper ones malformed instead of breaking', () => {
    expect(readExactJson('['.repeat(500) + ']'.repeat(500))).toBeDefined()
    expect(readExactJson('['.repeat(100_000) + ']'.repeat(100_000))).toBeUndefined()
  })
})

function order(a: string, b: string): number {
  const [left, right] = [parseExact(a), parseExact(b)]
  if (left === null || right === null) throw new Error(`not numbers: ${a}, ${b}`)
  return Math.sign(compareExact(left, right))
}

function sign(value: bigint): number {
  if (value === 0n) return 0
  return value < 0n ? -1 : 1
}

function written({ digits, places, exponent }: { digits: bigint; places: number; exponent: number }): string {
  const text = `${digits < 0n ? -digits : digits}`.padStart(places + 1, '0')
  const whole = text.slice(0, text.length - places)
  const fraction = places === 0 ? '' : `.${text.slice(-places)}`
  return `${digits < 0n ? '-' : ''}${whole}${fraction}e${exponent}`
}

/** The same text without white space between tokens. */
function compact(text: string): string {
  return JSON.stringify(JSON.parse(text))
}

function plain(value: ExactValue | undefined): unknown {
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, ExactValue>)]
    return Object.fromEntries(entries.map(([key, item]) => [key, plain(item)]))
  }
  if (isList(value)) return value.map(plain)
  return isNumeral(value) ? Number(value.text) : value
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
