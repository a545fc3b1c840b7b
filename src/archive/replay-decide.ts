// Redecide: would today's code decide what the log contains? Asks `next` at every prefix after which the owner wrote.
// It touches no store and nothing outside: it takes the results of effects as recorded, and checks only that `next`
// wanted the effect.
import { writerTime } from '../kernel/clock.ts'
import type { OwnerBody, Event, InboxEvent, OwnerEvent } from '../kernel/event.ts'
import { open, type OpenSession, take } from '../kernel/fold.ts'
import { type Decision, type Effect, next } from '../kernel/next.ts'
import { buildRunSettled } from '../kernel/result.ts'
import { EMPTY } from '../kernel/session.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'

/** `expected` is what today's code decides before event `seq`, and `found` is what the log contains. */
export type DecisionDifference = {
  /** The event in question. */
  readonly seq: number
  /** What today's code decides before it. */
  readonly expected: Decision
  /** What the log has there. */
  readonly found: Event
}

/** Empty if today's code decides the same everywhere. `decide` is `next`, or other code to compare with the log. */
export function redecide(events: readonly Event[], decide: typeof next = next): readonly DecisionDifference[] {
  const differences: DecisionDifference[] = []
  const session = open(EMPTY)
  const flights = new OpenFlights()
  let due: readonly OwnerBody[] = []
  let before = 0
  for (const [event, writer] of withWriters(events)) {
    const here = { now: writerTime(writer), epoch: writer.epoch }
    const inCommit = due.length > 0
    const decision: Decision = inCommit ? { type: 'record', events: due } : decide(session, here)
    flights.attempt(writer.epoch)
    if (!inCommit) {
      flights.note(decision)
      // An effect may have begun before the time of this decision.
      if (before < here.now) flights.note(decide(session, { ...here, now: before }))
    }
    const [first, ...rest] = decision.type === 'record' ? decision.events : []
    due = []
    if (isInbox(event)) {
      if (inCommit) differences.push({ seq: event.seq, expected: decision, found: event })
    } else if (first !== undefined && isSameDecision(bodyOf(event), first)) due = rest
    else if (!(flights.has(event) && !inCommit) && !isDecidedOutside(event, session))
      differences.push({ seq: event.seq, expected: decision, found: event })
    flights.land(event)
    take(session, event)
    before = writerTime(event)
  }
  return differences.filter(({ seq }) => seq > lastImportSeq(events))
}

/** Events before an import were decided in another store, or written by the author of the file. */
function lastImportSeq(events: readonly Event[]): number {
  return events.findLast((event) => event.type === 'session.imported')?.seq ?? 0
}

/**
 * Finds the events after which today's code would write more than the log contains. The log cannot say why: the worker
 * may have stopped at that point, or had other rules. Empty if no worker stopped in between and today's rules decide
 * the same.
 */
export function findUnwritten(
  events: readonly Event[],
  decide: typeof next = next,
): readonly Omit<DecisionDifference, 'found'>[] {
  const missing: Omit<DecisionDifference, 'found'>[] = []
  const session = open(EMPTY)
  for (const [i, event] of events.entries()) {
    const { seq, epoch } = event
    take(session, event)
    if (epoch === 0 || events[i + 1]?.epoch === epoch) continue
    const expected = decide(session, { now: writerTime(event), epoch })
    if (expected.type === 'record') missing.push({ seq, expected })
  }
  return missing.filter(({ seq }) => seq > lastImportSeq(events))
}

/**
 * Events that the runtime decides and `next` does not, each with the reason. Every other event of an owner is decided
 * by `next`, or is the landing of an effect that `next` wanted.
 */
const OUTSIDE: readonly { readonly why: string; readonly is: (event: OwnerEvent, session: OpenSession) => boolean }[] =
  [
    { why: 'a verb, a fork or a parent opens a session', is: (e) => e.epoch === 0 },
    { why: 'a wake is asked for by the agent or its planner', is: (e) => e.type === 'wake.scheduled' },
    {
      why: 'other parts note limits, nudges, context, lessons and undoing; next writes corrections only',
      is: (e) => e.type === 'note.added' && e.kind !== 'correction',
    },
    { why: 'the runtime sees when a context is full', is: (e) => e.type === 'context.compacted' },
    {
      why: 'money, tokens, breakers and hooks are known outside of the fold, and end a run as next would end it',
      is: (e, s) =>
        (e.type === 'run.settled' || e.type === 'run.ending') &&
        endsOutside(e) &&
        isSameDecision(bodyOf(e), buildRunSettled(s, e.outcome)),
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
  'run.ending',
  'run.settled',
  'session.closed',
  'session.imported',
  'run.reviewed',
  'call.reviewed',
])

