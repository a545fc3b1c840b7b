// A session as rows to read from top to bottom: messages of people, turns with their calls, lost attempts, actions of
// the harness, and idle time folded into one row. One pass, event by event, so a page can continue as events arrive.
// Pure. Rows are replaced and never changed: a page draws only the new ones again.
import type {
  CallKey,
  CallStatus,
  EffectClass,
  Frozen,
  Json,
  Outcome,
  Part,
  Proposal,
  Usage,
} from '../kernel/content.ts'
import { callKey, type Event, type EventOf } from '../kernel/event.ts'
import { type Call, isAskedAfterEdit, outsideOf } from '../kernel/ledger.ts'
import type { CallEdit } from './call-log.ts'
import type { Session } from '../kernel/session.ts'
import { type CacheMiss, missIn } from './request-context.ts'

/**
 * `seq` is the event that began the row, `at` its time, and `endedAt` the time of the last event about it: null while
 * it goes on.
 */
type Row<T extends string, Rest = unknown> = Frozen<{ type: T; seq: number; at: number }> & Frozen<Rest>

/** A row of a timeline: something that a person wants to see of a session. */
export type TimelineRow =
  | Row<'begun', { agent: string; fork?: Frozen<{ session: string; seq: number }>; parent?: string }>
  | Row<'message', { parts: readonly Part[]; by: string | null; when: 'next' | 'after' | 'now' }>
  | TurnRow
  | CallRow
  /** The worker was lost during a model request, which is made again. */
  | Row<'lost', { epoch: number; message: string }>
  | Row<'failed', { class: string; message: string; retryAt: number | null; partial: string }>
  | Row<'note', { kind: string; text: string }>
  | Row<
      'compacted',
      {
        summary: string | null
        cleared: boolean
        before: number | null
        after: number | null
        failed?: string
        cost: number
        usage: Usage | null
      }
    >
  | Row<'decision', { call: CallKey; allow: boolean; by: string; why: string; edited?: DecisionEdit }>
  | Row<'answer', { call: CallKey; ok: boolean; by: string | null }>
  | Row<'interrupt', { mode: 'stop' | 'pause' | 'resume'; by: string | null; why: string }>
  | Row<'wake', { due: number; reason: string }>
  | Row<'deferred', { message: string; retryAt: number }>
  | Row<'settled', { outcome: Outcome; endedAt: number; startedAt: number | null; cost: number; output?: Json }>
  | Row<'imported', { from: string }>
  | Row<'reviewed', { call: CallKey | null }>
  | Row<'closed'>
  /** An event of a type that this version does not know. */
  | Row<'other', { name: string }>
  /** Nothing happened from `at` on. `waits` is the reason. `seq` is the event that ended it. */
  | Row<'idle', { endedAt: number; waits: Waits }>

/** The model's arguments, and those that the decision puts in their place. */
type DecisionEdit = Frozen<{ before: Json; after: Json }>

/**
 * `person`: an approval or an answer. `outside`: a child, or a program. `provider`: a retry. `input`: no run is open.
 */
export type Waits = 'person' | 'outside' | 'provider' | 'input'

/** One request and its reply. `n` counts from 1 in the session. Costs are in millionths of a dollar. */
export type TurnRow = Row<
  'turn',
  {
    n: number
    run: number
    endedAt: number | null
    /** `interrupted`: a person or a program stopped it, or a message replaced it. Nothing went wrong. */
    state: 'asked' | 'replied' | 'failed' | 'interrupted' | 'lost'
    route: string | null
    usage: Usage | null
    cost: number
    cached: boolean
    missed: CacheMiss | null
    /** Null while there is no reply. */
    reply: number | null
    parts: readonly Part[]
    verdict: string | null
    calls: readonly CallKey[]
  }
>

