// Shortens a fresh result, after hooks and redaction and before the final clip, in three stages: content router,
// summarizer, byte budget. The first stage that leaves something out keeps the original beside the log, in the commit
// of the result, and all stages name it by one token. The result's metadata records each stage. Loaded by the first
// result of an agent with one of the stages on.
import type { Call } from '../../kernel/ledger.ts'
import type { Blob } from '../../ports/store.ts'
import { RETRIEVE, STAGES } from '../../context/compress/marker.ts'
import { cutToBytes } from '../../context/long-result.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import type { Agent, ResultShortening } from '../state/agent.ts'
import type { FlightContext } from '../state/effect.ts'
import type { OutputMetadata, Output } from '../../tools/core/tool-output.ts'
import { CHARS_A_TOKEN } from '../../view/session-history.ts'
import { compressResult } from './compressed-result.ts'
import type { ToolRunContext } from './call-context.ts'
import { KeptOriginal } from './kept-original.ts'
import { isRecorded } from '../state/recorded-model.ts'
import type { Tools } from '../state/toolbox.ts'

export type FreshResult = {
  readonly services: Services
  readonly cache: SessionCache
  readonly agent: Agent
  readonly call: Call
  /** Redacted already, so that a kept original holds no secret either. */
  readonly output: Output
  readonly context: ToolRunContext
  readonly flight: FlightContext
}

type ShortenedResult = { readonly output: Output; readonly original: Blob | null }

export async function shortenResult(fresh: FreshResult, shortening: ResultShortening): Promise<ShortenedResult> {
  const { agent, call, context, flight } = fresh
  const tools: Tools = context.tools ?? new Map()
  let output = { ...fresh.output, metadata: dropStageMetadata(fresh.output.metadata) }
  // A tool that reads an original, or lines of a file, returns exactly the requested text. And if the session's tools
  // were made before shortening was switched on, the model could not read the original.
  const isReadable = tools.has(RETRIEVE) || agent.retrieve !== undefined
  if (tools.get(call.proposal.tool)?.readsKept || !isReadable) return { output, original: null }
  if (isRecorded(agent.model) && agent.model.repeatsResults) return { output, original: null }
  const kept = new KeptOriginal(call, output.content)
  const { compression, fromBytes, summarize, bytes } = shortening
  if (compression !== undefined)
    output = await compressResult({ call, output, compression, fromBytes, tools, signal: flight.signal, kept })
  if (
    summarize !== undefined &&
    isSummarizable(output.content.length / CHARS_A_TOKEN, summarize) &&
    maySummarize(fresh)
  ) {
    const { summarizeResult } = await import('./summarize-result.ts')
    output = await summarizeResult(fresh, output, kept)
  }
  if (bytes !== undefined && !boundsItself(output, context.kept)) output = cutToBudget(output, bytes, kept)
  return { output, original: kept.blob }
}

function dropStageMetadata(metadata: OutputMetadata): OutputMetadata {
  if (!STAGES.some((name) => name in metadata)) return metadata
  const { compressed: _compressed, summarized: _summarized, budgeted: _budgeted, ...rest } = metadata
  return rest
}

function isSummarizable(tokens: number, { fromTokens, toTokens }: NonNullable<ResultShortening['summarize']>): boolean {
  return tokens >= fromTokens && tokens <= toTokens
}

/**
 * Only results of root sessions are summarised: a child's answer is short, and its parent reads only that. A planner is
 * not a language model.
 */
function maySummarize({ cache, agent, flight }: FreshResult): boolean {
  return cache.session.parent === null && agent.planner === null && flight.reason === null
}

/** The tool has cut its result itself, kept the whole text, and says how to read on. */
function boundsItself({ metadata }: Output, kept: readonly Blob[]): boolean {
  return metadata['truncated'] === true && kept.some(({ hash }) => hash === metadata['blob'])
}

function cutToBudget(output: Output, bytesMax: number, kept: KeptOriginal): Output {
  const { content, metadata } = output
  // Most results are far below the budget, so their bytes need not be counted.
  const bytes = content.length * 3 <= bytesMax ? 0 : Buffer.byteLength(content)
  if (bytes <= bytesMax) return output
  const original = kept.keep()
  const shorter = cutToBytes(content, bytesMax, original)
  const { token, blob } = original
  const said = { bytes, shown: Buffer.byteLength(shorter), token, blob }
  return { ...output, content: shorter, metadata: { ...metadata, budgeted: said } }
}
