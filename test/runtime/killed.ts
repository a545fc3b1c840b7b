// Runs processes whose store is `killable` (killable.ts), and kills each where it says so.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

/** More than any of them makes. */
export const COMMITS_MAX = 300

/**
 * A process that is killed after so many commits, if it makes as many, and then one that goes on. `argsFor` gives the arguments of a
 * process that stops after that commit; 0 never does. Returns what the last one printed.
 */
export async function killedAfter(
  commits: number,
  argsFor: (last: number) => readonly string[],
): Promise<{ readonly killed: boolean; readonly said: string }> {
  const first = await printedBy(argsFor(commits))
  // It may have printed its result before: some commits are made while it closes.
  const killed = first.includes('here\n')
  return { killed, said: killed ? await printedBy(argsFor(0)) : first }
}

/** What it printed, killed where it said so. */
export async function printedBy(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args)
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stderr.pipe(process.stderr)
  let said = ''
  child.stdout.on('data', (data: Buffer) => {
    said += data.toString()
    if (said.includes('here\n')) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return said
}
