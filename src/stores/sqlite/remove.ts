// How the rows of a removed session go, and how the file gets smaller. Inside the transaction of a batch; what may go is decided by
// removal.ts. Events go last of all: until then new ones must lie where their spans say.
import type { Removal } from '../../ports/store.ts'
import { isOwnAccount, ownPrefixes } from '../plan/charges.ts'
import type { Row } from './rows.ts'
import { SPAN, type Statements } from './schema.ts'
import { findSpans, type Span } from './spans.ts'

/** Events that are still to be deleted. */
export type Left = { readonly n: number; readonly seq: number; readonly spans: readonly Span[] }

type Gone = { readonly removal: Removal; readonly left: Left }

/** After this the session is not there: its id may be used again at once. */
export function dropSession(sql: Statements, session: string, row: Row, log: Pick<Removal, 'at' | 'by'>): Gone {
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

/** A damaged index must not keep a session from being removed. */
function spansOf(sql: Statements, row: Row): readonly Span[] {
  try {
    return findSpans(sql, row, 1, row.seq)
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

/** Returns which they were. */
export function dropAccounts(sql: Statements, session: string): readonly string[] {
  const found = ownPrefixes(session).flatMap((prefix) => {
    const rows = sql.accountsFrom.all(prefix, `${prefix}\u{10ffff}`) as { id: string }[]
    return rows.map(({ id }) => id).filter((id) => isOwnAccount(session, id))
  })
  for (const id of found) sql.dropAccount.run(id)
  return found
}

export function dropEvents(sql: Statements, { n, seq, spans }: Left): void {
  let gone = 0
  for (const { pos, count } of spans) gone += Number(sql.dropEvents.run(pos, pos + count - 1, n).changes)
  if (gone < seq) sql.dropStrays.run(n)
}
