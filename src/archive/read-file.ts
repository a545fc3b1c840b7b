// Reads a file that `terret export` or `terret store archive` wrote, in today's format or in those before it: one JSON
// object for an exported session (`terret.session`) or for an archived tree (`terret.archive`). Nothing writes these any
// more. Then it checks that a store could have written the logs.
import { hash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import type { Blob } from '../ports/store.ts'
import type { MoveAccountRow } from '../stores/move/move-rows.ts'
import { forkOf, originsOf, type PortableLog, type SessionTree } from '../stores/move/portable-tree.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { findReferredBlobs } from '../view/readable-blobs.ts'
import { isObject, type JsonObject } from '../view/untrusted-json.ts'
import { invalidImport } from './schema-check.ts'
import { decodeBlob, readRecords, recordsOf, type StreamFile } from './stream-file.ts'
import { verifyLog } from './verify-log.ts'

/** Takes any JSON. Throws a Fault that says in one sentence what is wrong. */
export async function readSessionFile(value: unknown): Promise<StreamFile> {
  const file = readAnyFormat(value)
  const { logs, origins, blobs } = file.tree
  for (const log of [...logs, ...origins]) verifyLog(log, blobs)
  checkOrigins(file.tree)
  await checkBlobs(file.tree)
  return file
}

function readAnyFormat(value: unknown): StreamFile {
  try {
    const copy: unknown = JSON.parse(JSON.stringify(value) ?? 'null')
    if (!isObject(copy) || copy['version'] === undefined) return readRecords(copy)
    if (copy['format'] === 'terret.session') return readOld('session', checkOld(copy), [checkOld(copy)])
    if (copy['format'] === 'terret.archive') return readOldArchive(copy)
    return readRecords(copy)
  } catch (error) {
    if (error instanceof Fault) throw error
    // Cyclic values, numbers that JSON cannot hold, and values nested too deeply to walk.
    throw invalidImport(`it is no JSON (${error instanceof Error ? error.message : String(error)}).`)
  }
}

/** A fork brings exactly the logs that it reads, each up to the last event that is read. */
function checkOrigins({ logs, origins }: SessionTree): void {
  const read = new Map<string, number>()
  for (const log of logs) {
    let below: PortableLog = log
    for (const origin of originsOf({ logs, origins }, log)) {
      const { session, seq } = forkOf(below.events) ?? { session: '', seq: 0 }
      if (origin.events.length < seq)
        throw invalidImport(`session ${below.session} was not forked from event ${seq} of ${session}.`)
      read.set(session, Math.max(seq, read.get(session) ?? 0))
      below = origin
    }
    const missing = forkOf(below.events)
    if (missing?.session === log.session || (missing && read.has(missing.session)))
      throw invalidImport('a session was forked from itself.')
    if (missing)
      throw invalidImport(`the log of ${missing.session}, from which ${below.session} was forked, is missing.`)
  }
  for (const { session, events } of origins)
    if (read.get(session) !== events.length)
      throw invalidImport(`no session of it was forked from event ${events.length} of ${session}.`)
}

async function checkBlobs({ logs, origins, blobs }: SessionTree): Promise<void> {
  const events = [...logs, ...origins].flatMap((log) => log.events)
  const there = await findReferredBlobs(events, async (hashed) => blobs.get(hashed) ?? null)
  const stray = [...blobs.keys()].find((hashed) => !there.has(hashed))
  if (stray !== undefined) throw invalidImport(`no event refers to the blob ${stray}.`)
}

// ---- Earlier formats
// ---------------------------------------------------------------------------------------------------------

type OldSession = PortableLog & {
  readonly checksum: string
  readonly blobs: Readonly<Record<string, { readonly media: string; readonly data: string }>>
  readonly parents?: readonly PortableLog[]
}
type OldAccount = Omit<MoveAccountRow, 'type' | 'held'>

function readOldArchive(value: JsonObject): StreamFile {
  const { accounts, sessions } = checkSum(value)
  if (!Array.isArray(sessions) || !Array.isArray(accounts)) throw invalidImport('it has no list of sessions.')
  const copies = sessions.map((each) => checkOld(isObject(each) ? each : {}))
  return readOld('tree', value as unknown as OldSession, copies, accounts)
}

/** Converts it to the records of today's format, which are then checked like any other. */
function readOld(
  holds: StreamFile['holds'],
  { checksum, session }: OldSession,
  copies: readonly OldSession[],
  accounts: readonly OldAccount[] = [],
): StreamFile {
  if (copies[0]?.session !== session) throw invalidImport('its sessions are not those it says.')
  const blobs = new Map<string, Blob>()
  const origins = new Map<string, PortableLog>()
  for (const copy of copies) {
    for (const [key, { media, data }] of Object.entries(copy.blobs))
      blobs.set(key, { hash: key, media, data: decodeBlob(key, data) })
    for (const log of copy.parents ?? [])
      if (log.events.length > (origins.get(log.session)?.events.length ?? 0)) origins.set(log.session, log)
  }
  const tree: SessionTree = {
    logs: copies.map((copy) => ({ session: copy.session, events: copy.events })),
    origins: [...origins.values()].filter((log) => !copies.some((copy) => copy.session === log.session)),
    troubles: [],
    accounts: accounts.map(({ id, limit, spent, assumed }) => ({
      type: 'account',
      id,
      limit,
      held: 0,
      spent,
      assumed,
    })),
    blobs,
  }
  return { ...readRecords(recordsOf(holds, tree)), digest: checksum }
}

function checkOld(value: JsonObject): OldSession {
  const { events, blobs, session, parents = [] } = checkSum(value)
  const isLog = (log: unknown): boolean =>
    isObject(log) && typeof log['session'] === 'string' && Array.isArray(log['events'])
  if (!isLog({ session, events }) || !Array.isArray(parents) || !parents.every(isLog))
    throw invalidImport('events must be a list, for each session of it.')
  if (!isObject(blobs) || !Object.values(blobs).every((blob) => isObject(blob) && typeof blob['data'] === 'string'))
    throw invalidImport('blobs must be a table.')
  return value as unknown as OldSession
}

function checkSum(value: JsonObject): JsonObject {
  const { checksum, ...rest } = value
  if (value['version'] !== 1) throw invalidImport('version must be 1.')
  if (checksum !== hash('sha256', canonicalJson(rest)))
    throw invalidImport('it was changed or damaged: its checksum does not match.')
  return value
}
