// Records a Postgres server at work on a file system that passes every call through and notes it: four workers, a client and a keeper as
// real processes on one database. What `initdb` made is on the disk from the beginning.
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Child } from '../crash/process.ts'
import { account, Server } from '../postgres/server.ts'
import { CallWriter } from './call-log.ts'
import { DISK, ended, EVIDENCE, heard, type Recording } from './record-sqlite.ts'
import { RecordedDisk } from './recorder.ts'

/** Below the recorded folder. */
export const DATA = `${DISK}/data`
const WORKERS = 4
const LEASE_MS = 5_000
const CLIENT = ['4', '1']
const DONE = ['archived', 'removed']
/** Its log goes round, and its pages are written out while it runs. */
const SETTINGS = { min_wal_size: '2MB', max_wal_size: '4MB', checkpoint_timeout: '30s', bgwriter_delay: '20ms' }

export async function recordPostgres(program: string, seed: number, partMs: number): Promise<Recording> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-powerloss-')))
  const [seen, root, log] = [join(folder, 'seen'), join(folder, 'root'), join(folder, 'calls.log')]
  for (const each of ['', EVIDENCE, DISK]) mkdirSync(join(seen, each))
  if (account) chownSync(join(seen, DISK), account.uid, account.gid)
  chmodSync(folder, 0o755)
  const server = await Server.start({ fsync: true, data: join(seen, DATA), smallLog: true, settings: SETTINGS })
  try {
    await server.query('create extension amcheck')
    await server.stop()
    renameSync(seen, root)
    mkdirSync(seen)
    const writer = new CallWriter(log, { root, store: 'postgres', seed, process: process.pid })
    const disk = new RecordedDisk(program, root, seen, log)
    await disk.mounted()
    try {
      await server.up()
      await work(server.url(), join(seen, EVIDENCE), join(seen, DISK), { seed, partMs })
      await server.stop()
    } finally {
      await server.kill()
      await disk.end()
    }
    writer.end()
  } finally {
    await server.close()
  }
  return { log, root, folder }
}

type Part = { readonly seed: number; readonly partMs: number }

async function work(url: string, evidence: string, disk: string, { seed, partMs }: Part): Promise<void> {
  const start = (script: string, ...args: readonly string[]) => new Child(script, [evidence, ...args])
  const client = start('./child-client.js', url, String(seed), ...CLIENT)
  await heard(client, 'begun')
  const workers = Array.from({ length: WORKERS }, () => start('./child-worker.js', url, String(LEASE_MS)))
  const keeper = start('../powerloss/child-keeper.js', disk, url, '0')
  const all = [keeper, ...workers]
  for (const each of all) each.say('go')
  for (const each of all) await heard(each, 'ready')
  await sleep(partMs)
  for (const line of DONE) await heard(keeper, line)
  for (const each of [...all, client]) await ended(each)
}
