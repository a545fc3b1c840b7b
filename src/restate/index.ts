// The door `terret/restate`: a worker whose wakes come from Restate. One virtual object a session, and one handler, `wake`.
// The store stays the only truth: Restate holds no state, no event and no lease, and what it lost the relay sends again (decision 108).
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { systemClock } from '../engine/platform.ts'
import type { Harness } from '../harness.ts'
import { Fault } from '../kernel/failure.ts'
import {
  callable,
  type Check,
  count,
  filled,
  flag,
  having,
  listOf,
  needed,
  optionsOf,
  shown,
  wait,
} from '../options.ts'
import type { Store } from '../ports/store.ts'
import { reporter, warn } from '../sessions/setup/parts.ts'
import { Ingress } from './ingress.ts'
import { Relay } from './relay.ts'
import { loadSdk, type Sdk } from './sdk.ts'
import { type Waker, wakerOf } from './wake.ts'

export type RestateOptions = {
  /** It drives what Restate wakes. Do not call `work` on it. */
  readonly harness: Pick<Harness, 'look' | 'work'>
  /** The store of that harness. */
  readonly store: Store
  /** The public keys that requests must be signed with: Restate logs its own when it starts, as `publickeyv1_…`. */
  readonly identityKeys: readonly string[]
  /** Where Restate takes wakes. Default: http://127.0.0.1:8080 */
  readonly ingress?: string
  /** Where this worker listens. Default: 127.0.0.1, port 9080; port 0 takes any. */
  readonly host?: string
  readonly port?: number
  /** The name of the virtual object. Workers that have different agents need different names. Default: session */
  readonly name?: string
  /** Restate gives up a wake after this long without an answer, and sends it again. The session is driven on. Default: 24 hours. */
  readonly abortMs?: number
  /** Whether this worker tells Restate of what is due in the store. One of all workers must. Default: true */
  readonly relay?: boolean
  /** Told of wakes that failed, of requests that were refused and of a Restate that cannot be reached. Default: a warning of the process. */
  readonly onError?: (where: string, error: unknown) => void
}

export interface RestateWorker {
  /** What to register with Restate. */
  readonly url: string
  /** Takes no more wakes: Restate sends them again, to whoever listens then. Harness and store stay open. */
  close(): Promise<void>
}

const DAY_MS = 24 * 3_600_000
const HANDLER = 'wake'

const keyCheck: Check = (value) =>
  typeof value === 'string' && /^publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,64}$/.test(value)
    ? null
    : `must be a public key as Restate logs it, "publickeyv1_…", not ${shown(value)}`
const keysCheck: Check = (value, name, of) =>
  Array.isArray(value) && value.length === 0
    ? 'must name at least one key: without one anybody could wake sessions'
    : listOf(keyCheck)(value, name, of)
const urlCheck: Check = (value) =>
  typeof value === 'string' && /^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(value) && URL.canParse(value)
    ? null
    : 'must be an address such as http://127.0.0.1:8080, without a name, password or query'
const nameCheck: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z][\w.-]{0,99}$/.test(value)
    ? null
    : `must begin with a letter and have only letters, digits, "_", "." and "-", not ${shown(value)}`

const checkOptions = optionsOf<RestateOptions>('restate', {
  harness: needed(having('give new Harness({ … })', 'look', 'work'), 'Give new Harness({ … }).'),
  store: needed(having('give the store of the harness', 'due', 'card', 'watchDue'), 'Give the store of the harness.'),
  identityKeys: needed(
    keysCheck,
    'Start Restate with a request identity key: it logs the public key, "publickeyv1_…".',
  ),
  ingress: urlCheck,
  host: filled,
  port: count(0, 65_535),
  name: nameCheck,
  abortMs: wait,
  relay: flag,
  onError: callable,
})

