// The public entry `terret/server`: the API and the inspector over your own harness, mounted in your own HTTP server.
// Its checks are those of `terret serve`. It drives nothing, and closes neither the harness nor the store.
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Harness, harnessParts } from '../harness.ts'
import { Fault, type Store } from '../kernel/index.ts'
import { driverText } from '../view/session-program.ts'
import { thrownText } from '../view/shown-text.ts'
import { VERSION } from '../version.ts'
import type { AccessEntry } from './access.ts'
import { answerWebRequest } from './web-request.ts'
import type { ServerHost } from './server-host.ts'
import { findInspectorFolder } from './inspector-files.ts'
import { RequestHandler } from './http-server.ts'
import { RunMetrics } from './metrics.ts'
import { TokenRegistry } from './token-registry.ts'
import {
  checkEndpointSources,
  type Endpoints,
  endpointSecrets,
  readEndpoints,
  type WebhookDesk,
} from './webhook-endpoints.ts'

export type { AccessEntry } from './access.ts'
export type { EndpointOptions, Endpoints, WebhookScheme } from './webhook-endpoints.ts'

/** Options of `serve`: the harness, the path it is mounted under, and who may reach it. */
export type ServeOptions = {
  /**
   * The harness whose sessions are served. It drives them as without a server: call `harness.work()` for due sessions.
   */
  readonly harness?: Harness
  /** A store instead of a harness: its sessions can be read, sent to and decided, but none is opened or driven. */
  readonly store?: Store
  /** The path that the server is mounted under, such as `/terret`. Default: the root of the host. */
  readonly base?: string
  /**
   * The owner's token, which may do everything: 43 letters, digits, `_` or `-`, such as 32 random bytes in base64url.
   * Default: a new one for each start, which the server returns as `token`.
   */
  readonly token?: string
  /** The owner's name in logs. Default: `owner`. */
  readonly owner?: string
  /**
   * The host names that browsers use, such as `agents.example.com`. Names of this machine are always allowed, with any
   * port.
   */
  readonly names?: readonly string[]
  /**
   * Endpoints that take signed deliveries from outside, for a harness with `triggers`. Each is at `POST
   * /v1/triggers/NAME`.
   */
  readonly endpoints?: Endpoints
  /** `false`: serves the API without the inspector. */
  readonly inspector?: boolean
  /** Called for sign-ins and refused requests. The entry holds no token. */
  readonly onAccess?: (entry: AccessEntry) => void
  /** Called with errors outside of an answer. Default: a process warning. */
  readonly onError?: (where: string, error: unknown) => void
}

/** A server to be mounted: its handlers, and the token of the owner. */
export type MountedServer = {
  /** The owner's token, for the header `Authorization: Bearer TOKEN`. */
  readonly token: string
  /** For Hono, Next.js and others that call handlers with a `Request`. */
  readonly fetch: (request: Request) => Promise<Response>
  /** For `node:http` and Express. Mount it before body parsers. */
  readonly listener: (request: { readonly headers: object }, response: { destroy(): unknown }) => void
  /** Takes no more requests, and sends `bye` on every stream. */
  close(): Promise<void>
}

const TOKEN_BYTES = 32
const OPTIONS: ReadonlySet<string> = new Set<keyof ServeOptions>([
  'harness',
  'store',
  'base',
  'token',
  'owner',
  'names',
  'endpoints',
  'inspector',
  'onAccess',
  'onError',
])

function checkOptions(options: ServeOptions): void {
  const unknown = Object.keys(options).find((name) => !OPTIONS.has(name))
  if (unknown === undefined) return
  throw new Fault('invalid_config', `Unknown option "${unknown}" of serve. Known are: ${[...OPTIONS].join(', ')}.`)
}

