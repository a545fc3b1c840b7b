// How risky a shell command is, read from its syntax. It widens prompts and stops disasters; it is not the boundary, which
// is the sandbox: a program can always do more than its name says.
import type { Risk } from './level.ts'
import { readShell } from './read.ts'

export type { Risk } from './level.ts'

/** Never throws: what cannot be read is for a person to decide. */
export async function classify(command: string): Promise<Risk> {
  return (await readShell(command)).risk
}
