// A session with its children and all that their logs refer to, as the rows of a stream: read from any store, and
// written to any other, by methods that every store has. An export, an archive and a copy of a whole store are such
// rows. It checks that a stream is complete and undamaged, and not whether its logs make sense.
import { hash } from 'node:crypto'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { open, take } from '../../kernel/fold.ts'
import { next } from '../../kernel/next.ts'
import { EMPTY, type Session } from '../../kernel/session.ts'
import type { Blob, Charge, Store } from '../../ports/store.ts'
import { cardOf } from '../../view/card.ts'
import { readLog } from '../../view/session-log.ts'
import { blobFor, findReferredBlobs, requiredBlobs } from '../../view/readable-blobs.ts'
import { withoutFolder } from '../../view/without-folder.ts'
import { isOwnAccount } from '../plan/plan-charges.ts'
import type { Restoration } from '../plan/plan-writes.ts'
import { upcast } from '../plan/upcast.ts'
import type { LogRow, MoveAccountRow, MoveRow, StreamRow, TroubleRow } from './move-rows.ts'
import { LogDigest } from './row-digest.ts'

export type PortableLog = { readonly session: string; readonly events: readonly Event[] }
export type SessionTree = {
  /** The root comes first, then its children by id. */
  readonly logs: readonly PortableLog[]
  /** The logs that forks among them read, up to the last event that one of them reads. Without folders. */
  readonly origins: readonly PortableLog[]
  readonly troubles: readonly TroubleRow[]
  readonly accounts: readonly MoveAccountRow[]
  readonly blobs: ReadonlyMap<string, Blob>
}

const PAGE = 500

