// Where cells run: a thread for each script session, which stays as long as it is used, with an engine of its own. A cell that does not stop by
// itself is ended with its thread. The thread is a cache: what it knows can be made again from the log.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../ports/system.ts'
import { systemClock } from '../stores/plan/system-clock.ts'
import { type CellBounds, CellEngine, type CellEnded, type CellRequest, type CellRest } from './cell.ts'
import { PRELUDE, REFUSED, SIZES } from './prelude.ts'

const BOUNDS: CellBounds = {
  memoryBytes: 64 * 1024 * 1024,
  stackBytes: 256 * 1024,
  stdoutChars: 24_000,
  printedChars: 256 * 1024,
  refusals: 1_000,
  ...SIZES,
  kinds: [
    'script_error',
    'denied',
    'timeout',
    'limit_exceeded',
    'unknown_capability',
    'recursion_depth',
    'capability_error',
    'cancelled',
  ],
}
/** How long after its time a thread is ended that does not answer: native work does not look up. */
const GRACE_MS = 1_000
const START_MS = 30_000
const HEAP_MB = 256

/** `lost`: its thread is gone, and the cell can be run again. */
export type CellOutcome = CellRest | CellEnded | { readonly type: 'lost'; readonly message: string }

export interface CellRunner {
  /**
   * Runs each of these until nothing moves, at least one, and gives fewer when they are large or the cell has ended.
   * After anything but `rest` the runner is of no use any more.
   */
  run(requests: readonly CellRequest[]): Promise<readonly CellOutcome[]>
  close(): void
}
export type StartRunner = (clock: Clock) => Promise<CellRunner>

/** The types of Node do not have it. */
declare const WebAssembly: { readonly compile: (bytes: Uint8Array) => Promise<CompiledEngine> }
interface CompiledEngine {
  readonly '~compiled': true
}

/** The compiled engine, which all threads share. Compiling it takes longer than everything else. */
const compiled: { wasm: Promise<CompiledEngine> | null } = { wasm: null }

/**
 * Threads whose script session is over. The next one gets an engine of its own in such a thread, and begins sooner,
 * because the code around the engine is compiled there.
 */
const spares: CellThread[] = []
const SPARES_MAX = 2
const SPARE_MS = 60_000

export async function startCellThread(clock: Clock): Promise<CellRunner> {
  for (let spare = spares.pop(); spare !== undefined; spare = spares.pop())
    if ((await spare.begin(clock)) === null) return new ThreadRunner(spare)
  const thread = new CellThread(await loadWasm())
  const trouble = await thread.begin(clock)
  if (trouble === null) return new ThreadRunner(thread)
  throw new Error(`The engine for scripts did not start: ${trouble}`)
}

/**
 * Cells in this thread, for programs that must not wait for another one: once it is loaded, nothing of it takes time. A
 * cell can only be ended where it looks up.
 */
export async function loadCellsHere(): Promise<StartRunner> {
  const { newQuickJSWASMModuleFromVariant, newVariant, variant } = await import('./quickjs.ts')
  const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule: await loadWasm() }))
  const options = { quickjs, prelude: PRELUDE, bounds: BOUNDS, refused: REFUSED, clock: () => 0 }
  return async () => {
    const engine = new CellEngine(options)
    const run: CellRunner['run'] = async (requests) => JSON.parse(engine.run(JSON.stringify(requests))) as CellOutcome[]
    return { run, close: () => {} }
  }
}

function loadWasm(): Promise<CompiledEngine> {
  compiled.wasm ??= readFile(locateWasm())
    .then((bytes) => WebAssembly.compile(bytes))
    .catch((error: unknown) => {
      compiled.wasm = null
      throw error
    })
  return compiled.wasm
}

type ThreadNews = string | { readonly message: string; readonly late: boolean }

/** A thread as long as one script session uses it. */
class ThreadRunner implements CellRunner {
  #thread: CellThread | null

  constructor(thread: CellThread) {
    this.#thread = thread
  }

  async run(requests: readonly CellRequest[]): Promise<readonly CellOutcome[]> {
    return this.#thread?.run(requests) ?? [{ type: 'lost', message: ENDED }]
  }

  close(): void {
    const thread = this.#thread
    this.#thread = null
    thread?.release()
  }
}

const ENDED = 'it was ended'

class CellThread {
  readonly #worker: Worker
  #clock: Clock = systemClock
  #told: ((news: ThreadNews) => void) | null = null
  #gone: string | null = null
  #cancelEnd = (): void => {}

