// A decision about a dead letter, as it stands in a message to the session that holds the letter.
import type { Json } from '../kernel/content.ts'
import { isObject } from './untrusted-json.ts'

/** It counts only for the death that it names. */
export type LetterDecision = {
  readonly letter: string
  readonly deaths: number
  readonly decision: 'retry' | 'drop'
  readonly by: string
}

/** Null for any other value. */
export function readDecision(value: Json | undefined): LetterDecision | null {
  if (!isObject(value)) return null
  const { letter, deaths, decision, by } = value
  if (typeof letter !== 'string' || typeof deaths !== 'number' || typeof by !== 'string') return null
  return decision === 'retry' || decision === 'drop' ? { letter, deaths, decision, by } : null
}
