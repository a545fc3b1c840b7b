// One statement of many parts: each writes rows of one table, and all of them are done if every guard is good, else none (22012). What
// the parts are is write.ts.
import type { SqlValue } from './sql.ts'
import { maskOf } from './texts.ts'

/** A column of the rows that a part writes: its name, its type, and its values. */
export type Column = readonly [name: string, type: string, values: readonly SqlValue[]]
/** `guards`: how many of its `size` rows it must find or make; null where it makes no difference. Columns are made for parts with rows. */
export type Part = {
  readonly key: string
  readonly size: number
  readonly columns: () => readonly Column[]
  readonly sql: string
  readonly guards: number | null
}

export const column = <T>(rows: readonly T[], name: string, type: string, of: (row: T) => SqlValue): Column => [
  name,
  type,
  rows.map(of),
]

/** A connection keeps a plan of about 280 kB for each text that has a name. The others are planned each time. */
const NAMED_MAX = 64
/** The text of a statement follows from the parts it has, and from which of them have one row: each is made once. */
const TEXTS = new Map<string, string>()

/** It answers with the time of the database. */
export function statementOf(
  all: readonly Part[],
  texts = TEXTS,
): [name: string, text: string, values: readonly SqlValue[]] {
  const parts = all.flatMap((part) => (part.size > 0 ? [{ ...part, columns: part.columns() }] : []))
  const name = `write ${maskOf(all.map(({ size }) => size > 0))} ${maskOf(parts.map(({ size }) => size === 1))}`
  const known = texts.get(name)
  const text = known ?? textOf(parts)
  const isNamed = known !== undefined || texts.size < NAMED_MAX
  if (isNamed) texts.set(name, text)
  const values = parts.flatMap(({ size, columns }) =>
    columns.map(([, , list]): SqlValue => (size === 1 ? (list[0] ?? null) : list)),
  )
  values.push(parts.reduce((sum, { guards }) => sum + (guards ?? 0), 0))
  return [isNamed ? name : '', text, values]
}

type Filled = Omit<Part, 'columns'> & { readonly columns: readonly Column[] }

function textOf(parts: readonly Filled[]): string {
  let given = 0
  const withs = parts.flatMap(({ key, size, columns, sql: text }) => {
    const one = columns.map(([name, type]) => `$${++given}::${type}${size === 1 ? ` as ${name}` : '[]'}`).join(', ')
    const names = columns.map(([name]) => name).join(', ')
    // Most parts have one row: its values need no arrays.
    const rows = size === 1 ? `select ${one}` : `select * from unnest(${one}) r(${names})`
    return [`${key}_rows as (${rows})`, `${key} as (${text.replaceAll('$rows', `${key}_rows r`)})`]
  })
  const counts = parts.flatMap(({ key, guards }) => (guards === null ? [] : [`(select count(*) from ${key})`]))
  return `with ${withs.join(',\n')}
    select 1 / (${['0', ...counts].join(' + ')} = $${given + 1}::int)::int as good, extract(epoch from clock_timestamp())::float8 * 1000 as now`
}
