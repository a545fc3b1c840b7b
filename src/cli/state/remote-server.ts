// The remote server of a command line, if it names one: `terret --server URL COMMAND`. It only finds the server and its
// token; remote/ sends the requests.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import type { Client } from '../../client/index.ts'
import { EXIT, CliError } from '../exit.ts'
import type { RemoteServer } from '../present/print.ts'
import { findHome } from './cli-home.ts'
import { hasServerAt, tokenFile } from './running-servers.ts'

/** One command line is one process, except in tests, which run several: each one sets it. */
let named: RemoteServer | null = null

export function setRemoteServer(far: RemoteServer | null): void {
  named = far
}

export function remoteServer(): RemoteServer | null {
  return named
}

/**
 * The token from `TERRET_TOKEN`, from a file, or of this user's own server. It is never an argument, because all
 * processes can see arguments.
 */
export function readRemoteToken({ url, tokenFile: file }: RemoteServer): string {
  if (file !== undefined) return readToken(file, false)
  const given = process.env['TERRET_TOKEN']
  if (given) return given.trim()
  const home = findHome()
  // The token goes to no other address: a program that listens at that port could take it.
  if (hasServerAt(home, url)) return readToken(tokenFile(home), true)
  const text = `${url} is no server of this data folder that runs now, so your own token is not sent to it.`
  throw new CliError(EXIT.config, `${text} Set TERRET_TOKEN, or give --token-file FILE.`)
}

function readToken(path: string, isOwn: boolean): string {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY)
  } catch {
    const next = isOwn ? 'Set TERRET_TOKEN, or give --token-file FILE.' : 'Check the path.'
    throw new CliError(EXIT.config, `The token cannot be read from ${path}. ${next}`)
  }
  try {
    if ((fstatSync(file).mode & 0o077) !== 0)
      throw new CliError(EXIT.config, `Other users can read ${path}. Make it yours alone: chmod 600 ${path}`)
    const text = readFileSync(file, 'utf8')
    return isOwn ? String((JSON.parse(text) as { readonly own?: unknown }).own) : text.trim()
  } finally {
    closeSync(file)
  }
}

const clients = new WeakMap<object, Client>()

/** The client behind a remote store. Null: the store is local. */
export function remoteClient(store: object): Client | null {
  return clients.get(store) ?? null
}

export function registerClient(store: object, client: Client): void {
  clients.set(store, client)
}
