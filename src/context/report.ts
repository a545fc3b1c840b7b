// What the next request of a session holds, by source, and how full that makes its context. Read from the log when somebody asks, and
// kept nowhere: a turn pays nothing for it.
import type { Frozen, Hash } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY } from '../kernel/session.ts'
import { CLEARED, type Message, type Transcript } from '../kernel/transcript.ts'
import type { ToolSchema } from '../ports/model.ts'
import type { Store } from '../ports/store.ts'
import { CHARS_A_TOKEN, damaged, readTranscript, sizeOfMessage, upcoming } from '../view/history.ts'
import { textOf } from '../view/text.ts'
import type { ContextFill } from './meter.ts'
import { COMPACT_AT, FAILURES_MAX, Fill, FULL_AT } from './window.ts'

/**
 * `tool`: what the model is told of one tool. `context`: what hooks and memory added. `notice`: what the harness said. `result`: the
 * results of one tool that are whole; `cleared` those that are not.
 */
type SourceKind =
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

/** `tokens` is its share of all tokens by its characters. */
export type ContextSource = Frozen<{
  source: SourceKind
  name?: string
  count: number
  chars: number
  tokens: number
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

/** A request that did not begin with the bytes of the one before, as its reply tells it. `why` names what changed. */
export type CacheMiss = Frozen<{ seq: number; why: string; tokens: number; cost: number }>

export type ContextReport = ContextFill &
  Frozen<{
    sessionId: string
    /** False: no provider has counted yet, and all of it is estimated from characters. */
    counted: boolean
    /** The model that answered last, as far as it said its name. */
    model: string | null
    /** From how many tokens on it is compacted, or, with `ends`, the run ends: then compaction is off. Null: the window is unknown. */
    compactsAt: number | null
    ends: boolean
    /** So many summaries in a row failed that none is asked for any more. */
    off: boolean
    /** In the order of a request. */
    sources: readonly ContextSource[]
    compactions: readonly CompactionRecord[]
    /** The event that instructions and tools were made by, and how often they were made. Null: no run has begun. */
    prefix: Frozen<{ since: number; made: number }> | null
    /** What the provider read from its cache for the last reply. */
    cache: Frozen<{ seq: number; inputTokens: number; cachedTokens: number }> | null
    misses: readonly CacheMiss[]
  }>

/** How much the model takes, without end where it is unknown, and whether what is full is compacted. */
type Window = { readonly tokens: number; readonly compacts: boolean }

const PAGE = 1_000

export async function contextReport(store: Store, id: string, window: Window): Promise<ContextReport> {
  const log = new ContextLog((await readTranscript(store, { id, upTo: 1 })).transcript)
  for (;;) {
    const page = await store.read(id, log.seq, PAGE)
    for (const event of page.events) log.take(event)
    if (page.damaged) throw damaged(id, page.damaged)
    if (page.events.length < PAGE) break
  }
  const shown = [...(await prefixSources(store, log)), ...log.messages()]
  const chars = shown.reduce((sum, each) => sum + each.chars, 0)
  const { fill, compactions, misses, cache, model } = log
  const tokens = fill.counted ? fill.tokens : Math.ceil(chars / CHARS_A_TOKEN)
  const known = Number.isFinite(window.tokens)
  return {
    sessionId: id,
    tokens,
    window: known ? window.tokens : null,
    counted: fill.counted,
    model,
    compactsAt: known ? Math.ceil(window.tokens * (window.compacts ? COMPACT_AT : FULL_AT)) : null,
    ends: !window.compacts,
    off: fill.failures >= FAILURES_MAX,
    sources: shown.map((each) => ({ ...each, tokens: Math.round((each.chars * tokens) / Math.max(1, chars)) })),
    compactions,
    prefix: log.started && { since: log.started.since ?? log.started.seq, made: log.made },
    cache,
    misses,
  }
}

type Started = Extract<Event, { type: 'run.started' }>
type Shown = Omit<ContextSource, 'tokens'>

/** Everything of a log that a report tells, in one pass. */
class ContextLog {
  readonly fill = new Fill()
  readonly compactions: CompactionRecord[] = []
  readonly misses: CacheMiss[] = []
  cache: ContextReport['cache'] = null
  model: string | null = null
  made = 0
  started: Started | null = null
  /** What is shown of the prefix: that of an imported run is made anew. */
  prefix: { readonly toolset: Hash; readonly instructions: Hash } | null = null
  seq = 0
  readonly #transcript: Transcript
  readonly #session = open(EMPTY)
  /** Which messages of the user's role are not the user's, by seq. */
  readonly #kinds = new Map<number, SourceKind>()

  /** With what a fork inherited. */
  constructor(transcript: Transcript) {
    this.#transcript = transcript
  }

  take(event: Event): void {
    this.seq = event.seq
    take(this.#session, event)
    this.fill.take(event)
    if (event.type === 'context.compacted') return this.#compact(event)
    this.#transcript.take(event)
    if (event.type === 'note.added') this.#kinds.set(event.seq, event.kind === 'context' ? 'context' : 'notice')
    else if (event.type === 'model.failed') this.#kinds.set(event.seq, 'notice')
    else if (event.type === 'run.started') this.#begin(event)
    else if (event.type === 'run.reviewed') this.prefix = event
    else if (event.type === 'agent.message') this.#reply(event)
  }

  /** What a request would show now, by source. */
  messages(): readonly Shown[] {
    const shows = upcoming(this.#session)
    this.#transcript.take({ seq: this.seq + 1, at: 0, epoch: 0, type: 'model.started', shows })
    const bySource = new Map<string, Shown>()
    for (const message of this.#transcript.messages) {
      const { source, name } = this.#sourceOf(message)
      const key = `${ORDER.indexOf(source)} ${name ?? ''}`
      const { count = 0, chars = 0 } = bySource.get(key) ?? {}
      const sum = { count: count + 1, chars: chars + sizeOfMessage(message) }
      bySource.set(key, { source, ...(name === undefined ? {} : { name }), ...sum })
    }
    return [...bySource.values()].sort((a, b) => ORDER.indexOf(a.source) - ORDER.indexOf(b.source) || b.chars - a.chars)
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

  #begin(event: Started): void {
    this.started = event
    this.prefix = event
    if (event.model !== undefined) this.made += 1
  }

  #reply(event: Extract<Event, { type: 'agent.message' }>): void {
    const { seq, usage, route } = event
    this.model = route ?? this.model
    if (usage) this.cache = { seq, inputTokens: usage.inputTokens, cachedTokens: usage.cachedTokens ?? 0 }
    this.misses.push(...missIn(event))
  }

  #compact(event: Extract<Event, { type: 'context.compacted' }>): void {
    const { seq, at, cut, cleared, summary, failed, before = null, after = null, cost = 0 } = event
    const had = this.#transcript.messages.length
    const empty = this.#clearedCount()
    this.#transcript.take(event)
    this.#kinds.set(seq, 'summary')
    // A pin that was set or taken away is no compaction.
    if (cut === undefined && cleared === undefined && failed === undefined && cost === 0) return
    const messages = had - this.#transcript.messages.length + (summary === undefined ? 0 : 1)
    const results = cut === undefined ? this.#clearedCount() - empty : 0
    const why = failed === undefined ? {} : { failed }
    this.compactions.push({ seq, at, messages, results, before, after, cost, ...why })
  }

  #clearedCount(): number {
    return this.#transcript.messages.filter(isCleared).length
  }
}

