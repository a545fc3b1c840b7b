// One session that an editor has open: its history, shown once, and one prompt at a time, followed until its run ends.
// All of it is read from the log, so nothing is lost when the process ends.
import { type ContentBlock, type StopReason, RequestError } from '@agentclientprotocol/sdk'
import { randomUUID } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { Result, RunStream, Session } from '../sessions/verbs.ts'
import { type PositionedItem, ItemBuilder } from '../ui/item-builder.ts'
import { answerText, promptInput } from './prompt-content.ts'
import type { SessionHost, SessionMode, NamedServer, RunSetup } from './session-host.ts'
import type { AcpEditorIo } from './editor-io.ts'
import type { Editor } from './editor.ts'
import { askPending, findOpenQuestion, delay, sendQuestion } from './questions.ts'
import type { ServerPermissions } from './editor-servers.ts'
import { toolCallIdOf, UpdateBuilder } from './updates.ts'
import { shellCommand } from '../view/shell-command.ts'
import { shownId } from '../view/clean.ts'

const PAGE = 1_000
/** The shortest and longest wait before a sleeping session is checked again. */
const WAIT_MS_MIN = 1_000
const WAIT_MS_MAX = 60_000

export type EditorSessionOptions = {
  readonly desk: SessionHost
  readonly editor: Editor
  readonly allowed: ServerPermissions
  readonly id: string
  readonly folder: string
  readonly mode: SessionMode
  readonly servers: readonly NamedServer[]
  readonly doors: AcpEditorIo
}

/** A prompt in progress. `begun` resolves when its message is on disk. */
type ActivePrompt = {
  readonly stop: AbortController
  readonly decided: Set<string>
  session: Session | null
  begin: () => void
  readonly begun: Promise<void>
  stopped: Promise<void>
}

export class EditorSession {
  readonly #options: EditorSessionOptions
  readonly #updates: UpdateBuilder
  readonly #teller: ItemBuilder
  /** The person's answers about the servers that the editor names, by digest. */
  readonly #said = new Map<string, boolean>()
  /** Ids of messages that this editor sent. It shows them already. */
  readonly #own = new Set<string>()
  #mode: SessionMode
  #seq = 0
  #exists = false
  #turn: ActivePrompt | null = null

  constructor(options: EditorSessionOptions) {
    const { id, folder } = options
    this.#options = options
    this.#mode = options.mode
    this.#teller = new ItemBuilder(id, '')
    this.#updates = new UpdateBuilder(id, folder, async (ref) => (await this.#session()).blob(ref))
  }

  get busy(): boolean {
    return this.#turn !== null
  }

  get folder(): string {
    return this.#options.folder
  }

  get doors(): AcpEditorIo {
    return this.#options.doors
  }

  set mode(mode: SessionMode) {
    this.#mode = mode
  }

