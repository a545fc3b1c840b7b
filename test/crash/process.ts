// A child process of the crash test, as its parent holds it: lines in, lines out, a deadline on every wait, and SIGKILL.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ERRORS_KEPT = 4_000

/** Children that this process has started. */
let started = 0

export class Child {
  /** Of no other child of this process. A pid may come again: a long run starts more processes than there are pids. */
  readonly serial: number
  readonly pid: number
  /** How it ended: its exit code, or the signal. */
  readonly exited: Promise<number | string>
  stderr = ''
  /** When it was killed from here; null before that. */
  killedAt: number | null = null
  readonly #process: ChildProcessWithoutNullStreams
  readonly #lines: string[] = []
  #ended = false
  #wake: () => void = () => {}

  constructor(script: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    // The compiled file beside this one: what is killed is what is shipped, not something translated on the fly.
    const path = fileURLToPath(new URL(script, import.meta.url))
    started += 1
    this.serial = started
    const numbered = { ...env, TERRET_CRASH_WORKER: String(this.serial) }
    this.#process = spawn(process.execPath, [path, ...args], { stdio: 'pipe', env: numbered })
    this.pid = this.#process.pid ?? 0
    this.exited = new Promise((resolve) => {
      this.#process.once('error', (error) => resolve(error.message))
      this.#process.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    })
    void this.exited.then(() => {
      this.#ended = true
      this.#wake()
    })
    this.#process.stderr.on('data', (data: Buffer) => {
      this.stderr = (this.stderr + data.toString()).slice(-ERRORS_KEPT)
    })
    // Writing to a process that has just been killed is no error here.
    this.#process.stdin.on('error', () => {})
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.#lines.push(line)
      this.#wake()
    })
  }

  get alive(): boolean {
    return !this.#ended
  }

  say(line: string): void {
    this.#process.stdin.write(`${line}\n`)
  }

  /** True when the line came; false when the process ended first, or the time is over. */
  async heard(line: string, timeoutMs: number): Promise<boolean> {
    const until = Date.now() + timeoutMs
    while (!this.#lines.includes(line)) {
      const left = until - Date.now()
      if (this.#ended || left <= 0) return false
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return true
  }

  /** What it said last that begins so; null if it said nothing of the kind. */
  said(begin: string): string | null {
    return this.#lines.findLast((line) => line.startsWith(begin)) ?? null
  }

  /** From outside, at once, and not to be caught. */
  kill(): void {
    this.killedAt ??= Date.now()
    this.#process.kill('SIGKILL')
  }

  /** The whole process stands still, and knows nothing of it. */
  pause(): void {
    this.#process.kill('SIGSTOP')
  }

  resume(): void {
    this.#process.kill('SIGCONT')
  }
}