function isDecidedOutside(event: OwnerEvent, session: OpenSession): boolean {
  return OUTSIDE.some(({ is }) => is(event, session))
}

function endsOutside({ outcome }: Extract<OwnerEvent, { type: 'run.settled' | 'run.ending' }>): boolean {
  if (outcome.type === 'limit') return outcome.limit === 'usd' || outcome.limit === 'tokens'
  return outcome.type === 'halted' || (outcome.type === 'interrupted' && outcome.hook !== undefined)
}

/** The effects that may be in flight: `next` wanted them at some prefix of this attempt, and they have not landed. */
class OpenFlights {
  /** By key. A prepare effect may have begun with fewer inputs than it would have now. */
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
    return [...this.#open.values()].some((variants) => variants.some((effect) => isLandingOf(effect, event)))
  }

  land(event: Event): void {
    if (isInbox(event)) return
    for (const [key, variants] of this.#open) {
      if (variants.some((effect) => isLandingOf(effect, event) && endsEffect(effect, event))) this.#open.delete(key)
    }
  }
}

function isLandingOf(effect: Effect, event: OwnerEvent): boolean {
  if (effect.type === 'call')
    return event.type === 'agent.message' || (event.type === 'model.failed' && event.class !== 'lost')
  if (effect.type === 'prepare') {
    if (event.type === 'run.deferred') return true
    if (event.type !== 'run.started' && event.type !== 'run.settled') return false
    // The set of due wakes depends on the moment the effect began.
    const woken = (event.wakes ?? []).every((key) => effect.wakes.some((wake) => wake.key === key))
    return woken && isSameDecision(event.inputs ?? [], effect.inputs)
  }
  if (effect.type === 'review') {
    if (event.type === 'run.reviewed' || event.type === 'run.settled') return true
    return 'call' in event && effect.open.some(({ key }) => key === event.call)
  }
  if (effect.type === 'end') return event.type === (effect.outcome === null ? 'session.closed' : 'run.settled')
  if (!('call' in event) || event.call !== effect.call.key) return false
  if (event.type === 'agent.tool_result') return true
  if (effect.mode !== 'execute' && effect.mode !== 'reconcile') return true
  // A call that would act elsewhere than a person was shown is asked about again and does not run. Running a call never
  // admits an edit.
  return event.type === 'call.reviewed' && event.edit === undefined
}

/** A review lands as several events, and the one about the run comes last. */
function endsEffect(effect: Effect, event: OwnerEvent): boolean {
  return effect.type !== 'review' || event.type === 'run.reviewed' || event.type === 'run.settled'
}

/**
 * Pairs each event with the owner event that follows it, or with itself. After the last owner event there is nothing to
 * compare.
 */
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
 * Ignores what the runtime adds to a request (the money held, the usable tools, the first model of a chain) and to the
 * end of a run (the output of a finalizer, the worktree of a child). A run that announces its end ends as decided.
 */
function isSameDecision(found: object, decided: object): boolean {
  // An announced end says nothing yet of the inputs that it consumes.
  if ('type' in found && found.type === 'run.ending' && 'outcome' in found)
    return 'outcome' in decided && canonicalJson(found.outcome) === canonicalJson(decided.outcome)
  const said = hasNoText(decided) ? { ...found, content: '' } : found
  return canonicalJson(withoutStamps(said)) === canonicalJson(withoutStamps(decided))
}

/**
 * `next` decides such a result without its text; the text about orders and waits is added when the event is written.
 */
function hasNoText(decided: object): boolean {
  const { type, status, content, from } = decided as Partial<Extract<OwnerBody, { type: 'agent.tool_result' }>>
  return type === 'agent.tool_result' && status === 'ok' && content === '' && from === undefined
}

function withoutStamps(body: object): object {
  if ('type' in body && body.type === 'run.ending')
    return { type: 'run.settled', outcome: (body as Extract<OwnerBody, { type: 'run.ending' }>).outcome }
  if ('type' in body && body.type === 'run.settled') {
    const { output: _output, workspace: _workspace, ...rest } = body as Extract<OwnerBody, { type: 'run.settled' }>
    return rest
  }
  if (!('type' in body) || body.type !== 'model.started') return body
  const { shows, boost } = body as Extract<OwnerBody, { type: 'model.started' }>
  return { shows, boost: boost ?? false }
}
