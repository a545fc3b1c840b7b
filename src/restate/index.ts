// The public entry `terret/restate`: a worker whose wakes come from Restate, with one virtual object per session and
// one handler, `wake`. The store stays the only truth: Restate holds no state, event or lease, and the relay sends lost
// wakes again (decision 108).
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { runtimeClock } from '../runtime/state/machine.ts'
import type { Harness } from '../harness.ts'
import { Fault } from '../kernel/failure.ts'
import {
  functionCheck,
  type Check,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  methodsCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  describeValue,
  waitCheck,
} from '../options.ts'
import type { CompleteStore } from '../ports/store.ts'
import { buildReporter, emitTerretWarning } from '../sessions/harness-parts.ts'
import { Ingress } from './ingress.ts'
import { Relay } from './relay.ts'
import { loadSdk, type Sdk } from './sdk.ts'
import { type WakeSession, createWaker } from './wake-session.ts'

/**
 * Options of a worker that Restate wakes: the harness and its store, and the keys that requests of Restate are signed
 * with.
 */
export type RestateOptions = {
  /** The harness that drives woken sessions. Do not call `work` on it. */
  readonly harness: Pick<Harness, 'health' | 'work'>
  /** The store of that harness. */
  readonly store: CompleteStore
  /** The public keys that requests must be signed with. Restate logs its own at start, as `publickeyv1_…`. */
  readonly identityKeys: readonly string[]
  /** The address of Restate's ingress, which accepts wakes. Default: http://127.0.0.1:8080 */
  readonly ingress?: string
  /** The address that this worker listens on. Default: 127.0.0.1, port 9080; port 0 takes any free port. */
  readonly host?: string
  /** The port that this worker listens on. Default 9080. */
  readonly port?: number
  /** The name of the virtual object. Workers that have different agents need different names. Default: session */
  readonly name?: string
  /**
   * Restate abandons a wake that is not answered within this time, and sends it again. The session goes on meanwhile.
   * Default: 24 hours.
   */
  readonly abortMs?: number
  /** Whether this worker tells Restate about due sessions of the store. At least one worker must. Default: true */
  readonly relay?: boolean
  /** Called with failed wakes, refused requests and outages of Restate. Default: a process warning. */
  readonly onError?: (where: string, error: unknown) => void
}

/** A worker that Restate wakes: its address, and what ends it. */
export interface RestateWorker {
  /** The address to register with Restate. */
  readonly url: string
  /** Takes no more wakes: Restate sends them again to another worker. The harness and the store stay open. */
  close(): Promise<void>
}

const DAY_MS = 24 * 3_600_000
const HANDLER = 'wake'

const keyCheck: Check = (value) =>
  typeof value === 'string' && /^publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,64}$/.test(value)
    ? null
    : `must be a public key as Restate logs it, "publickeyv1_…", not ${describeValue(value)}`
const keysCheck: Check = (value, name, of) =>
  Array.isArray(value) && value.length === 0
    ? 'must name at least one key: without one anybody could wake sessions'
    : listCheck(keyCheck)(value, name, of)
const urlCheck: Check = (value) =>
  typeof value === 'string' && /^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(value) && URL.canParse(value)
    ? null
    : 'must be an address such as http://127.0.0.1:8080, without a name, password or query'
const nameCheck: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z][\w.-]{0,99}$/.test(value)
    ? null
    : `must begin with a letter and have only letters, digits, "_", "." and "-", not ${describeValue(value)}`

const checkOptions = optionsChecker<RestateOptions>('restate', {
  harness: requiredCheck(methodsCheck('give new Harness({ … })', 'health', 'work'), 'Give new Harness({ … }).'),
  store: requiredCheck(
    methodsCheck('give the store of the harness', 'due', 'card', 'watchDue'),
    'Give the store of the harness.',
  ),
  identityKeys: requiredCheck(
    keysCheck,
    'Start Restate with a request identity key: it logs the public key, "publickeyv1_…".',
  ),
  ingress: urlCheck,
  host: nonEmptyCheck,
  port: countCheck(0, 65_535),
  name: nameCheck,
  abortMs: waitCheck,
  relay: flagCheck,
  onError: functionCheck,
})

