// Runs one child process within limits: bounded output, soft and hard timeouts, and an end that includes its
// descendants. It knows how to end a bubblewrap namespace; sandbox.ts builds it. It knows nothing of tools or models.
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../ports/system.ts'
import { StreamCapture, type CapturedStream, type CaptureLimits } from './capture.ts'

export type OutputStream = 'stdout' | 'stderr'

export type ChildOrder = {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  /** Without any output for this long, the child is stopped. */
  readonly softMs: number
  readonly hardMs: number
  /** Once it fires, the limits of time do not count. */
  readonly released?: AbortSignal
  readonly signal: AbortSignal
  readonly limits: CaptureLimits
  /**
   * The child is bubblewrap, and the first process of its namespace holds the other end of descriptor 3. It sends
   * `READY`, waits for `GO`, sends the exit code of the command, and exits when the code is sent back, or when we are
   * gone. So nothing runs without us, and no process is left when the promise resolves.
   */
  readonly namespaced: boolean
  /** The data for descriptor `FILTER_FD` of bubblewrap. */
  readonly filter?: Uint8Array | null
  readonly onChunk?: (stream: OutputStream, chunk: Uint8Array) => void
}

export type ChildEnd = {
  readonly how:
    | { readonly type: 'exited'; readonly code: number }
    | { readonly type: 'timeout'; readonly kind: 'soft' | 'hard' }
    | { readonly type: 'aborted' }
    /** The command never ran. */
    | { readonly type: 'unstarted'; readonly message: string }
  readonly stdout: CapturedStream
  readonly stderr: CapturedStream
  readonly durationMs: number
}

export const READY = 'ready'
export const GO = 'go'
export const FILTER_FD = 4

/** The time between SIGTERM and SIGKILL. */
const TERM_MS = 300
/**
 * How long to wait for ended processes: after a stop it is short, because the caller waits; after an exit it is longer.
 */
const STOPPED_MS = 800
const EXITED_MS = 5_000
/** How long to wait for the last output of an ended process. */
const DRAIN_MS = 100
const NAMESPACE_POLL_MS = 2

/** Never rejects. Resolves within a second of an abort or a timeout. */
export function runChild(order: ChildOrder, clock: Clock): Promise<ChildEnd> {
  return new ChildRun(order, clock).run()
}

type ProcessExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }
type ChildStop = Extract<ChildEnd['how'], { type: 'timeout' | 'aborted' }>

class ChildRun {
  readonly #order: ChildOrder
  readonly #clock: Clock
  readonly #captures: Readonly<Record<OutputStream, StreamCapture>>
  readonly #timers = new Set<() => void>()
  readonly #begunAt: number
  #process: ChildProcess | null = null
  #spokeAt: number
  #stop: ChildStop | null = null
  #stoppedAt = 0
  #ready = false
  #first: { readonly pid: number; readonly bornAt: string | null } | null = null
  #code: number | null = null
  #giveUp: () => void = () => {}

  constructor(order: ChildOrder, clock: Clock) {
    this.#order = order
    this.#clock = clock
    this.#captures = { stdout: new StreamCapture(order.limits), stderr: new StreamCapture(order.limits) }
    this.#begunAt = clock.now()
    this.#spokeAt = this.#begunAt
  }

