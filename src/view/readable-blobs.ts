// Finds the blobs that a session may read: those that it, another session of its tree, or a log it was forked from
// refers to. A store keeps the blobs of all its sessions by hash, so knowing a hash is no permission.
import type { Event } from '../kernel/event.ts'
import type { Blob, Store } from '../ports/store.ts'

/** Null: there is none, or the session may not read it. */
export async function blobFor(store: Store, session: string, hash: string): Promise<Blob | null> {
  const seen = new Set<string>()
  for (let log: string | null = session; log !== null && !seen.has(log); log = await forkOriginOf(store, log)) {
    seen.add(log)
    const blob = await store.blob(hash, log)
    if (blob !== null) return blob
  }
  return null
}

/** A child may read the blobs of its root's origin. */
async function forkOriginOf(store: Store, log: string): Promise<string | null> {
  const card = await store.card(log)
  const [created] = card === null ? [] : (await store.read(card.root, 0, 1)).events
  return created?.type === 'session.created' ? (created.fork?.session ?? null) : null
}

/**
 * All texts that look like a hash: tools store texts beside the log and name them in words, in metadata, and in other
 * such texts.
 */
export function hashesIn(text: string): readonly string[] {
  return text.match(/(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g) ?? []
}

/** The blobs that an event requires. */
export function requiredBlobs(event: Event): readonly string[] {
  if (event.type === 'run.started') {
    const { toolset, instructions, policy, options, now } = event
    const hashes = [toolset, instructions, policy, options, now?.toolset, now?.instructions]
    return hashes.filter((hashed) => hashed !== undefined)
  }
  if (event.type === 'session.created') return (event.attachments ?? []).map(({ hash }) => hash)
  const content = event.type === 'agent.tool_result' && typeof event.content !== 'string' ? [event.content.hash] : []
  const parts = 'parts' in event ? (event.parts ?? []) : []
  return [...content, ...parts.flatMap((part) => (part.type === 'blob' ? [part.hash] : []))]
}

/** The blobs that events mention, and those that the texts of these blobs mention, as far as they can be found. */
export async function findReferredBlobs(
  events: readonly Event[],
  find: (hash: string) => Promise<Blob | null>,
): Promise<ReadonlyMap<string, Blob>> {
  const found = new Map<string, Blob>()
  const wanted = new Set(events.flatMap((event) => hashesIn(JSON.stringify(event))))
  // A set may grow while it is walked; added entries are visited later.
  for (const hash of wanted) {
    const blob = await find(hash)
    if (!blob) continue
    found.set(hash, blob)
    if (!blob.media.startsWith('text/')) continue
    for (const mentioned of hashesIn(new TextDecoder().decode(blob.data))) wanted.add(mentioned)
  }
  return found
}
