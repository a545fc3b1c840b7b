// Real kills: workers on a real SQLite file are killed with SIGKILL, one after another, while a client goes on; then all that
// was promised is compared with what is there. `npm run crash -- --rounds 100 [--seed N]`. Exit 1 on any violation.
// With `--trees` each round is a parent with twenty children, and the kills fall where children are made, end and report (trees.ts).
// It shows safety against the death of a process. It shows nothing about power loss: the page cache survives a SIGKILL.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argumentsOf, wholeNumber } from '../../sim/arguments.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { type ErrorLine, type JournalLine, type MarkLine, type OracleLine, placesIn, readLines } from './evidence.ts'
import { shoot, takeAim } from './killer.ts'
import { Child } from './process.ts'
import { Chance } from './random.ts'
import { printSummary } from './summary.ts'
import { Strikes } from './strike.ts'
import { killTrees } from './trees.ts'
import { type Verdict, verify } from './verify.ts'

/** Short, so that a session is taken up again soon after its worker was killed. */
const LEASE_MS = 250
const LAST_LEASE_MS = 2_000
const SETTLE_MS = 60_000

const { values } = argumentsOf('crash', {
  options: { rounds: { type: 'string' }, seed: { type: 'string' }, trees: { type: 'boolean' } },
})
const rounds = wholeNumber(values.rounds ?? '100', 'rounds')
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const folder = mkdtempSync(join(tmpdir(), 'terret-crash-'))
const places = placesIn(folder)
const children = new Set<Child>()
const strikes = new Strikes()
const troubles: string[] = []
const begun = performance.now()
try {
  if (values.trees) await trees()
  else await plain()
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const child of children) child.kill()
  if (process.exitCode) console.log(`kept for a look: ${folder}`)
  else rmSync(folder, { recursive: true })
}

async function trees(): Promise<void> {
  const wrong = await killTrees({ seed, rounds, places, startWorker: () => startWorker(LEASE_MS) })
  if (wrong.length > 0) process.exitCode = 1
}

async function plain(): Promise<void> {
  const verdict = await crash()
  const seconds = (performance.now() - begun) / 1_000
  const violations = [...troubles, ...missed(), ...strikes.wrong, ...verdict.violations]
  printSummary({ rounds, seed, seconds, strikes, verdict, violations })
  if (violations.length > 0) process.exitCode = 1
}

async function crash(): Promise<Verdict> {
  const chance = new Chance(seed)
  const client = start('./child-client.js', [folder, String(seed)])
  if (!(await client.heard('begun', 20_000))) throw new Error(`the client did not begin: ${client.stderr}`)
  let worker = startWorker(LEASE_MS)
  for (let round = 1; round <= rounds; round++) {
    const heir = startWorker(round === rounds ? LAST_LEASE_MS : LEASE_MS)
    const trouble = await shoot({ worker, heir }, places, takeAim(chance, strikes.struck.kills))
    if (trouble !== null) troubles.push(`round ${round}: ${trouble}`)
    await judge(worker)
    if (!client.alive) throw new Error(`the client ended: ${client.stderr}`)
    worker = heir
  }
  await settle(client, worker)
  const store = sqlite(places.database)
  await strikes.compare(store, readLines<MarkLine>(places.marks(worker.pid)))
  const verdict = await verify(store, {
    journal: readLines<JournalLine>(places.journal),
    oracle: readLines<OracleLine>(places.oracle),
    errors: readLines<ErrorLine>(places.errors),
    reads: strikes.reads,
  })
  await store.close()
  return verdict
}

/** By a connection of its own that is closed again: between two workers the file may well have no reader at all. */
async function judge(worker: Child): Promise<void> {
  children.delete(worker)
  const store = sqlite(places.database)
  try {
    await strikes.judge(store, readLines<MarkLine>(places.marks(worker.pid)), readLines<OracleLine>(places.oracle))
  } finally {
    await store.close()
  }
}

/** No more kills: the last worker and the client bring everything to rest. */
async function settle(client: Child, worker: Child): Promise<void> {
  worker.say('go')
  client.say('settle')
  if (!(await client.heard('settled', SETTLE_MS))) troubles.push(`not settled after ${SETTLE_MS} ms: ${client.stderr}`)
  worker.say('stop')
  client.say('stop')
  const deadline = setTimeout(() => worker.kill(), 20_000)
  const code = await worker.exited
  clearTimeout(deadline)
  if (code !== 0) troubles.push(`the last worker ended with ${code}: ${worker.stderr}`)
  await client.exited
}

function startWorker(leaseMs: number): Child {
  return start('./child-worker.js', [folder, String(leaseMs)])
}

function start(script: string, args: readonly string[]): Child {
  const child = new Child(script, args)
  children.add(child)
  return child
}

/** A run that never hit a class shows nothing about it. A few rounds cannot promise to hit them all. */
function missed(): readonly string[] {
  if (rounds < 50) return []
  const classes = Object.entries(strikes.struck.kills)
  return classes.flatMap(([name, kills]) => (kills > 0 ? [] : [`no kill fell into the class "${name}"`]))
}
