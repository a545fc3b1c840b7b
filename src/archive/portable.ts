// One session as a file: exported from one store, checked, and imported into another, where it goes on. Forks bring the logs they
// read through. It is a copy: what happens to the session later, on either side, the other does not see.
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { timesOf } from '../stores/plan/plan.ts'
import type { Event, OwnerBody, OwnerEvent } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { fold } from '../kernel/fold.ts'
import { outsideOf } from '../kernel/ledger.ts'
import { next } from '../kernel/next.ts'
import type { Blob, Card, Store } from '../ports/store.ts'
import { EMPTY, type Session } from '../kernel/session.ts'
import { checkRootId, checkSessionId } from '../stores/plan/id.ts'
import type { Restoration } from '../stores/plan/plan.ts'
import { upcast } from '../stores/plan/upcast.ts'
import { again } from '../engine/again.ts'
import { nameCheck } from '../engine/program.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { cardOf } from '../view/card.ts'
import type { Portable, PortableBlob, PortableLog } from './portable-file.ts'
import { checkPortable, invalid } from './schema-check.ts'
import { bytesOf, needs, soundLog } from './sound.ts'
import { flag, optionsOf, text } from '../options.ts'
import { labelsCheck, metadataCheck } from '../sessions/metadata.ts'
import { checkOrigin, descriptionIn, type OriginOptions } from '../sessions/origin.ts'
import { blobFor, mentionsIn } from '../view/blobs.ts'
import { withoutFolder } from '../view/folder.ts'
import { isObject } from '../view/json.ts'
import { UNNAMED } from '../view/program.ts'
import { readLog } from './replay.ts'

export type { Portable } from './portable-file.ts'

/** Where it works from now on, and whose it is. What the file says of that is not read. */
type ImportOptions = {
  readonly id?: string /** Whose workers drive it. Default: those of programs without a name. */
  readonly program?: string
} & Pick<OriginOptions, 'folder' | 'metadata' | 'labels'>
type ExportOptions = { readonly partial?: boolean }
const checkExport = optionsOf<ExportOptions>('exportSession', { partial: flag })
const checkOptions = optionsOf<ImportOptions>('importSession', {
  id: text,
  program: nameCheck,
  folder: text,
  metadata: metadataCheck,
  labels: labelsCheck,
})

/**
 * Refused for what could not be imported: a child, or a session that waits for one. With `partial` the import decides. The folder
 * it works in stays here.
 */
export async function exportSession(store: Store, session: string, options: ExportOptions = {}): Promise<Portable> {
  checkExport(options)
  const { partial = false } = options
  const events = withoutFolder(await readLog(store, session))
  const apart = partial ? null : notAlone(session, events, events.reduce(fold, EMPTY))
  if (apart !== null) throw new Fault('invalid_input', `Session ${session} cannot be exported: ${apart}`)
  return portableOf(store, { session, events })
}

/** A log with all that it refers to. */
export async function portableOf(store: Store, { session, events }: PortableLog): Promise<Portable> {
  const parents = await parentsOf(store, { session, events })
  const blobs = await blobsOf(store, session, [events, ...parents.map((parent) => parent.events)].flat())
  const rest = { session, events, blobs, ...(parents.length > 0 ? { parents } : {}) }
  const whole = { format: 'terret.session', version: 1, ...rest } as const
  return { ...whole, checksum: checksumOf(whole) }
}

/**
 * Under `id`, or under the id it had. Everything is checked before anything is written, and all of it is written or nothing.
 * With something open it is held: nothing of it is driven until `steer([{ type: 'resume' }])`, and then every open call is asked
 * about by the tools and the policy of here and now. Money that was spent elsewhere is not counted here.
 */
export async function importSession(store: Store, value: unknown, options: ImportOptions = {}): Promise<Card> {
  checkOptions(options)
  const said = { ...descriptionIn(options), program: options.program ?? UNNAMED }
  const copy = homeless(copied(value))
  const id = options.id ?? copy.session
  checkRootId(id)
  checkOriginOf(copy)
  const { state, blobs } = await soundCopy(copy)
  const apart = notAlone(copy.session, copy.events, state)
  if (apart !== null) throw invalid(apart)
  await store.open()
  checkTimes(copy.events, store.now())
  const { parents = [] } = copy
  const missing: PortableLog[] = []
  for (const parent of parents) {
    if (await isThere(store, parent)) continue
    checkSessionId(parent.session)
    missing.push(parent)
  }
  const stubs = missing.map((parent) => {
    const log = closed(parent)
    return restoration(store, log, soundLog(log, copy.blobs), [])
  })
  const arrived = after(state, { type: 'session.imported', from: copy.session, ...said }, store.now())
  const write = restoration(store, { session: id, events: [...copy.events, arrived] }, fold(state, arrived), blobs)
  await restored(store, [...stubs, write], arrived)
  return (await store.card(id)) ?? write.card
}

