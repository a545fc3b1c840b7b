// The prompt-cache contract: a request starts with the bytes of the one before. This file finds out where ours does
// not: what changed, the first differing character, and the cost of reading the rest again.
import type { Json } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'
import { CLEARED, type Message } from '../../kernel/transcript.ts'
import { requestLength } from '../../context/window-fill.ts'
import type { Price } from '../../models/price.ts'
import { readTranscript, sizeOfMessage } from '../../view/session-history.ts'
import type { FrozenRuns } from '../state/frozen-run.ts'
import type { RequestPrefix } from '../state/session-cache.ts'

export type PrefixMiss = {
  /** `cleared`, `cut` and `fitted`: a compaction changed the messages. `history`: something else did. */
  readonly why: 'instructions' | 'tools' | 'tool_choice' | 'cleared' | 'cut' | 'fitted' | 'history' | 'model'
  /** The first differing character of the text that changed; for messages, the first differing one. */
  readonly at: number
  /**
   * The share of the previously read tokens that is read anew: all of it, or the part after the first differing
   * message.
   */
  readonly share: number
}

const PAGE = 200

/**
 * Reads the beginning of the last answered request from the log, for a process that did not make the request itself.
 */
export async function recallPrefix(
  store: Store,
  id: string,
  upTo: number,
  frames: FrozenRuns,
): Promise<RequestPrefix | null> {
  let reply: Extract<Event, { type: 'agent.message' }> | null = null
  let barred: boolean | null = null
  let isCompacted = false
  for (let end = upTo; end > 0; end -= PAGE) {
    const { events } = await store.read(id, Math.max(0, end - PAGE), Math.min(PAGE, end))
    for (const event of events.toReversed()) {
      if (event.type === 'agent.message') reply ??= event
      isCompacted ||= event.type === 'context.compacted' && reply === null
      if (event.type === 'model.started' && reply !== null) barred ??= event.allow === 'none'
      if (event.type !== 'run.started' || reply === null) continue
      const frame = await frames.read(event.toolset, event.instructions)
      const messages = isCompacted ? await messagesBefore(store, id, reply.seq) : []
      return { frame, messages, route: reply.route, inputTokens: requestLength(reply.usage), barred }
    }
  }
  return null
}

/** The messages of the request that this reply answered. */
async function messagesBefore(store: Store, id: string, reply: number): Promise<readonly Message[]> {
  return (await readTranscript(store, { id, upTo: reply - 1 })).transcript.messages
}

/** Null: the provider could read everything it read before from its cache. */
export function findPrefixMiss(before: RequestPrefix, now: Omit<RequestPrefix, 'inputTokens'>): PrefixMiss | null {
  if (before.route !== undefined && now.route !== undefined && before.route !== now.route)
    return { why: 'model', at: 0, share: 1 }
  if (before.frame !== now.frame) {
    const tools = firstDifference(JSON.stringify(before.frame.tools), JSON.stringify(now.frame.tools))
    if (tools >= 0) return { why: 'tools', at: tools, share: 1 }
    const instructions = firstDifference(before.frame.instructions, now.frame.instructions)
    if (instructions >= 0) return { why: 'instructions', at: instructions, share: 1 }
  }
  // When the tool choice changes, Anthropic keeps tools and instructions cached, and reads the conversation anew.
  const choice = now.barred !== null && before.barred !== null && now.barred !== before.barred
  if (choice && now.frame.tools.length > 0) return { why: 'tool_choice', at: 0, share: 1 }
  const at = before.messages.findIndex((message, i) => !areSameMessages(message, now.messages[i]))
  if (at < 0) return null
  return { why: whyChanged(before.messages[at], now.messages[at]), at, share: shareAfter(before, now.messages, at) }
}

/** A compaction makes new objects even of messages that it does not change. */
function areSameMessages(one: Message, other: Message | undefined): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

function whyChanged(before: Message | undefined, now: Message | undefined): PrefixMiss['why'] {
  const isSameMessage = before !== undefined && before.role === now?.role && before.seq === now.seq
  if (!isSameMessage) return now?.role === 'user' ? 'cut' : 'history'
  if (now.role === 'tool' && typeof now.content === 'string' && now.content.startsWith(CLEARED)) return 'cleared'
  return sizeOfMessage(now) < sizeOfMessage(before) ? 'fitted' : 'history'
}

/** The share of the previously read tokens that stands in the new request after the first differing message. */
function shareAfter({ frame, messages }: RequestPrefix, now: readonly Message[], at: number): number {
  const sizeOfAll = (some: readonly Message[]): number => some.reduce((sum, message) => sum + sizeOfMessage(message), 0)
  const last = messages.at(-1)
  const end = now.findLastIndex((message) => message.role === last?.role && message.seq === last.seq)
  const again = sizeOfAll(now.slice(at, end + 1))
  const prefix = frame.instructions.length + JSON.stringify(frame.tools).length
  return Math.min(1, again / Math.max(1, prefix + sizeOfAll(messages)))
}

/** The description that is recorded with the reply. Without a cache price the cost is 0. */
export function describeMiss({ share, ...miss }: PrefixMiss, before: RequestPrefix, price: Price | null): Json {
  const dearer = price === null ? 0 : Math.max(0, price.input - (price.cached ?? price.input))
  const tokens = Math.ceil(before.inputTokens * share)
  return { ...miss, tokens, cost: Math.ceil(tokens * dearer) }
}

/** Returns -1 if the texts are equal. */
function firstDifference(a: string, b: string): number {
  if (a === b) return -1
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at++) if (a.charCodeAt(at) !== b.charCodeAt(at)) return at
  return shorter
}