/** Makes the API and the inspector of a harness, to be mounted in a server of yours. It opens no port. */
export async function serve(options: ServeOptions): Promise<MountedServer> {
  checkOptions(options)
  const { base = '', token = randomBytes(TOKEN_BYTES).toString('base64url'), owner = 'owner' } = options
  if (!/^(?:\/[A-Za-z0-9._~-]+)*$/.test(base))
    throw new Fault(
      'invalid_config',
      'The option "base" of serve is a path such as "/terret", without a slash at its end.',
    )
  if (!/^[A-Za-z0-9_-]{43}$/.test(token))
    throw new Fault(
      'invalid_config',
      'The option "token" of serve has 43 letters, digits, "_" or "-": 32 random bytes in base64url.',
    )
  const harness = options.harness ?? createReader(options.store)
  const served = await createServerHost(harness, options.harness !== undefined)
  const metrics = new RunMetrics(served.store)
  const host = {
    ...served,
    metrics,
    ...(options.endpoints ? { webhooks: openWebhooks(options.endpoints, harness) } : {}),
  }
  const report = options.onError ?? warnProcess
  const desk = new RequestHandler({
    host,
    tokens: TokenRegistry.inMemory(token, owner),
    pages: options.inspector === false ? null : findInspectorFolder(),
    base,
    report,
    ...(options.onAccess ? { onAccess: options.onAccess } : {}),
  })
  desk.isHost = matchHosts(options.names ?? [])
  const take = (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    request.url = withoutBase(request.url ?? '/', base)
    return desk.take(request, response)
  }
  const stopCounting = metrics.listenTo(harness)
  return {
    token,
    fetch: (request) => answerWebRequest(request, take),
    listener: (request, response) => void take(request as IncomingMessage, response as ServerResponse),
    close: async () => {
      await desk.leave()
      stopCounting()
      if (!options.harness) await harness.close()
    },
  }
}

/** Express has already removed the mount path. */
function withoutBase(url: string, base: string): string {
  if (base === '' || (url !== base && !url.startsWith(`${base}/`) && !url.startsWith(`${base}?`))) return url
  const rest = url.slice(base.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

const LOCAL = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/

/** A name without a port matches any port: the port depends on the proxy in front of the server. */
function matchHosts(names: readonly string[]): (host: string) => boolean {
  const known = new Set(names.map((name) => name.toLowerCase()))
  return (host) => LOCAL.test(host) || known.has(host) || known.has(host.replace(/:\d{1,5}$/, ''))
}

/**
 * A harness that only reads and records. No session belongs to its program, so the server says of each session who
 * drives it.
 */
function createReader(store: Store | undefined): Harness {
  if (store === undefined) throw new Fault('invalid_config', 'Give serve a harness, or a store: serve({ harness }).')
  const call = (): never => {
    throw new Fault('invalid_config', 'A server over a store calls no model.')
  }
  return new Harness({ model: { name: 'none', call }, store, worker: { drives: false }, program: 'server' })
}

async function createServerHost(harness: Harness, opens: boolean): Promise<ServerHost> {
  const served = harnessParts(harness)
  if (served === null)
    throw new Fault('invalid_config', 'The option "harness" of serve is no harness: give new Harness({ … }).')
  const { store, program, drives } = served
  await store.open()
  const elsewhere: ServerHost['elsewhere'] = (card) =>
    card.program === undefined || program.names.includes(card.program) ? null : driverText(card)
  return {
    version: VERSION,
    store,
    storeId: await readStoreId(store),
    harness,
    harnessOf: async (card) => {
      const why = elsewhere(card)
      if (why !== null)
        throw new Fault('session_elsewhere', `No worker of this program drives session ${card.session}. ${why}`)
      return harness
    },
    begin: async ({ agent, folder }) => {
      if (!opens) throw new Fault('invalid_config', 'This server has a store and no agents, so it opens no sessions.')
      if (folder !== undefined)
        throw new Fault('invalid_input', 'This server opens sessions without a folder. Leave it out.')
      return { harness, ...(agent === undefined ? {} : { agent }) }
    },
    agents: async () => (opens ? harness.agents() : []),
    elsewhere,
    program: program.names[0] ?? '',
    drives,
    driving: () => 0,
  }
}

/** The redactor learns the secrets, so that no log has one. */
export function openWebhooks(given: Endpoints, harness: Harness): WebhookDesk {
  const endpoints = readEndpoints(given)
  const { sources = [], learn } = harnessParts(harness) ?? {}
  checkEndpointSources(endpoints, sources)
  learn?.(endpointSecrets(endpoints))
  return {
    endpoints,
    trigger: (envelope) => harness.trigger(envelope),
    counts: { accepted: 0, duplicates: 0, refused: 0 },
  }
}

/**
 * Lets clients tell this store from another one at the same address. A store without an id gets a new one at each
 * start.
 */
async function readStoreId(
  store: Store & { readonly mark?: () => Promise<{ readonly store: string }> },
): Promise<string> {
  if (store.mark) return (await store.mark()).store
  return createHash('sha256').update(randomBytes(TOKEN_BYTES)).digest('hex').slice(0, 32)
}

function warnProcess(where: string, error: unknown): void {
  process.emitWarning(`${where}: ${thrownText(error)}`, 'TerretWarning')
}
