// An editor for the tests of `terret acp`: the official client over the pipes of a real process, and all that came over them.
import { type ChildProcess, spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { Readable, Writable } from 'node:stream'
import {
  client,
  type ClientApp,
  type ClientCapabilities,
  type ClientConnection,
  type ClientContext,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type NewSessionRequest,
  methods,
  ndJsonStream,
  type PromptRequest,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import type { ChaosReply, ChaosRequest } from '../../src/testing/index.ts'
import { until } from '../until.ts'
import type { Stage } from '../cli/stage.ts'

type Permit = (
  asked: RequestPermissionRequest,
  signal: AbortSignal,
) => Promise<RequestPermissionResponse> | RequestPermissionResponse
type Fill = (asked: CreateElicitationRequest) => CreateElicitationResponse

export type EditorOptions = {
  readonly args?: readonly string[]
  readonly capabilities?: ClientCapabilities
  readonly permit?: Permit
  readonly fill?: Fill
  /** Handles what the editor offers beside permissions, such as its files and terminals. */
  readonly offer?: (app: ClientApp) => void
}
type Update = { readonly sessionId: string; readonly update: SessionUpdate }

export class Editor {
  readonly agent: ClientContext
  readonly child: ChildProcess
  readonly asked: RequestPermissionRequest[] = []
  /** May be set anew by each test. */
  permit: Permit
  readonly #cwd: string
  readonly #all: Update[] = []
  readonly #connection: ClientConnection
  readonly #ended: Promise<number | null>
  #err = ''

  constructor(stage: Stage, { args = [], permit, fill, offer }: EditorOptions = {}) {
    const { command, env, folder } = stage
    this.#cwd = folder
    this.permit = permit ?? (() => ({ outcome: { outcome: 'cancelled' } }))
    // Not in the folder: the editor says where a session works.
    const child = spawn(process.execPath, [command, 'acp', ...args], { cwd: dirname(folder), env, stdio: 'pipe' })
    this.child = child
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text
    })
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)))
    const app = client({ name: 'test-editor' })
      .onNotification(methods.client.session.update, ({ params }) => void this.#all.push(params))
      .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
        this.asked.push(params)
        return this.permit(params, signal)
      })
    if (fill) app.onRequest(methods.client.elicitation.create, ({ params }) => fill(params))
    offer?.(app)
    const output = Writable.toWeb(child.stdin) as WritableStream<Uint8Array>
    const input = Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>
    this.#connection = app.connect(ndJsonStream(output, input))
    this.agent = this.#connection.agent
  }

  get err(): string {
    return this.#err
  }

  get place(): NewSessionRequest {
    return { cwd: this.#cwd, mcpServers: [] }
  }

  async open(): Promise<string> {
    return (await this.agent.request(methods.agent.session.new, this.place)).sessionId
  }

  async prompt(sessionId: string, text: string): Promise<string> {
    const params: PromptRequest = { sessionId, prompt: [{ type: 'text', text }] }
    return (await this.agent.request(methods.agent.session.prompt, params)).stopReason
  }

  cancel(sessionId: string): Promise<void> {
    return this.agent.notify(methods.agent.session.cancel, { sessionId })
  }

  /** What is told again, and only that. */
  async load(sessionId: string): Promise<readonly SessionUpdate[]> {
    this.forget()
    await this.agent.request(methods.agent.session.load, { ...this.place, sessionId })
    return this.of(sessionId)
  }

  of(id: string): readonly SessionUpdate[] {
    return this.#all.flatMap(({ sessionId, update }) => (sessionId === id ? [update] : []))
  }

  forget(): void {
    this.#all.length = 0
    this.asked.length = 0
  }

  /** Waits until an update like this has come. */
  async sees(id: string, isIt: (update: SessionUpdate) => boolean): Promise<void> {
    await until(() => {
      if (!this.of(id).some(isIt)) throw new Error(`no such update yet\n${this.#err}`)
    })
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#ended
  }

  /** As an editor does that ends. */
  close(): Promise<number | null> {
    this.#connection.close()
    this.child.stdin?.destroy()
    return this.#ended
  }
}

/** Started, and asked what it can do. */
export async function openEditor(stage: Stage, options: EditorOptions = {}): Promise<Editor> {
  const editor = new Editor(stage, options)
  const { capabilities = {} } = options
  await editor.agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: capabilities })
  return editor
}

/** A provider that answers by the last message of a person, so that many sessions can use it in any order. */
export class Script {
  readonly #replies = new Map<string, ChaosReply[]>()
  readonly requests: ChaosRequest[] = []

  on(text: string, ...replies: readonly ChaosReply[]): string {
    this.#replies.set(text, [...replies])
    return text
  }

  readonly reply = (request: ChaosRequest): ChaosReply => {
    this.requests.push(request)
    const { messages = [] } = request.body as { readonly messages?: readonly { role: string; content: unknown }[] }
    const text = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '')
    const [, replies] = [...this.#replies].find(([key]) => text.includes(key)) ?? []
    const reply = replies?.shift()
    if (reply === undefined) throw new Error(`nothing to say to ${text}`)
    return reply
  }
}

/** Picks an option by its kind. */
export function picks(kind: string): Permit {
  return ({ options }) => {
    const option = options.find((each) => each.kind === kind)
    return { outcome: { outcome: 'selected', optionId: option?.optionId ?? 'none' } }
  }
}

/** What the agent said, as one text; or what it thought, or what the person said. */
export function said(updates: readonly SessionUpdate[], kind = 'agent_message_chunk'): string {
  return updates
    .flatMap((update) =>
      update.sessionUpdate === kind && 'content' in update && !Array.isArray(update.content) ? [update.content] : [],
    )
    .map((content) => (content?.type === 'text' ? content.text : ''))
    .join('')
}

export function callsIn(updates: readonly SessionUpdate[]) {
  return updates.flatMap((update) =>
    update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update' ? [update] : [],
  )
}