const ORDER: readonly SourceKind[] = ['pin', 'summary', 'context', 'notice', 'user', 'assistant', 'result', 'cleared']
const TAGS = [
  ['<conversation-summary>', 'summary'],
  ['<hook_context>', 'context'],
  ['<harness_notice', 'notice'],
] as const

/** What every request of the last run began with. What is missing in the store is left out: the log is shown as far as it can be. */
async function prefixSources(store: Store, { prefix }: ContextLog): Promise<readonly Shown[]> {
  if (prefix === null) return []
  const decoder = new TextDecoder()
  const [told, listed] = await Promise.all([store.blob(prefix.instructions), store.blob(prefix.toolset)])
  const chars = told ? decoder.decode(told.data).length : 0
  const tools = listed ? toolsIn(decoder.decode(listed.data)) : []
  return [
    { source: 'instructions', count: 1, chars },
    ...tools.map(({ name, description, parameters }) => {
      return {
        source: 'tool',
        name,
        count: 1,
        chars: JSON.stringify({ name, description, parameters }).length,
      } as const
    }),
  ]
}

function toolsIn(text: string): readonly ToolSchema[] {
  try {
    return JSON.parse(text) as readonly ToolSchema[]
  } catch {
    return []
  }
}

/** At most one. What stands in a log may be of another version, so it is not believed. */
export function missIn({ seq, missed }: Extract<Event, { type: 'agent.message' }>): readonly CacheMiss[] {
  if (missed === undefined) return []
  const { why, tokens, cost } = (missed ?? {}) as Readonly<Record<string, unknown>>
  const count = (value: unknown): number => (typeof value === 'number' ? value : 0)
  return [{ seq, why: typeof why === 'string' ? why : '?', tokens: count(tokens), cost: count(cost) }]
}

/** With the key of its call behind it. */
function isCleared(message: Message): boolean {
  return (
    message.role === 'tool' && typeof message.content === 'string' && message.content.startsWith(`${CLEARED} call:`)
  )
}
