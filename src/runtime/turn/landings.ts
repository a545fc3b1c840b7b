// The outcomes of effects as events: results, replies, failures, and what is written for an effect that never finished.
// Nothing here touches the world.
import { isTemporaryError } from '../state/outages.ts'
import type { CallKey, FailureKind, Json, Mutable, Proposal, Usage, Verdict } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import type { Call } from '../../kernel/ledger.ts'
import type { StopReason } from '../../kernel/limits.ts'
import type { Effect } from '../../kernel/next.ts'
import type { Blob } from '../../ports/store.ts'
import type { Reply } from '../../ports/model.ts'
import { closingResult, failedResult, unknownResult } from '../../kernel/result.ts'
import { LEAKED, looksLikeCall } from '../../models/protocols/leaked-calls.ts'
import { judgeEmpty } from '../../models/structured-output.ts'
import { harnessId } from '../../stores/plan/store-ids.ts'
import { boundContent } from '../../tools/core/bound-content.ts'
import { type OutputMetadata, NO_OUTPUT_METADATA, type Output, ToolFailure } from '../../tools/core/tool-output.ts'
import { plainCopy } from '../../tools/core/plain-values.ts'
import type { ToolRunEnd } from '../../tools/core/run-tool.ts'
import type { FlightContext, AbortReason, Landing } from '../state/effect.ts'
import type { LiveDelta } from '../../live/local-live.ts'
import type { Redactor } from '../redact/redactor.ts'
import { blobRefOf, textBlob } from '../state/content-blobs.ts'
import type { FrozenRun } from '../state/frozen-run.ts'
import { textOf, thrownText } from '../../view/shown-text.ts'
import type { HookFailed } from '../hooks/hooks.ts'

/** Longer texts are stored beside the log, by hash. */
const INLINE_BYTES_MAX = 64 * 1024
export const PREPARE_MS = 60_000
/** Most tools bound their own output. This limit is for those that do not. */
const CLIPPED_CHARS_MIN = 200_000
const CLIPPED_CHARS = 50_000
const METADATA_LEVELS_MAX = 64
/** A million dollars. */
const COST_MAX = 1e12

/** Every effect but the preparing of a run, which may be tried again. */
type StartedEffect = Exclude<Effect, { type: 'prepare' }>

const LATE_EDIT = 'the arguments that a person gave this call could not be checked in time.'
const NEVER = 'Stopped before it started: it did not run.'
export const TOO_LONG = new ToolFailure('Timeout', 'Preparing the run took too long.')

/** The landing of an effect that was stopped before it started, or that did not land in time. */
export function landAbandoned(effect: StartedEffect, reason: AbortReason, started: boolean, partial?: string): Landing {
  // A stopped call may have cost money that the provider did not report.
  if (effect.type === 'call') {
    const failed = { ...stoppedModelCall(reason), ...(started ? { assumed: true as const } : {}) }
    return { events: [partial === undefined ? failed : { ...failed, partial }] }
  }
  if (effect.type === 'review') return landUnreviewed(effect, 'Timeout', 'it took too long')
  if (effect.type === 'end') return landEnd(effect)
  const { key, proposal } = effect.call
  if (effect.mode === 'clear') {
    return { events: [heldBackResult(key, LATE_WORD, false)] }
  }
  if (effect.mode === 'edit') return { events: [failedResult(key, 'denied', `Not run: ${LATE_EDIT}`)] }
  if (!started && effect.mode === 'execute') {
    const { state } = effect.call
    const before = state.type === 'running' && state.tries > 0
    const text = before ? 'Stopped before it was tried again: the try before was lost, and may have run.' : NEVER
    return { events: [failedResult(key, 'aborted', text)] }
  }
  const late = reason === 'timeout'
  const text = late ? timeoutText(proposal.timeoutMs) : 'Stopped while it ran.'
  if (proposal.effect === 'once') {
    const result = unknownResult(key, reason === 'lost' ? undefined : text)
    return { events: [late ? { ...result, metadata: { error_type: 'Timeout' } } : result] }
  }
  return { events: [failedResult(key, late ? 'timeout' : 'aborted', text)] }
}

/** Joins the status of a stopped call with the tool's own report on how far it came. */
export function mergeStoppedResult({ events: [stopped] }: Landing, { events: [said], ...rest }: Landing): Landing {
  if (stopped?.type !== 'agent.tool_result' || said?.type !== 'agent.tool_result') return { events: [] }
  const { status, failure } = stopped
  return { ...rest, events: [{ ...said, status, ...(failure ? { failure } : {}) }] }
}

