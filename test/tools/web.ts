// Web servers for tests: each on an address of this host, with every connection counted, and a certificate that only the tests trust.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export type Web = {
  readonly server: Server
  readonly port: number
  /** Connections that were made, and those that are still open. */
  readonly connections: { made: number; readonly open: Set<Socket> }
  /** Requests that came, in order. */
  readonly requests: IncomingMessage[]
  readonly close: () => Promise<void>
}

export type Where = { readonly host?: string; readonly port?: number; readonly secure?: boolean }

export async function serve(
  answer: RequestListener,
  { host = '127.0.0.1', port = 0, secure = false }: Where = {},
): Promise<Web> {
  const requests: IncomingMessage[] = []
  const heard: RequestListener = (request, response) => {
    requests.push(request)
    answer(request, response)
  }
  const server = secure ? createSecureServer({ key: KEY, cert: CERTIFICATE }, heard) : createServer(heard)
  const connections = { made: 0, open: new Set<Socket>() }
  server.on('connection', (socket: Socket) => {
    connections.made += 1
    connections.open.add(socket)
    socket.on('error', () => {}).on('close', () => connections.open.delete(socket))
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of connections.open) socket.destroy()
    })
  return { server, port: (server.address() as AddressInfo).port, connections, requests, close }
}

/** Names as a test says they are; what it does not know does not exist. */
export function names(
  table: Readonly<Record<string, readonly string[]>>,
): (host: string) => Promise<readonly string[]> {
  return (host) => {
    const found = Object.hasOwn(table, host) ? table[host] : undefined
    return found
      ? Promise.resolve(found)
      : Promise.reject(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }))
  }
}

function pem(what: string, lines: readonly string[]): string {
  return `-----BEGIN ${what}-----\n${lines.join('\n')}\n-----END ${what}-----\n`
}

/** For secure.test and www.secure.test, good for a century. The key is no secret: it opens nothing but these tests. */
const KEY = pem('PRIVATE KEY', [
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0r2TVknpSz2Lv34s',
  'T5BhPmlupts+wCR7ZC2kuyGq+0ehRANCAAQM+SRvZtFl5OiyqY0W3p4D0Ud/PvpB',
  'rJ5ScK+ft00/k1OLBeFvqHKQEVFErqRA/fFbPK9OLqBUSBtprdmBxhQp',
])

export const CERTIFICATE = pem('CERTIFICATE', [
  'MIIBeDCCAR6gAwIBAgIBATAKBggqhkjOPQQDAjAWMRQwEgYDVQQDDAtzZWN1cmUu',
  'dGVzdDAgFw0wMDAxMDEwMDAwMDBaGA8yMDk5MTIzMTIzNTk1OVowFjEUMBIGA1UE',
  'AwwLc2VjdXJlLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQM+SRvZtFl',
  '5OiyqY0W3p4D0Ud/PvpBrJ5ScK+ft00/k1OLBeFvqHKQEVFErqRA/fFbPK9OLqBU',
  'SBtprdmBxhQpo1swWTAPBgNVHRMBAf8EBTADAQH/MCcGA1UdEQQgMB6CC3NlY3Vy',
  'ZS50ZXN0gg93d3cuc2VjdXJlLnRlc3QwHQYDVR0OBBYEFM5ki0vaTAmU3G+66wHt',
  'LPYMmZ8YMAoGCCqGSM49BAMCA0gAMEUCIF0nfja9CsUVduJ0DwCKvHMGaSfIxAHI',
  '2+m5/BfZzNuRAiEA0TKz/L/1THr6dXwiQaxAMRvZGmAzAQ2Y+ZxkWIgPtB0=',
])
