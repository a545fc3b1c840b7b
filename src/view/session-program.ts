// The program that a session belongs to: text about sessions that the workers of this program leave alone. Pure.
import type { Card } from '../ports/store.ts'
import { shownId } from './clean.ts'
import { shellCommand } from './shell-command.ts'

/** The program of harnesses without a name. */
export const UNNAMED = 'unnamed'

/** For people: which workers will continue a session that no worker here drives. */
export function driverText({ agent, program }: Pick<Card, 'agent' | 'program'>): string {
  const worker = `It waits for a worker of agent "${agent}"`
  if (program === undefined) return `${worker} of the program that opened it.`
  return program === UNNAMED
    ? `${worker} of the program that opened it, which has no name.`
    : `${worker} of the program "${program}".`
}

/** The text about a session that came from a file, until a person lets it go on. */
export function importHeldText(id: string): string {
  return `Session ${shownId(id)} was imported and is held. Look at what it would do, then let it go on: \`${shellCommand`terret resume ${id}`}\`, or send([{ type: 'resume' }]). What is open in it is asked about then.`
}
