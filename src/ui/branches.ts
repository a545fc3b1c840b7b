// The branches of a chat. A log only grows, so an edited message, or an answer that is made again, begins a fork before that message.
// The page keeps the id of its chat: what it asks for is of the newest branch, with what that one has of the branches before it.
import { createHash } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import { isThere } from './follow.ts'

/** A log, up to the event at which the next branch leaves it. */
export type Stretch = { readonly session: Session; readonly upTo: number }

const PAGE = 1_000

/** The chat itself if it has no branch, or is not there yet. */
export async function newestBranch(sessions: Sessions, chat: Session): Promise<Session> {
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
export async function findMessage(
  sessions: Sessions,
  branch: Session,
  id: unknown,
): Promise<{ readonly session: Session; readonly seq: number } | null> {
  const stretches = await stretchesOf(sessions, branch)
  for (const { session, upTo } of stretches.toReversed()) {
    for (let after = 0; after < upTo; ) {
      const { events } = await session.read(after, PAGE)
      const found = events.find((event) => event.type === 'user.message' && event.id === id && event.seq <= upTo)
      if (found) return { session, seq: found.seq }
      after = events.at(-1)?.seq ?? Number.POSITIVE_INFINITY
    }
  }
  return null
}

/** A new branch that has everything before this message. What the old one was doing is stopped. */
export async function branchBefore(
  sessions: Sessions,
  { chat, newest }: { readonly chat: Session; readonly newest: Session },
  message: { readonly session: Session; readonly seq: number },
): Promise<Session> {
  const names = await namesOf(chat)
  if (names === null) throw new Fault('session_missing', `There is no session ${chat.id}.`)
  const n = newest.id === chat.id ? 1 : Number(newest.id.slice(names('').length)) + 1
  await newest.interrupt()
  await message.session.fork({ at: message.seq - 1, id: names(n) })
  return sessions.session(names(n))
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
