// The items of a stream: the events of a session and its children, and live deltas, in one numbered sequence. It only
// reads; the log is the truth.
import type { CallKey, Frozen, Json, Proposal } from '../../kernel/content.ts'
import { callKey, type Event } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { childId } from '../../view/ids.ts'
import { cloneJson } from '../../runtime/state/clone-json.ts'
import { type FollowedLogs, LogFollower } from './log-follower.ts'
import { deltaHeader, type Live, type LiveDelta } from '../../live/local-live.ts'
import type { CallsOf, ToolList } from '../../tools/core/tool-types.ts'
import { Queue } from '../queue.ts'

/** The place of an item in the tree of sessions. */
export type StreamSource = Frozen<{
  agent: string
  /** seq of the run's start; null before the first run that this stream saw. */
  run: number | null
  /** For a child: the session, run and call that it works for. */
  parent: Frozen<{ session: string; run: number | null; call: CallKey }> | null
}>

/** `sequence` counts the items of one stream, from 1. */
type StreamLine = Frozen<{ session: string; sequence: number; source: StreamSource }>
/** For `output`, `call` is the call that printed it. */
type StreamDelta = { readonly type: 'delta'; readonly call?: CallKey } & LiveDelta
type CalledTool = Frozen<{ callId: CallKey; tool: string; args: Json }>
/**
 * Events of a call also carry the call itself, because the reply that proposed it may lie before the reader's place.
 */
type CallEvent = { readonly type: 'agent.tool_use' | 'agent.custom_tool_use' | 'agent.tool_result' }
type ShownEvent<E extends Event, Tools extends ToolList[number]> = E extends CallEvent
  ? E & { readonly callId: CallKey } & CallsOf<Tools>
  : E
/** If the tools are known as types, `tool` tells the events of calls apart. */
export type StreamEvent<Tools extends ToolList[number] = ToolList[number]> =
  | (ShownEvent<Event, Tools> & StreamLine)
  | (StreamDelta & StreamLine)

/** The logs and the live deltas that a feed reads: of this process, or of a server. */
export type FeedSources = { readonly store: FollowedLogs; readonly live: Pick<Live, 'subscribe'> }
export type FeedOptions = { readonly deltas?: boolean; readonly subagents?: boolean }

/** The reader's position in one session. */
type ReadPosition = {
  readonly session: string
  /** The reader has everything up to this seq and wants what comes after. */
  readonly after: number
  source: StreamSource
  /** The last event that was taken, and the last one that ended a model call. */
  seq: number
  settled: number
  /** Deltas of a model call whose start is not read yet: history comes first. */
  early: LiveDelta[]
  /** The calls of the last reply. Every call is closed before the next one. */
  calls: readonly Proposal[]
  /** Set for a child that continued with the answer of this call: its work before that belongs to another stream. */
  until: CallKey | null
}
/** The session of the stream, with the facts that its reader does not read from the log. */
type StreamRoot = Frozen<{
  agent: string
  after: number
  parent: Frozen<{ session: string; call: CallKey }> | null
  /** The last seq that the reader has of each session. Null: only the place in the root is known. */
  places: SeenPlaces | null
}>
type SeenPlaces = Readonly<Record<string, number>>
type JoinedChild = { readonly session: string; readonly until: CallKey | null }

const FRESH = { after: 0, seq: 0, settled: 0, until: null, calls: [] } as const

export class StreamFeed {
  readonly #sources: FeedSources
  readonly #options: FeedOptions
  #deltas: boolean
  readonly #queue = new Queue<StreamEvent>()
  readonly #leave: (() => void)[] = []
  readonly #followers: LogFollower[] = []
  readonly #seats = new Map<string, ReadPosition>()
  #places: SeenPlaces | null = null
  #sequence = 0
  #closed = false

  constructor(sources: FeedSources, options: FeedOptions) {
    this.#sources = sources
    this.#options = options
    this.#deltas = options.deltas === true
  }

