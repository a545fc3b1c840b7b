// Worker processes of the demo, one after another: each is `terret resume` on the same session. They are started, killed and awaited
// here; what they did is in the log.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** `said`: the end of what it wrote to standard error. */
type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly said: string }
export type Worker = { readonly pid: number; readonly ended: Promise<Ended>; kill(): boolean }

const SAID_CHARS_MAX = 4_000

export class Workers {
  readonly pids: number[] = []
  readonly #args: readonly string[]
  #child: ChildProcess | null = null

  constructor(session: string, data: string) {
    const [, script = ''] = process.argv
    this.#args = [...process.execArgv, script, 'resume', session, '--quiet', '--data', data]
  }

  /** Rejects if the system starts no process. In a group of its own: a Ctrl-C of the terminal is for the process that shows it. */
  async start(holds: readonly string[]): Promise<Worker> {
    const more = holds.flatMap((hold) => ['--hold', hold])
    const child = spawn(process.execPath, [...this.#args, ...more], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
      windowsHide: true,
    })
    this.#child = child
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-SAID_CHARS_MAX)))
    const ended = new Promise<Ended>((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal, said }))
    })
    await once(child, 'spawn')
    const { pid = 0 } = child
    this.pids.push(pid)
    return { pid, ended, kill: () => child.kill('SIGKILL') }
  }

  /** Whether the process that was started last was running. */
  leave(): boolean {
    return this.#child?.kill('SIGKILL') ?? false
  }
}
