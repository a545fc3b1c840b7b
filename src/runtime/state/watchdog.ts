// The watchdog: a thread that notices when the event loop of this process is blocked, and writes to stderr which calls
// are open. It stops nothing: a handler that blocks this process cannot be stopped, only one that runs in a thread of
// its own.
import type { Worker } from 'node:worker_threads'
import { Fault } from '../../kernel/failure.ts'

export type OpenCall = { readonly tool: string; readonly call: string; readonly session: string }

const MS_MIN = 10
const HEAD_BYTES = 8
const NAMES_BYTES_MAX = 1_000
const CALLS_MAX = 8
const NO_OPEN_CALL = 'no call is open'

export class Watchdog {
  readonly #worker: Worker
  readonly #shared = new SharedArrayBuffer(HEAD_BYTES + NAMES_BYTES_MAX)
  /** How often the thread was answered, and how many bytes of names there are. */
  readonly #head = new Int32Array(this.#shared, 0, 2)
  readonly #names = new Uint8Array(this.#shared, HEAD_BYTES)
  readonly #encoder = new TextEncoder()
  readonly #open = new Set<OpenCall>()

  /** A line is written when the loop was blocked for this long. */
  constructor(blockedMs: number) {
    if (!Number.isSafeInteger(blockedMs) || blockedMs < MS_MIN) {
      throw new Fault('invalid_config', `worker.watchdogMs must be a whole number of milliseconds from ${MS_MIN} on.`)
    }
    this.#write()
    // Loaded here because most processes have no watchdog, and all would pay for it.
    const threads = process.getBuiltinModule('node:worker_threads')
    this.#worker = new threads.Worker(ENTRY, {
      eval: true,
      workerData: { shared: this.#shared, blockedMs },
      execArgv: [],
    })
    // The loop only has to answer the thread: while it is blocked, it does not.
    this.#worker.on('message', () => {
      Atomics.add(this.#head, 0, 1)
      Atomics.notify(this.#head, 0)
    })
    // A watchdog that fails is no reason to stop.
    this.#worker.on('error', () => {})
    this.#worker.unref()
  }

  /** Called right before a handler runs. The returned function is called when the handler is done. */
  enter(call: OpenCall): () => void {
    this.#open.add(call)
    this.#write()
    return () => {
      this.#open.delete(call)
      this.#write()
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  /** Newest first: the last one started is the most likely cause. */
  #write(): void {
    const calls = [...this.#open].slice(-CALLS_MAX).reverse()
    const names = calls.map(({ tool, call, session }) => `${tool} (call ${call} of session ${session})`)
    const { written } = this.#encoder.encodeInto(names.join(', ') || NO_OPEN_CALL, this.#names)
    Atomics.store(this.#head, 1, written)
  }
}

/** Waits in the kernel, not by timers, and writes directly: nothing in it needs the loop that it watches. */
const ENTRY = `
const { writeSync } = require('node:fs')
const { parentPort, workerData } = require('node:worker_threads')
const { shared, blockedMs } = workerData
const head = new Int32Array(shared, 0, 2)
const pause = new Int32Array(new SharedArrayBuffer(4))
const names = () => Buffer.from(Uint8Array.from(new Uint8Array(shared, ${HEAD_BYTES}, Atomics.load(head, 1)))).toString()
const say = (line) => {
  try {
    writeSync(2, 'terret watchdog: ' + line + '\\n')
  } catch {}
}
for (;;) {
  const answered = Atomics.load(head, 0)
  const asked = performance.now()
  parentPort.postMessage(null)
  let blocked = false
  while (Atomics.wait(head, 0, answered, blockedMs) === 'timed-out') {
    if (!blocked) say('the event loop has not turned for ' + blockedMs + ' ms; open: ' + names())
    blocked = true
  }
  if (blocked) say('the event loop turns again after ' + Math.round(performance.now() - asked) + ' ms')
  Atomics.wait(pause, 0, 0, Math.ceil(blockedMs / 4))
}
`
