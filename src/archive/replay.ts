// Refold: does the log still mean what it meant? Folds a session from nothing in every way there is and compares the bytes.
// It writes nothing, and it does not ask what would be decided today: that is replay-decide.ts.
import type { Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { fold, open, type OpenSession, take } from '../kernel/fold.ts'
import type { Store } from '../ports/store.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../kernel/session.ts'
import { readSnapshot } from '../engine/session-cache.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { damaged } from '../view/history.ts'

export type Refolded = {
  readonly session: string
  readonly events: number
  /** A snapshot of an older fold is not compared: it is not read. */
  readonly snapshot: 'none' | 'old' | 'compared'
  /** The state at the end of the log, as canonical JSON. */
  readonly state: string
  readonly difference: Misfold | null
}

/** Where two states differ. */
type Gap = { readonly path: string; readonly expected: Json; readonly found: Json }

/** After event `seq` the state is not the same: by copy and in place, from nothing and from the snapshot, or not at all. */
export type Misfold = Gap & { readonly seq: number; readonly type: 'unfoldable' | 'copy' | 'source' | 'snapshot' }

/** The two ways to take an event. A test hands in other ones. */
export type Folding = { readonly fold: typeof fold; readonly take: typeof take }

/** What is read of a store. */
export type Log = Pick<Store, 'read' | 'snapshot'>

const PAGE = 1_000

export async function refold(store: Log, session: string, folding: Folding = { fold, take }): Promise<Refolded> {
  const stored = await store.snapshot(session)
  const snapshot = stored === null ? 'none' : stored.version === FOLD_VERSION ? 'compared' : 'old'
  const from = snapshot === 'compared' && stored ? readSnapshot(stored.body).session : null
  const folds = new Folds(folding, from)
  for await (const event of logOf(store, session)) {
    const difference = folds.take(event)
    if (difference) return { session, events: event.seq, snapshot, state: folds.state, difference }
  }
  return { session, events: folds.seq, snapshot, state: folds.state, difference: folds.unreached() }
}

/** The whole log, in order. */
export async function readLog(store: Pick<Store, 'read'>, session: string): Promise<readonly Event[]> {
  const events: Event[] = []
  for await (const event of logOf(store, session)) events.push(event)
  return events
}

/** The logs of the sessions below one: its children, and theirs. */
export async function readChildren(
  store: Pick<Store, 'read' | 'card' | 'list'>,
  session: string,
): Promise<ReadonlyMap<string, readonly Event[]>> {
  const { root = session } = (await store.card(session)) ?? {}
  const logs = new Map<string, readonly Event[]>()
  for (let after = session; ; ) {
    const cards = await store.list({ root, after, limit: PAGE })
    for (const { session: id } of cards) if (id.startsWith(`${session}~`)) logs.set(id, await readLog(store, id))
    if (cards.length < PAGE) return logs
    after = cards.at(-1)?.session ?? after
  }
}

async function* logOf(store: Pick<Store, 'read'>, session: string): AsyncGenerator<Event> {
  for (let after = 0; ; ) {
    const page = await store.read(session, after, PAGE)
    yield* page.events
    if (page.damaged) throw damaged(session, page.damaged)
    if (page.events.length < PAGE) return
    after += page.events.length
  }
}

/** One log, folded side by side: by copy, in place, and from the snapshot on. */
class Folds {
  /** In place, from nothing, as canonical JSON: what the others are compared with. */
  state = canonicalJson(EMPTY)
  readonly #folding: Folding
  readonly #inPlace: OpenSession = open(EMPTY)
  #copied: Session = EMPTY
  #snapshot: Session | null
  #resumed: OpenSession | null = null

  constructor(folding: Folding, snapshot: Session | null) {
    this.#folding = folding
    this.#snapshot = snapshot
  }

  get seq(): number {
    return this.#inPlace.seq
  }

  take(event: Event): Misfold | null {
    const { seq } = event
    const before = { session: this.#copied, state: this.state }
    try {
      this.#folding.take(this.#inPlace, event)
      this.#copied = this.#folding.fold(before.session, event)
      if (this.#resumed) this.#folding.take(this.#resumed, event)
    } catch (error) {
      return { seq, type: 'unfoldable', path: '', expected: 'an event that follows', found: String(error) }
    }
    this.state = canonicalJson(this.#inPlace)
    if (this.#snapshot?.seq === seq) {
      this.#resumed = open(this.#snapshot)
      this.#snapshot = null
    }
    return (
      this.#compare('copy', seq, this.#copied) ??
      this.#compare('source', seq, before.session, before.state) ??
      (this.#resumed && this.#compare('snapshot', seq, this.#resumed))
    )
  }

  /** A snapshot of more than the log holds. */
  unreached(): Misfold | null {
    if (this.#snapshot === null) return null
    return { seq: this.seq, type: 'snapshot', path: 'seq', expected: this.seq, found: this.#snapshot.seq }
  }

  #compare(type: Misfold['type'], seq: number, found: Session, expected = this.state): Misfold | null {
    if (canonicalJson(found) === expected) return null
    const gap = firstGap(JSON.parse(expected) as Json, found)
    return { seq, type, ...(gap ?? { path: '', expected: null, found: null }) }
  }
}

/** The first place where two values differ; null if they are the same. What is not there is null. */
function firstGap(expected: Json, found: Json, path = ''): Gap | null {
  if (canonicalJson(expected) === canonicalJson(found)) return null
  if (!isKeyed(expected) || !isKeyed(found) || Array.isArray(expected) !== Array.isArray(found))
    return { path, expected, found }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const gap = firstGap(expected[key] ?? null, found[key] ?? null, path === '' ? key : `${path}.${key}`)
    if (gap) return gap
  }
  return { path, expected, found }
}

function isKeyed(value: Json): value is Readonly<Record<string, Json>> {
  return value !== null && typeof value === 'object'
}
