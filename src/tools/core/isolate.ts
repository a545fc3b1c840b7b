// Runs a handler from its own module: in this process, or in a thread that can be ended from outside, whatever it does.
// This is not a sandbox: the thread has the rights of the process, and only fewer environment variables.
import { Worker } from 'node:worker_threads'
import type { Frozen } from '../../kernel/content.ts'
import { isFailureKind } from '../../kernel/result.ts'
import { StreamCapture } from '../shell/capture.ts'
import { type OutputMetadata, ModelRetry, type Output, output, ToolFailure } from './tool-output.ts'
import { allowedEnvironment } from '../shell/sandbox.ts'

/** The part of a tool's context that is needed here. The thread gets no signal: it is simply ended. */
export type IsolateContext = Frozen<{ session: string; call: string; key: string; signal: AbortSignal }>

const HEAP_MB = 512
const PRINTED = { previewBytesMax: 2_000, wholeBytesMax: 0 }

/** Runs `execute` of the module in this process. The first call loads the module. */
export async function runInProcess(module: URL, args: unknown, context: unknown): Promise<unknown> {
  const loaded = (await import(module.href)) as Readonly<Record<string, unknown>>
  const { execute } = loaded
  if (typeof execute !== 'function') throw missingExecute(module)
  return (execute as (args: unknown, context: unknown) => unknown)(args, context)
}

/** Runs `execute` of the module in a thread of its own for this call. When the promise settles, the thread is gone. */
export async function runInThread(
  module: URL,
  args: unknown,
  context: IsolateContext,
  heapMb = HEAP_MB,
): Promise<unknown> {
  const { session, call, key, signal } = context
  if (signal.aborted) throw new ToolFailure('Interrupted', 'Stopped before it started.')
  const worker = new Worker(ENTRY, {
    eval: true,
    workerData: { url: module.href, args, context: { session, call, key } },
    // The thread gets no start options of this process, and only the environment that a command would get.
    env: { ...allowedEnvironment(process.env) },
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    stdout: true,
    stderr: true,
  })
  const printed = new PrintedOutput(worker)
  try {
    return threadResult(await awaitThreadEnd(worker, context), { module, heapMb, printed })
  } finally {
    await worker.terminate()
  }
}

type ThreadMessage =
  | { readonly type: 'value'; readonly value: unknown }
  | { readonly type: 'output'; readonly value: Output }
  | { readonly type: 'missing' }
  | {
      readonly type: 'threw'
      readonly name: string
      readonly message: string
      readonly kind: string
      readonly metadata: OutputMetadata
    }
type ThreadEnd =
  | { readonly type: 'told'; readonly told: ThreadMessage }
  | { readonly type: 'broke'; readonly error: Error }
  | { readonly type: 'exited'; readonly code: number }
  | { readonly type: 'aborted' }

/** Resolves with the first event; later ones do not count, because the thread is ended then. */
function awaitThreadEnd(worker: Worker, { key, signal }: IsolateContext): Promise<ThreadEnd> {
  return new Promise((resolve) => {
    const abort = (): void => resolve({ type: 'aborted' })
    const end = (how: ThreadEnd): void => {
      signal.removeEventListener('abort', abort)
      resolve(how)
    }
    signal.addEventListener('abort', abort, { once: true })
    // The module may post messages too: only those with the key are ours.
    worker.on('message', (message: { readonly key?: unknown; readonly told: ThreadMessage } | null) => {
      if (message?.key === key) end({ type: 'told', told: message.told })
    })
    worker.on('messageerror', (error: Error) => end({ type: 'broke', error }))
    worker.on('error', (error: Error) => end({ type: 'broke', error }))
    worker.on('exit', (code) => end({ type: 'exited', code }))
  })
}

type ThreadSetup = { readonly module: URL; readonly heapMb: number; readonly printed: PrintedOutput }

