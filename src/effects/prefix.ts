// The prompt-cache contract: a request starts with the bytes of the one before. Where ours does not, it is found out here:
// what changed, where the first differing character is, and what reading it all again costs.
import type { Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { CLEARED, type Message } from '../kernel/transcript.ts'
import { lengthIn } from '../context/window.ts'
import type { Price } from '../models/price.ts'
import { readTranscript, sizeOfMessage } from '../view/history.ts'
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
  /** `cleared`, `cut` and `fitted`: a compaction changed the messages. `history`: something else did. */
  readonly why: 'instructions' | 'tools' | 'tool_choice' | 'cleared' | 'cut' | 'fitted' | 'history' | 'model'
  /** The first differing character of the text that changed; for messages, the first differing one. */
  readonly at: number
  /** Of what the provider had read before, this part is read anew: all of it, or what stands after the first differing message. */
  readonly share: number
}

const PAGE = 200

/** What the last answered request began with, as the log tells it: for a process that did not ask it itself. */
export async function recalled(store: Store, id: string, upTo: number, frames: FrozenRuns): Promise<Sent | null> {
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
      return { frame, messages, route: reply.route, inputTokens: lengthIn(reply.usage), barred }
    }
  }
  return null
}

/** What the request had shown that this reply answered. */
async function messagesBefore(store: Store, id: string, reply: number): Promise<readonly Message[]> {
  return (await readTranscript(store, { id, upTo: reply - 1 })).transcript.messages
}

/** Null: the provider could read from its cache all that it read before. */
export function missOf(before: Sent, now: Omit<Sent, 'inputTokens'>): Miss | null {
  if (before.route !== undefined && now.route !== undefined && before.route !== now.route)
    return { why: 'model', at: 0, share: 1 }
  if (before.frame !== now.frame) {
    const tools = differsAt(JSON.stringify(before.frame.tools), JSON.stringify(now.frame.tools))
    if (tools >= 0) return { why: 'tools', at: tools, share: 1 }
    const instructions = differsAt(before.frame.instructions, now.frame.instructions)
    if (instructions >= 0) return { why: 'instructions', at: instructions, share: 1 }
  }
  // Anthropic keeps tools and instructions, and reads the conversation anew.
  const choice = now.barred !== null && before.barred !== null && now.barred !== before.barred
  if (choice && now.frame.tools.length > 0) return { why: 'tool_choice', at: 0, share: 1 }
  const at = before.messages.findIndex((message, i) => !isSame(message, now.messages[i]))
  if (at < 0) return null
  return { why: changeOf(before.messages[at], now.messages[at]), at, share: shareAfter(before, now.messages, at) }
}

/** A compaction makes new objects of messages that it leaves as they are. */
function isSame(one: Message, other: Message | undefined): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

function changeOf(before: Message | undefined, now: Message | undefined): Miss['why'] {
  const isSameMessage = before !== undefined && before.role === now?.role && before.seq === now.seq
  if (!isSameMessage) return now?.role === 'user' ? 'cut' : 'history'
  if (now.role === 'tool' && typeof now.content === 'string' && now.content.startsWith(CLEARED)) return 'cleared'
  return sizeOfMessage(now) < sizeOfMessage(before) ? 'fitted' : 'history'
}

/** Of the tokens that were read before, the part that stands in the new request after the first differing message. */
function shareAfter({ frame, messages }: Sent, now: readonly Message[], at: number): number {
  const sizeOfAll = (some: readonly Message[]): number => some.reduce((sum, message) => sum + sizeOfMessage(message), 0)
  const last = messages.at(-1)
  const end = now.findLastIndex((message) => message.role === last?.role && message.seq === last.seq)
  const again = sizeOfAll(now.slice(at, end + 1))
  const prefix = frame.instructions.length + JSON.stringify(frame.tools).length
  return Math.min(1, again / Math.max(1, prefix + sizeOfAll(messages)))
}

/** What is recorded with the reply. Nothing if there is no cache price to miss. */
export function describeMiss({ share, ...miss }: Miss, before: Sent, price: Price | null): Json {
  const dearer = price === null ? 0 : Math.max(0, price.input - (price.cached ?? price.input))
  const tokens = Math.ceil(before.inputTokens * share)
  return { ...miss, tokens, cost: Math.ceil(tokens * dearer) }
}

/** -1 if they are the same. */
function differsAt(a: string, b: string): number {
  if (a === b) return -1
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at++) if (a.charCodeAt(at) !== b.charCodeAt(at)) return at
  return shorter
}
