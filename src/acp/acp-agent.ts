// Terret as an agent of the Agent Client Protocol, version 1: the protocol's methods over a SessionHost.
// editor-session.ts shows sessions and asks their questions; the host decides which agent works in a folder.
import {
  agent,
  type AgentApp,
  type AgentContext,
  type ClientCapabilities,
  type InitializeResponse,
  type ListSessionsResponse,
  type McpServer,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type SessionModeState,
} from '@agentclientprotocol/sdk'
import { randomUUID } from 'node:crypto'
import { isAbsolute } from 'node:path'
import { Fault } from '../kernel/failure.ts'
import type { SessionHost, SessionMode, SessionModes } from './session-host.ts'
import { AcpEditorIo } from './editor-io.ts'
import { Editor } from './editor.ts'
import { EditorSession } from './editor-session.ts'
import { ServerPermissions, parseServers } from './editor-servers.ts'

const LISTED = 50
const LISTED_MAX = 10_000
/** The most sessions that one editor may have open at once. */
const SESSIONS_MAX = 1_000

export type AcpServer = { readonly app: AgentApp; close(): void }

/** Creates the agent for one connection: `app.connect(stream)`. */
export function acpAgent(desk: SessionHost): AcpServer {
  const office = new EditorSessions(desk)
  const { session } = methods.agent
  const app = agent({ name: 'terret' })
    .onRequest(methods.agent.initialize, ({ params }) => office.begin(params.clientCapabilities ?? {}))
    .onRequest(methods.agent.authenticate, () => ({}))
    .onRequest(session.new, ({ params, client }) => withProtocolErrors(() => office.open(client, params)))
    .onRequest(session.load, ({ params, client }) => withProtocolErrors(() => office.load(client, params, false)))
    .onRequest(session.resume, ({ params, client }) => withProtocolErrors(() => office.load(client, params, true)))
    .onRequest(session.list, ({ params }) => withProtocolErrors(() => office.list(params)))
    .onRequest(session.close, ({ params }) => withProtocolErrors(() => office.leave(params.sessionId)))
    .onRequest(session.setMode, ({ params }) =>
      withProtocolErrors(() => office.setMode(params.sessionId, params.modeId)),
    )
    .onRequest(session.prompt, ({ params }) =>
      withProtocolErrors(async () => ({ stopReason: await office.seat(params.sessionId).prompt(params.prompt) })),
    )
    .onNotification(session.cancel, ({ params }) => office.cancel(params.sessionId))
  return { app, close: () => office.close() }
}

type SessionParams = {
  readonly cwd: string
  readonly mcpServers?: readonly McpServer[]
  readonly additionalDirectories?: readonly string[]
}

class EditorSessions {
  readonly #desk: SessionHost
  readonly #allowed = new ServerPermissions()
  readonly #seats = new Map<string, EditorSession>()
  readonly #doors = new Map<string, AcpEditorIo>()
  #capabilities: ClientCapabilities = {}

  constructor(desk: SessionHost) {
    this.#desk = desk
  }

