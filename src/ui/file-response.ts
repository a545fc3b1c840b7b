// Serves a file of a session to a page: only bytes that its log refers to. They come from models and strangers, so a
// browser must not run them.
import type { BlobRef } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Session } from '../sessions/verbs.ts'
import type { BranchLog } from './chat-branches.ts'
import { refusalResponse } from './ui-http.ts'

const PAGE = 1_000
const MEDIA = /^[\w.+-]+\/[\w.+-]+$/
/** Media types that a browser displays. All others are downloaded. */
const SHOWN = /^image\/(png|jpeg|gif|webp)$/

export async function fileResponse(stretches: readonly BranchLog[], hash: string): Promise<Response> {
  const { ref, session } = (await findReference(stretches, hash)) ?? {}
  const blob = ref && (await session?.blob(ref))
  if (!blob) return refusalResponse(404, 'not_found', 'This session has no such file.')
  const headers = {
    // An imported log may claim any media type, so an invalid one is replaced.
    'content-type': MEDIA.test(ref.media) ? ref.media : 'application/octet-stream',
    'content-disposition': SHOWN.test(ref.media) ? 'inline' : 'attachment',
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    // The address contains the hash of the content, so it never changes.
    'cache-control': 'private, max-age=31536000, immutable',
  }
  return new Response(new Uint8Array(blob.data), { headers })
}

async function findReference(
  stretches: readonly BranchLog[],
  hash: string,
): Promise<{ readonly ref: BlobRef; readonly session: Session } | null> {
  for (const { session, upTo } of stretches.toReversed()) {
    const ref = await findReferenceInLog(session, hash, upTo)
    if (ref) return { ref, session }
  }
  return null
}

async function findReferenceInLog(session: Session, hash: string, upTo: number): Promise<BlobRef | null> {
  for (let after = 0; ; ) {
    const { events } = await session.events({ after, limit: PAGE })
    const here = events.filter(({ seq }) => seq <= upTo)
    const found = here.flatMap(eventFiles).find((ref) => ref.hash === hash)
    const last = here.at(-1)
    if (found || last === undefined) return found ?? null
    after = last.seq
  }
}

function eventFiles(event: Event): readonly BlobRef[] {
  if (event.type !== 'user.message' && event.type !== 'agent.message' && event.type !== 'agent.tool_result') return []
  return (event.parts ?? []).filter((part) => part.type === 'blob')
}