/** The text of a call that timed out. */
function timeoutText(timeoutMs: number): string {
  return `Timed out after ${timeoutMs} ms.`
}

/**
 * The late result of a `once` call whose attempt had lost the session. It becomes evidence in the log beside the
 * `unknownResult` result that another attempt wrote, and changes nothing. Null if there is nothing to report: every other
 * effect in flight is simply done again.
 */
export function lateResult(effect: Effect, { events }: Landing): InboxBody | null {
  const [result] = events
  if (effect.type !== 'run' || effect.mode !== 'execute' || effect.call.proposal.effect !== 'once') return null
  if (result?.type !== 'agent.tool_result' || result.status !== 'ok') return null
  const { call, content } = result
  const said = typeof content === 'string' ? content : `A result of ${content.bytes} bytes.`
  const metadata = { late_result: true }
  return {
    type: 'user.custom_tool_result',
    id: harnessId('late', call),
    call,
    ok: true,
    content: said,
    by: 'terret',
    metadata,
  }
}

/** Stands for the reason of a hook that did not answer in time. */
export const LATE_WORD = 'it did not say in time whether this may run'

/** A hook refused the call. It has no intent, and it does not count as a call of the run. */
export function heldBackResult(
  key: CallKey,
  why: string,
  child: boolean,
): Extract<OwnerBody, { type: 'agent.tool_result' }> {
  const error_type = child ? 'SubAgentCancelled' : 'CancelledByHook'
  return { ...failedResult(key, 'denied', `Not run: a hook held it back: ${why}`), metadata: { error_type } }
}

/** The call ran, but its result is withheld until a hook has seen it. */
export const WITHHELD: Output = {
  ok: false,
  content: 'The call ran, but a hook that must see its result did not do so, and the result is withheld.',
  metadata: { error_type: 'InvalidToolOutput' },
}

