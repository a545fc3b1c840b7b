// What requests to a model show: message by message or summed up by source, what was cut and cleared on the way, what the provider
// read from its cache, and where and why it could not. Pure, from the log alone.
import type { Allow, Frozen, Hash } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY } from '../kernel/session.ts'
import { CLEARED, type Message, Transcript } from '../kernel/transcript.ts'
import { sizeOfMessage, upcoming } from './history.ts'
import { isObject, listOf, parsed, stringOf } from './json.ts'
import { textOf } from './text.ts'

/**
 * `tool`: what the model is told of one tool. `context`: what hooks and memory added. `notice`: what the harness said. `result`: the
 * results of one tool that are whole; `cleared` those that are not.
 */
export type SourceKind =
  | 'instructions'
  | 'tool'
  | 'pin'
  | 'summary'
  | 'context'
  | 'notice'
  | 'user'
  | 'assistant'
  | 'result'
  | 'cleared'

/** As people read them. */
export const SOURCE_NAMES: Readonly<Record<SourceKind, string>> = {
  instructions: 'instructions',
  tool: 'tools',
  pin: 'pinned messages',
  summary: 'summary of what was cut',
  context: 'from hooks and memory',
  notice: 'notices of the harness',
  user: 'messages of users',
  assistant: 'messages of the model',
  result: 'results of tools',
  cleared: 'results that were cleared',
}

/** So many messages of one source. `name` is that of a tool. */
export type ShownSource = Frozen<{ source: SourceKind; name?: string; count: number; chars: number }>

/** One message of a request. `inherited`: it comes from the log that this one was forked from, and `seq` is of that log. */
export type ContextPart = Frozen<{
  source: SourceKind
  name?: string
  seq: number
  chars: number
  inherited?: true
  message: Message
}>

/** What one event took out of the requests after it: so many messages that were summed up, and results that were cleared. */
export type CompactionRecord = Frozen<{
  seq: number
  at: number
  messages: number
  results: number
  before: number | null
  after: number | null
  cost: number
  /** Why it failed. */
  failed?: string
}>

/**
 * A request that did not begin with the bytes of the one before, as its reply tells it. `why` names what changed, `at` where: the first
 * other character of instructions or tools, or the first other message.
 */
export type CacheMiss = Frozen<{ seq: number; why: string; tokens: number; cost: number; at?: number }>

type Of<T extends Event['type']> = Extract<Event, { type: T }>

/** Everything that a log tells of its requests, in one pass. */
export class ContextLog {
  readonly compactions: CompactionRecord[] = []
  readonly misses: CacheMiss[] = []
  cache: Frozen<{ seq: number; inputTokens: number; cachedTokens: number }> | null = null
  model: string | null = null
  made = 0
  started: Of<'run.started'> | null = null
  /** What is shown of the prefix: that of an imported run is made anew. */
  prefix: { readonly toolset: Hash; readonly instructions: Hash } | null = null
  seq = 0
  readonly #transcript: Transcript
  readonly #session = open(EMPTY)
  /** Which messages of the user's role are not the user's, by seq. */
  readonly #kinds = new Map<number, SourceKind>()

  /** With what a fork inherited. */
  constructor(transcript: Transcript = new Transcript()) {
    this.#transcript = transcript
  }

  take(event: Event): void {
    this.seq = event.seq
    take(this.#session, event)
    if (event.type === 'context.compacted') return this.#compact(event)
    this.#transcript.take(event)
    if (event.type === 'note.added') this.#kinds.set(event.seq, event.kind === 'context' ? 'context' : 'notice')
    else if (event.type === 'model.failed') this.#kinds.set(event.seq, 'notice')
    else if (event.type === 'run.started') this.#begin(event)
    else if (event.type === 'run.reviewed') this.prefix = event
    else if (event.type === 'agent.message') this.#reply(event)
  }

  /** What the last request showed, message by message; after its reply, that too. */
  get parts(): readonly ContextPart[] {
    return this.#transcript.messages.map((message) => {
      const { seq } = message
      const inherited = this.#transcript.inherited.has(message) ? ({ inherited: true } as const) : {}
      return { ...this.#sourceOf(message), seq, chars: sizeOfMessage(message), ...inherited, message }
    })
  }

