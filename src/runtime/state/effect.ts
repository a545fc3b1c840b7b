// Types about performing an effect: what it may know, and the landing it returns. flights.ts starts effects and awaits
// them.

import type { OwnerBody } from '../../kernel/event.ts'
import type { StopReason } from '../../kernel/limits.ts'
import type { Effect } from '../../kernel/next.ts'
import type { Blob, Charge } from '../../ports/store.ts'

export type Landing = {
  readonly events: readonly OwnerBody[]
  readonly blobs?: readonly Blob[]
  readonly charges?: readonly Charge[]
  /** A cheaper landing, when the charges of this one are over a limit; null if its charges were not the reason. */
  readonly recount?: () => Promise<Landing | null>
}
export type AbortReason = StopReason | 'timeout' | 'unwanted' | 'lost'
/** The flight, as its effect sees it. The signal is created on first use: most effects never use it. */
export interface FlightContext {
  readonly signal: AbortSignal
  readonly reason: AbortReason | null
  /**
   * Asked right before the outside world is touched: true if the flight is not aborted and the lease is certainly ours.
   */
  clear(): boolean
}
/** Performs one effect. Trouble in the outside world is part of the landing; `fail` lands whatever it throws. */
export type PerformEffect = (effect: Effect, context: FlightContext) => Promise<Landing>
export type FailEffect = (effect: Effect, error: unknown) => Landing

/** An effect that has landed; `landing` is null while it is still in flight. */
export type LandedFlight = { readonly effect: Effect; readonly landing: Landing | null }

/** The view that a commit has of the flights of its attempt. */
export interface LandingQueue {
  /** How many are in flight, or landed and not yet written. */
  readonly size: number
  /** In the order in which they landed. They are kept until `dropWritten`. */
  readonly landed: readonly LandedFlight[]
  /** Whether any of them lands as less, after a commit was refused as over budget. */
  recountLandings(): Promise<boolean>
  dropWritten(count: number): void
}

/** Ends an attempt from outside: the lease is lost, or the process wants to stop. `ring` makes the attempt look. */
export type StopSignal = { reason: 'lost' | 'stopped' | null; ring: () => void }
