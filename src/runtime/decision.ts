// One decision about one call that waits for it: checked, and made into what the inbox takes. It writes nothing; whether it is in
// time for the call is decided by the fold.
import type { CallKey, Json } from '../kernel/content.ts'
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Call } from '../kernel/ledger.ts'
import { anything, type Checks, needed, optionsOf, record, text } from '../options.ts'
import { ownId } from '../stores/id.ts'
import type { Rule } from '../tools/policy.ts'
import type { Pending } from './result.ts'

export type Decision = {
  readonly callId: CallKey
  /** The session that asked, as `pending` names it. Default: this one. */
  readonly sessionId?: string
  readonly allow: boolean
  readonly by: string
  readonly why?: string
  readonly role?: string
  /** What you saw. When given, it must be the pending action's. */
  readonly digest?: string
  /** The rule you keep with it, for the log. It holds once it is in your policy. */
  readonly remember?: Rule
  /** For `callId: 'budget'`: how many dollars more. */
  readonly usd?: number
}

/** What `pending` says of a call may be handed back with the decision: `decide({ ...pending, allow, by })`. */
export const SHOWN: Checks<Partial<Omit<Pending, 'callId' | 'sessionId' | 'digest'>>> = {
  tool: anything,
  args: anything,
  needs: anything,
  expiresAt: anything,
  class: anything,
  n: anything,
  roles: anything,
  votes: anything,
  path: anything,
}
const checkFields = optionsOf<Decision & Partial<Pending>>('decide', {
  ...SHOWN,
  callId: needed(text, 'Name the call as `pending` does.'),
  sessionId: text,
  allow: needed(anything),
  by: needed(anything),
  why: text,
  role: text,
  digest: text,
  remember: record,
  usd: anything,
})

/** Whoever is not checked by a compiler may say "no" in a word that counts as yes, or leave out who they are. */
export function checkDecision(decision: Decision): void {
  const { allow, by } = (decision ?? {}) as Partial<Decision>
  if (typeof allow !== 'boolean') throw new Fault('invalid_input', 'Say true or false: allow.')
  if (typeof by !== 'string' || by.trim() === '')
    throw new Fault('invalid_input', 'Say who decides, as the log will name them: by.')
  checkFields(decision)
}

export function confirmationOf(decision: Decision, { proposal, state }: Call, now: number): InboxBody {
  const { callId, allow, role, why, remember } = decision
  const { gate, digest = '' } = proposal
  if (decision.digest !== undefined && decision.digest !== digest)
    throw new Fault('decision_stale', `Call ${callId} is not the action you saw. Read it again before you decide.`)
  const { n = 1, roles = [], expiresAt = null } = gate?.type === 'ask' ? gate : {}
  if (roles.length > 0 && !roles.includes(role ?? ''))
    throw new Fault('invalid_input', `Call ${callId} must be decided by somebody whose role is ${roles.join(' or ')}.`)
  if (expiresAt !== null && now > expiresAt)
    throw new Fault('decision_stale', `Call ${callId} waited for a decision too long. It is refused by now.`)
  // What is asked again is another question.
  const question = state.type === 'asked' && state.since !== undefined ? `${callId}@${state.since}` : callId
  // The same person with a space behind their name is not a second one.
  const by = decision.by.trim()
  return {
    type: 'user.tool_confirmation',
    // One id for all who may decide alone: of two at the same moment the store takes the first, and the second hears it.
    id: n > 1 ? ownId('decision', question, by) : ownId('decision', question),
    call: callId,
    digest,
    allow,
    by,
    ...(role === undefined ? {} : { role }),
    ...(why === undefined ? {} : { why }),
    ...(remember === undefined ? {} : { remember: remember as Json }),
  }
}
