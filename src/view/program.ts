// Which program a session belongs to: what is said of a session that the workers of this program leave alone. Pure.
import type { Card } from '../ports/store.ts'

/** The program of harnesses that were given no name. */
export const UNNAMED = 'unnamed'

/** For people: who goes on with a session that no worker here drives. */
export function driverText({ agent, program }: Pick<Card, 'agent' | 'program'>): string {
  const worker = `It waits for a worker of agent "${agent}"`
  if (program === undefined) return `${worker} of the program that opened it.`
  return program === UNNAMED
    ? `${worker} of the program that opened it, which has no name.`
    : `${worker} of the program "${program}".`
}
