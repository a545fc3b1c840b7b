// Classifies the risk of a shell command from its syntax. It adds questions and stops disasters. It is not the
// boundary; the sandbox is: a program can always do more than its name says.
import type { Risk } from './risk-level.ts'
import { readShell } from './read-shell.ts'

export type { Risk } from './risk-level.ts'

/** Never throws: a command that cannot be read is for a person to decide. */
export async function classifyCommand(command: string): Promise<Risk> {
  return (await readShell(command)).risk
}
