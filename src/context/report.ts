// What the next request of a session holds, by source, and how full that makes its context. Read from the log when somebody asks, and
// kept nowhere: a turn pays nothing for it. Which messages a request shows is view/context.ts.
import type { Frozen } from '../kernel/content.ts'
import type { Store } from '../ports/store.ts'
import { type CacheMiss, type CompactionRecord, ContextLog, type ShownSource, toolSources } from '../view/context.ts'
import { CHARS_A_TOKEN, damaged, readTranscript } from '../view/history.ts'
import type { ContextFill } from './meter.ts'
import { CLEAR_AT, FAILURES_MAX, Fill, FULL_AT } from './window.ts'

/** `tokens` is its share of all tokens by its characters. */
export type ContextSource = Frozen<ShownSource & { tokens: number }>

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
  const fill = new Fill()
  for (;;) {
    const page = await store.read(id, log.seq, PAGE)
    for (const event of page.events) {
      log.take(event)
      fill.take(event)
    }
    if (page.damaged) throw damaged(id, page.damaged)
    if (page.events.length < PAGE) break
  }
  const shown = [...(await prefixSources(store, log)), ...log.upcoming()]
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

/** What every request of the last run began with. What is missing in the store is left out: the log is shown as far as it can be. */
async function prefixSources(store: Store, { prefix }: ContextLog): Promise<readonly ShownSource[]> {
  if (prefix === null) return []
  const decoder = new TextDecoder()
  const [told, listed] = await Promise.all([store.blob(prefix.instructions), store.blob(prefix.toolset)])
  const chars = told ? decoder.decode(told.data).length : 0
  return [{ source: 'instructions', count: 1, chars }, ...toolSources(listed ? decoder.decode(listed.data) : '')]
}