/** A root with its children, money and troubles. */
export async function readWholeTree(store: Store, root: string): Promise<SessionTree> {
  const ids = [root]
  for (let after = ''; ; ) {
    const page = await store.list({ root, after, limit: PAGE })
    ids.push(...page.map(({ session }) => session).filter((id) => id !== root))
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  const logs: PortableLog[] = []
  for (const session of ids) logs.push({ session, events: await readLog(store, session) })
  const accounts = await Promise.all(logs.map((log) => accountsOf(store, log)))
  const troubles = await Promise.all(ids.map((session) => troubleOf(store, session)))
  return { ...(await withReferences(store, logs)), accounts: accounts.flat(), troubles: troubles.flat() }
}

/** These logs with the origins of forks and the blobs that they refer to, and without money. */
export async function withReferences(store: Store, logs: readonly PortableLog[]): Promise<SessionTree> {
  const origins = await readOrigins(store, logs)
  const blobs = new Map<string, Blob>()
  for (const log of logs) {
    const events = [log, ...originsOf({ logs, origins }, log)].flatMap((each) => each.events)
    // Only blobs that the session may read: a hash in a text grants no permission.
    const found = await findReferredBlobs(events, async (hash) => blobs.get(hash) ?? blobFor(store, log.session, hash))
    const missing = events.flatMap(requiredBlobs).find((hash) => !found.has(hash))
    if (missing !== undefined)
      throw new Fault('store_damaged', `A stored part of this session is missing (${missing}). Restore a backup first.`)
    for (const [hash, blob] of found) blobs.set(hash, blob)
  }
  return { logs, origins, troubles: [], accounts: [], blobs }
}

async function readOrigins(store: Store, logs: readonly PortableLog[]): Promise<readonly PortableLog[]> {
  const origins = new Map<string, PortableLog>()
  const inside = new Set(logs.map(({ session }) => session))
  for (const log of logs) {
    const above = new Set<string>()
    for (let { session, events } = log; ; ) {
      above.add(session)
      const fork = forkOf(events)
      // The logs of the tree look for their origins themselves, so the walk stops at them.
      if (fork === null || (inside.has(fork.session) && fork.session !== log.session)) break
      if (above.has(fork.session))
        throw new Fault('invalid_input', `Session ${log.session} cannot be exported: it was forked from itself.`)
      const known = origins.get(fork.session)
      const whole = known && known.events.length >= fork.seq ? known.events : await readLog(store, fork.session)
      events = withoutFolder(whole.slice(0, fork.seq))
      session = fork.session
      if (events.length > (known?.events.length ?? 0)) origins.set(session, { session, events })
    }
  }
  return [...origins.values()]
}

export function forkOf([created]: readonly Event[]): { readonly session: string; readonly seq: number } | null {
  return created?.type === 'session.created' ? (created.fork ?? null) : null
}

/** The logs in the tree that this one reads before its own: its origin, the origin of that, and so on. */
export function originsOf(tree: Pick<SessionTree, 'logs' | 'origins'>, log: PortableLog): readonly PortableLog[] {
  let fork = forkOf(log.events)
  if (fork === null) return []
  const found = new Map<string, PortableLog>()
  const all = new Map([...tree.logs, ...tree.origins].map((each) => [each.session, each.events]))
  while (fork) {
    const { session, seq }: { readonly session: string; readonly seq: number } = fork
    const events = all.get(session)?.slice(0, seq)
    if (!events || found.has(session) || session === log.session) break
    found.set(session, { session, events })
    fork = forkOf(events)
  }
  return [...found.values()]
}

/** Holds that are open count as spent, as a removal counts them. */
async function accountsOf(store: Store, { session, events }: PortableLog): Promise<readonly MoveAccountRow[]> {
  const runs = events.flatMap(({ type, seq }) => (type === 'run.started' ? [`run:${session}:${seq}`] : []))
  const names = [`session:${session}`, `tree:${session}`, ...runs].flatMap((name) => [name, `raised:${name}`])
  const rows = await Promise.all(names.map((name) => store.account(name)))
  return rows.flatMap((row) => {
    if (row === null) return []
    const { id, limit, held, spent, assumed } = row
    return [{ type: 'account', id, limit, held: 0, spent: spent + held, assumed: assumed + held }]
  })
}

async function troubleOf(store: Store, session: string): Promise<readonly TroubleRow[]> {
  const { trouble } = (await store.card(session)) ?? {}
  return trouble ? [{ type: 'trouble', session, ...trouble }] : []
}

// ---- As rows
// ---------------------------------------------------------------------------------------------------------

export function* streamRows({ logs, origins, troubles, accounts, blobs }: SessionTree): Generator<StreamRow> {
  for (const [i, log] of logs.entries()) yield* logRows(log, i === 0 ? 'root' : 'child')
  for (const log of origins) yield* logRows(log, 'origin')
  yield* troubles
  yield* accounts
  for (const key of [...blobs.keys()].sort()) yield { type: 'blob', ...(blobs.get(key) as Blob) }
}

function* logRows({ session, events }: PortableLog, part: LogRow['part']): Generator<StreamRow> {
  const digest = new LogDigest(session)
  const bodies = events.map((event) => JSON.stringify(event))
  for (const body of bodies) digest.add(body)
  yield { type: 'log', session, part, events: events.length, digest: digest.end() }
  for (const body of bodies) yield { type: 'event', body }
}

/** Puts the rows of a stream together again, one tree at a time. Refuses a log that is not as its row says. */
export class TreeReader {
  readonly #refuse: (sentence: string) => Fault
  readonly #seen = new Set<string>()
  #tree: SessionTree | null = null
  #log: { readonly row: LogRow; readonly events: Event[]; readonly digest: LogDigest } | null = null

  /** `refuse` makes the error for a stream that is wrong. */
  constructor(refuse: (sentence: string) => Fault) {
    this.#refuse = refuse
  }

  /** Returns the tree before this row, if this row begins the next one. */
  add(row: StreamRow | MoveRow): SessionTree | null {
    if (row.type === 'event') {
      if (!this.#log) throw this.#refuse('an event of it belongs to no session.')
      this.#log.digest.add(row.body)
      this.#log.events.push(upcast(JSON.parse(row.body) as Event))
      return null
    }
    this.#closeLog()
    if (row.type === 'log') return this.#openLog(row)
    const tree = this.#tree
    if (!tree) throw this.#refuse('it does not begin with a session.')
    if (row.type === 'blob') {
      this.#once(`blob ${row.hash}`)
      ;(tree.blobs as Map<string, Blob>).set(row.hash, { hash: row.hash, media: row.media, data: row.data })
    } else if (row.type === 'account') {
      this.#once(`account ${row.id}`)
      ;(tree.accounts as MoveAccountRow[]).push(row)
    } else if (row.type === 'trouble') (tree.troubles as TroubleRow[]).push(row)
    else throw this.#refuse(`it has a record of the kind ${row.type}, which only a move between databases has.`)
    return null
  }

  end(): SessionTree {
    this.#closeLog()
    if (!this.#tree) throw this.#refuse('there is no session in it.')
    return this.#tree
  }

  #openLog(row: LogRow): SessionTree | null {
    const done = row.part === 'root' ? this.#tree : null
    if (row.part === 'root') {
      this.#tree = { logs: [], origins: [], troubles: [], accounts: [], blobs: new Map() }
      this.#seen.clear()
    }
    const tree = this.#tree
    if (!tree) throw this.#refuse('it does not begin with a session.')
    this.#once(`session ${row.session}`)
    const events: Event[] = []
    this.#log = { row, events, digest: new LogDigest(row.session) }
    const logs = row.part === 'origin' ? tree.origins : tree.logs
    ;(logs as PortableLog[]).push({ session: row.session, events })
    return done
  }

  #once(what: string): void {
    if (this.#seen.has(what)) throw this.#refuse(`the ${what} is in it twice.`)
    this.#seen.add(what)
  }

  #closeLog(): void {
    if (!this.#log) return
    const { row, events, digest } = this.#log
    this.#log = null
    if (events.length !== row.events)
      throw this.#refuse(`session ${row.session} has ${events.length} of its ${row.events} events.`)
    if (digest.end() !== row.digest)
      throw this.#refuse(`session ${row.session} was changed or damaged: its checksum does not match.`)
  }
}

// ---- Into a store
// ---------------------------------------------------------------------------------------------------------

/** Creates a session with its whole log. */
export async function restorationOf(
  tree: Pick<SessionTree, 'logs' | 'origins' | 'blobs' | 'accounts'>,
  log: PortableLog,
  now: number,
): Promise<Restoration> {
  const { session, events: history } = log
  const state = foldLog(history)
  const card = cardOf(session, state, next(state, { now, epoch: state.epoch }))
  const events = [log, ...originsOf(tree, log)].flatMap((each) => each.events)
  const blobs = await findReferredBlobs(events, async (hash) => tree.blobs.get(hash) ?? null)
  const charges = tree.accounts.filter(({ id }) => isOwnAccount(session, id)).flatMap(chargesOf)
  const created = { session, lane: 'owner', epoch: 0, expectedSeq: 0, events: [] } as const
  return { ...created, history, card, blobs: [...blobs.values()], charges }
}

export function foldLog(events: readonly Event[]): Session {
  const state = open(EMPTY)
  for (const event of events) take(state, event)
  return state
}

/** Money moves only through holds. The limit is set last, because the past spending may exceed it. */
function chargesOf({ id, limit, spent, assumed }: MoveAccountRow): readonly Charge[] {
  const key = `restored:${hash('sha256', id)}`
  const known = Math.max(0, spent - assumed)
  return [
    { type: 'hold', key, accounts: [id], amount: known },
    { type: 'settle', key, amount: known },
    { type: 'hold', key: `${key}:assumed`, accounts: [id], amount: assumed },
    { type: 'settle', key: `${key}:assumed`, amount: assumed, assumed: true },
    { type: 'limit', account: id, limit },
  ]
}
