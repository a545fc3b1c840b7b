// Money beside the events: which holds a commit opens and closes. A call that was lost or stopped is settled at its full hold, and
// marked assumed.
import { eventId } from '../../view/text.ts'
import { clockOf } from '../../kernel/clock.ts'
import type { CallKey } from '../../kernel/content.ts'
import type { OwnerEvent } from '../../kernel/event.ts'
import type { Fault } from '../../kernel/failure.ts'
import type { Charge } from '../../ports/store.ts'
import type { Run } from '../../kernel/session.ts'
import { type Broke, isGivenUp, openCall, type Rider } from '../../engine/commit.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { charsOf } from '../../view/history.ts'
import { emptyAccount, shortageOf, type SpendingLimits } from './spending-limits.ts'
import type { Spent } from './usage-estimate.ts'

/** Joins the commits of a session that may spend money: what a request holds, and what becomes of what was held. */
export function moneyRider(cache: SessionCache, spending: SpendingLimits): Rider {
  const { id } = cache
  return {
    rewrite({ events }, body) {
      if (body.type !== 'model.started') return body
      const held = spending.hold(() => charsAfter(cache, events), body.boost === true)
      return held === null ? body : { ...body, held }
    },
    before(commit, body) {
      const call = isGivenUp(body, commit.first) ? openCall(commit.session, body.call) : undefined
      if (call?.state.type === 'running') commit.charge([{ type: 'lost', key: holdsUnder(id, call.key) }])
      // What a summary for this request held, if it did: whoever asked for it is gone, or has settled it.
      const { model } = commit.session.run ?? {}
      // And what a compaction by hand held whose process is gone: it cannot be at work, or no run could begin.
      if (body.type === 'run.started') commit.charge([{ type: 'lost', key: summaryHolds(id, 0) }])
      if (body.type === 'model.failed' && model) commit.charge([{ type: 'lost', key: summaryHolds(id, model.seq) }])
    },
    finish(commit) {
      const { session, began: run, model: open, events, charges } = commit
      const spender = { id, root: session.parent?.root ?? id, run, open }
      const own = chargesOf(spender, events, spending)
      if (own.length > 0) commit.charges = charges ? [...own, ...charges] : own
    },
  }
}

/** What the request will carry, with what this very commit adds. */
function charsAfter(cache: SessionCache, events: readonly OwnerEvent[]): number {
  return events.reduce((sum, event) => {
    return event.type === 'context.compacted' ? shrunkBy(event, sum) : sum + charsOf(event)
  }, cache.chars)
}

/** A compaction tells tokens, and how many characters a token has is the provider's: only the proportion is known. */
function shrunkBy({ before = 0, after = before }: Extract<OwnerEvent, { type: 'context.compacted' }>, chars: number) {
  return before > after ? Math.ceil((chars * after) / before) : chars
}

/** Why a request did not fit, as the store says when it refuses a commit. */
export function brokeBy(error: Fault): Broke {
  const account = emptyAccount(error)
  const short = shortageOf(error)
  return { ...(account === undefined ? {} : { account }), ...(short === undefined ? {} : { short }) }
}

/** How the keys of all holds begin that requests of this call opened. */
export function holdsUnder(session: string, call: CallKey): string {
  return `${session}:${call}/`
}

/** The same for the summary that a request needs first. No call has such a key: this seq is that of a request. */
function summaryHolds(session: string, seq: number): string {
  return holdsUnder(session, `${seq}.0`)
}

type Spending = {
  readonly id: string
  readonly root: string
  /** The last run that began before these events, and the model call that was open. */
  readonly run: number
  readonly open: Run['model']
}

export function chargesOf(
  { id, root, run, open: before }: Spending,
  events: readonly OwnerEvent[],
  spending: SpendingLimits,
): readonly Charge[] {
  const charges: Charge[] = []
  let open = before
  let payer = { session: id, root, run, at: 0 }
  for (const event of events) {
    payer = { ...payer, at: clockOf(event) }
    if (event.type === 'run.started') {
      const before = payer.run
      payer = { ...payer, run: event.seq }
      charges.push(...spending.runLimit(payer, before))
    } else if (event.type === 'run.reviewed') {
      charges.push(...spending.runLimit(payer, payer.run))
    } else if (event.type === 'model.started') {
      open = { seq: event.seq, epoch: event.epoch, at: clockOf(event), held: event.held ?? 0 }
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
        charges.push(closing(eventId(id, open.seq), open.held, spentBy(event)))
      }
      open = null
    }
  }
  return charges
}

/** What becomes of a hold. Null: the provider did nothing for it. Usage that was not reported counts as what was held. */
export function closing(key: string, held: number, spent: Pick<Spent, 'cost' | 'assumed'> | null): Charge {
  if (spent === null) return { type: 'free', key }
  if (spent.cost !== undefined && !spent.assumed) return { type: 'settle', key, amount: spent.cost }
  return { type: 'settle', key, amount: held, assumed: true }
}

/** A failure that is not said to have cost anything came before the provider did anything. */
function spentBy(event: Extract<OwnerEvent, { type: 'agent.message' | 'model.failed' }>): Spent | null {
  const failed = event.type === 'model.failed' && event.class !== 'lost'
  return failed && !event.assumed && event.cost === undefined ? null : event
}
