// The tools of an MCP server, as a source of tools. It connects when first needed, once for all runs; each definition
// is pinned and every call is bounded. The connection is in mcp-connection.ts, the approved definitions in mcp-pins.ts.
// It offers a server nothing.
import type { BlobRef, Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { callFailure, mayComeBack, isTransportError, describeMcpError, Unreachable } from './mcp-failure.ts'
import { type McpConnection, openConnection, raceAbort, type CallResult } from './mcp-connection.ts'
import { OfferedTools, type McpToolRun } from './mcp-offers.ts'
import { type McpOptions, type McpSettings, readMcpSettings } from './mcp-options.ts'
import { type McpChange, memoryPins, ServerPin } from './mcp-pins.ts'
import { visibleText, withoutSecrets, removeHidden } from './readable-text.ts'
import { type Output, ToolFailure, toOutput, type OutputMetadata, ModelRetry, output } from '../core/tool-output.ts'
import type { Tool, ToolContext, ToolSource } from '../core/tool.ts'

export type { McpHttpOptions, McpOptions, McpStdioOptions } from './mcp-options.ts'
export { filePins, type McpChange, type McpPin, type McpPins } from './mcp-pins.ts'

/** How a server is. A connected one may have changed tools: they are held back, and `changes` has them. */
export type McpStatus = Frozen<{
  /** `idle`: no run needs it now. `changed`: it is run or reached in another way than approved, so it is not used. */
  state: 'idle' | 'connected' | 'unreachable' | 'changed'
  /** The server's own name and version. */
  server: string
  /** The offered tools, by the names that models use. */
  tools: readonly string[]
  /** Why the server is skipped, and why some of its tools are. */
  troubles: readonly string[]
  /** Messages that were dropped on this connection: invalid ones, answers without a request, too many requests. */
  dropped: number
}>

/** The tools of one MCP server, for the option `tools`, with how the server is. */
export interface McpServer extends ToolSource {
  /** How the server is now. It asks nobody. */
  status(): McpStatus
  /** Definitions that differ from the approved ones, old and new. Such tools are not offered. */
  changes(): readonly McpChange[]
  /**
   * Approves a change that `changes` shows: of a tool by the server's name for it, or of the server itself without a
   * name.
   */
  approve(tool?: string): Promise<void>
}

/** Nothing is started or asked until a run needs it. The harness closes it; a later run connects again. */
export function mcpServer(options: McpOptions): McpServer {
  return new McpToolSource(readMcpSettings(options))
}

const TROUBLE_CHARS_MAX = 600
const BACKOFF_MS = 1_000
const BACKOFF_MS_MAX = 60_000
/** A connection that lasted this long counts as good: its end is a first failure again. */
const SOUND_MS = 60_000

type ToolsRequest = { readonly controller: AbortController; readonly answer: Promise<readonly Tool[]>; waiting: number }

class McpToolSource implements McpServer {
  readonly type = 'source'
  readonly name: string
  readonly #settings: McpSettings
  readonly #pinned: ServerPin
  readonly #offers: OfferedTools
  /** All open connections, also those that only finish their calls. */
  readonly #links = new Set<McpConnection>()
  /** All requests for tools in progress, also those that only clean up. */
  readonly #asking = new Set<ToolsRequest>()
  #link: McpConnection | null = null
  #asked: ToolsRequest | null = null
  #trouble = ''
  #reason = ''
  #away = false
  #failures = 0
  #retryAt = 0

  constructor(settings: McpSettings) {
    const { name, pins = memoryPins() } = settings.options
    this.name = name
    this.#settings = settings
    this.#pinned = new ServerPin(pins, name, settings.place)
    this.#offers = new OfferedTools(settings, this.#pinned, (run) => this.#call(run))
  }

  async tools(signal: AbortSignal, clock: Clock): Promise<readonly Tool[]> {
    const { options } = this.#settings
    if (options.tools?.length === 0) return []
    try {
      return await this.#ask(signal, clock)
    } catch (error) {
      if (signal.aborted) throw error
      // A broken optional server does not stop the run: `warnings` says what is missing.
      if (!options.required) return []
      if (error instanceof Fault) throw error
      const why = `MCP server "${this.name}" is required and cannot be used. ${this.#trouble} Mend it, or make it not required.`
      throw mayComeBack(error) ? new ToolFailure('Unavailable', why) : new Fault('invalid_config', why)
    }
  }

  warnings(): readonly string[] {
    const server = `MCP server "${this.name}"`
    // Leave out the time of the next try, so that the same trouble gives the same warning.
    const why = this.#reason !== '' && this.#trouble.startsWith(this.#reason) ? this.#reason : this.#trouble
    if (why !== '') return [`${server} cannot be used, and its tools are missing. ${why}`]
    return this.#offers.troubles.map((text) => `${server}: ${text}`)
  }

  changes(): readonly McpChange[] {
    return this.#pinned.changes
  }

  approve(tool?: string): Promise<void> {
    return this.#pinned.approve(tool ?? null)
  }

  status(): McpStatus {
    const link = this.#link?.isUsable ? this.#link : null
    const isChanged = this.#pinned.changes.some(({ tool }) => tool === null)
    const down = isChanged ? 'changed' : this.#trouble === '' ? 'idle' : 'unreachable'
    return {
      state: link ? 'connected' : down,
      server: visibleText(link?.server ?? '', 200),
      tools: link ? this.#offers.names : [],
      troubles: [...(this.#trouble === '' ? [] : [this.#trouble]), ...(link ? this.#offers.troubles : [])],
      dropped: link?.dropped ?? 0,
    }
  }

  async close(): Promise<void> {
    for (const asked of this.#asking) asked.controller.abort()
    await Promise.allSettled([...this.#asking].map(({ answer }) => answer))
    this.#link = null
    await Promise.all([...this.#links].map((link) => link.close()))
  }

  /** Concurrent callers share one request. It is stopped when no caller waits for it any more. */
  async #ask(signal: AbortSignal, clock: Clock): Promise<readonly Tool[]> {
    this.#asked ??= this.#begin(clock)
    const asked = this.#asked
    asked.waiting += 1
    try {
      return await raceAbort(asked.answer, signal)
    } finally {
      asked.waiting -= 1
      if (asked.waiting === 0) this.#leave(asked)
    }
  }

  #leave(asked: ToolsRequest): void {
    if (this.#asked === asked) this.#asked = null
    asked.controller.abort()
  }

  #begin(clock: Clock): ToolsRequest {
    const controller = new AbortController()
    const answer = this.#look(clock, controller.signal).then(
      (tools) => {
        this.#trouble = ''
        return tools
      },
      (error: unknown) => {
        if (!controller.signal.aborted) this.#trouble = this.#words(error)
        throw error
      },
    )
    const asked = { controller, answer, waiting: 0 }
    this.#asking.add(asked)
    const forget = (): void => {
      this.#asking.delete(asked)
      this.#leave(asked)
    }
    answer.then(forget, forget)
    return asked
  }

  async #look(clock: Clock, signal: AbortSignal): Promise<readonly Tool[]> {
    if (!(await this.#pinned.isPlace())) {
      throw new Unreachable('It is run or reached in another way than was approved. Look at changes(), then approve().')
    }
    const link = this.#link?.isUsable ? this.#link : await this.#connect(clock, signal)
    const listed = await link.list(signal).catch((error: unknown) => {
      if (!signal.aborted) link.retire()
      throw error
    })
    return this.#offers.take(listed, link.instructions)
  }

  async #connect(clock: Clock, signal: AbortSignal): Promise<McpConnection> {
    const wait = this.#retryAt - clock.now()
    if (wait > 0) {
      const again = `It is tried again in ${Math.ceil(wait / 1_000)} s.`
      throw new Unreachable(`${this.#reason} ${again}`, { away: this.#away })
    }
    const link = await openConnection(this.#settings, clock, signal).catch((error: unknown) => {
      if (!signal.aborted) this.#failed(clock, clock.now(), error)
      throw error
    })
    this.#links.add(link)
    link.onGone(() => {
      this.#links.delete(link)
      if (this.#link === link)
        this.#failed(clock, link.openedAt, new Unreachable(link.trouble || 'It was lost.', { away: true }))
    })
    if (signal.aborted) {
      await link.close()
      throw new Unreachable('It was stopped.')
    }
    this.#link = link
    return link
  }

  /** After the first failure the next try is immediate; later ones wait longer and longer. */
  #failed(clock: Clock, openedAt: number, error: unknown): void {
    this.#link = null
    this.#reason = this.#words(error)
    this.#away = mayComeBack(error)
    const now = clock.now()
    this.#failures = now - openedAt > SOUND_MS ? 1 : this.#failures + 1
    const waitMs = this.#failures === 1 ? 0 : Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** (this.#failures - 2))
    this.#retryAt = now + waitMs
  }

  async #call({ tool, definition, effect, inputSchema, args, context }: McpToolRun): Promise<Output> {
    const link = await this.#ready(tool, definition, context)
    const { signal } = context
    const { callMs, secrets } = this.#settings
    const info = { server: this.name, tool, effect, callMs, secrets }
    const result = await link.call({ name: tool, args, inputSchema, signal }).catch((error: unknown) => {
      if (signal.aborted) throw new ToolFailure('Interrupted', `"${tool}" was stopped.`, callOrigin(info))
      if (isTransportError(error)) link.retire()
      throw callFailure(error, { ...info, trouble: link.trouble })
    })
    return resultToOutput(result, info, context)
  }

  /** Returns a connection on which the tool's definition is still that of the run. */
  async #ready(tool: string, definition: string, { signal, clock }: ToolContext): Promise<McpConnection> {
    const about = callOrigin({ server: this.name, tool })
    // List the tools before each call: a server need not announce that its list has changed.
    await this.#ask(signal, clock).catch((error: unknown) => {
      if (signal.aborted) throw new ToolFailure('Interrupted', `"${tool}" was stopped.`, about)
      const why = `MCP server "${this.name}" cannot be used. ${this.#words(error)}`
      throw new ToolFailure('Unavailable', why, { ...about, error_type: 'MCPError' })
    })
    if (!this.#offers.has(tool, definition)) {
      const why = `"${tool}" of MCP server "${this.name}" is no longer what it was when this run began. It was not called.`
      throw new ToolFailure('Denied', why, { ...about, error_type: 'MCPError' })
    }
    if (this.#link?.isUsable) return this.#link
    const why = `MCP server "${this.name}" was lost before "${tool}" was called.`
    throw new ToolFailure('Unavailable', why, { ...about, error_type: 'MCPError' })
  }

  #words(error: unknown): string {
    return visibleText(withoutSecrets(this.#settings.secrets, describeMcpError(error)), TROUBLE_CHARS_MAX)
  }
}

function callOrigin({ server, tool }: { readonly server: string; readonly tool: string }) {
  return { server, tool }
}

// Converts a server's result to an output: structured content as JSON, else its texts. Anything else is kept beside the
// log and named, and pictures and sounds become parts of the result. Nothing is trusted: characters that hide text are
// removed and counted. Texts stay whole here, up to the 8 MiB of a message; like those of every tool they are shortened
// before the model reads them.

type McpPart = CallResult['content'][number]
type Attachment = { readonly type: string; readonly media: string; readonly bytes: number; readonly blob: string }
type BlobKeeper = Pick<ToolContext, 'keep'>

const PARTS_MAX = 500
const LABEL_CHARS_MAX = 300

type CallOrigin = { readonly server: string; readonly tool: string }

/** Throws a ModelRetry if the result is marked as an error. */
function resultToOutput(result: CallResult, { server, tool }: CallOrigin, context: BlobKeeper): Output {
  const attachments: Attachment[] = []
  const files: BlobRef[] = []
  const attach = (type: string, data: string, media: string): string => {
    const ref = context.keep(Buffer.from(data, 'base64'), media)
    attachments.push({ type, media, bytes: ref.bytes, blob: ref.hash })
    if (SHOWN.test(ref.media)) files.push(ref)
    return `${type}, ${media}, ${ref.bytes} bytes, kept as blob:${ref.hash}`
  }
  const parts = result.content.slice(0, PARTS_MAX).map((part) => ({ type: part.type, text: partText(part, attach) }))
  const structured = result.structuredContent
  // Texts beside structured content repeat it for old clients, so they are skipped. Those of an error explain it, so
  // they are kept.
  const texts = structured === undefined || result.isError ? parts : parts.filter(({ type }) => type !== 'text')
  const whole = [
    ...(structured === undefined ? [] : [toOutput(structured).content]),
    ...texts.map(({ text }) => text),
    ...(result.content.length > PARTS_MAX ? [`[… ${result.content.length - PARTS_MAX} more parts left out …]`] : []),
  ].join('\n')
  const { text, hidden } = removeHidden(whole)
  const about: OutputMetadata = {
    server,
    tool,
    ...(attachments.length === 0 ? {} : { attachments }),
    ...(hidden === 0 ? {} : { hidden }),
  }
  if (result.isError)
    throw new ModelRetry(text || 'The tool failed and did not say why.', { ...about, error_type: 'MCPToolError' })
  return output({ content: text || '(nothing)', metadata: about, parts: files })
}

/** Media types that a model may be able to see or hear. Others are only named. */
const SHOWN = /^(image\/|audio\/|application\/pdf$)/

function partText(part: McpPart, attach: (type: string, data: string, media: string) => string): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'audio':
      return `[${attach(part.type, part.data, mediaLabel(part.mimeType))}]`
    case 'resource_link':
      return `[resource ${shortLabel(part.name)}: ${shortLabel(part.uri)}]`
    case 'resource': {
      const { resource } = part
      if ('text' in resource) return `[resource ${shortLabel(resource.uri)}]\n${resource.text}`
      return `[resource ${shortLabel(resource.uri)}: ${attach('file', resource.blob, mediaLabel(resource.mimeType))}]`
    }
    default:
      return '[a part of a kind that is not known here]'
  }
}

function mediaLabel(said = 'application/octet-stream'): string {
  return visibleText(said, 100)
}

function shortLabel(text: string): string {
  return visibleText(text.replace(/\s+/g, ' '), LABEL_CHARS_MAX)
}
