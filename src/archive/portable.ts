// One session as a file: exported from one store, checked, and imported into another, where it continues. A fork brings
// the logs it was forked from. The import is a copy: later changes on either side do not reach the other.
import { isDeepStrictEqual } from 'node:util'
import { timesOf, type Restoration } from '../stores/plan/plan-writes.ts'
import type { Event, OwnerBody, OwnerEvent } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { fold } from '../kernel/fold.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Blob, Card, CompleteStore } from '../ports/store.ts'
import type { Session } from '../kernel/session.ts'
import { foldLog, restorationOf, type PortableLog, withReferences } from '../stores/move/portable-tree.ts'
import { checkRootId, checkSessionId } from '../stores/plan/store-ids.ts'
import { isLaneAgent } from '../view/lanes.ts'
import { retryWhileBusy } from '../runtime/state/store-retry.ts'
import { programNameCheck } from '../runtime/state/program.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import type { Portable } from './portable-file.ts'
import { readSessionFile } from './read-file.ts'
import { invalidImport } from './schema-check.ts'
import { recordsOf } from './stream-file.ts'
import { flagCheck, optionsChecker, textCheck } from '../options.ts'
import { labelsCheck, metadataCheck } from '../sessions/metadata.ts'
import { checkSessionOrigin, sessionDescription, type OriginOptions } from '../sessions/origin.ts'
import { readLog } from '../view/session-log.ts'
import { withoutFolder } from '../view/without-folder.ts'
import { UNNAMED } from '../view/session-program.ts'

export type { Portable, PortableRecord } from './portable-file.ts'

/** Where the imported session works, and which program owns it. The file's own values for both are ignored. */
type ImportOptions = {
  readonly id?: string /** The program whose workers drive the session. Default: programs without a name. */
  readonly program?: string
} & Pick<OriginOptions, 'folder' | 'metadata' | 'labels'>
type ExportOptions = { readonly partial?: boolean }
const checkExport = optionsChecker<ExportOptions>('exportSession', { partial: flagCheck })
const checkOptions = optionsChecker<ImportOptions>('importSession', {
  id: textCheck,
  program: programNameCheck,
  folder: textCheck,
  metadata: metadataCheck,
  labels: labelsCheck,
})

/**
 * Refuses what could not be imported: a child, or a session that waits for a child. With `partial` the import decides.
 * The exported file leaves out the session's folder.
 */
export async function exportSession(
  store: CompleteStore,
  session: string,
  options: ExportOptions = {},
): Promise<Portable> {
  checkExport(options)
  const { partial = false } = options
  const events = withoutFolder(await readLog(store, session))
  const apart = partial ? null : whyNotStandalone({ session, events }, foldLog(events))
  if (apart !== null) throw new Fault('invalid_input', `Session ${session} cannot be exported: ${apart}`)
  return recordsOf('session', await withReferences(store, [{ session, events }]))
}

/**
 * Imports under `id`, or under the original id. It checks everything before it writes anything, and writes all or
 * nothing. A session with open work is held: no worker drives it until `send([{ type: 'resume' }])`; then the tools
 * and the policy of this host review every open call. Money spent elsewhere does not count here.
 */
export async function importSession(store: CompleteStore, value: unknown, options: ImportOptions = {}): Promise<Card> {
  checkOptions(options)
  const said = { ...sessionDescription(options), program: options.program ?? UNNAMED }
  const { holds, tree } = await readSessionFile(value)
  if (holds !== 'session') throw invalidImport(A_TREE)
  // A file may not choose a folder on this machine, neither for the session nor for the sessions it was forked from.
  const [logs, origins] = [tree.logs.map(bareLog), tree.origins.map(bareLog)]
  const log = logs[0] as PortableLog
  const state = foldLog(log.events)
  const id = options.id ?? log.session
  checkRootId(id)
  checkOriginOf(log)
  const apart = whyNotStandalone(log, state)
  if (apart !== null) throw invalidImport(apart)
  await store.open()
  const now = store.now()
  checkTimes(log.events, now)
  const arrived = buildNextEvent(state, { type: 'session.imported', from: log.session, ...said }, now)
  const own = { session: id, events: [...log.events, arrived] }
  const bare = { logs: [own], origins, blobs: tree.blobs, accounts: [] }
  const write = await restorationOf(bare, own, now)
  await commitRestored(store, [...(await buildOrigins(store, origins, now)), write])
  return (await store.card(id)) ?? write.card
}

