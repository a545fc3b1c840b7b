// The command line as one of several programs on a store: it drives the sessions that it opened, and no others.
import type { Card, Store } from '../../kernel/index.ts'
import { driverText } from '../../view/session-program.ts'
import { EXIT, CliError } from '../exit.ts'
import { remoteClient } from './remote-server.ts'

export const PROGRAM = 'terret'

type ProgramCard = Pick<Card, 'agent' | 'program'> & { readonly elsewhere?: string }

/**
 * Says who continues a session that the command line does not drive; null if it may drive it. Older cards name no
 * program, so its worker checks them.
 */
export function drivenElsewhere({ store }: { readonly store: Store }, card: ProgramCard | null): string | null {
  // A server drives its own sessions, and says which ones it does not drive.
  if (remoteClient(store)) return card?.elsewhere ?? null
  return card?.program === undefined || card.program === PROGRAM ? null : driverText(card)
}

/** Refuses a session of another program before anything is written. */
export async function checkDrivenHere(place: { readonly store: Store }, session: string): Promise<void> {
  const why = drivenElsewhere(place, await place.store.card(session))
  if (why === null) return
  const text = `Session ${session} was opened by another program. ${why} It can be read and decided here.`
  throw new CliError(EXIT.conflict, text)
}
