// The prompt-cache contract: a request starts with the bytes of the one before. Where ours does not, it is found out here:
// what changed, where the first differing character is, and what reading it all again costs.
import type { Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Price } from '../models/price.ts'
import type { FrozenRun, FrozenRuns } from './frozen-run.ts'

/** What a request began with. */
export type Sent = {
  readonly frame: FrozenRun
  readonly messages: readonly Message[]
  /** Which model answered, and how many tokens that took. */
  readonly route: string | undefined
  readonly inputTokens: number
  /** No tool was allowed. Null where that changes nothing that is cached. */
  readonly barred: boolean | null
}

export type Miss = {
  readonly why: 'instructions' | 'tools' | 'tool_choice' | 'history' | 'model'
  /** The first differing character of the text that changed; for the history, the first differing message. */
  readonly at: number
}

const PAGE = 200

/** What the last answered request began with, as the log tells it: for a process that did not ask it itself. */
export async function recalled(store: Store, id: string, upTo: number, frames: FrozenRuns): Promise<Sent | null> {
  let reply: Extract<Event, { type: 'agent.message' }> | null = null
  let barred: boolean | null = null
  for (let end = upTo; end > 0; end -= PAGE) {
    const { events } = await store.read(id, Math.max(0, end - PAGE), Math.min(PAGE, end))
    for (const event of events.toReversed()) {
      if (event.type === 'agent.message') reply ??= event
      if (event.type === 'model.started' && reply !== null) barred ??= event.allow === 'none'
      if (event.type !== 'run.started' || reply === null) continue
      const frame = await frames.read(event.toolset, event.instructions)
      return { frame, messages: [], route: reply.route, inputTokens: reply.usage?.inputTokens ?? 0, barred }
    }
  }
  return null
}

/** Null: the provider could read from its cache all that it read before. */
export function missOf(before: Sent, now: Omit<Sent, 'inputTokens'>): Miss | null {
  if (before.route !== undefined && now.route !== undefined && before.route !== now.route)
    return { why: 'model', at: 0 }
  if (before.frame !== now.frame) {
    const tools = differsAt(JSON.stringify(before.frame.tools), JSON.stringify(now.frame.tools))
    if (tools >= 0) return { why: 'tools', at: tools }
    const instructions = differsAt(before.frame.instructions, now.frame.instructions)
    if (instructions >= 0) return { why: 'instructions', at: instructions }
  }
  // Anthropic keeps tools and instructions, and reads the conversation anew.
  const choice = now.barred !== null && before.barred !== null && now.barred !== before.barred
  if (choice && now.frame.tools.length > 0) return { why: 'tool_choice', at: 0 }
  const last = before.messages.length - 1
  if (last < 0 || now.messages[last] === before.messages[last]) return null
  return { why: 'history', at: before.messages.findIndex((message, i) => message !== now.messages[i]) }
}

/** What is recorded with the reply. Nothing if there is no cache price to miss. */
export function missed(miss: Miss, before: Sent, price: Price | null): Json {
  const dearer = price === null ? 0 : Math.max(0, price.input - (price.cached ?? price.input))
  return { ...miss, tokens: before.inputTokens, cost: Math.ceil(before.inputTokens * dearer) }
}

/** -1 if they are the same. */
function differsAt(a: string, b: string): number {
  if (a === b) return -1
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at++) if (a.charCodeAt(at) !== b.charCodeAt(at)) return at
  return shorter
}