/** Listens, and drives what Restate wakes. Rejects with `invalid_config` if the SDK cannot be used here, before it listens. */
export async function restate(options: RestateOptions): Promise<RestateWorker> {
  checkOptions(options)
  const { harness, store, name = 'session', abortMs = DAY_MS, host = '127.0.0.1', port = 9080 } = options
  const { ingress: address = 'http://127.0.0.1:8080', identityKeys, relay: relays = true } = options
  const onError = reporter(options.onError ?? warn)
  // It does nothing but refuse a harness that may not drive.
  await harness.work({ signal: AbortSignal.abort() })
  const sdk = await loadSdk()
  await store.open()
  const ingress = new Ingress(address, name, systemClock)
  const wake = handlerOf(sdk, ingress, wakerOf(store, harness), onError)
  const handlers = { [HANDLER]: sdk.handlers.object.exclusive(policyOf(abortMs), wake) }
  const handle = sdk.createEndpointHandler({
    services: [sdk.object({ name, handlers })],
    identityKeys: [...identityKeys],
    logger: ({ level }, message: unknown) => {
      if (level === 'error') onError('restate', new Error(explained(String(message))))
    },
  })
  const server = createServer(handle)
  const cut = connectionsOf(server)
  const bound = await listening(server, host, port)
  const relay = relays
    ? new Relay({ store, clock: systemClock, ingress, report: (error) => onError('relay', error) })
    : null
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: async () => {
      const relayed = relay?.close()
      // A Restate that does not answer is not waited for.
      ingress.close()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      cut()
      await closed
      await relayed
    },
  }
}

/** No answer is kept, and a wake is tried for as long as it takes: by default Restate pauses it after 70 attempts, and says nothing. */
function policyOf(abortMs: number) {
  return {
    journalRetention: 0,
    idempotencyRetention: 0,
    inactivityTimeout: abortMs,
    abortTimeout: abortMs,
    retryPolicy: { initialInterval: 100, exponentiationFactor: 2, maxInterval: 10_000, maxAttempts: 2 ** 31 },
  }
}

/** Restate shows what a handler throws to whoever looks there: the reason stays here, with `onError`. */
function handlerOf(sdk: Sdk, ingress: Ingress, wake: Waker, onError: (where: string, error: unknown) => void) {
  return async (ctx: { readonly key: string }, input: unknown): Promise<void> => {
    const times = typeof input === 'number' && Number.isSafeInteger(input) && input >= 0 ? input : 0
    try {
      const { after } = await wake(ctx.key, times)
      if (after !== null) await ingress.send({ session: ctx.key, times: times + 1, ...after })
    } catch (error) {
      const code = error instanceof Fault ? error.code : null
      if (code === 'session_missing') throw new sdk.TerminalError('There is no such session.', { errorCode: 404 })
      if (code === 'invalid_input') throw new sdk.TerminalError('This is no id of a session.', { errorCode: 400 })
      if (code === 'harness_closed') throw quiet('This worker closes. Restate tries again.')
      onError(`wake of ${shown(ctx.key)}`, error)
      throw quiet('This worker could not do it now. Its onError was told why, and Restate tries again.')
    }
  }
}

/** Without its stack, which names folders of this machine. */
function quiet(message: string): Error {
  const error = new Error(message)
  error.stack = message
  return error
}

function explained(message: string): string {
  if (!/ExpiredSignature|ImmatureSignature/.test(message)) return message
  return 'A signed request of Restate was refused: its clock and the clock of this machine differ by more than a minute. Set them right.'
}

/** Ends every connection: `close` of a server would wait for Restate to leave, and it stays. */
function connectionsOf(server: Http2Server): () => void {
  const open = new Set<ServerHttp2Session>()
  server.on('session', (session) => {
    open.add(session)
    session.on('close', () => open.delete(session))
    // A peer that resets its connection is no trouble of this process.
    session.on('error', () => {})
  })
  return () => {
    for (const session of open) session.destroy()
  }
}

function listening(server: Http2Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: Error) =>
      reject(new Fault('invalid_config', `Cannot listen on ${host}, port ${port}. Choose another.`, error.message)),
    )
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  })
}