const A_TREE = 'it is an archive. `terret store restore` brings it back to the store that it left.'

function bareLog({ session, events }: PortableLog): PortableLog {
  return { session, events: withoutFolder(events) }
}

/** The logs that a fork reads and that this store does not have, closed. */
export async function buildOrigins(
  store: CompleteStore,
  origins: readonly PortableLog[],
  now: number,
): Promise<readonly Restoration[]> {
  const writes: Restoration[] = []
  for (const origin of origins) {
    if (await storeHasLog(store, origin)) continue
    checkSessionId(origin.session)
    // Its blobs come with the fork, which reads it.
    const bare = { logs: [], origins: [], blobs: new Map<string, Blob>(), accounts: [] }
    writes.push(await restorationOf(bare, closeOriginLog(origin), now))
  }
  return writes
}

/** The sessions may exist because this very commit succeeded and its answer was lost. */
export async function commitRestored(store: CompleteStore, writes: readonly Restoration[]): Promise<void> {
  const { session = '', history = [] } = writes.at(-1) ?? {}
  await retryWhileBusy(undefined, async (before) => {
    try {
      await store.commit(writes)
    } catch (error) {
      const exists = before && error instanceof Fault && error.code === 'session_exists'
      const [last] = exists ? (await store.read(session, history.length - 1, 1)).events : []
      if (!isDeepStrictEqual(last, JSON.parse(JSON.stringify(history.at(-1))))) throw error
    }
  })
}

/** The model's instructions name where the session works, each place on one line. */
function checkOriginOf({ events: [created] }: PortableLog): void {
  if (created?.type !== 'session.created') return
  if (isLaneAgent(created.agent))
    throw invalidImport('it is the log of a consumer. What it was told of was settled elsewhere.')
  try {
    checkSessionOrigin(created)
  } catch (error) {
    throw error instanceof Fault ? invalidImport(error.message) : error
  }
}

/** Says why a part of a session tree cannot continue without the rest; null if it can. */
function whyNotStandalone({ session, events: [created] }: PortableLog, state: Session): string | null {
  if (created?.type === 'session.created' && created.parent)
    return `session ${session} is a child of session ${created.parent.session}, and cannot go on without it.`
  const child = state.run?.turn?.open.find((call) => {
    const outside = outsideOf(call.proposal)
    return outside?.answers !== undefined || (outside?.child !== undefined && call.state.type === 'outside')
  })
  if (!child) return null
  return `session ${session} waits for a child (call ${child.key}). Export it when the child has settled.`
}

const DAY_MS = 86_400_000

/** Clocks differ, but an event dated far in the future would stop the session's clock until then. */
function checkTimes(events: readonly Event[], now: number): void {
  const { seq = 0, at = 0 } = events.at(-1) ?? {}
  if (at <= now + DAY_MS) return
  const found = new Date(at).toISOString()
  throw invalidImport(`event ${seq} is dated ${found}, far after the present of this store. Set the clock right.`)
}

/**
 * The origin of a fork is only read here and never continued. It also came from the file, so what it says about its
 * host is dropped.
 */
function closeOriginLog({ session, events }: PortableLog): PortableLog {
  const state = foldLog(events)
  const arrived = buildNextEvent(state, { type: 'session.imported', from: session }, state.at)
  const last = buildNextEvent(fold(state, arrived), { type: 'session.closed' }, state.at)
  return { session, events: [...events, arrived, last] }
}

function buildNextEvent({ seq, at, epoch }: Session, body: OwnerBody, now: number): OwnerEvent {
  return { seq: seq + 1, ...timesOf(at, now), epoch, ...body }
}

/** True if the same log exists already, perhaps with more events. Refuses another log under the same id. */
export async function storeHasLog(store: CompleteStore, { session, events }: PortableLog): Promise<boolean> {
  if ((await store.card(session)) === null) return false
  const { events: known } = await store.read(session, 0, events.length)
  if (canonicalJson(withoutFolder(known)) === canonicalJson(events)) return true
  throw new Fault(
    'session_exists',
    `Session ${session}, from which this one was forked, is another one here. Import it into another store.`,
  )
}
