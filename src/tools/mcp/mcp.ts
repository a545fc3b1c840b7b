// The tools of an MCP server, as a source of tools: connected when first needed, once for all runs; each definition pinned; every
// call bounded. The connection is link.ts, what was approved pins.ts. It offers a server nothing and runs nothing itself.
import type { BlobRef, Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { callFailure, comesBack, isTransport, said, Unreachable } from './failure.ts'
import { type Link, openLink, orAborted, type CallResult } from './link.ts'
import { Offers, type Run } from './offer.ts'
import { type McpOptions, type Settings, settingsOf } from './options.ts'
import { type McpChange, memoryPins, Pinned } from './pins.ts'
import { visible, without, revealed } from './text.ts'
import { type Output, ToolFailure, envelopeOf, type Metadata, ModelRetry, output } from '../core/output.ts'
import type { Tool, ToolContext, ToolSource } from '../core/tool.ts'

export type { McpHttpOptions, McpOptions, McpStdioOptions } from './options.ts'
export { filePins, type McpChange, type Pin, type Pins } from './pins.ts'

export type McpStatus = Frozen<{
  state: 'idle' | 'connected' | 'unreachable' | 'changed'
  /** What the server calls itself. */
  server: string
  /** The tools that are offered, by the names models use. */
  tools: readonly string[]
  /** Why the server is skipped, and why tools of it are. */
  troubles: readonly string[]
  /** Messages that were dropped on this connection: junk, answers to no question, too many questions. */
  dropped: number
}>

export interface McpServer extends ToolSource {
  status(): McpStatus
  /** What is no longer as it was approved, with what it was and what it is. Nothing of it is offered. */
  changes(): readonly McpChange[]
  /** Approves a change as `changes` shows it: of a tool by the server's name for it, or without a name of the server itself. */
  approve(tool?: string): Promise<void>
}

/** Nothing is started or asked until a run needs it. Closed with the harness; a run after that connects anew. */
export function mcpServer(options: McpOptions): McpServer {
  return new Source(settingsOf(options))
}

const TROUBLE_CHARS_MAX = 600
const BACKOFF_MS = 1_000
const BACKOFF_MS_MAX = 60_000
/** A connection that lasted this long was a good one: its end is the first failure again. */
const SOUND_MS = 60_000

type Asked = { readonly controller: AbortController; readonly answer: Promise<readonly Tool[]>; waiting: number }

class Source implements McpServer {
  readonly type = 'source'
  readonly name: string
  readonly #settings: Settings
  readonly #pinned: Pinned
  readonly #offers: Offers
  /** All that are open, also those that only finish their calls. */
  readonly #links = new Set<Link>()
  /** All that are under way, also those that only clean up. */
  readonly #asking = new Set<Asked>()
  #link: Link | null = null
  #asked: Asked | null = null
  #trouble = ''
  #reason = ''
  #away = false
  #failures = 0
  #retryAt = 0

  constructor(settings: Settings) {
    const { name, pins = memoryPins() } = settings.options
    this.name = name
    this.#settings = settings
    this.#pinned = new Pinned(pins, name, settings.place)
    this.#offers = new Offers(settings, this.#pinned, (run) => this.#call(run))
  }

  async tools(signal: AbortSignal, clock: Clock): Promise<readonly Tool[]> {
    const { options } = this.#settings
    if (options.tools?.length === 0) return []
    try {
      return await this.#ask(signal, clock)
    } catch (error) {
      if (signal.aborted) throw error
      // One broken server does not stop a run that can do without it: `warnings` says what is missing.
      if (!options.required) return []
      if (error instanceof Fault) throw error
      const why = `MCP server "${this.name}" is required and cannot be used. ${this.#trouble} Mend it, or make it not required.`
      throw comesBack(error) ? new ToolFailure('Unavailable', why) : new Fault('invalid_config', why)
    }
  }

  warnings(): readonly string[] {
    const server = `MCP server "${this.name}"`
    // Without when it is tried again, so that the same trouble is the same warning.
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
      server: visible(link?.server ?? '', 200),
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

  /** Callers that ask at the same time share one request. When no caller waits for it any more, it is stopped. */
  async #ask(signal: AbortSignal, clock: Clock): Promise<readonly Tool[]> {
    this.#asked ??= this.#begin(clock)
    const asked = this.#asked
    asked.waiting += 1
    try {
      return await orAborted(asked.answer, signal)
    } finally {
      asked.waiting -= 1
      if (asked.waiting === 0) this.#leave(asked)
    }
  }

  #leave(asked: Asked): void {
    if (this.#asked === asked) this.#asked = null
    asked.controller.abort()
  }

  #begin(clock: Clock): Asked {
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

  async #connect(clock: Clock, signal: AbortSignal): Promise<Link> {
    const wait = this.#retryAt - clock.now()
    if (wait > 0) {
      const again = `It is tried again in ${Math.ceil(wait / 1_000)} s.`
      throw new Unreachable(`${this.#reason} ${again}`, { away: this.#away })
    }
    const link = await openLink(this.#settings, clock, signal).catch((error: unknown) => {
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

  /** The first failure is mended at once, the next ones with more and more patience. */
  #failed(clock: Clock, openedAt: number, error: unknown): void {
    this.#link = null
    this.#reason = this.#words(error)
    this.#away = comesBack(error)
    const now = clock.now()
    this.#failures = now - openedAt > SOUND_MS ? 1 : this.#failures + 1
    const waitMs = this.#failures === 1 ? 0 : Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** (this.#failures - 2))
    this.#retryAt = now + waitMs
  }

  async #call({ tool, definition, effect, inputSchema, args, context }: Run): Promise<Output> {
    const link = await this.#ready(tool, definition, context)
    const { signal } = context
    const { callMs, secrets } = this.#settings
    const info = { server: this.name, tool, effect, callMs, secrets }
    const result = await link.call({ name: tool, args, inputSchema, signal }).catch((error: unknown) => {
      if (signal.aborted) throw new ToolFailure('Interrupted', `"${tool}" was stopped.`, origin(info))
      if (isTransport(error)) link.retire()
      throw callFailure(error, { ...info, trouble: link.trouble })
    })
    return envelope(result, info, context)
  }

  /** A connection on which this tool is still what it was when the run began. */
  async #ready(tool: string, definition: string, { signal, clock }: ToolContext): Promise<Link> {
    const about = origin({ server: this.name, tool })
    // Asked before each call: a server need not say that its list has changed.
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
    return visible(without(this.#settings.secrets, said(error)), TROUBLE_CHARS_MAX)
  }
}

function origin({ server, tool }: { readonly server: string; readonly tool: string }) {
  return { server, tool }
}

// What a server gave back, as an envelope: structured content as JSON, else its texts; anything else is kept beside the log and
// named, and what models can see or hear is a part of the result. It trusts none of it: characters that hide text are taken out and counted.
// Texts are whole here, up to the 8 MiB that a message may have: like those of every tool they are made shorter on their way to a model.

type Part = CallResult['content'][number]
type Attachment = { readonly type: string; readonly media: string; readonly bytes: number; readonly blob: string }
type Doors = Pick<ToolContext, 'keep'>

const PARTS_MAX = 500
const LABEL_CHARS_MAX = 300

type Origin = { readonly server: string; readonly tool: string }

/** Throws a ModelRetry for what the tool itself calls an error. */
function envelope(result: CallResult, { server, tool }: Origin, context: Doors): Output {
  const attachments: Attachment[] = []
  const files: BlobRef[] = []
  const attach = (type: string, data: string, media: string): string => {
    const ref = context.keep(Buffer.from(data, 'base64'), media)
    attachments.push({ type, media, bytes: ref.bytes, blob: ref.hash })
    if (SHOWN.test(ref.media)) files.push(ref)
    return `${type}, ${media}, ${ref.bytes} bytes, kept as blob:${ref.hash}`
  }
  const parts = result.content.slice(0, PARTS_MAX).map((part) => ({ type: part.type, text: shown(part, attach) }))
  const structured = result.structuredContent
  // The texts beside structured content say the same again, for clients that do not know it. Those of an error say what went wrong.
  const texts = structured === undefined || result.isError ? parts : parts.filter(({ type }) => type !== 'text')
  const whole = [
    ...(structured === undefined ? [] : [envelopeOf(structured).content]),
    ...texts.map(({ text }) => text),
    ...(result.content.length > PARTS_MAX ? [`[… ${result.content.length - PARTS_MAX} more parts left out …]`] : []),
  ].join('\n')
  const { text, hidden } = revealed(whole)
  const about: Metadata = {
    server,
    tool,
    ...(attachments.length === 0 ? {} : { attachments }),
    ...(hidden === 0 ? {} : { hidden }),
  }
  if (result.isError)
    throw new ModelRetry(text || 'The tool failed and did not say why.', { ...about, error_type: 'MCPToolError' })
  return output({ content: text || '(nothing)', metadata: about, parts: files })
}

/** What a model may be able to see or hear. Whatever else there is, is only named. */
const SHOWN = /^(image\/|audio\/|application\/pdf$)/

function shown(part: Part, attach: (type: string, data: string, media: string) => string): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'audio':
      return `[${attach(part.type, part.data, mediaIn(part.mimeType))}]`
    case 'resource_link':
      return `[resource ${label(part.name)}: ${label(part.uri)}]`
    case 'resource': {
      const { resource } = part
      if ('text' in resource) return `[resource ${label(resource.uri)}]\n${resource.text}`
      return `[resource ${label(resource.uri)}: ${attach('file', resource.blob, mediaIn(resource.mimeType))}]`
    }
    default:
      return '[a part of a kind that is not known here]'
  }
}

function mediaIn(said = 'application/octet-stream'): string {
  return visible(said, 100)
}

function label(text: string): string {
  return visible(text.replace(/\s+/g, ' '), LABEL_CHARS_MAX)
}
