// Approves a call with edited arguments: checks whether its tool and the policy accept them, as far as this process can
// know, and builds the edit to record. The session's owner admits them again before they run.
import type { Json, CallTerms } from '../kernel/content.ts'
import type { ArgumentsEdit } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import { FrozenRuns } from '../runtime/state/frozen-run.ts'
import { requireApproval } from '../runtime/turn/review-run.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { agentOfSession, type Agent } from '../runtime/state/agent.ts'
import { admitCalls, type AdmissionContext, digestOf } from '../tools/core/admit.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { fromAnyJsonSchema, type JsonSchema } from '../tools/core/json-schema.ts'
import { plainCopy } from '../tools/core/plain-values.ts'
import { judgeCall } from '../tools/policy/policy.ts'
import { isObject } from '../view/untrusted-json.ts'
import { clipText } from '../view/shown-text.ts'
import type { ApprovalDecision } from './approval-decision.ts'

const LEVELS_MAX = 256
const EDIT_CHARS_MAX = 16_000_000

/** The edit of a decision; null if the arguments are unchanged. Throws if the edit is not possible. */
export async function buildEdit(
  services: Services,
  at: { readonly id: string; readonly head: Session },
  decision: ApprovalDecision,
  call: Call,
): Promise<ArgumentsEdit | null> {
  const { callId, allow, digest, under, role } = decision
  const given = copyPlainArgs(callId, decision.args)
  const { tool, args: asked, place } = call.proposal
  if (given === undefined || canonicalJson(given) === canonicalJson(asked)) return null
  if (!allow)
    throw new Fault('decision_stale', `Call ${callId} has other arguments than these. A no changes none of them.`)
  if (digest === undefined)
    throw new Fault('invalid_input', `An edit of call ${callId} needs the digest of the call as it was shown: digest.`)
  if (under !== undefined)
    throw new Fault('invalid_input', 'A call that an earlier yes covers cannot be edited: leave out under.')
  if (!isObject(given)) throw editFault(callId, 'the arguments of a call are an object')
  const secret = services.redactor.find(given)
  if (secret !== null) throw editFault(callId, `the arguments hold the secret ${secret}`)
  const frozen = await new FrozenRuns(services.store).of({ id: at.id, session: at.head, begun: null, frozenRun: null })
  const definition = frozen.definitions.get(tool)
  if (definition === undefined) throw editFault(callId, `tool "${tool}" is not there any more`)
  const agent = findAgentHere(services, at.head)
  const known = agent?.tools.seen?.get(tool)
  if (agent && known?.definition === definition) {
    const asking = editAdmissionContext(services, agent)
    const text = JSON.stringify(given)
    const [fresh] = await admitCalls(
      [{ id: call.proposal.id, tool, args: text }],
      new Map([[tool, requireApproval(known)]]),
      asking,
    )
    if (fresh === undefined || fresh.gate?.type === 'refuse')
      throw editFault(
        callId,
        fresh?.gate?.type === 'refuse' ? messageForPeople(fresh.gate.failure.message) : 'they were not read',
      )
    checkRole(callId, fresh, role)
    return { args: fresh.args, digest: digestOf({ name: tool, definition }, { ...fresh, place }) }
  }
  await checkByFrozenSchema(callId, tool, given, frozen.tools.find(({ name }) => name === tool)?.parameters ?? {})
  if (agent) await checkPolicy(agent, call, given, decision)
  // This process does not know where paths lead and what files hold, so the owner asks once more about a call that
  // names files.
  return { args: given, digest: digestOf({ name: tool, definition }, { args: given, place }) }
}

/** A copy of plain JSON; undefined if no arguments were given. */
function copyPlainArgs(callId: string, args: unknown): Json | undefined {
  if (args === undefined) return undefined
  const odd: string[] = []
  const copy = plainCopy(args, LEVELS_MAX, odd)
  if (odd[0] !== undefined) throw editFault(callId, `the arguments hold ${odd[0]}, which is no JSON`)
  if (JSON.stringify(copy).length > EDIT_CHARS_MAX)
    throw editFault(callId, `the arguments have more than ${EDIT_CHARS_MAX} characters`)
  return copy
}

/** The agent of the session, if this process has it. */
function findAgentHere(services: Services, head: Session): Agent | null {
  try {
    return agentOfSession(services, head)
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

/** A person has just decided here, so it does not count that none can be asked. */
function editAdmissionContext(
  { store, clock, redactor }: Services,
  { policy, environment, approvalMs }: Agent,
): AdmissionContext {
  return { now: store.now(), clock, approvalMs, policy: { ...policy, onAsk: 'park' }, environment, redactor }
}

/** The tool is not known here, so the schema that the run froze is checked. */
async function checkByFrozenSchema(callId: string, tool: string, args: Json, parameters: Json): Promise<void> {
  const checked = await fromAnyJsonSchema(parameters as JsonSchema, tool)['~standard'].validate(args)
  const [issue] = checked.issues ?? []
  if (issue === undefined) return
  const path = (issue.path ?? []).map(String).join('.')
  throw editFault(
    callId,
    `${path === '' ? 'the arguments' : `"${clipText(path, 80)}"`}: ${clipText(issue.message, 300)}`,
  )
}

async function checkPolicy(
  { policy, environment }: Agent,
  call: Call,
  args: Json,
  { callId, role }: ApprovalDecision,
): Promise<void> {
  const { tool, effect } = call.proposal
  const place = environment === null ? {} : { environment }
  const judged = await judgeCall({ ...policy, onAsk: 'park' }, { tool, args, effect, approval: 'always', ...place })
  if (judged.type === 'deny') throw editFault(callId, judged.reason)
  if (judged.type === 'ask') checkRole(callId, { gate: { ...judged.gate, expiresAt: null } }, role)
}

function checkRole(callId: string, { gate }: Pick<CallTerms, 'gate'>, role = ''): void {
  const roles = gate?.type === 'ask' ? gate.roles : []
  if (roles.length > 0 && !roles.includes(role))
    throw editFault(callId, `such a call must be decided by somebody whose role is ${roles.join(' or ')}`)
}

/** The message of admission, without the lines that repeat the arguments for a model. */
function messageForPeople(message: string): string {
  const lines = message.split('\n').filter((line) => !/^(Received|Expected):/.test(line))
  return lines.map((line) => line.trim().replace(/^- /, '')).join(' ')
}

function editFault(callId: string, why: string): Fault {
  return new Fault('invalid_input', `Call ${callId} cannot be edited like this: ${why}${why.endsWith('.') ? '' : '.'}`)
}
