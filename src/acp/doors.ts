// What the editor does for the tools that work in one folder, where it offers that: files as it has them, and programs in its terminals.
// It decides nothing: what may be read, written and run was decided before, and an editor is asked for exactly that.
import {
  type AgentContext,
  type ClientCapabilities,
  type CreateTerminalResponse,
  methods,
  type SessionUpdate,
  type TerminalOutputResponse,
  type ToolCallContent,
  type WaitForTerminalExitResponse,
} from '@agentclientprotocol/sdk'
import type { EditorDoors, Program, ProgramEnd } from './desk.ts'

/** Of the protocol: the editor has no such file. */
const NOT_FOUND = -32_002

export class Doors implements EditorDoors {
  readonly #client: AgentContext
  readonly #capabilities: ClientCapabilities
  /** The session of this folder that was used last. A file is the same for all of them. */
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
      const { content } = await this.#client.request(methods.client.fs.readTextFile, { sessionId: this.#session, path })
      return content
    } catch (error) {
      if (isError(error) && error.code === NOT_FOUND) return null
      throw error
    }
  }

  async writeText(path: string, content: string): Promise<void> {
    await this.#client.request(methods.client.fs.writeTextFile, { sessionId: this.#session, path, content })
  }

  async startProgram(program: Program): Promise<() => Promise<ProgramEnd>> {
    const { session: sessionId, command, args, cwd } = program
    const asked = { sessionId, command, args: [...args], cwd }
    const made = await this.#client.request(methods.client.terminal.create, asked)
    const { terminalId } = made as CreateTerminalResponse
    return () => this.#endOf(program, terminalId)
  }

  /** The call shows the terminal, and goes on to show it after it was released. */
  async #endOf({ session: sessionId, toolCallId, signal }: Program, terminalId: string): Promise<ProgramEnd> {
    const { terminal } = methods.client
    const about = { sessionId, terminalId }
    const kill = (): void => void this.#client.request(terminal.kill, about).catch(() => {})
    try {
      if (signal.aborted) kill()
      signal.addEventListener('abort', kill, { once: true })
      if (toolCallId !== null) {
        const content: ToolCallContent[] = [{ type: 'terminal', terminalId }]
        const update: SessionUpdate = { sessionUpdate: 'tool_call_update', toolCallId, content }
        await this.#client.notify(methods.client.session.update, { sessionId, update })
      }
      const ended = (await this.#client.request(terminal.waitForExit, about)) as WaitForTerminalExitResponse
      const { output } = (await this.#client.request(terminal.output, about)) as TerminalOutputResponse
      return { exitCode: ended.exitCode ?? null, output }
    } finally {
      signal.removeEventListener('abort', kill)
      await this.#client.request(terminal.release, about).catch(() => {})
    }
  }
}

function isError(error: unknown): error is { readonly code: number } {
  return error !== null && typeof error === 'object' && 'code' in error
}
