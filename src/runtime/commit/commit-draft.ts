// One commit of an attempt: as a draft, and as the plan that is written. Data only: add-event.ts and plan-commit.ts
// fill it.
import type { OwnerEvent } from '../../kernel/event.ts'
import type { OpenSession } from '../../kernel/fold.ts'
import type { RunEnd, Shortfall } from '../../kernel/landing.ts'
import type { Here } from '../../kernel/limits.ts'
import type { Decision } from '../../kernel/next.ts'
import type { Run } from '../../kernel/session.ts'
import type { Blob, Charge, InboxWrite, OutgoingMessage, OwnerWrite, Write } from '../../ports/store.ts'
import type { SessionCache } from '../state/session-cache.ts'

/** Writes of a commit for other sessions. */
export type RelativeWrites = { readonly sends: OutgoingMessage[]; readonly births: (OwnerWrite | InboxWrite)[] }

/** A class, so that all drafts have one shape: two are made in every turn, and most have nothing beside events. */
export class CommitDraft {
  readonly id: string
  readonly session: OpenSession
  readonly here: Here
  /** This attempt has written nothing before. */
  readonly isFirst: boolean
  /** The state before its events: the last run that began, and the model call that was open. */
  readonly began: number
  readonly model: Run['model']
  readonly events: OwnerEvent[] = []
  blobs: Blob[] | null = null
  charges: readonly Charge[] | null = null
  relatives: RelativeWrites | null = null
  /** The run that this commit settles, by the seq of its start. */
  settled: number | null = null
  /** How that run ended, for its parent. */
  end: RunEnd | null = null
  makesRequest = false

  constructor({ id, session }: SessionCache, here: Here) {
    this.id = id
    this.session = session
    this.here = here
    this.isFirst = session.epoch < here.epoch
    this.began = session.began
    this.model = session.run?.model ?? null
  }

  addCharges(charges: readonly Charge[]): void {
    if (charges.length > 0) this.charges = this.charges ? [...this.charges, ...charges] : charges
  }

  addBlobs(blobs: readonly Blob[]): void {
    if (blobs.length > 0) this.blobs = this.blobs ? [...this.blobs, ...blobs] : [...blobs]
  }

  writesForRelatives(): RelativeWrites {
    this.relatives ??= { sends: [], births: [] }
    return this.relatives
  }
}

export type CommitPlan = {
  readonly events: readonly OwnerEvent[]
  readonly decision: Decision
  readonly landed: number
  readonly write: OwnerWrite
  /** The whole commit: the session itself, and the children it creates. */
  readonly writes: readonly Write[]
  /** Other sessions that must look after this commit. */
  readonly woken: readonly string[]
  /** The run that this commit settles, by the seq of its start; null if it settles none. */
  readonly settled: number | null
  readonly shortfall: Shortfall | null
  /** When it was planned, by this process's clock: the lease was ours at this time if the commit succeeds. */
  readonly at: number
}