/**
 * Listens, and drives the sessions that Restate wakes. Rejects with `invalid_config` before listening if the SDK cannot
 * be used here.
 */
export async function restate(options: RestateOptions): Promise<RestateWorker> {
  checkOptions(options)
  const { harness, store, name = 'session', abortMs = DAY_MS, host = '127.0.0.1', port = 9080 } = options
  const { ingress: address = 'http://127.0.0.1:8080', identityKeys, relay: relays = true } = options
  const onError = buildReporter(options.onError ?? emitTerretWarning)
  // With an aborted signal this only checks that the harness may drive.
  await harness.work({ signal: AbortSignal.abort() })
  const sdk = await loadSdk()
  await store.open()
  const ingress = new Ingress(address, name, runtimeClock)
  const wake = createWakeHandler(sdk, ingress, createWaker(store, harness), onError)
  const handlers = { [HANDLER]: sdk.handlers.object.exclusive(wakePolicy(abortMs), wake) }
  const handle = sdk.createEndpointHandler({
    services: [sdk.object({ name, handlers })],
    identityKeys: [...identityKeys],
    logger: ({ level }, message: unknown) => {
      if (level === 'error') onError('restate', new Error(explainSdkError(String(message))))
    },
  })
  const server = createServer(handle)
  const cut = trackConnections(server)
  const bound = await listenHttp2(server, host, port)
  const relay = relays
    ? new Relay({ store, clock: runtimeClock, ingress, report: (error) => onError('relay', error) })
    : null
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: async () => {
      const relayed = relay?.close()
      // Closing does not wait for a Restate that is not answering.
      ingress.close()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      cut()
      await closed
      await relayed
    },
  }
}

/** Keeps no results, and retries a wake without end: by default Restate pauses it silently after 70 attempts. */
function wakePolicy(abortMs: number) {
  return {
    journalRetention: 0,
    idempotencyRetention: 0,
    inactivityTimeout: abortMs,
    abortTimeout: abortMs,
    retryPolicy: { initialInterval: 100, exponentiationFactor: 2, maxInterval: 10_000, maxAttempts: 2 ** 31 },
  }
}

/** Restate shows errors of handlers to anyone with access to it, so the reason goes to `onError` only. */
function createWakeHandler(
  sdk: Sdk,
  ingress: Ingress,
  wake: WakeSession,
  onError: (where: string, error: unknown) => void,
) {
  return async (ctx: { readonly key: string }, input: unknown): Promise<void> => {
    const times = typeof input === 'number' && Number.isSafeInteger(input) && input >= 0 ? input : 0
    try {
      const { after } = await wake(ctx.key, times)
      if (after !== null) await ingress.send({ session: ctx.key, times: times + 1, ...after })
    } catch (error) {
      const code = error instanceof Fault ? error.code : null
      if (code === 'session_missing') throw new sdk.TerminalError('There is no such session.', { errorCode: 404 })
      if (code === 'invalid_input') throw new sdk.TerminalError('This is no id of a session.', { errorCode: 400 })
      if (code === 'harness_closed') throw errorWithoutStack('This worker closes. Restate tries again.')
      onError(`wake of ${describeValue(ctx.key)}`, error)
      throw errorWithoutStack('This worker could not do it now. Its onError was told why, and Restate tries again.')
    }
  }
}

/** Without its stack, which contains paths of this machine. */
function errorWithoutStack(message: string): Error {
  const error = new Error(message)
  error.stack = message
  return error
}

function explainSdkError(message: string): string {
  if (!/ExpiredSignature|ImmatureSignature/.test(message)) return message
  return 'A signed request of Restate was refused: its clock and the clock of this machine differ by more than a minute. Set them right.'
}

/** Closes every connection: the server's own `close` would wait for Restate, which keeps its connections open. */
function trackConnections(server: Http2Server): () => void {
  const open = new Set<ServerHttp2Session>()
  server.on('session', (session) => {
    open.add(session)
    session.on('close', () => open.delete(session))
    // A connection reset by the peer is not an error of this process.
    session.on('error', () => {})
  })
  return () => {
    for (const session of open) session.destroy()
  }
}

function listenHttp2(server: Http2Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: Error) =>
      reject(new Fault('invalid_config', `Cannot listen on ${host}, port ${port}. Choose another.`, error.message)),
    )
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  })
}
