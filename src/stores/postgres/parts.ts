// One statement of many parts: each writes rows of one table, and all of them are done if every guard is good, else none (22012). What
// the parts are is write.ts.
import { assert } from '../../kernel/failure.ts'
import type { SqlValue } from './sql.ts'
import { maskOf } from './texts.ts'

/** What a column of a type takes. */
type Values = {
  readonly boolean: boolean
  readonly bytea: Uint8Array
  readonly bigint: number
  readonly int: number
  readonly text: string
  readonly float8: number
}
type SqlType = keyof Values
/** A column of the rows that a part writes: its name, its type, and its value, of several rows an array. */
export type Column = readonly [name: string, type: SqlType, value: SqlValue]
/** `guards`: how many of its `size` rows it must find or make; null where it makes no difference. Columns are made for parts with rows. */
export type Part = {
  readonly key: string
  readonly size: number
  readonly columns: () => readonly Column[]
  readonly sql: string
  readonly guards: number | null
}

export function column<T, Type extends SqlType>(
  rows: readonly T[],
  name: string,
  type: Type,
  of: (row: T) => Values[Type] | null,
): Column {
  const values = rows.map(of)
  return [name, type, values.length === 1 ? (values[0] ?? null) : arrayOf(type, values)]
}

/** `column`, for several columns of the same rows. */
export function columnsOf<T>(rows: readonly T[]) {
  return <Type extends SqlType>(name: string, type: Type, of: (row: T) => Values[Type] | null): Column =>
    column(rows, name, type, of)
}

type Kind<Type extends SqlType> = {
  readonly oid: number
  readonly bytes: (value: Values[Type]) => number
  readonly write: (to: Buffer, value: Values[Type], at: number) => void
}
const KINDS: { readonly [Type in SqlType]: Kind<Type> } = {
  boolean: { oid: 16, bytes: () => 1, write: (to, value, at) => void to.writeInt8(value ? 1 : 0, at) },
  bytea: { oid: 17, bytes: (value) => value.byteLength, write: (to, value, at) => to.set(value, at) },
  bigint: { oid: 20, bytes: () => 8, write: (to, value, at) => void to.writeBigInt64BE(BigInt(value), at) },
  int: { oid: 23, bytes: () => 4, write: (to, value, at) => void to.writeInt32BE(whole(value), at) },
  text: { oid: 25, bytes: (value) => Buffer.byteLength(value), write: (to, value, at) => void to.write(value, at) },
  float8: { oid: 701, bytes: () => 8, write: (to, value, at) => void to.writeDoubleBE(value, at) },
}

/** Rounded it would be another number. */
function whole(value: number): number {
  assert(Number.isInteger(value), 'a whole number is written where one is kept')
  return value
}

/** Of an array: its dimensions, whether it has nulls, the type of its elements, how many they are, and the number of the first. */
const HEADER_BYTES = 20

/** As the database sends arrays itself. As text, every quote in them would be escaped here and read again there. */
function arrayOf<Type extends SqlType>(type: Type, values: readonly (Values[Type] | null)[]): Buffer {
  const kind: Kind<Type> = KINDS[type]
  const sizes = values.map((value) => (value === null ? -1 : kind.bytes(value)))
  const bytes = sizes.reduce((sum, size) => sum + 4 + Math.max(0, size), HEADER_BYTES)
  const array = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const word of [1, values.includes(null) ? 1 : 0, kind.oid, values.length, 1]) at = array.writeInt32BE(word, at)
  for (const [i, value] of values.entries()) {
    const size = sizes[i] ?? -1
    at = array.writeInt32BE(size, at)
    if (value === null) continue
    kind.write(array, value, at)
    at += size
  }
  return array
}

/** A connection keeps a plan of about 280 kB for each text that has a name. The others are planned each time. */
const NAMED_MAX = 64
/** The text of a statement follows from the parts it has, and from which of them have one row: each is made once. */
const TEXTS = new Map<string, string>()

/** It answers with the time of the database. */
export function statementOf(
  all: readonly Part[],
  texts = TEXTS,
): [name: string, text: string, values: readonly SqlValue[]] {
  const parts = all.filter(({ size }) => size > 0)
  const columns = parts.map((part) => part.columns())
  const name = `write ${maskOf(all.map(({ size }) => size > 0))} ${maskOf(parts.map(({ size }) => size === 1))}`
  const known = texts.get(name)
  const text = known ?? textOf(parts, columns)
  const isNamed = known !== undefined || texts.size < NAMED_MAX
  if (isNamed) texts.set(name, text)
  const values: SqlValue[] = []
  for (const own of columns) for (const each of own) values.push(each[2])
  values.push(parts.reduce((sum, { guards }) => sum + (guards ?? 0), 0))
  return [isNamed ? name : '', text, values]
}

function textOf(parts: readonly Part[], columns: readonly (readonly Column[])[]): string {
  let given = 0
  const withs = parts.flatMap(({ key, size, sql: text }, i) => {
    const own = columns[i] ?? []
    const one = own.map(([name, type]) => `$${++given}::${type}${size === 1 ? ` as ${name}` : '[]'}`).join(', ')
    const names = own.map(([name]) => name).join(', ')
    // Most parts have one row: its values need no arrays.
    const rows = size === 1 ? `select ${one}` : `select * from unnest(${one}) r(${names})`
    return [`${key}_rows as (${rows})`, `${key} as (${text.replaceAll('$rows', `${key}_rows r`)})`]
  })
  const counts = parts.flatMap(({ key, guards }) => (guards === null ? [] : [`(select count(*) from ${key})`]))
  return `with ${withs.join(',\n')}
    select 1 / (${['0', ...counts].join(' + ')} = $${given + 1}::int)::int as good, extract(epoch from clock_timestamp())::float8 * 1000 as now`
}
