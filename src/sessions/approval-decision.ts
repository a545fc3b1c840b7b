// Checks one decision about one waiting call, and turns it into an inbox event. It writes nothing. The fold decides
// whether the decision is in time for the call.
import type { CallKey, Gate, Json } from '../kernel/content.ts'
import type { ArgumentsEdit, InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Call, RunConsent } from '../kernel/ledger.ts'
import {
  anyCheck,
  type Checks,
  whyNameInvalid,
  requiredCheck,
  optionsChecker,
  objectCheck,
  textCheck,
} from '../options.ts'
import { harnessId } from '../stores/plan/store-ids.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { earlierConsent } from '../tools/policy/earlier-consent.ts'
import { personName, skeleton } from '../view/lookalike.ts'
import { BUDGET } from '../view/pending-calls.ts'
import { parsePolicy, type Rule } from '../tools/policy/policy.ts'
import type { PendingCall } from './look/pending.ts'

/**
 * A person's yes or no to one call. `digest` ties it to what was shown: if the call changed since, it is refused as
 * stale.
 */
export type ApprovalDecision = {
  /** The call that is decided, as `pending` names it. `budget`: more money for the session. */
  readonly callId: CallKey
  /** The session that asked, as `pending` names it. Default: this one. */
  readonly sessionId?: string
  /** True lets the call run, false denies it. */
  readonly allow: boolean
  /** The name of the person who decides, for the log. */
  readonly by: string
  /** The reason. For a denial the model reads it. */
  readonly why?: string
  /** The role in which the person decides. Needed for a call that asks for one. */
  readonly role?: string
  /** The digest of the call that you saw. If given, it must be that of the pending call. */
  readonly digest?: string
  /**
   * Arguments that replace those of the call: it runs with these if its tool and the policy accept them. `digest` names
   * the call that you changed. Approvals of the call as it was before do not count for this one.
   */
  readonly args?: Json
  /**
   * A rule to record with the decision. It takes effect once it is in your policy, or with `scope: 'run'` for this run.
   */
  readonly remember?: Rule
  /**
   * Without a scope, an approval is for this one call. With 'run', later questions of this run that the rule in
   * `remember` allows are `covered`, until the run ends or any call is denied.
   */
  readonly scope?: 'run'
  /**
   * The call whose approval covers this one: `covered.call` of the pending call. The decision is refused if that
   * approval does not stand any more.
   */
  readonly under?: CallKey
  /** For `callId: 'budget'`: the additional dollars. */
  readonly usd?: number
}

/**
 * The fields of a pending call, which may be handed back with the decision: `decide({ ...pending, allow, by })`. Only
 * `args` may be changed.
 */
export const SHOWN: Checks<Partial<Omit<PendingCall, 'callId' | 'sessionId' | 'digest' | 'args'>>> = {
  tool: anyCheck,
  needs: anyCheck,
  expiresAt: anyCheck,
  class: anyCheck,
  n: anyCheck,
  roles: anyCheck,
  votes: anyCheck,
  files: anyCheck,
  each: anyCheck,
  covered: anyCheck,
  denied: anyCheck,
  path: anyCheck,
  costUsd: anyCheck,
  treeCostUsd: anyCheck,
  amounts: anyCheck,
  agent: anyCheck,
  labels: anyCheck,
  preview: anyCheck,
  edited: anyCheck,
}
const checkFields = optionsChecker<ApprovalDecision & Partial<PendingCall>>('decide', {
  ...SHOWN,
  callId: requiredCheck(textCheck, 'Name the call as `pending` does.'),
  sessionId: textCheck,
  allow: requiredCheck(anyCheck),
  by: requiredCheck(anyCheck),
  why: textCheck,
  role: textCheck,
  digest: textCheck,
  args: anyCheck,
  remember: objectCheck,
  scope: anyCheck,
  under: textCheck,
  usd: anyCheck,
})

/**
 * A caller without a type checker may pass a text for `allow`, or leave out the name. The name is returned as the log
 * will have it.
 */
export function checkDecision(decision: ApprovalDecision): ApprovalDecision {
  const { allow, by } = (decision ?? {}) as Partial<ApprovalDecision>
  if (typeof allow !== 'boolean') throw new Fault('invalid_input', 'Say true or false: allow.')
  const trouble = by === undefined ? 'is missing' : whyNameInvalid(by)
  if (trouble !== null)
    throw new Fault('invalid_input', `Say who decides, as the log will name them: by. The name given ${trouble}.`)
  checkFields(decision)
  checkMoney(decision)
  checkScope(decision)
  return { ...decision, by: personName(decision.by) }
}

const USD_MAX = 1_000_000

/** The amount must be a number: a text of digits is refused, and so is an amount for any other call than the budget. */
function checkMoney({ callId, allow, usd, tool }: ApprovalDecision & Partial<PendingCall>): void {
  if (callId === BUDGET && tool !== undefined && tool !== BUDGET)
    throw new Fault('decision_stale', 'The budget is not the action you saw. Read it again before you decide.')
  if (usd === undefined && (callId !== BUDGET || !allow)) return
  if (callId !== BUDGET)
    throw new Fault('invalid_input', 'Dollars are decided for the call "budget" only: leave out usd.')
  if (typeof usd === 'number' && usd > 0 && usd <= USD_MAX) return
  const text = `Say how much more the session may spend, in dollars: usd, a number above 0 and up to ${USD_MAX}.`
  if (allow || usd !== undefined) throw new Fault('invalid_input', text)
}

