// Decisions that were made within a day about the same event: those of this process, and those in the logs of earlier
// triggers, which are found by a label. The logs are the truth; the map only saves reading them.
import { hash } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import type { CompleteStore } from '../ports/store.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { textOf } from '../view/shown-text.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import type { TriageDecision } from './triage-decision.ts'

/**
 * The id of the one message of a delivery. Two processes that write the same event in the same millisecond make the same
 * session, which the store takes for one write that is repeated. The message of the second is refused, since it has the same
 * id and the mark of another delivery.
 */
export const MESSAGE_ID = 'delivery'

/** The label of a session with the hash of what its triage is asked. */
export const CONTENT_LABEL = 'trigger.content'

const DAY_MS = 86_400_000
const KEPT_MAX = 1_000
const CARDS_READ = 4
/** The log of a delivery is shorter. A longer one is not believed, since its end was not read. */
const EVENTS_READ = 200

type KnownDecision = { readonly decision: TriageDecision; readonly at: number }

/** Equal events, asked about in the same words of the same models, have equal hashes. */
export function contentHash(asked: {
  readonly label: string
  readonly payload: string
  readonly instructions: string
  readonly models: readonly string[]
}): string {
  return hash('sha256', canonicalJson(asked)).slice(0, 40)
}

export class DecisionCache {
  readonly #known = new Map<string, KnownDecision>()
  readonly #agent: string
  readonly #store: Pick<CompleteStore, 'page' | 'read'>

  /** `agent` is that of the triggers whose decisions count. */
  constructor(agent: string, store: Pick<CompleteStore, 'page' | 'read'>) {
    this.#agent = agent
    this.#store = store
  }

  keep(content: string, decision: TriageDecision, at: number): void {
    this.#known.delete(content)
    this.#known.set(content, { decision, at })
    const [oldest] = this.#known.keys()
    if (this.#known.size > KEPT_MAX && oldest !== undefined) this.#known.delete(oldest)
  }

  /**
   * Whether this session is a delivery. Whoever may open sessions may open one with its agent and any `content`: such a
   * session neither learns what was decided about deliveries nor decides about them.
   */
  async isFor(session: string): Promise<boolean> {
    return isDelivery((await this.#store.read(session, 0, EVENTS_READ)).events)
  }

  async find(content: string, now: number): Promise<TriageDecision | null> {
    const known = this.#known.get(content) ?? (await this.#inLogs(content, now))
    if (known === null || !isFresh(known.at, now)) return null
    this.keep(content, known.decision, known.at)
    return known.decision
  }

  async #inLogs(content: string, now: number): Promise<KnownDecision | null> {
    const where = { [CONTENT_LABEL]: content }
    const query = { where, agent: this.#agent, since: now - DAY_MS, order: 'newest', limit: CARDS_READ } as const
    const { cards } = await this.#store.page(query)
    for (const { session } of cards) {
      const { events } = await this.#store.read(session, 0, EVENTS_READ)
      if (!isDelivery(events)) continue
      for (const event of events) {
        const known = event.type === 'agent.message' ? decisionIn(textOf(event.parts)) : null
        if (known !== null && isFresh(known.at, now)) return known
      }
    }
    return null
  }
}

function isFresh(at: number, now: number): boolean {
  return at <= now && now - at < DAY_MS
}

/**
 * Labels say nothing, and a file may hold any log. Only accept-trigger.ts writes a message with this id, into a session
 * that nobody brought or forked.
 */
function isDelivery(events: readonly Event[]): boolean {
  const [created, message] = events
  const isOwn = created?.type === 'session.created' && created.fork === undefined
  const isAccepted = message?.type === 'user.message' && message.id === MESSAGE_ID
  const isBrought = events.some(({ type }) => type === 'session.imported')
  return isOwn && isAccepted && !isBrought && events.length < EVENTS_READ
}

/** A checkpoint of the graph wrote it, after it was checked. */
function decisionIn(text: string): KnownDecision | null {
  const point = parseJson(text)
  const state = isObject(point) ? point['state'] : null
  if (!isObject(state) || !isObject(state['decision']) || typeof state['decidedAt'] !== 'number') return null
  return { decision: state['decision'] as unknown as TriageDecision, at: state['decidedAt'] }
}
