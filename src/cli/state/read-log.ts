// Reads logs for commands: all events, the folded session, and the calls that wait for a person. It only reads.
import type { Pending } from '../../index.ts'
import { type Card, EMPTY, type Event, fold, type Session, type Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { mayWait } from '../../view/pending-calls.ts'
import { EXIT, CliError } from '../exit.ts'
import { withoutDriving } from './without-driving.ts'
import { sessionIdsIn } from './session-folders.ts'
import { terretCommand } from '../present/print.ts'
import { shownId } from '../../view/clean.ts'

const PAGE = 1_000

/** Events in order. A damaged log ends with an error after its last good event. */
export async function* readEvents(store: Store, session: string, after = 0): AsyncGenerator<Event> {
  for (let seq = after; ; ) {
    const page = await store.read(session, seq, PAGE)
    yield* page.events
    if (page.damaged) {
      const way = terretCommand`doctor --session ${session}`
      const text = `The log of session ${shownId(session)} is damaged at event ${page.damaged.seq}. \`${way}\` says more.`
      throw new CliError(EXIT.store, text)
    }
    if (page.events.length < PAGE) return
    seq += page.events.length
  }
}

export async function readAllEvents(store: Store, session: string): Promise<readonly Event[]> {
  const events: Event[] = []
  for await (const event of readEvents(store, session)) events.push(event)
  return events
}

/** The logs that a fork comes from, each up to the event of the fork. Empty for a session that is not a fork. */
export async function readEventsBefore(store: Store, [created]: readonly Event[]): Promise<readonly Event[]> {
  const fork = created?.type === 'session.created' ? created.fork : undefined
  if (!fork) return []
  const events = (await readAllEvents(store, fork.session)).filter(({ seq }) => seq <= fork.seq)
  return [...(await readEventsBefore(store, events)), ...events]
}

export function foldAll(events: readonly Event[]): Session {
  return events.reduce(fold, EMPTY)
}

/** The pending calls of a session and its children. */
export async function readPending(store: Store, root: string): Promise<readonly Pending[]> {
  return withoutDriving({ store }, (harness) =>
    harness
      .session(root, { stored: true })
      .status()
      .then(({ pending }) => pending),
  )
}

/** The roots of all sessions that may wait for a person, or for a child that does. */
export async function findWaitingRoots(store: Store): Promise<readonly string[]> {
  const roots = new Set<string>()
  for (let after = ''; ; ) {
    const cards = await store.list({ waiting: true, after, limit: PAGE })
    for (const card of cards) if (mayWait(card)) roots.add(card.root)
    const last = cards.at(-1)
    if (last === undefined || cards.length < PAGE) return [...roots]
    after = last.session
  }
}

type WaitingPlace = Parameters<typeof sessionIdsIn>[0] & { readonly at: object | null }

/**
 * The roots of all sessions that wait: of this folder, or of all folders. A remote server does not know this folder, so
 * there it is always all.
 */
export async function waitingRoots(place: WaitingPlace, all: boolean): Promise<readonly string[]> {
  const here = all || place.at === null ? null : await sessionIdsIn(place)
  return (await findWaitingRoots(place.store)).filter((root) => here === null || here.has(root))
}

/** True if this session waits for a person, or only for a child that does. */
export async function waitsForPerson(store: Store, { session, root, status, due, waits }: Card): Promise<boolean> {
  if (status === 'requires_action') return true
  if (status !== 'running' || due !== null || waits.length === 0) return false
  const [asks] = await store.list({ root, status: 'requires_action', limit: 1 })
  return asks !== undefined || (await readPending(store, root)).some(({ path }) => path.includes(session))
}

/**
 * True if a session below this one waits for a person. The session itself may have ended, because detached children
 * work on.
 */
export async function isQuestionBelow(store: Store, card: Card): Promise<boolean> {
  const below = (await cardsBelow(store, card)).filter(mayWait)
  if (below.some(({ status }) => status === 'requires_action')) return true
  const isOpen = ({ path, sessionId }: Pending): boolean => path.includes(card.session) && sessionId !== card.session
  return below.length > 0 && (await readPending(store, card.root)).some(isOpen)
}
