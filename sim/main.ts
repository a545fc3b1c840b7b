// The simulator's command line: `npm run sim -- --seeds 2000 | --seed N | --planted [--only TEXT]`.
// `--bail` ends everything at the first violation. Splits the seeds over the cores; a violation prints the one command that replays it.
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { planted } from './planted.ts'
import { type Report, simulate } from './simulate.ts'
import { summary } from './summary.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    step: { type: 'string' },
    planted: { type: 'boolean', default: false },
    only: { type: 'string' },
    lines: { type: 'boolean', default: false },
    bail: { type: 'boolean', default: false },
  },
})

/** A seed takes a twentieth of a second. One that takes this long runs in circles. */
const STUCK_MS = 30_000

/** The shares of the seeds, one a core. */
const children: ChildProcess[] = []

if (values.planted) process.exitCode = (await planted(values.only)) ? 0 : 1
else if (values.seed !== undefined) await replay(Number(values.seed))
else if (values.lines) await share(Number(values.first), Number(values.seeds), Number(values.step ?? 1))
else await all(Number(values.first), Number(values.seeds))
process.exit()

async function all(first: number, seeds: number): Promise<void> {
  const begun = performance.now()
  const cores = Math.max(1, Math.min(availableParallelism(), seeds))
  const shares = Array.from({ length: cores }, (_, i) => child(first + i, first + seeds, cores))
  const reports = (await Promise.all(shares)).flat().sort((a, b) => a.seed - b.seed)
  const trace = createHash('sha256')
    .update(reports.map((r) => `${r.seed} ${r.hash}`).join('\n'))
    .digest('hex')
  const bad = reports.filter((r) => r.violations.length > 0)
  for (const { seed, violations } of bad.slice(0, 10)) {
    console.log(`seed ${seed}: ${violations.slice(0, 3).join('\n  ')}\n  replay: npm run sim -- --seed ${seed}`)
  }
  console.log(summary(reports, trace, (performance.now() - begun) / 1_000))
  if (bad.length > 0 || reports.length !== seeds) process.exitCode = 1
}

/** One core's share, as lines of JSON. */
async function share(first: number, end: number, step: number): Promise<void> {
  for (let seed = first; seed < end; seed += step) {
    const report = await simulate(seed)
    process.stdout.write(`${JSON.stringify(report)}\n`)
    if (values.bail && report.violations.length > 0) return
  }
}

function child(first: number, end: number, step: number): Promise<Report[]> {
  const file = fileURLToPath(import.meta.url)
  const args = [file, '--lines', '--first', `${first}`, '--seeds', `${end}`, '--step', `${step}`]
  const running = spawn(process.execPath, values.bail ? [...args, '--bail'] : args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(running)
  const reports: Report[] = []
  let heard = performance.now()
  const watch = setInterval(() => {
    if (performance.now() - heard < STUCK_MS) return
    const seed = first + reports.length * step
    console.log(`seed ${seed}: L2 it does not end\n  replay: npm run sim -- --seed ${seed}`)
    process.exitCode = 1
    // Nothing softer reaches a process that never lets its loop go round.
    for (const other of children) other.kill('SIGKILL')
  }, 1_000)
  createInterface({ input: running.stdout }).on('line', (line) => {
    // A share that was ended may leave half a line.
    if (!line.endsWith('}')) return
    const report = JSON.parse(line) as Report
    reports.push(report)
    heard = performance.now()
    if (values.bail && report.violations.length > 0) for (const other of children) other.kill()
  })
  return new Promise((resolve, reject) => {
    running.on('error', reject)
    running.on('close', (code, signal) => {
      clearInterval(watch)
      if (code === 0 || signal !== null) resolve(reports)
      else reject(new Error(`a share of the seeds ended with exit code ${code}`))
    })
  })
}

async function replay(seed: number): Promise<void> {
  const report = await simulate(seed)
  console.log(JSON.stringify(report, null, 2))
  if (report.violations.length > 0) process.exitCode = 1
}
