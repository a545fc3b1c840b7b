// Reports the content of a session's next request by source, and how full it makes the context. It reads the log on
// request and stores nothing, so a turn pays nothing for it. view/context.ts decides which messages a request shows.
import type { Frozen } from '../kernel/content.ts'
import type { Store } from '../ports/store.ts'
import {
  type CacheMiss,
  type CompactionRecord,
  ContextLog,
  type ShownSource,
  toolSources,
} from '../view/request-context.ts'
import { CHARS_A_TOKEN, damagedFault, readTranscript } from '../view/session-history.ts'
import type { ContextFill } from './request-tokens.ts'
import { CLEAR_AT, FAILURES_MAX, WindowFill, FULL_AT } from './window-fill.ts'

/** One source of a request, and its share. */
export type ContextSource = Frozen<
  ShownSource & {
    /** Its share of all tokens, by its characters. */
    tokens: number
  }
>

/** What fills the window of a session's model: how much of what, when it will be compacted, and when it was. */
export type ContextReport = ContextFill &
  Frozen<{
    /** The session that is reported. */
    sessionId: string
    /** False if no provider has counted yet, so all of it is estimated from characters. */
    counted: boolean
    /** The model that answered last, if the reply names it. */
    model: string | null
    /**
     * The number of tokens from which on it is compacted or, with `ends`, the run ends because compaction is off. Null
     * if the window is unknown.
     */
    compactsAt: number | null
    /** Compaction is off, so the run ends at `compactsAt`. */
    ends: boolean
    /** After this many failed summaries in a row, no other is requested. */
    off: boolean
    /** In the order of a request. */
    sources: readonly ContextSource[]
    /** What was cut or cleared so far, the oldest first. */
    compactions: readonly CompactionRecord[]
    /** The event that made instructions and tools, and how often they were made. Null if no run has begun. */
    prefix: Frozen<{ since: number; made: number }> | null
    /** The tokens that the provider read from its cache for the last reply. */
    cache: Frozen<{ seq: number; inputTokens: number; cachedTokens: number }> | null
    /** The requests that the provider's cache could not serve as it should, the oldest first. */
    misses: readonly CacheMiss[]
  }>

/** How much the model takes (Infinity if unknown), and whether a full context is compacted. */
type ReportedWindow = { readonly tokens: number; readonly compacts: boolean }

const PAGE = 1_000

export async function buildContextReport(store: Store, id: string, window: ReportedWindow): Promise<ContextReport> {
  const log = new ContextLog((await readTranscript(store, { id, upTo: 1 })).transcript)
  const fill = new WindowFill()
  for (;;) {
    const page = await store.read(id, log.seq, PAGE)
    for (const event of page.events) {
      log.take(event)
      fill.take(event)
    }
    if (page.damaged) throw damagedFault(id, page.damaged)
    if (page.events.length < PAGE) break
  }
  const shown = [...(await readPrefixSources(store, log)), ...log.upcoming()]
  const chars = shown.reduce((sum, each) => sum + each.chars, 0)
  const { compactions, misses, cache, model } = log
  const tokens = fill.counted ? fill.tokens : Math.ceil(chars / CHARS_A_TOKEN)
  const known = Number.isFinite(window.tokens)
  return {
    sessionId: id,
    tokens,
    window: known ? window.tokens : null,
    counted: fill.counted,
    model,
    compactsAt: known ? Math.ceil(window.tokens * (window.compacts ? CLEAR_AT : FULL_AT)) : null,
    ends: !window.compacts,
    off: fill.failures >= FAILURES_MAX,
    sources: shown.map((each) => ({ ...each, tokens: Math.round((each.chars * tokens) / Math.max(1, chars)) })),
    compactions,
    prefix: log.started && { since: log.started.since ?? log.started.seq, made: log.made },
    cache,
    misses,
  }
}

/**
 * The beginning of every request of the last run. Blobs that are missing in the store are left out, so that the rest of
 * the log is shown.
 */
async function readPrefixSources(store: Store, { prefix }: ContextLog): Promise<readonly ShownSource[]> {
  if (prefix === null) return []
  const decoder = new TextDecoder()
  const [told, listed] = await Promise.all([store.blob(prefix.instructions), store.blob(prefix.toolset)])
  const chars = told ? decoder.decode(told.data).length : 0
  return [{ source: 'instructions', count: 1, chars }, ...toolSources(listed ? decoder.decode(listed.data) : '')]
}
