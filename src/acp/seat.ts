// One session that an editor has open: its history, told once, and one prompt at a time, followed until its run ends. All of it is read
// from the log, so a seat that is lost with its process loses nothing.
import type { ContentBlock, StopReason } from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import { randomUUID } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Result } from '../sessions/result.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { RunStream, Session } from '../sessions/verbs.ts'
import { type Item, Teller } from '../ui/teller.ts'
import { answerIn, inputOf } from './content.ts'
import type { Desk, Mode, NamedServer, Wanted } from './desk.ts'
import type { Doors } from './doors.ts'
import type { Editor } from './editor.ts'
import { askPending, openQuestion, pause, sayQuestion } from './questions.ts'
import type { Allowed } from './servers.ts'
import { callName, Updates } from './updates.ts'
import { shellCommand } from '../view/shell.ts'
import { shownId } from '../view/clean.ts'

const PAGE = 1_000
/** How long to wait before a session that sleeps is looked at again. */
const WAIT_MS_MIN = 1_000
const WAIT_MS_MAX = 60_000

export type SeatOptions = {
  readonly desk: Desk
  readonly editor: Editor
  readonly allowed: Allowed
  readonly id: string
  readonly folder: string
  readonly mode: Mode
  readonly servers: readonly NamedServer[]
  readonly doors: Doors
}

/** A prompt at work. `begun` resolves when its message is on disk. */
type Turn = {
  readonly stop: AbortController
  readonly decided: Set<string>
  session: Session | null
  begin: () => void
  readonly begun: Promise<void>
  stopped: Promise<void>
}

export class Seat {
  readonly #options: SeatOptions
  readonly #updates: Updates
  readonly #teller: Teller
  /** What a person said to the servers that the editor names, by digest. */
  readonly #said = new Map<string, boolean>()
  /** Messages that the editor sent itself: it shows them already. */
  readonly #own = new Set<string>()
  #mode: Mode
  #seq = 0
  #exists = false
  #turn: Turn | null = null

  constructor(options: SeatOptions) {
    const { id, folder } = options
    this.#options = options
    this.#mode = options.mode
    this.#teller = new Teller(id, '')
    this.#updates = new Updates(id, folder, async (ref) => (await this.#session()).blob(ref))
  }

  get busy(): boolean {
    return this.#turn !== null
  }

  get folder(): string {
    return this.#options.folder
  }

  get doors(): Doors {
    return this.#options.doors
  }

  set mode(mode: Mode) {
    this.#mode = mode
  }

