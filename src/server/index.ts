// The server as a part of one's own program: the API and the inspector over one's own harness, in whatever serves its other pages. The
// checks are those of `terret serve`; it drives nothing, and closes neither the harness nor the store.
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Harness, servedBy } from '../harness.ts'
import { Fault, type Store } from '../kernel/index.ts'
import { driverText } from '../view/program.ts'
import { VERSION } from '../version.ts'
import type { AccessEntry } from './access.ts'
import { answerRequest } from './fetch.ts'
import type { Host } from './host.ts'
import { pagesIn } from './pages.ts'
import { Desk } from './server.ts'
import { Tokens } from './tokens.ts'

export type { AccessEntry } from './access.ts'

export type ServeOptions = {
  /** Its sessions are served. It drives them as it would without a server: call `harness.work()` for what becomes due. */
  readonly harness?: Harness
  /** Instead of a harness: its sessions are shown, sent to and decided. None is opened or driven. */
  readonly store?: Store
  /** Where it is mounted, such as `/terret`. Default: at the root of the host. */
  readonly base?: string
  /**
   * The token of the owner, who may do everything: 43 letters, digits, `_` or `-`, such as 32 random bytes in base64url. Default: a new
   * one for each start, which `token` of the server has.
   */
  readonly token?: string
  /** Under which name the owner stands in logs. Default: `owner`. */
  readonly owner?: string
  /** The names by which browsers reach it, such as `agents.example.com`. Those of this machine are always allowed, with any port. */
  readonly names?: readonly string[]
  /** `false`: the API alone. */
  readonly inspector?: boolean
  /** Told of sign-ins and of requests that were refused. No token is in it. */
  readonly onAccess?: (entry: AccessEntry) => void
  /** Told of what went wrong beside an answer. Default: a warning of the process. */
  readonly onError?: (where: string, error: unknown) => void
}

export type MountedServer = {
  /** The owner's token, for the header `Authorization: Bearer TOKEN`. */
  readonly token: string
  /** For Hono, Next.js and others that call handlers with a `Request`. */
  readonly fetch: (request: Request) => Promise<Response>
  /** For `node:http` and Express. Mount it before what parses bodies. */
  readonly listener: (request: { readonly headers: object }, response: { destroy(): unknown }) => void
  /** Takes nothing more, and says `bye` on every stream. */
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
  'inspector',
  'onAccess',
  'onError',
])

function checkOptions(options: ServeOptions): void {
  const unknown = Object.keys(options).find((name) => !OPTIONS.has(name))
  if (unknown === undefined) return
  throw new Fault('invalid_config', `Unknown option "${unknown}" of serve. Known are: ${[...OPTIONS].join(', ')}.`)
}

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
  const harness = options.harness ?? readerOf(options.store)
  const host = await hostOf(harness, options.harness !== undefined)
  const report = options.onError ?? warn
  const desk = new Desk({
    host,
    tokens: Tokens.inMemory(token, owner),
    pages: options.inspector === false ? null : pagesIn(),
    base,
    report,
    ...(options.onAccess ? { onAccess: options.onAccess } : {}),
  })
  desk.isHost = hostsOf(options.names ?? [])
  const take = (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    request.url = withoutBase(request.url ?? '/', base)
    return desk.take(request, response)
  }
  return {
    token,
    fetch: (request) => answerRequest(request, take),
    listener: (request, response) => void take(request as IncomingMessage, response as ServerResponse),
    close: async () => {
      await desk.leave()
      if (!options.harness) await harness.close()
    },
  }
}

/** Express has taken the path of a mounted handler away already. */
function withoutBase(url: string, base: string): string {
  if (base === '' || (url !== base && !url.startsWith(`${base}/`) && !url.startsWith(`${base}?`))) return url
  const rest = url.slice(base.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

const LOCAL = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/

/** A name without a port is good with any: which one it is depends on what stands before this server. */
function hostsOf(names: readonly string[]): (host: string) => boolean {
  const known = new Set(names.map((name) => name.toLowerCase()))
  return (host) => LOCAL.test(host) || known.has(host) || known.has(host.replace(/:\d{1,5}$/, ''))
}

/** Reads and records. No session is of its program, so it says of each who drives it. */
function readerOf(store: Store | undefined): Harness {
  if (store === undefined) throw new Fault('invalid_config', 'Give serve a harness, or a store: serve({ harness }).')
  const call = (): never => {
    throw new Fault('invalid_config', 'A server over a store calls no model.')
  }
  return new Harness({ model: { name: 'none', call }, store, drives: false, program: 'server' })
}

async function hostOf(harness: Harness, opens: boolean): Promise<Host> {
  const served = servedBy(harness)
  if (served === null)
    throw new Fault('invalid_config', 'The option "harness" of serve is no harness: give new Harness({ … }).')
  const { store, program, drives } = served
  await store.open()
  const elsewhere: Host['elsewhere'] = (card) =>
    card.program === undefined || program.names.includes(card.program) ? null : driverText(card)
  return {
    version: VERSION,
    store,
    storeId: await storeIdOf(store),
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

/** Tells clients this store from another one behind the same address. One that gives itself no id has one for each start. */
async function storeIdOf(
  store: Store & { readonly mark?: () => Promise<{ readonly store: string }> },
): Promise<string> {
  if (store.mark) return (await store.mark()).store
  return createHash('sha256').update(randomBytes(TOKEN_BYTES)).digest('hex').slice(0, 32)
}

function warn(where: string, error: unknown): void {
  const text = error instanceof Error ? error.message || error.name : String(error)
  process.emitWarning(`${where}: ${text}`, 'TerretWarning')
}
