// The format of exported and archived sessions. Types only: stream-file.ts writes and reads such files.
import type { Hash } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { LogRow, MoveAccountRow, TroubleRow } from '../stores/move/move-rows.ts'

/**
 * The records of a file in order: a header, the rows of a stream (move-rows.ts), and their digest. As text it is a JSON
 * list with one record on each line.
 */
export type Portable = readonly PortableRecord[]
/** One line of an exported file. */
export type PortableRecord =
  | PortableHeader
  | LogRow
  | { readonly type: 'event'; readonly event: Event }
  | TroubleRow
  | MoveAccountRow
  /** `data` is in base64. */
  | { readonly type: 'blob'; readonly hash: Hash; readonly media: string; readonly data: string }
  /** The SHA-256 of all records between header and end. It finds damage and edits; it is no signature. */
  | { readonly type: 'end'; readonly digest: Hash }

/** `session`: one session without its folder, for any store. `tree`: a root with its children, for the store it left. */
export type PortableHeader = {
  readonly type: 'header'
  readonly format: 'terret.stream'
  readonly version: 1
  readonly holds: 'session' | 'tree'
}
