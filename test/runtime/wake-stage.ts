// What the tests of waking share: sessions with wakes in their log, and stores that fail for one session. Nothing is
// asserted here.
import type { OwnerBody, OwnerEvent } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { Bug, type CompleteStore } from '../../src/index.ts'
import { DEFAULT_AGENT } from '../../src/sessions/agent.ts'
import { cardOf } from '../../src/view/card.ts'
import { storeWith } from '../../sim/store-with.ts'

type Wake = { readonly due: number; readonly key?: string }

/** A session without any message, with wakes at these times. */
/** `program`: whose workers drive it. */
type Made = { readonly agent?: string; readonly program?: string }

export async function asleep(
  store: CompleteStore,
  session: string,
  wakes: readonly Wake[],
  { agent = DEFAULT_AGENT, program }: Made = {},
): Promise<void> {
  const at = store.now()
  const bodies: OwnerBody[] = [
    { type: 'session.created', agent, planner: 'model', ...(program === undefined ? {} : { program }) },
    ...wakes.map(({ due, key = 'w' }) => ({ type: 'wake.scheduled', due, key, reason: `woken by ${key}` }) as const),
  ]
  const events = bodies.map((body, i): OwnerEvent => ({ seq: i + 1, at, epoch: 0, ...body }))
  const state = events.reduce(fold, EMPTY)
  // The card as its owner left it, before the first wake was due.
  const now = Math.min(at, ...wakes.map(({ due }) => due - 1))
  const card = cardOf(session, state, next(state, { now, epoch: 0 }))
  await store.commit([{ session, lane: 'owner', epoch: 0, expectedSeq: 0, events, card }])
}

/** A message through the inbox, from outside of the worker that drives the session. */
export async function say(store: CompleteStore, session: string, text: string): Promise<void> {
  const parts = [{ type: 'text', text }] as const
  const events = [{ type: 'user.message', id: text, parts, when: 'next' }] as const
  await store.commit([{ session, lane: 'inbox', events }])
}

/** A store in which every attempt on these sessions fails early. Counts the attempts. */
export function poisoned(
  inner: CompleteStore,
  sessions: Set<string>,
): { readonly store: CompleteStore; readonly tries: string[] } {
  const tries: string[] = []
  const store = storeWith(inner, {
    read: (session, after, limit) => {
      if (!sessions.has(session)) return inner.read(session, after, limit)
      tries.push(session)
      return Promise.reject(new Bug('the sky is blue'))
    },
  })
  return { store, tries }
}

/** Waits until everything has happened that can happen without the clock. */
export async function quiet(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
}
