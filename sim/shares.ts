// Splits seeds over the cores. Each share is a process of the same command that prints a line of JSON for each of its seeds.
import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

export type Shares<Line> = {
  readonly file: string
  /** How a seed is run again: `npm run sim`. */
  readonly command: string
  readonly first: number
  readonly seeds: number
  /** Ends everything at the first line of which this is true. */
  readonly ends?: (line: Line) => boolean
  /** What each share is told besides its seeds. */
  readonly args?: readonly string[]
  /** A seed that takes this long runs in circles. */
  readonly stuckMs?: number
}

/** Most seeds take a second. One with an outage of an hour takes fifteen, and longer where other programs run beside it. */
const STUCK_MS = 120_000

/** The lines of all seeds, in the order of the seeds. */
export async function shared<Line extends { readonly seed: number }>(shares: Shares<Line>): Promise<readonly Line[]> {
  const cores = Math.max(1, Math.min(availableParallelism(), shares.seeds))
  const children: ChildProcess[] = []
  const lines = await Promise.all(Array.from({ length: cores }, (_, i) => one(shares, children, i, cores)))
  return lines.flat().sort((a, b) => a.seed - b.seed)
}

function one<Line>(
  { file, command, first, seeds, ends = () => false, args: more = [], stuckMs = STUCK_MS }: Shares<Line>,
  children: ChildProcess[],
  index: number,
  step: number,
): Promise<Line[]> {
  const args = ['--lines', '--first', `${first + index}`, '--seeds', `${first + seeds}`, '--step', `${step}`, ...more]
  const running = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(running)
  const lines: Line[] = []
  let heard = performance.now()
  const watch = setInterval(() => {
    if (performance.now() - heard < stuckMs) return
    const seed = first + index + lines.length * step
    console.log(`seed ${seed}: L2 it does not end\n  replay: ${[command, '--', ...more, '--seed', seed].join(' ')}`)
    process.exitCode = 1
    // Nothing softer reaches a process that never lets its loop go round.
    for (const other of children) other.kill('SIGKILL')
  }, 1_000)
  createInterface({ input: running.stdout }).on('line', (text) => {
    // A share that was ended may leave half a line.
    if (!text.endsWith('}')) return
    const line = JSON.parse(text) as Line
    lines.push(line)
    heard = performance.now()
    if (ends(line)) for (const other of children) other.kill()
  })
  return new Promise((resolve, reject) => {
    running.on('error', reject)
    running.on('close', (code, signal) => {
      clearInterval(watch)
      if (code === 0 || signal !== null) resolve(lines)
      else reject(new Error(`a share of the seeds ended with exit code ${code}`))
    })
  })
}
