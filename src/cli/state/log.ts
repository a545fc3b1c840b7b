// Reads logs for commands: all events, the folded session, and the calls that wait for a person. It only reads.
import type { Pending } from '../../index.ts'
import { type Card, EMPTY, type Event, fold, type Session, type Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { mayWait } from '../../view/pending.ts'
import { EXIT, Refusal } from '../exit.ts'
import { aside } from './without-driving.ts'
import { typed } from '../present/print.ts'
import { shownId } from '../../view/clean.ts'

const PAGE = 1_000

/** In order. A damaged log ends with an error after its last good event. */
export async function* eventsOf(store: Store, session: string, after = 0): AsyncGenerator<Event> {
  for (let seq = after; ; ) {
    const page = await store.read(session, seq, PAGE)
    yield* page.events
    if (page.damaged) {
      const way = typed`doctor --session ${session}`
      const text = `The log of session ${shownId(session)} is damaged at event ${page.damaged.seq}. \`${way}\` says more.`
      throw new Refusal(EXIT.store, text)
    }
    if (page.events.length < PAGE) return
    seq += page.events.length
  }
}

export async function allEvents(store: Store, session: string): Promise<readonly Event[]> {
  const events: Event[] = []
  for await (const event of eventsOf(store, session)) events.push(event)
  return events
}

/** The logs a fork comes from, each up to the event it was forked at. Empty if it is not a fork. */
export async function eventsBefore(store: Store, [created]: readonly Event[]): Promise<readonly Event[]> {
  const fork = created?.type === 'session.created' ? created.fork : undefined
  if (!fork) return []
  const events = (await allEvents(store, fork.session)).filter(({ seq }) => seq <= fork.seq)
  return [...(await eventsBefore(store, events)), ...events]
}

export function foldAll(events: readonly Event[]): Session {
  return events.reduce(fold, EMPTY)
}

/** The pending calls of a session and its children. */
export async function pendingIn(store: Store, root: string): Promise<readonly Pending[]> {
  return aside({ store }, (harness) => harness.session(root, { stored: true }).pending())
}

/** The roots of all sessions that may wait for a person, or for a child that does. */
export async function rootsThatWait(store: Store): Promise<readonly string[]> {
  const roots = new Set<string>()
  for (let after = ''; ; ) {
    const cards = await store.list({ waiting: true, after, limit: PAGE })
    for (const card of cards) if (mayWait(card)) roots.add(card.root)
    const last = cards.at(-1)
    if (last === undefined || cards.length < PAGE) return [...roots]
    after = last.session
  }
}

/** Does this session wait for a person, or only for a child that does? */
export async function isForPerson(store: Store, { session, root, status, due, waits }: Card): Promise<boolean> {
  if (status === 'requires_action') return true
  if (status !== 'running' || due !== null || waits.length === 0) return false
  const [asks] = await store.list({ root, status: 'requires_action', limit: 1 })
  return asks !== undefined || (await pendingIn(store, root)).some(({ path }) => path.includes(session))
}

/** Does a session below this one wait for a person? The session itself may have ended: children that are detached work on. */
export async function isAskedBelow(store: Store, card: Card): Promise<boolean> {
  const below = (await cardsBelow(store, card)).filter(mayWait)
  if (below.some(({ status }) => status === 'requires_action')) return true
  const isOpen = ({ path, sessionId }: Pending): boolean => path.includes(card.session) && sessionId !== card.session
  return below.length > 0 && (await pendingIn(store, card.root)).some(isOpen)
}
