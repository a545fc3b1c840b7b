// Where a session was opened, as the log has it, and what a model is told of that. How a host gives it: sessions/origin.ts.

import type { Frozen, BlobRef } from '../../kernel/content.ts'
import type { SessionDescription, Event } from '../../kernel/event.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { readSessionHead } from './session-tree.ts'

/** The origin in the form of `session.created`. */
export type SessionOrigin = Frozen<{ environment?: string; attachments?: readonly BlobRef[] } & SessionDescription>
type OriginLookup = {
  readonly id: string
  /** The first event of its log, if it is already read. */
  readonly first?: Event | undefined
  /** The seq of its import, if there was one. */
  readonly imported: number | undefined
  /** The environment of its agent in this harness. */
  readonly here: string | null
}
/** The environment given by the host that opened the session with messages, or else that of its agent here. */
async function importedEnvironment(
  store: CompleteStore,
  { id, imported, here }: { readonly id: string; readonly imported: number; readonly here: string | null },
): Promise<string | undefined> {
  const [arrived] = (await store.read(id, imported - 1, 1)).events
  return (arrived?.type === 'session.imported' ? arrived.environment : undefined) ?? here ?? undefined
}
/**
 * The session's own origin from its log, without its description, which an import may have dropped. The environment
 * becomes a part of the instructions, so an imported session has that of its agent here, and not the one that the file
 * names.
 */
export async function readOrigin(
  store: CompleteStore,
  { id, first, imported, here }: OriginLookup,
): Promise<SessionOrigin> {
  const created = first ?? (await store.read(id, 0, 1)).events[0]
  if (created?.type !== 'session.created') return {}
  const { attachments, parent, fork } = created
  // A child that continues its parent's conversation has the same origin.
  if (parent && fork) {
    const above = await readSessionHead(store, fork.session)
    return readOrigin(store, { id: fork.session, imported: above.imported, here })
  }
  const environment =
    imported === undefined ? created.environment : await importedEnvironment(store, { id, imported, here })
  return { ...(environment === undefined ? {} : { environment }), ...(attachments ? { attachments } : {}) }
}
/** The text for the model: the same bytes in every run of a session. Empty if there is nothing to tell. */
export function originText({ environment, attachments = [] }: SessionOrigin): string {
  const lines = environment === undefined ? [] : [`Environment: ${environment}`]
  if (attachments.length > 0) lines.push('Attached files (read-only; read one by its path):')
  for (const { name = 'a file', media, bytes, hash } of attachments)
    lines.push(`- ${name} (${media}, ${bytes} bytes): blob:${hash}`)
  return lines.join('\n')
}
