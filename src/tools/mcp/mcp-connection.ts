// One connection to one MCP server, from the handshake to the end: lists its tools, calls them, and leaves nothing
// behind. It is opened once and never repaired; its owner opens another. It does not know what a tool means or whether
// it may be called.
import type * as client from '@modelcontextprotocol/client'
import type { Client, Transport } from '@modelcontextprotocol/client'
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { mayComeBack, describeMcpError, Unreachable } from './mcp-failure.ts'
import { MessageFilter } from './message-filter.ts'
import type { McpOptions, McpSettings, McpHttpOptions } from './mcp-options.ts'
import { StdioTransport, MESSAGE_BYTES_MAX } from './stdio-transport.ts'
import { allowedEnvironment } from '../shell/sandbox.ts'
import { isObject } from '../../view/untrusted-json.ts'

export type RawTool = Readonly<Record<string, unknown>>
export type CallResult = Awaited<ReturnType<Client['callTool']>>
type ServerCall = {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal
}

const PAGES_MAX = 50
const TOOLS_MAX = 500
const GOODBYE_MS = 1_000
/** The protocol revision without a handshake. */
const NEWEST = '2026-07-28'
/** Our name in the logs of servers. We offer servers no capabilities. */
const SELF = { name: 'terret', version: '1' }

/** The SDK is an optional peer dependency because of its size: install it to use MCP. */
function missingPackage(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
  throw new Fault(
    'invalid_config',
    'MCP servers need a package of their own. Run: npm install @modelcontextprotocol/client',
  )
}

/** Opens a connection in time, or cleans up the attempt. */
export async function openConnection(settings: McpSettings, clock: Clock, signal: AbortSignal): Promise<McpConnection> {
  // Loaded with the first server: the SDK is as large as all of Terret.
  const sdk = await import('@modelcontextprotocol/client').catch(missingPackage)
  return runWithin({ clock, ms: settings.connectMs, signal }, async (limit) => {
    try {
      return await new McpConnection(settings, clock, sdk, false).open(limit)
    } catch (error) {
      if (limit.aborted || !(error instanceof Unreachable && error.cause instanceof sdk.ProtocolError)) throw error
      return new McpConnection(settings, clock, sdk, true).open(limit)
    }
  })
}

export class McpConnection {
  readonly openedAt: number
  readonly #settings: McpSettings
  readonly #clock: Clock
  readonly #client: Client
  readonly #inner: Transport
  readonly #gate: MessageFilter
  #onGone: () => void = () => {}
  #calls = 0
  #retired = false
  #gone = false
  #closing: Promise<void> | null = null