function threadResult(end: ThreadEnd, { module, heapMb, printed }: ThreadSetup): unknown {
  if (end.type === 'told') return messageValue(end.told, module)
  if (end.type === 'aborted') throw new ToolFailure('Interrupted', 'Stopped while it ran: its thread was ended.')
  throw new ToolFailure('Failed', endText(end, heapMb), printed.metadata())
}

function endText(end: Extract<ThreadEnd, { type: 'broke' | 'exited' }>, heapMb: number): string {
  if (end.type === 'exited') return `The module ended its own thread with code ${end.code} before it returned anything.`
  const { error } = end
  const full = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  if (full) return `The module needed more than ${heapMb} MB of memory and was ended.`
  return `The module broke its thread: ${error.name || 'Error'}: ${error.message || 'no message'}`
}

function messageValue(told: ThreadMessage, module: URL): unknown {
  if (told.type === 'value') return told.value
  if (told.type === 'output') return output(told.value)
  if (told.type === 'missing') throw missingExecute(module)
  const { name, message, kind, metadata } = told
  if (name === 'ModelRetry') throw new ModelRetry(message, metadata)
  if (isFailureKind(kind)) throw new ToolFailure(kind, message, metadata)
  throw Object.assign(new Error(message), { name })
}

function missingExecute(module: URL): ToolFailure {
  return new ToolFailure('Unavailable', `The module ${module.pathname} exports no function "execute".`)
}

/** Captures what the thread prints. It is reported only if the thread ends without a result. */
class PrintedOutput {
  readonly #stdout = new StreamCapture(PRINTED)
  readonly #stderr = new StreamCapture(PRINTED)

  constructor({ stdout, stderr }: Worker) {
    stdout.on('data', (chunk: Uint8Array) => this.#stdout.push(chunk))
    stderr.on('data', (chunk: Uint8Array) => this.#stderr.push(chunk))
  }

  metadata(): OutputMetadata {
    const [stdout, stderr] = [this.#stdout, this.#stderr].map((capture) => {
      const { head, tail, omittedBytes } = capture.finish()
      return omittedBytes === 0 ? head : `${head}\n[${omittedBytes} bytes left out here]\n${tail}`
    })
    return { ...(stdout ? { stdout } : {}), ...(stderr ? { stderr } : {}) }
  }
}

/**
 * The code of the thread. It is text, because a file would have to be found from source and from a bundle alike.
 * Outputs and failures are recognized by their marks: the thread has its own copies of the classes.
 */
const ENTRY = `
const { parentPort, workerData } = require('node:worker_threads')
const { url, args, context } = workerData
const tell = (told) => parentPort.postMessage({ key: context.key, told })
const text = (value, otherwise) => (typeof value === 'string' && value !== '' ? value : otherwise)
const isOutput = (value) =>
  value !== null &&
  typeof value === 'object' &&
  Object.getOwnPropertySymbols(value).some(({ description }) => description === 'terret.output')
const threw = (error) =>
  error instanceof Error
    ? {
        type: 'threw',
        name: text(error.name, 'Error'),
        message: text(error.message, 'no message'),
        kind: text(error.name === error.kind ? error.kind : '', ''),
        metadata: error.metadata ?? {},
      }
    : { type: 'threw', name: 'Error', message: text(error, 'something that is no Error was thrown'), kind: '', metadata: {} }
async function run() {
  const { execute } = await import(url)
  if (typeof execute !== 'function') return { type: 'missing' }
  const value = await execute(args, context)
  if (!isOutput(value)) return { type: 'value', value }
  const { ok, content, metadata, follows, parts } = value
  return { type: 'output', value: { ok, content, metadata, ...(follows ? { follows } : {}), ...(parts ? { parts } : {}) } }
}
run()
  .catch(threw)
  .then(tell)
  // A value that cannot be copied to another thread cannot be a result.
  .catch((error) => tell({ ...threw(error), metadata: {} }))
`
