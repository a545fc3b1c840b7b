// A process beside the workers: it opens sessions of its own, and once they rest removes them or moves them to an archive; it backs the
// store up and moves its write-ahead log into its file, all while the others write. It says when it did, and ends when it is told to stop.
//   node child-keeper.js EVIDENCE DISK DATABASE FROM
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { archiveName, makeArchiveFolder, writeArchive } from '../../src/cli/commands/archive-command.ts'
import type { InboxBody } from '../../src/kernel/event.ts'
import { Fault } from '../../src/kernel/failure.ts'
import type { CompleteStore, Write } from '../../src/ports/store.ts'
import { archiveOf, removeArchived } from '../../src/replay.ts'
import { backUpFile } from '../../src/stores/sqlite/backup.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { Appender, digestOf, type JournalLine, placesIn } from '../crash/evidence.ts'
import { openStore } from '../crash/open.ts'
import { Chance } from '../crash/random.ts'
import { CREATED, creation, KEPT, message } from '../crash/stage.ts'
import { planOf } from '../crash/workload.ts'
import { KEPT_FILE, type KeptLine } from './kept.ts'

const CHECKPOINTS = ['PASSIVE', 'FULL', 'RESTART', 'TRUNCATE'] as const
const WHO = 'keeper'

const [evidence = '', disk = '', database = '', from = '0'] = process.argv.slice(2)
const journal = new Appender<JournalLine>(placesIn(evidence).journal)
const kept = new Appender<KeptLine>(join(evidence, KEPT_FILE))
const chance = new Chance(Number(from) + 1)
const isServer = database.startsWith('postgres://')
const store: CompleteStore = openStore(database)
let stopping = false
let n = Number(from)
let takenOut = 0

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => (stopping ||= line === 'stop'))
lines.on('close', () => process.exit(2))

await store.open()
for (const folder of ['backups', 'archive']) makeArchiveFolder(join(disk, folder))
process.stdout.write('ready\n')
await Promise.all([keepSessions(), checkpoint(), ...(isServer ? [] : [backUp()])])
await store.close()
process.exit(0)

async function keepSessions(): Promise<void> {
  while (!stopping) {
    n += 1
    const session = `${KEPT}${n}`
    await promised(session, 'created', CREATED, creation(session, store.now()))
    const body = message(`m${n}`, { turns: planOf(chance).turns.slice(0, 1) })
    await promised(session, `m${n}`, body, { session, lane: 'inbox', events: [body] })
    if (await rested(session)) await takeOut(session)
  }
}

async function promised(session: string, id: string, body: InboxBody | typeof CREATED, write: Write): Promise<void> {
  journal.add({ type: 'try', session, id, digest: digestOf(body) })
  const [receipt] = await store.commit([write])
  journal.add({ type: 'ack', session, id, seq: receipt?.seqs[0] ?? 0, verb: 'send' })
}

/** False: it waits for somebody, or it is time to stop. */
async function rested(session: string): Promise<boolean> {
  while (!stopping) {
    const card = await store.card(session)
    if (card?.status === 'requires_action') return false
    if (card?.status === 'idle' && card.due === null) return true
    await sleep(10)
  }
  return false
}

async function takeOut(session: string): Promise<void> {
  const isArchived = takenOut % 2 === 0
  takenOut += 1
  try {
    if (isArchived) {
      const made = await archiveOf(store, session)
      const file = join(disk, 'archive', archiveName(made))
      kept.add({ type: 'remove', session, archive: archiveName(made) })
      await writeArchive(file, made)
      await removeArchived(store, made, WHO)
    } else {
      kept.add({ type: 'remove', session, archive: null })
      await store.remove(session, WHO)
    }
    kept.add({ type: 'removed', session })
    process.stdout.write(isArchived ? 'archived\n' : 'removed\n')
  } catch (error) {
    // A worker still had it.
    if (!(error instanceof Fault && error.code === 'session_busy')) throw error
  }
}

async function checkpoint(): Promise<void> {
  if (isServer) return checkpointServer()
  const Driver = loadDriver()
  while (!stopping) {
    await sleep(chance.integer(20, 200))
    const db = new Driver(database)
    try {
      db.exec(`PRAGMA busy_timeout = 25; PRAGMA wal_checkpoint(${chance.pick(CHECKPOINTS)})`)
    } finally {
      db.close()
    }
  }
}

async function checkpointServer(): Promise<void> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  while (!stopping) {
    await sleep(chance.integer(300, 900))
    await client.query(chance.happens(0.5) ? 'checkpoint' : 'select pg_switch_wal()')
  }
  await client.end()
}

async function backUp(): Promise<void> {
  for (let i = 0; !stopping; i++) {
    await sleep(chance.integer(300, 1_500))
    const file = `b${from}-${i}.db`
    kept.add({ type: 'backup', file })
    await backUpFile(database, join(disk, 'backups', file), async () => {})
    kept.add({ type: 'backed up', file })
    process.stdout.write('backed up\n')
  }
}
