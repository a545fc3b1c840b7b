// Refold: does the log still mean the same? Folds a session from the beginning in every possible way and compares the
// bytes. It writes nothing, and does not ask what today's code would decide: that is replay-decide.ts.
import type { Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { fold, open, type OpenSession, take } from '../kernel/fold.ts'
import type { CompleteStore } from '../ports/store.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../kernel/session.ts'
import { parseSnapshot } from '../runtime/state/session-cache.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { readLogEvents, readLog } from '../view/session-log.ts'

/** A session that was folded anew, and the first difference from what was stored. */
export type Refolded = {
  /** The id of the session. */
  readonly session: string
  /** How many events were folded. */
  readonly events: number
  /** A snapshot of an older fold version is not read, so it is not compared. */
  readonly snapshot: 'none' | 'old' | 'compared'
  /** The state at the end of the log, as canonical JSON. */
  readonly state: string
  /** The first difference. Null if there is none. */
  readonly difference: FoldDifference | null
}

/** The first place where two states differ. */
type StateDifference = {
  /** Where in the state they differ. */
  readonly path: string
  /** The value of the first way. */
  readonly expected: Json
  /** The value of the other way. */
  readonly found: Json
}

/**
 * After event `seq` the states differ: between copying and folding in place, between the beginning and the snapshot, or
 * the event cannot be folded.
 */
export type FoldDifference = StateDifference & {
  /** The event after which they differ. */
  readonly seq: number
  /** How it differs: a copy from folding in place, a state that was folded from (`source`), a snapshot. Or it cannot be folded. */
  readonly type: 'unfoldable' | 'copy' | 'source' | 'snapshot'
}

/** The two ways to fold an event. A test passes other ones. */
export type FoldFunctions = { readonly fold: typeof fold; readonly take: typeof take }

/** The methods of a store that this needs. */
export type ReplayStore = Pick<CompleteStore, 'read' | 'snapshot'>

const PAGE = 1_000

/** Folds an old log with the code of today and compares it with the snapshots. Nothing runs and no model is asked. */
export async function refoldSession(
  store: ReplayStore,
  session: string,
  folding: FoldFunctions = { fold, take },
): Promise<Refolded> {
  const stored = await store.snapshot(session)
  const snapshot = stored === null ? 'none' : stored.version === FOLD_VERSION ? 'compared' : 'old'
  const from = snapshot === 'compared' && stored ? parseSnapshot(stored.body).session : null
  const folds = new ComparedFolds(folding, from)
  for await (const event of readLogEvents(store, session)) {
    const difference = folds.take(event)
    if (difference) return { session, events: event.seq, snapshot, state: folds.state, difference }
  }
  return { session, events: folds.seq, snapshot, state: folds.state, difference: folds.unreached() }
}

/** The logs of all sessions below one, at any depth. */
export async function readChildren(
  store: Pick<CompleteStore, 'read' | 'card' | 'list'>,
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

/** Folds one log in three ways side by side: by copy, in place, and from the snapshot on. */
class ComparedFolds {
  /** The state folded in place from the beginning, as canonical JSON. The others are compared with it. */
  state = canonicalJson(EMPTY)
  readonly #folding: FoldFunctions
  readonly #inPlace: OpenSession = open(EMPTY)
  #copied: Session = EMPTY
  #snapshot: Session | null
  #resumed: OpenSession | null = null

  constructor(folding: FoldFunctions, snapshot: Session | null) {
    this.#folding = folding
    this.#snapshot = snapshot
  }

  get seq(): number {
    return this.#inPlace.seq
  }

  take(event: Event): FoldDifference | null {
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

  /** A snapshot that covers more than the log contains. */
  unreached(): FoldDifference | null {
    if (this.#snapshot === null) return null
    return { seq: this.seq, type: 'snapshot', path: 'seq', expected: this.seq, found: this.#snapshot.seq }
  }

  #compare(type: FoldDifference['type'], seq: number, found: Session, expected = this.state): FoldDifference | null {
    if (canonicalJson(found) === expected) return null
    const gap = firstDifference(JSON.parse(expected) as Json, found)
    return { seq, type, ...(gap ?? { path: '', expected: null, found: null }) }
  }
}

/** The first place where two values differ; null if they are equal. A missing value is null. */
function firstDifference(expected: Json, found: Json, path = ''): StateDifference | null {
  if (canonicalJson(expected) === canonicalJson(found)) return null
  if (!isKeyed(expected) || !isKeyed(found) || Array.isArray(expected) !== Array.isArray(found))
    return { path, expected, found }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const gap = firstDifference(expected[key] ?? null, found[key] ?? null, path === '' ? key : `${path}.${key}`)
    if (gap) return gap
  }
  return { path, expected, found }
}

function isKeyed(value: Json): value is Readonly<Record<string, Json>> {
  return value !== null && typeof value === 'object'
}
