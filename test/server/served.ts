// A real server on a real port, over a harness with a scripted model and an SQLite file. Requests go through Node's own client, or through
// a bare socket where a client would not send them.
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Harness, type HarnessOptions, type Script, scripted, sqlite, type SqliteFile } from '../../src/index.ts'
import type { ServerHost } from '../../src/server/server-host.ts'
import { type HttpServeOptions, type ListeningServer, startHttpServer } from '../../src/server/http-server.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import { driverText, UNNAMED } from '../../src/view/session-program.ts'
import type { Principal, TokenBody } from '../../src/server/wire.ts'

export type Answer = {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
}
export type Ask = {
  readonly token?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly raw?: string
}

export type Served = {
  readonly server: ListeningServer
  readonly tokens: TokenRegistry
  readonly host: ServerHost
  readonly folder: string
  readonly reports: string[]
  /** The token of somebody with this role. */
  token(body: TokenBody): string
  ask(method: string, path: string, ask?: Ask): Promise<Answer>
  json<T>(method: string, path: string, ask?: Ask): Promise<T>
}

type Options = {
  readonly harness?: Omit<HarnessOptions, 'model' | 'store'>
  readonly serve?: Partial<HttpServeOptions>
  readonly folder?: string
  readonly store?: SqliteFile
}

/** As `terret serve` does it, with one harness for all. */
export async function served(script: Script, options: Options = {}): Promise<Served> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'terret-server-'))
  const store = options.store ?? sqlite(join(folder, 'terret.db'))
  const harness = new Harness({ model: scripted(script), store, worker: { leaseMs: 5_000 }, ...options.harness })
  const { store: storeId } = await store.mark()
  const host: ServerHost = {
    version: 'test',
    store,
    storeId,
    harness,
    harnessOf: async () => harness,
    begin: async ({ agent }) => ({ harness, ...(agent === undefined ? {} : { agent }) }),
    agents: () => harness.agents(),
    elsewhere: (card) => (card.program === undefined || card.program === UNNAMED ? null : driverText(card)),
    program: UNNAMED,
    drives: options.harness?.worker?.drives ?? true,
    driving: () => 0,
  }
  const reports: string[] = []
  const tokens = new TokenRegistry(join(folder, 'tokens.json'), 'owner', withFileLock)
  const report = (where: string, error: unknown): void => void reports.push(`${where}: ${String(error)}`)
  const server = await startHttpServer({ host, tokens, port: 0, report, ...options.serve })
  const working = options.harness?.worker?.drives === false ? Promise.resolve() : harness.work()
  onTestFinished(async () => {
    await server.close()
    await harness.close()
    await working.catch(() => {})
    await store.close()
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true })
  })
  const ask: Served['ask'] = (method, path, { token = tokens.own, headers = {}, body, raw } = {}) => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    return requested(
      server.port,
      method,
      path,
      {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(content === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      content,
    )
  }
  const json = async <T>(method: string, path: string, asked?: Ask): Promise<T> => {
    const { status, text } = await ask(method, path, asked)
    if (status >= 300) throw new Error(`${status} ${text}`)
    return JSON.parse(text) as T
  }
  return { server, tokens, host, folder, reports, token: (body) => tokens.make(body, 1).token, ask, json }
}

/** Connections are used again: opening one is most of a small request's time. */
const agent = new Agent({ keepAlive: true, maxSockets: 8 })

export function requested(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const { statusCode: status = 0, headers: given } = response
        resolve({ status, headers: given, text: Buffer.concat(chunks).toString('utf8') })
      })
      response.on('error', reject)
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** What comes back for these bytes, until the server closes or says a whole answer. */
export function spoken(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.setTimeout(5_000, () => socket.destroy(new Error(`nothing came: ${text}`)))
    socket.on('data', (chunk) => {
      text += String(chunk)
      if (text.includes('\r\n\r\n')) socket.end()
    })
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)))
    socket.on('close', () => resolve(text))
    socket.write(bytes)
  })
}

export const PEOPLE: readonly Principal[] = [
  { name: 'vera', role: 'viewer', roles: [], reach: 'all' },
  { name: 'otto', role: 'operator', roles: [], reach: 'all' },
  { name: 'ana', role: 'approver', roles: ['lead'], reach: 'all' },
  { name: 'bob', role: 'approver', roles: ['lead'], reach: 'all' },
]

export type Frame = { readonly event: string; readonly id?: string; readonly data: Record<string, unknown> }

/** A stream, frame by frame. `cut` ends it as a lost connection does. */
export function streamed(port: number, path: string, headers: Readonly<Record<string, string>>, body?: string) {
  const frames: Frame[] = []
  let status = 0
  let beats = 0
  let rest = ''
  let over = false
  const request = httpRequest({
    host: '127.0.0.1',
    port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers,
    agent: false,
  })
  request.on('response', (response) => {
    status = response.statusCode ?? 0
    response.setEncoding('utf8').on('data', (text: string) => {
      rest += text
      const parts = rest.split('\n\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        if (part.startsWith(':')) beats += 1
        else frames.push(frameIn(part))
      }
    })
    response.on('close', () => {
      over = true
    })
    response.on('error', () => {})
  })
  request.on('error', () => {
    over = true
  })
  request.end(body)
  return {
    frames,
    status: () => status,
    /** Comments that keep the connection. */
    beats: () => beats,
    over: () => over,
    rest: () => rest,
    cut: () => void request.destroy(),
  }
}

function frameIn(part: string): Frame {
  const fields = Object.fromEntries(
    part.split('\n').map((line) => {
      const at = line.indexOf(': ')
      return [line.slice(0, at), line.slice(at + 2)]
    }),
  ) as { readonly event: string; readonly id?: string; readonly data: string }
  return { ...fields, data: JSON.parse(fields.data) as Record<string, unknown> }
}
