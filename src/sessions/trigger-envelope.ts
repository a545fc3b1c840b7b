// An event from outside, as `harness.trigger` takes it, and its receipt. Types only; src/triggers takes it in.
import type { Json } from '../kernel/content.ts'

/** One delivery of an event from outside. */
export type TriggerEnvelope = {
  /** The name of the source, as in the configuration. */
  readonly source: string
  /** The kind of the event, such as `issues.opened`: one line of at most 200 characters. */
  readonly label: string
  /** What came. A text is taken as it is, anything else as JSON. */
  readonly payload: Json
  /** When it arrived, in ms. Default: now. */
  readonly receivedAt?: number
  /** The sender's id of the event. Deliveries with one key are one trigger. Without a key every delivery is new. */
  readonly dedupeKey?: string
}

/** The delivery is on disk. */
export type TriggerReceipt = {
  /** The session that handles the trigger. */
  readonly sessionId: string
  /** The delivery was there before, so nothing new happens. */
  readonly duplicate: boolean
  /** Its source is over a cap: the trigger is handled at this time, in ms since 1970. */
  readonly notBefore?: number
}
