// A session as an older version may have left it: under an id that no session may have today.
import { EMPTY } from '../src/kernel/session.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'

type Old = { readonly agent?: string; readonly folder?: string; readonly text?: string }

export async function makeOldSession(store: CompleteStore, id: string, old: Old = {}): Promise<void> {
  const { agent = 'default', folder, text } = old
  await store.open()
  const where = folder === undefined ? {} : { folder }
  const created = { type: 'session.created', agent, planner: 'model', ...where } as const
  await store.commit([ownerWrite(id, EMPTY, [created], { now: store.now(), epoch: 0 })])
  if (text === undefined) return
  const message = { type: 'user.message', id: 'm', parts: [{ type: 'text', text }], when: 'next' } as const
  await store.commit([{ session: id, lane: 'inbox', events: [message] }])
}
