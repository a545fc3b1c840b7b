// The props that all views of a session share: the same events, up to the same moment.
import type { Event, WireCard } from '../../server/wire.ts'
import type { Session } from '../../kernel/index.ts'

export type ViewProps = {
  readonly card: WireCard
  /** The events in memory up to the shown moment, in order. */
  readonly events: readonly Event[]
  /** The log has events before the first of these. */
  readonly cut: boolean
  /** The shown moment is the present. */
  readonly isNow: boolean
  /** The session at the shown moment. `null` while it is being read. */
  readonly state: Session | null
  /** The sessions below this one that wait for a person now. */
  readonly waiting: readonly string[]
  /** The event whose details are shown. */
  readonly chosen: number | null
  readonly onChoose: (seq: number) => void
}
