// What a session that waits for a person waits for, and the verbs of that person. Nothing is decided here.
import type { Proposal } from '../../src/kernel/content.ts'
import { outsideOf } from '../../src/kernel/ledger.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { SessionCache } from '../../src/runtime/state/session-cache.ts'

export type Person = {
  readonly decide: (call: string, digest: string) => Promise<void>
  readonly answer: (call: string) => Promise<void>
  /** It is paused, in a run or before one began (B-KERNEL-13), and a message lets it go on. */
  readonly goOn: () => Promise<void>
}

export async function serve(store: CompleteStore, session: string, person: Person): Promise<void> {
  const book = new SessionCache(session, store)
  await book.open()
  const open = book.session.run?.turn?.open ?? []
  let served = false
  for (const { key: call, state, proposal } of open) {
    if (state.type === 'asked') {
      served = true
      await person.decide(call, proposal.digest ?? '')
    } else if (state.type === 'outside' && !isForChild(proposal)) {
      served = true
      await person.answer(call)
    }
  }
  if (!served) await person.goOn()
}

function isForChild(proposal: Proposal): boolean {
  const { child, awaits, orders } = outsideOf(proposal) ?? {}
  return child !== undefined || awaits !== undefined || orders !== undefined
}
