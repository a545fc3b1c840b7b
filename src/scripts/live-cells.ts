// The engines that live in this process, one for each script session that is used. They are a cache: an engine that is
// missing, or that has gone another way than the log, is made again by running the cells over their recorded results.
import type { Clock } from '../ports/system.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { callHash, type CellLog, type CellPart, codeHash, readCellTask } from './cell-log.ts'
import type { CellEnded, CellFailure, CellRequest, CellRest, CellSegment } from './cell.ts'
import type { CellOutcome, CellRunner, StartRunner } from './sandbox.ts'

/** Of those that nothing uses, the last used ones live on, for this long. */
const LIVE_MAX = 8
const IDLE_MS = 60_000

/** The log says that a cell did something else than it does now. */
export type Diverged = { readonly type: 'diverged'; readonly error: CellFailure }
export type CellStep = CellRest | CellEnded | Diverged

type OpenCell = {
  readonly session: string
  /** The time and the randomness of each part that was run. */
  readonly parts: CellSegment[]
  rest: CellRest | null
}
type LiveEngine = {
  readonly runner: CellRunner
  /** The cells that it has run to their ends. */
  readonly cells: string[]
  open: OpenCell | null
  cancelIdle: () => void
}

/** A cell to run: its log, and the logs of those before it. */
export type CellToRun = {
  readonly key: string
  readonly session: string
  readonly log: CellLog
  readonly chain: readonly string[]
  readonly readLog: (session: string) => Promise<CellLog>
}

/** Where cells run, and the clock by which unused engines are ended. */
export type CellPlaces = { readonly start: StartRunner; readonly idle: Clock }

export class LiveCells {
  readonly #start: StartRunner
  /** Its timers do not keep the process alive. */
  readonly #idle: Clock
  readonly #live = new Map<string, LiveEngine>()

  constructor({ start, idle }: CellPlaces) {
    this.#start = start
    this.#idle = idle
  }

  /** Runs the cell up to this part, and gives what it wants then. `fresh` is for a part that the log does not have. */
  async step(cell: CellToRun, part: number, fresh: CellSegment, clock: Clock, signal: AbortSignal): Promise<CellStep> {
    for (let tries = 1; ; tries++) {
      const live = await this.#take(cell, part, clock)
      const stop = (): void => live.runner.close()
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      const outcome = await this.#run(live, cell, part, fresh).finally(() => signal.removeEventListener('abort', stop))
      if (outcome.type === 'rest') {
        this.#keep(cell.key, live)
        return outcome
      }
      live.runner.close()
      if (outcome.type !== 'lost') return outcome
      const message = `The thread of the script was lost ${tries} times: ${outcome.message}`
      if (tries > 1 || signal.aborted)
        return { type: 'ended', error: { kind: 'script_error', message, at: null }, ms: 0 }
    }
  }

  drop(key: string): void {
    const live = this.#live.get(key)
    this.#live.delete(key)
    live?.cancelIdle()
    live?.runner.close()
  }

  /** The engine of this session, if it is where the log is; otherwise a new one. While it runs, it is not in the table. */
  async #take({ key, session, chain, log }: CellToRun, part: number, clock: Clock): Promise<LiveEngine> {
    const known = this.#live.get(key)
    this.#live.delete(key)
    known?.cancelIdle()
    if (known && isAt(known, { session, chain, log, part })) return known
    known?.runner.close()
    return { runner: await this.#start(clock), cells: [], open: null, cancelIdle: () => {} }
  }

  #keep(key: string, live: LiveEngine): void {
    this.#live.set(key, live)
    live.cancelIdle = this.#idle.timer(IDLE_MS, () => this.drop(key))
    const [oldest] = this.#live.keys()
    if (this.#live.size > LIVE_MAX && oldest !== undefined) this.drop(oldest)
  }

  async #run(live: LiveEngine, cell: CellToRun, part: number, fresh: CellSegment): Promise<CellOutcome | Diverged> {
    for (const session of cell.chain.slice(live.cells.length)) {
      if (live.open?.session !== session) {
        const log = await cell.readLog(session)
        const ran = await runParts(live, session, log, log.parts.length, { ...log.last, computeMs: COMPUTE_MS })
        if (ran.type !== 'rest') return ran
        if (ran.done === null) return divergenceAt(log, null, 'wants more calls than the log has')
      }
      live.cells.push(session)
      live.open = null
    }
    return runParts(live, cell.session, cell.log, part, fresh)
  }
}

