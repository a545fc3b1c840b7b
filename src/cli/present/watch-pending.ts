// Watches a pending call while a person is asked about it at a terminal. Other processes may decide the same call; then
// the question is withdrawn.
import type { Pending } from '../../index.ts'
import type { Event, Store } from '../../kernel/index.ts'
import { oneLine } from '../../view/clean.ts'
import { readEvents, readPending } from '../state/read-log.ts'
import { decisionText } from './outcome.ts'

/** How often the card of the session is read while its question is open. */
const LOOK_MS = 500

export type PendingWatch = {
  /** Aborted when the call no longer waits. */
  readonly signal: AbortSignal
  stop(): void
}

export function watchPending(store: Store, pending: Pending): PendingWatch {
  const withdrawn = new AbortController()
  let seen: number | null = null
  let isLooking = false
  const look = async (): Promise<void> => {
    const seq = (await store.card(pending.sessionId))?.seq ?? 0
    if (seq !== seen && !(await isStillOpen(store, pending))) withdrawn.abort()
    seen = seq
  }
  const timer = setInterval(() => {
    if (isLooking) return
    isLooking = true
    // A store that cannot be read now withdraws nothing. Recording the person's answer will report the error.
    void look()
      .catch(() => {})
      .finally(() => {
        isLooking = false
      })
  }, LOOK_MS)
  return { signal: withdrawn.signal, stop: () => clearInterval(timer) }
}

async function isStillOpen(store: Store, { sessionId, callId, digest }: Pending): Promise<boolean> {
  const open = await readPending(store, sessionId)
  return open.some((each) => each.sessionId === sessionId && each.callId === callId && each.digest === digest)
}

/** Tells the person who was asked that somebody else decided the call, and who it was. */
export async function withdrawnText(store: Store, { sessionId, callId }: Pending): Promise<string> {
  const from = Math.max(0, Number.parseInt(callId, 10) || 0)
  let said = 'it no longer waits'
  for await (const event of readEvents(store, sessionId, from)) said = decisionTextIn(event, callId) ?? said
  return `This question is withdrawn: ${said}.`
}

function decisionTextIn(event: Event, callId: string): string | null {
  if (event.type === 'user.tool_confirmation' && event.call === callId) return decisionText(event)
  if (event.type !== 'user.custom_tool_result' || event.call !== callId) return null
  return event.by === undefined ? 'answered' : `answered by ${oneLine(event.by)}`
}
