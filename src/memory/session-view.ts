// The state of a session for the runtime files, folded from its log: the same events give the same view. No clock and
// no I/O; render-files.ts makes text of it.
import type { CallKey, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { type OpenSession, open, take } from '../kernel/fold.ts'
import { next } from '../kernel/next.ts'
import type { Status } from '../ports/store.ts'
import { EMPTY } from '../kernel/session.ts'
import { recalledEntries } from './citations.ts'
import { cardOf } from '../view/card.ts'
import { type Directive, directivesIn, followUpsOf, type Learning, readLearning } from '../tools/core/directive.ts'

export type PendingWake = { readonly key: string; readonly due: number; readonly reason: string }
export type WaitingCall = { readonly call: CallKey; readonly tool: string; readonly needs: 'approval' | 'answer' }

type RunStartedEvent = Extract<Event, { type: 'run.started' }>
type TextAt = { readonly seq: number; readonly text: string }
type SessionCounts = { runs: number; requests: number; calls: number; failed: number }

/** Grows with the log, event by event. It keeps the texts of the last run only. */
export class SessionView {
  readonly session: string
  /** The last run, open or settled. */
  run: RunStartedEvent | null = null
  /** The subject of the last run: the messages it took in, or the reasons of the wakes that began it. */
  focus: readonly string[] = []
  response: TextAt | null = null
  /** The next step that the last run asked for. A run without a directive sleeps. */
  outcome: Directive['outcome'] = 'sleep'
  /** Stays until the next summary. */
  summary: TextAt | null = null
  learnings: readonly Learning[] = []
  notes: readonly string[] = []
  /** The recalled entries that are still in the conversation. */
  readonly recalled = new Set<string>()
  /** Part of the conversation is no longer shown: it was compacted, or is in the log that this one was forked from. */
  isCut = false
  /** The last event of each kind: shown by a request, taken in by a run, written by a worker. */
  readonly cursor = { shown: 0, processed: 0, produced: 0 }
  readonly counts: SessionCounts = { runs: 0, requests: 0, calls: 0, failed: 0 }
  readonly #state: OpenSession = open(EMPTY)
  readonly #inputs = new Map<number, string>()
  readonly #reasons = new Map<number, string>()
  #directives = new Map<CallKey, Directive>()

  constructor(session: string, events: readonly Event[] = []) {
    this.session = session
    for (const event of events) this.take(event)
  }

  get state(): Readonly<OpenSession> {
    return this.#state
  }

  /** The status that its card had at the moment of its last event. */
  get status(): Status {
    const { at, epoch } = this.#state
    return cardOf(this.session, this.#state, next(this.#state, { now: at, epoch })).status
  }

  get wakes(): readonly PendingWake[] {
    const pending = this.#state.wakes.map(({ seq, key, due }) => ({ key, due, reason: this.#reasons.get(seq) ?? key }))
    return pending.toSorted((a, b) => a.due - b.due || (a.key < b.key ? -1 : 1))
  }

  get waiting(): readonly WaitingCall[] {
    return (this.#state.run?.turn?.open ?? []).flatMap(({ key, proposal, state }): readonly WaitingCall[] => {
      if (state.type === 'asked') return [{ call: key, tool: proposal.tool, needs: 'approval' }]
      return state.type === 'outside' ? [{ call: key, tool: proposal.tool, needs: 'answer' }] : []
    })
  }

  get followUps(): number {
    return this.run ? followUpsOf(this.run) : 0
  }

  take(event: Event): void {
    const { wakes } = this.#state
    take(this.#state, event)
    if (event.epoch > 0) this.cursor.produced = event.seq
    switch (event.type) {
      case 'user.message':
        return void this.#inputs.set(event.seq, textWithKinds(event.parts))
      case 'session.created':
        this.isCut ||= event.fork !== undefined
        return
      case 'context.compacted':
        if (event.cut === undefined) return
        this.isCut = true
        return this.recalled.clear()
      case 'run.started':
        return this.#begin(event, wakes)
      case 'model.started':
        this.cursor.shown = Math.max(this.cursor.shown, ...event.shows)
        return this.#focusOn(event.shows)
      case 'agent.message':
        return this.#reply(event)
      case 'agent.tool_result':
        return this.#result(event)
      case 'note.added':
        return this.#note(event)
      case 'user.schedule':
      case 'wake.scheduled':
        return void this.#reasons.set(event.seq, event.reason)
      case 'run.settled':
        return this.#focusOn(event.inputs ?? [])
      default:
        return
    }
  }

  #begin(event: RunStartedEvent, wakes: OpenSession['wakes']): void {
    this.run = event
    this.counts.runs += 1
    this.outcome = 'sleep'
    this.learnings = []
    this.notes = []
    this.#directives.clear()
    const woken = wakes.filter(({ key }) => event.wakes.includes(key))
    this.focus = woken.map(({ seq, key }) => this.#reasons.get(seq) ?? key)
    for (const { seq } of woken) this.#reasons.delete(seq)
    this.#focusOn(event.inputs)
  }

  #focusOn(seqs: readonly number[]): void {
    for (const seq of seqs) {
      const text = this.#inputs.get(seq)
      if (text === undefined) continue
      this.#inputs.delete(seq)
      this.cursor.processed = Math.max(this.cursor.processed, seq)
      this.focus = [...this.focus, text]
    }
  }

  #reply(event: Extract<Event, { type: 'agent.message' }>): void {
    const text = textWithKinds(event.parts)
    if (text.trim() !== '') this.response = { seq: event.seq, text }
    this.counts.requests += 1
    this.counts.calls += event.calls.length
    for (const [key, directive] of directivesIn(event)) this.#directives.set(key, directive)
  }

  #result({ call, status, seq }: Extract<Event, { type: 'agent.tool_result' }>): void {
    if (status !== 'ok') this.counts.failed += 1
    const directive = this.#directives.get(call)
    if (!directive || status !== 'ok') return
    this.outcome = directive.outcome
    this.summary = { seq, text: directive.summary }
  }

  #note({ kind, text }: Extract<Event, { type: 'note.added' }>): void {
    const learning = kind === 'learning' ? readLearning(text) : null
    if (learning) this.learnings = [...this.learnings, learning]
    else if (kind === 'context') for (const entry of recalledEntries(text)) this.recalled.add(entry)
    else if (kind !== 'learning') this.notes = [...this.notes, `${kind}: ${text}`]
  }
}

function textWithKinds(parts: readonly Part[]): string {
  return parts
    .map((part) => (part.type === 'text' ? part.text : part.type === 'reasoning' ? '' : `[${part.type}]`))
    .join('')
}
