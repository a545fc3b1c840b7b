// Redecide: would today's code decide what stands in the log? Asks `next` at every prefix at which the owner wrote.
// It touches no store and no world: what an effect brought is taken as it was, and only that it was wanted is checked.
import { clockOf } from '../kernel/clock.ts'
import type { OwnerBody, Event, InboxEvent, OwnerEvent } from '../kernel/event.ts'
import { open, type OpenSession, take } from '../kernel/fold.ts'
import { type Decision, type Effect, next } from '../kernel/next.ts'
import { settlement } from '../kernel/result.ts'
import { EMPTY } from '../kernel/session.ts'
import { canonicalJson } from '../tools/core/canonical.ts'

/** What would be decided before event `seq`, and what was written instead. */
export type Redecided = { readonly seq: number; readonly expected: Decision; readonly found: Event }

/** Empty: nothing would be decided otherwise. `decide` is `next`, or the code to compare with the log. */
export function redecide(events: readonly Event[], decide: typeof next = next): readonly Redecided[] {
  const differences: Redecided[] = []
  const session = open(EMPTY)
  const flights = new Flown()
  let due: readonly OwnerBody[] = []
  let before = 0
  for (const [event, writer] of withWriters(events)) {
    const here = { now: clockOf(writer), epoch: writer.epoch }
    const inCommit = due.length > 0
    const decision: Decision = inCommit ? { type: 'record', events: due } : decide(session, here)
    flights.attempt(writer.epoch)
    if (!inCommit) {
      flights.note(decision)
      // An effect may have begun before the time of this decision came.
      if (before < here.now) flights.note(decide(session, { ...here, now: before }))
    }
    const [first, ...rest] = decision.type === 'record' ? decision.events : []
    due = []
    if (isInbox(event)) {
      if (inCommit) differences.push({ seq: event.seq, expected: decision, found: event })
    } else if (first !== undefined && same(bodyOf(event), first)) due = rest
    else if (!(flights.has(event) && !inCommit) && !decidedOutside(event, session))
      differences.push({ seq: event.seq, expected: decision, found: event })
    flights.land(event)
    take(session, event)
    before = clockOf(event)
  }
  return differences.filter(({ seq }) => seq > arrivedAt(events))
}

/** What stands before an import was decided in another store, or written by the maker of the file. */
function arrivedAt(events: readonly Event[]): number {
  return events.findLast((event) => event.type === 'session.imported')?.seq ?? 0
}

/**
 * The events after which today's code would write more, and the log does not. A log does not say why: the worker was stopped just
 * then, or it had other rules. Empty if no worker was stopped in between and today's rules decide the same.
 */
export function unwritten(events: readonly Event[], decide: typeof next = next): readonly Omit<Redecided, 'found'>[] {
  const missing: Omit<Redecided, 'found'>[] = []
  const session = open(EMPTY)
  for (const [i, event] of events.entries()) {
    const { seq, epoch } = event
    take(session, event)
    if (epoch === 0 || events[i + 1]?.epoch === epoch) continue
    const expected = decide(session, { now: clockOf(event), epoch })
    if (expected.type === 'record') missing.push({ seq, expected })
  }
  return missing.filter(({ seq }) => seq > arrivedAt(events))
}

/**
 * What the runtime decides and `next` does not, with the reason. Everything else that an owner writes is decided by `next`, or is
 * the landing of an effect that `next` wanted.
 */
const OUTSIDE: readonly { readonly why: string; readonly is: (event: OwnerEvent, session: OpenSession) => boolean }[] =
  [
    { why: 'a verb, a fork or a parent opens a session', is: (e) => e.epoch === 0 },
    { why: 'whoever wants to be woken says when', is: (e) => e.type === 'wake.scheduled' },
    {
      why: 'limits, nudges, context, lessons and undoing are noted by who knows of them; next writes corrections only',
      is: (e) => e.type === 'note.added' && e.kind !== 'correction',
    },
    { why: 'the runtime sees when a context is full', is: (e) => e.type === 'context.compacted' },
    {
      why: 'money, tokens, breakers and hooks are known outside of the fold, and end a run as next would end it',
      is: (e, s) => e.type === 'run.settled' && endsOutside(e) && same(bodyOf(e), settlement(s, e.outcome)),
    },
    { why: 'only a verb closes or imports a session', is: (e) => ENTERED.has(e.type) },
    { why: 'another version wrote it, and it changes nothing here', is: (e) => !KNOWN.has(e.type) },
  ]

const ENTERED: ReadonlySet<string> = new Set<OwnerEvent['type']>(['session.closed', 'session.imported'])

