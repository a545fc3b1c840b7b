// What a run under test leaves behind for the rules: a note of each handler, look and request, and at the end the logs
// and the world. Plain JSON, so that a process that is killed can write it as it goes.
import type { EffectClass, Json } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Message } from '../../kernel/transcript.ts'
import type { CrashPoint } from './points.ts'

type OfCall = { readonly key: string; readonly tool: string; readonly effect: EffectClass }
export type CrashNote =
  | ({ readonly type: 'began' | 'ended' } & OfCall)
  /** Nothing else ran beside it. `again`: the call had ended before. `changed`: where the world was another after it. */
  | ({ readonly type: 'looked'; readonly again: boolean; readonly changed: string | null } & OfCall)
  /** Whether `reconcile` gave a result, and whether the call took effect; null if that is not known. */
  | ({ readonly type: 'reconciled'; readonly found: boolean; readonly happened: boolean | null } & OfCall)
  /** `wrong`: why the request is not whole. */
  | { readonly type: 'request'; readonly session: string; readonly wrong: string | null }

/** A run under test, with or without a crash. */
export type CrashTrial = {
  readonly point: CrashPoint
  /** False: the first life ended without coming to the point. */
  readonly reached: boolean
  readonly notes: readonly CrashNote[]
  /** Why the run did not settle. */
  readonly trouble: string | null
  /** By session, the root first. */
  readonly logs: Readonly<Record<string, readonly Event[]>>
  /** What the world held at the end. */
  readonly world: Json
}

/** The session and the message are the same in every life. */
export const SESSION = 'crash-test'
export const MESSAGE = 'crash-test-message'

/** Where a request is not whole: each call in it needs its one result, and each result its call. */
export function whyNotWhole(messages: readonly Message[]): string | null {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant') {
      const [first] = open
      if (first !== undefined) return `call ${first} has no result before the next reply`
      for (const { key } of message.calls) open.add(key)
    } else if (message.role === 'tool' && !open.delete(message.call)) {
      return `the result of call ${message.call} has no call, or is there twice`
    }
  }
  const [first] = open
  return first === undefined ? null : `call ${first} has no result`
}
