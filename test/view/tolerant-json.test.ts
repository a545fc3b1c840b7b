// Reading JSON out of what a model wrote.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readTolerantJson } from '../../src/view/tolerant-json.ts'

const json = fc.jsonValue({ maxDepth: 4 })
const holder = json.filter((value) => value !== null && typeof value === 'object')
const written = (value: unknown, indent: number): string => JSON.stringify(value, null, indent)
/** Words, quotes, links, footnotes that are no JSON, and braces of code. */
const prose = fc
  .array(
    fc.constantFrom('Sure!', 'It is "so".', '[see', 'a[i]', '{braces}', '(x)', "don't", '`code`', '\n', '](url)'),
    {
      maxLength: 6,
    },
  )
  .map((words) => words.join(' '))

describe('tolerant JSON', () => {
  it('B-OUTPUT-1: it never throws, and JSON that is nothing but JSON is read as it is', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, cut) => void readTolerantJson(text, cut)))
    const brackets = fc.array(fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', '1', ' ', 'a', '```', '\n'))
    fc.assert(fc.property(brackets, (parts) => void readTolerantJson(parts.join(''))))
    fc.assert(
      fc.property(json, fc.nat(3), (value, indent) => {
        const text = written(value, indent)
        expect(readTolerantJson(` ${text}\n`)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('B-OUTPUT-2: JSON in a fence or in prose is found, whatever stands around it (AC-50, TRAP-30)', () => {
    fc.assert(
      fc.property(
        holder,
        prose,
        prose,
        fc.nat(2),
        fc.constantFrom('```json\n', '```\n', '~'),
        (value, a, b, n, fence) => {
          const text = written(value, n)
          const end = fence === '~' ? '\n' : '\n```\n'
          const start = fence === '~' ? '\n' : fence
          expect(readTolerantJson(`${a}\n${start}${text}${end}${b}`)).toEqual(JSON.parse(text))
        },
      ),
      { numRuns: 500 },
    )
    expect(readTolerantJson('```json\n"only text"\n```')).toBe('only text')
    expect(readTolerantJson('First:\n```json\n{"a":1}\n```\nBetter:\n```json\n{"a":2}\n```')).toEqual({ a: 2 })
    expect(readTolerantJson('I thought of {"a":1}, but it is {"a":2}, as in [1].')).toEqual({ a: 2 })
    expect(readTolerantJson('The numbers are [1, 2].')).toEqual([1, 2])
    expect(readTolerantJson('```json\n{"code":"```ts\\nx\\n```"}\n```')).toEqual({ code: '```ts\nx\n```' })
  })

  it('B-OUTPUT-3: trailing commas and lost brackets are mended, half a string and half an answer are not', () => {
    expect(readTolerantJson('{"a":[1,2,],"b":", ]",}')).toEqual({ a: [1, 2], b: ', ]' })
    expect(readTolerantJson('{"a":{"b":[{"c":1}]')).toEqual({ a: { b: [{ c: 1 }] } })
    expect(readTolerantJson('Here: {"a":[1,2')).toEqual({ a: [1, 2] })
    expect(readTolerantJson('{"a":"and then he sa')).toBeUndefined()
    expect(readTolerantJson('{"a":[{"b":1},{"b":')).toBeUndefined()
    expect(readTolerantJson('{"a":[{"b":1},{"b":1', true)).toBeUndefined()
    expect(readTolerantJson('{"a":1}', true)).toEqual({ a: 1 })
    expect(readTolerantJson('No.')).toBeUndefined()
    expect(readTolerantJson('')).toBeUndefined()
  })

  it('B-OUTPUT-4: a long and hostile text is looked at a few times, not once for each of its characters', () => {
    const many = 200_000
    const texts = [
      '{'.repeat(many),
      '[{"'.repeat(many),
      '```'.repeat(many),
      `\`\`\`${' '.repeat(many)}{`,
      ', '.repeat(many),
    ]
    for (const text of [...texts, '{"a":1} '.repeat(many / 10), '\\"'.repeat(many), `{"a":"${'\\'.repeat(many)}`]) {
      expect(() => readTolerantJson(text)).not.toThrow()
    }
  })
})
