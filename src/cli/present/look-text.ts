// One line for people about the result of a look at a session, or about failed attempts.
import type { Card } from '../../kernel/index.ts'
import { oneLine } from '../../view/clean.ts'
import { terretCommand } from './print.ts'

export function lookText(
  id: string,
  looked: { readonly type: string; readonly why?: string; readonly waiting?: string; readonly until?: number | null },
): string {
  if (looked.type === 'contended') return `${id}: another worker drives it.`
  if (looked.why !== undefined) return `${id}: ${oneLine(looked.why, 400)}`
  if (looked.type !== 'rested') return `${id}: ${oneLine(looked.type)}.`
  const until = looked.until ? `, until ${new Date(looked.until).toISOString()}` : ''
  return `${id}: rests, waiting for ${oneLine(looked.waiting ?? 'nothing')}${until}.`
}

export function attemptsText(session: string, trouble: NonNullable<Card['trouble']>): string {
  const { attempts, reason, until } = trouble
  const often = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts in a row'} failed`
  const next =
    until === null
      ? `It is quarantined: no worker tries it any more. To try it again: ${terretCommand`resume ${session}`}`
      : `It is tried again after ${new Date(until).toISOString()}.`
  return `${often} (${oneLine(reason, 400)}). ${next}`
}
