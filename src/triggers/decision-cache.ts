// Decisions that were made within a day about the same event: those of this process, and those in the logs of earlier
// triggers, which are found by a label. The logs are the truth; the map only saves reading them.
import { hash } from 'node:crypto'
import type { CompleteStore } from '../ports/store.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { textOf } from '../view/shown-text.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import type { TriageDecision } from './triage-decision.ts'

/** The label of a session with the hash of what its triage is asked. */
export const CONTENT_LABEL = 'trigger.content'

const DAY_MS = 86_400_000
const KEPT_MAX = 1_000
const CARDS_READ = 4
const EVENTS_READ = 40

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

/** A checkpoint of the graph wrote it, after it was checked. */
function decisionIn(text: string): KnownDecision | null {
  const point = parseJson(text)
  const state = isObject(point) ? point['state'] : null
  if (!isObject(state) || !isObject(state['decision']) || typeof state['decidedAt'] !== 'number') return null
  return { decision: state['decision'] as unknown as TriageDecision, at: state['decidedAt'] }
}
