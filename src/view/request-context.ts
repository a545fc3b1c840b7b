// Shows the content of model requests: by message or summed by source, what was cut and cleared, what the provider read
// from its cache, and where and why it could not. Pure, from the log alone.
import type { Allow, Frozen, Hash } from '../kernel/content.ts'
import type { Event, EventOf } from '../kernel/event.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY } from '../kernel/session.ts'
import { CLEARED, type Message, Transcript } from '../kernel/transcript.ts'
import { sizeOfMessage, upcomingSeqs } from './session-history.ts'
import { isObject, asList, parseJson, asString } from './untrusted-json.ts'
import { textOf } from './shown-text.ts'

/**
 * `tool`: the definition of one tool. `context`: additions of hooks and memory. `notice`: notices of the harness.
 * `result`: complete results of one tool; `cleared`: results that were cleared.
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

/** The names for people. */
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

/** The messages of a request that come from one source. */
export type ShownSource = Frozen<{
  /** What kind of messages they are. */
  source: SourceKind
  /** The name of the tool. Absent for sources that are no tools. */
  name?: string
  /** How many messages or definitions they are. */
  count: number
  /** How many characters they have. */
  chars: number
}>

/** One message of a request. */
export type ContextPart = Frozen<{
  /** What kind of message it is. */
  source: SourceKind
  /** The name of the tool. Absent for sources that are no tools. */
  name?: string
  /** The event that added it. For an inherited one it counts in the log that this one was forked from. */
  seq: number
  /** How many characters it has. */
  chars: number
  /** It comes from the log that this one was forked from. */
  inherited?: true
  /** The message as the model is shown it. */
  message: Message
}>

/** The effect of one event on later requests. */
export type CompactionRecord = Frozen<{
  /** The event that recorded it. */
  seq: number
  /** When it was recorded, in ms since 1970. */
  at: number
  /** How many messages were cut or summarised. */
  messages: number
  /** How many results of tools were cleared. */
  results: number
  /** About how many tokens the conversation had. Null if that was not counted. */
  before: number | null
  /** About how many tokens it has since. Null if that was not counted. */
  after: number | null
  /** What the summary cost, in millionths of a dollar. 0 if no model was asked. */
  cost: number
  /** Why it failed. */
  failed?: string
}>

/** A request that did not begin with the bytes of the one before, according to its reply. */
export type CacheMiss = Frozen<{
  /** The reply that found it out. */
  seq: number
  /** What changed: the instructions, the tools, the messages, the model or how tools were allowed. */
  why: string
  /** How many tokens the provider had to read again. */
  tokens: number
  /** What that cost more, in millionths of a dollar. */
  cost: number
  /** The first different character of instructions or tools, or the first different message. Absent if unknown. */
  at?: number
}>

/** Collects everything that a log says about its requests, in one pass. */
export class ContextLog {
  /** What was cut or cleared so far, the oldest first. */
  readonly compactions: CompactionRecord[] = []
  /** The requests that the provider's cache could not serve as it should, the oldest first. */
  readonly misses: CacheMiss[] = []
  /** What the provider read from its cache for the last reply. Null before a reply with usage. */
  cache: Frozen<{ seq: number; inputTokens: number; cachedTokens: number }> | null = null
  /** The model that answered last. Null until a reply names it. */
  model: string | null = null
  /** How often instructions and tools were made anew. */
  made = 0
  /** The start of the last run. Null before the first. */
  started: EventOf<'run.started'> | null = null
  /** The hashes of the prefix shown; after an import they come from its review. */
  prefix: { readonly toolset: Hash; readonly instructions: Hash } | null = null
  /** The last event that was taken. */
  seq = 0
  readonly #transcript: Transcript
  readonly #session = open(EMPTY)
  /** Messages with the user role that are not from the user, by seq. */
  readonly #kinds = new Map<number, SourceKind>()

  /** `transcript` may contain what a fork inherited. */
  constructor(transcript: Transcript = new Transcript()) {
    this.#transcript = transcript
  }

  /** Takes the next event of the log. */
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