/** How long a part may compute that the log has already. */
const COMPUTE_MS = 30_000

function isAt(
  { cells, open }: LiveEngine,
  { session, chain, log, part }: Pick<CellToRun, 'session' | 'chain' | 'log'> & { readonly part: number },
): boolean {
  const ran = open === null || open.session === session ? cells : [...cells, open.session]
  if (ran.length !== chain.length || ran.some((each, i) => each !== chain[i])) return false
  if (open === null) return true
  if (open.session !== session) return open.rest !== null && open.rest.done !== null
  if (open.parts.length > part + 1) return false
  return open.parts.every(({ now, seed }, i) => {
    const known = log.parts[i]
    return known === undefined || (known.now === now && known.seed === seed)
  })
}

/** Runs the parts that this engine has not run yet. Those of the log must ask for the same calls as they did. */
async function runParts(
  live: LiveEngine,
  session: string,
  log: CellLog,
  last: number,
  fresh: CellSegment,
): Promise<CellOutcome | Diverged> {
  const open = (live.open ??= { session, parts: [], rest: null })
  const { script } = readCellTask(log.task)
  while (open.parts.length <= last) {
    const first = open.parts.length
    const count = Math.min(PARTS_AT_ONCE, last + 1 - first)
    const requests = Array.from({ length: count }, (_, i) => requestOf(log, script, first + i, fresh))
    for (const [i, outcome] of (await live.runner.run(requests)).entries()) {
      if (outcome.type !== 'rest') return outcome
      const known = log.parts[first + i]
      const wrong = known ? findDivergence(log, script, known, outcome) : null
      if (wrong) return wrong
      const { now, seed, computeMs } = requests[i] ?? fresh
      open.parts.push({ now, seed, computeMs })
      open.rest = outcome
    }
  }
  return open.rest ?? { type: 'lost', message: 'it has run nothing' }
}

/** Parts of the log are run together, since each look into a thread costs as much as several parts. */
const PARTS_AT_ONCE = 100

/** A part that the log has is run with its own time and randomness. */
function requestOf({ begun, parts }: CellLog, code: string, part: number, fresh: CellSegment): CellRequest {
  const known = parts[part]
  const setup = known ? { now: known.now, seed: known.seed, computeMs: COMPUTE_MS } : fresh
  if (part === 0) {
    const { cell = 1, names = [], left = { model: 0, tool: 0 } } = begun ?? {}
    return { ...setup, type: 'cell', cell, code, names, left }
  }
  const results = (parts[part - 1]?.calls ?? []).flatMap(({ result }) => (result === null ? [] : [result]))
  return { ...setup, type: 'results', results }
}

/** The first call that is not the one the log has at its place. */
function findDivergence(log: CellLog, script: string, known: CellPart, { calls }: CellRest): Diverged | null {
  const hashed = codeHash(script)
  for (const [i, call] of known.calls.entries()) {
    const now = calls[i]
    if (now && callHash(hashed, now) === call.hash) continue
    return divergenceAt(
      log,
      now ?? null,
      `does something else than the log says: it had made ${shownCall(call)}, and now ${now ? `makes ${shownCall(now)}` : 'makes no call there'}`,
    )
  }
  if (calls.length === known.total) return null
  return divergenceAt(
    log,
    calls[known.total] ?? null,
    `had made ${known.total} calls there, and now makes ${calls.length}`,
  )
}

const ARGS_CHARS_MAX = 200

function shownCall({ n, tool, args }: { readonly n: number; readonly tool: string; readonly args: unknown }): string {
  return `call ${n} of ${tool} with ${canonicalJson(args).slice(0, ARGS_CHARS_MAX)}`
}

function divergenceAt({ begun }: CellLog, call: CellRest['calls'][number] | null, what: string): Diverged {
  const { cell = begun?.cell ?? 1, line } = call?.at ?? {}
  const place = line === undefined ? `cell ${cell}` : `cell ${cell}, line ${line}`
  return {
    type: 'diverged',
    error: { kind: 'ScriptDiverged', message: `ScriptDiverged: ${place} ${what}.`, at: call?.at ?? null },
  }
}
