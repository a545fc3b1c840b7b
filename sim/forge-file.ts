// Changed files of sessions with right digests, because a forger computes the digests too.
import type { Event } from '../src/kernel/event.ts'
import type { Portable, PortableRecord } from '../src/archive/portable-file.ts'
import { rowOf } from '../src/archive/stream-file.ts'
import { LogDigest, RowDigest } from '../src/stores/move/row-digest.ts'

/** The content of an exported session, to be read and changed. */
export type OpenedFile = {
  session: string
  events: Event[]
  blobs: Record<string, { media: string; data: string }>
  /** The origins of a fork. */
  parents: { session: string; events: Event[] }[]
}

export function openFile(records: Portable): OpenedFile {
  const file: OpenedFile = { session: '', events: [], blobs: {}, parents: [] }
  for (const record of structuredClone(records)) {
    if (record.type === 'log' && record.part === 'origin') file.parents.push({ session: record.session, events: [] })
    if (record.type === 'log' && record.part === 'root') file.session = record.session
    if (record.type === 'event') (file.parents.at(-1)?.events ?? file.events).push(record.event)
    if (record.type === 'blob') file.blobs[record.hash] = { media: record.media, data: record.data }
  }
  return file
}

export function forgeFile(records: Portable, change: (file: OpenedFile) => void): Portable {
  const file = openFile(records)
  change(file)
  const { session, events, parents, blobs } = file
  const logOf = (
    part: 'root' | 'origin',
    of: { session: string; events: readonly Event[] },
  ): readonly PortableRecord[] => [
    { type: 'log', session: of.session, part, events: 0, digest: '' },
    ...of.events.map((event): PortableRecord => ({ type: 'event', event })),
  ]
  return redigest([
    ...records.slice(0, 1),
    ...logOf('root', { session, events }),
    ...parents.flatMap((parent) => logOf('origin', parent)),
    ...Object.entries(blobs).map(([hash, blob]): PortableRecord => ({ type: 'blob', hash, ...blob })),
    { type: 'end', digest: '' },
  ])
}

/** The same records with the counts and digests that they should have. */
export function redigest(records: Portable): Portable {
  const counted = records.map((record, i) => {
    if (record.type !== 'log') return record
    const after = records.slice(i + 1)
    const end = after.findIndex(({ type }) => type !== 'event')
    const events = end < 0 ? after : after.slice(0, end)
    const digest = new LogDigest(record.session)
    for (const each of events) if (each.type === 'event') digest.add(JSON.stringify(each.event))
    return { ...record, events: events.length, digest: digest.end() }
  })
  const digest = new RowDigest()
  for (const record of counted) if (record.type !== 'header' && record.type !== 'end') digest.add(looseRow(record))
  return counted.map((record) => (record.type === 'end' ? { ...record, digest: digest.end() } : record))
}

/** The bytes of a blob may be forged, too. */
function looseRow(record: PortableRecord): ReturnType<typeof rowOf> {
  if (record.type !== 'blob') return rowOf(record)
  return { ...record, data: Buffer.from(record.data, 'base64') }
}
