// A whole store as a portable stream, and such a stream written into a store, by methods that every store has. A store
// that can read and write its own tables moves more: see `MoveRow`. Records of removals, accounts that sessions share,
// and the numbers of leases stay behind, because no log and no card has them.
import { Fault } from '../../kernel/failure.ts'
import type { Store } from '../../ports/store.ts'
import type { StreamRow } from './move-rows.ts'
import { RowDigest } from './row-digest.ts'
import { readWholeTree, restorationOf, type SessionTree, TreeReader, streamRows } from './portable-tree.ts'

const PAGE = 500
const MOVER = 'move'
const MOVER_LEASE_MS = 30_000

/**
 * The rows of all sessions: trees in the order of their roots' ids, but each after the trees that it was forked from. It
 * holds one tree in memory at a time. Stop the workers first: it is not one moment of the store.
 */
export async function* streamStore(store: Store): AsyncGenerator<StreamRow> {
  const done = new Set<string>()
  for (let after = ''; ; ) {
    const cards = await store.list({ after, limit: PAGE })
    for (const { session, root } of cards) if (session === root) yield* streamTree(store, root, done)
    const last = cards.at(-1)
    if (last === undefined || cards.length < PAGE) return
    after = last.session
  }
}

async function* streamTree(store: Store, root: string, done: Set<string>): AsyncGenerator<StreamRow> {
  if (done.has(root)) return
  done.add(root)
  const tree = await readWholeTree(store, root)
  for (const origin of tree.origins) {
    const card = await store.card(origin.session)
    if (card) yield* streamTree(store, card.root, done)
  }
  yield* streamRows(tree)
}

/** What a store holds after it was filled: as a digest, and in numbers. */
export type FilledStore = {
  /** The hash of all rows, equal to that of the store that they came from. */
  readonly digest: string
  /** How many rows of each kind it has. */
  readonly counts: RowDigest['counts']
  /** The size of its events and blobs, in bytes. */
  readonly bytes: number
}

/**
 * Writes a stream into a store, each tree in one commit, and reads it back to compare. After a crash the same call goes
 * on: what is there already as the stream says is passed over. Rejects with `session_exists` for another session under
 * an id of the stream, and with `store_damaged` for a stream that is damaged or a store that holds something else.
 */
export async function fillStore(
  store: Store,
  rows: AsyncIterable<StreamRow> | Iterable<StreamRow>,
  now: number,
): Promise<FilledStore> {
  const digest = new RowDigest()
  const reader = new TreeReader(
    (text) => new Fault('store_damaged', `The stream of this store cannot be read: ${text}`),
  )
  let empty = true
  for await (const row of rows) {
    empty = false
    const tree = reader.add(row)
    digest.add(row)
    if (tree) await writeTree(store, tree, now)
  }
  if (!empty) await writeTree(store, reader.end(), now)
  return { digest: digest.end(), counts: digest.counts, bytes: digest.bytes }
}

async function writeTree(store: Store, tree: SessionTree, now: number): Promise<void> {
  const root = tree.logs[0]?.session ?? ''
  if ((await store.card(root)) === null) {
    const writes = []
    for (const log of tree.logs) writes.push(await restorationOf(tree, log, now))
    await store.commit(writes)
  } else if (digestOf({ ...(await readWholeTree(store, root)), troubles: [] }) !== digestOf({ ...tree, troubles: [] }))
    throw new Fault('session_exists', `Session ${root} is another one there. Name a store without it.`)
  for (const { session, attempts, reason, until } of tree.troubles) {
    const claim = await store.claim(session, MOVER, MOVER_LEASE_MS)
    if (claim) await store.release(session, claim.epoch, { attempts, reason, until })
  }
  if (digestOf(await readWholeTree(store, root)) !== digestOf(tree))
    throw new Fault('store_damaged', `Session ${root} is not as it was sent. The other store is as it was.`)
}

function digestOf(tree: SessionTree): string {
  const digest = new RowDigest()
  for (const row of streamRows(tree)) digest.add(row)
  return digest.end()
}
