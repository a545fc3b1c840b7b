// The file and terminal access that an editor offers to the tools of one folder: its open files, and programs in its
// terminals. It decides nothing: the request is checked before, and the editor gets exactly that request.
import {
  type AgentContext,
  type ClientCapabilities,
  type CreateTerminalResponse,
  methods,
  type ReadTextFileResponse,
  type SessionUpdate,
  type TerminalOutputResponse,
  type ToolCallContent,
  type WaitForTerminalExitResponse,
} from '@agentclientprotocol/sdk'
import type { EditorIo, EditorProgram, ProgramEnd } from './session-host.ts'
import { delay } from './questions.ts'

/** The protocol's error code for a file that the editor does not have. */
const NOT_FOUND = -32_002
const ANSWER_MS = 30_000
/** How long to wait for the end of a program after its terminal was told to kill it. */
const STOPPED_MS = 3_000
/** The longest that a timer can wait. */
const LONGEST_MS = 2_147_483_647

export class AcpEditorIo implements EditorIo {
  readonly #client: AgentContext
  readonly #capabilities: ClientCapabilities
  /** The session of this folder that was used last. Files are the same for all sessions of a folder. */
  #session: string

  constructor(client: AgentContext, capabilities: ClientCapabilities, session: string) {
    this.#client = client
    this.#capabilities = capabilities
    this.#session = session
  }

  use(session: string): void {
    this.#session = session
  }

  get readsFiles(): boolean {
    return this.#capabilities.fs?.readTextFile === true
  }

  get writesFiles(): boolean {
    return this.readsFiles && this.#capabilities.fs?.writeTextFile === true
  }

  get hasTerminals(): boolean {
    return this.#capabilities.terminal === true
  }

  async readText(path: string): Promise<string | null> {
    try {
      const asked = { sessionId: this.#session, path }
      const shown = await this.#client.request(methods.client.fs.readTextFile, asked, deadlineOptions())
      const { content } = shown as ReadTextFileResponse
      return content
    } catch (error) {
      if (isCodedError(error) && error.code === NOT_FOUND) return null
      throw error
    }
  }

  async writeText(path: string, content: string): Promise<void> {
    const asked = { sessionId: this.#session, path, content }
    await this.#client.request(methods.client.fs.writeTextFile, asked, deadlineOptions())
  }

  async startProgram(program: EditorProgram): Promise<() => Promise<ProgramEnd>> {
    const { session: sessionId, command, args, cwd } = program
    const asked = { sessionId, command, args: [...args], cwd }
    const made = await this.#client.request(methods.client.terminal.create, asked, deadlineOptions())
    const { terminalId } = made as CreateTerminalResponse
    return () => this.#endOf(program, terminalId)
  }

  /** The call shows the terminal, and keeps showing it after the release. */
  async #endOf({ session: sessionId, toolCallId, signal }: EditorProgram, terminalId: string): Promise<ProgramEnd> {
    const { terminal } = methods.client
    const about = { sessionId, terminalId }
    const done = new AbortController()
    const kill = (): void => void this.#client.request(terminal.kill, about).catch(() => {})
    try {
      if (signal.aborted) kill()
      signal.addEventListener('abort', kill, { once: true })
      if (toolCallId !== null) {
        const content: ToolCallContent[] = [{ type: 'terminal', terminalId }]
        const update: SessionUpdate = { sessionUpdate: 'tool_call_update', toolCallId, content }
        await this.#client.notify(methods.client.session.update, { sessionId, update })
      }
      const exit = this.#client.request(terminal.waitForExit, about) as Promise<WaitForTerminalExitResponse>
      exit.catch(() => {})
      // A stopped prompt does not wait for an editor that does not answer.
      const ended = await Promise.race([exit, waitForStopTimeout(signal, done.signal)])
      if (ended === null) return { exitCode: null, output: '' }
      const { output } = (await this.#client.request(
        terminal.output,
        about,
        deadlineOptions(),
      )) as TerminalOutputResponse
      return { exitCode: ended.exitCode ?? null, output }
    } finally {
      done.abort()
      signal.removeEventListener('abort', kill)
      // Releasing the terminal ends any program that still runs in it.
      void this.#client.request(terminal.release, about).catch(() => {})
    }
  }
}

/** A request that the editor does not answer in time counts as refused. */
function deadlineOptions() {
  return { cancellationSignal: AbortSignal.timeout(ANSWER_MS), stopWaitingOnCancel: true }
}

/** Resolves to null a while after the stop, or when `done` is aborted. */
async function waitForStopTimeout(stop: AbortSignal, done: AbortSignal): Promise<null> {
  await delay(LONGEST_MS, AbortSignal.any([stop, done]))
  await delay(STOPPED_MS, done)
  return null
}

function isCodedError(error: unknown): error is { readonly code: number } {
  return error !== null && typeof error === 'object' && 'code' in error
}
