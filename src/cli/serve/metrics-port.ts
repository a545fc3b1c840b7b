// The port of `terret worker --metrics`: `GET /metrics`, and nothing else. It asks for no token, so it gives only numbers,
// with the names of agents and tools.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EXIT, CliError } from '../exit.ts'
import type { CommandContext } from '../state/command-context.ts'
import { PROGRAM } from '../state/own-program.ts'

/** Measuring the store's health writes to it, so an answer is reused for this long. */
const SAME_MS = 1_000

export type MetricsPort = {
  readonly url: string
  /** Counts what this harness does from now on. */
  listenTo(harness: object): void
  close(): Promise<void>
}

/** Parses `PORT` of this machine, or `ADDRESS:PORT`. */
export function parseMetricsAddress(given: string): { readonly address: string; readonly port: number } {
  const [, address = '127.0.0.1', digits = ''] = /^(?:([\w.-]+|\[[0-9a-fA-F:]+\]):)?(\d{1,5})$/.exec(given) ?? []
  const port = Number(digits)
  if (digits === '' || port > 65_535)
    throw new CliError(EXIT.usage, '--metrics must be a port, such as 9464, or an address with a port.')
  return { address: address.replace(/[[\]]/g, ''), port }
}

export async function openMetrics(place: CommandContext, given: string, driving: () => number): Promise<MetricsPort> {
  const { address, port } = parseMetricsAddress(given)
  const [{ METRICS_MEDIA, metricsText, RunMetrics }, { checkHost }, { Harness, offline }] = await Promise.all([
    import('../../server/metrics.ts'),
    import('../../server/request-checks.ts'),
    import('../../index.ts'),
  ])
  const harness = new Harness({ program: PROGRAM, model: offline(), store: place.store, worker: { drives: false } })
  const runs = new RunMetrics(place.store)
  let last: Promise<string> | null = null
  const look = (): Promise<string> => {
    if (last === null) {
      const health = harness.health().then((found) => metricsText(found, driving()))
      last = Promise.all([health, runs.text()]).then((texts) => texts.join(''))
      setTimeout(() => void (last = null), SAME_MS).unref()
    }
    return last
  }
  const isLocal = address === '127.0.0.1' || address === '::1' || address === 'localhost'
  const http = createServer((request, response) => {
    const end = (status: number, media: string, text: string): void =>
      void response.writeHead(status, { 'content-type': media, 'cache-control': 'no-store' }).end(text)
    const { port: own } = http.address() as AddressInfo
    try {
      // Refuses other host names: a web page may let its own name point to this address.
      const names = new Set([`127.0.0.1:${own}`, `localhost:${own}`, `[::1]:${own}`])
      if (isLocal) checkHost(request, (host) => names.has(host))
    } catch {
      return end(421, 'text/plain', 'This server is not called that.\n')
    }
    if (request.method !== 'GET' || request.url !== '/metrics')
      return end(404, 'text/plain', 'There is nothing here but GET /metrics.\n')
    look().then(
      (text) => end(200, METRICS_MEDIA, text),
      () => end(503, 'text/plain', 'The store could not be looked at.\n'),
    )
  })
  await listenOn(http, address, port).catch(async (error: unknown) => {
    await harness.close()
    throw error
  })
  const shown = address.includes(':') ? `[${address}]` : address
  return {
    url: `http://${shown}:${(http.address() as AddressInfo).port}/metrics`,
    listenTo: (each) => void runs.listenTo(each),
    close: async () => {
      http.closeAllConnections()
      await new Promise((closed) => http.close(closed))
      await harness.close()
    },
  }
}

function listenOn(http: Server, address: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${error.code ?? error.message})`
      reject(new CliError(EXIT.config, `Port ${port} of ${address} ${why}. Choose another for --metrics.`))
    })
    http.listen({ port, host: address, exclusive: true }, resolve)
  })
}
