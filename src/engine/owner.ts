// Writing as a session's owner outside of any run: what creates it, and what is done to it while no worker drives it.
// What happens within a run is the driver's (drive.ts).
import type { FlightContext } from './flights.ts'
import type { Within } from '../kernel/content.ts'
import type { EventBody, InboxBody, OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob, Charge, OwnerWrite, Receipt, Store, Write } from '../ports/store.ts'
import { EMPTY, type Session } from '../kernel/session.ts'
import { given } from '../options.ts'
import { again } from './again.ts'
import { ownerWrite } from './card.ts'
import { headOf } from '../riders/children/tree.ts'
import type { Origin } from '../sessions/origin.ts'
import { endDead, selfOf } from './peers.ts'
import { nameOf } from './program.ts'
import type { Restoration } from '../stores/plan/plan.ts'
import { sleep } from './sleep.ts'
import { plannerName, type Services } from './wiring.ts'

/** What is done as the owner: events, money, and what goes to the session's own inbox, in one commit. */
export type Owned<T> = {
  readonly value: T
  readonly events: readonly OwnerBody[]
  readonly charges?: readonly Charge[]
  readonly sends?: readonly InboxBody[]
  readonly blobs?: readonly Blob[]
}
type Done<T> = { readonly value: T; readonly sent: Receipt | null }

const LEASE_MS = 30_000
const TRIES_MAX = 40
const TRY_MS = 25

/**
 * Claims the session, looks at it, acts, writes it down and gives the session back. A message sent meanwhile is not in the way: then
 * `act` is asked again.
 */
export async function asOwner<T>(
  services: Services,
  id: string,
  act: (session: Session, epoch: number) => Promise<Owned<T>>,
): Promise<Done<T>> {
  const { store, redactor } = services
  // A name for this once: by its worker's name it would take the session from what that worker drives.
  const name = `owner-${services.random.id()}`
  const epoch = await claimed(services, id, name)
  const over = new AbortController()
  void stay(services, name, over.signal)
  try {
    for (;;) {
      const session = await headOf(store, id)
      const { value, events, sends = [], charges = [], blobs = [] } = await act(session, epoch)
      if (events.length + sends.length === 0) return { value, sent: null }
      const clean = events.map((body) => redactor.body(body))
      const write = { ...ownerWrite(id, session, clean, { now: store.now(), epoch }), charges }
      const inbox = { session: id, lane: 'inbox', events: sends.map((body) => redactor.body(body)), blobs } as const
      const receipts = await committed(services, write, sends.length > 0 ? inbox : null)
      if (receipts) return { value, sent: receipts[1] ?? null }
    }
  } finally {
    over.abort()
    // If that cannot be said the lease ends by the clock: what was done is done.
    await again(services.clock, () => store.release(id, epoch)).catch(() => {})
  }
}

/** What is done may take longer than one lease. */
async function stay({ store, clock }: Services, name: string, over: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(clock, LEASE_MS / 3, over)
    if (over.aborted) return
    await store.extend(name, LEASE_MS).catch(() => {})
  }
}

/** A worker that only looks, and finds nothing to do, is gone in a moment. */
async function claimed(services: Services, id: string, name: string): Promise<number> {
  const { store, clock } = services
  for (let tries = 1; ; tries++) {
    const claim = await again(clock, () => store.claim(id, name, LEASE_MS, selfOf(services)))
    if (claim) return claim.epoch
    if (tries === 1 && (await endDead(services)).ended > 0) continue
    const { run, inputs } = await headOf(store, id)
    if (run !== null || inputs.length > 0 || tries === TRIES_MAX)
      throw new Fault('session_busy', `Session ${id} is being driven. Try again when it rests.`)
    await sleep(clock, TRY_MS)
  }
}

type Letters = Extract<Write, { readonly lane: 'inbox' }>

/** Null when the session has grown since it was looked at: not by these very letters, whose first answer may have been lost. */
async function committed(
  { store, clock }: Services,
  write: OwnerWrite,
  inbox: Letters | null,
): Promise<readonly Receipt[] | null> {
  return again(clock, async (before) => {
    try {
      return await store.commit(inbox ? [write, inbox] : [write])
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'conflict') throw error
      const [letter] = inbox?.events ?? []
      const seq = before && letter ? await store.sent(write.session, letter.id) : null
      return seq === null || !inbox ? null : [{ seqs: [], duplicate: true }, await sentAt(store, inbox)]
    }
  })
}

async function sentAt(store: Store, { session, events }: Letters): Promise<Receipt> {
  const seqs = await Promise.all(events.map(async ({ id }) => (await store.sent(session, id)) ?? 0))
  return { seqs, duplicate: true }
}

/** How a session begins: whose it is, where, and what it was forked from. */
export type Beginning = Origin & {
  readonly agent: string
  readonly fork?: NonNullable<Extract<OwnerBody, { type: 'session.created' }>['fork']>
  readonly within?: Within
  readonly blobs?: readonly Blob[]
  /** What it begins with, after `session.created`. */
  readonly events?: readonly OwnerBody[]
  /** A conversation that took place elsewhere, and the hash of what it was made of: equal hashes are equal conversations. */
  readonly history?: readonly EventBody[]
  readonly messages?: string
}

/** The write that makes a session. */
export function creation(
  services: Services,
  id: string,
  { blobs = [], events = [], history, folder, ...origin }: Beginning,
): OwnerWrite | Restoration {
  const { store, redactor } = services
  const planner = plannerName(services, origin.agent)
  // With a hole in it a path leads nowhere.
  const place = folder === undefined || redactor.find(folder) !== null ? {} : { folder }
  const program = nameOf(services)
  const { environment, metadata, labels } = origin
  const said = given({ environment, metadata, labels, ...place, program }) as Origin
  const bodies: readonly EventBody[] = [
    { type: 'session.created', planner, ...origin, ...place, program },
    ...events,
    ...(history ?? []),
    ...(history ? [{ type: 'session.imported', from: 'messages', ...said } as const] : []),
  ]
  const clean = bodies.map((body) => redactor.body(body))
  const write = ownerWrite(id, EMPTY, clean, { now: store.now(), epoch: 0 })
  return history ? { ...write, events: [], history: write.events, blobs } : { ...write, blobs }
}

/** `stop` ends it. The first reason counts. */
export type Stoppable = FlightContext & { stop(why: 'timeout' | 'interrupted'): void }

/** The flight of what its owner asks a model outside of a run. */
export function stoppable(): Stoppable {
  const controller = new AbortController()
  let reason: FlightContext['reason'] = null
  return {
    signal: controller.signal,
    get reason() {
      return reason
    },
    clear: () => reason === null,
    stop(why) {
      reason ??= why
      controller.abort(new Error(reason))
    },
  }
}
