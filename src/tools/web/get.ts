// One request and its redirects for `web_fetch` and `web_search`. Each hop is read, resolved, checked and connected to anew, and
// takes nothing along that was not given for the journey: no cookie, no credentials, no connection. What a body means is not looked at.
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, isIPv6, type LookupFunction } from 'node:net'
import { rootCertificates } from 'node:tls'
import { type AddressRules, addressesOf, hostOf, portOf, readUrl } from './address.ts'
import { bodyOf } from './body.ts'
import { ToolFailure } from '../core/output.ts'

export type Journey = {
  readonly rules: AddressRules
  readonly ca: string | null
  /** Is it in the spirit of what was approved to go there? Where one may connect at all is decided besides. */
  readonly mayFollow: (to: URL) => boolean
  readonly signal: AbortSignal
  /** Besides the usual headers. They go to every hop: let only hops be followed that may see them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent by POST, as JSON. */
  readonly body?: string
}

export type Answer = {
  readonly url: URL
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

const REDIRECTS_MAX = 5
const REDIRECTS: readonly unknown[] = [301, 302, 303, 307, 308]
const HEADER_BYTES_MAX = 32_768
const HEADERS = {
  accept: 'text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.1',
  'accept-encoding': 'gzip, deflate, br',
  'user-agent': 'terret (web_fetch)',
}

export async function get(start: URL, journey: Journey): Promise<Answer> {
  let url = start
  for (let hops = 0; hops <= REDIRECTS_MAX; hops++) {
    const found = await hop(url, journey)
    if (!(found instanceof URL)) return found
    if (url.protocol === 'https:' && found.protocol === 'http:') {
      throw new ToolFailure('Denied', 'The page redirects from https to http, which is not followed.')
    }
    if (!journey.mayFollow(found)) {
      throw new ToolFailure(
        'Denied',
        `The page redirects to another host: ${found.href.slice(0, 2_000)} . Fetch that address if it is the one you want.`,
        { redirect: found.href.slice(0, 2_000) },
      )
    }
    url = found
  }
  throw new ToolFailure('Failed', `The page redirects more than ${REDIRECTS_MAX} times.`)
}

/** A page, or where it has gone. */
async function hop(url: URL, journey: Journey): Promise<Answer | URL> {
  const { signal } = journey
  const addresses = await unlessAborted(addressesOf(url, journey.rules), signal)
  const { response, close } = await connect(url, addresses, journey)
  try {
    const { statusCode: status = 0, headers } = response
    if (REDIRECTS.includes(status) && headers.location !== undefined) return readUrl(headers.location, url)
    return { url, status, contentType: headers['content-type'] ?? '', body: await bodyOf(response) }
  } catch (error) {
    throw signal.aborted || error instanceof ToolFailure ? error : broken(url, error)
  } finally {
    close()
  }
}

type Connected = { readonly response: IncomingMessage; readonly close: () => void }

/** To one of these addresses and no other, whatever the name stands for by now. `close` leaves no socket behind. */
function connect(url: URL, addresses: readonly string[], { ca, signal, headers, body }: Journey): Promise<Connected> {
  const host = hostOf(url)
  const pinned = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  const lookup: LookupFunction = (_host, { all }, done) => {
    if (all) done(null, pinned)
    else done(null, pinned[0]?.address ?? '', pinned[0]?.family ?? 4)
  }
  const secure = url.protocol === 'https:'
  const options = {
    hostname: host,
    port: portOf(url),
    path: `${url.pathname}${url.search}`,
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...HEADERS, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    lookup,
    agent: false as const,
    maxHeaderSize: HEADER_BYTES_MAX,
    signal,
    // The name that was asked for is the name that has to be proven; an address is proven as an address.
    ...(secure && isIP(host) === 0 ? { servername: host } : {}),
    ...(secure && ca !== null ? { ca: [...rootCertificates, ca] } : {}),
  }
  return new Promise((resolve, reject) => {
    const request = secure ? requestHttps(options) : requestHttp(options)
    const close = (): void => void request.destroy()
    const fail = (error: unknown): void => {
      close()
      reject(signal.aborted ? (signal.reason as Error) : broken(url, error))
    }
    // Kept to the end: an error after the answer belongs to the body, and an error without a listener would end the process.
    request.on('error', fail)
    request.on('upgrade', (_response, socket) => {
      socket.destroy()
      fail(new Error('it wants to speak another protocol'))
    })
    request.on('close', () => reject(broken(url, new Error('it hung up'))))
    request.on('response', (response) => resolve({ response, close }))
    request.end(body)
  })
}

/** A look-up cannot be stopped. After an abort its result is dropped. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function broken(url: URL, error: unknown): ToolFailure {
  const what = error instanceof Error ? ('code' in error ? String(error.code) : error.message) : 'it broke'
  return new ToolFailure('Unavailable', `${url.host} could not be fetched (${what || 'no reason given'}).`)
}
