// The results that the kernel decides itself: of calls that need no effect, and of calls left open when a run ends.
import { mustStillWait } from './clock.ts'
import type { CallKey, CallStatus, FailureKind, Outcome } from './content.ts'
import type { OwnerBody } from './event.ts'
import { type Call, type CallState, outsideOf, type Turn } from './ledger.ts'
import type { Session } from './session.ts'

type Result = Extract<OwnerBody, { type: 'agent.tool_result' }>

const emptyResult = (call: CallKey): Result => ({ type: 'agent.tool_result', call, status: 'ok', content: '' })
const REJECTED = 'Tool call was rejected by a human reviewer.'
const REJECTED_AS = { error_type: 'ApprovalRejected' } as const

/** The result of a call that needs no effect; null while it has none. */
export function resultWithoutEffect(s: Session, { verdict }: Turn, call: Call, now: number): Result | null {
  const { state, key } = call
  const { gate } = call.proposal
  if (state.type === 'answered') return resultFromAnswer(call, state)
  if (state.type === 'denied')
    return {
      ...failedResult(key, 'denied', REJECTED + (state.why ? `\nReason: ${state.why}` : '')),
      metadata: REJECTED_AS,
    }
  if (state.type === 'running' || (state.type === 'outside' && !isOrderDone(s, call, now))) return null
  if (state.type === 'outside') return emptyResult(key)
  if (verdict.type === 'retry_tool_output' && verdict.call === call.index)
    return failedResult(key, 'error', verdict.text)
  if (verdict.type === 'final') return { type: 'agent.tool_result', call: key, status: 'ok', content: 'accepted' }
  if (verdict.type === 'stop') return failedResult(key, 'aborted', `Not run: ${verdict.reason}`)
  if (verdict.type !== 'continue') return failedResult(key, 'aborted', 'Not run: the reply as a whole was not valid.')
  if (gate?.type === 'refuse')
    return { status: 'error', ...gate, type: 'agent.tool_result', call: key, content: gate.failure.message }
  const expired = state.type === 'asked' && expiresAt(call) < now
  return expired ? failedResult(key, 'denied', 'The approval expired before anyone decided.') : null
}

/** The result of an open call when its run ends. Orders were carried out when the call was handed out. */
export function closingResult(call: Call, text: string): Result {
  if (call.state.type === 'outside' && outsideOf(call.proposal)?.orders) return emptyResult(call.key)
  return call.state.type === 'answered' ? resultFromAnswer(call, call.state) : failedResult(call.key, 'aborted', text)
}

/** A `once` call that was lost between its intent and its result. It may have happened, and never runs again. */
export function unknownResult(key: CallKey, why = 'The worker was lost while this ran.'): Result {
  const message = `${why} It may or may not have taken effect; check before repeating it.`
  const failure = { kind: 'Unknown', message } as const
  return { type: 'agent.tool_result', call: key, status: 'unknown', content: message, failure }
}

export function failedResult(key: CallKey, status: Exclude<CallStatus, 'ok' | 'unknown'>, message: string): Result {
  const kind = ({ denied: 'Denied', aborted: 'Interrupted', timeout: 'Timeout', error: 'Failed' } as const)[status]
  return { type: 'agent.tool_result', call: key, status, content: message, failure: { kind, message } }
}

export function expiresAt({ state, proposal }: Call): number {
  const { gate } = proposal
  const asked = state.type === 'asked' && gate?.type === 'ask' ? gate.expiresAt : null
  return (state.type === 'outside' ? outsideOf(proposal)?.until : asked) ?? Number.POSITIVE_INFINITY
}

/** Orders are carried out when the call is handed out. A wait ends when the report arrives, or its time is over. */
function isOrderDone({ inputs }: Session, { proposal }: Call, now: number): boolean {
  const { orders, awaits, since = 0, until = 0 } = outsideOf(proposal) ?? {}
  if (awaits === undefined) return orders !== undefined
  return inputs.some(({ report }) => report?.by === `session:${awaits}`) || !mustStillWait(until, since, now)
}

function resultFromAnswer(call: Call, state: Extract<CallState, { type: 'answered' }>): Result {
  return { type: 'agent.tool_result', call: call.key, status: state.ok ? 'ok' : 'error', content: '', from: state.seq }
}

const FAILURE_KINDS: Readonly<Record<FailureKind, true>> = {
  InvalidInput: true,
  NotFound: true,
  Denied: true,
  Timeout: true,
  NonZeroExit: true,
  Unavailable: true,
  Interrupted: true,
  Unknown: true,
  Failed: true,
}

/** Untyped code may use any other kind. */
export function isFailureKind(kind: unknown): kind is FailureKind {
  return typeof kind === 'string' && Object.hasOwn(FAILURE_KINDS, kind)
}

/**
 * The end of a run. The inputs it consumes join the transcript and start nothing: those that opened the run, and those
 * before an interrupt.
 */
export function buildRunSettled(s: Session, outcome: Outcome): OwnerBody {
  const opened = s.run?.seq ?? 0
  const inputs = s.inputs.filter((i) => i.seq < s.stop || (i.seq < opened && i.when !== 'after')).map((i) => i.seq)
  return inputs.length > 0 ? { type: 'run.settled', outcome, inputs } : { type: 'run.settled', outcome }
}
