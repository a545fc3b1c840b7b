// What came in lately and what was decided about it: counts for each source, and the last triggers. All of it is read
// from the cards and logs of their sessions. The work is bounded: two pages of cards for each source, and the end of a
// log that has grown since it was read last.
import type { Card, CompleteStore } from '../ports/store.ts'
import { stateIn } from '../view/node-stops.ts'
import { asString, isObject, type JsonObject } from '../view/untrusted-json.ts'
import { CONTENT_LABEL } from './decision-cache.ts'
import { DEAD_OUTCOMES, deadReason, isDeadTrigger } from './dead-triggers.ts'
import { TRIAGE_PATHS, type TriagePath } from './evaluate-trigger.ts'
import { triggerAgent } from './source-options.ts'
import { TRIAGE_ACTIONS, type TriageAction } from './triage-decision.ts'
import { TRIGGER_LABEL } from './trigger-definition.ts'

export type TriggerSummary = {
  readonly session: string
  readonly source: string
  readonly label: string
  /** `waiting`: nothing is decided yet. `stopped`: a person dropped or stopped it. */
  readonly state: 'waiting' | 'deferred' | 'decided' | 'dead' | 'stopped'
  readonly action: TriageAction | null
  readonly path: TriagePath | null
  /** Of the decision, or why it is deferred or dead. */
  readonly reason: string | null
  /** The agent that got the task. */
  readonly target: string | null
  readonly at: number
}
export type SourceSummary = {
  readonly source: string
  /** The newest deliveries, which are counted here; with `more` there are older ones. */
  readonly accepted: number
  readonly more: boolean
  readonly dropped: number
  readonly notified: number
  readonly reacted: number
  readonly escalated: number
  readonly deferred: number
  readonly dead: number
}
export type TriggerFilter = {
  readonly source?: string
  /** An action of the triage, or a state. */
  readonly decision?: TriageAction | 'waiting' | 'deferred' | 'dead'
}
type ReadStore = Pick<CompleteStore, 'page' | 'read'>
const COUNTED_MAX = 200
/** Of all sources together. */
const CARDS_MAX = 1_000
const DEAD_MAX = 50
const LISTED = 50
const EVENTS_READ = 40
const KEPT_MAX = 2 * CARDS_MAX

type KeptState = { readonly seq: number; readonly at: number; readonly state: JsonObject }

const known = new WeakMap<ReadStore, Map<string, KeptState>>()

export async function listTriggers(
  store: ReadStore,
  sources: readonly string[],
  { source, decision }: TriggerFilter = {},
): Promise<{ readonly sources: readonly SourceSummary[]; readonly triggers: readonly TriggerSummary[] }> {
  const counted = Math.max(1, Math.min(COUNTED_MAX, Math.floor(CARDS_MAX / Math.max(1, sources.length))))
  const found: TriggerSummary[] = []
  const rows: SourceSummary[] = []
  for (const name of sources) {
    const { newest, dead, more } = await readSource(store, name, counted)
    rows.push(sourceSummary(name, newest, dead, more))
    const ids = new Set(newest.map(({ session }) => session))
    if (source === undefined || source === name)
      found.push(...newest, ...dead.filter(({ session }) => !ids.has(session)))
  }
  const wanted = found.filter(({ action, state }) => [undefined, action, state].includes(decision))
  return { sources: rows, triggers: wanted.toSorted((a, b) => b.at - a.at).slice(0, LISTED) }
}

/** Dead triggers are asked for by themselves, since they may be older than the newest. */
async function readSource(store: ReadStore, name: string, limit: number) {
  const agent = triggerAgent(name)
  // A search by the label is a search by an index, where the source has few deliveries.
  const of = { agent, where: { [TRIGGER_LABEL]: name } } as const
  const dead = { ...of, status: 'idle', outcome: DEAD_OUTCOMES, order: 'newest', limit: DEAD_MAX } as const
  const [made, failed] = await Promise.all([store.page({ ...of, order: 'made', limit }), store.page(dead)])
  const summaries = async (cards: readonly Card[]) =>
    Promise.all(cards.map(async (card) => summaryOf(card, await lastState(store, card))))
  return {
    newest: await summaries(made.cards.filter(isTrigger)),
    dead: await summaries(failed.cards.filter(isDeadTrigger)),
    more: made.next !== null,
  }
}

/** Another session may have the agent of a source; only triggers have both labels. */
function isTrigger({ labels = {}, parent }: Card): boolean {
  return parent === undefined && TRIGGER_LABEL in labels && CONTENT_LABEL in labels
}

function sourceSummary(
  source: string,
  newest: readonly TriggerSummary[],
  dead: readonly TriggerSummary[],
  more: boolean,
): SourceSummary {
  const decided = (wanted: TriageAction): number => newest.filter(({ action }) => action === wanted).length
  return {
    source,
    accepted: newest.length,
    more,
    dropped: decided('drop'),
    notified: decided('notify'),
    reacted: decided('react'),
    escalated: decided('escalate'),
    deferred: newest.filter(({ state }) => state === 'deferred').length,
    dead: dead.length,
  }
}

function summaryOf(card: Card, { decision, evaluated, deferred }: JsonObject): TriggerSummary {
  // An imported log may hold anything.
  const [judged, way] = [objectOf(decision), objectOf(evaluated)]
  const source = card.labels?.[TRIGGER_LABEL] ?? ''
  const action = TRIAGE_ACTIONS.find((each) => each === judged['action']) ?? null
  const state = stateOfTrigger(card, action !== null, typeof deferred === 'string')
  const reason = state === 'dead' ? deadReason(card) : asString(state === 'deferred' ? deferred : judged['reason'])
  return {
    session: card.session,
    source,
    label: (card.title ?? '').replace(`${source}: `, ''),
    state,
    action,
    path: TRIAGE_PATHS.find((each) => each === way['path']) ?? null,
    reason: reason === '' ? null : reason,
    target: asString(judged['target_agent']) || null,
    at: card.created ?? card.at,
  }
}

/** The state in the last checkpoint of the graph, which stands until the log grows. */
async function lastState(store: ReadStore, { session, seq, at }: Card): Promise<JsonObject> {
  const kept = known.get(store) ?? new Map<string, KeptState>()
  known.set(store, kept)
  const before = kept.get(session)
  // A session that was removed may have come again under its id.
  if (before?.seq === seq && before.at === at) return before.state
  const { events } = await store.read(session, Math.max(0, seq - EVENTS_READ), EVENTS_READ)
  const { decision, evaluated, deferred } = objectOf(stateIn(events))
  const state = { decision: decision ?? null, evaluated: evaluated ?? null, deferred: deferred ?? null }
  kept.delete(session)
  kept.set(session, { seq, at, state })
  const [oldest] = kept.keys()
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest)
  return state
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function stateOfTrigger(card: Card, isDecided: boolean, wasDeferred: boolean): TriggerSummary['state'] {
  if (isDeadTrigger(card)) return 'dead'
  const { status, outcome, due } = card
  const isOver = status === 'terminated' || (status === 'idle' && outcome !== null && due === null)
  if (isOver && outcome !== 'completed') return 'stopped'
  if (isDecided) return 'decided'
  return wasDeferred && status === 'rescheduling' ? 'deferred' : 'waiting'
}
