// The rows that planning a commit needs, listed before anything is read: for stores that cannot be queried while the
// plan is made. Pure. The listed rows are fetched into a FetchedView, and the plan is made on that. It decides nothing
// and reads nothing.
import type { Event } from '../../kernel/event.ts'
import { Bug } from '../../kernel/failure.ts'
import type { AccountRow, Charge, Write } from '../../ports/store.ts'
import type { Hold } from './plan-charges.ts'
import type { SessionRecord, StoreView } from './plan-writes.ts'

export type PlanNeeds = {
  readonly sessions: Set<string>
  /** Ids of inbox events, by session. */
  readonly letters: Map<string, Set<string>>
  readonly accounts: Set<string>
  /** Keys of holds. With a hold come its accounts. */
  readonly holds: Set<string>
  /** Sessions of which all open holds are needed. */
  readonly lost: Set<string>
  /** Ids of sessions that may be created: needed to know whether removed sessions had them. */
  readonly fresh: Set<string>
  /** Stored events to compare with writes that may have been made already, if the log goes on there. */
  readonly bodies: EventRange[]
}
export type EventRange = { readonly session: string; readonly after: number; readonly count: number }

export function emptyNeeds(): PlanNeeds {
  const [sessions, accounts, holds] = [new Set<string>(), new Set<string>(), new Set<string>()]
  return { sessions, letters: new Map(), accounts, holds, lost: new Set(), fresh: new Set(), bodies: [] }
}

/** Adds to `needs`, so that the rows for many commits can be fetched at once. */
export function needsOf(writes: readonly Write[], needs: PlanNeeds = emptyNeeds()): PlanNeeds {
  for (const write of writes) {
    const { session } = write
    needs.sessions.add(session)
    for (const charge of write.charges ?? []) needCharge(needs, session, charge)
    if (write.lane === 'inbox') {
      for (const { id } of write.events) needInboxEntry(needs, session, id)
      continue
    }
    for (const send of write.sends ?? []) {
      needs.sessions.add(send.session)
      needInboxEntry(needs, send.session, send.event.id)
    }
    const { epoch, expectedSeq, events } = write
    if (epoch === 0 && expectedSeq === 0) needs.fresh.add(session)
    if (events.length > 0) needs.bodies.push({ session, after: expectedSeq, count: events.length })
    const history = 'history' in write ? (write.history as readonly Event[]) : []
    for (const first of [history[0], events[0]])
      if (first?.type === 'session.created' && first.fork) needs.sessions.add(first.fork.session)
  }
  return needs
}

function needInboxEntry({ letters }: PlanNeeds, session: string, id: string): void {
  const ids = letters.get(session) ?? new Set()
  letters.set(session, ids.add(id))
}

function needCharge(needs: PlanNeeds, session: string, charge: Charge): void {
  if (charge.type === 'lost') needs.lost.add(session)
  else if (charge.type !== 'limit') needs.holds.add(charge.key)
  if (charge.type === 'hold') for (const id of charge.accounts) needs.accounts.add(id)
  if (charge.type !== 'limit') return
  needs.accounts.add(charge.account)
  if (charge.raisedBy !== undefined) needs.accounts.add(charge.raisedBy)
}

type InboxEntry = { readonly seq: number; readonly body: string }

/** The fetched part of the present state. Asking for a row that was not listed is a Bug. */
export class FetchedView<Row extends SessionRecord = SessionRecord> implements StoreView {
  now: number
  readonly heads = new Map<string, Row | null>()
  readonly letters = new Map<string, Map<string, InboxEntry | null>>()
  readonly accounts = new Map<string, AccountRow | null>()
  readonly holds = new Map<string, Hold | null>()
  /** The sessions of which `holds` has all open holds. */
  readonly lost = new Set<string>()
  readonly ends = new Map<string, number | null>()
  /** The stored bodies after a position, by session and position. */
  readonly stored = new Map<string, Map<number, readonly string[]>>()

  constructor(now: number) {
    this.now = now
  }

  head(session: string): Row | null {
    return requireFetched(this.heads.get(session), 'session', session)
  }

  admitted(session: string, id: string): InboxEntry | null {
    return requireFetched(this.letters.get(session)?.get(id), 'letter', `${id} of ${session}`)
  }

  ended(session: string): number | null {
    return requireFetched(this.ends.get(session), 'new id', session)
  }

  account(id: string): AccountRow | null {
    return requireFetched(this.accounts.get(id), 'account', id)
  }

  hold(key: string): Hold | null {
    return requireFetched(this.holds.get(key), 'hold', key)
  }

  holdsOf(session: string): ReadonlyMap<string, Hold> {
    if (!this.lost.has(session)) throw notFetchedBug('holds of session', session)
    const found = new Map<string, Hold>()
    for (const [key, hold] of this.holds) if (hold?.session === session) found.set(key, hold)
    return found
  }

  bodies(session: string, after: number, count: number): readonly string[] {
    const found = this.stored.get(session)?.get(after)
    return requireFetched(found, 'log of session', `${session} after ${after}`).slice(0, count)
  }
}

function requireFetched<T>(found: T | undefined, kind: string, name: string): T {
  if (found === undefined) throw notFetchedBug(kind, name)
  return found
}

function notFetchedBug(kind: string, name: string): Bug {
  return new Bug(`the plan asks for the ${kind} ${name}, which its needs do not name`)
}
