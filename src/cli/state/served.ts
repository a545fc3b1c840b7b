// What a server leaves in the data folder: who may ask (the file of tokens), and where it is, so that a second one can say so.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, replaceOwn } from './home.ts'

type Served = { readonly pid: number; readonly url: string }

export function tokenFile({ folder }: Pick<Home, 'folder'>): string {
  return join(folder, 'tokens.json')
}

function servedFile({ folder }: Pick<Home, 'folder'>): string {
  return join(folder, 'server.json')
}

export function rememberServer(home: Home, url: string): void {
  replaceOwn(home, servedFile(home), `${JSON.stringify({ pid: process.pid, url })}\n`)
}

/** One that lives. A number may have been given to another process by now: then this says too much, and does no harm. */
export function otherServer(home: Home): Served | null {
  const served = servedIn(home)
  if (served === null || served.pid === process.pid) return null
  try {
    process.kill(served.pid, 0)
    return served
  } catch {
    return null
  }
}

/** The server of this data folder that was started last, and lives. All names of this machine are one. */
export function isServedAt(home: Home, url: string): boolean {
  const served = otherServer(home)
  return served !== null && placeOf(served.url) === placeOf(url) && placeOf(url) !== null
}

function placeOf(url: string): string | null {
  const { protocol, hostname, port } = URL.canParse(url) ? new URL(url) : new URL('none:')
  if (protocol !== 'http:') return null
  return `${['127.0.0.1', 'localhost', '[::1]'].includes(hostname) ? '' : hostname}:${port}`
}

export function forgetServer(home: Home): void {
  if (servedIn(home)?.pid === process.pid) rmSync(servedFile(home), { force: true })
}

function servedIn(home: Home): Served | null {
  try {
    const { pid, url } = JSON.parse(readFileSync(servedFile(home), 'utf8')) as Partial<Served>
    return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 && typeof url === 'string'
      ? { pid, url }
      : null
  } catch {
    return null
  }
}