/** The state at the end of a log that a store could have written, and its blobs. Refused for all that is wrong with the file alone. */
export async function soundCopy(copy: Portable): Promise<{ readonly state: Session; readonly blobs: readonly Blob[] }> {
  const blobs = Object.entries(copy.blobs).map(([hashed, blob]): Blob => {
    return { hash: hashed, media: blob.media, data: bytesOf(hashed, blob) }
  })
  const state = soundLog(copy, copy.blobs)
  checkParents(copy)
  await checkBlobs(copy)
  return { state, blobs }
}

/** It may be there because of this very import, whose answer was lost. */
async function restored(store: Store, writes: readonly Restoration[], arrived: Event): Promise<void> {
  const session = writes.at(-1)?.session ?? ''
  await again(undefined, async (before) => {
    try {
      await store.commit(writes)
    } catch (error) {
      const exists = before && error instanceof Fault && error.code === 'session_exists'
      const [last] = exists ? (await store.read(session, arrived.seq - 1, 1)).events : []
      if (!isDeepStrictEqual(last, JSON.parse(JSON.stringify(arrived)))) throw error
    }
  })
}

export function restoration(
  store: Store,
  { session, events: history }: PortableLog,
  state: Session,
  blobs: readonly Blob[],
): Restoration {
  const card = cardOf(session, state, next(state, { now: store.now(), epoch: state.epoch }))
  return { session, lane: 'owner', epoch: 0, expectedSeq: 0, events: [], history, card, blobs }
}

/** A copy of its own, of the right shape and with the right checksum. */
export function copied(value: unknown): Portable {
  try {
    const copy: unknown = JSON.parse(JSON.stringify(value) ?? 'null')
    const present = upcastIn(copy)
    checkPortable(present)
    const { checksum, ...rest } = copy as Portable
    if (checksum !== checksumOf(rest)) throw invalid('it was changed or damaged: its checksum does not match.')
    return present as Portable
  } catch (error) {
    if (error instanceof Fault) throw error
    // Circles, numbers that JSON does not have, and what is nested too deeply to be walked.
    throw invalid(`it is no JSON (${error instanceof Error ? error.message : String(error)}).`)
  }
}

/** A file of an earlier version may have events of old shapes. Nothing of it is checked yet. */
function upcastIn(log: unknown): unknown {
  if (!isObject(log)) return log
  const { events, parents } = log
  const present = Array.isArray(events)
    ? events.map((event: unknown) => (isObject(event) ? upcast(event as Event) : event))
    : null
  return {
    ...log,
    ...(present === null ? {} : { events: present }),
    ...(Array.isArray(parents) ? { parents: parents.map(upcastIn) } : {}),
  }
}

/** What the model is told of the place of a session stands in its instructions, each on one line. */
function checkOriginOf({ events: [created] }: PortableLog): void {
  if (created?.type !== 'session.created') return
  try {
    checkOrigin(created)
  } catch (error) {
    throw error instanceof Fault ? invalid(error.message) : error
  }
}

/** No file chooses a folder of this machine, neither for the session nor for those it was forked from. */
function homeless(copy: Portable): Portable {
  const bare = <Log extends PortableLog>(log: Log): Log => ({ ...log, events: withoutFolder(log.events) })
  return copy.parents ? { ...bare(copy), parents: copy.parents.map(bare) } : bare(copy)
}

function checksumOf(rest: Omit<Portable, 'checksum'>): string {
  return hash('sha256', canonicalJson(rest))
}

