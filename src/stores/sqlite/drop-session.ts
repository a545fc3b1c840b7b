// Removes the rows of a session and makes the file smaller, inside the transaction of a batch. plan-removal.ts decides
// what may go. Events go last: until then new ones must lie where their spans say.
import type { Removal } from '../../ports/store.ts'
import { isOwnAccount, ownPrefixes } from '../plan/plan-charges.ts'
import type { SqliteRow } from './sqlite-rows.ts'
import { SPAN, type SqliteStatements } from './sqlite-schema.ts'
import { findSpans, type EventSpan } from './event-spans.ts'

/** Events that are still to be deleted. */
export type EventsToDrop = { readonly n: number; readonly seq: number; readonly spans: readonly EventSpan[] }

type DroppedSession = { readonly removal: Removal; readonly left: EventsToDrop }

/** After this the session is gone, and its id may be used again at once. */
export function dropSession(
  sql: SqliteStatements,
  session: string,
  row: SqliteRow,
  log: Pick<Removal, 'at' | 'by'>,
): DroppedSession {
  const { n, seq, epoch } = row
  const spans = spansOf(sql, row)
  const { agent } = sql.agentOf.get(n) as { agent: string | null }
  const { bytes: blobBytes } = sql.sizeOfBlobs.get(n) as { bytes: number }
  const sizes = spans.map(({ pos, count }) => sql.sizeOf.get(pos, pos + count - 1, n) as { bytes: number })
  const bytes = sizes.reduce((sum, size) => sum + size.bytes, blobBytes)
  const removal: Removal = { session, agent: agent ?? '', events: seq, bytes, ...log }
  sql.keepRemoval.run(n, session, epoch, removal.agent, seq, bytes, log.at, log.by)
  for (const drop of [sql.dropSession, sql.dropHead, sql.dropInbox, sql.dropFork, sql.dropLabels, sql.dropFind])
    drop.run(n)
  for (const drop of [sql.dropSpans, sql.dropSnapshots]) drop.run(n * SPAN, (n + 1) * SPAN - 1)
  sql.dropBlobs.run(n)
  sql.dropBlobRefs.run(n)
  return { removal, left: { n, seq, spans } }
}

/** A damaged index must not prevent a removal. */
function spansOf(sql: SqliteStatements, row: SqliteRow): readonly EventSpan[] {
  try {
    return findSpans(sql, row, 1, row.seq)
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

/** Returns the removed accounts. */
export function dropAccounts(sql: SqliteStatements, session: string): readonly string[] {
  const found = ownPrefixes(session).flatMap((prefix) => {
    const rows = sql.accountsFrom.all(prefix, `${prefix}\u{10ffff}`) as { id: string }[]
    return rows.map(({ id }) => id).filter((id) => isOwnAccount(session, id))
  })
  for (const id of found) sql.dropAccount.run(id)
  return found
}

export function dropEvents(sql: SqliteStatements, { n, seq, spans }: EventsToDrop): void {
  let gone = 0
  for (const { pos, count } of spans) gone += Number(sql.dropEvents.run(pos, pos + count - 1, n).changes)
  if (gone < seq) sql.dropStrays.run(n)
}
