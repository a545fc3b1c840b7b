// What must hold in one log, whatever was killed while it was written. Pure: events in, sentences about what is wrong out.
// It knows nothing of clients and effects outside: journal-check.ts and effect-check.ts do.
import type { EffectClass, Proposal } from '../../src/kernel/content.ts'
import { callKey, type Event, type EventOf } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import { EMPTY, type Session } from '../../src/kernel/session.ts'
import { Transcript } from '../../src/kernel/transcript.ts'

/** One proposed call, and everything the log says of it. */
export type CallFact = {
  /** As the tool saw it: session and call. */
  readonly key: string
  readonly effect: EffectClass
  readonly gate: NonNullable<Proposal['gate']>['type'] | 'auto'
  readonly reconciles: boolean
  readonly intents: readonly EventOf<'agent.tool_use'>[]
  readonly results: readonly EventOf<'agent.tool_result'>[]
  /** The first decision that was bound to this very action; it stands. */
  readonly decision: EventOf<'user.tool_confirmation'> | null
}

/** Sequence numbers without a gap, time and epochs that never go back, and no inbox id twice. */
export function checkEnvelopes(events: readonly Event[]): readonly string[] {
  const wrong: string[] = []
  const ids = new Set<string>()
  let at = 0
  let epoch = 0
  for (const [i, event] of events.entries()) {
    if (event.seq !== i + 1) wrong.push(`event ${i + 1} has seq ${event.seq}`)
    if (event.at < at) wrong.push(`time goes back at event ${event.seq}`)
    if (event.epoch !== 0 && event.epoch < epoch) wrong.push(`epoch ${event.epoch} writes after ${epoch}`)
    at = event.at
    epoch = Math.max(epoch, event.epoch)
    if (!('id' in event)) continue
    if (ids.has(event.id)) wrong.push(`duplicated: ${event.id} is there again at event ${event.seq}`)
    ids.add(event.id)
  }
  return wrong
}

/** Folds the log from its beginning. `at` is the session after `upTo` events, for a snapshot to be compared with. */
export function refoldSession(events: readonly Event[], upTo = 0): { readonly end: Session; readonly at: Session } {
  let end = EMPTY
  let at = EMPTY
  for (const event of events) {
    end = fold(end, event)
    if (event.seq === upTo) at = end
  }
  return { end, at }
}

/** Everything has settled: no run, so no open intent and no open request, and no input that was never taken up. */
export function checkRest(end: Session): readonly string[] {
  const wrong: string[] = []
  if (end.run) wrong.push(`its run ${end.run.seq} is still open`)
  if (end.inputs.length > 0) wrong.push(`input ${end.inputs.map((input) => input.seq).join(', ')} was never taken up`)
  if (end.stop > 0) wrong.push(`its interrupt ${end.stop} never took effect`)
  return wrong
}

/** Inputs, results and notes are each shown to the model once, or wait to be. What waited as a session was closed is shown to nobody. */
export function checkShown(events: readonly Event[], end: Session): readonly string[] {
  const shown = new Map<number, number>()
  const closed = events.findIndex(({ type }) => type === 'session.closed')
  if (closed >= 0) for (const { seq } of refoldSession(events.slice(0, closed)).end.inputs) shown.set(seq, 1)
  for (const seq of end.unshown) shown.set(seq, (shown.get(seq) ?? 0) + 1)
  for (const event of events) {
    if (event.type !== 'model.started') continue
    for (const seq of event.shows) shown.set(seq, (shown.get(seq) ?? 0) + 1)
  }
  return events.flatMap(({ type, seq }) => {
    if (type !== 'user.message' && type !== 'agent.tool_result' && type !== 'note.added') return []
    const times = shown.get(seq) ?? 0
    return times === 1 ? [] : [`${type} ${seq} was shown ${times} times`]
  })
}

/** P3: whatever was lost, no request shows a call without its one result. */
export function checkRequests(events: readonly Event[]): readonly string[] {
  const transcript = new Transcript()
  const wrong: string[] = []
  for (const event of events) {
    transcript.take(event)
    if (event.type !== 'model.started') continue
    const open = new Set<string>()
    for (const message of transcript.messages) {
      if (message.role === 'assistant') for (const call of message.calls) open.add(call.key)
      else if (message.role === 'tool' && !open.delete(message.call)) {
        wrong.push(`request ${event.seq} shows a second result, or one without its call: ${message.call}`)
      }
    }
    for (const call of open) wrong.push(`request ${event.seq} shows call ${call} without its result`)
  }
  return wrong
}

export function callsOf(session: string, events: readonly Event[]): readonly CallFact[] {
  const results = byCall(events.filter((event) => event.type === 'agent.tool_result'))
  const intents = byCall(events.filter((event) => event.type === 'agent.tool_use'))
  const decisions = byCall(events.filter((event) => event.type === 'user.tool_confirmation'))
  return events.flatMap((event) => {
    if (event.type !== 'agent.message') return []
    return event.calls.map((proposal, i): CallFact => {
      const key = callKey(event.seq, i)
      return {
        key: `${session}:${key}`,
        effect: proposal.effect,
        gate: proposal.gate?.type ?? 'auto',
        reconciles: proposal.reconcile === true,
        intents: intents.get(key) ?? [],
        results: results.get(key) ?? [],
        decision: decisions.get(key)?.find((decision) => decision.digest === proposal.digest) ?? null,
      }
    })
  })
}

function byCall<E extends { readonly call: string }>(events: readonly E[]): ReadonlyMap<string, readonly E[]> {
  const found = new Map<string, E[]>()
  for (const event of events) {
    const list = found.get(event.call) ?? []
    list.push(event)
    found.set(event.call, list)
  }
  return found
}