const KNOWN: ReadonlySet<string> = new Set<OwnerEvent['type']>([
  'session.created',
  'run.started',
  'model.started',
  'agent.message',
  'model.failed',
  'agent.tool_use',
  'agent.custom_tool_use',
  'agent.tool_result',
  'context.compacted',
  'note.added',
  'wake.scheduled',
  'run.deferred',
  'run.settled',
  'session.closed',
  'session.imported',
  'run.reviewed',
  'call.reviewed',
])

function decidedOutside(event: OwnerEvent, session: OpenSession): boolean {
  return OUTSIDE.some(({ is }) => is(event, session))
}

function endsOutside({ outcome }: Extract<OwnerEvent, { type: 'run.settled' }>): boolean {
  if (outcome.type === 'limit') return outcome.limit === 'usd' || outcome.limit === 'tokens'
  return outcome.type === 'halted' || (outcome.type === 'interrupted' && outcome.hook !== undefined)
}

/** What may be in flight: all that was wanted at some prefix of this attempt and has not landed. */
class Flown {
  /** By key. A prepare may have begun with less than is wanted now. */
  readonly #open = new Map<string, Effect[]>()
  #epoch = 0

  /** A new attempt begins with nothing in flight. */
  attempt(epoch: number): void {
    if (epoch !== this.#epoch) this.#open.clear()
    this.#epoch = epoch
  }

  note(decision: Decision): void {
    if (decision.type !== 'perform') return
    for (const effect of [...decision.effects, ...decision.stop]) {
      const known = this.#open.get(effect.key)
      if (known) known.push(effect)
      else this.#open.set(effect.key, [effect])
    }
  }

  has(event: OwnerEvent): boolean {
    return [...this.#open.values()].some((variants) => variants.some((effect) => lands(effect, event)))
  }

  land(event: Event): void {
    if (isInbox(event)) return
    for (const [key, variants] of this.#open) {
      if (variants.some((effect) => lands(effect, event) && ends(effect, event))) this.#open.delete(key)
    }
  }
}

function lands(effect: Effect, event: OwnerEvent): boolean {
  if (effect.type === 'call')
    return event.type === 'agent.message' || (event.type === 'model.failed' && event.class !== 'lost')
  if (effect.type === 'prepare') {
    if (event.type === 'run.deferred') return true
    if (event.type !== 'run.started' && event.type !== 'run.settled') return false
    // Which wakes were due depends on the moment it began.
    const woken = (event.wakes ?? []).every((key) => effect.wakes.includes(key))
    return woken && same(event.inputs ?? [], effect.inputs)
  }
  if (effect.type === 'review') {
    if (event.type === 'run.reviewed' || event.type === 'run.settled') return true
    return 'call' in event && effect.open.some(({ key }) => key === event.call)
  }
  if (!('call' in event) || event.call !== effect.call.key) return false
  if (event.type === 'agent.tool_result') return true
  if (effect.mode !== 'execute' && effect.mode !== 'reconcile') return true
  // A call that would act elsewhere than a person was shown is asked about again instead of run. No run admits an edit.
  return event.type === 'call.reviewed' && event.edit === undefined
}

/** A review says several things, and what it says of the run comes last. */
function ends(effect: Effect, event: OwnerEvent): boolean {
  return effect.type !== 'review' || event.type === 'run.reviewed' || event.type === 'run.settled'
}

/** Each event with the owner's event that follows it or is it. After the owner's last word there is nothing to compare. */
function* withWriters(events: readonly Event[]): Generator<readonly [Event, OwnerEvent]> {
  let waiting: Event[] = []
  for (const event of events) {
    waiting.push(event)
    if (isInbox(event)) continue
    for (const each of waiting) yield [each, event]
    waiting = []
  }
}

export function isInbox(event: Event): event is InboxEvent {
  return event.type.startsWith('user.')
}

function bodyOf({ seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body }: OwnerEvent): object {
  return body
}

/**
 * But for what the runtime stamps on a request: how much money it holds, which tools it may use, and which model is asked first; and on
 * the end of a run that was stopped: what its finalizer came to.
 */
function same(found: object, decided: object): boolean {
  const said = isUnsaid(decided) ? { ...found, content: '' } : found
  return canonicalJson(unstamped(said)) === canonicalJson(unstamped(decided))
}

/** A result that `next` decides without its text: what it says of orders and waits is added when it is written. */
function isUnsaid(decided: object): boolean {
  const { type, status, content, from } = decided as Partial<Extract<OwnerBody, { type: 'agent.tool_result' }>>
  return type === 'agent.tool_result' && status === 'ok' && content === '' && from === undefined
}

function unstamped(body: object): object {
  if ('type' in body && body.type === 'run.settled') {
    const { output: _output, ...rest } = body as { output?: unknown }
    return rest
  }
  if (!('type' in body) || body.type !== 'model.started') return body
  const { shows, boost } = body as Extract<OwnerBody, { type: 'model.started' }>
  return { shows, boost: boost ?? false }
}
