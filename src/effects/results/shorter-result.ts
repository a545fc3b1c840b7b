// The way of a fresh result, after the hooks and the redaction and before the clip: content router, summarizer, budget of bytes. The
// first of them that leaves something out keeps the original beside the log, in the commit of the result; all name it by one token.
// The metadata of the result says what each did. Loaded by the first result of an agent that has one of them on.
import type { Call } from '../../kernel/ledger.ts'
import type { Blob } from '../../ports/store.ts'
import { RETRIEVE, STAGES } from '../../context/juice/marker.ts'
import { withinBytes } from '../../context/payload.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import type { Agent, Services, Shortening } from '../../engine/wiring.ts'
import type { FlightContext } from '../../engine/flights.ts'
import type { Metadata, Output } from '../../tools/core/output.ts'
import { CHARS_A_TOKEN } from '../../view/history.ts'
import { compressedResult } from './compressed-result.ts'
import type { ToolRunContext } from '../contexts.ts'
import { KeptOriginal } from './kept-original.ts'
import { isRecorded } from '../../sessions/recorded-model.ts'
import type { Tools } from '../toolbox.ts'

export type Fresh = {
  readonly services: Services
  readonly cache: SessionCache
  readonly agent: Agent
  readonly call: Call
  /** Redacted already: what is kept of it holds no secret either. */
  readonly output: Output
  readonly context: ToolRunContext
  readonly flight: FlightContext
}

type Shorter = { readonly output: Output; readonly original: Blob | null }

export async function shorterResult(fresh: Fresh, shortening: Shortening): Promise<Shorter> {
  const { agent, call, context, flight } = fresh
  const tools: Tools = context.tools ?? new Map()
  let output = { ...fresh.output, metadata: withoutOurs(fresh.output.metadata) }
  // A tool that reads an original, or lines of a file, returns exactly what was asked for. And where the tools of a session were made
  // before this was switched on, nothing could read the original.
  const isReadable = tools.has(RETRIEVE) || agent.retrieve !== undefined
  if (tools.get(call.proposal.tool)?.readsKept || !isReadable) return { output, original: null }
  if (isRecorded(agent.model) && agent.model.repeatsResults) return { output, original: null }
  const kept = new KeptOriginal(call, output.content)
  const { compression, fromBytes, summarize, bytes } = shortening
  if (compression !== undefined)
    output = await compressedResult({ call, output, compression, fromBytes, tools, signal: flight.signal, kept })
  if (summarize !== undefined && isWithin(output.content.length / CHARS_A_TOKEN, summarize) && mayAsk(fresh)) {
    const { summarizedResult } = await import('./summarized-result.ts')
    output = await summarizedResult(fresh, output, kept)
  }
  if (bytes !== undefined && !boundsItself(output, context.kept)) output = budgeted(output, bytes, kept)
  return { output, original: kept.blob }
}

function withoutOurs(metadata: Metadata): Metadata {
  if (!STAGES.some((name) => name in metadata)) return metadata
  const { compressed: _compressed, summarized: _summarized, budgeted: _budgeted, ...rest } = metadata
  return rest
}

function isWithin(tokens: number, { fromTokens, toTokens }: NonNullable<Shortening['summarize']>): boolean {
  return tokens >= fromTokens && tokens <= toTokens
}

/** Only roots: a child's answer is short, and its parent reads that alone. A planner is no language model. */
function mayAsk({ cache, agent, flight }: Fresh): boolean {
  return cache.session.parent === null && agent.planner === null && flight.reason === null
}

/** It has cut its result itself, kept the whole, and says how to read on. */
function boundsItself({ metadata }: Output, kept: readonly Blob[]): boolean {
  return metadata['truncated'] === true && kept.some(({ hash }) => hash === metadata['blob'])
}

function budgeted(output: Output, bytesMax: number, kept: KeptOriginal): Output {
  const { content, metadata } = output
  // Most are far below: then their bytes need not be counted.
  const bytes = content.length * 3 <= bytesMax ? 0 : Buffer.byteLength(content)
  if (bytes <= bytesMax) return output
  const original = kept.keep()
  const shorter = withinBytes(content, bytesMax, original)
  const { token, blob } = original
  const said = { bytes, shown: Buffer.byteLength(shorter), token, blob }
  return { ...output, content: shorter, metadata: { ...metadata, budgeted: said } }
}