/** A call in a timeline: what it asked for, who decided, and how long it took. */
export type CallRow = Row<
  'call',
  {
    call: CallKey
    turn: number
    tool: string
    /** The model's arguments. */
    args: Json
    /** The person who changed them, and the arguments it runs with. */
    edited?: CallEdit
    effect: EffectClass
    gate: NonNullable<Proposal['gate']>['type'] | null
    state: CallStateWord
    /** How often it was started: more than once after a worker was lost. */
    starts: number
    startedAt: number | null
    endedAt: number | null
    /** The event of its result. */
    result: number | null
    failure: string | null
    cost: number
    /** The usage of models that the tool itself asked. */
    usage: Usage | null
    /** The agent of the child session that it starts. */
    child: string | null
    /** It is answered elsewhere: by a child, a person or a program. */
    outside: boolean
  }
>
/** How a call stands, in one word. */
export type CallStateWord = 'proposed' | 'asked' | 'running' | 'outside' | CallStatus

/** Shorter idle times are not folded. */
export const IDLE_MS = 60_000

/** The rows of a session, kept up to date as events come. */
export class Timeline {
  /** It grows, and its rows are replaced: copy it to keep it. */
  readonly rows: TimelineRow[] = []
  /** Changes with every event that is taken. */
  seq = 0
  #at = 0
  #turns = 0
  #run: OpenRun | null = null
  /** The index of the row of the open request. */
  #asked = -1
  #retries = false
  readonly #calls = new Map<CallKey, number>()
  readonly #open = new Set<CallKey>()
  /** Confirmations that edit a call, by seq. */
  readonly #edits = new Map<number, EventOf<'user.tool_confirmation'>>()

  /**
   * `from`: the session before the first given event, if the log does not begin there. Its open work gets rows.
   * `asked`: how many requests the log has until then.
   */
  constructor(from?: Session, asked = 0) {
    if (!from) return
    this.#turns = Math.max(0, from.run?.model ? asked - 1 : asked)
    this.seq = from.seq
    this.#at = from.at
    const { run } = from
    if (run === null) return
    this.#run = { seq: run.seq, at: null, cost: run.cost }
    this.#retries = run.retryAt > 0
    for (const { key, proposal, state, edited } of run.turn?.open ?? []) {
      const own = { seq: run.turn?.seq ?? 0, at: from.at }
      this.#propose(own, proposal, key)
      this.#change(key, openCallChanges(state))
      if (edited) this.#change(key, { args: edited.args, edited: { by: edited.by, args: proposal.args } })
    }
    if (run.model) this.#ask(run.model)
  }

