// One process for many command lines, one after another: starting a process is most of the cost of a line.
// Not for lines that stay until they are stopped, are watched, or must have a process of their own.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type Ended = { readonly code: number | null; readonly out: string; readonly err: string }
/** One line of the command, as it is typed. */
export type Line = {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

const SCRIPT = fileURLToPath(new URL('../../.build/test/cli/child-lines.js', import.meta.url))
const DEADLINE_MS = 20_000

/** These stay until they are stopped, or need a terminal. */
const LASTING = new Set(['interactive', 'tail'])

let resident: ChildProcess | null = null
let last: Promise<unknown> = Promise.resolve()
let waiting = 0

/** Whether a line needs no process of its own. One that runs beside another line does. That each command ends: ends.long.test.ts. */
export function canShare([command = '', ...args]: readonly string[]): boolean {
  if (LASTING.has(command) || (command === 'worker' && !args.includes('--idle'))) return false
  return waiting === 0
}

/** One after another. */
export async function sharedLine(line: Line): Promise<Ended> {
  waiting += 1
  const done = last.then(() => told(line)).finally(() => (waiting -= 1))
  last = done.catch(() => {})
  return done
}

async function told(line: Line): Promise<Ended> {
  resident ??= start()
  const child = resident
  const over = new AbortController()
  const gone = (): void => over.abort()
  const deadline = setTimeout(gone, DEADLINE_MS)
  child.once('exit', gone)
  try {
    child.send(line)
    const [answer] = (await once(child, 'message', over)) as [Ended]
    return answer
  } catch (error) {
    child.kill('SIGKILL')
    resident = null
    throw new Error(`terret ${line.args.join(' ')} did not end`, { cause: error })
  } finally {
    clearTimeout(deadline)
    child.off('exit', gone)
  }
}

function start(): ChildProcess {
  const child = fork(SCRIPT, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  child.once('exit', () => {
    if (resident === child) resident = null
  })
  // It does not keep this process alive, and ends with it.
  child.unref()
  child.channel?.unref()
  return child
}
