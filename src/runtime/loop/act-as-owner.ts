// Writing as a session's owner outside of any run: creating a session, and changing one while no worker drives it. The
// driver (drive.ts) writes what happens within a run.
import type { FlightContext } from '../state/effect.ts'
import type { Narrowing } from '../../kernel/content.ts'
import type { EventBody, InboxBody, OwnerBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Blob, Charge, OwnerWrite, Receipt, CompleteStore, Write } from '../../ports/store.ts'
import { EMPTY, type Session } from '../../kernel/session.ts'
import { withoutUndefined } from '../../options.ts'
import { retryWhileBusy } from '../state/store-retry.ts'
import { ownerWrite } from '../commit/owner-write.ts'
import { readSessionHead } from '../state/session-tree.ts'
import type { SessionOrigin } from '../state/session-origin.ts'
import { expireDeadWorkers, ownProcessId } from './dead-workers.ts'
import { ownProgramName } from '../state/program.ts'
import type { Restoration } from '../../stores/plan/plan-writes.ts'
import { sleep } from '../state/sleep.ts'
import type { Services } from '../state/runtime-ports.ts'
import { plannerName } from '../state/agent.ts'

/**
 * The changes to write as the owner, in one commit: events, money, messages to the session's own inbox, and writes to
 * other sessions, whose events are redacted already.
 */
export type OwnerChanges<T> = {
  readonly value: T
  readonly events: readonly OwnerBody[]
  readonly charges?: readonly Charge[]
  readonly sends?: readonly InboxBody[]
  readonly blobs?: readonly Blob[]
  readonly others?: readonly Write[]
}
type OwnerResult<T> = { readonly value: T; readonly sent: Receipt | null }

const LEASE_MS = 30_000
const TRIES_MAX = 40
const TRY_MS = 25

/**
 * Claims the session, reads it, acts, writes the changes and gives the session back. A message that arrives meanwhile
 * does no harm: `act` is called again.
 */
export async function actAsOwner<T>(
  services: Services,
  id: string,
  act: (session: Session, epoch: number) => Promise<OwnerChanges<T>>,
): Promise<OwnerResult<T>> {
  const { store, redactor } = services
  // A name for this one use: under the worker's own name it would take the session from the attempt that drives it.
  const name = `owner-${services.random.id()}`
  const epoch = await claimSession(services, id, name)
  const over = new AbortController()
  void keepLease(services, name, over.signal)
  try {
    for (;;) {
      const session = await readSessionHead(store, id)
      const { value, events, sends = [], charges = [], blobs = [], others = [] } = await act(session, epoch)
      if (events.length + sends.length + others.length === 0) return { value, sent: null }
      const clean = events.map((body) => redactor.body(body))
      const write = { ...ownerWrite(id, session, clean, { now: store.now(), epoch }), charges }
      const inbox = { session: id, lane: 'inbox', events: sends.map((body) => redactor.body(body)), blobs } as const
      const receipts = await commitUnlessGrown(services, write, sends.length > 0 ? inbox : null, others)
      if (!receipts) continue
      services.observer?.committed(id, session.agent, { began: session.began, ended: null }, write.events)
      return { value, sent: receipts[1] ?? null }
    }
  } finally {
    over.abort()
    // If the release fails, the lease ends by the clock, and the changes stay written.
    await retryWhileBusy(services.clock, () => store.release(id, epoch)).catch(() => {})
  }
}

/** `act` may take longer than one lease. */
async function keepLease({ store, clock }: Services, name: string, over: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(clock, LEASE_MS / 3, over)
    if (over.aborted) return
    await store.extend(name, LEASE_MS).catch(() => {})
  }
}

/** A worker that only looks, and finds nothing to do, gives the session back within a moment. */
async function claimSession(services: Services, id: string, name: string): Promise<number> {
  const { store, clock } = services
  for (let tries = 1; ; tries++) {
    const claim = await retryWhileBusy(clock, () => store.claim(id, name, LEASE_MS, ownProcessId(services)))
    if (claim) return claim.epoch
    if (tries === 1 && (await expireDeadWorkers(services)).ended > 0) continue
    const { run, inputs } = await readSessionHead(store, id)
    if (run !== null || inputs.length > 0 || tries === TRIES_MAX)
      throw new Fault('session_busy', `Session ${id} is being driven. Try again when it rests.`)
    await sleep(clock, TRY_MS)
  }
}

type InboxMessages = Extract<Write, { readonly lane: 'inbox' }>

/**
 * Null when the session has grown since it was read, or another session exists that was to be created; but not when it
 * grew by these same messages, because the first answer may have been lost.
 */
async function commitUnlessGrown(
  { store, clock }: Services,
  write: OwnerWrite,
  inbox: InboxMessages | null,
  others: readonly Write[],
): Promise<readonly Receipt[] | null> {
  return retryWhileBusy(clock, async (before) => {
    try {
      return await store.commit([write, ...(inbox ? [inbox] : []), ...others])
    } catch (error) {
      const code = error instanceof Fault ? error.code : ''
      if (code !== 'conflict' && !(code === 'session_exists' && others.length > 0)) throw error
      const [letter] = inbox?.events ?? []
      const seq = before && letter ? await store.sent(write.session, letter.id) : null
      return seq === null || !inbox ? null : [{ seqs: [], duplicate: true }, await duplicateReceipt(store, inbox)]
    }
  })
}

async function duplicateReceipt(store: CompleteStore, { session, events }: InboxMessages): Promise<Receipt> {
  const seqs = await Promise.all(events.map(async ({ id }) => (await store.sent(session, id)) ?? 0))
  return { seqs, duplicate: true }
}

/** How a session begins: its agent, its place, and the session it was forked from. */
export type SessionBeginning = SessionOrigin & {
  readonly agent: string
  readonly fork?: NonNullable<Extract<OwnerBody, { type: 'session.created' }>['fork']>
  readonly within?: Narrowing
  readonly blobs?: readonly Blob[]
  /** Further first events, after `session.created`. */
  readonly events?: readonly OwnerBody[]
  /** A conversation that took place elsewhere, and the hash of its messages: equal hashes are equal conversations. */
  readonly history?: readonly EventBody[]
  readonly messages?: string
}

/** The write that creates a session. */
export function newSessionWrite(
  services: Services,
  id: string,
  { blobs = [], events = [], history, folder, ...origin }: SessionBeginning,
): OwnerWrite | Restoration {
  const { store, redactor } = services
  const planner = plannerName(services, origin.agent)
  // A path with a redacted part leads nowhere, so it is left out.
  const place = folder === undefined || redactor.find(folder) !== null ? {} : { folder }
  const program = ownProgramName(services)
  const { environment, metadata, labels } = origin
  const said = withoutUndefined({ environment, metadata, labels, ...place, program }) as SessionOrigin
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

/** `stop` ends the flight. The first reason counts. */
export type StoppableFlight = FlightContext & { stop(why: 'timeout' | 'interrupted'): void }

/** The flight of a model request that the session's owner makes outside of a run. */
export function createStoppableFlight(): StoppableFlight {
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
