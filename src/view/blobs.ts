// Which blobs a session may read: those that it, another session of its tree, or a log it was forked from refers to. A store keeps the
// blobs of all its sessions under their hashes, so a hash alone is no permission.
import type { Blob, Store } from '../ports/store.ts'

/** Null: there is none, or it belongs to others. */
export async function blobFor(store: Store, session: string, hash: string): Promise<Blob | null> {
  const seen = new Set<string>()
  for (let log: string | null = session; log !== null && !seen.has(log); log = await originOf(store, log)) {
    seen.add(log)
    const blob = await store.blob(hash, log)
    if (blob !== null) return blob
  }
  return null
}

/** A child reads what the origin of its root has. */
async function originOf(store: Store, log: string): Promise<string | null> {
  const card = await store.card(log)
  const [created] = card === null ? [] : (await store.read(card.root, 0, 1)).events
  return created?.type === 'session.created' ? (created.fork?.session ?? null) : null
}

/**
 * Whatever looks like a hash anywhere in a text: tools keep texts beside the log and name them in words, in metadata, and in texts
 * that are beside the log themselves.
 */
export function mentionsIn(text: string): readonly string[] {
  return text.match(/(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g) ?? []
}
