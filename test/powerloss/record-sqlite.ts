// Records a SQLite store at work: two workers, a client and a keeper as real processes on one file, with all calls below one folder. In
// the middle the workers and the keeper end in good order, so that the client closes and opens the file alone, and others come.
import { mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Child } from '../crash/process.ts'
import { CallWriter } from './call-log.ts'
import { recordedBy } from './recorder.ts'

/** What a recording leaves: its log, and the folder as it was at its end. */
export type Recording = { readonly log: string; readonly root: string; readonly folder: string }

/** Below the recorded folder. What is in `evidence` is known outside of the machine: no cut takes anything from it. */
export const EVIDENCE = 'evidence'
export const DISK = 'disk'
/** The store makes the folder of its file itself. */
export const DATABASE = `${DISK}/store/crash.db`

const WORKERS = 2
/** Sessions, and how deep their children are: few, because all of them are driven on after each cut. */
const CLIENT = ['4', '1']
const LEASE_MS = 5_000
/** What the keeper must have done before a part of the recording ends, however slow the machine is. */
const DONE = ['archived', 'removed', 'backed up']
const READY_MS = 60_000
const ENDED_MS = 60_000
const KEPT_PER_PART = 1_000

export async function recordSqlite(library: string, seed: number, partMs: number): Promise<Recording> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-powerloss-')))
  const [root, log] = [join(folder, 'root'), join(folder, 'calls.log')]
  for (const each of ['', EVIDENCE, DISK]) mkdirSync(join(root, each))
  const writer = new CallWriter(log, { root, store: 'sqlite', seed, process: process.pid })
  const env = recordedBy(library, root, log)
  const database = join(root, DATABASE)
  const start = (script: string, ...args: readonly string[]) => new Child(script, [join(root, EVIDENCE), ...args], env)
  const workers = () => Array.from({ length: WORKERS }, () => start('./child-worker.js', database, String(LEASE_MS)))
  const keeper = (part: number) =>
    start('../powerloss/child-keeper.js', join(root, DISK), database, String(part * KEPT_PER_PART))
  const client = start('./child-client.js', database, String(seed), ...CLIENT)
  await heard(client, 'begun')
  for (const part of [0, 1]) {
    const [helper, ...others] = [keeper(part), ...workers()] as const
    for (const each of [helper, ...others]) each.say('go')
    for (const each of [helper, ...others]) await heard(each, 'ready')
    await sleep(partMs)
    for (const line of DONE) await heard(helper, line)
    for (const each of [helper, ...others]) await ended(each)
    await sleep(partMs / 4)
  }
  await ended(client)
  writer.end()
  return { log, root, folder }
}

export async function heard(child: Child, line: string): Promise<void> {
  if (!(await child.heard(line, READY_MS))) throw new Error(`a process did not say "${line}": ${child.stderr}`)
}

/** In good order: a process that is killed can have done a call that is not in the log. */
export async function ended(child: Child): Promise<void> {
  child.say('stop')
  const deadline = setTimeout(() => child.kill(), ENDED_MS)
  const code = await child.exited
  clearTimeout(deadline)
  if (code !== 0) throw new Error(`a process ended with ${code} when it was told to stop: ${child.stderr}`)
}