  begin(capabilities: ClientCapabilities): InitializeResponse {
    this.#capabilities = capabilities
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'terret', title: 'Terret', version: this.#desk.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { list: {}, resume: {}, close: {} },
      },
      authMethods: [],
    }
  }

  async open(client: AgentContext, params: SessionParams) {
    const { folder, modes } = await this.#place(params)
    const id = randomUUID()
    const doors = this.#doorsOf(client, folder, id)
    await this.#desk.check({ folder, mode: modes.current, servers: [], doors })
    this.#take(id, this.#seatOf(client, id, { folder, modes, params }))
    return { sessionId: id, modes: modeState(modes) }
  }

  async load(client: AgentContext, params: SessionParams & { readonly sessionId: string }, silent: boolean) {
    const { sessionId: id } = params
    const { folder, modes } = await this.#place(params)
    const own = await this.#desk.folderOf(id)
    if (own === null) throw RequestError.sessionNotFound(id)
    if (own !== folder)
      throw new Fault('invalid_input', `Session ${id} works in ${own}, not in ${folder}. Open it from that folder.`)
    if (this.#seats.get(id)?.busy)
      throw new Fault('session_busy', 'A prompt of this session is at work. Cancel it, or wait for it.')
    const seat = this.#seatOf(client, id, { folder, modes, params })
    await seat.read(silent)
    this.#take(id, seat)
    return { modes: modeState(modes) }
  }

  async list({ cwd, cursor }: { cwd?: string | null; cursor?: string | null }): Promise<ListSessionsResponse> {
    const from = offsetFromCursor(cursor)
    const folder = cwd === null || cwd === undefined ? null : await this.#folder(cwd)
    const found = await this.#desk.list(folder, from, LISTED + 1)
    const sessions = found.slice(0, LISTED).map(({ id, folder: where, title, at }) => ({
      sessionId: id,
      cwd: where,
      title,
      updatedAt: new Date(at).toISOString(),
    }))
    const next = from + LISTED
    return { sessions, ...(found.length > LISTED && next < LISTED_MAX ? { nextCursor: String(next) } : {}) }
  }

  async setMode(id: string, mode: string) {
    const seat = this.seat(id)
    const { available } = await this.#desk.modes(seat.folder)
    const found = available.find((each) => each === mode)
    if (!found) throw new Fault('invalid_input', `The mode must be ${available.join(', ')} here, not "${mode}".`)
    await this.#desk.check({ folder: seat.folder, mode: found, servers: [], doors: seat.doors })
    seat.mode = found
    return {}
  }

  /** Closes the session in the editor. Its log stays, so it can be loaded again. */
  async leave(id: string) {
    const seat = this.#seats.get(id)
    this.#seats.delete(id)
    await seat?.close()
    return {}
  }

  /** An editor may cancel a session whose prompt has just ended, so an unknown id is no error. */
  cancel(id: string): void {
    this.#seats.get(id)?.cancel()
  }

  close(): void {
    this.#seats.clear()
  }

  seat(id: string): EditorSession {
    const seat = this.#seats.get(id)
    if (seat) return seat
    throw RequestError.sessionNotFound(id)
  }

  #take(id: string, seat: EditorSession): void {
    if (!this.#seats.has(id) && this.#seats.size >= SESSIONS_MAX)
      throw new Fault('too_many', `At most ${SESSIONS_MAX} sessions can be open at once. Close one.`)
    this.#seats.set(id, seat)
  }

  #seatOf(client: AgentContext, id: string, { folder, modes, params }: ResolvedParams): EditorSession {
    const editor = new Editor(client, this.#capabilities)
    const servers = parseServers(params.mcpServers ?? [])
    const doors = this.#doorsOf(client, folder, id)
    return new EditorSession({
      desk: this.#desk,
      editor,
      allowed: this.#allowed,
      id,
      folder,
      mode: modes.current,
      servers,
      doors,
    })
  }

  /** Each folder has one, because the tools of a folder are shared by its sessions. */
  #doorsOf(client: AgentContext, folder: string, id: string): AcpEditorIo {
    const doors = this.#doors.get(folder) ?? new AcpEditorIo(client, this.#capabilities, id)
    this.#doors.set(folder, doors)
    return doors
  }

  async #place({ cwd, additionalDirectories = [] }: SessionParams) {
    if (additionalDirectories.length > 0)
      throw new Fault('invalid_input', 'A session works in one folder. Leave additionalDirectories out.')
    const folder = await this.#folder(cwd)
    return { folder, modes: await this.#desk.modes(folder) }
  }

  #folder(cwd: string): Promise<string> {
    if (!isAbsolute(cwd)) throw new Fault('invalid_input', `The folder "${cwd}" must be a full path.`)
    return this.#desk.folder(cwd)
  }
}

type ResolvedParams = { readonly folder: string; readonly modes: SessionModes; readonly params: SessionParams }

const MODES: Readonly<Record<SessionMode, { readonly name: string; readonly description: string }>> = {
  plan: { name: 'Plan', description: 'Only look, and show a plan' },
  ask: { name: 'Ask', description: 'Ask before changes' },
  auto: { name: 'Auto', description: 'As each tool and your policy ask' },
}

function modeState({ current, available }: SessionModes): SessionModeState {
  return { currentModeId: current, availableModes: available.map((id) => ({ id, ...MODES[id] })) }
}

function offsetFromCursor(cursor: string | null | undefined): number {
  if (cursor === null || cursor === undefined) return 0
  const from = /^\d{1,5}$/.test(cursor) ? Number(cursor) : LISTED_MAX
  if (from < LISTED_MAX) return from
  throw new Fault('invalid_input', 'This is not a cursor of a list. Use the one that the last page gave.')
}

const CODES: Readonly<Record<string, number>> = {
  invalid_input: -32_602,
  invalid_config: -32_602,
  session_missing: -32_002,
}

/** Turns every refusal into a protocol error with one sentence and the stable code. */
async function withProtocolErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof RequestError) throw error
    const code = error instanceof Fault ? error.code : null
    const message = error instanceof Error ? error.message : String(error)
    throw new RequestError(CODES[code ?? ''] ?? -32_603, message, code === null ? undefined : { code })
  }
}
