// The branches of a chat. A log only grows, so an edited message, or an answer that is made again, begins a fork before that message.
// The page keeps the id of its chat: what it asks for is of the newest branch, with what that one has of the branches before it.
import { createHash } from 'node:crypto'
import type { Metadata, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import { isThere } from './follow.ts'
import { admitted, type Known, type Place } from './person.ts'

/** A log, up to the event at which the next branch leaves it. */
export type Stretch = { readonly session: Session; readonly upTo: number }

/** A message of the user, and the log that has it. */
export type MessageInBranch = { readonly session: Session; readonly seq: number; readonly parts: readonly Part[] }

/** `session`: the newest branch. `chat`: the session whose id the page has. */
export type Chatting = Known & { readonly chat: Session }

const PAGE = 1_000

/** Lets `act` have the newest branch of the chat if the person may use the chat, and answers 403 otherwise. */
export function admitToBranch(
  place: Place,
  request: Request,
  id: unknown,
  act: (known: Chatting) => Promise<Response>,
): Promise<Response> {
  return admitted(place, request, id, async (known) =>
    act({ ...known, session: await newestBranch(place.sessions, known.session), chat: known.session }),
  )
}

/** Whether a message was refused because the session has another one with its id. */
export function isReusedId(error: unknown): boolean {
  return error instanceof Fault && error.code === 'id_reused'
}

/** The chat itself if it has no branch, or is not there yet. */
async function newestBranch(sessions: Sessions, chat: Session): Promise<Session> {
  const names = await namesOf(chat)
  for (let newest = chat, n = 1; names !== null; n++) {
    const branch = sessions.session(names(n))
    const from = await originOf(branch)
    // A session that somebody else gave this name is no branch.
    if (from === null || (from.session !== chat.id && !from.session.startsWith(names('')))) return newest
    newest = branch
  }
  return chat
}

/** The logs of a branch, the oldest first. */
export async function stretchesOf(sessions: Sessions, branch: Session): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = []
  let next: Stretch | null = { session: branch, upTo: Number.POSITIVE_INFINITY }
  while (next !== null) {
    stretches.unshift(next)
    const from = await originOf(next.session)
    next = from && { session: sessions.session(from.session), upTo: from.seq }
  }
  return stretches
}

/** The message of this id, as the branch has it; null if it has none. */
export async function findMessage(sessions: Sessions, branch: Session, id: unknown): Promise<MessageInBranch | null> {
  const stretches = await stretchesOf(sessions, branch)
  for (const { session, upTo } of stretches.toReversed()) {
    for (let after = 0; after < upTo; ) {
      const { events } = await session.read(after, PAGE)
      const found = events.find((event) => event.type === 'user.message' && event.id === id && event.seq <= upTo)
      if (found?.type === 'user.message') return { session, seq: found.seq, parts: found.parts }
      after = events.at(-1)?.seq ?? Number.POSITIVE_INFINITY
    }
  }
  return null
}

/** A new branch that has everything before this message. What the old one was doing is stopped. */
export async function branchBefore(
  sessions: Sessions,
  { chat, session: newest }: Pick<Chatting, 'chat' | 'session'>,
  message: Pick<MessageInBranch, 'session' | 'seq'>,
  cause?: BranchCause,
): Promise<Session> {
  const names = await namesOf(chat)
  if (names === null) throw new Fault('session_missing', `There is no session ${chat.id}.`)
  const n = newest.id === chat.id ? 1 : Number(newest.id.slice(names('').length)) + 1
  await newest.interrupt()
  const metadata: Metadata = cause ? { [CAUSE]: { branch: names(n), ...cause } } : {}
  await message.session.fork({ at: message.seq - 1, id: names(n), ...(cause ? { metadata } : {}) })
  return sessions.session(names(n))
}

/** The request for another answer that made a branch: the client's name for its run, and the message. */
export type BranchCause = { readonly run: string; readonly message: string }

/** A branch has the metadata of the one it comes from, so its own name stands beside the cause. */
const CAUSE = 'terret.branch'

/** The message that this run wanted another answer to, if the run made the branch before: a retry makes no second one. */
export async function findRegenerated(
  sessions: Sessions,
  branch: Session,
  run: string,
): Promise<(MessageInBranch & { readonly id: string }) | null> {
  const created = (await isThere(branch)) ? await createdOf(branch) : undefined
  if (created?.type !== 'session.created' || !created.fork) return null
  const cause = created.metadata?.[CAUSE] as (BranchCause & { readonly branch: string }) | undefined
  if (cause?.branch !== branch.id || cause.run !== run) return null
  const origin = sessions.session(created.fork.session)
  const found =
    (await findMessage(sessions, branch, cause.message)) ?? (await findMessage(sessions, origin, cause.message))
  return found && { ...found, id: cause.message }
}

/** Names that the owner of another chat does not know beforehand. */
async function namesOf(chat: Session): Promise<((n: number | '') => string) | null> {
  if (!(await isThere(chat))) return null
  const created = await createdOf(chat)
  const digest = createHash('sha256').update(`${chat.id}\n${created?.at}`).digest('hex').slice(0, 24)
  return (n) => `branch.${digest}.${n}`
}

async function originOf(session: Session): Promise<{ readonly session: string; readonly seq: number } | null> {
  const created = (await isThere(session)) ? await createdOf(session) : undefined
  return created?.type === 'session.created' ? (created.fork ?? null) : null
}

async function createdOf(session: Session): Promise<Event | undefined> {
  return (await session.read(0, 1)).events[0]
}
