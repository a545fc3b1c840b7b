// The worker processes of the demo, one after another. Each is `terret resume` on the same session. This file starts,
// kills and awaits them; their work is in the log.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** `said` is the end of the worker's standard error. */
type WorkerEnd = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly said: string }
export type DemoWorker = { readonly pid: number; readonly ended: Promise<WorkerEnd>; kill(): boolean }

const SAID_CHARS_MAX = 4_000

export class DemoWorkers {
  readonly pids: number[] = []
  readonly #args: readonly string[]
  #child: ChildProcess | null = null

  constructor(session: string, data: string) {
    const [, script = ''] = process.argv
    this.#args = [...process.execArgv, script, 'resume', session, '--quiet', '--data', data]
  }

  /**
   * Rejects if the system starts no process. The worker has its own process group, so that a Ctrl-C reaches only the
   * demo.
   */
  async start(holds: readonly string[]): Promise<DemoWorker> {
    const more = holds.flatMap((hold) => ['--hold', hold])
    const child = spawn(process.execPath, [...this.#args, ...more], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
      windowsHide: true,
    })
    this.#child = child
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-SAID_CHARS_MAX)))
    const ended = new Promise<WorkerEnd>((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal, said }))
    })
    await once(child, 'spawn')
    const { pid = 0 } = child
    this.pids.push(pid)
    return { pid, ended, kill: () => child.kill('SIGKILL') }
  }

  /** Kills the last worker. True if it was running. */
  leave(): boolean {
    return this.#child?.kill('SIGKILL') ?? false
  }
}
