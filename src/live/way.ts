// How live deltas get from the process that drives a session to another one, as types. Two ways are there: sockets of one machine
// (socket.ts), and the post of a store that reaches further (post.ts). Nothing of it runs.
import type { Clock } from '../ports/system.ts'
import type { LocalLive } from './live.ts'

export interface Way {
  /** Lets others hear what this process says; null where that cannot be. Never rejects. */
  open(local: LocalLive, clock: Clock): Promise<Door | null>
  /** Follows a session at an address: asks for it, then reads. Returns its end; null if the address is of another way. */
  follow(address: string, session: string, ends: Ends): (() => void) | null
  close(): void
}

export type Door = {
  readonly address: string
  /** A call of this session is over. */
  settle(session: string): void
  close(): Promise<void>
}

export type Ends = {
  /** One delta, as it came: nothing of it is checked. After a gap the way starts anew, with a catch-up. */
  readonly read: (delta: unknown) => Heard
  readonly ended: () => void
}

export type Heard = 'new' | 'known' | 'gap' | 'nonsense'
