// A long result, summarised by a model under the run's own limits of money. Whatever goes wrong, the result goes on as it is. Three
// failures in a row switch it off for the session: the log says so, and every process reads it there. Loaded by the first long result.
import type { Json } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { ModelFailure, Reply, Request } from '../../ports/model.ts'
import { materialOf, SUMMARIZER, summaryIn } from '../../context/payload.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { type Services, summarizerOf } from '../../engine/wiring.ts'
import type { Output } from '../../tools/core/output.ts'
import { CHARS_A_TOKEN } from '../../view/history.ts'
import { isObject } from '../../view/json.ts'
import { shortened } from '../../view/text.ts'
import type { KeptOriginal } from './kept-original.ts'
import { inTime, messageIn } from '../outcomes.ts'
import type { Fresh } from './shorter-result.ts'
import { findWindow } from '../window.ts'

/** Failures in a row that switch it off for the session. */
const FAILURES_MAX = 3
const REASON_CHARS = 200
/** The summarizer reads at most this part of a window, and never more than this. */
const READ_SHARE = 0.5
const READ_CHARS_MAX = 400_000
const PAGE = 1_000

export async function summarizedResult(fresh: Fresh, output: Output, kept: KeptOriginal): Promise<Output> {
  const { services, cache, context, flight } = fresh
  // A store in trouble must not cost the result.
  const failures = await failuresIn(services, cache).catch(() => FAILURES_MAX)
  if (failures >= FAILURES_MAX) return output
  const before = context.spent?.cost ?? 0
  const said = await summaryOf(fresh, output.content, kept)
  // A stop, or a deadline, says nothing about the summarizer.
  if ('failed' in said && flight.reason !== null) return output
  const cost = (context.spent?.cost ?? 0) - before
  const spent = cost > 0 ? { cost } : {}
  if ('failed' in said) return noted(output, { failed: shortened(said.failed, REASON_CHARS), ...spent })
  const { token, blob } = kept.keep()
  const [bytes, shown] = [output.content, said.content].map((text) => Buffer.byteLength(text)) as [number, number]
  return noted({ ...output, content: said.content }, { bytes, shown, token, blob, ...spent })
}

function noted(output: Output, summarized: Json): Output {
  return { ...output, metadata: { ...output.metadata, summarized } }
}

async function summaryOf({ services, cache, agent, call, context, flight }: Fresh, text: string, kept: KeptOriginal) {
  const model = summarizerOf(services, agent)
  try {
    const { tokens } = await findWindow(services, model)
    const charsMax = Math.min(READ_CHARS_MAX, tokens * CHARS_A_TOKEN * READ_SHARE)
    const { proposal, key } = call
    const seq = Number.parseInt(key, 10)
    const parts = [{ type: 'text', text: materialOf(proposal, text, charsMax) }] as const
    const request: Request = {
      session: cache.id,
      seq,
      instructions: SUMMARIZER,
      tools: [],
      allow: 'none',
      boost: false,
      messages: [{ role: 'user', seq, parts }],
    }
    const answer = await inTime<Reply | ModelFailure | null>(context.askModel(model, request), flight, null)
    if (answer?.type !== 'reply') return { failed: answer?.message ?? 'it was stopped' }
    return summaryIn(answer, Buffer.byteLength(text), kept.about())
  } catch (error) {
    return { failed: messageIn(error) }
  }
}

type Seen = { seq: number; failures: number }
const SEEN = new WeakMap<SessionCache, Seen>()

/** Failures since the last summary that counted, by the log. What was read before is not read again. */
async function failuresIn({ store }: Services, cache: SessionCache): Promise<number> {
  const seen = SEEN.get(cache) ?? { seq: 0, failures: 0 }
  SEEN.set(cache, seen)
  for (;;) {
    const { events } = await store.read(cache.id, seen.seq, PAGE)
    for (const event of events) {
      // Another result of the same reply may have been read to here meanwhile.
      if (event.seq <= seen.seq) continue
      const summarized = summarizedIn(event)
      if (summarized !== null) seen.failures = 'failed' in summarized ? seen.failures + 1 : 0
      seen.seq = event.seq
    }
    if (events.length < PAGE) return seen.failures
  }
}

function summarizedIn(event: Event): { readonly [name: string]: unknown } | null {
  if (event.type !== 'agent.tool_result' || !isObject(event.metadata)) return null
  const { summarized } = event.metadata
  return isObject(summarized) ? summarized : null
}
