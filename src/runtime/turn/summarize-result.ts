// A model summarises a long result under the run's own spending limits. On any failure the result stays as it is. Three
// failures in a row switch summaries off for the session: the log records them, so every process knows. Loaded by the
// first long result.
import type { Json } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { ModelFailure, Reply, Request } from '../../ports/model.ts'
import { buildResultPrompt, RESULT_SUMMARY_PROMPT, readResultSummary } from '../../context/long-result.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { summarizerOf } from '../state/agent.ts'
import type { Output } from '../../tools/core/tool-output.ts'
import { CHARS_A_TOKEN } from '../../view/session-history.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { shortenText, thrownText } from '../../view/shown-text.ts'
import type { KeptOriginal } from './kept-original.ts'
import { raceDeadline } from './landings.ts'
import type { FreshResult } from './shorter-result.ts'
import { findWindow } from '../state/model-window.ts'

/** This many failures in a row switch summaries off for the session. */
const FAILURES_MAX = 3
const REASON_CHARS = 200
/** The summarizer reads at most this share of its window, and never more than READ_CHARS_MAX. */
const READ_SHARE = 0.5
const READ_CHARS_MAX = 400_000
const PAGE = 1_000

export async function summarizeResult(fresh: FreshResult, output: Output, kept: KeptOriginal): Promise<Output> {
  const { services, cache, context, flight } = fresh
  // A failing store must not cost the result.
  const failures = await countFailures(services, cache).catch(() => FAILURES_MAX)
  if (failures >= FAILURES_MAX) return output
  const before = context.spent?.cost ?? 0
  const said = await summarizeText(fresh, output.content, kept)
  // A stop or a deadline says nothing about the summarizer.
  if ('failed' in said && flight.reason !== null) return output
  const cost = (context.spent?.cost ?? 0) - before
  const spent = cost > 0 ? { cost } : {}
  if ('failed' in said) return noteSummary(output, { failed: shortenText(said.failed, REASON_CHARS), ...spent })
  const { token, blob } = kept.keep()
  const [bytes, shown] = [output.content, said.content].map((text) => Buffer.byteLength(text)) as [number, number]
  return noteSummary({ ...output, content: said.content }, { bytes, shown, token, blob, ...spent })
}

function noteSummary(output: Output, summarized: Json): Output {
  return { ...output, metadata: { ...output.metadata, summarized } }
}

async function summarizeText(
  { services, cache, agent, call, context, flight }: FreshResult,
  text: string,
  kept: KeptOriginal,
) {
  const model = summarizerOf(services, agent)
  try {
    const { tokens } = await findWindow(services, model)
    const charsMax = Math.min(READ_CHARS_MAX, tokens * CHARS_A_TOKEN * READ_SHARE)
    const { proposal, key } = call
    const seq = Number.parseInt(key, 10)
    const parts = [{ type: 'text', text: buildResultPrompt(proposal, text, charsMax) }] as const
    const request: Request = {
      session: cache.id,
      seq,
      instructions: RESULT_SUMMARY_PROMPT,
      tools: [],
      allow: 'none',
      boost: false,
      messages: [{ role: 'user', seq, parts }],
    }
    const answer = await raceDeadline<Reply | ModelFailure | null>(context.askModel(model, request), flight, null)
    if (answer?.type !== 'reply') return { failed: answer?.message ?? 'it was stopped' }
    return readResultSummary(answer, Buffer.byteLength(text), kept.about())
  } catch (error) {
    return { failed: thrownText(error) }
  }
}

type CountedFailures = { seq: number; failures: number }
const SEEN = new WeakMap<SessionCache, CountedFailures>()

/** Counts the failures in the log since the last good summary. Events that were read before are not read again. */
async function countFailures({ store }: Services, cache: SessionCache): Promise<number> {
  const seen = SEEN.get(cache) ?? { seq: 0, failures: 0 }
  SEEN.set(cache, seen)
  for (;;) {
    const { events } = await store.read(cache.id, seen.seq, PAGE)
    for (const event of events) {
      // Another result of the same reply may have been counted up to here meanwhile.
      if (event.seq <= seen.seq) continue
      const summarized = summarizedField(event)
      if (summarized !== null) seen.failures = 'failed' in summarized ? seen.failures + 1 : 0
      seen.seq = event.seq
    }
    if (events.length < PAGE) return seen.failures
  }
}

function summarizedField(event: Event): { readonly [name: string]: unknown } | null {
  if (event.type !== 'agent.tool_result' || !isObject(event.metadata)) return null
  const { summarized } = event.metadata
  return isObject(summarized) ? summarized : null
}
