// What a commit must know of the present, named before anything is read: for stores that cannot be asked while the plan is made.
// Pure. What is named is fetched into a Fetched, and planned on; it decides nothing itself, and reads nothing.
import type { Event } from '../../kernel/event.ts'
import { Bug } from '../../kernel/failure.ts'
import type { AccountRow, Charge, Write } from '../../ports/store.ts'
import type { Hold } from './charges.ts'
import type { Head, View } from './plan.ts'

export type Needs = {
  readonly sessions: Set<string>
  /** Ids of inbox events, by session. */
  readonly letters: Map<string, Set<string>>
  readonly accounts: Set<string>
  /** Keys of holds. With a hold come the accounts that it names. */
  readonly holds: Set<string>
  /** Sessions whose open holds are all wanted. */
  readonly lost: Set<string>
  /** Ids of sessions that may be created: whether sessions that had them were removed. */
  readonly fresh: Set<string>
  /** Events to compare with, as they are stored, as far as the log goes on there: of writes that may have been made already. */
  readonly bodies: Span[]
}
export type Span = { readonly session: string; readonly after: number; readonly count: number }

export function noNeeds(): Needs {
  const [sessions, accounts, holds] = [new Set<string>(), new Set<string>(), new Set<string>()]
  return { sessions, letters: new Map(), accounts, holds, lost: new Set(), fresh: new Set(), bodies: [] }
}

/** Adds to `needs`, so that those of many commits can be fetched at once. */
export function needsOf(writes: readonly Write[], needs: Needs = noNeeds()): Needs {
  for (const write of writes) {
    const { session } = write
    needs.sessions.add(session)
    for (const charge of write.charges ?? []) needCharge(needs, session, charge)
    if (write.lane === 'inbox') {
      for (const { id } of write.events) needLetter(needs, session, id)
      continue
    }
    for (const send of write.sends ?? []) {
      needs.sessions.add(send.session)
      needLetter(needs, send.session, send.event.id)
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

function needLetter({ letters }: Needs, session: string, id: string): void {
  const ids = letters.get(session) ?? new Set()
  letters.set(session, ids.add(id))
}

function needCharge(needs: Needs, session: string, charge: Charge): void {
  if (charge.type === 'lost') needs.lost.add(session)
  else if (charge.type !== 'limit') needs.holds.add(charge.key)
  if (charge.type === 'hold') for (const id of charge.accounts) needs.accounts.add(id)
  if (charge.type !== 'limit') return
  needs.accounts.add(charge.account)
  if (charge.raisedBy !== undefined) needs.accounts.add(charge.raisedBy)
}

type Letter = { readonly seq: number; readonly body: string }

/** The present, as far as it was fetched. What was not named is not guessed: asking for it is a Bug. */
export class Fetched<Row extends Head = Head> implements View {
  now: number
  readonly heads = new Map<string, Row | null>()
  readonly letters = new Map<string, Map<string, Letter | null>>()
  readonly accounts = new Map<string, AccountRow | null>()
  readonly holds = new Map<string, Hold | null>()
  /** Of which sessions all open holds are among `holds`. */
  readonly lost = new Set<string>()
  readonly ends = new Map<string, number | null>()
  /** What is stored after a place, by session and place. */
  readonly stored = new Map<string, Map<number, readonly string[]>>()

  constructor(now: number) {
    this.now = now
  }

  head(session: string): Row | null {
    return named(this.heads.get(session), 'session', session)
  }

  admitted(session: string, id: string): Letter | null {
    return named(this.letters.get(session)?.get(id), 'letter', `${id} of ${session}`)
  }

  ended(session: string): number | null {
    return named(this.ends.get(session), 'new id', session)
  }

  account(id: string): AccountRow | null {
    return named(this.accounts.get(id), 'account', id)
  }

  hold(key: string): Hold | null {
    return named(this.holds.get(key), 'hold', key)
  }

  holdsOf(session: string): ReadonlyMap<string, Hold> {
    if (!this.lost.has(session)) throw unnamed('holds of session', session)
    const found = new Map<string, Hold>()
    for (const [key, hold] of this.holds) if (hold?.session === session) found.set(key, hold)
    return found
  }

  bodies(session: string, after: number, count: number): readonly string[] {
    const found = this.stored.get(session)?.get(after)
    return named(found, 'log of session', `${session} after ${after}`).slice(0, count)
  }
}

function named<T>(found: T | undefined, kind: string, name: string): T {
  if (found === undefined) throw unnamed(kind, name)
  return found
}

function unnamed(kind: string, name: string): Bug {
  return new Bug(`the plan asks for the ${kind} ${name}, which its needs do not name`)
}
