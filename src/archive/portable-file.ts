// An exported session as it stands in a file. Types only: how it is made and read is portable.ts.
import type { Hash, Name } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'

/** A session in a file: its log, what the log refers to, and the logs it reads through. Plain JSON. */
export type Portable = {
  readonly format: 'terret.session'
  readonly version: 1
  readonly session: Name
  readonly events: readonly Event[]
  /** By hash, in base64. */
  readonly blobs: Readonly<Record<Hash, PortableBlob>>
  /** For a fork: the log it came from up to that event, then that one's, and so on. */
  readonly parents?: readonly PortableLog[]
  /** Of all the rest. It finds damage and edits; it is no signature. */
  readonly checksum: Hash
}
export type PortableBlob = { readonly media: string; readonly data: string }
export type PortableLog = { readonly session: Name; readonly events: readonly Event[] }
