// Splits seeds over the cores. Each share is a process of the same command with `--lines`: it is told one seed after the other, and prints
// a line of JSON for each. One that is faster gets more of them.
import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

export type Shares<Line> = {
  readonly file: string
  /** How a seed is run again: `npm run sim`. */
  readonly command: string
  readonly seeds: Iterable<number>
  /** Told each line as it arrives. True ends everything. */
  readonly take: (line: Line) => boolean
  /** What each share is told besides its seeds. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A seed that takes this long runs in circles. */
  readonly stuckMs?: number
}

/** Most seeds take a second. One with an outage of an hour takes fifteen, and longer where other programs run beside it. */
const STUCK_MS = 120_000

export async function shareSeeds<Line>(shares: Shares<Line>): Promise<void> {
  const children: ChildProcess[] = []
  const left = shares.seeds[Symbol.iterator]()
  await Promise.all(Array.from({ length: availableParallelism() }, () => runShare(shares, children, left)))
}

/** What a share does: plays each seed that it is told, until there are no more. */
export async function playShare(play: (seed: number) => Promise<unknown>): Promise<void> {
  for await (const text of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await play(Number(text)))}\n`)
}

function runShare<Line>(shares: Shares<Line>, children: ChildProcess[], left: Iterator<number>): Promise<void> {
  const { file, command, take, args = [], env = {}, stuckMs = STUCK_MS } = shares
  let { value: seed, done = false } = left.next() as { value: number; done?: boolean }
  if (done) return Promise.resolve()
  const running = spawn(process.execPath, [file, '--lines', ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  children.push(running)
  let heard = performance.now()
  const watch = setInterval(() => {
    if (performance.now() - heard < stuckMs) return
    console.log(`seed ${seed}: L2 it does not end\n  replay: ${[command, '--', ...args, '--seed', seed].join(' ')}`)
    process.exitCode = 1
    // Nothing softer reaches a process that never lets its loop go round.
    for (const other of children) other.kill('SIGKILL')
  }, 1_000)
  // One that was ended reads nothing more.
  running.stdin.on('error', () => {})
  running.stdin.write(`${seed}\n`)
  createInterface({ input: running.stdout }).on('line', (text) => {
    // A share that was ended may leave half a line.
    if (!text.endsWith('}')) return
    heard = performance.now()
    if (take(JSON.parse(text) as Line)) for (const other of children) other.kill()
    ;({ value: seed, done = false } = left.next() as { value: number; done?: boolean })
    if (done) running.stdin.end()
    else running.stdin.write(`${seed}\n`)
  })
  return new Promise((resolve, reject) => {
    running.on('error', reject)
    running.on('close', (code, signal) => {
      clearInterval(watch)
      if (code === 0 || signal !== null) resolve()
      else reject(new Error(`a share of the seeds ended with exit code ${code} at seed ${seed}`))
    })
  })
}
