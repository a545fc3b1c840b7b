// Builds one statement from many parts: each writes rows of one table, and all of them take effect if every guard
// holds, otherwise none (22012). write-statement.ts defines the parts.
import { assert } from '../../kernel/failure.ts'
import type { PostgresValue } from './sql.ts'
import { bitMask } from './schema-texts.ts'

/** The value type for each column type. */
type SqlTypeValues = {
  readonly boolean: boolean
  readonly bytea: Uint8Array
  readonly bigint: number
  readonly int: number
  readonly text: string
  readonly float8: number
}
type SqlType = keyof SqlTypeValues
/** A column of the rows that a part writes: name, type, and value; for several rows an array. */
export type Column = readonly [name: string, type: SqlType, value: PostgresValue]
/**
 * `guards`: how many of its `size` rows must be found or made; null if it does not matter. Columns are built only for
 * parts with rows.
 */
export type StatementPart = {
  readonly key: string
  readonly size: number
  readonly columns: () => readonly Column[]
  readonly sql: string
  readonly guards: number | null
}

export function buildColumn<T, Type extends SqlType>(
  rows: readonly T[],
  name: string,
  type: Type,
  of: (row: T) => SqlTypeValues[Type] | null,
): Column {
  const values = rows.map(of)
  return [name, type, values.length === 1 ? (values[0] ?? null) : encodeArray(type, values)]
}

/** `buildColumn` for several columns of the same rows. */
export function columnsFor<T>(rows: readonly T[]) {
  return <Type extends SqlType>(name: string, type: Type, of: (row: T) => SqlTypeValues[Type] | null): Column =>
    buildColumn(rows, name, type, of)
}

type SqlTypeCodec<Type extends SqlType> = {
  readonly oid: number
  readonly bytes: (value: SqlTypeValues[Type]) => number
  readonly write: (to: Buffer, value: SqlTypeValues[Type], at: number) => void
}
const KINDS: { readonly [Type in SqlType]: SqlTypeCodec<Type> } = {
  boolean: { oid: 16, bytes: () => 1, write: (to, value, at) => void to.writeInt8(value ? 1 : 0, at) },
  bytea: { oid: 17, bytes: (value) => value.byteLength, write: (to, value, at) => to.set(value, at) },
  bigint: { oid: 20, bytes: () => 8, write: (to, value, at) => void to.writeBigInt64BE(BigInt(value), at) },
  int: { oid: 23, bytes: () => 4, write: (to, value, at) => void to.writeInt32BE(requireWhole(value), at) },
  text: { oid: 25, bytes: (value) => Buffer.byteLength(value), write: (to, value, at) => void to.write(value, at) },
  float8: { oid: 701, bytes: () => 8, write: (to, value, at) => void to.writeDoubleBE(value, at) },
}

/** A rounded value would be another number. */
function requireWhole(value: number): number {
  assert(Number.isInteger(value), 'a whole number is written where one is kept')
  return value
}

/**
 * The header of an array: dimensions, whether it has nulls, the element type, the number of elements, and the first
 * index.
 */
const HEADER_BYTES = 20

/**
 * The binary form in which the database itself sends arrays. As text, every quote in them would be escaped here and
 * parsed again there.
 */
function encodeArray<Type extends SqlType>(type: Type, values: readonly (SqlTypeValues[Type] | null)[]): Buffer {
  const kind: SqlTypeCodec<Type> = KINDS[type]
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

/** A connection keeps a plan of about 280 kB for each named statement. The others are planned each time. */
const NAMED_MAX = 64
/** The text of a statement depends on its parts, and on which of them have one row. Each text is built once. */
const TEXTS = new Map<string, string>()

/** The statement returns the time of the database. */
export function buildStatement(
  all: readonly StatementPart[],
  texts = TEXTS,
): [name: string, text: string, values: readonly PostgresValue[]] {
  const parts = all.filter(({ size }) => size > 0)
  const columns = parts.map((part) => part.columns())
  const name = `write ${bitMask(all.map(({ size }) => size > 0))} ${bitMask(parts.map(({ size }) => size === 1))}`
  const known = texts.get(name)
  const text = known ?? statementText(parts, columns)
  const isNamed = known !== undefined || texts.size < NAMED_MAX
  if (isNamed) texts.set(name, text)
  const values: PostgresValue[] = []
  for (const own of columns) for (const each of own) values.push(each[2])
  values.push(parts.reduce((sum, { guards }) => sum + (guards ?? 0), 0))
  return [isNamed ? name : '', text, values]
}

function statementText(parts: readonly StatementPart[], columns: readonly (readonly Column[])[]): string {
  let given = 0
  const withs = parts.flatMap(({ key, size, sql: text }, i) => {
    const own = columns[i] ?? []
    const one = own.map(([name, type]) => `$${++given}::${type}${size === 1 ? ` as ${name}` : '[]'}`).join(', ')
    const names = own.map(([name]) => name).join(', ')
    // Most parts have one row, whose values need no arrays.
    const rows = size === 1 ? `select ${one}` : `select * from unnest(${one}) r(${names})`
    return [`${key}_rows as (${rows})`, `${key} as (${text.replaceAll('$rows', `${key}_rows r`)})`]
  })
  const counts = parts.flatMap(({ key, guards }) => (guards === null ? [] : [`(select count(*) from ${key})`]))
  return `with ${withs.join(',\n')}
    select 1 / (${['0', ...counts].join(' + ')} = $${given + 1}::int)::int as good, extract(epoch from clock_timestamp())::float8 * 1000 as now`
}
