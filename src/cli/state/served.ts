// What servers leave in the data folder: who may ask (the file of tokens), and of each one that runs where it is, in a file of its own, so
// that others can say so and commands find it.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, replaceOwn } from './home.ts'

type Folder = Pick<Home, 'folder'>
type Served = { readonly pid: number; readonly url: string; readonly since: number }

export function tokenFile({ folder }: Folder): string {
  return join(folder, 'tokens.json')
}

/** `server.json` is that of a version that knew one server. */
const RECORD = /^server(?:-\d+)?\.json$/

function recordOf({ folder }: Folder, pid: number): string {
  return join(folder, `server-${pid}.json`)
}

/** Also removes what servers left that were killed. */
export function rememberServer(home: Home, url: string): void {
  for (const file of recordsIn(home)) if (!isRunning(servedIn(file))) rmSync(file, { force: true })
  const served: Served = { pid: process.pid, url, since: Date.now() }
  replaceOwn(home, recordOf(home, process.pid), `${JSON.stringify(served)}\n`)
}

export function forgetServer(home: Home): void {
  rmSync(recordOf(home, process.pid), { force: true })
}

/** Those that run, the one that was started last first. */
export function otherServers(home: Folder): readonly Served[] {
  const all = recordsIn(home).map(servedIn).filter(isRunning)
  return all.filter(({ pid }) => pid !== process.pid).toSorted((a, b) => b.since - a.since)
}

/** Whether a server of this data folder that runs has this address. All names of this machine are one. */
export function isServedAt(home: Folder, url: string): boolean {
  const place = placeOf(url)
  return place !== null && otherServers(home).some((served) => placeOf(served.url) === place)
}

function placeOf(url: string): string | null {
  const { protocol, hostname, port } = URL.canParse(url) ? new URL(url) : new URL('none:')
  if (protocol !== 'http:') return null
  return `${['127.0.0.1', 'localhost', '[::1]'].includes(hostname) ? '' : hostname}:${port}`
}

function recordsIn({ folder }: Folder): readonly string[] {
  try {
    const names = readdirSync(folder).filter((name) => RECORD.test(name))
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}

function servedIn(file: string): Served | null {
  try {
    const { pid, url, since = 0 } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Served>
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0 || typeof url !== 'string') return null
    return { pid, url, since }
  } catch {
    return null
  }
}

/** A number may have been given to another process by now: then this says too much, and does no harm. */
function isRunning(served: Served | null): served is Served {
  if (served === null) return false
  try {
    process.kill(served.pid, 0)
    return true
  } catch {
    return false
  }
}
