// A file of a session for a page: the bytes of what its log refers to, and of nothing else. They come from models and strangers, so a
// browser must not run them.
import type { BlobRef } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Session } from '../sessions/verbs.ts'
import type { Stretch } from './branches.ts'
import { refusal } from './http.ts'

const PAGE = 1_000
const MEDIA = /^[\w.+-]+\/[\w.+-]+$/
/** What a browser only shows. Everything else is saved. */
const SHOWN = /^image\/(png|jpeg|gif|webp)$/

export async function fileResponse(stretches: readonly Stretch[], hash: string): Promise<Response> {
  const { ref, session } = (await referenceIn(stretches, hash)) ?? {}
  const blob = ref && (await session?.blob(ref))
  if (!blob) return refusal(404, 'not_found', 'This session has no such file.')
  const headers = {
    // A log may come from elsewhere, and a page must not break on what it calls a file.
    'content-type': MEDIA.test(ref.media) ? ref.media : 'application/octet-stream',
    'content-disposition': SHOWN.test(ref.media) ? 'inline' : 'attachment',
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    // Its name is the hash of what it holds.
    'cache-control': 'private, max-age=31536000, immutable',
  }
  return new Response(new Uint8Array(blob.data), { headers })
}

async function referenceIn(
  stretches: readonly Stretch[],
  hash: string,
): Promise<{ readonly ref: BlobRef; readonly session: Session } | null> {
  for (const { session, upTo } of stretches.toReversed()) {
    const ref = await referenceTo(session, hash, upTo)
    if (ref) return { ref, session }
  }
  return null
}

async function referenceTo(session: Session, hash: string, upTo: number): Promise<BlobRef | null> {
  for (let after = 0; ; ) {
    const { events } = await session.read(after, PAGE)
    const here = events.filter(({ seq }) => seq <= upTo)
    const found = here.flatMap(filesIn).find((ref) => ref.hash === hash)
    const last = here.at(-1)
    if (found || last === undefined) return found ?? null
    after = last.seq
  }
}

function filesIn(event: Event): readonly BlobRef[] {
  if (event.type !== 'user.message' && event.type !== 'agent.message' && event.type !== 'agent.tool_result') return []
  return (event.parts ?? []).filter((part) => part.type === 'blob')
}
