// Reads the card of a session that may not exist.
import { Fault } from '../kernel/failure.ts'
import type { RunCard } from '../sessions/reading.ts'
import type { Sessions } from '../sessions/verbs.ts'

/** Null: the session does not exist. */
export async function readSessionCard(sessions: Pick<Sessions, 'session'>, id: string): Promise<RunCard | null> {
  try {
    return (await sessions.session(id, { stored: true }).status({ include: ['card'] })).card
  } catch (error) {
    if (error instanceof Fault && error.code === 'session_missing') return null
    throw error
  }
}
