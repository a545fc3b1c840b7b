// Writes the rows of one tree as the records of a file, and reads such a file with all checks of its bytes: header,
// shape, completeness and digest. read-file.ts also reads older formats.
import { hash } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import type { StreamRow } from '../stores/move/move-rows.ts'
import { RowDigest } from '../stores/move/row-digest.ts'
import { type SessionTree, TreeReader, streamRows } from '../stores/move/portable-tree.ts'
import { upcast } from '../stores/plan/upcast.ts'
import { safeJson } from '../view/clean.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { Portable, PortableHeader, PortableRecord } from './portable-file.ts'
import { checkPortable, invalidImport, NO_EXPORT } from './schema-check.ts'

/** The contents of a file. A file of an earlier version keeps the checksum that it was written with as its digest. */
export type StreamFile = {
  readonly holds: PortableHeader['holds']
  readonly tree: SessionTree
  readonly digest: string
}

const VERSION = 1

export function recordsOf(holds: PortableHeader['holds'], tree: SessionTree): Portable {
  const digest = new RowDigest()
  const records: PortableRecord[] = [{ type: 'header', format: 'terret.stream', version: VERSION, holds }]
  for (const row of streamRows(tree)) {
    digest.add(row)
    records.push(recordOf(row))
  }
  return [...records, { type: 'end', digest: digest.end() }]
}

/** One record on each line. */
export function portableText(records: Portable): string {
  return `[${records.map((record) => safeJson(record)).join(',\n')}]\n`
}

function recordOf(row: StreamRow): PortableRecord {
  if (row.type === 'event') return { type: 'event', event: JSON.parse(row.body) as Event }
  return row.type === 'blob' ? { ...row, data: Buffer.from(row.data).toString('base64') } : row
}

/** Reads the records of a file. Throws a Fault that says in one sentence what is wrong. */
export function readRecords(value: unknown): StreamFile {
  checkHeader(value)
  // An earlier version may have written old shapes of events. The digest is of what it wrote.
  const written = value as Portable
  checkPortable(written.map((each) => (isEventRecord(each) ? { ...each, event: upcast(each.event) } : each)))
  const [header, ...rows] = written as [PortableHeader, ...PortableRecord[]]
  const end = rows.pop()
  if (end?.type !== 'end') throw invalidImport('it was cut off: its last record is missing.')
  const digest = new RowDigest()
  const reader = new TreeReader(invalidImport)
  for (const record of rows) {
    const row = rowOf(record)
    if (reader.add(row) !== null) throw invalidImport('there is more than one tree in it.')
    digest.add(row)
  }
  const tree = reader.end()
  if (digest.end() !== end.digest) throw invalidImport('it was changed or damaged: its checksum does not match.')
  return { holds: header.holds, tree, digest: end.digest }
}

/** The version comes first: what a newer one wrote may have any other shape. */
function checkHeader(value: unknown): void {
  const [header] = Array.isArray(value) ? (value as unknown[]) : []
  if (!isObject(header) || header['format'] !== 'terret.stream') throw invalidImport(NO_EXPORT)
  const { version } = header
  if (typeof version === 'number' && version > VERSION)
    throw invalidImport(
      `a newer version of Terret wrote it (format ${version}, and this one reads ${VERSION}). Update.`,
    )
}

function isEventRecord(record: unknown): record is Extract<PortableRecord, { type: 'event' }> {
  return isObject(record) && record['type'] === 'event' && isObject(record['event'])
}

export function rowOf(record: PortableRecord): StreamRow {
  if (record.type === 'header' || record.type === 'end') throw invalidImport(`it has a second ${record.type}.`)
  if (record.type === 'event') return { type: 'event', body: JSON.stringify(record.event) }
  return record.type === 'blob' ? { ...record, data: decodeBlob(record.hash, record.data) } : record
}

export function decodeBlob(hashed: string, data: string): Uint8Array {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.toString('base64') !== data) throw invalidImport(`the blob ${hashed} is not base64.`)
  if (hash('sha256', bytes) !== hashed) throw invalidImport(`the blob ${hashed} has other bytes than its hash says.`)
  return bytes
}
