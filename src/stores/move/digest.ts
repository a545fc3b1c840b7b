// One SHA-256 over all rows of a store, in their order: two stores with the same one hold the same. And a count of the rows.
import { createHash } from 'node:crypto'
import type { Counts, Row } from './rows.ts'

export class Digest {
  /** Bytes of events and blobs. */
  bytes = 0
  readonly counts: Record<Row['type'], number> = {
    session: 0,
    inbox: 0,
    ref: 0,
    event: 0,
    worker: 0,
    hold: 0,
    account: 0,
    blob: 0,
    removal: 0,
  }
  readonly #hash = createHash('sha256')

  /** Each part counts with its kind and its length: no two lists of rows are the same bytes. */
  add(row: Row): void {
    this.counts[row.type] += 1
    if (row.type === 'event') {
      const length = Buffer.byteLength(row.body)
      this.bytes += length
      this.#hash.update(`event ${length}\n${row.body}`)
    } else if (row.type === 'blob') {
      const { data, ...rest } = row
      this.bytes += data.length
      this.#part(rest)
      this.#hash.update(`data ${data.length}\n`).update(data)
    } else this.#part(row)
  }

  /** Once: nothing can be added after it. */
  end(): string {
    return this.#hash.digest('hex')
  }

  #part(row: object): void {
    const text = JSON.stringify(sorted(row))
    this.#hash.update(`row ${Buffer.byteLength(text)}\n${text}`)
  }
}

/** The first kind of which a reader gave another number of rows than its store counts, or null. */
export function miscounted(read: Counts, counted: Counts): Row['type'] | null {
  const kinds = Object.keys(read) as Row['type'][]
  return kinds.find((kind) => read[kind] !== counted[kind]) ?? null
}

/** Fields in one order, whatever order a store has them in. A field that is undefined is not there. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  entries.sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, item]) => [name, sorted(item)]))
}
