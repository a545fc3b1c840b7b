// What effects come to, as events: results, replies, failures, and what is written for an effect that never came back.
// Nothing here touches the world.
import type { CallKey, FailureKind, Json, Mutable, Proposal, Usage, Verdict } from '../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../kernel/event.ts'
import type { Call } from '../kernel/ledger.ts'
import type { StopReason } from '../kernel/limits.ts'
import type { Effect } from '../kernel/next.ts'
import type { Blob } from '../ports/store.ts'
import type { Reply } from '../ports/model.ts'
import { closing, refused, unknown } from '../kernel/result.ts'
import { LEAKED, looksLikeCall } from '../models/protocols/leaked.ts'
import { emptied } from '../models/output.ts'
import { ownId } from '../stores/plan/id.ts'
import { bound } from '../tools/core/bound.ts'
import { type Metadata, NO_METADATA, type Output, ToolFailure } from '../tools/core/output.ts'
import { plainCopy } from '../tools/core/plain.ts'
import type { Done } from '../tools/core/run.ts'
import type { AbortReason, FlightContext, Landing } from '../engine/flights.ts'
import type { LiveDelta } from '../live/live.ts'
import type { Redactor } from '../riders/redact/redact.ts'
import { refOf, textBlob } from '../engine/wiring.ts'
import type { FrozenRun } from './frozen-run.ts'
import { textOf } from '../view/text.ts'

/** Longer texts live beside the log, by hash. */
const INLINE_BYTES_MAX = 64 * 1024
export const PREPARE_MS = 60_000
/** Tools bound what they say themselves. This is for those that do not. */
const CLIPPED_CHARS_MIN = 200_000
const CLIPPED_CHARS = 50_000
const METADATA_LEVELS_MAX = 64
/** A million dollars. */
const COST_MAX = 1e12

/** All but the preparing of a run, which may be tried again (prepare.ts). */
type Begun = Exclude<Effect, { type: 'prepare' }>

const LATE_EDIT = 'the arguments that a person gave this call could not be checked in time.'
const NEVER = 'Stopped before it started: it did not run.'
export const TOO_LONG = new ToolFailure('Timeout', 'Preparing the run took too long.')

/** What is written for an effect that was stopped before it started, or did not land in time. */
export function abandon(effect: Begun, reason: AbortReason, started: boolean, partial?: string): Landing {
  // A stopped call may have cost money that the provider did not report.
  if (effect.type === 'call') {
    const failed = { ...stoppedCall(reason), ...(started ? { assumed: true as const } : {}) }
    return { events: [partial === undefined ? failed : { ...failed, partial }] }
  }
  if (effect.type === 'review') return unreviewed(effect, 'Timeout', 'it took too long')
  const { key, proposal } = effect.call
  if (effect.mode === 'clear') {
    return { events: [heldBack(key, LATE_WORD, false)] }
  }
  if (effect.mode === 'edit') return { events: [refused(key, 'denied', `Not run: ${LATE_EDIT}`)] }
  if (!started && effect.mode === 'execute') {
    const { state } = effect.call
    const before = state.type === 'running' && state.tries > 0
    const text = before ? 'Stopped before it was tried again: the try before was lost, and may have run.' : NEVER
    return { events: [refused(key, 'aborted', text)] }
  }
  const late = reason === 'timeout'
  const text = late ? timedOut(proposal.timeoutMs) : 'Stopped while it ran.'
  if (proposal.effect === 'once') {
    const result = unknown(key, reason === 'lost' ? undefined : text)
    return { events: [late ? { ...result, metadata: { error_type: 'Timeout' } } : result] }
  }
  return { events: [refused(key, late ? 'timeout' : 'aborted', text)] }
}

/** The status of a stopped call, with what the tool itself said of how far it came. */
export function stoppedResult({ events: [stopped] }: Landing, { events: [said], ...rest }: Landing): Landing {
  if (stopped?.type !== 'agent.tool_result' || said?.type !== 'agent.tool_result') return { events: [] }
  const { status, failure } = stopped
  return { ...rest, events: [{ ...said, status, ...(failure ? { failure } : {}) }] }
}

/** What a call says that took too long. */
function timedOut(timeoutMs: number): string {
  return `Timed out after ${timeoutMs} ms.`
}

/**
 * What a `once` call gave after its attempt had lost the session: evidence in the log, beside the `unknown` that another wrote for
 * it. It changes nothing. Null for what says nothing new: whatever else was in flight is simply done again.
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
    id: ownId('late', call),
    call,
    ok: true,
    content: said,
    by: 'terret',
    metadata,
  }
}

/** What a hook is taken to have said that did not come back. */
export const LATE_WORD = 'it did not say in time whether this may run'

/** A hook said no. It has no intent, and its place among the calls of the run is given back. */
export function heldBack(key: CallKey, why: string, child: boolean): Extract<OwnerBody, { type: 'agent.tool_result' }> {
  const error_type = child ? 'SubAgentCancelled' : 'CancelledByHook'
  return { ...refused(key, 'denied', `Not run: a hook held it back: ${why}`), metadata: { error_type } }
}

