import { describe, expect, it } from 'vitest'
import { buildColumn, type StatementPart, buildStatement } from '../../src/stores/postgres/statement-parts.ts'
import { connections } from './opened.ts'
import { noPostgres } from './server.ts'

it('B-PG-25: 64 of them have a name at most, the first ones, and all have their text', () => {
  const part = (key: string, size: number): StatementPart => ({
    key,
    size,
    columns: () => [buildColumn(Array.from({ length: size }), 'n', 'int', () => 1)],
    sql: `select n from $rows`,
    guards: null,
  })
  const texts = new Map<string, string>()
  const statements = Array.from({ length: 127 }, (_, mask) =>
    buildStatement(
      Array.from({ length: 7 }, (_each, bit) => part(`p${bit}`, ((mask + 1) >> bit) & 1 ? 2 : 0)),
      texts,
    ),
  )
  const names = statements.map(([name]) => name)
  expect(names.slice(0, 64)).not.toContain('')
  expect(new Set(names.slice(64))).toEqual(new Set(['']))
  expect(new Set(statements.map(([, text]) => text)).size).toBe(127)
  expect(buildStatement([part('p0', 2)], texts)[0]).toBe(names[0])
})

describe.skipIf(noPostgres)('arrays', () => {
  it.each([
    ['text', ['', '"', '\\', "'", '{a,b}', 'NULL', null, 'line\nline', 'é €😀', '\u0001']],
    ['bigint', [0, 1, -1, 2 ** 32, -(2 ** 32) - 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, null]],
    ['int', [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), null]],
    ['float8', [0, 0.1, -1.5, 1_763_420_000_123.456, Number.MAX_VALUE, 5e-324, null]],
    ['boolean', [true, false, null]],
    ['bytea', [new Uint8Array([0, 255, 92, 34]), new Uint8Array(), null]],
  ] as const)('B-PG-26: %s is in the database as it was given', async (type, values) => {
    const { reader } = await connections()
    const [, , all] = buildColumn<unknown, typeof type>(values, 'v', type, (value) => value as never)
    const singles = values.map(
      (value) => buildColumn<unknown, typeof type>([value], 'v', type, (one) => one as never)[2],
    )
    const one = singles.map((_, i) => `$${i + 2}::${type}`)
    const text = `select $1::${type}[] is not distinct from array[${one.join(', ')}] as same, cardinality($1::${type}[]) as count`
    expect(await reader.ask('', text, [all, ...singles])).toEqual([{ same: true, count: values.length }])
  })

  it.each([
    ['int', 1.5],
    ['int', 2 ** 31],
    ['bigint', 1.5],
  ] as const)('B-PG-26: what is no %s is refused, not rounded', (type, value) => {
    expect(() => buildColumn([value, value], 'v', type, (each) => each)).toThrow(/whole number|integer|range/)
  })
})
