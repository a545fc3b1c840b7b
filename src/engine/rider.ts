// What may join a commit besides its events: guard, redaction, money and children, each a rider. An attempt freezes its list when it
// begins (riders/riders.ts), in the order in which they speak; a session that needs none has an empty list, and their code is not loaded.
import type { Outcome } from '../kernel/content.ts'
import type { OwnerBody, OwnerEvent } from '../kernel/event.ts'
import type { Decision } from '../kernel/next.ts'
import type { Commit, CommitPlan } from './commit.ts'

/** Something must be said before the next request, or the run must end instead. A note at a time: it is asked again after it. */
export type Word =
  | { readonly type: 'note'; readonly kind: 'limit' | 'nudge'; readonly text: string }
  | { readonly type: 'settle'; readonly outcome: Outcome }

export interface Rider {
  /** The event as the log will have it. */
  rewrite?(commit: Commit, body: OwnerBody): OwnerBody
  /** It is about to be folded: the session is as it was before. */
  before?(commit: Commit, body: OwnerBody): void
  /** It was folded. */
  after?(commit: Commit, event: OwnerEvent): void
  /** Asked right before a request is recorded, and before a run ends because it has no request left. Null: nothing to say. */
  beforeRequest?(commit: Commit): Word | null
  /** All events are in: what else is written in the same commit. */
  finish?(commit: Commit, decision: Decision): void
  /** Right before it is written: what must be read from the store first. */
  complete?(plan: CommitPlan): Promise<CommitPlan> | null
}