  constructor(wasm: CompiledEngine) {
    this.#worker = new Worker(THREAD, {
      eval: true,
      workerData: { modules: moduleUrls(), wasm, prelude: PRELUDE, bounds: BOUNDS, refused: REFUSED },
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
      stdout: true,
      stderr: true,
    })
    this.#worker.on('message', (text: string) => this.#tell(text))
    this.#worker.on('messageerror', (error: Error) => this.#lose(error.message))
    this.#worker.on('error', (error: Error) => this.#lose(error.message))
    this.#worker.on('exit', (code) => this.#lose(`it exited with code ${code}`))
    // What it prints is not read: reading would keep the process alive, and nothing inside can print.
    this.#worker.unref()
  }

  /** Makes a new engine in it. Returns why that failed, or null. */
  async begin(clock: Clock): Promise<string | null> {
    this.#cancelEnd()
    this.#clock = clock
    if (this.#gone === null) this.#worker.postMessage(BEGIN)
    const news = await this.#next(START_MS)
    if (typeof news === 'string') return null
    this.#end()
    return news.message
  }

  async run(requests: readonly CellRequest[]): Promise<readonly CellOutcome[]> {
    if (this.#gone !== null) return [{ type: 'lost', message: this.#gone }]
    this.#worker.postMessage(JSON.stringify(requests))
    const most = Math.max(...requests.map(({ computeMs }) => computeMs)) + GRACE_MS
    const news = await this.#next(most)
    if (typeof news === 'string') {
      const outcomes = JSON.parse(news) as readonly (CellRest | CellEnded)[]
      if (outcomes.at(-1)?.type === 'ended') this.#end()
      return outcomes
    }
    this.#end()
    if (!news.late) return [{ type: 'lost', message: news.message }]
    const message = 'The cell computed for too long without looking up, and its thread was ended.'
    return [{ type: 'ended', error: { kind: 'timeout', message, at: null }, ms: most }]
  }

  /** Its session is over. A thread that computes, or whose cell did not come to rest, is not used again. */
  release(): void {
    if (this.#gone !== null || this.#told !== null || spares.length >= SPARES_MAX) return this.#end()
    this.#worker.postMessage(FORGET)
    spares.push(this)
    this.#cancelEnd = systemClock.timer(SPARE_MS, () => {
      spares.splice(spares.indexOf(this), 1)
      this.#end()
    })
  }

  /** What the thread tells next. While it is waited for, the thread keeps the process alive. */
  async #next(ms: number): Promise<ThreadNews> {
    if (this.#gone !== null) return { message: this.#gone, late: false }
    this.#worker.ref()
    let cancel = (): void => {}
    try {
      return await new Promise((resolve) => {
        this.#told = resolve
        cancel = this.#clock.timer(ms, () => resolve({ message: 'it took too long', late: true }))
      })
    } finally {
      cancel()
      this.#told = null
      this.#worker.unref()
    }
  }

  #end(): void {
    this.#gone ??= ENDED
    void this.#worker.terminate()
  }

  #tell(news: ThreadNews): void {
    this.#told?.(news)
  }

  #lose(message: string): void {
    this.#gone ??= message
    this.#tell({ message, late: false })
  }
}

/** Finds the file beside the built module or its chunk; when run from source, in its package. */
function locateWasm(): string {
  const name = 'emscripten-module.wasm'
  const built = [`../wasm/${name}`, `./wasm/${name}`].map((path) => fileURLToPath(new URL(path, import.meta.url)))
  const inPackage = (): string => createRequire(import.meta.url).resolve('@jitl/quickjs-wasmfile-release-sync/wasm')
  return built.find((path) => existsSync(path)) ?? inPackage()
}

/** What the thread imports: the built module; when run from source, which a thread cannot load, the packages. */
function moduleUrls(): readonly string[] {
  const built = ['./quickjs.js', '../scripts/quickjs.js'].map((path) => new URL(path, import.meta.url))
  const found = built.find((url) => existsSync(url))
  if (found) return [found.href]
  const { resolve } = createRequire(import.meta.url)
  const packages = ['quickjs-emscripten-core', '@jitl/quickjs-wasmfile-release-sync']
  return packages.map((name) => pathToFileURL(resolve(name).replace(/\.js$/, '.mjs')).href)
}

/** Messages to the thread that are no requests: make a new engine, and let the old one go. */
const BEGIN = 'begin'
const FORGET = 'forget'

/** The code of the thread. It is text, because a file would have to be found from source and from a bundle alike. */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const { modules, wasm, prelude, bounds, refused } = workerData
const Engine = (${CellEngine.toString()})
async function start() {
  const found = Object.assign({}, ...(await Promise.all(modules.map((url) => import(url)))))
  const variant = found.newVariant(found.variant ?? found.default, { wasmModule: wasm })
  let engine = null
  async function begin() {
    const quickjs = await found.newQuickJSWASMModuleFromVariant(variant)
    engine = new Engine({ quickjs, prelude, bounds, refused, clock: () => performance.now() })
    parentPort.postMessage('ready')
  }
  parentPort.on('message', (text) => {
    if (text === '${BEGIN}') void begin()
    else if (text === '${FORGET}') engine = null
    else parentPort.postMessage(engine.run(text))
  })
}
void start()
`
