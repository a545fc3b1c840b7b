// How live deltas travel from the process that drives a session to another one, as types. There are two transports:
// sockets on one machine (socket-transport.ts), and the DeltaChannel of a store that reaches further
// (channel-transport.ts). Types only.
import type { Clock } from '../ports/system.ts'
import type { LocalLive } from './local-live.ts'

export interface DeltaTransport {
  /** Lets other processes receive this process's deltas; null where that is impossible. Never rejects. */
  open(local: LocalLive, clock: Clock): Promise<DeltaEndpoint | null>
  /**
   * Follows a session at an address: asks for it, then reads. Returns a function that ends it; null if the address is
   * of another transport.
   */
  follow(address: string, session: string, ends: DeltaHandlers): (() => void) | null
  close(): void
}

export type DeltaEndpoint = {
  readonly address: string
  /** A call of this session is over. */
  settle(session: string): void
  close(): Promise<void>
}

export type DeltaHandlers = {
  /** One delta as it arrived, unchecked. After a gap the transport starts again with a catch-up. */
  readonly read: (delta: unknown) => DeltaReception
  readonly ended: () => void
}

export type DeltaReception = 'new' | 'known' | 'gap' | 'nonsense'