/** Returns `late` if the flight is aborted first; with `only`, just for an abort with that reason. */
export async function raceDeadline<T>(
  work: Promise<T>,
  flight: FlightContext,
  late: T,
  only?: AbortReason,
): Promise<T> {
  const { signal } = flight
  let look = (): void => {}
  const aborted = new Promise<T>((resolve) => {
    look = () => {
      if (flight.reason === (only ?? flight.reason)) resolve(late)
    }
    if (signal.aborted) look()
    else signal.addEventListener('abort', look, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', look)
  }
}

export function effectDeadline(effect: Effect, now: number): number {
  if (effect.type === 'call') return effect.deadline
  const runs = effect.type === 'run' && (effect.mode === 'execute' || effect.mode === 'reconcile')
  return now + (runs ? effect.call.proposal.timeoutMs : PREPARE_MS)
}

type ModelFailedBody = Extract<OwnerBody, { type: 'model.failed' }>
/** How far a call had come when it was stopped. */
type StoppedCall = { readonly elapsedMs: number; readonly partial: string | undefined }

export function stoppedModelCall(reason: AbortReason, at?: StoppedCall): ModelFailedBody {
  const after = at ? ` after ${at.elapsedMs} ms` : ''
  const late = reason === 'timeout'
  const kind = late ? 'timeout' : reason === 'superseded' ? 'superseded' : 'interrupted'
  const message = late ? `The model timed out${after}.` : `The call was stopped${after}: ${reason}.`
  const failed = { type: 'model.failed', class: kind, message, retryable: true } as const
  return at?.partial === undefined ? failed : { ...failed, partial: at.partial }
}

/**
 * The landing of an answer that came after the log asked for a stop: its text and its cost are kept, and none of its
 * calls is admitted. A failure after that is part of the stop, whatever class the model gave it.
 */
export function landStoppedReply(landing: Landing, why: StopReason): Landing {
  const [said, ...rest] = landing.events
  // The cost of a summary was spent all the same.
  const compacted = rest.filter(({ type }) => type === 'context.compacted')
  if (said?.type === 'model.failed') {
    const { retryAt: _retryAt, unasked: _unasked, ...failed } = said
    const { class: kind } = stoppedModelCall(why)
    if (said.class === kind) return landing
    const stopped = { ...failed, class: kind, message: `Stopped (${why}). ${said.message}`, retryable: true }
    return { events: [stopped, ...compacted] }
  }
  if (said?.type !== 'agent.message') return landing
  const { usage, cost, assumed, route, parts } = said
  const text = textOf(parts)
  const failed: Mutable<ModelFailedBody> = {
    ...stoppedModelCall(why),
    message: `The call was stopped: ${why}. Its answer came all the same, and none of its calls was run.`,
  }
  if (text !== '') failed.partial = text
  if (usage) failed.usage = usage
  if (cost !== undefined) failed.cost = cost
  if (assumed || cost === undefined) failed.assumed = true
  if (route !== undefined) failed.route = route
  return { events: [failed, ...compacted] }
}

/** The text that the open model call has shown so far; undefined if there is none. */
export function shownText(said: readonly LiveDelta[], seq: number): string | undefined {
  const text = said.map((delta) => (delta.seq === seq && delta.kind === 'text' ? delta.text : '')).join('')
  return text === '' ? undefined : text
}

export function landFailedEffect(effect: StartedEffect, error: unknown): Landing {
  const message = thrownText(error)
  if (effect.type === 'run') return { events: [failedResult(effect.call.key, 'error', message)] }
  if (effect.type === 'call') {
    const failed = { type: 'model.failed', class: 'other', message } as const
    // A store that is busy is an outage. The model may have answered before, so what was held counts as spent.
    return {
      events: [
        isTemporaryError(error) ? { ...failed, retryable: true, assumed: true } : { ...failed, retryable: false },
      ],
    }
  }
  return effect.type === 'end' ? landEnd(effect) : landUnreviewed(effect, 'Failed', message)
}

/** The end of a run without what its finalizer and its worktrees would add. The inputs it consumes are filled in later. */
export function landEnd({ outcome }: Extract<Effect, { type: 'end' }>): Landing {
  return { events: [outcome === null ? { type: 'session.closed' } : { type: 'run.settled', outcome }] }
}

/** The open calls cannot be reviewed, so none of them runs, and the run ends there. */
function landUnreviewed(
  { open }: Extract<Effect, { type: 'review' }>,
  kind: 'Failed' | 'Timeout',
  why: string,
): Landing {
  const message = `What was open here came from elsewhere, and could not be asked about: ${why}`
  const closed = open.map((call) => {
    return call.state.type === 'running' ? unknownResult(call.key) : closingResult(call, `Not run: ${message}`)
  })
  const outcome = { type: 'failed', reason: 'prepare_failed', failure: { kind, message } } as const
  return { events: [...closed, { type: 'run.settled', outcome }] }
}

/** No tool may fill a context by itself: of a far too long text the model sees both ends, and it can read the rest. */
function clipLongText(text: string, reader: string | undefined) {
  const whole = textBlob(text, 'text/plain')
  const { content, metadata } = boundContent(
    text,
    { keep: () => blobRefOf(whole), redact: (said) => said, reader },
    CLIPPED_CHARS,
  )
  return { content, metadata: { ...metadata, tool_output_clipped: true }, whole }
}

/**
 * The output of a call becomes an event: long content goes beside the log, and metadata is written only if there is
 * any.
 */
type EndedCall = Exclude<ToolRunEnd, { type: 'undecided' }>

/** The services for writing a result. The reader's name is looked up only if the text is cut. */
type ResultWriting = { readonly redactor: Redactor; readonly context: { readonly reader?: string | undefined } }

export function landToolResult(
  call: Call,
  done: EndedCall,
  kept: readonly Blob[],
  { redactor, context }: ResultWriting,
): Landing {
  const { ok } = done.output
  const { content: whole, metadata: given } = done.output
  const said = redactor.idle ? whole : redactor.text(whole)
  const clipped = said.length > CLIPPED_CHARS_MIN ? clipLongText(said, context.reader) : null
  const content = clipped?.content ?? said
  const own = given === NO_OUTPUT_METADATA ? given : writableMetadata(given)
  const metadata = clipped ? { ...own, ...clipped.metadata } : own
  const long = content.length > INLINE_BYTES_MAX / 4 && Buffer.byteLength(content) > INLINE_BYTES_MAX
  const blob = long ? textBlob(content, 'text/plain') : null
  const kind = done.type === 'failed' ? done.kind : 'Failed'
  const event: Mutable<Extract<OwnerBody, { type: 'agent.tool_result' }>> = {
    type: 'agent.tool_result',
    call: call.key,
    status: ok ? 'ok' : isUnclear(call, kind) ? 'unknown' : 'error',
    content: blob ? blobRefOf(blob) : content,
  }
  const refs = done.output.parts?.filter((part) => part.type === 'blob')
  if (refs?.length) event.parts = refs
  if (!ok) event.failure = { kind, message: content.slice(0, 500) || kind }
  if (done.type === 'failed' && done.retryKind !== undefined) event.retryKind = done.retryKind
  if (done.attempts > 1) event.metadata = { ...metadata, attempts: done.attempts }
  else if (metadata !== NO_OUTPUT_METADATA) event.metadata = metadata
  const all = clipped ? [...kept, clipped.whole] : kept
  const blobs = blob ? [...all, blob] : all
  const { follows } = done.output
  const events = follows ? [event, ...follows] : [event]
  return blobs.length > 0 ? { events, blobs } : { events }
}

/**
 * The tool itself cannot say whether its call took effect, for example after a lost connection. A read has no effect.
 */
function isUnclear({ proposal }: Call, kind: FailureKind): boolean {
  return kind === 'Unknown' && proposal.effect !== 'read'
}

/**
 * The call has happened, so its result is kept in every case. Metadata is written as JSON, or left out if it has no
 * JSON form.
 */
function writableMetadata(metadata: OutputMetadata): OutputMetadata {
  try {
    // A copy, because recorded metadata must read the same every time.
    const odd: string[] = []
    const copy = plainCopy(metadata, METADATA_LEVELS_MAX, odd)
    if (odd.length === 0) return copy as OutputMetadata
    return JSON.parse(JSON.stringify(metadata)) as OutputMetadata
  } catch (error) {
    return { left_out: `The metadata cannot be written: ${error instanceof Error ? error.message : 'no JSON'}` }
  }
}

export type ReplyMessage = Extract<OwnerBody, { type: 'agent.message' }>

export function buildReplyMessage(
  reply: Reply,
  calls: readonly Proposal[],
  verdict: Verdict,
  miss: Json | undefined,
): ReplyMessage {
  const message: Mutable<ReplyMessage> = { type: 'agent.message', parts: reply.parts, calls, verdict }
  if (reply.usage) message.usage = reply.usage
  const cost = reply.cost === undefined ? undefined : validCost(reply)
  if (cost !== undefined) message.cost = cost
  if (reply.assumed) message.assumed = true
  if (reply.route) {
    message.route = reply.route
    if (reply.fallback_from) message.fallback_from = reply.fallback_from
  }
  if (reply.cached) message.cached = true
  if (miss !== undefined) message.missed = miss
  if (reply.finish === 'length' || reply.finish === 'refusal') message.finish = reply.finish
  return message
}

/** A cost that is not a valid amount is dropped; the amount that was held is then charged. */
export function validCost({ cost = Number.NaN }: Reply): number | undefined {
  return typeof cost === 'number' && cost >= 0 && cost < COST_MAX ? cost : undefined
}

/** A call whose arguments were cut off is not run: the missing part may be what mattered. */
export function refuseCutCall(call: Proposal, args: string, usage: Usage | null): Proposal {
  if (isCompleteJson(args)) return call
  const { gate: _gate, digest: _digest, same: _same, ...rest } = call
  const limit = usage ? `at ${usage.outputTokens} tokens, the limit of one answer` : 'at the limit of one answer'
  const message = `Your reply was cut off ${limit}. The call of "${call.tool}" was not whole and was not run. Write less at a time: split it into several calls.`
  const failure = { kind: 'InvalidInput', message, recoverable: true } as const
  const retryKind = 'InvalidArguments'
  return { ...rest, gate: { type: 'refuse', failure, retryKind, metadata: { retry: true, error_type: retryKind } } }
}

function isCompleteJson(args: string): boolean {
  try {
    JSON.parse(args)
    return true
  } catch {
    return false
  }
}

/** A reply with only a picture is an answer. */
const FILES: ReadonlySet<string> = new Set(['blob', 'url'])

export function judgeReply(reply: Reply, frame: FrozenRun): Verdict {
  if (reply.calls.length > 0) return { type: 'continue' }
  const text = textOf(reply.parts)
  if (text.trim() === '') return reply.parts.some(({ type }) => FILES.has(type)) ? { type: 'final' } : judgeEmpty(reply)
  if (frame.tools.length === 0 || !looksLikeCall(text, [...frame.definitions.keys()])) return { type: 'final' }
  return LEAKED
}

/** A strict hook threw after a reply, so the run ends there. */
export function hookErrorVerdict({ message }: HookFailed): Verdict {
  const failure = { kind: 'Failed', message } as const
  return { type: 'stop', reason: message, as: { type: 'failed', reason: 'hook_error', failure } }
}
