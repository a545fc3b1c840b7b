// What a reader of a stream gets: the events of a session and of its children, and what models say meanwhile, in one numbered line.
// It only reads; the log is what happened.
import type { CallKey, Frozen, Json, Proposal } from '../../kernel/content.ts'
import { callKey, type Event } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { childId } from '../../stores/plan/id.ts'
import { cloneJson } from '../../effects/clone-json.ts'
import { LogFollower } from './log-follower.ts'
import { aboutOf, type LiveDelta } from '../../live/live.ts'
import type { CallsOf, ToolList } from '../../tools/core/typed.ts'
import { headOf } from '../../riders/children/tree.ts'
import { checkCount } from '../../stores/plan/count.ts'
import { Queue } from '../queue.ts'
import type { StreamOptions } from '../verb-options.ts'
import type { Services } from '../../engine/wiring.ts'
import type { Store } from '../../ports/store.ts'

/** Where in the tree of sessions something happened. */
export type Source = Frozen<{
  agent: string
  /** seq of the run's start; null before the first run that this stream saw. */
  run: number | null
  /** For a child: the session, the run and the call it works for. */
  parent: Frozen<{ session: string; run: number | null; call: CallKey }> | null
}>

/** `sequence` counts the items of one stream, from 1. */
type Line = Frozen<{ session: string; sequence: number; source: Source }>
/** `call` is there for `output`: the call that printed it. */
type StreamDelta = { readonly type: 'delta'; readonly call?: CallKey } & LiveDelta
type Called = Frozen<{ callId: CallKey; tool: string; args: Json }>
/** What a call is, beside what happened to it: the reply that proposed it may lie before the reader's place. */
type CallEvent = { readonly type: 'agent.tool_use' | 'agent.custom_tool_use' | 'agent.tool_result' }
type Shown<E extends Event, Tools extends ToolList[number]> = E extends CallEvent
  ? E & { readonly callId: CallKey } & CallsOf<Tools>
  : E
/** The events of a call are told apart by `tool`, where the tools are known as types. */
export type StreamEvent<Tools extends ToolList[number] = ToolList[number]> =
  | (Shown<Event, Tools> & Line)
  | (StreamDelta & Line)

export type FeedOptions = { readonly deltas?: boolean; readonly subagents?: boolean }

/** Where a reader stands in one session. */
type Seat = {
  readonly session: string
  /** The reader has all up to here, and wants what comes after. */
  readonly after: number
  source: Source
  /** The last event that was taken, and the last one that ended a model call. */
  seq: number
  settled: number
  /** What a model call says whose start is still to come: history comes first. */
  early: LiveDelta[]
  /** The calls of the last reply. Every call is closed before the next one. */
  calls: readonly Proposal[]
  /** A child that went on with the answer of this call: what it did before is another stream's. */
  until: CallKey | null
}
/** The session that a stream is of, as far as its reader does not read it from the log. */
type Root = Frozen<{
  agent: string
  after: number
  parent: Frozen<{ session: string; call: CallKey }> | null
  /** What the reader has of each session. Null: only the place in the root is known. */
  places: Places | null
}>
type Places = Readonly<Record<string, number>>
type Joined = { readonly session: string; readonly until: CallKey | null }

const FRESH = { after: 0, seq: 0, settled: 0, until: null, calls: [] } as const

export class Feed {
  readonly #services: Services
  readonly #options: FeedOptions
  #deltas: boolean
  readonly #queue = new Queue<StreamEvent>()
  readonly #leave: (() => void)[] = []
  readonly #followers: LogFollower[] = []
  readonly #seats = new Map<string, Seat>()
  #places: Places | null = null
  #sequence = 0
  #closed = false

  constructor(services: Services, options: FeedOptions) {
    this.#services = services
    this.#options = options
    this.#deltas = options.deltas === true
  }