  /** Shows the whole log to the editor. With `silent` it only reads the log. */
  async read(silent: boolean): Promise<void> {
    const { editor, id } = this.#options
    this.#exists = true
    const session = await this.#session()
    const [first] = (await session.events({ limit: 1 })).events
    if (first?.type === 'session.created' && first.fork && !silent) await this.#before(first.fork, new Set([id]))
    await this.#history(session, Number.MAX_SAFE_INTEGER, async (event) => {
      const items = this.#teller.see(event)
      this.#seq = event.seq
      await this.#tell(this.#updates, event, items, silent)
    })
    if (silent) return
    const question = findOpenQuestion(await this.#pending(session, []))
    if (question) await sendQuestion(editor, id, question)
    else if (this.#teller.open !== null)
      await editor.notice(id, 'The last run is not finished. It goes on with your next message.')
  }

  /** Shows the logs that a fork goes on from, the oldest first. */
  async #before(
    { session: id, seq }: { readonly session: string; readonly seq: number },
    seen: Set<string>,
  ): Promise<void> {
    if (seen.has(id)) return
    seen.add(id)
    const { desk, folder } = this.#options
    const session = await desk.session(id, this.#wanted([]))
    const [first] = (await session.events({ limit: 1 })).events
    if (first?.type === 'session.created' && first.fork) await this.#before(first.fork, seen)
    const teller = new ItemBuilder(id, '')
    const updates = new UpdateBuilder(id, folder, (ref) => session.blob(ref))
    await this.#history(session, seq, (event) => this.#tell(updates, event, teller.see(event), false))
  }

  async #history(session: Session, upTo: number, see: (event: Event) => Promise<void>): Promise<void> {
    for (let after = 0; ; ) {
      const { events, damaged } = await session.events({ after, limit: PAGE })
      for (const event of events) {
        if (event.seq > upTo) return
        await see(event)
        after = event.seq
      }
      if (damaged) {
        this.#options.desk.note(
          `The log of ${shownId(session.id)} is damaged at event ${damaged.seq}. Run: ${shellCommand`terret doctor --session ${session.id}`}`,
        )
        return
      }
      if (events.length === 0) return
    }
  }

  async #tell(updates: UpdateBuilder, event: Event, items: readonly PositionedItem[], silent: boolean): Promise<void> {
    const { editor, id } = this.#options
    for (const { told } of items) {
      if (told.type === 'user' && (this.#own.delete(told.id) || isChildReport(event))) continue
      const made = await updates.of(told, event)
      if (!silent) for (const update of made) await editor.update(id, update)
    }
    if (event.type !== 'agent.tool_use' && event.type !== 'agent.custom_tool_use') return
    if (!silent) for (const update of updates.began(event.call)) await editor.update(id, update)
  }

  async prompt(blocks: readonly ContentBlock[]): Promise<StopReason> {
    if (this.#turn) throw new Fault('session_busy', 'A prompt of this session is at work. Cancel it, or wait for it.')
    const turn = createActivePrompt()
    this.#turn = turn
    try {
      return await this.#run(blocks, turn)
    } finally {
      turn.begin()
      this.#turn = null
      // A stop that came at the very end is written before the next prompt.
      await turn.stopped
    }
  }

  async #run(blocks: readonly ContentBlock[], turn: ActivePrompt): Promise<StopReason> {
    const { allowed, editor, id, folder, servers, desk, doors } = this.#options
    doors.use(id)
    const { signal } = turn.stop
    const input = promptInput(blocks)
    const using = await allowed.ask({ editor, session: id, folder, signal }, servers, this.#said)
    if (using === null) return 'cancelled'
    const session = await this.#opened(using)
    if (signal.aborted) return 'cancelled'
    turn.session = session
    const question = findOpenQuestion(await this.#pending(session, using))
    let stream: RunStream
    if (question) {
      const content = answerText(blocks)
      if (content === '') throw new Fault('invalid_input', 'The agent asked a question. Answer it in words.')
      const { callId, sessionId } = question
      await session.answer({ callId, sessionId, content, by: desk.by })
      stream = this.#followed(session)
    } else {
      const own = randomUUID()
      this.#own.add(own)
      stream = session.stream(input, { id: own, by: desk.by, ...this.#following })
    }
    return this.#follow(session, stream, turn, using)
  }

  /** The pending calls of the session and of those below it, each once. */
  async #pending(session: Session, servers: readonly NamedServer[]): Promise<readonly PendingCall[]> {
    const { pending } = await session.status()
    const below = await this.#options.desk.waitingBelow(session.id, this.#wanted(servers))
    const known = new Set(pending.map(({ sessionId, callId }) => `${sessionId} ${callId}`))
    return [...pending, ...below.filter(({ sessionId, callId }) => !known.has(`${sessionId} ${callId}`))]
  }

  /**
   * Follows the session until its run and the runs of its children have ended. Questions of the children are asked here
   * too.
   */
  async #follow(
    session: Session,
    first: RunStream,
    turn: ActivePrompt,
    servers: readonly NamedServer[],
  ): Promise<StopReason> {
    const { desk, editor, folder, doors, id } = this.#options
    const { signal } = turn.stop
    const pending = () => this.#pending(session, servers)
    const sessionOf = (of: string): Promise<Session> => desk.session(of, this.#wanted(servers))
    const { decided } = turn
    const place = { desk, editor, folder, doors, session, signal, pending, sessionOf, decided, updates: this.#updates }
    for (let stream = first; ; stream = this.#followed(session)) {
      const result = await this.#show(stream, turn)
      const waits = result.status === 'requires_action' || result.status === 'sleeping'
      if (!waits && !signal.aborted) {
        const going = result.status === 'completed'
        const next = going ? await desk.children(id, this.#seq, this.#wanted(servers), signal) : 'done'
        if (next === 'news') continue
        if (next === 'done' && !signal.aborted) return promptStopReason(result)
      }
      if (signal.aborted) {
        await turn.stopped
        await this.#show(this.#followed(session), turn)
        return 'cancelled'
      }
      if (result.status === 'sleeping') {
        await editor.notice(id, result.reason ?? 'It goes on later.')
        await delay(waitMs(result.until), signal)
        continue
      }
      const asked = await askPending(place)
      if (asked === 'later') return 'end_turn'
      if (asked === 'stop') this.cancel()
      if (signal.aborted) await turn.stopped
    }
  }

  /** Shows every event of the stream once, in order. */
  async #show(stream: RunStream, turn: ActivePrompt): Promise<Result> {
    for await (const event of stream) {
      turn.begin()
      if (event.session === this.#options.id) await this.#see(event)
      else await this.#child(event)
    }
    return stream.result
  }

  async #see(event: StreamEvent): Promise<void> {
    if (event.type !== 'delta') this.#seq = event.seq
    const items = this.#teller.take(event)
    if (event.type !== 'delta') return this.#tell(this.#updates, event, items, false)
    const { editor, id } = this.#options
    for (const { told } of items)
      for (const update of await this.#updates.of(told, null)) await editor.update(id, update)
  }

  async #child(event: StreamEvent): Promise<void> {
    const { editor, id } = this.#options
    if (event.type !== 'agent.tool_use' && event.type !== 'agent.tool_result') return
    const name = toolCallIdOf(id, event.session, event.call)
    const made = event.type === 'agent.tool_use' ? this.#updates.began(name) : await this.#updates.ended(name, event)
    for (const update of made) await editor.update(id, update)
  }

  /** Stops the prompt in progress, if there is one. */
  cancel(): void {
    const turn = this.#turn
    if (!turn || turn.stop.signal.aborted) return
    turn.stop.abort()
    const failed = (error: unknown): void =>
      this.#options.desk.note(`The session could not be stopped: ${String(error)}`)
    // The stop waits until the message of the prompt is on disk, because a stop applies to messages before it.
    turn.stopped = turn.begun
      .then(async () => void (await turn.session?.interrupt('stop', { by: this.#options.desk.by })))
      .catch(failed)
  }

  async close(): Promise<void> {
    const turn = this.#turn
    this.cancel()
    await turn?.stopped
  }

  get #following() {
    return { after: this.#seq, deltas: true, detach: true }
  }

  #followed(session: Session): RunStream {
    return session.stream(undefined, this.#following)
  }

  #wanted(servers: readonly NamedServer[]): RunSetup {
    const { folder, doors } = this.#options
    return { folder, mode: this.#mode, servers, doors }
  }

  #session(): Promise<Session> {
    return this.#options.desk.session(this.#options.id, this.#wanted([]))
  }

  /** Stores the session at its first prompt: an editor opens many sessions that are never used. */
  async #opened(servers: readonly NamedServer[]): Promise<Session> {
    const { desk, id } = this.#options
    if (this.#exists) return desk.session(id, this.#wanted(servers))
    const session = await desk.open(id, this.#wanted(servers))
    this.#exists = true
    return session
  }
}

/** True for a message from a subagent, which no person wrote. */
function isChildReport(event: Event): boolean {
  return event.type === 'user.message' && event.report !== undefined
}

function createActivePrompt(): ActivePrompt {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  return { stop: new AbortController(), decided: new Set(), session: null, begin, begun, stopped: Promise.resolve() }
}

function waitMs(until: number | null): number {
  return Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, (until ?? 0) - Date.now()))
}

/** Returns the stop reason of the protocol. A run without an answer is an error that says why. */
function promptStopReason(result: Result): StopReason {
  if (result.status === 'completed') return result.stopReason
  if (result.status === 'interrupted') return 'cancelled'
  if (result.status === 'limit' && result.limit !== 'usd') return 'max_turn_requests'
  throw new RequestError(-32_603, troubleText(result), { code: result.stopReason, status: result.status })
}

function troubleText(result: Result): string {
  const { sessionId } = result
  if (result.status === 'limit')
    return `The budget is used up. Raise it: ${shellCommand`terret approve ${sessionId} budget --usd DOLLARS`}.`
  if (result.status === 'failed') return result.failure.message || 'The run failed.'
  return result.status === 'halted' ? result.reason : 'The run ended without an answer.'
}
