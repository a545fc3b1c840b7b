// One commit of an attempt, drafted: what landed, what `next` records on top, and the card, charges and snapshot beside it.
// Nothing is written here; the driver (drive.ts) commits the draft or drops it.
import { cardOf } from '../kernel/card.ts'
import type { Mutable } from '../kernel/content.ts'
import type { OwnerBody, OwnerEvent } from '../kernel/event.ts'
import { assert, Fault } from '../kernel/failure.ts'
import { take } from '../kernel/fold.ts'
import { type Decision, next, settlement } from '../kernel/next.ts'
import type { Blob, Charge, Clock, OwnerWrite, Store } from '../kernel/ports.ts'
import { FOLD_VERSION } from '../kernel/session.ts'
import type { Book } from './book.ts'
import { chargesOf } from './charges.ts'
import type { FlightOptions, Flights } from './flight.ts'
import { charsOf } from './history.ts'
import type { Purse } from './purse.ts'
import type { Redactor } from './redact.ts'

export type Job = {
  readonly book: Book
  readonly epoch: number
  readonly store: Store
  readonly clock: Clock
  readonly flights: FlightOptions
  readonly purse: Purse
  readonly redactor: Redactor
  /** A commit succeeded that was begun at this time: the lease was ours then. */
  readonly renewed: (at: number) => void
  /** Stay for a wait as short as this instead of giving the session back. */
  readonly lingerMs: number
  /** How long to keep trying when the disk is full or the store is busy. */
  readonly patienceMs: number
}

/** The end of an attempt from outside: the lease is lost, or the process wants to stop. */
export type Leash = { pull: 'lost' | 'stopped' | null; ring: () => void }

const SNAPSHOT_EVERY = 1_000

export type Plan = {
  readonly events: readonly OwnerEvent[]
  readonly decision: Decision
  readonly landed: number
  readonly write: OwnerWrite
  readonly broke: boolean
  /** When it was drafted: the lease is ours at this time if the commit goes through. */
  readonly at: number
}

/** Takes the events into the book's session, in place: when the commit fails the book is opened anew. */
export function draft(job: Job, flights: Flights, leash: Leash, broke: boolean): Plan {
  const { book, epoch } = job
  const s = book.session
  if (s.epoch > epoch) throw new Fault('lease_lost', `Session ${book.id} is driven by a newer attempt.`)
  const here = { now: job.store.now(), epoch }
  const at = Math.max(s.at, here.now)
  const expectedSeq = s.seq
  const spending = { id: book.id, root: s.root ?? book.id, run: s.began, open: s.run?.model ?? null }
  const events: OwnerEvent[] = []
  const blobs: Blob[] = []
  const spent: Charge[] = []
  const add = (body: OwnerBody): void => {
    const clean = job.redactor.idle ? body : job.redactor.body(body)
    const held =
      body.type === 'model.started' ? job.purse.hold(() => charsAfter(book, events), body.boost === true) : null
    const event: OwnerEvent = { seq: s.seq + 1, at, epoch, ...clean }
    if (held !== null) Object.assign(event, { held })
    take(s, event)
    events.push(event)
  }
  const landed = flights.landed()
  for (const { effect, landing } of landed) {
    assert(landing, 'a flight landed without a landing')
    if (effect.type === 'prepare' && !wants(next(s, here), effect.key)) continue
    for (const body of landing.events) add(body)
    if (landing.blobs) blobs.push(...landing.blobs)
    if (landing.charges) spent.push(...landing.charges)
  }
  let decision = next(s, here)
  while (decision.type === 'record' && leash.pull === null) {
    const asks = broke && decision.events.some((body) => body.type === 'model.started')
    if (asks) add(settlement(s, { type: 'limit', limit: 'usd' }))
    else for (const body of decision.events) add(body)
    decision = next(s, here)
  }
  const over = leash.pull === 'stopped' && flights.size === landed.length
  const write: Mutable<OwnerWrite> = {
    session: book.id,
    lane: 'owner',
    epoch,
    expectedSeq,
    events,
    card: cardOf(book.id, s, decision),
  }
  const charges = chargesOf(spending, events, job.purse)
  if (charges.length + spent.length > 0) write.charges = [...charges, ...spent]
  if (blobs.length > 0) write.blobs = blobs
  if (over || (decision.type === 'rest' && leaves(job, decision))) write.release = true
  if (s.seq - book.snapshotSeq >= (write.release ? SNAPSHOT_EVERY / 10 : SNAPSHOT_EVERY)) {
    write.snapshot = { seq: s.seq, version: FOLD_VERSION, body: JSON.stringify(s) }
  }
  return { events, decision, landed: landed.length, write, broke, at: here.now }
}

/** What the request will carry, with what this very commit adds. */
function charsAfter(book: Book, events: readonly OwnerEvent[]): number {
  return events.reduce((sum, event) => sum + charsOf(event), book.chars)
}

/** A short wait for a provider is sat out; everything else gives the session back. */
export function leaves(job: Job, rest: Extract<Decision, { type: 'rest' }>): boolean {
  return rest.waiting !== 'retry' || rest.until === null || rest.until - job.store.now() > job.lingerMs
}

function wants(decision: Decision, key: string): boolean {
  return decision.type === 'perform' && decision.effects.some((effect) => effect.key === key)
}
