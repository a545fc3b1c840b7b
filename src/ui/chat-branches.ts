// The branches of a chat. A log only grows, so an edited message or a regenerated answer begins a fork before that
// message. The page keeps the chat's id: its requests go to the newest branch, which includes the history of the
// branches before it.
import { createHash } from 'node:crypto'
import type { Metadata, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import { sessionExists } from './follow-items.ts'
import { admitPerson, type AdmittedPerson, type UiContext } from './person.ts'

/** A log, up to the event where the next branch forks from it. */
export type BranchLog = { readonly session: Session; readonly upTo: number }

/** A message of the user, and the log that holds it. */
export type MessageInBranch = { readonly session: Session; readonly seq: number; readonly parts: readonly Part[] }

/** `session`: the newest branch. `chat`: the session whose id the page uses. */
export type AdmittedChat = AdmittedPerson & { readonly chat: Session }

const PAGE = 1_000

/** Calls `act` with the newest branch of the chat if the person may use it, and answers 403 otherwise. */
export function admitToBranch(
  place: UiContext,
  request: Request,
  id: unknown,
  act: (known: AdmittedChat) => Promise<Response>,
): Promise<Response> {
  return admitPerson(place, request, id, async (known) =>
    act({ ...known, session: await findNewestBranch(place.sessions, known.session), chat: known.session }),
  )
}

/** Whether a message was refused because the session has a different one with its id. */
export function isReusedId(error: unknown): boolean {
  return error instanceof Fault && error.code === 'id_reused'
}

/** Returns the chat itself if it has no branch or does not exist yet. */
async function findNewestBranch(sessions: Sessions, chat: Session): Promise<Session> {
  const names = await branchNames(chat)
  for (let newest = chat, n = 1; names !== null; n++) {
    const branch = sessions.session(names(n))
    const from = await readForkOrigin(branch)
    // A session with this name that was not forked from the chat is not a branch.
    if (from === null || (from.session !== chat.id && !from.session.startsWith(names('')))) return newest
    newest = branch
  }
  return chat
}

/** The logs of a branch, oldest first. */
export async function readBranchLogs(sessions: Sessions, branch: Session): Promise<readonly BranchLog[]> {
  const stretches: BranchLog[] = []
  let next: BranchLog | null = { session: branch, upTo: Number.POSITIVE_INFINITY }
  while (next !== null) {
    stretches.unshift(next)
    const from = await readForkOrigin(next.session)
    next = from && { session: sessions.session(from.session), upTo: from.seq }
  }
  return stretches
}

/** The message with this id in the branch; null if there is none. */
export async function findMessage(sessions: Sessions, branch: Session, id: unknown): Promise<MessageInBranch | null> {
  const stretches = await readBranchLogs(sessions, branch)
  for (const { session, upTo } of stretches.toReversed()) {
    for (let after = 0; after < upTo; ) {
      const { events } = await session.events({ after, limit: PAGE })
      const found = events.find((event) => event.type === 'user.message' && event.id === id && event.seq <= upTo)
      if (found?.type === 'user.message') return { session, seq: found.seq, parts: found.parts }
      after = events.at(-1)?.seq ?? Number.POSITIVE_INFINITY
    }
  }
  return null
}

/** Creates a branch with everything before this message. The run of the old branch is stopped. */
export async function createBranchBefore(
  sessions: Sessions,
  { chat, session: newest }: Pick<AdmittedChat, 'chat' | 'session'>,
  message: Pick<MessageInBranch, 'session' | 'seq'>,
  cause?: BranchCause,
): Promise<Session> {
  const names = await branchNames(chat)
  if (names === null) throw new Fault('session_missing', `There is no session ${chat.id}.`)
  const n = newest.id === chat.id ? 1 : Number(newest.id.slice(names('').length)) + 1
  await newest.interrupt()
  const metadata: Metadata = cause ? { [CAUSE]: { branch: names(n), ...cause } } : {}
  await message.session.fork({ at: message.seq - 1, id: names(n), ...(cause ? { metadata } : {}) })
  return sessions.session(names(n))
}

/** The regenerate request that made a branch: the client's run id, and the message. */
export type BranchCause = { readonly run: string; readonly message: string }

/** A branch inherits the metadata of its origin, so the cause includes the branch's own name. */
const CAUSE = 'terret.branch'

/** The message that this run regenerated, if it already made the branch: a retry makes no second one. */
export async function findRegenerated(
  sessions: Sessions,
  branch: Session,
  run: string,
): Promise<(MessageInBranch & { readonly id: string }) | null> {
  const created = (await sessionExists(branch)) ? await readFirstEvent(branch) : undefined
  if (created?.type !== 'session.created' || !created.fork) return null
  const cause = created.metadata?.[CAUSE] as (BranchCause & { readonly branch: string }) | undefined
  if (cause?.branch !== branch.id || cause.run !== run) return null
  const origin = sessions.session(created.fork.session)
  const found =
    (await findMessage(sessions, branch, cause.message)) ?? (await findMessage(sessions, origin, cause.message))
  return found && { ...found, id: cause.message }
}

/** Branch names that the owner of another chat cannot predict. */
async function branchNames(chat: Session): Promise<((n: number | '') => string) | null> {
  if (!(await sessionExists(chat))) return null
  const created = await readFirstEvent(chat)
  const digest = createHash('sha256').update(`${chat.id}\n${created?.at}`).digest('hex').slice(0, 24)
  return (n) => `branch.${digest}.${n}`
}

async function readForkOrigin(session: Session): Promise<{ readonly session: string; readonly seq: number } | null> {
  const created = (await sessionExists(session)) ? await readFirstEvent(session) : undefined
  return created?.type === 'session.created' ? (created.fork ?? null) : null
}

async function readFirstEvent(session: Session): Promise<Event | undefined> {
  return (await session.events({ limit: 1 })).events[0]
}
