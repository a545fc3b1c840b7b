// A run that has settled, read from its log: for hooks after the run, and for consumers.
import type { Frozen, Json, Labels, Limits, Metadata, Outcome } from '../../kernel/content.ts'
import type { Event, EventOf } from '../../kernel/event.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { lifeOf } from '../../stores/plan/plan-writes.ts'
import { inputText } from '../../view/session-history.ts'
import { ResultCollector, type Result } from '../state/run-result.ts'

const PAGE = 1_000

export type RunRecord = {
  readonly result: Result
  readonly inputs: readonly number[]
  readonly limits: Limits | null
  readonly beganAt: number
}

/** The place of a settled run: the seq of its first event, and the event that settled it. */
export type RunPlace = { readonly session: string; readonly from: number; readonly end: EventOf<'run.settled'> }

/**
 * Reads the run that this event settled from its log, beginning with the input that opened it, as its sender sees it.
 * `each` gets all of these events.
 */
export async function readRunRecord(
  store: CompleteStore,
  { session, from, end }: RunPlace,
  each: (event: Event) => void = () => {},
): Promise<RunRecord> {
  const [start] = (await store.read(session, from - 1, 1)).events
  const began = start?.type === 'run.started' ? start : null
  const { inputs = [], limits = null, at } = began ?? { inputs: end.inputs, at: end.at }
  const first = inputs[0] ?? null
  const collector = new ResultCollector(session, first)
  for (let after = (first ?? from) - 1; after < end.seq; ) {
    const { events } = await store.read(session, after, Math.min(PAGE, end.seq - after))
    for (const event of events) {
      each(event)
      collector.take(event)
    }
    const last = events.at(-1)
    if (last === undefined) break
    after = last.seq
  }
  await collector.countChildren(store)
  return { result: collector.result([], { waiting: 'nothing', until: null }), inputs, limits, beganAt: at }
}

/** A settled run as consumers get it. Of a run that was stopped it has what there is. */
export type SettledRun = Frozen<{
  /** The session of the run. */
  session: string
  /** The agent of the session. */
  agent: string
  /** The user who opened the session. Null: the host did not say. */
  owner: string | null
  /** The first event of the run, which names it in its session. */
  run: number
  /** The event that settled the run. */
  seq: number
  /** When the run started, in ms since 1970. A run that never started has the time of its end. */
  beganAt: number
  /** When the run settled, in ms since 1970. */
  endedAt: number
  /** How the run ended, as its log has it. */
  outcome: Outcome
  /** The messages that opened the run. Empty if a wake did. */
  prompt: string
  /** The answer, or the last text of a run without one. */
  text: string
  /** The answer as data. Null if there is none. */
  output: Json
  /** The tokens, requests and calls of the run, with those of the children that its calls started. */
  usage: Result['usage']
  /** The cost of the run, with those children and without them. */
  cost: Result['cost']
  /** The labels of the session. */
  labels: Labels
  /** The host's metadata of the run, over that of its session. */
  metadata: Metadata
}>

/** Names a settled run. `life` counts the earlier sessions with this id. */
export type RunName = { readonly session: string; readonly run: number; readonly seq: number; readonly life: number }

/** Null if the session was removed meanwhile. */
export async function readSettledRun(
  store: CompleteStore,
  { session, run, seq, life }: RunName,
): Promise<SettledRun | null> {
  const card = await store.card(session)
  if (card === null) return null
  const [end] = (await store.read(session, seq - 1, 1)).events
  if (end?.type !== 'run.settled' || lifeOf(end.epoch) !== life) return null
  const { result, inputs, beganAt } = await readRunRecord(store, { session, from: run, end })
  const { text, usage, cost, metadata } = result
  return {
    session,
    agent: card.agent,
    owner: card.owner ?? null,
    run,
    seq,
    beganAt,
    endedAt: end.at,
    outcome: end.outcome,
    prompt: await inputText(store, session, inputs),
    text: result.status === 'halted' ? result.said : text,
    output: 'output' in result ? (result.output ?? null) : null,
    usage,
    cost,
    labels: card.labels ?? {},
    metadata,
  }
}