/** The call ran, and its result is withheld until a hook has seen it. */
export const WITHHELD: Output = {
  ok: false,
  content: 'The call ran, but a hook that must see its result did not do so, and the result is withheld.',
  metadata: { error_type: 'InvalidToolOutput' },
}

/** `late` if the flight was aborted first; with `only`, if it was for this reason. */
export async function inTime<T>(work: Promise<T>, flight: FlightContext, late: T, only?: AbortReason): Promise<T> {
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

export function deadlineOf(effect: Effect, now: number): number {
  if (effect.type === 'call') return effect.deadline
  const runs = effect.type === 'run' && (effect.mode === 'execute' || effect.mode === 'reconcile')
  return now + (runs ? effect.call.proposal.timeoutMs : PREPARE_MS)
}

type Failed = Extract<OwnerBody, { type: 'model.failed' }>
/** How far a call had come when it was stopped. */
type Stopped = { readonly elapsedMs: number; readonly partial: string | undefined }

export function stoppedCall(reason: AbortReason, at?: Stopped): Failed {
  const after = at ? ` after ${at.elapsedMs} ms` : ''
  const late = reason === 'timeout'
  const kind = late ? 'timeout' : reason === 'superseded' ? 'superseded' : 'interrupted'
  const message = late ? `The model timed out${after}.` : `The call was stopped${after}: ${reason}.`
  const failed = { type: 'model.failed', class: kind, message, retryable: true } as const
  return at?.partial === undefined ? failed : { ...failed, partial: at.partial }
}

/**
 * What is written for an answer that came after the log asked for its stop: its text and its money are kept, and none of its calls
 * is admitted. A failure after that is part of the stop, whatever the model called it.
 */
export function stoppedReply(landing: Landing, why: StopReason): Landing {
  const [said, ...rest] = landing.events
  // What a summary cost was spent all the same.
  const compacted = rest.filter(({ type }) => type === 'context.compacted')
  if (said?.type === 'model.failed') {
    const { retryAt: _retryAt, unasked: _unasked, ...failed } = said
    const { class: kind } = stoppedCall(why)
    if (said.class === kind) return landing
    const stopped = { ...failed, class: kind, message: `Stopped (${why}). ${said.message}`, retryable: true }
    return { events: [stopped, ...compacted] }
  }
  if (said?.type !== 'agent.message') return landing
  const { usage, cost, assumed, route, parts } = said
  const text = textOf(parts)
  const failed: Mutable<Failed> = {
    ...stoppedCall(why),
    message: `The call was stopped: ${why}. Its answer came all the same, and none of its calls was run.`,
  }
  if (text !== '') failed.partial = text
  if (usage) failed.usage = usage
  if (cost !== undefined) failed.cost = cost
  if (assumed || cost === undefined) failed.assumed = true
  if (route !== undefined) failed.route = route
  return { events: [failed, ...compacted] }
}

/** The text of what the open model call has shown so far; undefined if there is none. */
export function shownText(said: readonly LiveDelta[], seq: number): string | undefined {
  const text = said.map((delta) => (delta.seq === seq && delta.kind === 'text' ? delta.text : '')).join('')
  return text === '' ? undefined : text
}

export function messageIn(error: unknown): string {
  return error instanceof Error && error.message ? error.message : String(error) || 'an error without a message'
}

export function failedLanding(effect: Begun, error: unknown): Landing {
  const message = messageIn(error)
  if (effect.type === 'run') return { events: [refused(effect.call.key, 'error', message)] }
  if (effect.type === 'call') return { events: [{ type: 'model.failed', class: 'other', message, retryable: false }] }
  return unreviewed(effect, 'Failed', message)
}

/** Its calls cannot be asked about, so none of them runs, and the run ends there. */
function unreviewed({ open }: Extract<Effect, { type: 'review' }>, kind: 'Failed' | 'Timeout', why: string): Landing {
  const message = `What was open here came from elsewhere, and could not be asked about: ${why}`
  const closed = open.map((call) => {
    return call.state.type === 'running' ? unknown(call.key) : closing(call, `Not run: ${message}`)
  })
  const outcome = { type: 'failed', reason: 'prepare_failed', failure: { kind, message } } as const
  return { events: [...closed, { type: 'run.settled', outcome }] }
}

/** No tool may fill a context by itself: of what is far too long the model sees both ends, and can read the rest. */
function clippedOf(text: string, reader: string | undefined) {
  const whole = textBlob(text, 'text/plain')
  const { content, metadata } = bound(text, { keep: () => refOf(whole), redact: (said) => said, reader }, CLIPPED_CHARS)
  return { content, metadata: { ...metadata, tool_output_clipped: true }, whole }
}

/** An envelope becomes the event: long content goes beside the log, metadata only if there is any. */
type Ended = Exclude<Done, { type: 'undecided' }>

/** Where a result is written. The reader is looked up only for what is cut. */
type Writing = { readonly redactor: Redactor; readonly context: { readonly reader?: string | undefined } }

export function resultOf(call: Call, done: Ended, kept: readonly Blob[], { redactor, context }: Writing): Landing {
  const { ok } = done.output
  const said = redactor.text(done.output.content)
  const clipped = said.length > CLIPPED_CHARS_MIN ? clippedOf(said, context.reader) : null
  const content = clipped?.content ?? said
  const own = writable(done.output.metadata)
  const metadata = clipped ? { ...own, ...clipped.metadata } : own
  const long = content.length > INLINE_BYTES_MAX / 4 && Buffer.byteLength(content) > INLINE_BYTES_MAX
  const blob = long ? textBlob(content, 'text/plain') : null
  const kind = done.type === 'failed' ? done.kind : 'Failed'
  const event: Mutable<Extract<OwnerBody, { type: 'agent.tool_result' }>> = {
    type: 'agent.tool_result',
    call: call.key,
    status: ok ? 'ok' : isUnclear(call, kind) ? 'unknown' : 'error',
    content: blob ? refOf(blob) : content,
  }
  const refs = done.output.parts?.filter((part) => part.type === 'blob')
  if (refs?.length) event.parts = refs
  if (!ok) event.failure = { kind, message: content.slice(0, 500) || kind }
  if (done.type === 'failed' && done.retryKind !== undefined) event.retryKind = done.retryKind
  if (done.attempts > 1) event.metadata = { ...metadata, attempts: done.attempts }
  else if (metadata !== NO_METADATA) event.metadata = metadata
  const all = clipped ? [...kept, clipped.whole] : kept
  const blobs = blob ? [...all, blob] : all
  const { follows } = done.output
  const events = follows ? [event, ...follows] : [event]
  return blobs.length > 0 ? { events, blobs } : { events }
}

/** The tool itself cannot say whether its call took effect, such as one whose connection was lost. A read has no effect. */
function isUnclear({ proposal }: Call, kind: FailureKind): boolean {
  return kind === 'Unknown' && proposal.effect !== 'read'
}

/** The call has happened: metadata is written as JSON has it, or if it has no JSON is left out, and its result is not. */
function writable(metadata: Metadata): Metadata {
  if (metadata === NO_METADATA) return metadata
  try {
    // A copy: what is recorded must not answer otherwise when it is read again.
    const odd: string[] = []
    const copy = plainCopy(metadata, METADATA_LEVELS_MAX, odd)
    if (odd.length === 0) return copy as Metadata
    return JSON.parse(JSON.stringify(metadata)) as Metadata
  } catch (error) {
    return { left_out: `The metadata cannot be written: ${error instanceof Error ? error.message : 'no JSON'}` }
  }
}

export type Message = Extract<OwnerBody, { type: 'agent.message' }>

export function messageOf(reply: Reply, calls: readonly Proposal[], verdict: Verdict, miss: Json | undefined): Message {
  const message: Mutable<Message> = { type: 'agent.message', parts: reply.parts, calls, verdict }
  if (reply.usage) message.usage = reply.usage
  const cost = costOf(reply)
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

/** What is no amount of money is not counted as one: then it is what was held. */
export function costOf({ cost = Number.NaN }: Reply): number | undefined {
  return typeof cost === 'number' && cost >= 0 && cost < COST_MAX ? cost : undefined
}

/** A call that ran out of room is not run: what did not come any more may be what mattered. */
export function uncut(call: Proposal, args: string, usage: Usage | null): Proposal {
  if (isWhole(args)) return call
  const { gate: _gate, digest: _digest, same: _same, ...rest } = call
  const limit = usage ? `at ${usage.outputTokens} tokens, the limit of one answer` : 'at the limit of one answer'
  const message = `Your reply was cut off ${limit}. The call of "${call.tool}" was not whole and was not run. Write less at a time: split it into several calls.`
  const failure = { kind: 'InvalidInput', message, recoverable: true } as const
  const retryKind = 'InvalidArguments'
  return { ...rest, gate: { type: 'refuse', failure, retryKind, metadata: { retry: true, error_type: retryKind } } }
}

function isWhole(args: string): boolean {
  try {
    JSON.parse(args)
    return true
  } catch {
    return false
  }
}

/** A picture is an answer. */
const FILES: ReadonlySet<string> = new Set(['blob', 'url'])

export function verdictOf(reply: Reply, frame: FrozenRun): Verdict {
  if (reply.calls.length > 0) return { type: 'continue' }
  const text = textOf(reply.parts)
  if (text.trim() === '') return reply.parts.some(({ type }) => FILES.has(type)) ? { type: 'final' } : emptied(reply)
  if (frame.tools.length === 0 || !looksLikeCall(text, [...frame.definitions.keys()])) return { type: 'final' }
  return LEAKED
}