  /** The messages of the last request, and after its reply that too. */
  get parts(): readonly ContextPart[] {
    return this.#transcript.messages.map((message) => {
      const { seq } = message
      const inherited = this.#transcript.inherited.has(message) ? ({ inherited: true } as const) : {}
      return { ...this.#sourceOf(message), seq, chars: sizeOfMessage(message), ...inherited, message }
    })
  }

  /** The content of the next request by source. Nothing can be taken after this call. */
  upcoming(): readonly ShownSource[] {
    const shows = upcomingSeqs(this.#session, this.#session.at)
    this.#transcript.take({ seq: this.seq + 1, at: 0, epoch: 0, type: 'model.started', shows })
    return bySource(this.parts)
  }

  #sourceOf(message: Message): { readonly source: SourceKind; readonly name?: string } {
    if (message.role === 'assistant') return { source: 'assistant' }
    if (message.role === 'tool') return { source: isCleared(message) ? 'cleared' : 'result', name: message.tool }
    if (message.pin) return { source: 'pin' }
    if (!this.#transcript.inherited.has(message)) return { source: this.#kinds.get(message.seq) ?? 'user' }
    // Its number belongs to another log, so its text must show its kind.
    const text = textOf(message.parts)
    return { source: TAGS.find(([tag]) => text.startsWith(tag))?.[1] ?? 'user' }
  }

  #begin(event: EventOf<'run.started'>): void {
    this.started = event
    this.prefix = event
    if (event.model !== undefined) this.made += 1
  }

  #reply(event: EventOf<'agent.message'>): void {
    const { seq, usage, route } = event
    this.model = route ?? this.model
    if (usage) this.cache = { seq, inputTokens: usage.inputTokens, cachedTokens: usage.cachedTokens ?? 0 }
    this.misses.push(...missIn(event))
  }

  #compact(event: EventOf<'context.compacted'>): void {
    const { seq, at, cut, cleared, summary, failed, before = null, after = null, cost = 0 } = event
    const had = this.#transcript.messages.length
    const empty = this.#clearedCount()
    this.#transcript.take(event)
    this.#kinds.set(seq, 'summary')
    // Setting or removing a pin is no compaction.
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

/** The content of one request, and its answer. Instructions and tools are blobs, by the hashes in `prefix`. */
export type ShownRequest = Frozen<{
  /** The `model.started` of the request. */
  seq: number
  /** When it was made, in ms since 1970. */
  at: number
  /** The tools it could use, if not all of them. */
  allow?: Allow
  /** The names of the tools that a hook allowed. Absent if none did. */
  tools?: readonly string[]
  /** The hashes of its instructions and tools: the texts are blobs. Null if they are not known. */
  prefix: ContextLog['prefix']
  /** Its messages in order. */
  parts: readonly ContextPart[]
  /** How many parts at the beginning are the same as in the request before. Null for the first request. */
  kept: number | null
  /** Null while there is no answer. */
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

/**
 * The request made by event `seq`. `events` starts with the first event of the log. Null: that event made no request.
 */
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

/** The definition of each tool that the model gets, from the stored frozen toolset. */
export function toolSources(toolset: string): readonly ShownSource[] {
  return asList(parseJson(toolset)).flatMap((tool): readonly ShownSource[] => {
    if (!isObject(tool)) return []
    const { name, description, parameters } = tool
    const chars = JSON.stringify({ name, description, parameters }).length
    return [{ source: 'tool', name: asString(name), count: 1, chars }]
  })
}

/** At most one. The log may come from another version, so the value is checked. */
export function missIn({ seq, missed }: EventOf<'agent.message'>): readonly CacheMiss[] {
  if (missed === undefined) return []
  const { why, tokens, cost, at } = (missed ?? {}) as Readonly<Record<string, unknown>>
  const count = (value: unknown): number => (typeof value === 'number' ? value : 0)
  const place = typeof at === 'number' ? { at } : {}
  return [{ seq, why: typeof why === 'string' ? why : '?', tokens: count(tokens), cost: count(cost), ...place }]
}

/** Says what changed, and where. Unknown words of another version are shown as they are. */
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

/** A cleared result ends with the key of its call. */
function isCleared(message: Message): boolean {
  return (
    message.role === 'tool' && typeof message.content === 'string' && message.content.startsWith(`${CLEARED} call:`)
  )
}
