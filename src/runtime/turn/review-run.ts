// Reviews open calls that were decided elsewhere: the calls of a run that came from a file or another session, and an
// approved call whose place is no longer the approved one. Today's tools and policy set the terms on which it may run,
// and a person is always asked. Nothing runs here; the outcome is recorded.
import type { Json, Mutable, CallTerms } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import type { Call } from '../../kernel/ledger.ts'
import type { Effect } from '../../kernel/next.ts'
import { unknownResult } from '../../kernel/result.ts'
import { admitCalls, type AdmissionContext } from '../../tools/core/admit.ts'
import { canonicalJson } from '../../tools/core/canonical-json.ts'
import type { Approval, Tool } from '../../tools/core/tool.ts'
import { type ReplyAdmission, readmitCall } from './admit-reply.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import type { Preparer } from './prepare-run.ts'
import { reviewOptions } from './run-options.ts'
import type { Tools } from '../state/toolbox.ts'
import type { Services } from '../state/runtime-ports.ts'

const RAN = 'This call ran where the session comes from.'

/**
 * Reviews the whole run: it gets the current setup, and each open call is reviewed. The event `run.reviewed` comes
 * last.
 */
export async function reviewRun(
  { services, preparer, asking }: { services: Services; preparer: Preparer; asking: AdmissionContext },
  { open }: Extract<Effect, { type: 'review' }>,
  cache: SessionCache,
  flight: FlightContext,
): Promise<Landing> {
  const chosen = await reviewOptions(services, cache)
  const { agent } = chosen
  const tools = await agent.tools.open(flight)
  const { setup, blobs } = await preparer.setup(cache, tools, chosen)
  const admitting: ReplyAdmission = { services, agent, cache, tools, allow: 'all', flight }
  const events: OwnerBody[] = []
  for (const call of open.filter(isUndecided)) {
    if (mayHaveRun(call, tools)) events.push(unknownResult(call.key, RAN))
    else events.push(await reviewCall(admitting, asking, call, false))
  }
  // One sequential call makes the whole batch sequential.
  const serial = events.some((event) => event.type === 'call.reviewed' && event.sequential)
  const ordered = events.map((event): OwnerBody => {
    return serial && event.type === 'call.reviewed' ? { ...event, sequential: true } : event
  })
  return { events: [...ordered, { type: 'run.reviewed', limits: agent.limits, ...setup }], blobs }
}

/** The call has no answer and was not denied. */
function isUndecided({ state, proposal }: Call): boolean {
  if (state.type === 'running') return true
  const open = state.type === 'ready' || state.type === 'asked' || state.type === 'edited'
  return open && proposal.gate?.type !== 'refuse'
}

/**
 * A call that may run only once and had started elsewhere must not run here. The effect class of the current tool
 * decides too, never the log alone.
 */
function mayHaveRun({ state, proposal }: Call, tools: Tools): boolean {
  if (state.type !== 'running') return false
  return proposal.effect === 'once' || (tools.get(proposal.tool)?.effect ?? 'once') === 'once'
}

/** Reads, checks and judges the call as if a model had just made it, but always asks a person. */
export async function reviewCall(
  admitting: ReplyAdmission,
  asking: AdmissionContext,
  { key, proposal: { id, tool, args } }: Call,
  serial: boolean,
): Promise<Extract<OwnerBody, { type: 'call.reviewed' }>> {
  const found = admitting.tools.get(tool)
  const tools = found ? new Map(admitting.tools).set(tool, requireApproval(found)) : admitting.tools
  // Replacing a missing tool by another one was never asked for.
  const judging = { ...asking, unknownTool: 'return' } as const
  const [fresh] = await admitCalls([{ id, tool, args: JSON.stringify(args) }], tools, judging)
  if (!fresh) throw new Error('a call was admitted as none')
  const same = fresh.gate?.type === 'refuse' || canonicalJson(fresh.args) === canonicalJson(args)
  const { id: _id, tool: _tool, args: _args, raw: _raw, text: _text, ...terms } = await readmitCall(admitting, fresh)
  const { digest: _digest, clear: _clear, ...rest } = terms
  const judged: Mutable<CallTerms> = same ? { ...terms } : { ...rest, gate: otherArgumentsGate(tool) }
  if (serial) judged.sequential = true
  return { type: 'call.reviewed', call: key, ...judged }
}

/**
 * Admits the arguments that a person gave in place of the model's, like new ones. A rule that asks about them is no
 * obstacle: the person has decided, and the fold counts that decision. A mistake in them uses no retry of the model.
 */
export async function reviewEdit(
  admitting: ReplyAdmission,
  asking: AdmissionContext,
  call: Call,
): Promise<Extract<OwnerBody, { type: 'call.reviewed' }>> {
  const { state, proposal } = call
  if (state.type !== 'edited') throw new Error('a call without an edit was admitted as one')
  const edited = { ...call, proposal: { ...proposal, args: state.args } }
  const judging: AdmissionContext = { ...asking, policy: { ...asking.policy, onAsk: 'park' } }
  const { gate, ...terms } = await reviewCall(admitting, judging, edited, proposal.sequential === true)
  if (gate?.type !== 'refuse') return { ...terms, ...(gate ? { gate } : {}), edit: state.seq }
  const { retryKind: _retryKind, metadata: _metadata, failure, ...rest } = gate
  const message = `Not run: the arguments that ${state.by} gave this call cannot be used. ${failure.message}`
  const refused = { ...rest, failure: { ...failure, message, recoverable: false }, metadata: EDIT_REFUSED }
  return { ...terms, gate: refused, edit: state.seq }
}

const EDIT_REFUSED = { error_type: 'EditRefused' } as const

/** A person is asked, whatever the rules allow. Refused calls stay refused. */
export function requireApproval(tool: Tool): Tool {
  const approval = async (args: Json): Promise<Approval> => {
    return (await tool.approval(args)) === 'never' ? 'never' : 'always'
  }
  return { ...tool, approval }
}

function otherArgumentsGate(tool: string): NonNullable<CallTerms['gate']> {
  const message = `Not run: "${tool}" reads these arguments in another way than when the call was made. Make the call again.`
  return { type: 'refuse', failure: { kind: 'InvalidInput', message, recoverable: true } }
}
