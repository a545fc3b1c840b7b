// One request with its redirects, for `web_fetch` and `web_search`. Each hop is parsed, resolved, checked and connected
// anew, and carries only what the request was given: no cookie, no credentials, no reused connection. Bodies are not
// interpreted.
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, isIPv6, type LookupFunction } from 'node:net'
import { rootCertificates } from 'node:tls'
import { type AddressRules, checkedAddresses, hostOf, portOf, readUrl } from './web-address.ts'
import { readResponseBody } from './response-body.ts'
import { ToolFailure } from '../core/tool-output.ts'

export type WebRequest = {
  readonly rules: AddressRules
  readonly ca: string | null
  /** Does the approval also cover this address? Whether it may be connected to at all is checked separately. */
  readonly mayFollow: (to: URL) => boolean
  readonly signal: AbortSignal
  /** Added to the usual headers. Every hop gets them: follow only hops that may see them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent by POST, as JSON. */
  readonly body?: string
}

export type WebResponse = {
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

export async function requestUrl(start: URL, journey: WebRequest): Promise<WebResponse> {
  let url = start
  for (let hops = 0; hops <= REDIRECTS_MAX; hops++) {
    const found = await requestOnce(url, journey)
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

/** Returns the page, or the address of a redirect. */
async function requestOnce(url: URL, journey: WebRequest): Promise<WebResponse | URL> {
  const { signal } = journey
  const addresses = await raceAbortSignal(checkedAddresses(url, journey.rules), signal)
  const { response, close } = await connectTo(url, addresses, journey)
  try {
    const { statusCode: status = 0, headers } = response
    if (REDIRECTS.includes(status) && headers.location !== undefined) return readUrl(headers.location, url)
    return { url, status, contentType: headers['content-type'] ?? '', body: await readResponseBody(response) }
  } catch (error) {
    throw signal.aborted || error instanceof ToolFailure ? error : requestFailure(url, error)
  } finally {
    close()
  }
}

type OpenResponse = { readonly response: IncomingMessage; readonly close: () => void }

/**
 * Connects to one of these addresses and no other, whatever the name resolves to by now. `close` leaves no socket open.
 */
function connectTo(
  url: URL,
  addresses: readonly string[],
  { ca, signal, headers, body }: WebRequest,
): Promise<OpenResponse> {
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
    // The certificate must prove the requested name; an address is proven as an address.
    ...(secure && isIP(host) === 0 ? { servername: host } : {}),
    ...(secure && ca !== null ? { ca: [...rootCertificates, ca] } : {}),
  }
  return new Promise((resolve, reject) => {
    const request = secure ? requestHttps(options) : requestHttp(options)
    const close = (): void => void request.destroy()
    const fail = (error: unknown): void => {
      close()
      reject(signal.aborted ? (signal.reason as Error) : requestFailure(url, error))
    }
    // The listener stays to the end: an error after the response belongs to the body, and an error without a listener
    // would end the process.
    request.on('error', fail)
    request.on('upgrade', (_response, socket) => {
      socket.destroy()
      fail(new Error('it wants to speak another protocol'))
    })
    request.on('close', () => reject(requestFailure(url, new Error('it hung up'))))
    request.on('response', (response) => resolve({ response, close }))
    request.end(body)
  })
}

/** A name lookup cannot be stopped. After an abort its result is dropped. */
function raceAbortSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function requestFailure(url: URL, error: unknown): ToolFailure {
  const what = error instanceof Error ? ('code' in error ? String(error.code) : error.message) : 'it broke'
  return new ToolFailure('Unavailable', `${url.host} could not be fetched (${what || 'no reason given'}).`)
}