  /** What a request would show now, by source. Nothing can be taken after it. */
  upcoming(): readonly ShownSource[] {
    const shows = upcoming(this.#session)
    this.#transcript.take({ seq: this.seq + 1, at: 0, epoch: 0, type: 'model.started', shows })
    return bySource(this.parts)
  }

  #sourceOf(message: Message): { readonly source: SourceKind; readonly name?: string } {
    if (message.role === 'assistant') return { source: 'assistant' }
    if (message.role === 'tool') return { source: isCleared(message) ? 'cleared' : 'result', name: message.tool }
    if (message.pin) return { source: 'pin' }
    if (!this.#transcript.inherited.has(message)) return { source: this.#kinds.get(message.seq) ?? 'user' }
    // Its number is of another log, so its words must say what it is.
    const text = textOf(message.parts)
    return { source: TAGS.find(([tag]) => text.startsWith(tag))?.[1] ?? 'user' }
  }

  #begin(event: Of<'run.started'>): void {
    this.started = event
    this.prefix = event
    if (event.model !== undefined) this.made += 1
  }

  #reply(event: Of<'agent.message'>): void {
    const { seq, usage, route } = event
    this.model = route ?? this.model
    if (usage) this.cache = { seq, inputTokens: usage.inputTokens, cachedTokens: usage.cachedTokens ?? 0 }
    this.misses.push(...missIn(event))
  }

  #compact(event: Of<'context.compacted'>): void {
    const { seq, at, cut, cleared, summary, failed, before = null, after = null, cost = 0 } = event
    const had = this.#transcript.messages.length
    const empty = this.#clearedCount()
    this.#transcript.take(event)
    this.#kinds.set(seq, 'summary')
    // A pin that was set or taken away is no compaction.
    const isShorter = cut !== undefined || cleared !== undefined || event.fitted !== undefined
    if (!isShorter && failed === undefined && cost === 0) return
    const messages = had - this.#transcript.messages.length + (summary === undefined ? 0 : 1)
    const results = cut === undefined ? this.#clearedCount() - empty : 0
    const why = failed === undefined ? {} : { failed }
    this.compactions.push({ seq, at, messages, results, before, after, cost, ...why })
  }

  #clearedCount(): number {
    return this.#transcript.messages.filter(isCleared).length
  }
}

/** What one request showed, and what came of it. Instructions and tools are blobs, by the hashes of `prefix`. */
export type ShownRequest = Frozen<{
  seq: number
  at: number
  /** Which tools it could use, where that was not all of them. */
  allow?: Allow
  tools?: readonly string[]
  prefix: ContextLog['prefix']
  parts: readonly ContextPart[]
  /** How many parts at the beginning are those of the request before it. Null: it is the first. */
  kept: number | null
  /** Null: there is no answer yet. */
  answer: RequestAnswer | null
}>
type RequestAnswer = Frozen<
  | ({ type: 'reply'; seq: number; at: number; route?: string; inputTokens: number | null } & CacheUse)
  | { type: 'failed'; seq: number; at: number; route?: string; class: string; message: string }
>
/** In tokens, and in millionths of a dollar. */
type CacheUse = { cachedTokens: number; cacheWriteTokens: number; cost: number; kept?: true; missed: CacheMiss | null }

/** The requests of these events, by their seqs. */
export function requestsIn(events: readonly Event[]): readonly number[] {
  return events.flatMap(({ type, seq }) => (type === 'model.started' ? [seq] : []))
}

/** The request that event `seq` made. `events` begin with the first of the log. Null: that event made none. */
export function requestAt(events: readonly Event[], seq: number, inherited = new Transcript()): ShownRequest | null {
  const index = events.findIndex((event) => event.seq === seq)
  const asked = events[index]
  if (asked?.type !== 'model.started') return null
  const log = new ContextLog(inherited)
  const before = events.findLastIndex(({ type }, i) => type === 'model.started' && i < index)
  for (const event of events.slice(0, before + 1)) log.take(event)
  const first = before < 0 ? null : log.parts
  for (const event of events.slice(before + 1, index + 1)) log.take(event)
  const { parts, prefix } = log
  const other = first?.findIndex(({ message }, i) => parts[i]?.message !== message)
  const kept = first === null ? null : other === undefined || other < 0 ? first.length : other
  const { at, allow, tools } = asked
  const may = { ...(allow === undefined ? {} : { allow }), ...(tools === undefined ? {} : { tools }) }
  return { seq, at, ...may, prefix, parts, kept, answer: answerIn(events.slice(index + 1)) }
}

