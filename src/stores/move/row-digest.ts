// The one digest of exports, archives and moves: a SHA-256 over all rows in order. The events of a log enter it as a
// digest of their own, so the same log has the same digest in every stream. It also counts the rows.
import { createHash } from 'node:crypto'
import type { Event } from '../../kernel/event.ts'
import { withoutFolder } from '../../view/without-folder.ts'
import type { MoveCounts, MoveRow, StreamRow } from './move-rows.ts'

/** The digest of a log: of its session's id and its events, without the folders and programs that exports leave out. */
export class LogDigest {
  readonly #hash = createHash('sha256')

  constructor(session: string) {
    this.#hash.update(`log ${Buffer.byteLength(session)}\n${session}`)
  }

  /** True if it took the whole event. */
  add(body: string): boolean {
    const bare = bareBody(body)
    this.#hash.update(`event ${Buffer.byteLength(bare)}\n${bare}`)
    return bare === body
  }

  /** Call it once; nothing can be added after it. */
  end(): string {
    return this.#hash.digest('hex')
  }
}

/** Nearly no event names a folder or a program. The texts in an event have no unescaped quotation marks. */
function bareBody(body: string): string {
  if (!body.includes('"type":"session.')) return body
  return JSON.stringify(withoutFolder([JSON.parse(body) as Event])[0])
}

export class RowDigest {
  /** Bytes of events and blobs. */
  bytes = 0
  readonly counts: Record<MoveRow['type'], number> = {
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
  /** The log whose events are being added. Null after a `log` row, which brings the digest of its events. */
  #log: LogDigest | null = null

  /** Each part is hashed with its kind and its length, so different rows never give the same bytes. */
  add(row: MoveRow | StreamRow): void {
    if (row.type === 'event') return this.#event(row.body)
    if (row.type === 'log') this.counts.session += row.part === 'origin' ? 0 : 1
    else if (row.type !== 'trouble') this.counts[row.type] += 1
    if (row.type === 'session' || row.type === 'log') this.#closeLog()
    if (row.type === 'session') this.#log = new LogDigest(row.id)
    if (row.type === 'blob') {
      const { data, ...rest } = row
      this.bytes += data.length
      this.#part(rest)
      this.#hash.update(`data ${data.length}\n`).update(data)
    } else this.#part(row)
  }

  /** Call it once; nothing can be added after it. */
  end(): string {
    this.#closeLog()
    return this.#hash.digest('hex')
  }

  #event(body: string): void {
    this.counts.event += 1
    const bytes = Buffer.byteLength(body)
    this.bytes += bytes
    const isWhole = this.#log ? this.#log.add(body) : bareBody(body) === body
    // The log's digest leaves out folders and programs, so an event with one is added to this digest as a whole.
    if (!isWhole) this.#hash.update(`event ${bytes}\n${body}`)
  }

  #closeLog(): void {
    if (this.#log) this.#hash.update(`log ${this.#log.end()}\n`)
    this.#log = null
  }

  #part(row: object): void {
    const text = JSON.stringify(sortFields(row))
    this.#hash.update(`row ${Buffer.byteLength(text)}\n${text}`)
  }
}

/** The first kind of row whose number differs between the reader and the store's own count, or null. */
export function findMiscount(read: MoveCounts, counted: MoveCounts): MoveRow['type'] | null {
  const kinds = Object.keys(read) as MoveRow['type'][]
  return kinds.find((kind) => read[kind] !== counted[kind]) ?? null
}

/** Sorts the fields, because stores order them differently. An undefined field is left out. */
function sortFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortFields)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  entries.sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, item]) => [name, sortFields(item)]))
}
