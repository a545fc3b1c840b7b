// Triggers that came to no end: lists them, runs one again, or closes it. A dead trigger is a session whose last run
// failed or reached a limit; there is no other list of them. Of two people who decide about one, the first wins.
import type { Event, InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { countCheck, nonEmptyCheck, optionsChecker, whyNameInvalid } from '../options.ts'
import type { Card } from '../ports/store.ts'
import { buildMessage } from '../sessions/command.ts'
import { admitToInbox } from '../sessions/drive/enter.ts'
import { wakeSession } from '../sessions/drive/place.ts'
import { sessionMissingFault } from '../stores/plan/plan-writes.ts'
import { CONTENT_LABEL } from './decision-cache.ts'
import { TRIGGER_LABEL, type TriggerPlace, triggerPlaceOf } from './trigger-definition.ts'

/** An event that came to no end: its triage failed too often, or could not begin. */
export type DeadTrigger = {
  /** The session of the trigger. */
  readonly sessionId: string
  /** The source of the event. */
  readonly source: string
  /** Its title: source and label. */
  readonly title: string
  /** The time of its last event, in ms since 1970. */
  readonly at: number
  /** Why it came to no end. */
  readonly reason: string
}
/** Verbs on events that came to no end: list them, run one again, or drop it. */
export type DeadTriggers = {
  /** The newest first. */
  readonly list: (options?: { readonly source?: string; readonly limit?: number }) => Promise<readonly DeadTrigger[]>
  /** Runs it again where it failed, with all its deferrals. */
  readonly retry: (sessionId: string, options?: DeadTriggerOptions) => Promise<void>
  /** Closes it: it never runs again. Its log stays. */
  readonly drop: (sessionId: string, options?: DeadTriggerOptions) => Promise<void>
}
/** `by`: who decides, for the log. */
type DeadTriggerOptions = { readonly by?: string }
type ListDead = Parameters<DeadTriggers['list']>[0]

const LISTED = 50
const LISTED_MAX = 500
export const DEAD_OUTCOMES = ['failed', 'limit', 'halted'] as const
/** How the ids of decisions begin. */
const DECISION = 'dead-trigger:'
const RUN_FAILED = /^Node "\w+" failed: (?:Error: )?/

const checkList = optionsChecker<NonNullable<ListDead>>('list', {
  source: nonEmptyCheck,
  limit: countCheck(1, LISTED_MAX),
})
const checkDecision = optionsChecker<DeadTriggerOptions>('the decision', { by: whyNameInvalid })

/** The dead triggers of a harness that has `triggers`. */
export function deadTriggers(harness: object): DeadTriggers {
  const place = triggerPlaceOf(harness)
  return {
    list: async (options = {}) => listDead(place, options),
    retry: async (id, options = {}) => {
      const retried: Decide = (decision, by) =>
        buildMessage({ edit: { deferrals: 0 } }, { id: decision, ...by }, place.services.random).event
      await decideDead(place, id, options, retried)
    },
    drop: async (id, options = {}) => {
      const dropped: Decide = (decision, by) => {
        return {
          type: 'user.interrupt',
          id: decision,
          mode: 'stop',
          closes: true,
          why: 'The dead trigger was dropped.',
          ...by,
        }
      }
      await decideDead(place, id, options, dropped)
    },
  }
}

async function listDead(place: TriggerPlace, options: NonNullable<ListDead>): Promise<readonly DeadTrigger[]> {
  checkList(options)
  const { store } = place.services
  await store.open()
  const { source, limit = LISTED } = options
  const where = source === undefined ? {} : { where: { [TRIGGER_LABEL]: source } }
  const found: DeadTrigger[] = []
  const query = { ...where, status: 'idle', outcome: DEAD_OUTCOMES, order: 'newest', limit: LISTED_MAX } as const
  for (let behind = {}; found.length < limit; ) {
    const { cards, next } = await store.page({ ...query, ...behind })
    found.push(...cards.filter(isDeadTrigger).map(deadTriggerOf))
    if (next === null) break
    behind = { behind: next }
  }
  return found.slice(0, limit)
}

/** Another session may have the label of a source; only triggers also have that of their content. */
export function isDeadTrigger({ labels = {}, status, outcome, parent, due }: Card): boolean {
  const isTrigger = parent === undefined && TRIGGER_LABEL in labels && CONTENT_LABEL in labels
  // One that was decided about is due, until a worker has looked at it.
  return isTrigger && due === null && status === 'idle' && DEAD_OUTCOMES.some((dead) => dead === outcome)
}

function deadTriggerOf(card: Card): DeadTrigger {
  const { session, labels = {}, title = '', at } = card
  return { sessionId: session, source: labels[TRIGGER_LABEL] ?? '', title, at, reason: deadReason(card) }
}

export function deadReason({ cause, limit }: Pick<Card, 'cause' | 'limit'>): string {
  return (
    cause?.replace(RUN_FAILED, '') ?? (limit === undefined ? 'It gave no reason.' : `It reached its limit ${limit}.`)
  )
}

type Decide = (id: string, by: { readonly by?: string }) => InboxBody

/** Both decisions have one id, so the store takes only the first. */
async function decideDead(
  { services, worker }: TriggerPlace,
  session: string,
  options: DeadTriggerOptions,
  decide: Decide,
): Promise<void> {
  checkDecision(options)
  const { store } = services
  await store.open()
  const card = await store.card(session)
  if (card === null) throw sessionMissingFault(session)
  const id = `${DECISION}${(await readEnds(services, session)).settled}`
  const place = { id: session, services, worker }
  const who = options.by === undefined ? {} : { by: options.by }
  try {
    if (!isDeadTrigger(card)) throw await decidedFault(services, card)
    await admitToInbox(place, { event: decide(id, who), blobs: [] })
  } catch (error) {
    const late = error instanceof Fault && (error.code === 'id_reused' || error.code === 'session_closed')
    throw late ? await decidedFault(services, card) : error
  }
  wakeSession(place)
  if (worker.drives) await worker.wake(session)
}

type LogEnds = { readonly settled: number; readonly decision: Extract<Event, { id: string }> | null }

/** The end of its last run, and the last decision. Reading forwards is enough: the log of a trigger is short. */
async function readEnds({ store }: Pick<TriggerPlace['services'], 'store'>, session: string): Promise<LogEnds> {
  let [settled, after] = [0, 0]
  let decision: LogEnds['decision'] = null
  for (;;) {
    const { events } = await store.read(session, after)
    for (const event of events) {
      if (event.type === 'run.settled') settled = event.seq
      if ('id' in event && event.id.startsWith(DECISION)) decision = event
    }
    const last = events.at(-1)
    if (last === undefined) return { settled, decision }
    after = last.seq
  }
}

async function decidedFault(
  services: Pick<TriggerPlace['services'], 'store'>,
  { session, status, outcome }: Card,
): Promise<Fault> {
  const { decision } = await readEnds(services, session)
  if (decision === null)
    return new Fault(
      'conflict',
      `Session ${session} is no dead trigger: it is ${status}, and its last run ended as ${outcome ?? 'none'}.`,
    )
  const what = decision.type === 'user.interrupt' ? 'dropped' : 'retried'
  const by = 'by' in decision && decision.by !== undefined ? ` by ${decision.by}` : ''
  return new Fault('conflict', `The trigger ${session} was ${what} already${by}. Look at it before you decide again.`)
}
