// The types of a session that was exported as one page: the answers of a server, stored in a file. Types only.
import type { Event, Frozen } from '../kernel/index.ts'
import type { Damaged, WireCard, WirePending } from './wire.ts'

/** `sessions` has the exported session, its descendants, and the sessions it was forked from, up to the fork. */
export type SessionFile = Frozen<{
  format: 'terret.page'
  version: 1
  /** The version of terret that exported it. */
  by: string
  made: number
  session: string
  sessions: Readonly<Record<string, FileSession>>
  blobs: Readonly<Record<string, Frozen<{ media: string; data: string }>>>
  /** The omitted parts, in sentences. */
  left: readonly string[]
}>

export type FileSession = Frozen<{
  card: WireCard
  events: readonly Event[]
  pending: readonly WirePending[]
  damaged?: Damaged
}>
