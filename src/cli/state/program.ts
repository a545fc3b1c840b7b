// The program that the command line is, on a store that other programs may use too: it drives the sessions it opened, and no others.
import type { Card, Store } from '../../kernel/index.ts'
import { driverText } from '../../view/program.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clientOf } from './far.ts'

export const PROGRAM = 'terret'

type Named = Pick<Card, 'agent' | 'program'> & { readonly elsewhere?: string }

/** Who goes on with a session that the command line does not drive; null if it may. Older cards name no program: its worker looks. */
export function drivenElsewhere({ store }: { readonly store: Store }, card: Named | null): string | null {
  // A server drives its own sessions, and says which are not.
  if (clientOf(store)) return card?.elsewhere ?? null
  return card?.program === undefined || card.program === PROGRAM ? null : driverText(card)
}

/** Refuses before anything is written. */
export async function checkDrivenHere(place: { readonly store: Store }, session: string): Promise<void> {
  const why = drivenElsewhere(place, await place.store.card(session))
  if (why === null) return
  const text = `Session ${session} was opened by another program. ${why} It can be read and decided here.`
  throw new Refusal(EXIT.conflict, text)
}