  /** For a reader that did not ask for deltas when the stream was made. */
  hearDeltas(): void {
    if (this.#deltas || this.#closed) return
    this.#deltas = true
    for (const seat of this.#seats.values()) this.#listen(seat)
  }

  /** Returns a function that takes the root session's events from its follower. Events up to `after` are not shown. */
  root(session: string, { agent, after, parent, places }: StreamRoot): (event: Event) => void {
    this.#places = places
    const source = { agent, run: null, parent: parent && parentSource(parent) }
    return this.#seat({ ...FRESH, session, after, source, early: [] })
  }

  /** Ends the stream after everything that has happened so far was read, including events of children at any depth. */
  async end(): Promise<void> {
    // The list grows during the loop: a child may lead to another child.
    for (const follower of this.#followers) await follower.catchUp().catch(() => {})
    this.close()
  }

  fail(error: unknown): void {
    this.#queue.fail(error)
    this.close()
  }

  /** Closes the stream: there is no reader any more, or nothing more to read. */
  close(): void {
    this.#closed = true
    for (const leave of this.#leave.splice(0)) leave()
    this.#queue.end()
  }

  iterate(leave: () => Promise<void>): AsyncIterableIterator<StreamEvent> {
    return this.#queue.iterate(leave)
  }

  #seat(seat: ReadPosition): (event: Event) => void {
    const { session } = seat
    const children = new Map<CallKey, JoinedChild>()
    const join = (call: CallKey): void => {
      const child = children.get(call)
      if (child && !this.#seats.has(child.session)) this.#join(child, { session, call, run: seat.source.run })
    }
    /**
     * Calls that children work on at the reader's place. If the reader gave places per session, all calls that it may
     * have seen.
     */
    const open = new Set<CallKey>()
    this.#seats.set(session, seat)
    if (this.#closed) return () => {}
    if (this.#deltas) this.#listen(seat)
    return (event) => {
      if (this.#closed) return
      this.#place(seat, event)
      if (seat.until !== null) return
      if (event.seq > seat.after) this.#push(seat, event)
      for (const delta of seat.early.splice(0)) this.#hear(seat, delta)
      if (this.#options.subagents === false) return
      if (event.type === 'agent.message') {
        for (const [call, child] of childrenOfReply(session, event)) children.set(call, child)
      } else if (event.type === 'agent.custom_tool_use') {
        if (event.seq > seat.after) join(event.call)
        else open.add(event.call)
      } else if (event.type === 'agent.tool_result' && this.#places === null) open.delete(event.call)
      if (event.seq !== seat.after) return
      for (const call of open) join(call)
    }
  }

  #listen(seat: ReadPosition): void {
    this.#leave.push(this.#sources.live.subscribe(seat.session, (delta) => this.#hear(seat, delta)))
  }

  /** Updates the position for this event. */
  #place(seat: ReadPosition, event: Event): void {
    const { source } = seat
    seat.seq = event.seq
    if (event.type === 'agent.message') seat.calls = event.calls
    if (event.type === 'session.created')
      seat.source = {
        ...source,
        agent: event.agent,
        parent: source.parent ?? (event.parent ? parentSource(event.parent) : null),
      }
    else if (event.type === 'run.started') seat.source = { ...source, run: event.seq }
    else if (event.type === 'agent.message' || event.type === 'model.failed') seat.settled = event.seq
    else if (event.type === 'user.custom_tool_result' && event.parent !== undefined && source.parent) {
      // From here on the child works for the call that answered it.
      const { session } = source.parent
      const run = this.#seats.get(session)?.source.run ?? null
      seat.source = { ...source, parent: { session, call: event.parent, run } }
      if (seat.until === event.parent) seat.until = null
    }
  }

  /** Reads the child from its beginning, and shows it from the reader's place on. */
  #join({ session, until }: JoinedChild, parent: StreamSource['parent']): void {
    const after = this.#places && Object.hasOwn(this.#places, session) ? (this.#places[session] ?? 0) : 0
    const event = this.#seat({ ...FRESH, session, after, source: { agent: '', run: null, parent }, until, early: [] })
    const follower = new LogFollower(this.#sources.store, session, 0, { event, error: () => {} })
    this.#followers.push(follower)
    this.#leave.push(() => follower.close())
    follower.catchUp().catch(() => {})
  }

  /**
   * Across processes a delta may come after the event that settles its call. The event has the whole text, so the delta
   * is dropped.
   */
  #hear(seat: ReadPosition, delta: LiveDelta): void {
    const isOutput = delta.kind === 'output'
    // Output of a call comes after the reply that made the call.
    const isOver = isOutput ? delta.seq < seat.settled : delta.seq <= seat.settled
    if (this.#closed || isOver || seat.until !== null) return
    if (delta.seq > seat.seq && delta.seq > seat.after) return void seat.early.push(delta)
    const { seq, part, offset, text } = delta
    const { session, source } = seat
    this.#sequence += 1
    const of = isOutput ? { call: callKey(seq, part) } : {}
    const line = { session, seq, part, offset, text, sequence: this.#sequence, source }
    this.#queue.push({ type: 'delta', ...deltaHeader(delta), ...line, ...of })
  }

  #push({ session, source, calls }: ReadPosition, event: Event): void {
    this.#sequence += 1
    // Copied, so that a reader's changes do not reach what is executed.
    const shown = cloneJson(isCallEvent(event) ? { ...event, ...calledTool(event.call, calls) } : event)
    this.#queue.push(Object.assign(shown, { session, sequence: this.#sequence, source }))
  }
}

function isCallEvent(event: Event): event is Extract<Event, CallEvent> {
  const { type } = event
  return type === 'agent.tool_use' || type === 'agent.tool_result' || type === 'agent.custom_tool_use'
}

function calledTool(callId: CallKey, calls: readonly Proposal[]): CalledTool {
  const { tool = '', args = null } = calls[Number(callId.slice(callId.indexOf('.') + 1))] ?? {}
  return { callId, tool, args }
}

/** A child's own stream has not shown its parent's run, so the run is null. */
function parentSource({ session, call }: NonNullable<StreamRoot['parent']>): NonNullable<StreamSource['parent']> {
  return { session, call, run: null }
}

/** The children that the calls of a reply may open or continue. */
function childrenOfReply(
  session: string,
  { seq, calls }: Extract<Event, { type: 'agent.message' }>,
): readonly (readonly [CallKey, JoinedChild])[] {
  return calls.flatMap((call, index): readonly (readonly [CallKey, JoinedChild])[] => {
    const { child, answers } = outsideOf(call) ?? {}
    const key = callKey(seq, index)
    if (answers) return [[key, { session: answers.session, until: key }]]
    return child === undefined ? [] : [[key, { session: childId(session, key), until: null }]]
  })
}