/** Why what is a part of a tree of sessions cannot go on without the others; null if it is no such part. */
function notAlone(session: string, [created]: readonly Event[], state: Session): string | null {
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

/** Clocks differ. But what is dated far ahead would stop the clock of the session until then. */
function checkTimes(events: readonly Event[], now: number): void {
  const { seq = 0, at = 0 } = events.at(-1) ?? {}
  if (at <= now + DAY_MS) return
  const found = new Date(at).toISOString()
  throw invalid(`event ${seq} is dated ${found}, far after the present of this store. Set the clock right.`)
}

/** A fork brings exactly the logs it reads through, each up to the event it was forked at. */
function checkParents({ session, events, parents = [], blobs }: Portable): void {
  let below: PortableLog = { session, events }
  for (const parent of parents) {
    const fork = forkOf(below.events)
    if (fork?.session !== parent.session || fork.seq !== parent.events.length)
      throw invalid(`session ${below.session} was not forked from event ${parent.events.length} of ${parent.session}.`)
    soundLog(parent, blobs)
    below = parent
  }
  const missing = forkOf(below.events)
  if (missing) throw invalid(`the log of ${missing.session}, from which ${below.session} was forked, is missing.`)
  if (new Set([session, ...parents.map((parent) => parent.session)]).size !== parents.length + 1)
    throw invalid(OWN_FORK)
}

const OWN_FORK = 'a session was forked from itself.'

async function checkBlobs({ events, parents = [], blobs }: Portable): Promise<void> {
  const there = await referred([events, ...parents.map((parent) => parent.events)].flat(), async (hashed) =>
    Object.hasOwn(blobs, hashed) ? (blobs[hashed] ?? null) : null,
  )
  const stray = Object.keys(blobs).find((hashed) => !there.has(hashed))
  if (stray !== undefined) throw invalid(`no event refers to the blob ${stray}.`)
}

/** The blobs that events refer to, and those that their texts refer to, as far as they can be found. */
async function referred(
  events: readonly Event[],
  find: (hashed: string) => Promise<PortableBlob | null>,
): Promise<ReadonlyMap<string, PortableBlob>> {
  const found = new Map<string, PortableBlob>()
  const wanted = new Set(events.flatMap((event) => mentionsIn(JSON.stringify(event))))
  // A set may grow while it is walked: what is added comes later.
  for (const hashed of wanted) {
    const blob = await find(hashed)
    if (!blob) continue
    found.set(hashed, blob)
    if (!blob.media.startsWith('text/')) continue
    for (const mentioned of mentionsIn(Buffer.from(blob.data, 'base64').toString())) wanted.add(mentioned)
  }
  return found
}

/** The log it was forked from is only read here, and never continued. It came out of the file too: what that says of it is forgotten. */
function closed({ session, events }: PortableLog): PortableLog {
  const state: Session = events.reduce(fold, EMPTY)
  const arrived = after(state, { type: 'session.imported', from: session }, state.at)
  const last = after(fold(state, arrived), { type: 'session.closed' }, state.at)
  return { session, events: [...events, arrived, last] }
}

function after({ seq, at, epoch }: Session, body: OwnerBody, now: number): OwnerEvent {
  return { seq: seq + 1, ...timesOf(at, now), epoch, ...body }
}

/** The same log is there already, perhaps with more after it. Another one under that id is refused. */
export async function isThere(store: Store, { session, events }: PortableLog): Promise<boolean> {
  if ((await store.card(session)) === null) return false
  const { events: known } = await store.read(session, 0, events.length)
  if (canonicalJson(withoutFolder(known)) === canonicalJson(events)) return true
  throw new Fault(
    'session_exists',
    `Session ${session}, from which this one was forked, is another one here. Import it into another store.`,
  )
}

async function parentsOf(store: Store, log: PortableLog): Promise<readonly PortableLog[]> {
  const logs = [log]
  for (let fork = forkOf(log.events); fork; fork = forkOf(logs.at(-1)?.events ?? [])) {
    const { session, seq } = fork
    if (logs.some((below) => below.session === session)) throw invalid(OWN_FORK)
    const known = withoutFolder((await readLog(store, session)).slice(0, seq))
    logs.push({ session, events: known })
  }
  return logs.slice(1)
}

function forkOf([created]: readonly Event[]): { readonly session: string; readonly seq: number } | null {
  return created?.type === 'session.created' ? (created.fork ?? null) : null
}

/** Only what the session may read: that a text names a hash is no permission. */
async function blobsOf(store: Store, session: string, events: readonly Event[]): Promise<Portable['blobs']> {
  const found = await referred(events, async (hashed) => {
    const blob = await blobFor(store, session, hashed)
    return blob && { media: blob.media, data: Buffer.from(blob.data).toString('base64') }
  })
  const missing = events.flatMap(needs).find((hashed) => !found.has(hashed))
  if (missing !== undefined)
    throw new Fault('store_damaged', `A stored part of this session is missing (${missing}). Restore a backup first.`)
  return Object.fromEntries(found)
}