  async run(): Promise<ChildEnd> {
    const { signal, hardMs, softMs } = this.#order
    if (signal.aborted) return this.#ended({ type: 'aborted' })
    const abort = (): void => this.#end({ type: 'aborted' })
    try {
      const exited = this.#start()
      signal.addEventListener('abort', abort, { once: true })
      this.#after(hardMs, () => this.#end({ type: 'timeout', kind: 'hard' }))
      this.#watchSilence(softMs)
      const given = new Promise<null>((resolve) => (this.#giveUp = () => resolve(null)))
      const exit = await Promise.race([exited, given])
      await this.#settle()
      return this.#ended(this.#stop ?? this.#how(exit))
    } catch (error) {
      return this.#ended({ type: 'unstarted', message: error instanceof Error ? error.message : 'it did not start' })
    } finally {
      signal.removeEventListener('abort', abort)
      for (const cancel of this.#timers) cancel()
    }
  }

  /** Rejects if no process was started. Throws at once for arguments that the system refuses. */
  #start(): Promise<ProcessExit> {
    const { file, args, cwd, env, namespaced, filter = null } = this.#order
    const child = spawn(file, [...args], {
      cwd,
      env: { ...env },
      stdio: namespaced ? ['ignore', 'pipe', 'pipe', 'pipe', filter ? 'pipe' : 'ignore'] : ['ignore', 'pipe', 'pipe'],
      // Without a namespace, the process group is killed as one.
      detached: !namespaced,
    })
    this.#process = child
    this.#listen('stdout', child.stdout)
    this.#listen('stderr', child.stderr)
    // Writing to an ended process fails, and that is no error.
    const lifeline = child.stdio[3]?.on('error', () => {})
    const reader = child.stdio[FILTER_FD]?.on('error', () => {}) as Writable | undefined
    reader?.end(filter)
    lifeline?.on('data', (data: Buffer) => this.#answer(lifeline as Writable, data.toString()))
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
  }

  #listen(name: OutputStream, stream: Readable | null): void {
    stream?.on('error', () => {})
    stream?.on('data', (chunk: Uint8Array) => {
      this.#spokeAt = this.#clock.now()
      this.#captures[name].push(chunk)
      this.#order.onChunk?.(name, chunk)
    })
  }

  /** Handles messages of the namespace's first process. No other process in it can send any. */
  #answer(lifeline: Writable, text: string): void {
    for (const line of text.split('\n')) {
      if (line === READY && !this.#stop) {
        const [pid] = childPids(this.#process?.pid ?? 0)
        this.#first = pid === undefined ? null : { pid, bornAt: processStartTime(pid) }
        this.#ready = true
        lifeline.write(`${GO}\n`)
      }
      if (/^\d{1,3}$/.test(line)) {
        this.#code = Number(line)
        lifeline.end(`${line}\n`)
      }
    }
  }

  /** The pid of the namespace's first process, if it still belongs to that process. */
  #living(): number | null {
    return this.#first !== null && processStartTime(this.#first.pid) === this.#first.bornAt ? this.#first.pid : null
  }

  /** Only the first reason counts. */
  #end(stop: ChildStop): void {
    if (this.#stop || this.#process === null) return
    if (stop.type === 'timeout' && this.#order.released?.aborted) return
    this.#stop = stop
    this.#stoppedAt = this.#clock.now()
    // Killing its first process ends a namespace, and then bubblewrap. Before that process is ready, bubblewrap gets
    // time: killed while it starts, it could leave behind a process that waits for it for ever. The first process ends
    // when its pipe is closed.
    if (!this.#order.namespaced) this.#kill('SIGTERM')
    else if (this.#ready) this.#kill('SIGKILL')
    this.#process.stdio[3]?.destroy()
    this.#after(TERM_MS, () => this.#kill('SIGKILL'))
    this.#after(STOPPED_MS, this.#giveUp)
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const pid = this.#process?.pid
    if (pid === undefined) return
    if (!this.#order.namespaced) return sendSignal(-pid, signal)
    const first = this.#living()
    for (const one of first === null ? [...childPids(pid), pid] : [first]) sendSignal(one, signal)
  }

  #watchSilence(ms: number): void {
    this.#after(ms, () => {
      const left = this.#spokeAt + this.#order.softMs - this.#clock.now()
      if (left <= 0) this.#end({ type: 'timeout', kind: 'soft' })
      else this.#watchSilence(left)
    })
  }

  /** After the exit: ends every remaining process and reads the last output. */
  async #settle(): Promise<void> {
    const { namespaced } = this.#order
    const pid = this.#process?.pid
    if (!namespaced && pid !== undefined) sendSignal(-pid, 'SIGKILL')
    const deadline = this.#stop ? this.#stoppedAt + STOPPED_MS : this.#clock.now() + EXITED_MS
    for (let first = this.#living(); first !== null && this.#clock.now() < deadline; first = this.#living()) {
      sendSignal(first, 'SIGKILL')
      await this.#sleep(NAMESPACE_POLL_MS)
    }
    // A process that left the group may hold the pipes open for ever. In a namespace no process can, so there the
    // stream always ends.
    const drainMs = namespaced && !this.#stop ? EXITED_MS : DRAIN_MS
    const streams = [this.#process?.stdout, this.#process?.stderr]
    await Promise.race([Promise.all(streams.map(awaitClose)), this.#sleep(drainMs)])
    for (const stream of streams) stream?.destroy()
  }

  #how(exit: ProcessExit | null): ChildEnd['how'] {
    // Bubblewrap's own errors come before the command is ready.
    if (this.#order.namespaced && !this.#ready) {
      return { type: 'unstarted', message: this.#captures.stderr.finish().head.slice(0, 500) }
    }
    if (this.#code !== null) return { type: 'exited', code: this.#code }
    if (exit?.signal) return { type: 'exited', code: 128 + constants.signals[exit.signal] }
    return { type: 'exited', code: exit?.code ?? 1 }
  }

  #ended(how: ChildEnd['how']): ChildEnd {
    const { stdout, stderr } = this.#captures
    return { how, stdout: stdout.finish(), stderr: stderr.finish(), durationMs: this.#clock.now() - this.#begunAt }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#after(ms, resolve))
  }

  #after(ms: number, act: () => void): void {
    const cancel = this.#clock.timer(ms, () => {
      this.#timers.delete(cancel)
      act()
    })
    this.#timers.add(cancel)
  }
}

function awaitClose(stream: Readable | null | undefined): Promise<void> {
  if (!stream || stream.readableEnded || stream.destroyed) return Promise.resolve()
  return new Promise((resolve) => stream.once('close', resolve))
}

/**
 * The start time of a process, in ticks; null if it is dead. A zombie counts as dead: a first process becomes one only
 * after its whole namespace is gone.
 */
export function processStartTime(pid: number): string | null {
  try {
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/.*\) /s)[1]?.split(' ') ?? []
    return state === undefined || state === 'Z' || state === 'X' ? null : (fields[18] ?? null)
  } catch {
    return null
  }
}

/** Reads the children of all its threads: any thread may have started one. */
export function childPids(pid: number): readonly number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'))
    return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number))
  } catch {
    return []
  }
}

/** A process that is gone needs no signal. */
export function sendSignal(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {}
}
