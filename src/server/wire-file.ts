// What stands inside a session that was exported as one page: the same answers as a server's, kept. Types only.
import type { Event, Frozen } from '../kernel/index.ts'
import type { Damaged, WireCard, WirePending } from './wire.ts'

/** `sessions` are the one that was exported, those below it, and those it was forked from, up to where it left them. */
export type SessionFile = Frozen<{
  format: 'terret.page'
  version: 1
  /** Of terret. */
  by: string
  made: number
  session: string
  sessions: Readonly<Record<string, FileSession>>
  blobs: Readonly<Record<string, Frozen<{ media: string; data: string }>>>
  /** What is not in it, in sentences. */
  left: readonly string[]
}>

export type FileSession = Frozen<{
  card: WireCard
  events: readonly Event[]
  pending: readonly WirePending[]
  damaged?: Damaged
}>
