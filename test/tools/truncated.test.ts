// Closing text that is not JSON: examples, then every prefix of every document.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/kernel/content.ts'
import { closeJson } from '../../src/tools/repair/close-json.ts'
import { runs } from '../runs.ts'
import { JSON_BITS } from '../fuzz/json.ts'

describe('closing text that is not JSON', () => {
  const cases: readonly (readonly [string, Json, string])[] = [
    ['{"path":"a"', { path: 'a' }, 'none'],
    ['{"path":"a","names":["x"', { path: 'a', names: ['x'] }, 'none'],
    ['{"path":"a",}', { path: 'a' }, 'none'],
    ['{"names":["x",],}', { names: ['x'] }, 'none'],
    ['{"deep":tr', { deep: true }, 'none'],
    ['{"path":"a"}}', { path: 'a' }, 'none'],
    ['```json\n{"path":"a"', { path: 'a' }, 'none'],
    ['{"path":"a",', { path: 'a' }, 'tail'],
    ['{"path":"a","na', { path: 'a' }, 'tail'],
    ['{"path":"a","names"', { path: 'a' }, 'tail'],
    ['{"path":"a","names":', { path: 'a' }, 'tail'],
    ['{"path":"a","names":[', { path: 'a', names: [] }, 'tail'],
    ['{"path":"a"} and then', { path: 'a' }, 'tail'],
    ['{"path":"a"}{"path":"b"}', { path: 'a' }, 'tail'],
    ['{', {}, 'tail'],
    ['{"path":"a","content":"half of', { path: 'a' }, 'value'],
    ['{"path":"a","content":"half \\', { path: 'a' }, 'value'],
    ['{"path":"a","limit":12', { path: 'a' }, 'value'],
  ]
  it.each(cases)('B-ADMIT-7: %s is closed, and what was lost is named', (source, value, lost) => {
    expect(closeJson(source)).toEqual({ value, lost })
  })

  it.each([
    '',
    'no',
    '"{\\"a',
    '[1',
    '{"a" "b"}',
    '{"a":}',
    '{"a":1]',
    "{'a':1}",
    '{a:1}',
    '{,}',
    '{"a":[,]}',
    '{"a":tru}',
  ])('B-ADMIT-7: %s is not read as an object', (source) => {
    expect(closeJson(source)).toBeNull()
  })

  it('B-ADMIT-7: a broken text of more than twelve pairs is not trusted', () => {
    const pairs = (n: number): string => Array.from({ length: n }, (_, i) => `"k${i}":${i}`).join()
    expect(closeJson(`{${pairs(12)},}`)?.lost).toBe('none')
    expect(closeJson(`{${pairs(13)},}`)).toBeNull()
  })

  it('B-ADMIT-8: every prefix of every document is closed without a throw, and holds only what was written', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 }),
        fc.boolean(),
        (value, wide) => {
          const source = JSON.stringify(value, null, wide ? 2 : 0)
          const whole = JSON.parse(source) as Json
          for (let end = 0; end <= source.length; end++) {
            const closed = closeJson(source.slice(0, end))
            if (closed && !isPart(closed.value, whole)) expect(closed.value).toEqual(whole)
          }
          expect(closeJson(source)).toEqual({ value: whole, lost: 'none' })
        },
      ),
      { numRuns: runs(300) },
    )
  })

  it('B-ADMIT-8: no text at all makes it throw, however deep or long', () => {
    const bits = fc.constantFrom(...JSON_BITS, '"a":')
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(bits, { maxLength: 40 }).map((all) => all.join('')),
        ),
        (source) => void closeJson(source),
      ),
      { numRuns: runs(3000) },
    )
    expect(closeJson('{"a":'.repeat(200_000))).toSatisfy(
      (closed: unknown) => closed === null || typeof closed === 'object',
    )
    expect(closeJson(`{"a":"${'x'.repeat(3_000_000)}`)).toEqual({ value: {}, lost: 'value' })
  })
})

/** Everything in `part` stands in `whole` at the same place; lists and objects may only be shorter. */
function isPart(part: Json, whole: Json): boolean {
  if (Array.isArray(part)) return Array.isArray(whole) && part.every((item: Json, i) => isPart(item, whole[i] as Json))
  if (part === null || typeof part !== 'object') return Object.is(part, whole)
  if (whole === null || typeof whole !== 'object') return false
  const outer = whole as Readonly<Record<string, Json>>
  return Object.entries(part).every(([key, item]) => Object.hasOwn(outer, key) && isPart(item, outer[key] as Json))
}
