// What every view of one session is given: the same events, up to the same moment.
import type { Event, WireCard } from '../../server/wire.ts'
import type { Session } from '../../kernel/index.ts'

export type ViewProps = {
  readonly card: WireCard
  /** What is in memory, in order, up to the chosen moment. */
  readonly events: readonly Event[]
  /** The log begins before the first of them. */
  readonly cut: boolean
  /** What is shown is the present, and not an earlier moment. */
  readonly isNow: boolean
  /** The session at the chosen moment. `null` while it is read. */
  readonly state: Session | null
  /** The sessions below this one that wait for somebody now. */
  readonly waiting: readonly string[]
  /** The event whose details are shown. */
  readonly chosen: number | null
  readonly onChoose: (seq: number) => void
}
