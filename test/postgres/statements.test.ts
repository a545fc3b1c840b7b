import { expect, it } from 'vitest'
import { type Part, statementOf } from '../../src/stores/postgres/parts.ts'

it('B-PG-25: 64 of them have a name at most, the first ones, and all have their text', () => {
  const part = (key: string, size: number): Part => ({
    key,
    size,
    columns: () => [['n', 'int', Array.from({ length: size }, (_, i) => i)]],
    sql: `select n from $rows`,
    guards: null,
  })
  const texts = new Map<string, string>()
  const statements = Array.from({ length: 127 }, (_, mask) =>
    statementOf(
      Array.from({ length: 7 }, (_each, bit) => part(`p${bit}`, ((mask + 1) >> bit) & 1 ? 2 : 0)),
      texts,
    ),
  )
  const names = statements.map(([name]) => name)
  expect(names.slice(0, 64)).not.toContain('')
  expect(new Set(names.slice(64))).toEqual(new Set(['']))
  expect(new Set(statements.map(([, text]) => text)).size).toBe(127)
  expect(statementOf([part('p0', 2)], texts)[0]).toBe(names[0])
})