  /** Takes the next event of the log. */
  take(event: Event): void {
    if (event.seq <= this.seq) return
    this.#idle(event)
    this.seq = event.seq
    this.#at = event.at
    const { cost = 0 } = event as { readonly cost?: number }
    if (this.#run) this.#run.cost += cost
    this.#rowOf(event)
  }

  #rowOf(e: Event): void {
    switch (e.type) {
      case 'run.started':
        this.#run = { seq: e.seq, at: e.at, cost: 0 }
        this.#retries = false
        return
      case 'model.started':
        return this.#ask(e)
      case 'agent.message':
        return this.#reply(e)
      case 'model.failed':
        return this.#fail(e)
      case 'agent.tool_use':
      case 'agent.custom_tool_use':
        return this.#start(e)
      case 'agent.tool_result':
        return this.#result(e)
      case 'user.tool_confirmation':
        if (e.edit) this.#edits.set(e.seq, e)
        return void this.rows.push(this.#decision(e))
      case 'call.reviewed':
        return this.#review(e)
      case 'run.settled':
        this.rows.push(settledRow(e, this.#run))
        this.#run = null
        this.#retries = false
        this.#open.clear()
        return
      case 'run.deferred':
        this.#retries = true
        break
      default:
    }
    this.rows.push(plainRow(e))
  }

  #decision(e: EventOf<'user.tool_confirmation'>): TimelineRow {
    const { seq, at, call, allow, by, why = '', edit } = e
    const edited = edit ? { edited: { before: this.#callAt(call)?.args ?? null, after: edit.args } } : {}
    return { type: 'decision', seq, at, call, allow, by, why, ...edited }
  }

  /** An admitted edit is part of its call and gets no row of its own. */
  #review(e: EventOf<'call.reviewed'>): void {
    const confirmed = this.#edits.get(e.edit ?? 0)
    const edited = confirmed?.edit ? { edited: { by: confirmed.by, args: confirmed.edit.args } } : {}
    const asked = confirmed ? isAskedAfterEdit(e, confirmed) : e.gate?.type === 'ask'
    this.#change(e.call, { gate: e.gate?.type ?? null, state: asked ? 'asked' : 'proposed', ...edited })
    if (!confirmed) this.rows.push(plainRow(e))
  }

  /** Time in which no model request and no call was running here. */
  #idle({ seq, at }: Event): void {
    if (this.seq === 0 || at - this.#at < IDLE_MS || this.#asked >= 0) return
    const states = [...this.#open].map((key) => this.#callAt(key)?.state)
    if (states.includes('running')) return
    const person = states.includes('asked')
    const outside = [...this.#open].some((key) => this.#callAt(key)?.state === 'outside')
    const waits: Waits = person ? 'person' : outside ? 'outside' : this.#retries ? 'provider' : 'input'
    this.rows.push({ type: 'idle', seq, at: this.#at, endedAt: at, waits })
  }

  #ask(e: Pick<Event, 'seq' | 'at'>): void {
    this.#asked = this.rows.length
    this.#retries = false
    this.#turns += 1
    const none = { endedAt: null, route: null, usage: null, cost: 0, cached: false, missed: null, reply: null } as const
    const empty = { parts: [], verdict: null, calls: [], state: 'asked' } as const
    const { seq, at } = e
    this.rows.push({ type: 'turn', seq, at, n: this.#turns, run: this.#run?.seq ?? 0, ...none, ...empty })
  }

  #close(changes: Partial<TurnRow>): void {
    const row = this.rows[this.#asked]
    if (row?.type === 'turn') this.rows[this.#asked] = { ...row, ...changes }
    this.#asked = -1
  }

  #reply(e: EventOf<'agent.message'>): void {
    const { seq, at, parts, calls, verdict, usage = null, cost = 0, route = null, cached = false } = e
    const keys = calls.map((_, i) => callKey(seq, i))
    const [missed = null] = missIn(e)
    const paid = { usage, cost, route, cached, missed }
    this.#close({ endedAt: at, state: 'replied', reply: seq, parts, verdict: verdict.type, calls: keys, ...paid })
    for (const [i, proposal] of calls.entries()) this.#propose(e, proposal, callKey(seq, i))
  }

  #propose({ seq, at }: Pick<Event, 'seq' | 'at'>, proposal: Proposal, call: CallKey): void {
    const { tool, args, effect, gate } = proposal
    const state = gate?.type === 'ask' ? 'asked' : 'proposed'
    const none = {
      starts: 0,
      startedAt: null,
      endedAt: null,
      result: null,
      failure: null,
      cost: 0,
      usage: null,
    } as const
    const order = outsideOf(proposal)
    const child = order?.child ?? null
    this.#calls.set(call, this.rows.length)
    this.#open.add(call)
    const own = { type: 'call', seq, at, call, turn: this.#turns, tool, args, effect } as const
    this.rows.push({ ...own, gate: gate?.type ?? null, state, child, outside: order !== undefined, ...none })
  }

  #fail(e: EventOf<'model.failed'>): void {
    const { seq, at, epoch, class: kind, message, retryAt = null, partial = '' } = e
    const { cost = 0, route = null } = e
    const isLost = kind === 'lost'
    const isStopped = kind === 'interrupted' || kind === 'superseded'
    const state = isLost ? 'lost' : isStopped ? 'interrupted' : 'failed'
    this.#close({ endedAt: at, state, cost, usage: e.usage ?? null, route })
    this.#retries = retryAt !== null
    this.rows.push(
      isLost
        ? { type: 'lost', seq, at, epoch, message }
        : { type: 'failed', seq, at, class: kind, message, retryAt, partial },
    )
  }

  #start({ type, call, at }: EventOf<'agent.tool_use' | 'agent.custom_tool_use'>): void {
    const row = this.#callAt(call)
    if (!row) return
    const state = type === 'agent.tool_use' ? 'running' : 'outside'
    this.#change(call, { state, starts: row.starts + 1, startedAt: row.startedAt ?? at })
  }

  #result(e: EventOf<'agent.tool_result'>): void {
    const { seq, at, call, status, failure, cost = 0 } = e
    this.#open.delete(call)
    const spent = { cost, usage: e.usage ?? null }
    this.#change(call, { state: status, endedAt: at, result: seq, failure: failure?.message ?? null, ...spent })
  }

  #callAt(call: CallKey): CallRow | null {
    const row = this.rows[this.#calls.get(call) ?? -1]
    return row?.type === 'call' ? row : null
  }

  #change(call: CallKey, changes: Partial<CallRow>): void {
    const row = this.#callAt(call)
    if (row) this.rows[this.#calls.get(call) ?? -1] = { ...row, ...changes }
  }
}

/** The rows of a whole log, as the inspector shows them. */
export function timelineOf(events: readonly Event[]): readonly TimelineRow[] {
  const timeline = new Timeline()
  for (const event of events) timeline.take(event)
  return timeline.rows
}

/** The start time is unknown if the log is not read from there. */
type OpenRun = { readonly seq: number; readonly at: number | null; cost: number }

/** The fold does not know how often a call was started before: a running call counts as once. */
function openCallChanges(state: Call['state']): Partial<CallRow> {
  if (state.type === 'running') return { state: 'running', starts: state.tries + 1 }
  if (state.type === 'outside' || state.type === 'answered') return { state: 'outside', starts: 1 }
  return state.type === 'asked' ? { state: 'asked' } : { state: 'proposed' }
}

function settledRow(e: EventOf<'run.settled'>, run: OpenRun | null): TimelineRow {
  const { seq, at, outcome, output } = e
  const told = output === undefined ? {} : { output }
  return { type: 'settled', seq, at, outcome, endedAt: at, startedAt: run?.at ?? null, cost: run?.cost ?? 0, ...told }
}

/** A row that follows from one event. */
function plainRow(e: Event): TimelineRow {
  const { seq, at } = e
  switch (e.type) {
    case 'session.created': {
      const { agent, fork, parent } = e
      const from = { ...(fork ? { fork } : {}), ...(parent ? { parent: parent.session } : {}) }
      return { type: 'begun', seq, at, agent, ...from }
    }
    case 'user.message':
      return { type: 'message', seq, at, parts: e.parts, by: e.by ?? null, when: e.when }
    case 'user.custom_tool_result':
      return { type: 'answer', seq, at, call: e.call, ok: e.ok, by: e.by ?? null }
    case 'user.interrupt':
      return { type: 'interrupt', seq, at, mode: e.mode, by: e.by ?? null, why: e.why ?? '' }
    case 'note.added':
      return { type: 'note', seq, at, kind: e.kind, text: e.text }
    case 'context.compacted': {
      const { summary = null, cleared, before = null, after = null, failed, cost = 0 } = e
      const trouble = failed === undefined ? {} : { failed }
      const sizes = { cleared: cleared !== undefined, before, after }
      return { type: 'compacted', seq, at, summary, ...sizes, cost, usage: e.usage ?? null, ...trouble }
    }
    case 'wake.scheduled':
      return { type: 'wake', seq, at, due: e.due, reason: e.reason }
    case 'run.deferred':
      return { type: 'deferred', seq, at, message: e.message, retryAt: e.retryAt }
    case 'session.imported':
      return { type: 'imported', seq, at, from: e.from }
    case 'run.reviewed':
      return { type: 'reviewed', seq, at, call: null }
    case 'call.reviewed':
      return { type: 'reviewed', seq, at, call: e.call }
    case 'session.closed':
      return { type: 'closed', seq, at }
    default:
      return { type: 'other', seq, at, name: e.type }
  }
}