  /** For a reader who did not ask for deltas when the stream was made. */
  hearDeltas(): void {
    if (this.#deltas || this.#closed) return
    this.#deltas = true
    for (const seat of this.#seats.values()) this.#listen(seat)
  }

  /** Takes the events of the session that the stream is of, from its follower. Those up to `after` are not shown. */
  root(session: string, { agent, after, parent, places }: Root): (event: Event) => void {
    this.#places = places
    const source = { agent, run: null, parent: parent && parentOf(parent) }
    return this.#seat({ ...FRESH, session, after, source, early: [] })
  }

  /** Everything has been seen that happened before: also what children did, and theirs. */
  async end(): Promise<void> {
    // It grows while it is read: a child may tell of a child.
    for (const follower of this.#followers) await follower.catchUp().catch(() => {})
    this.close()
  }

  fail(error: unknown): void {
    this.#queue.fail(error)
    this.close()
  }

  /** There is no reader any more, or nothing more to read. */
  close(): void {
    this.#closed = true
    for (const leave of this.#leave.splice(0)) leave()
    this.#queue.end()
  }

  iterate(leave: () => Promise<void>): AsyncIterableIterator<StreamEvent> {
    return this.#queue.iterate(leave)
  }

  #seat(seat: Seat): (event: Event) => void {
    const { session } = seat
    const children = new Map<CallKey, Joined>()
    const join = (call: CallKey): void => {
      const child = children.get(call)
      if (child && !this.#seats.has(child.session)) this.#join(child, { session, call, run: seat.source.run })
    }
    /** Calls that children work on at the reader's place. Of a reader that says what it has of each, all that it may have seen. */
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
        for (const [call, child] of childrenIn(session, event)) children.set(call, child)
      } else if (event.type === 'agent.custom_tool_use') {
        if (event.seq > seat.after) join(event.call)
        else open.add(event.call)
      } else if (event.type === 'agent.tool_result' && this.#places === null) open.delete(event.call)
      if (event.seq !== seat.after) return
      for (const call of open) join(call)
    }
  }

  #listen(seat: Seat): void {
    this.#leave.push(this.#services.live.subscribe(seat.session, (delta) => this.#hear(seat, delta)))
  }

  /** Where the next events of a session belong. */
  #place(seat: Seat, event: Event): void {
    const { source } = seat
    seat.seq = event.seq
    if (event.type === 'agent.message') seat.calls = event.calls
    if (event.type === 'session.created')
      seat.source = {
        ...source,
        agent: event.agent,
        parent: source.parent ?? (event.parent ? parentOf(event.parent) : null),
      }
    else if (event.type === 'run.started') seat.source = { ...source, run: event.seq }
    else if (event.type === 'agent.message' || event.type === 'model.failed') seat.settled = event.seq
    else if (event.type === 'user.custom_tool_result' && event.parent !== undefined && source.parent) {
      // From here on it works for the call that answered it.
      const { session } = source.parent
      const run = this.#seats.get(session)?.source.run ?? null
      seat.source = { ...source, parent: { session, call: event.parent, run } }
      if (seat.until === event.parent) seat.until = null
    }
  }

  /** Read from its beginning, and shown from where the reader has it. */
  #join({ session, until }: Joined, parent: Source['parent']): void {
    const after = this.#places && Object.hasOwn(this.#places, session) ? (this.#places[session] ?? 0) : 0
    const event = this.#seat({ ...FRESH, session, after, source: { agent: '', run: null, parent }, until, early: [] })
    const follower = new LogFollower(this.#services.store, session, 0, { event, error: () => {} })
    this.#followers.push(follower)
    this.#leave.push(() => follower.close())
    follower.catchUp().catch(() => {})
  }

  /** Across processes a delta may come after the event that settles its call: then the event has said it all. */
  #hear(seat: Seat, delta: LiveDelta): void {
    const isOutput = delta.kind === 'output'
    // What a call prints comes after the reply that made it.
    const isOver = isOutput ? delta.seq < seat.settled : delta.seq <= seat.settled
    if (this.#closed || isOver || seat.until !== null) return
    if (delta.seq > seat.seq && delta.seq > seat.after) return void seat.early.push(delta)
    const { seq, part, offset, text } = delta
    const { session, source } = seat
    this.#sequence += 1
    const of = isOutput ? { call: callKey(seq, part) } : {}
    const line = { session, seq, part, offset, text, sequence: this.#sequence, source }
    this.#queue.push({ type: 'delta', ...aboutOf(delta), ...line, ...of })
  }

  #push({ session, source, calls }: Seat, event: Event): void {
    this.#sequence += 1
    // A copy: what the reader does with it changes nothing of what is executed.
    const shown = cloneJson(isOfCall(event) ? { ...event, ...calledBy(event.call, calls) } : event)
    this.#queue.push(Object.assign(shown, { session, sequence: this.#sequence, source }))
  }
}

function isOfCall(event: Event): event is Extract<Event, CallEvent> {
  const { type } = event
  return type === 'agent.tool_use' || type === 'agent.tool_result' || type === 'agent.custom_tool_use'
}

function calledBy(callId: CallKey, calls: readonly Proposal[]): Called {
  const { tool = '', args = null } = calls[Number(callId.slice(callId.indexOf('.') + 1))] ?? {}
  return { callId, tool, args }
}

const BEFORE = 200

/**
 * From where a log must be followed so that every event after this place can be shown whole: before the reply whose calls may be
 * open there. A call that is open belongs to the last reply.
 */
async function replyBefore(store: Pick<Store, 'read'>, session: string, place: number): Promise<number> {
  for (let end = place; end > 0; end = Math.max(0, end - BEFORE)) {
    const start = Math.max(0, end - BEFORE)
    const { events } = await store.read(session, start, end - start)
    const last = events.findLast(({ type }) => type === 'agent.message' || type === 'run.settled')
    if (last) return last.type === 'agent.message' ? last.seq - 1 : place
  }
  return place
}

/** A child's own stream has not shown its parent's run. */
function parentOf({ session, call }: NonNullable<Root['parent']>): NonNullable<Source['parent']> {
  return { session, call, run: null }
}

/** The children that the calls of a reply may open, or go on with. */
function childrenIn(
  session: string,
  { seq, calls }: Extract<Event, { type: 'agent.message' }>,
): readonly (readonly [CallKey, Joined])[] {
  return calls.flatMap((call, index): readonly (readonly [CallKey, Joined])[] => {
    const { child, answers } = outsideOf(call) ?? {}
    const key = callKey(seq, index)
    if (answers) return [[key, { session: answers.session, until: key }]]
    return child === undefined ? [] : [[key, { session: childId(session, key), until: null }]]
  })
}

/** What a stream is of: its input, what its reader has already, and from where its run must be followed. */
export async function streamStart(
  store: Store,
  id: string,
  { after, subagents = true }: StreamOptions,
  send: () => Promise<number | null>,
) {
  const places = typeof after === 'object' && after !== null ? after : null
  for (const place of places === null ? [after ?? 0] : Object.values(places)) checkCount('after', place)
  const input = await send()
  const { agent, began, run, parent } = await headOf(store, id)
  const own = places === null ? (after as number | undefined) : ownIn(places, id)
  const seen = own ?? (input === null ? 0 : input - 1)
  // An input that joins an open run belongs to that one.
  const joined = run !== null && run.seq < (input ?? 0) ? run.seq - 1 : (input ?? 0) - 1
  const last = Math.min(seen, Math.max(0, input === null ? began - 1 : joined))
  // Which children worked at a place in an earlier run, the log before it says.
  const whole = own !== undefined && subagents && last === own
  const from = whole ? 0 : own === undefined ? last : await replyBefore(store, id, last)
  // From the beginning on the log itself says whose child it is.
  return { input, agent, after: seen, from, places, parent: from === 0 ? null : parent }
}

/** The place in this session, of the places in a tree. */
function ownIn(places: Readonly<Record<string, number>>, id: string): number | undefined {
  return Object.hasOwn(places, id) ? places[id] : undefined
}
