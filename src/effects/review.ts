// What is open and was decided elsewhere is looked at again: the calls of a run that came from a file or another session, and an
// approved call whose place is not the one it was approved for. Today's tools and policy say on which terms it may run, and a
// person is always asked. Nothing runs here; what it comes to is recorded.
import type { Json, Mutable, Terms } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Effect } from '../kernel/next.ts'
import { unknown } from '../kernel/result.ts'
import { admit, type Asking } from '../tools/core/admit.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import type { Approval, Tool } from '../tools/core/tool.ts'
import { type Admitting, admittedAgain } from './admit-reply.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import type { FlightContext, Landing } from '../engine/flights.ts'
import type { Preparer } from './prepare.ts'
import { reviewedOptions } from './run-options.ts'
import type { Tools } from './toolbox.ts'
import type { Services } from '../engine/wiring.ts'

const RAN = 'This call ran where the session comes from.'

/** The run as a whole: its setup is that of now, and each open call is asked about. The run's own word comes last. */
export async function reviewRun(
  { services, preparer, asking }: { services: Services; preparer: Preparer; asking: Asking },
  { open }: Extract<Effect, { type: 'review' }>,
  cache: SessionCache,
  flight: FlightContext,
): Promise<Landing> {
  const chosen = await reviewedOptions(services, cache)
  const { agent } = chosen
  const tools = await agent.tools.open(flight)
  const { setup, blobs } = await preparer.setup(cache, tools, chosen)
  const admitting: Admitting = { services, agent, cache, tools, allow: 'all', flight }
  const events: OwnerBody[] = []
  for (const call of open.filter(isUndecided)) {
    if (mayHaveRun(call, tools)) events.push(unknown(call.key, RAN))
    else events.push(await reviewCall(admitting, asking, call, false))
  }
  // One sequential call puts the whole batch in order.
  const serial = events.some((event) => event.type === 'call.reviewed' && event.sequential)
  const ordered = events.map((event): OwnerBody => {
    return serial && event.type === 'call.reviewed' ? { ...event, sequential: true } : event
  })
  return { events: [...ordered, { type: 'run.reviewed', limits: agent.limits, ...setup }], blobs }
}

/** It has neither an answer nor a no. */
function isUndecided({ state, proposal }: Call): boolean {
  if (state.type === 'running') return true
  const open = state.type === 'ready' || state.type === 'asked' || state.type === 'edited'
  return open && proposal.gate?.type !== 'refuse'
}

/** What ran at most once there must not run here: whether it may is the word of the tool as it is, and never of the log alone. */
function mayHaveRun({ state, proposal }: Call, tools: Tools): boolean {
  if (state.type !== 'running') return false
  return proposal.effect === 'once' || (tools.get(proposal.tool)?.effect ?? 'once') === 'once'
}

/** Read, checked and judged as if a model had just made it, but never let through unasked. */
export async function reviewCall(
  admitting: Admitting,
  asking: Asking,
  { key, proposal: { id, tool, args } }: Call,
  serial: boolean,
): Promise<Extract<OwnerBody, { type: 'call.reviewed' }>> {
  const found = admitting.tools.get(tool)
  const tools = found ? new Map(admitting.tools).set(tool, alwaysAsked(found)) : admitting.tools
  // Another tool in the place of one that is gone was never asked for.
  const judging = { ...asking, unknownTool: 'return' } as const
  const [fresh] = await admit([{ id, tool, args: JSON.stringify(args) }], tools, judging)
  if (!fresh) throw new Error('a call was admitted as none')
  const same = fresh.gate?.type === 'refuse' || canonicalJson(fresh.args) === canonicalJson(args)
  const { id: _id, tool: _tool, args: _args, raw: _raw, ...terms } = await admittedAgain(admitting, fresh)
  const { digest: _digest, clear: _clear, ...rest } = terms
  const judged: Mutable<Terms> = same ? { ...terms } : { ...rest, gate: otherArguments(tool) }
  if (serial) judged.sequential = true
  return { type: 'call.reviewed', call: key, ...judged }
}

/**
 * The arguments that a person gave in place of the model's, admitted like new ones. That the policy asks about them is no reason
 * against them: the person has decided, and the fold counts that decision. What is wrong with them uses no retry of the model.
 */
export async function reviewEdit(
  admitting: Admitting,
  asking: Asking,
  call: Call,
): Promise<Extract<OwnerBody, { type: 'call.reviewed' }>> {
  const { state, proposal } = call
  if (state.type !== 'edited') throw new Error('a call without an edit was admitted as one')
  const edited = { ...call, proposal: { ...proposal, args: state.args } }
  const judging: Asking = { ...asking, policy: { ...asking.policy, onAsk: 'park' } }
  const { gate, ...terms } = await reviewCall(admitting, judging, edited, proposal.sequential === true)
  if (gate?.type !== 'refuse') return { ...terms, ...(gate ? { gate } : {}), edit: state.seq }
  const { retryKind: _retryKind, metadata: _metadata, failure, ...rest } = gate
  const message = `Not run: the arguments that ${state.by} gave this call cannot be used. ${failure.message}`
  const refused = { ...rest, failure: { ...failure, message, recoverable: false }, metadata: EDIT_REFUSED }
  return { ...terms, gate: refused, edit: state.seq }
}

const EDIT_REFUSED = { error_type: 'EditRefused' } as const

/** Whatever rules allow, a person has the word. What is refused stays so. */
export function alwaysAsked(tool: Tool): Tool {
  const approval = async (args: Json): Promise<Approval> => {
    return (await tool.approval(args)) === 'never' ? 'never' : 'always'
  }
  return { ...tool, approval }
}

function otherArguments(tool: string): NonNullable<Terms['gate']> {
  const message = `Not run: "${tool}" reads these arguments in another way than when the call was made. Make the call again.`
  return { type: 'refuse', failure: { kind: 'InvalidInput', message, recoverable: true } }
}