function answerIn(after: readonly Event[]): RequestAnswer | null {
  const event = after.find(({ type }) => type === 'agent.message' || type === 'model.failed')
  if (event?.type === 'model.failed') {
    const { seq, at, class: kind, message, route } = event
    return { type: 'failed', seq, at, class: kind, message, ...(route === undefined ? {} : { route }) }
  }
  if (event?.type !== 'agent.message') return null
  const { seq, at, usage, cost = 0, route, cached } = event
  const { inputTokens = null, cachedTokens = 0, cacheWriteTokens = 0 } = usage ?? {}
  const [missed = null] = missIn(event)
  const named = { ...(route === undefined ? {} : { route }), ...(cached ? { kept: true as const } : {}) }
  return { type: 'reply', seq, at, inputTokens, cachedTokens, cacheWriteTokens, cost, missed, ...named }
}

/** In the order of a request, the largest of each kind first. */
export function bySource(parts: readonly Omit<ContextPart, 'message'>[]): readonly ShownSource[] {
  const sums = new Map<string, ShownSource>()
  for (const { source, name, chars } of parts) {
    const key = `${source} ${name ?? ''}`
    const before = sums.get(key) ?? { count: 0, chars: 0 }
    const sum = { count: before.count + 1, chars: before.chars + chars }
    sums.set(key, { source, ...(name === undefined ? {} : { name }), ...sum })
  }
  return [...sums.values()].sort((a, b) => ORDER.indexOf(a.source) - ORDER.indexOf(b.source) || b.chars - a.chars)
}

/** What the model is told of each tool, from the frozen toolset as it is kept. */
export function toolSources(toolset: string): readonly ShownSource[] {
  return listOf(parsed(toolset)).flatMap((tool): readonly ShownSource[] => {
    if (!isObject(tool)) return []
    const { name, description, parameters } = tool
    const chars = JSON.stringify({ name, description, parameters }).length
    return [{ source: 'tool', name: stringOf(name), count: 1, chars }]
  })
}

/** At most one. What stands in a log may be of another version, so it is not believed. */
export function missIn({ seq, missed }: Of<'agent.message'>): readonly CacheMiss[] {
  if (missed === undefined) return []
  const { why, tokens, cost, at } = (missed ?? {}) as Readonly<Record<string, unknown>>
  const count = (value: unknown): number => (typeof value === 'number' ? value : 0)
  const place = typeof at === 'number' ? { at } : {}
  return [{ seq, why: typeof why === 'string' ? why : '?', tokens: count(tokens), cost: count(cost), ...place }]
}

/** What changed, and where. Of another version's words nothing is known. */
export function missText({ why, at }: Pick<CacheMiss, 'why' | 'at'>): string {
  const from = at === undefined ? '' : ` from message ${at + 1} on`
  switch (why) {
    case 'instructions':
    case 'tools':
      return `the ${why} changed${at === undefined ? '' : ` from character ${at.toLocaleString('en')} on`}`
    case 'history':
      return `the messages changed${from}`
    case 'cleared':
      return `old results were cleared${from}`
    case 'cut':
      return `the older part was cut${from}`
    case 'fitted':
      return `long texts were shortened${from}`
    case 'model':
      return 'another model was asked, which has a cache of its own'
    case 'tool_choice':
      return 'the choice of tools changed'
    default:
      return `${why} changed`
  }
}

const ORDER: readonly SourceKind[] = ['pin', 'summary', 'context', 'notice', 'user', 'assistant', 'result', 'cleared']
const TAGS = [
  ['<conversation-summary>', 'summary'],
  ['<hook_context>', 'context'],
  ['<harness_notice', 'notice'],
] as const

/** With the key of its call behind it. */
function isCleared(message: Message): boolean {
  return (
    message.role === 'tool' && typeof message.content === 'string' && message.content.startsWith(`${CLEARED} call:`)
  )
}
