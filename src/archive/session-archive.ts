// Takes a root session and its children out of a store into a file, and restores them with the same ids, events and
// money. The store remembers the digest of what it gave away and takes back nothing else. `importSession` handles files
// from elsewhere.
import { Fault } from '../kernel/failure.ts'
import type { Card, Removal, CompleteStore } from '../ports/store.ts'
import { readWholeTree, restorationOf, type SessionTree } from '../stores/move/portable-tree.ts'
import { isOwnAccount } from '../stores/plan/plan-charges.ts'
import type { Restoration } from '../stores/plan/plan-writes.ts'
import { commitRestored, storeHasLog } from './portable.ts'
import type { Portable } from './portable-file.ts'
import { readSessionFile } from './read-file.ts'
import { invalidImport } from './schema-check.ts'
import { recordsOf } from './stream-file.ts'

/** `records` are the file. */
export type Archive = ArchivedTree & {
  /** The lines of the file. */
  readonly records: Portable
}
export type ArchivedTree = {
  /** The id of the root session. */
  readonly session: string
  /** The logs of the session and its children, with their files and money. */
  readonly tree: SessionTree
  /** The hash of all of it. A store takes back only an archive with the digest that it gave away. */
  readonly digest: string
}

/** Reads a session with its children and files, for an export. */
export async function archiveOf(store: CompleteStore, root: string): Promise<Archive> {
  const tree = await readWholeTree(store, root)
  const records = recordsOf('tree', tree)
  const end = records.at(-1)
  return { session: root, tree, records, digest: end?.type === 'end' ? end.digest : '' }
}

/** Reads a complete archive. Throws a Fault that says what is wrong. */
export async function checkArchive(value: unknown): Promise<ArchivedTree> {
  const { holds, tree, digest } = await readSessionFile(value)
  if (holds !== 'tree') throw invalidImport('it is not a file that `terret store archive` wrote.')
  const { logs, accounts } = tree
  const session = logs[0]?.session ?? ''
  if (accounts.some(({ id }) => !logs.some((log) => isOwnAccount(log.session, id))))
    throw invalidImport('an account of it is none of its sessions.')
  return { session, tree, digest }
}

/**
 * Removes the sessions if the store still holds them as archived. The caller must have saved the file safely before.
 */
export function removeArchived(
  store: CompleteStore,
  { session, tree, digest }: ArchivedTree,
  by: string,
): Promise<readonly Removal[]> {
  const ends = new Map(tree.logs.map((log) => [log.session, log.events.length]))
  return store.remove(session, archivedBy(by, digest), ends)
}

/** The log of removals then says where the session went. */
function archivedBy(by: string, digest: string): string {
  return `${by.slice(0, 200)} (archive ${digest})`
}

/**
 * Takes an archive that `checkArchive` read. `removedBy` is the `by` that the store recorded with the last removal of that root; null
 * if it has no record.
 */
export async function restoreArchive(
  store: CompleteStore,
  { session, tree, digest }: ArchivedTree,
  removedBy: string | null,
): Promise<Card> {
  if (removedBy?.endsWith(archivedBy('', digest)) !== true) {
    const text = `Session ${session} did not leave this store with this file. Restore the last one that was archived; a session of another store is for \`terret import\`.`
    throw new Fault('invalid_input', text)
  }
  for (const origin of tree.origins)
    if (!(await storeHasLog(store, origin))) throw missingOrigin(session, origin.session)
  const writes: Restoration[] = []
  for (const log of tree.logs) writes.push(await restorationOf(tree, log, store.now()))
  await commitRestored(store, writes)
  return (await store.card(session)) ?? (writes[0] as Restoration).card
}

function missingOrigin(session: string, origin: string): Fault {
  return new Fault('session_missing', `Session ${session} was forked from session ${origin}. Restore that one first.`)
}
