// One process for many command lines that drive nothing: starting a process is most of the cost of such a line.
// Not for lines that drive, are stopped, or are watched.
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

/** These commands only read, or add one inbox event for the worker that drives. */
const SHORT = new Set([
  'answer',
  'approve',
  'delete',
  'export',
  'fork',
  'history',
  'import',
  'inspect',
  'list',
  'memory',
  'pending',
  'policy',
  'prune',
  'reject',
  'replay',
  'workflow',
])

/** Those that were seen to end by themselves as a process of their own. */
const ended = new Set<string>()
let resident: ChildProcess | null = null
let last: Promise<unknown> = Promise.resolve()

/** Whether a line needs no process of its own. The first of each command has one all the same: a real start, and a real end. */
export function isShort([command = '', ...args]: readonly string[]): boolean {
  if (!SHORT.has(command) || args.includes('--resume')) return false
  const known = ended.has(command)
  ended.add(command)
  return known
}

/** One after another. */
export function shortLine(line: Line): Promise<Ended> {
  const done = last.then(() => told(line))
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