function checkScope({ allow, scope, under, remember }: ApprovalDecision): void {
  if (scope === undefined) return
  if (scope !== 'run') throw new Fault('invalid_input', "The scope of a decision is 'run', or it is left out.")
  if (!allow || under !== undefined || remember?.effect !== 'allow')
    throw new Fault('invalid_input', "scope: 'run' goes with allow: true and with a rule that allows in remember.")
  parsePolicy({ rules: [remember] })
  if (JSON.stringify(remember).length > WIDE_RULE_CHARS_MAX)
    throw new Fault('invalid_input', `A rule for the run has at most ${WIDE_RULE_CHARS_MAX} characters.`)
}

/** The rule stays in the folded session until the run ends. */
const WIDE_RULE_CHARS_MAX = 4_096

/**
 * An approval that repeats a wider one is refused here if that one does not stand. The fold checks it again when the
 * event is written.
 */
export async function checkUnder(
  { under, allow, callId }: ApprovalDecision,
  call: Call,
  said: RunConsent | undefined,
): Promise<void> {
  if (under === undefined || (allow && (await earlierConsent(call, said)).covered?.call === under)) return
  const why = 'it covers another call, something was denied since, or the run has ended'
  throw new Fault(
    'decision_stale',
    `The yes to call ${under} does not cover call ${callId}: ${why}. Decide it by itself.`,
  )
}

/** The fields that are handed back must match the current question: a decision for another question decides nothing. */
export function checkShownCall(decision: ApprovalDecision & Partial<PendingCall>, call: Call): void {
  const { tool, gate, digest = '' } = call.proposal
  const { class: kind, n, roles, expiresAt, each } = gate?.type === 'ask' ? gate : ({} as Partial<AskGate>)
  const asked: Readonly<Record<string, Json | undefined>> = { digest, tool, class: kind, n, roles, expiresAt, each }
  const said = decision as Readonly<Record<string, unknown>>
  const other = Object.keys(asked).find((field) => {
    return said[field] !== undefined && !isSameValue(said[field], asked[field] ?? null)
  })
  const { callId, needs, path, sessionId } = decision
  const elsewhere = Array.isArray(path) && sessionId !== undefined && path.at(-1) !== sessionId
  if (other === undefined && (needs ?? 'approval') === 'approval' && !elsewhere) return
  const what = other === undefined || other === 'digest' ? '' : `: its ${other} is another. Only "args" may be changed`
  const text = `Call ${callId} is not the action you saw${what}. Read it again before you decide.`
  throw new Fault('decision_stale', text)
}

function isSameValue(said: unknown, asked: Json): boolean {
  try {
    return canonicalJson(said) === canonicalJson(asked)
  } catch {
    return false
  }
}
type AskGate = Extract<Gate, { type: 'ask' }>

export function buildConfirmation(
  decision: ApprovalDecision,
  call: Call,
  now: number,
  edit: ArgumentsEdit | null,
): InboxBody {
  const { callId, allow, role, why, remember, scope, under } = decision
  const { gate, digest = '' } = call.proposal
  const { n = 1, roles = [], expiresAt = null } = gate?.type === 'ask' ? gate : {}
  if (roles.length > 0 && !roles.includes(role ?? ''))
    throw new Fault('invalid_input', `Call ${callId} must be decided by somebody whose role is ${roles.join(' or ')}.`)
  if (expiresAt !== null && now > expiresAt)
    throw new Fault('decision_stale', `Call ${callId} waited for a decision too long. It is refused by now.`)
  // A call that is asked about again is another question.
  const question =
    call.state.type === 'asked' && call.state.since !== undefined ? `${callId}@${call.state.since}` : callId
  const { by } = decision
  const voter = skeleton(by)
  const { votes = [] } = call.state.type === 'asked' ? call.state : {}
  if (allow && edit === null && call.edited && skeleton(call.edited.by) === voter && votes.includes(call.edited.by))
    throw new Fault(
      'decision_stale',
      `${by} edited call ${callId}, and approved it with that. Another person must approve it.`,
    )
  const other = votes.find((name) => name !== by && skeleton(name) === voter)
  if (n > 1 && allow && edit === null && other !== undefined) {
    const who = `"${by}" looks like "${other}", who approved call ${callId} already`
    throw new Fault('decision_stale', `${who}. Another person must, under a name that cannot be taken for theirs.`)
  }
  return {
    type: 'user.tool_confirmation',
    // All decisions by a single person have one id: of two at the same moment the store takes the first and refuses the
    // second. A decision that repeats a wider approval may come too late for it, and must not take the place of a
    // person's, so it has an id of its own. If several people must decide, each has an own id, and names that look
    // alike count as one person.
    id: harnessId(
      'decision',
      question,
      ...(n > 1 ? [voter] : []),
      // A person who approved the unchanged call may still edit it.
      ...(n > 1 && edit ? ['edit', edit.digest] : []),
      ...(n > 1 || under === undefined ? [] : ['under', under]),
    ),
    call: callId,
    digest,
    allow,
    by,
    ...(role === undefined ? {} : { role }),
    ...(why === undefined ? {} : { why }),
    ...(remember === undefined ? {} : { remember: remember as Json }),
    ...(scope === undefined ? {} : { scope }),
    ...(under === undefined ? {} : { under }),
    ...(edit === null ? {} : { edit }),
  }
}
