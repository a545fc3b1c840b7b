// One question for approval as a page sees it, and the id by which the page answers. The id contains the call and its
// digest, so an answer is valid only for exactly what was shown.
import type { CallKey, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { BUDGET, type Pending } from '../view/pending-calls.ts'

/** A call that waits, as a page shows it. Its `id` goes back with the decision, and holds the digest of what was shown. */
export type PageApproval = {
  /** Goes back with the decision. It holds the digest of what was shown. */
  readonly id: string
  /** The waiting call of this session: the call in question, or the one that a child works for. */
  readonly toolCallId: CallKey
  /** The session that asks: this one, or a child below it. */
  readonly sessionId: string
  /** The key of the call in that session. */
  readonly callId: CallKey
  /** The name of the tool. */
  readonly tool: string
  /** The arguments of the call. */
  readonly args: Json
  /** The class of the approval. */
  readonly class?: string
  /** How many people must approve. */
  readonly n?: number
  /** The roles of which one must decide. Empty: anybody may. */
  readonly roles?: readonly string[]
  /** When it is denied by itself, in ms since 1970. Null for never. */
  readonly expiresAt?: number | null
}
type ApprovalQuestion = Pick<
  Pending,
  'callId' | 'tool' | 'args' | 'digest' | 'sessionId' | 'class' | 'n' | 'roles' | 'expiresAt'
>
type ApprovedCall = { readonly sessionId: string; readonly callId: CallKey; readonly digest: string }

/** Null for calls that a page cannot answer: without a digest, or outside of this session and its children. */
export function pageApprovalOf(asked: ApprovalQuestion, session: string): PageApproval | null {
  const { callId, tool, args, digest, sessionId } = asked
  if (digest === undefined || !sessionId.startsWith(session)) return null
  const below = sessionId.slice(session.length)
  const toolCallId = /^~([1-9]\d*\.\d+)/.exec(below)?.[1] ?? callId
  if (below !== '' && toolCallId === callId && !below.startsWith('~')) return null
  return {
    id: `${branchIn(session)}${below}/${callId}/${digest}`,
    toolCallId,
    sessionId,
    callId,
    tool,
    args,
    ...(asked.class === undefined ? {} : { class: asked.class }),
    ...(asked.n === undefined ? {} : { n: asked.n }),
    ...(asked.roles === undefined ? {} : { roles: asked.roles }),
    ...(asked.expiresAt === undefined ? {} : { expiresAt: asked.expiresAt }),
  }
}

/** All pending calls that need approval. Budgets are not decided on a page. */
export function pageApprovalsIn(pending: readonly Pending[], session: string): readonly PageApproval[] {
  const asked = pending.filter(({ needs, callId }) => needs === 'approval' && callId !== BUDGET)
  return asked.flatMap((each) => pageApprovalOf(each, session) ?? [])
}

/**
 * Parses the id that a browser hands back. Whether the question is still current is checked when the decision is
 * recorded.
 */
export function parseApprovalId(id: unknown, session: string): ApprovedCall {
  const [, branch = '', below = '', callId, digest] = APPROVAL.exec(String(id)) ?? []
  if (typeof id !== 'string' || callId === undefined || digest === undefined)
    throw new Fault('invalid_input', 'This is not the id of an approval. Hand back the one that the question had.')
  if (branch !== branchIn(session))
    throw new Fault('decision_stale', 'This question was asked in another branch of the chat. Load its messages again.')
  return { sessionId: session + below, callId, digest }
}

const BRANCH = 'branch\\.[0-9a-f]{24}\\.\\d{1,15}'
const APPROVAL = new RegExp(`^(${BRANCH})?((?:~[1-9]\\d*\\.\\d+){0,32})/([1-9]\\d*\\.\\d+)/([0-9a-f]{64})$`)

/** Two branches of a chat may ask about the same call, and an approval in one must not count in the other. */
function branchIn(session: string): string {
  return new RegExp(`^${BRANCH}$`).test(session) ? session : ''
}
