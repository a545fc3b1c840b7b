// One decision about one call that waits for it: checked, and made into what the inbox takes. It writes nothing; whether it is in
// time for the call is decided by the fold.
import type { CallKey, Gate, Json } from '../kernel/content.ts'
import type { Edit, InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Call, Said } from '../kernel/ledger.ts'
import { anything, type Checks, nameTrouble, needed, optionsOf, record, text } from '../options.ts'
import { ownId } from '../stores/plan/id.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { saidBefore } from '../tools/policy/covered.ts'
import { personOf, skeleton } from '../view/lookalike.ts'
import { BUDGET } from '../view/pending.ts'
import { parsePolicy, type Rule } from '../tools/policy/policy.ts'
import type { PendingCall } from './look/pending.ts'

export type ApprovalDecision = {
  readonly callId: CallKey
  /** The session that asked, as `pending` names it. Default: this one. */
  readonly sessionId?: string
  readonly allow: boolean
  readonly by: string
  readonly why?: string
  readonly role?: string
  /** What you saw. When given, it must be the pending action's. */
  readonly digest?: string
  /**
   * Other arguments than the call was asked with: it runs with these, if its tool and the policy take them. `digest` says what you
   * changed. Who approved the call as it was before has not approved this one.
   */
  readonly args?: Json
  /** The rule you keep with it, for the log. It holds once it is in your policy, or with `scope: 'run'` for this run. */
  readonly remember?: Rule
  /**
   * Without it a yes is for this one call. With 'run' later questions of this run that the rule in `remember` allows are `covered`,
   * until the run ends or anything is denied.
   */
  readonly scope?: 'run'
  /** The call whose yes covers this one: `covered.call` of the pending call. It is refused if that yes does not stand any more. */
  readonly under?: CallKey
  /** For `callId: 'budget'`: how many dollars more. */
  readonly usd?: number
}

/**
 * What `pending` says of a call may be handed back with the decision: `decide({ ...pending, allow, by })`. Of this only `args` may be
 * changed.
 */
export const SHOWN: Checks<Partial<Omit<PendingCall, 'callId' | 'sessionId' | 'digest' | 'args'>>> = {
  tool: anything,
  needs: anything,
  expiresAt: anything,
  class: anything,
  n: anything,
  roles: anything,
  votes: anything,
  files: anything,
  each: anything,
  covered: anything,
  denied: anything,
  path: anything,
  costUsd: anything,
  treeCostUsd: anything,
  amounts: anything,
  agent: anything,
  labels: anything,
  preview: anything,
  edited: anything,
}
const checkFields = optionsOf<ApprovalDecision & Partial<PendingCall>>('decide', {
  ...SHOWN,
  callId: needed(text, 'Name the call as `pending` does.'),
  sessionId: text,
  allow: needed(anything),
  by: needed(anything),
  why: text,
  role: text,
  digest: text,
  args: anything,
  remember: record,
  scope: anything,
  under: text,
  usd: anything,
})

/** A caller without a type checker may pass a text that counts as yes, or leave out the name. Its name is as the log will have it. */
export function checkedDecision(decision: ApprovalDecision): ApprovalDecision {
  const { allow, by } = (decision ?? {}) as Partial<ApprovalDecision>
  if (typeof allow !== 'boolean') throw new Fault('invalid_input', 'Say true or false: allow.')
  const trouble = by === undefined ? 'is missing' : nameTrouble(by)
  if (trouble !== null)
    throw new Fault('invalid_input', `Say who decides, as the log will name them: by. The name given ${trouble}.`)
  checkFields(decision)
  checkMoney(decision)
  checkScope(decision)
  return { ...decision, by: personOf(decision.by) }
}

const USD_MAX = 1_000_000

/** Money is a number: a text of digits is refused, and so is money for a call that asks for none. */
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

/** It stays in the folded session until the run ends. */
const WIDE_RULE_CHARS_MAX = 4_096

/** A yes that repeats a wider one is refused here if that one does not stand; the fold makes sure of it at the same moment. */
export async function checkUnder(
  { under, allow, callId }: ApprovalDecision,
  call: Call,
  said: Said | undefined,
): Promise<void> {
  if (under === undefined || (allow && (await saidBefore(call, said)).covered?.call === under)) return
  const why = 'it covers another call, something was denied since, or the run has ended'
  throw new Fault(
    'decision_stale',
    `The yes to call ${under} does not cover call ${callId}: ${why}. Decide it by itself.`,
  )
}

/** What was handed back of the question must be what is asked now: a decision for another question decides nothing. */
export function checkShown(decision: ApprovalDecision & Partial<PendingCall>, call: Call): void {
  const { tool, gate, digest = '' } = call.proposal
  const { class: kind, n, roles, expiresAt, each } = gate?.type === 'ask' ? gate : ({} as Partial<AskGate>)
  const asked: Readonly<Record<string, Json | undefined>> = { digest, tool, class: kind, n, roles, expiresAt, each }
  const said = decision as Readonly<Record<string, unknown>>
  const other = Object.keys(asked).find((field) => {
    return said[field] !== undefined && !isSame(said[field], asked[field] ?? null)
  })
  const { callId, needs, path, sessionId } = decision
  const elsewhere = Array.isArray(path) && sessionId !== undefined && path.at(-1) !== sessionId
  if (other === undefined && (needs ?? 'approval') === 'approval' && !elsewhere) return
  const what = other === undefined || other === 'digest' ? '' : `: its ${other} is another. Only "args" may be changed`
  const text = `Call ${callId} is not the action you saw${what}. Read it again before you decide.`
  throw new Fault('decision_stale', text)
}

function isSame(said: unknown, asked: Json): boolean {
  try {
    return canonicalJson(said) === canonicalJson(asked)
  } catch {
    return false
  }
}
type AskGate = Extract<Gate, { type: 'ask' }>

export function confirmationOf(decision: ApprovalDecision, call: Call, now: number, edit: Edit | null): InboxBody {
  const { callId, allow, role, why, remember, scope, under } = decision
  const { gate, digest = '' } = call.proposal
  const { n = 1, roles = [], expiresAt = null } = gate?.type === 'ask' ? gate : {}
  if (roles.length > 0 && !roles.includes(role ?? ''))
    throw new Fault('invalid_input', `Call ${callId} must be decided by somebody whose role is ${roles.join(' or ')}.`)
  if (expiresAt !== null && now > expiresAt)
    throw new Fault('decision_stale', `Call ${callId} waited for a decision too long. It is refused by now.`)
  // What is asked again is another question.
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
    // One id for every decision by a single person: of two at the same moment the store takes the first and refuses the second.
    // One that repeats a wider yes may come too late for it, and must not take the place of a person's.
    // Of several people each has their own, and names that look alike are one person.
    id: ownId(
      'decision',
      question,
      ...(n > 1 ? [voter] : []),
      // A person who approved the call as it was may still edit it.
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
