// What the editor does for the tools that work in one folder, where it offers that: files as it has them, and programs in its terminals.
// It decides nothing: what may be read, written and run was decided before, and an editor is asked for exactly that.
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
import type { EditorDoors, Program, ProgramEnd } from './desk.ts'
import { pause } from './questions.ts'

/** Of the protocol: the editor has no such file. */
const NOT_FOUND = -32_002
const ANSWER_MS = 30_000
/** For the end of a program after its terminal was told to kill it. */
const STOPPED_MS = 3_000
/** The longest that a timer can wait. */
const LONGEST_MS = 2_147_483_647

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
      const asked = { sessionId: this.#session, path }
      const shown = await this.#client.request(methods.client.fs.readTextFile, asked, inTime())
      const { content } = shown as ReadTextFileResponse
      return content
    } catch (error) {
      if (isError(error) && error.code === NOT_FOUND) return null
      throw error
    }
  }

  async writeText(path: string, content: string): Promise<void> {
    const asked = { sessionId: this.#session, path, content }
    await this.#client.request(methods.client.fs.writeTextFile, asked, inTime())
  }

  async startProgram(program: Program): Promise<() => Promise<ProgramEnd>> {
    const { session: sessionId, command, args, cwd } = program
    const asked = { sessionId, command, args: [...args], cwd }
    const made = await this.#client.request(methods.client.terminal.create, asked, inTime())
    const { terminalId } = made as CreateTerminalResponse
    return () => this.#endOf(program, terminalId)
  }

  /** The call shows the terminal, and goes on to show it after it was released. */
  async #endOf({ session: sessionId, toolCallId, signal }: Program, terminalId: string): Promise<ProgramEnd> {
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
      // A prompt that was stopped does not wait for an editor that does not answer.
      const ended = await Promise.race([exit, untilLate(signal, done.signal)])
      if (ended === null) return { exitCode: null, output: '' }
      const { output } = (await this.#client.request(terminal.output, about, inTime())) as TerminalOutputResponse
      return { exitCode: ended.exitCode ?? null, output }
    } finally {
      done.abort()
      signal.removeEventListener('abort', kill)
      // The editor ends what still runs in it.
      void this.#client.request(terminal.release, about).catch(() => {})
    }
  }
}

/** An editor that does not answer is one that refuses. */
function inTime() {
  return { cancellationSignal: AbortSignal.timeout(ANSWER_MS), stopWaitingOnCancel: true }
}

/** Null, a while after the stop. It ends with `done`. */
async function untilLate(stop: AbortSignal, done: AbortSignal): Promise<null> {
  await pause(LONGEST_MS, AbortSignal.any([stop, done]))
  await pause(STOPPED_MS, done)
  return null
}

function isError(error: unknown): error is { readonly code: number } {
  return error !== null && typeof error === 'object' && 'code' in error
}
