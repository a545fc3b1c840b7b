// Money beside the events: the holds that a commit opens and closes. A call that was lost or stopped is settled at its
// full hold, and marked assumed.
import { eventId } from '../../view/shown-text.ts'
import { writerTime } from '../../kernel/clock.ts'
import type { OwnerBody, OwnerEvent } from '../../kernel/event.ts'
import { givesUpCall, openCall } from '../../kernel/landing.ts'
import type { Charge } from '../../ports/store.ts'
import type { Run } from '../../kernel/session.ts'
import type { CommitDraft } from './commit-draft.ts'
import type { SessionCache } from '../state/session-cache.ts'
import { charsOf } from '../../view/session-history.ts'
import type { SpendingLimits } from '../money/spending-limits.ts'
import type { CallSpending } from '../money/usage-estimate.ts'
import { chargeForHold, callHoldPrefix } from '../money/holds.ts'

type RequestBody = Extract<OwnerBody, { type: 'model.started' }>

/** Money in the commits of a session that may spend some. Loaded by the first such session. */
export class MoneyPart {
  readonly #cache: SessionCache
  readonly #spending: SpendingLimits

  constructor(cache: SessionCache, spending: SpendingLimits) {
    this.#cache = cache
    this.#spending = spending
  }

  /** A request holds its highest possible cost before it is made. */
  holdForRequest({ events }: CommitDraft, body: RequestBody): RequestBody {
    const held = this.#spending.hold(() => requestCharsAfter(this.#cache, events), body.boost === true)
    return held === null ? body : { ...body, held }
  }

  /** Settles the holds of lost calls at their full amount, because their real cost is unknown. */
  chargeLostHolds(draft: CommitDraft, body: OwnerBody): void {
    const { id } = draft
    const call = givesUpCall(body, draft.isFirst) ? openCall(draft.session, body.call) : undefined
    if (call?.state.type === 'running') draft.addCharges([{ type: 'lost', key: callHoldPrefix(id, call.key) }])
    // A summary that this request needed may have held money. Its process is gone, or has settled it.
    const { model } = draft.session.run ?? {}
    // A compaction by hand may have held money too. Its process is gone: if it were at work, no run could begin.
    if (body.type === 'run.started') draft.addCharges([{ type: 'lost', key: summaryHoldPrefix(id, 0) }])
    if (body.type === 'model.failed' && model)
      draft.addCharges([{ type: 'lost', key: summaryHoldPrefix(id, model.seq) }])
  }

  /**
   * Called when all events are in: the holds that they open and close come before the spending of the effects
   * themselves.
   */
  chargeCommit(draft: CommitDraft): void {
    const { id, session, began: run, model: open, events, charges } = draft
    const spender = { id, root: session.parent?.root ?? id, run, open }
    const own = buildCharges(spender, events, this.#spending)
    if (own.length > 0) draft.charges = charges ? [...own, ...charges] : own
  }
}

/** How many characters the request will carry, with those that this same commit adds. */
function requestCharsAfter(cache: SessionCache, events: readonly OwnerEvent[]): number {
  return events.reduce((sum, event) => {
    return event.type === 'context.compacted' ? shrinkChars(event, sum) : sum + charsOf(event)
  }, cache.chars)
}

/**
 * A compaction reports tokens, and only the provider knows how many characters a token has. So only the proportion is
 * used.
 */
function shrinkChars(
  { before = 0, after = before }: Extract<OwnerEvent, { type: 'context.compacted' }>,
  chars: number,
) {
  return before > after ? Math.ceil((chars * after) / before) : chars
}

/** The same for the summary that a request needs first. No call has such a key: this seq is that of a request. */
function summaryHoldPrefix(session: string, seq: number): string {
  return callHoldPrefix(session, `${seq}.0`)
}

type Spender = {
  readonly id: string
  readonly root: string
  /** The last run that began before these events, and the model call that was open. */
  readonly run: number
  readonly open: Run['model']
}

export function buildCharges(
  { id, root, run, open: before }: Spender,
  events: readonly OwnerEvent[],
  spending: SpendingLimits,
): readonly Charge[] {
  const charges: Charge[] = []
  let open = before
  let payer = { session: id, root, run, at: 0 }
  for (const event of events) {
    payer = { ...payer, at: writerTime(event) }
    if (event.type === 'run.started') {
      const before = payer.run
      payer = { ...payer, run: event.seq }
      charges.push(...spending.runLimit(payer, before))
    } else if (event.type === 'run.reviewed') {
      charges.push(...spending.runLimit(payer, payer.run))
    } else if (event.type === 'model.started') {
      open = { seq: event.seq, epoch: event.epoch, at: writerTime(event), held: event.held ?? 0 }
      if (event.held === undefined) continue
      const hold = {
        type: 'hold',
        key: eventId(id, event.seq),
        accounts: spending.accounts(payer),
        amount: event.held,
      } as const
      charges.push(...spending.limits(payer), hold)
    } else if (event.type === 'agent.message' || event.type === 'model.failed') {
      if (open && (spending.bounded || open.held > 0)) {
        charges.push(chargeForHold(eventId(id, open.seq), open.held, eventSpending(event)))
      }
      open = null
    }
  }
  return charges
}

/** A failure that reports no cost happened before the provider did anything. */
function eventSpending(event: Extract<OwnerEvent, { type: 'agent.message' | 'model.failed' }>): CallSpending | null {
  const failed = event.type === 'model.failed' && event.class !== 'lost'
  return failed && !event.assumed && event.cost === undefined ? null : event
}
