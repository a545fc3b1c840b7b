// One question for approval as a page sees it, and the id by which the page answers it: the id names the call and its digest, so an
// answer is for exactly what was shown.
import type { CallKey, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { BUDGET, type Pending } from '../view/pending.ts'

export type Approval = {
  readonly id: string
  /** The call of this session that waits: the one that is asked about, or the one a child works for. */
  readonly toolCallId: CallKey
  readonly sessionId: string
  readonly callId: CallKey
  readonly tool: string
  readonly args: Json
  readonly class?: string
  readonly n?: number
  readonly roles?: readonly string[]
  readonly expiresAt?: number | null
}
type Asked = Pick<Pending, 'callId' | 'tool' | 'args' | 'digest' | 'sessionId' | 'class' | 'n' | 'roles' | 'expiresAt'>
type Named = { readonly sessionId: string; readonly callId: CallKey; readonly digest: string }

/** Null for what a page cannot be asked about: a call without a digest, or one outside of this session and its children. */
export function approvalOf(asked: Asked, session: string): Approval | null {
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

/** What waits for a decision about a call. Money is not decided on a page. */
export function approvalsIn(pending: readonly Pending[], session: string): readonly Approval[] {
  const asked = pending.filter(({ needs, callId }) => needs === 'approval' && callId !== BUDGET)
  return asked.flatMap((each) => approvalOf(each, session) ?? [])
}

/** What a browser hands back. Whether it is still the question is decided where the decision is taken. */
export function namedBy(id: unknown, session: string): Named {
  const [, branch = '', below = '', callId, digest] = APPROVAL.exec(String(id)) ?? []
  if (typeof id !== 'string' || callId === undefined || digest === undefined)
    throw new Fault('invalid_input', 'This is not the id of an approval. Hand back the one that the question had.')
  if (branch !== branchIn(session))
    throw new Fault('decision_stale', 'This question was asked in another branch of the chat. Load its messages again.')
  return { sessionId: session + below, callId, digest }
}

const BRANCH = 'branch\\.[0-9a-f]{24}\\.\\d{1,15}'
const APPROVAL = new RegExp(`^(${BRANCH})?((?:~[1-9]\\d*\\.\\d+){0,32})/([1-9]\\d*\\.\\d+)/([0-9a-f]{64})$`)

/** Two branches of a chat may ask about the same call, and a yes in the one is none in the other. */
function branchIn(session: string): string {
  return new RegExp(`^${BRANCH}$`).test(session) ? session : ''
}
