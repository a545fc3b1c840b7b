// Files of servers in the data folder: the tokens that may be used, and for each running server a file with its
// address, so that other servers and commands find it.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, replaceHomeFile } from './cli-home.ts'

type Folder = Pick<Home, 'folder'>
type ServerRecord = { readonly pid: number; readonly url: string; readonly since: number }

export function tokenFile({ folder }: Folder): string {
  return join(folder, 'tokens.json')
}

/** An earlier version knew only one server, in `server.json`. */
const RECORD = /^server(?:-\d+)?\.json$/

function recordFile({ folder }: Folder, pid: number): string {
  return join(folder, `server-${pid}.json`)
}

/** Records this server. It also removes the files of killed servers. */
export function rememberServer(home: Home, url: string): void {
  for (const file of recordFiles(home)) if (!isRunning(readRecord(file))) rmSync(file, { force: true })
  const served: ServerRecord = { pid: process.pid, url, since: Date.now() }
  replaceHomeFile(home, recordFile(home, process.pid), `${JSON.stringify(served)}\n`)
}

export function forgetServer(home: Home): void {
  rmSync(recordFile(home, process.pid), { force: true })
}

/** Other running servers, the one that was started last first. */
export function otherServers(home: Folder): readonly ServerRecord[] {
  const all = recordFiles(home).map(readRecord).filter(isRunning)
  return all.filter(({ pid }) => pid !== process.pid).toSorted((a, b) => b.since - a.since)
}

/** True if a running server of this data folder has this address. All local names of this machine count as equal. */
export function hasServerAt(home: Folder, url: string): boolean {
  const place = hostAndPort(url)
  return place !== null && otherServers(home).some((served) => hostAndPort(served.url) === place)
}

function hostAndPort(url: string): string | null {
  const { protocol, hostname, port } = URL.canParse(url) ? new URL(url) : new URL('none:')
  if (protocol !== 'http:') return null
  return `${['127.0.0.1', 'localhost', '[::1]'].includes(hostname) ? '' : hostname}:${port}`
}

function recordFiles({ folder }: Folder): readonly string[] {
  try {
    const names = readdirSync(folder).filter((name) => RECORD.test(name))
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}

function readRecord(file: string): ServerRecord | null {
  try {
    const { pid, url, since = 0 } = JSON.parse(readFileSync(file, 'utf8')) as Partial<ServerRecord>
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0 || typeof url !== 'string') return null
    return { pid, url, since }
  } catch {
    return null
  }
}

/** The id may belong to another process by now. Then this is wrongly true, which does no harm. */
function isRunning(served: ServerRecord | null): served is ServerRecord {
  if (served === null) return false
  try {
    process.kill(served.pid, 0)
    return true
  } catch {
    return false
  }
}
