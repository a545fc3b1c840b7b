// Commands in the sandbox start daemons in every way a shell knows, and are then stopped at a random moment, or end by themselves,
// or lose the harness that started them. After each round the process table must hold none of theirs.
// `npm run sandbox -- --rounds 1000 [--seed N]`. Exit 1 on any survivor. It says nothing about files or the network: the tests do.
import { fork } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { ToolFailure } from '../../src/tools/core/tool-output.ts'
import { findSandbox } from '../../src/tools/shell/sandbox.ts'
import { Chance } from '../crash/random.ts'
import { type Order, run } from './child-run.ts'

const { values } = argumentsOf('sandbox', { options: { rounds: { type: 'string' }, seed: { type: 'string' } } })
const rounds = wholeNumber(values.rounds ?? '100', 'rounds', 1)
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const chance = new Chance(seed)
/** How long after the kill of a harness the kernel may take to bury what hung on it. */
const BURIAL_MS = 2_000

const ways: readonly ((name: string) => string)[] = [
  (name) => `setsid ${name} &`,
  (name) => `nohup ${name} >/dev/null 2>&1 &`,
  (name) => `(${name} & exit) &`,
  (name) => `setsid sh -c '${name} & ${name} & exit' </dev/null >/dev/null 2>&1 &`,
  (name) => `(trap '' TERM HUP INT; setsid setsid ${name} >/dev/null 2>&1) & disown -a;`,
]
const endings = ['ended', 'aborted', 'timeout', 'harness killed'] as const
type Round = { readonly ending: (typeof endings)[number]; readonly mark: string }

const counts = new Map<string, number>()
let survivors = 0
let slowestMs = 0
const troubles: string[] = []

if (findSandbox('/var/tmp').type === 'none') refuse('There is no sandbox here. Install bubblewrap.')
const workspace = mkdtempSync('/var/tmp/terret-sandbox-')
const begun = performance.now()
try {
  for (let round = 1; round <= rounds; round++) await one(round)
} finally {
  rmSync(workspace, { recursive: true, force: true })
}
printSummary()

async function one(round: number): Promise<void> {
  // An argument no other process has: by it the daemons of this round are found.
  const mark = `31536${String(process.pid).padStart(7, '0')}${String(round).padStart(5, '0')}`
  const daemons = Array.from({ length: chance.integer(1, 4) }, () => chance.pick(ways)(`sleep ${mark}`))
  const ending = chance.pick(endings)
  const command = `${daemons.join('\n')}\necho up; ${ending === 'ended' ? 'true' : `sleep ${mark}`}`
  const delayMs = chance.happens(0.5) ? chance.between(0, 30) : chance.between(30, 200)
  const left =
    ending === 'harness killed'
      ? await orphaned(command, delayMs, mark)
      : await stopped(command, delayMs, { ending, mark })
  counts.set(ending, (counts.get(ending) ?? 0) + 1)
  if (left.length === 0) return
  survivors += left.length
  troubles.push(`round ${round}, ${ending} after ${delayMs.toFixed(1)} ms: ${left.join(', ')} live on`)
  for (const pid of left) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It went after it was counted, and it counts.
    }
  }
}

/** Nothing may live on at the very moment the tool has answered. */
async function stopped(command: string, delayMs: number, { ending, mark }: Round): Promise<readonly number[]> {
  const stop = new AbortController()
  const order: Order = { workspace, command, ...(ending === 'timeout' ? { timeout_ms: Math.ceil(delayMs) + 1 } : {}) }
  let stoppedAt = Infinity
  if (ending === 'aborted') {
    runtimeClock.timer(delayMs, () => {
      stoppedAt = performance.now()
      stop.abort()
    })
  }
  try {
    await run(order, stop.signal)
  } catch (error) {
    if (!(error instanceof ToolFailure) || error.kind !== 'Interrupted') throw error
  }
  slowestMs = Math.max(slowestMs, performance.now() - stoppedAt)
  return living(mark)
}

/** The harness dies by SIGKILL and can do nothing more: the kernel must. */
async function orphaned(command: string, delayMs: number, mark: string): Promise<readonly number[]> {
  const child = fork(fileURLToPath(new URL(`./child-run${import.meta.url.slice(-3)}`, import.meta.url)), {
    stdio: 'ignore',
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  await new Promise((resolve) => child.once('message', resolve))
  child.send({ workspace, command } satisfies Order)
  await sleep(delayMs)
  child.kill('SIGKILL')
  await gone
  const deadline = performance.now() + BURIAL_MS
  while (living(mark).length > 0 && performance.now() < deadline) await sleep(5)
  return living(mark)
}

/** By command line, from the process table: the daemons, and bubblewrap itself, whose arguments hold the command. */
function living(mark: string): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return []
    try {
      return readFileSync(join('/proc', name, 'cmdline'), 'utf8').includes(mark) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => runtimeClock.timer(ms, resolve))
}

function printSummary(): void {
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
  console.log(`sandbox: ${rounds} rounds in ${seconds} s, seed ${seed}`)
  for (const ending of endings) console.log(`  ${ending.padEnd(16)} ${counts.get(ending) ?? 0}`)
  console.log(`  slowest answer to an abort ${slowestMs.toFixed(0)} ms`)
  for (const trouble of troubles.slice(0, 20)) console.log(`  ${trouble}`)
  console.log(`  survivors ${survivors}`)
  if (survivors > 0 || slowestMs > 1_000) process.exitCode = 1
}
