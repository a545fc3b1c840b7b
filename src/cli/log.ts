// Logs as commands read them: whole, folded, and what in them waits for a person. It only reads.
import type { Pending } from '../index.ts'
import { EMPTY, type Event, fold, FOLD_VERSION, type Session, type Store } from '../kernel/index.ts'
import { outsideOf } from '../kernel/ledger.ts'
import { EXIT, Refusal } from './exit.ts'

const PAGE = 1_000

/** In order. A log that is damaged ends with a refusal after its last good event. */
export async function* eventsOf(store: Store, session: string, after = 0): AsyncGenerator<Event> {
  for (let seq = after; ; ) {
    const page = await store.read(session, seq, PAGE)
    yield* page.events
    if (page.damaged) {
      const text = `The log of session ${session} is damaged at event ${page.damaged.seq}. \`terret doctor --session ${session}\` says more.`
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

export function foldAll(events: readonly Event[]): Session {
  return events.reduce(fold, EMPTY)
}

/** What a session and its children wait for. Decided is decided, also before anybody has gone on with it. */
export async function pendingIn(store: Store, root: string): Promise<readonly Pending[]> {
  const cards = await store.list({ status: 'requires_action', root, limit: PAGE })
  const all = await Promise.all(cards.map((card) => pendingOf(store, card.session)))
  return all.flat()
}

async function pendingOf(store: Store, session: string): Promise<readonly Pending[]> {
  const { run } = await headOf(store, session)
  return (run?.turn?.open ?? []).flatMap((call): readonly Pending[] => {
    const { tool, args, gate, digest } = call.proposal
    const common = { callId: call.key, tool, args, sessionId: session, path: pathOf(session) }
    if (call.state.type === 'outside')
      return outsideOf(call.proposal)?.child === undefined ? [{ ...common, needs: 'answer' }] : []
    if (call.state.type !== 'asked' || gate?.type !== 'ask') return []
    return [{ ...common, needs: 'approval', expiresAt: gate.expiresAt, ...(digest === undefined ? {} : { digest }) }]
  })
}

/** A session as its log is now, from its snapshot on. */
async function headOf(store: Store, session: string): Promise<Session> {
  const kept = await store.snapshot(session)
  let head = kept?.version === FOLD_VERSION ? (JSON.parse(kept.body) as Session) : EMPTY
  for await (const event of eventsOf(store, session, head.seq)) head = fold(head, event)
  return head
}

/** From the top down: a child's id begins with its parent's. */
function pathOf(session: string): readonly string[] {
  const parts = session.split('~')
  return parts.map((_, i) => parts.slice(0, i + 1).join('~'))
}