  /** Tells all that the log has, or with `silent` only learns it. */
  async read(silent: boolean): Promise<void> {
    const { editor, id } = this.#options
    this.#exists = true
    const session = await this.#session()
    const [first] = (await session.read(0, 1)).events
    if (first?.type === 'session.created' && first.fork && !silent) await this.#before(first.fork, new Set([id]))
    await this.#history(session, Number.MAX_SAFE_INTEGER, async (event) => {
      const items = this.#teller.see(event)
      this.#seq = event.seq
      await this.#tell(this.#updates, event, items, silent)
    })
    if (silent) return
    const question = openQuestion(await this.#pending(session, []))
    if (question) await sayQuestion(editor, id, question)
    else if (this.#teller.open !== null)
      await editor.notice(id, 'The last run is not finished. It goes on with your next message.')
  }

  /** The logs that a fork goes on from, the oldest first. */
  async #before(
    { session: id, seq }: { readonly session: string; readonly seq: number },
    seen: Set<string>,
  ): Promise<void> {
    if (seen.has(id)) return
    seen.add(id)
    const { desk, folder } = this.#options
    const session = await desk.session(id, this.#wanted([]))
    const [first] = (await session.read(0, 1)).events
    if (first?.type === 'session.created' && first.fork) await this.#before(first.fork, seen)
    const teller = new Teller(id, '')
    const updates = new Updates(id, folder, (ref) => session.blob(ref))
    await this.#history(session, seq, (event) => this.#tell(updates, event, teller.see(event), false))
  }

  async #history(session: Session, upTo: number, see: (event: Event) => Promise<void>): Promise<void> {
    for (let after = 0; ; ) {
      const { events, damaged } = await session.read(after, PAGE)
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

  async #tell(updates: Updates, event: Event, items: readonly Item[], silent: boolean): Promise<void> {
    const { editor, id } = this.#options
    for (const { told } of items) {
      if (told.type === 'user' && (this.#own.delete(told.id) || isReport(event))) continue
      const made = await updates.of(told, event)
      if (!silent) for (const update of made) await editor.update(id, update)
    }
    if (event.type !== 'agent.tool_use' && event.type !== 'agent.custom_tool_use') return
    if (!silent) for (const update of updates.began(event.call)) await editor.update(id, update)
  }

  async prompt(blocks: readonly ContentBlock[]): Promise<StopReason> {
    if (this.#turn) throw new Fault('session_busy', 'A prompt of this session is at work. Cancel it, or wait for it.')
    const turn = turnOf()
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

  async #run(blocks: readonly ContentBlock[], turn: Turn): Promise<StopReason> {
    const { allowed, editor, id, folder, servers, desk, doors } = this.#options
    doors.use(id)
    const { signal } = turn.stop
    const input = inputOf(blocks)
    const using = await allowed.ask({ editor, session: id, folder, signal }, servers, this.#said)
    if (using === null) return 'cancelled'
    const session = await this.#opened(using)
    if (signal.aborted) return 'cancelled'
    turn.session = session
    const question = openQuestion(await this.#pending(session, using))
    let stream: RunStream
    if (question) {
      const content = answerIn(blocks)
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

  /** What waits in the session and below it, each once. */
  async #pending(session: Session, servers: readonly NamedServer[]): Promise<readonly PendingCall[]> {
    const { pending } = await session.state()
    const below = await this.#options.desk.waitingBelow(session.id, this.#wanted(servers))
    const known = new Set(pending.map(({ sessionId, callId }) => `${sessionId} ${callId}`))
    return [...pending, ...below.filter(({ sessionId, callId }) => !known.has(`${sessionId} ${callId}`))]
  }

  /** Until its run has ended, and so have the runs of what it started: their questions are asked here too. */
  async #follow(session: Session, first: RunStream, turn: Turn, servers: readonly NamedServer[]): Promise<StopReason> {
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
        if (next === 'done' && !signal.aborted) return endOf(result)
      }
      if (signal.aborted) {
        await turn.stopped
        await this.#show(this.#followed(session), turn)
        return 'cancelled'
      }
      if (result.status === 'sleeping') {
        await editor.notice(id, result.reason ?? 'It goes on later.')
        await pause(waitMs(result.until), signal)
        continue
      }
      const asked = await askPending(place)
      if (asked === 'later') return 'end_turn'
      if (asked === 'stop') this.cancel()
      if (signal.aborted) await turn.stopped
    }
  }

  /** To the end of the stream: every event once, in order. */
  async #show(stream: RunStream, turn: Turn): Promise<Result> {
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
    const name = callName(id, event.session, event.call)
    const made = event.type === 'agent.tool_use' ? this.#updates.began(name) : await this.#updates.ended(name, event)
    for (const update of made) await editor.update(id, update)
  }

  /** Stops the prompt that is at work. Without one there is nothing to stop. */
  cancel(): void {
    const turn = this.#turn
    if (!turn || turn.stop.signal.aborted) return
    turn.stop.abort()
    const failed = (error: unknown): void =>
      this.#options.desk.note(`The session could not be stopped: ${String(error)}`)
    // Not before its message is on disk: a stop is for what was said before it.
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

  #wanted(servers: readonly NamedServer[]): Wanted {
    const { folder, doors } = this.#options
    return { folder, mode: this.#mode, servers, doors }
  }

  #session(): Promise<Session> {
    return this.#options.desk.session(this.#options.id, this.#wanted([]))
  }

  /** A session is on disk from its first prompt on: an editor opens many that are never used. */
  async #opened(servers: readonly NamedServer[]): Promise<Session> {
    const { desk, id } = this.#options
    if (this.#exists) return desk.session(id, this.#wanted(servers))
    const session = await desk.open(id, this.#wanted(servers))
    this.#exists = true
    return session
  }
}

/** What a subagent told the session: no person said it. */
function isReport(event: Event): boolean {
  return event.type === 'user.message' && event.report !== undefined
}

function turnOf(): Turn {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  return { stop: new AbortController(), decided: new Set(), session: null, begin, begun, stopped: Promise.resolve() }
}

function waitMs(until: number | null): number {
  return Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, (until ?? 0) - Date.now()))
}

/** How a prompt ended, in the words of the protocol. What is no answer is an error that says why. */
function endOf(result: Result): StopReason {
  if (result.status === 'completed') return result.stopReason
  if (result.status === 'interrupted') return 'cancelled'
  if (result.status === 'limit' && result.limit !== 'usd') return 'max_turn_requests'
  throw new RequestError(-32_603, troubleOf(result), { code: result.stopReason, status: result.status })
}

function troubleOf(result: Result): string {
  const { sessionId } = result
  if (result.status === 'limit')
    return `The budget is used up. Raise it: ${shellCommand`terret approve ${sessionId} budget --usd DOLLARS`}.`
  if (result.status === 'failed') return result.failure.message || 'The run failed.'
  return result.status === 'halted' ? result.reason : 'The run ended without an answer.'
}
