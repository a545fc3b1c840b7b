// The question at a limit of a run, in place of an end: may it go on for as much again? A yes is a message of the person,
// so the log has it, and the next run has the limits anew. While nothing follows the limit in the log, it is asked again.
import type { Result } from '../../index.ts'
import type { CompleteStore, Event, Limits } from '../../kernel/index.ts'
import { durationText } from '../../view/tree-rows.ts'
import { usdOf } from '../../view/usd.ts'

export type LimitName = Extract<Result, { status: 'limit' }>['limit']

/** True if it may help to go on: a context that is full stays full. Money has a question of its own. */
export function isRenewable(limit: LimitName): boolean {
  return limit !== 'context' && limit !== 'usd'
}

/** What was used up, and as much again. Null: the limit allows nothing at all, or is not known. */
export function limitTexts(limit: LimitName, limits: Limits): { readonly used: string; readonly more: string } | null {
  const counted = (count: number | null | undefined, what: string, used: string) => {
    if (!count) return null
    const number = count.toLocaleString('en')
    return { used: `${number} ${what} ${used}`, more: `${number} ${what}` }
  }
  if (limit === 'model_requests') return counted(limits.modelRequests, 'requests', 'were made')
  if (limit === 'tool_calls') return counted(limits.toolCalls, 'calls', 'were made')
  if (limit === 'tokens') return counted(limits.tokens, 'tokens', 'were used')
  if (limit !== 'active_ms' || limits.activeMs === 0) return null
  return { used: `It worked for ${durationText(limits.activeMs)}`, more: durationText(limits.activeMs) }
}

/** The limits of the run that the last event ended at a limit; null if anything else happened last. */
export function limitAtEnd(events: readonly Event[]): { readonly limit: LimitName; readonly limits: Limits } | null {
  const last = events.at(-1)
  const began = events.findLast((event) => event.type === 'run.started' || event.type === 'run.reviewed')
  if (last?.type !== 'run.settled' || last.outcome.type !== 'limit' || !began || !('limits' in began)) return null
  return { limit: last.outcome.limit, limits: began.limits }
}

export type GoOnReply =
  | { readonly type: 'yes' | 'no' }
  /** The person said something else, which is the next message. */
  | { readonly type: 'message'; readonly text: string }

export function parseGoOn(text: string | null): GoOnReply {
  const said = (text ?? '').trim()
  if (/^(y|yes)[.!]?$/i.test(said)) return { type: 'yes' }
  return said === '' || /^(n|no)[.!]?$/i.test(said) ? { type: 'no' } : { type: 'message', text: said }
}

/** How many dollars to offer: as much as the limit again, but enough for the next call. Null: the amounts are unknown. */
export function dollarsAgain(args: unknown): number | null {
  const { limit, spent = 0, held = 0, needed = 0 } = (args ?? {}) as Partial<Record<string, number>>
  if (typeof limit !== 'number') return null
  const cents = Math.ceil(Math.max(limit, spent + held + needed - limit) / 10_000)
  return cents > 0 ? usdOf(cents * 10_000) : null
}

/** Aborts when another process adds an event, because the question is answered then. */
export function watchForEvents(
  store: Pick<CompleteStore, 'card'>,
  session: string,
  seq: number,
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const others = new AbortController()
  const look = async (): Promise<void> => {
    if (((await store.card(session))?.seq ?? 0) > seq) others.abort()
  }
  // A store that cannot be read now answers nothing.
  const timer = setInterval(() => void look().catch(() => {}), LOOK_MS)
  return { signal: others.signal, stop: () => clearInterval(timer) }
}

const LOOK_MS = 500