  constructor(settings: McpSettings, clock: Clock, sdk: Sdk, newest: boolean) {
    this.#settings = settings
    this.#clock = clock
    this.openedAt = clock.now()
    this.#inner = createTransport(settings.options, sdk, clock)
    this.#gate = new MessageFilter(this.#inner)
    this.#client = new sdk.Client(SELF, {
      // Offer the server nothing to ask for: no sampling, no elicitation, no roots.
      capabilities: {},
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode: negotiationMode(settings.options, newest) },
    })
    this.#client.onclose = () => {
      this.#gone = true
      this.#onGone()
    }
    this.#client.onerror = (error) => {
      // A broken stream of the old transport reconnects as a session without a handshake.
      if (error instanceof sdk.SseError) this.retire()
    }
  }

  async open(signal: AbortSignal): Promise<this> {
    try {
      const timeout = this.#settings.connectMs
      await raceAbort(this.#client.connect(this.#gate, { signal, timeout }), signal)
      return this
    } catch (error) {
      // Read it before closing: after that the process has ended because we ended it.
      const trouble = this.trouble
      const missing = this.#inner instanceof StdioTransport && this.#inner.isMissing
      const away = !missing && (signal.aborted || mayComeBack(error))
      await this.close()
      throw new Unreachable(describeMcpError(error, trouble), { cause: error, away })
    }
  }

  get isUsable(): boolean {
    return !this.#gone && !this.#retired
  }

  /** The server's own name and version. */
  get server(): string {
    const { name = '', version = '' } = this.#client.getServerVersion() ?? {}
    return `${name} ${version}`.trim()
  }

  get instructions(): string {
    return this.#client.getInstructions() ?? ''
  }

  get dropped(): number {
    return this.#gate.dropped
  }

  /** Why a child process ended, and its last error output. */
  get trouble(): string {
    return this.#inner instanceof StdioTransport ? this.#inner.trouble : ''
  }

  /** The listener is called once, when the connection is gone for any reason. */
  onGone(listener: () => void): void {
    this.#onGone = listener
  }

  /** Lists all pages. The caller checks each tool: one bad tool must not hide the others. */
  async list(signal: AbortSignal): Promise<readonly RawTool[]> {
    return this.#client.getServerCapabilities()?.tools ? this.#pages(signal) : []
  }

  #pages(signal: AbortSignal): Promise<readonly RawTool[]> {
    const { connectMs } = this.#settings
    return runWithin({ clock: this.#clock, ms: connectMs, signal }, async (limit) => {
      const tools: RawTool[] = []
      let cursor: string | undefined
      for (let page = 1; ; page++) {
        const params = cursor === undefined ? {} : { cursor }
        const options = { signal: limit, timeout: connectMs }
        const asked = this.#client.request({ method: 'tools/list', params }, ANYTHING, options)
        const result = readToolPage(await raceAbort(asked, limit))
        tools.push(...result.tools)
        if (tools.length > TOOLS_MAX) throw new Error(`It lists more than ${TOOLS_MAX} tools.`)
        if (result.next === undefined) return tools
        if (page === PAGES_MAX) throw new Error(`Its list of tools has more than ${PAGES_MAX} pages.`)
        cursor = result.next
      }
    })
  }

  async call({ name, args, inputSchema, signal }: ServerCall): Promise<CallResult> {
    this.#calls += 1
    try {
      const params = { name, arguments: { ...args } }
      // Leave out the output schema: its check would run a stranger's patterns, after the call has happened.
      const toolDefinition = { name, inputSchema: { ...inputSchema, type: 'object' as const } }
      return await this.#client.callTool(params, { signal, timeout: this.#settings.callMs, toolDefinition })
    } finally {
      this.#calls -= 1
      if (this.#retired && this.#calls === 0) void this.close()
    }
  }

  /** Takes no new calls, and closes when the running ones have ended. */
  retire(): void {
    this.#retired = true
    if (this.#calls === 0) void this.close()
  }

  /** Never rejects. */
  close(): Promise<void> {
    this.#retired = true
    this.#closing ??= this.#end()
    return this.#closing
  }

  async #end(): Promise<void> {
    const inner = this.#inner
    if ('terminateSession' in inner && typeof inner.terminateSession === 'function' && !this.#gone) {
      const goodbye = (inner.terminateSession as () => Promise<void>).bind(inner)
      const limit = { clock: this.#clock, ms: GOODBYE_MS, signal: new AbortController().signal }
      await runWithin(limit, (signal) => raceAbort(goodbye(), signal)).catch(() => {})
    }
    await this.#client.close().catch(() => {})
    // The client closes the transport only if it had taken it over.
    await inner.close().catch(() => {})
  }
}

function createTransport(options: McpOptions, sdk: Sdk, clock: Clock): Transport {
  if ('url' in options) return httpTransport(options, sdk, clock)
  const { command, args = [], env, cwd } = options
  return new StdioTransport({ command, args, env: { ...allowedEnvironment(process.env), ...env }, cwd }, clock)
}

/**
 * Over HTTP the server is asked for its version. On a pipe this question may end an old server, so there it comes
 * second.
 */
function negotiationMode(options: McpOptions, newest: boolean): 'auto' | 'legacy' | { readonly pin: string } {
  if ('url' in options) return options.transport === 'sse' ? 'legacy' : 'auto'
  return newest ? { pin: NEWEST } : 'legacy'
}

/** Accepts any result: the SDK would refuse a whole page because of one invalid tool. */
const ANYTHING = {
  '~standard': { version: 1 as const, vendor: 'terret', validate: (value: unknown) => ({ value }) },
}

function readToolPage(result: unknown): { readonly tools: readonly RawTool[]; readonly next: string | undefined } {
  if (!isObject(result) || !Array.isArray(result['tools'])) throw new Error('Its list of tools is not a list.')
  const next = result['nextCursor']
  return { tools: result['tools'].filter(isObject), next: typeof next === 'string' ? next : undefined }
}

type TimeLimit = { readonly clock: Clock; readonly ms: number; readonly signal: AbortSignal }

/** Gives the work a signal that aborts when the time is over, or when the outer signal aborts. */
async function runWithin<T>({ clock, ms, signal }: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  const cancel = clock.timer(ms, () => controller.abort(new Error(`It did not answer within ${ms} ms.`)))
  try {
    return await work(controller.signal)
  } finally {
    cancel()
    signal.removeEventListener('abort', abort)
  }
}

/** Settles with the promise, or rejects with the abort's reason, whichever comes first. */
export function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      const reason: unknown = signal.reason
      reject(reason instanceof Error ? reason : new Error('It was stopped.'))
    }
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

// A server at a URL: the SDK's transports, with a fetch that limits the response size. The SDK follows redirects only
// within the origin, so no header goes to another host. There is no OAuth here.

type Sdk = typeof client

/** A server that says `retry: 0` and hangs up must not make us reconnect without a pause. */
const RESUME_MS_MIN = 100
const [LF, CR] = [10, 13]
const RECONNECT = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 3,
}

function httpTransport(options: McpHttpOptions, sdk: Sdk, clock: Clock): client.Transport {
  const url = new URL(options.url)
  const common = { fetch: boundedFetch, requestInit: { headers: { ...options.headers } } }
  // oxlint-disable-next-line typescript/no-deprecated -- for servers that have no other; the user names it
  if (options.transport === 'sse') return new sdk.SSEClientTransport(url, common)
  return new sdk.StreamableHTTPClientTransport(url, {
    ...common,
    reconnectionOptions: RECONNECT,
    reconnectionScheduler: (reconnect, delay) => clock.timer(Math.max(delay, RESUME_MS_MIN), reconnect),
  })
}

async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (response.body === null) return response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const body = response.body.pipeThrough(limitMessageBytes(MESSAGE_BYTES_MAX, isStream))
  const { status, statusText, headers } = response
  return new Response(body, { status, statusText, headers })
}

/** Limits a body to `bytesMax`; in an event stream, each event. */
function limitMessageBytes(bytesMax: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  let lineBytes = 0
  let last = 0
  const count = (byte: number): void => {
    bytes += 1
    const isEnd = byte === LF || byte === CR
    // An empty line ends an event. CR LF is one line end.
    if (isEnd && lineBytes === 0 && !(byte === LF && last === CR)) bytes = 0
    lineBytes = isEnd ? 0 : lineBytes + 1
    last = byte
  }
  return new TransformStream({
    transform(chunk, controller) {
      if (isStream) chunk.forEach(count)
      else bytes += chunk.length
      if (bytes > bytesMax) controller.error(new Error(`The server sent a message over ${bytesMax} bytes.`))
      else controller.enqueue(chunk)
    },
  })
}
