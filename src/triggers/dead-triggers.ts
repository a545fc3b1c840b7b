// Triggers that came to no end: lists them, runs one again, or closes it. A dead trigger is a session whose last run
// failed or reached a limit; there is no other list of them. Of two people who decide about one, the first wins.
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { countCheck, nonEmptyCheck, optionsChecker, whyNameInvalid } from '../options.ts'
import type { Card } from '../ports/store.ts'
import { buildMessage } from '../sessions/command.ts'
import { admitToInbox } from '../sessions/drive/enter.ts'
import { wakeSession } from '../sessions/drive/place.ts'
import { sessionMissingFault } from '../stores/plan/plan-writes.ts'
import { CONTENT_LABEL } from './decision-cache.ts'
import { TRIGGER_LABEL, type TriggerPlace, triggerPlaceOf } from './trigger-definition.ts'

export type DeadTrigger = {
  readonly sessionId: string
  readonly source: string
  /** Its title: source and label. */
  readonly title: string
  readonly at: number
  readonly reason: string
}
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
const OUTCOMES = ['failed', 'limit', 'halted'] as const
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
  const query = { ...where, status: 'idle', outcome: OUTCOMES, order: 'newest', limit: LISTED_MAX } as const
  for (let behind = {}; found.length < limit; ) {
    const { cards, next } = await store.page({ ...query, ...behind })
    found.push(...cards.filter(isDead).map(deadTriggerOf))
    if (next === null) break
    behind = { behind: next }
  }
  return found.slice(0, limit)
}

/** Another session may have the label of a source; only triggers also have that of their content. */
function isDead({ labels = {}, status, outcome, parent, due }: Card): boolean {
  const isTrigger = parent === undefined && TRIGGER_LABEL in labels && CONTENT_LABEL in labels
  // One that was decided about is due, until a worker has looked at it.
  return isTrigger && due === null && status === 'idle' && OUTCOMES.some((dead) => dead === outcome)
}

function deadTriggerOf({ session, labels = {}, title = '', at, cause, limit }: Card): DeadTrigger {
  const why =
    cause?.replace(RUN_FAILED, '') ?? (limit === undefined ? 'It gave no reason.' : `It reached its limit ${limit}.`)
  return { sessionId: session, source: labels[TRIGGER_LABEL] ?? '', title, at, reason: why }
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
  const id = `dead-trigger:${await lastSettled({ services, worker }, session)}`
  const place = { id: session, services, worker }
  const who = options.by === undefined ? {} : { by: options.by }
  try {
    if (!isDead(card)) throw await decidedFault(place, card, id)
    await admitToInbox(place, { event: decide(id, who), blobs: [] })
  } catch (error) {
    const late = error instanceof Fault && (error.code === 'id_reused' || error.code === 'session_closed')
    throw late ? await decidedFault(place, card, id) : error
  }
  wakeSession(place)
  if (worker.drives) await worker.wake(session)
}

/** The end of its last run. Reading forwards is enough: the log of a trigger is short. */
async function lastSettled({ services }: TriggerPlace, session: string): Promise<number> {
  let [settled, after] = [0, 0]
  for (;;) {
    const { events } = await services.store.read(session, after)
    for (const event of events) if (event.type === 'run.settled') settled = event.seq
    const last = events.at(-1)
    if (last === undefined) return settled
    after = last.seq
  }
}

async function decidedFault(
  { services, id: session }: { readonly services: TriggerPlace['services']; readonly id: string },
  { status, outcome }: Card,
  id: string,
): Promise<Fault> {
  const seq = await services.store.sent(session, id)
  const [event] = seq === null ? [] : (await services.store.read(session, seq - 1, 1)).events
  if (event === undefined || !('by' in event || 'id' in event))
    return new Fault(
      'conflict',
      `Session ${session} is no dead trigger: it is ${status}, and its last run ended as ${outcome ?? 'none'}.`,
    )
  const what = event.type === 'user.interrupt' ? 'dropped' : 'retried'
  const by = 'by' in event && event.by !== undefined ? ` by ${event.by}` : ''
  return new Fault('conflict', `The trigger ${session} was ${what} already${by}. Look at it before you decide again.`)
}
