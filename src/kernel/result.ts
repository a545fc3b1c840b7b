// The results the kernel itself decides: what a call gets when nothing of it needs to run, and what a run that ends leaves.
import { isAwaited } from './clock.ts'
import type { CallKey, CallStatus, FailureKind, Outcome } from './content.ts'
import type { OwnerBody } from './event.ts'
import { type Call, type CallState, outsideOf, type Turn } from './ledger.ts'
import type { Session } from './session.ts'

type Result = Extract<OwnerBody, { type: 'agent.tool_result' }>

const passed = (call: CallKey): Result => ({ type: 'agent.tool_result', call, status: 'ok', content: '' })
const REJECTED = 'Tool call was rejected by a human reviewer.'
const REJECTED_AS = { error_type: 'ApprovalRejected' } as const

/** The result of a call that needs no effect, if it has one by now. */
export function resultOf(s: Session, { verdict }: Turn, call: Call, now: number): Result | null {
  const { state, key } = call
  const { gate } = call.proposal
  if (state.type === 'answered') return answered(call, state)
  if (state.type === 'denied')
    return { ...refused(key, 'denied', REJECTED + (state.why ? `\nReason: ${state.why}` : '')), metadata: REJECTED_AS }
  if (state.type === 'running' || (state.type === 'outside' && !isDone(s, call, now))) return null
  if (state.type === 'outside') return passed(key)
  if (verdict.type === 'retry_tool_output' && verdict.call === call.index) return refused(key, 'error', verdict.text)
  if (verdict.type === 'final') return { type: 'agent.tool_result', call: key, status: 'ok', content: 'accepted' }
  if (verdict.type === 'stop') return refused(key, 'aborted', `Not run: ${verdict.reason}`)
  if (verdict.type !== 'continue') return refused(key, 'aborted', 'Not run: the reply as a whole was not valid.')
  if (gate?.type === 'refuse')
    return { status: 'error', ...gate, type: 'agent.tool_result', call: key, content: gate.failure.message }
  const expired = state.type === 'asked' && expiry(call) < now
  return expired ? refused(key, 'denied', 'The approval expired before anyone decided.') : null
}

/** What an open call gets when its run ends before it ran. Orders were carried out as they were handed over. */
export function closing(call: Call, text: string): Result {
  if (call.state.type === 'outside' && outsideOf(call.proposal)?.orders) return passed(call.key)
  return call.state.type === 'answered' ? answered(call, call.state) : refused(call.key, 'aborted', text)
}

/** A `once` call that was lost between its intent and its result: it may have happened, and is never run again. */
export function unknown(key: CallKey, why = 'The worker was lost while this ran.'): Result {
  const message = `${why} It may or may not have taken effect; check before repeating it.`
  const failure = { kind: 'Unknown', message } as const
  return { type: 'agent.tool_result', call: key, status: 'unknown', content: message, failure }
}

export function refused(key: CallKey, status: Exclude<CallStatus, 'ok' | 'unknown'>, message: string): Result {
  const kind = ({ denied: 'Denied', aborted: 'Interrupted', timeout: 'Timeout', error: 'Failed' } as const)[status]
  return { type: 'agent.tool_result', call: key, status, content: message, failure: { kind, message } }
}

export function expiry({ state, proposal }: Call): number {
  const { gate } = proposal
  const asked = state.type === 'asked' && gate?.type === 'ask' ? gate.expiresAt : null
  return (state.type === 'outside' ? outsideOf(proposal)?.until : asked) ?? Number.POSITIVE_INFINITY
}

/** Orders are carried out as they are handed over. A wait is over when the report is there, or its time. */
function isDone({ inputs }: Session, { proposal }: Call, now: number): boolean {
  const { orders, awaits, since = 0, until = 0 } = outsideOf(proposal) ?? {}
  if (awaits === undefined) return orders !== undefined
  return inputs.some(({ report }) => report?.by === `session:${awaits}`) || !isAwaited(until, since, now)
}

function answered(call: Call, state: Extract<CallState, { type: 'answered' }>): Result {
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

/** Code without types may say any other. */
export function isFailureKind(kind: unknown): kind is FailureKind {
  return typeof kind === 'string' && Object.hasOwn(FAILURE_KINDS, kind)
}

/** The end of a run. Input it swallowed joins the transcript and starts nothing: what opened it, and all before an interrupt. */
export function settlement(s: Session, outcome: Outcome): OwnerBody {
  const opened = s.run?.seq ?? 0
  const inputs = s.inputs.filter((i) => i.seq < s.stop || (i.seq < opened && i.when !== 'after')).map((i) => i.seq)
  return inputs.length > 0 ? { type: 'run.settled', outcome, inputs } : { type: 'run.settled', outcome }
}
