// Which server a command line works with, if it names one: `terret --server URL COMMAND`. Only what is needed to know that; what is asked
// of the server is in remote/.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import type { Client } from '../../client/index.ts'
import { EXIT, Refusal } from '../exit.ts'
import type { Far } from '../present/print.ts'
import { homeOf } from './home.ts'
import { isServedAt, tokenFile } from './served.ts'

/** One command line is one process, but for tests, which run one line after another: each sets it. */
let named: Far | null = null

export function setFar(far: Far | null): void {
  named = far
}

export function farNamed(): Far | null {
  return named
}

/** The token of `TERRET_TOKEN`, of a file, or of this user's own server. It is never an argument: those are seen by all processes. */
export function tokenOf({ url, tokenFile: file }: Far): string {
  if (file !== undefined) return readToken(file, false)
  const given = process.env['TERRET_TOKEN']
  if (given) return given.trim()
  const home = homeOf()
  // To nobody else: whoever listens at that port could take it.
  if (isServedAt(home, url)) return readToken(tokenFile(home), true)
  const text = `${url} is no server of this data folder that runs now, so your own token is not sent to it.`
  throw new Refusal(EXIT.config, `${text} Set TERRET_TOKEN, or give --token-file FILE.`)
}

function readToken(path: string, isOwn: boolean): string {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY)
  } catch {
    const next = isOwn ? 'Set TERRET_TOKEN, or give --token-file FILE.' : 'Check the path.'
    throw new Refusal(EXIT.config, `The token cannot be read from ${path}. ${next}`)
  }
  try {
    if ((fstatSync(file).mode & 0o077) !== 0)
      throw new Refusal(EXIT.config, `Other users can read ${path}. Make it yours alone: chmod 600 ${path}`)
    const text = readFileSync(file, 'utf8')
    return isOwn ? String((JSON.parse(text) as { readonly own?: unknown }).own) : text.trim()
  } finally {
    closeSync(file)
  }
}

const clients = new WeakMap<object, Client>()

/** What stands behind a store that is elsewhere. Null: the store is here. */
export function clientOf(store: object): Client | null {
  return clients.get(store) ?? null
}

export function keepClient(store: object, client: Client): void {
  clients.set(store, client)
}
