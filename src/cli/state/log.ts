// Logs as commands read them: whole, folded, and what in them waits for a person. It only reads.
import type { Pending } from '../../index.ts'
import { type Card, EMPTY, type Event, fold, FOLD_VERSION, type Session, type Store } from '../../kernel/index.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { saidBefore } from '../../tools/policy/covered.ts'
import { EXIT, Refusal } from '../exit.ts'

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

/** What a fork reads through: the logs it came from, each up to the event it was forked at. Empty for one that is no fork. */
export async function eventsBefore(store: Store, [created]: readonly Event[]): Promise<readonly Event[]> {
  const fork = created?.type === 'session.created' ? created.fork : undefined
  if (!fork) return []
  const events = (await allEvents(store, fork.session)).filter(({ seq }) => seq <= fork.seq)
  return [...(await eventsBefore(store, events)), ...events]
}

export function foldAll(events: readonly Event[]): Session {
  return events.reduce(fold, EMPTY)
}

/** One call that people decided, and all whose word counted, in order. */
export type Decided = { readonly call: string; readonly tool: string; allow: boolean; readonly by: string[] }

/** Words that came too late, twice or for another action did not count: the fold says which did. */
export function decisionsIn(events: readonly Event[]): readonly Decided[] {
  const decided = new Map<string, Decided>()
  let session = EMPTY
  const stateOf = (key: string) => session.run?.turn?.open.find((call) => call.key === key)
  for (const event of events) {
    const before = event.type === 'user.tool_confirmation' ? stateOf(event.call) : undefined
    session = fold(session, event)
    if (event.type !== 'user.tool_confirmation' || !before || stateOf(event.call)?.state === before.state) continue
    const { call, allow, by } = event
    const known = decided.get(call) ?? { call, tool: before.proposal.tool, allow, by: [] }
    known.allow = allow
    known.by.push(by)
    decided.set(call, known)
  }
  return [...decided.values()]
}

/** What a session and its children wait for. Decided is decided, also before anybody has gone on with it. */
export async function pendingIn(store: Store, root: string): Promise<readonly Pending[]> {
  const cards = (await store.list({ root, limit: PAGE })).filter(mayWait)
  const all = await Promise.all(cards.map((card) => pendingOf(store, card.session)))
  return all.flat()
}

/** Somebody is asked, or the last run ended at a limit, which may be that of its money. */
export function mayWait({ status, outcome }: Card): boolean {
  return status === 'requires_action' || (status === 'idle' && outcome === 'limit')
}

async function pendingOf(store: Store, session: string): Promise<readonly Pending[]> {
  const head = await headOf(store, session)
  const { run, inputs, last, parent } = head
  if (await isStopped(store, head)) return []
  if (run === null && inputs.length === 0 && last?.type === 'limit' && last.limit === 'usd') {
    const above = parent && (await headOf(store, parent.session))
    // What its parent no longer waits for waits for nobody.
    if (above && !above.run?.turn?.open.some(({ key }) => key === parent.call)) return []
    const { account, short } = last
    const args = { ...(account === undefined ? {} : { account }), ...short }
    return [{ callId: 'budget', tool: 'budget', args, needs: 'approval', sessionId: session, path: pathOf(session) }]
  }
  // What came from elsewhere is asked about anew, when it goes on.
  const open = run?.foreign ? [] : (run?.turn?.open ?? [])
  return open.flatMap((call): readonly Pending[] => {
    const { tool, args, gate, digest } = call.proposal
    const common = { callId: call.key, tool, args, sessionId: session, path: pathOf(session) }
    if (call.state.type === 'outside')
      return outsideOf(call.proposal)?.child === undefined ? [{ ...common, needs: 'answer' }] : []
    if (call.state.type !== 'asked' || gate?.type !== 'ask') return []
    const { expiresAt, class: kind, n, roles } = gate
    const asked = { expiresAt, class: kind, n, roles, votes: call.state.votes }
    const before = saidBefore(call, run?.said)
    return [{ ...common, needs: 'approval', ...asked, ...before, ...(digest === undefined ? {} : { digest }) }]
  })
}

/** It was interrupted, or a session above that waits for it was. */
async function isStopped(store: Store, { stop, parent }: Session): Promise<boolean> {
  if (stop > 0 || parent === null) return stop > 0
  const above = await headOf(store, parent.session)
  return above.run?.turn?.open.some(({ key }) => key === parent.call) === true && isStopped(store, above)
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
