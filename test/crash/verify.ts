// The comparison after the last kill: every log, the client's journal, the oracle of effects, and what was read after earlier
// kills. Only reads. What must hold in one log is log-check.ts; this file brings the parts together.
import { isDeepStrictEqual } from 'node:util'
import type { Card, CompleteStore } from '../../src/ports/store.ts'
import { cardOf } from '../../src/view/card.ts'
import { factsAfter, NO_FACTS, cardFacts } from '../../src/stores/plan/log-facts.ts'
import type { Event } from '../../src/kernel/event.ts'
import { next } from '../../src/kernel/next.ts'
import { parseSnapshot } from '../../src/runtime/state/session-cache.ts'
import { FOLD_VERSION, type Session } from '../../src/kernel/session.ts'
import { checkEffects, type EffectReport } from './effect-check.ts'
import { digestOf, type ErrorLine, type JournalLine, type OracleLine } from './evidence.ts'
import { checkJournal, type JournalReport } from './journal-check.ts'
import {
  type CallFact,
  callsOf,
  checkEnvelopes,
  checkRequests,
  checkRest,
  checkShown,
  refoldSession,
} from './log-check.ts'
import { checkTrees, type TreeReport } from './tree-check.ts'
import { HOLD } from './workload.ts'

export type Evidence = {
  readonly journal: readonly JournalLine[]
  readonly oracle: readonly OracleLine[]
  readonly errors: readonly ErrorLine[]
  /** By session: the digests of the events as they were read after earlier kills. */
  readonly reads: ReadonlyMap<string, { readonly digests: readonly string[] }>
}

export type Verdict = {
  /** Empty when all is well. */
  readonly violations: readonly string[]
  readonly sessions: number
  readonly events: number
  readonly calls: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  readonly journal: JournalReport
  readonly effects: EffectReport
  readonly trees: TreeReport
}

/** What a worker may meet while others write and die around it. */
const TOLERATED: ReadonlySet<string> = new Set(['store_busy', 'lease_lost'])

export async function verify(store: CompleteStore, evidence: Evidence): Promise<Verdict> {
  const logs = new Map<string, readonly Event[]>()
  const violations: string[] = []
  const calls: CallFact[] = []
  const outcomes: Record<string, number> = {}
  for (const card of await store.list({ limit: 10_000 })) {
    const { events, damaged } = await store.read(card.session, 0)
    const wrong = damaged ? [`event ${damaged.seq} is damaged: ${damaged.reason}`] : []
    wrong.push(...checkLog(events), ...checkReads(events, evidence.reads.get(card.session)?.digests ?? []))
    wrong.push(...(await checkDerived(store, card, events)))
    for (const text of wrong) violations.push(`${card.session}: ${text}`)
    logs.set(card.session, events)
    calls.push(...callsOf(card.session, events))
    for (const event of events) if (event.type === 'run.settled') count(outcomes, event.outcome.type)
  }
  const journal = checkJournal(evidence.journal, logs)
  const effects = checkEffects(calls, evidence.oracle)
  const faults: Record<string, number> = {}
  for (const { kind, code } of evidence.errors) if (kind === 'Fault') count(faults, code)
  violations.push(...troublesIn(evidence.errors))
  const trees = checkTrees(logs)
  violations.push(...journal.wrong, ...effects.wrong, ...trees.wrong)
  const events = [...logs.values()].reduce((sum, log) => sum + log.length, 0)
  return { violations, sessions: logs.size, events, calls: calls.length, outcomes, faults, journal, effects, trees }
}

export function troublesIn(errors: readonly ErrorLine[]): readonly string[] {
  return errors.flatMap(({ kind, code, session, text }) =>
    TOLERATED.has(code) ? [] : [`an attempt on ${session || 'no session'} ended with a ${kind}: ${text}`],
  )
}

export function checkLog(events: readonly Event[]): readonly string[] {
  const wrong = [...checkEnvelopes(events), ...checkRequests(events)]
  try {
    const { end } = refoldSession(events)
    return [...wrong, ...checkRest(end), ...checkShown(events, end)]
  } catch (error) {
    return [...wrong, `it does not fold: ${String(error)}`]
  }
}

/** Events that were read once are still there, unchanged. */
function checkReads(events: readonly Event[], digests: readonly string[]): readonly string[] {
  return digests.flatMap((digest, i) => {
    const event = events[i]
    return event && digestOf(event) === digest ? [] : [`event ${i + 1} is not what it was after an earlier kill`]
  })
}

/** The card, the snapshot and the account say what the log says. */
async function checkDerived(store: CompleteStore, card: Card, events: readonly Event[]): Promise<readonly string[]> {
  const snapshot = await store.snapshot(card.session)
  let folded: { readonly end: Session; readonly at: Session }
  try {
    folded = refoldSession(events, snapshot?.seq)
  } catch {
    return []
  }
  const { end, at } = folded
  const wrong: string[] = []
  const derived = cardOf(card.session, end, next(end, { now: store.now(), epoch: end.epoch }))
  const rebuilt = { ...derived, ...cardFacts(events.reduce(factsAfter, NO_FACTS)) }
  if (!isDeepStrictEqual(rebuilt, card))
    wrong.push(`its card is ${JSON.stringify(card)}, not ${JSON.stringify(rebuilt)}`)
  if (snapshot?.version === FOLD_VERSION && !isDeepStrictEqual(parseSnapshot(snapshot.body).session, at)) {
    wrong.push(`its snapshot of event ${snapshot.seq} is not what the log folds to`)
  }
  const account = await store.account(`session:${card.session}`)
  const { spent, assumed } = costOf(events)
  if ((account?.held ?? 0) !== 0) wrong.push(`${account?.held} is still held`)
  if ((account?.spent ?? 0) !== spent || (account?.assumed ?? 0) !== assumed) {
    wrong.push(`its account says ${account?.spent} (${account?.assumed}), its log ${spent} (${assumed})`)
  }
  return wrong
}

/** Every reply at its cost, also one that was stopped, and every call of unreported cost at its full hold. */
function costOf(events: readonly Event[]): { readonly spent: number; readonly assumed: number } {
  let spent = 0
  let assumed = 0
  for (const event of events) {
    if (event.type === 'agent.message') spent += event.cost ?? 0
    else if (event.type === 'model.failed' && (event.class === 'lost' || event.assumed)) assumed += HOLD
    else if (event.type === 'model.failed') spent += event.cost ?? 0
  }
  return { spent: spent + assumed, assumed }
}

function count(tally: Record<string, number>, name: string): void {
  tally[name] = (tally[name] ?? 0) + 1
}
