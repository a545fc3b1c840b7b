// Approving a call with other arguments than the model gave: whether its tool and the policy take them, as far as this process can
// know, and what is recorded of them. The owner of the session admits them again before they run.
import type { Json, Terms } from '../kernel/content.ts'
import type { Edit } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import { FrozenRuns } from '../effects/frozen-run.ts'
import { alwaysAsked } from '../effects/review.ts'
import { agentIn, type Agent, type Services } from '../engine/wiring.ts'
import { admit, type Asking, digestOf } from '../tools/core/admit.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { anyJsonSchema, type JsonSchema } from '../tools/core/json-schema.ts'
import { plainCopy } from '../tools/core/plain.ts'
import { judgeCall } from '../tools/policy/policy.ts'
import { isObject } from '../view/json.ts'
import { clipped } from '../view/text.ts'
import type { ApprovalDecision } from './approval-decision.ts'

const LEVELS_MAX = 256
const EDIT_CHARS_MAX = 16_000_000

/** The edit that a decision asks for; null if its arguments are those that were asked about. Refused if it cannot be made. */
export async function editOf(
  services: Services,
  at: { readonly id: string; readonly head: Session },
  decision: ApprovalDecision,
  call: Call,
): Promise<Edit | null> {
  const { callId, allow, digest, under, role } = decision
  const given = plainArgs(callId, decision.args)
  const { tool, args: asked, place } = call.proposal
  if (given === undefined || canonicalJson(given) === canonicalJson(asked)) return null
  if (!allow)
    throw new Fault('decision_stale', `Call ${callId} has other arguments than these. A no changes none of them.`)
  if (digest === undefined)
    throw new Fault('invalid_input', `An edit of call ${callId} needs the digest of the call as it was shown: digest.`)
  if (under !== undefined)
    throw new Fault('invalid_input', 'A call that an earlier yes covers cannot be edited: leave out under.')
  if (!isObject(given)) throw refused(callId, 'the arguments of a call are an object')
  const secret = services.redactor.find(given)
  if (secret !== null) throw refused(callId, `the arguments hold the secret ${secret}`)
  const frozen = await new FrozenRuns(services.store).of({ id: at.id, session: at.head, begun: null, frame: null })
  const definition = frozen.definitions.get(tool)
  if (definition === undefined) throw refused(callId, `tool "${tool}" is not there any more`)
  const agent = agentHere(services, at.head)
  const known = agent?.tools.seen?.get(tool)
  if (agent && known?.definition === definition) {
    const asking = askingHere(services, agent)
    const text = JSON.stringify(given)
    const [fresh] = await admit(
      [{ id: call.proposal.id, tool, args: text }],
      new Map([[tool, alwaysAsked(known)]]),
      asking,
    )
    if (fresh === undefined || fresh.gate?.type === 'refuse')
      throw refused(
        callId,
        fresh?.gate?.type === 'refuse' ? forPeople(fresh.gate.failure.message) : 'they were not read',
      )
    checkRole(callId, fresh, role)
    return { args: fresh.args, digest: digestOf({ name: tool, definition }, { ...fresh, place }) }
  }
  await checkByFrozenSchema(callId, tool, given, frozen.tools.find(({ name }) => name === tool)?.parameters ?? {})
  if (agent) await checkPolicy(agent, call, given, decision)
  // Where its paths lead and what their files hold is not known here: a call that names files is asked about once more by its owner.
  return { args: given, digest: digestOf({ name: tool, definition }, { args: given, place }) }
}

/** A copy that holds nothing but JSON; undefined if none were given. */
function plainArgs(callId: string, args: unknown): Json | undefined {
  if (args === undefined) return undefined
  const odd: string[] = []
  const copy = plainCopy(args, LEVELS_MAX, odd)
  if (odd[0] !== undefined) throw refused(callId, `the arguments hold ${odd[0]}, which is no JSON`)
  if (JSON.stringify(copy).length > EDIT_CHARS_MAX)
    throw refused(callId, `the arguments have more than ${EDIT_CHARS_MAX} characters`)
  return copy
}

/** The agent of the session, if this process has it. */
function agentHere(services: Services, head: Session): Agent | null {
  try {
    return agentIn(services, head)
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

/** Here a person has just decided: that no one can be asked is no reason against the call. */
function askingHere({ store, clock, redactor }: Services, { policy, environment, approvalMs }: Agent): Asking {
  return { now: store.now(), clock, approvalMs, policy: { ...policy, onAsk: 'park' }, environment, redactor }
}

/** Without the tool: what the run froze of its schema. */
async function checkByFrozenSchema(callId: string, tool: string, args: Json, parameters: Json): Promise<void> {
  const checked = await anyJsonSchema(parameters as JsonSchema, tool)['~standard'].validate(args)
  const [issue] = checked.issues ?? []
  if (issue === undefined) return
  const path = (issue.path ?? []).map(String).join('.')
  throw refused(callId, `${path === '' ? 'the arguments' : `"${clipped(path, 80)}"`}: ${clipped(issue.message, 300)}`)
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
  if (judged.type === 'deny') throw refused(callId, judged.reason)
  if (judged.type === 'ask') checkRole(callId, { gate: { ...judged.gate, expiresAt: null } }, role)
}

function checkRole(callId: string, { gate }: Pick<Terms, 'gate'>, role = ''): void {
  const roles = gate?.type === 'ask' ? gate.roles : []
  if (roles.length > 0 && !roles.includes(role))
    throw refused(callId, `such a call must be decided by somebody whose role is ${roles.join(' or ')}`)
}

/** What admission says of the arguments, without the lines that repeat them for a model. */
function forPeople(message: string): string {
  const lines = message.split('\n').filter((line) => !/^(Received|Expected):/.test(line))
  return lines.map((line) => line.trim().replace(/^- /, '')).join(' ')
}

function refused(callId: string, why: string): Fault {
  return new Fault('invalid_input', `Call ${callId} cannot be edited like this: ${why}${why.endsWith('.') ? '' : '.'}`)
}
