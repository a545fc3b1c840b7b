// How many calls wait for a person's decision, and since when, by agent: what the store holds now, whoever drives it.
import type { Card, CompleteStore } from '../kernel/index.ts'
import { AGENTS_MAX, labelText, OTHER, type Series } from './run-counts.ts'

const PAGE = 1_000

export type WaitingApprovals = { readonly waiting: Series; readonly oldestSeconds: Series }

export class ApprovalReader {
  readonly #store: Pick<CompleteStore, 'list' | 'read' | 'now'>
  /** When calls that still wait were asked about: it never changes, so it is read once. */
  #askedAt = new Map<string, number>()

  constructor(store: Pick<CompleteStore, 'list' | 'read' | 'now'>) {
    this.#store = store
  }

  /** The agents with the most calls have a series of their own. */
  async read(): Promise<WaitingApprovals> {
    const now = this.#store.now()
    const found = new Map<string, { calls: number; since: number }>()
    const askedAt = new Map<string, number>()
    for (let after = ''; ; ) {
      const cards = await this.#store.list({ waiting: true, after, limit: PAGE })
      for (const card of cards) {
        // What was imported is asked about again when a person resumes it.
        if (card.asks.length === 0 || card.held || card.status === 'terminated') continue
        const since = await this.#since(card, askedAt)
        const known = found.get(card.agent)
        found.set(card.agent, {
          calls: (known?.calls ?? 0) + card.asks.length,
          since: Math.min(known?.since ?? since, since),
        })
      }
      const last = cards.at(-1)
      if (last === undefined || cards.length < PAGE) break
      after = last.session
    }
    this.#askedAt = askedAt
    const waiting = new Map<string, number>()
    const oldestSeconds = new Map<string, number>()
    const rows = [...found].toSorted(([a, x], [b, y]) => y.calls - x.calls || (a < b ? -1 : 1))
    for (const [i, [agent, { calls, since }]] of rows.entries()) {
      const label = labelText('agent', i < AGENTS_MAX ? agent : OTHER)
      waiting.set(label, (waiting.get(label) ?? 0) + calls)
      oldestSeconds.set(label, Math.max(oldestSeconds.get(label) ?? 0, (now - since) / 1_000))
    }
    return { waiting, oldestSeconds }
  }

  /** The first of a session's calls is the one that has waited longest. */
  async #since({ session, asks: [first = ''], seq, at }: Card, kept: Map<string, number>): Promise<number> {
    const asked = Number(first.split('.')[0])
    // Nothing happened since the reply that asked.
    if (asked === seq) return at
    const key = `${session} ${first}`
    const known = this.#askedAt.get(key) ?? (await this.#readTime(session, asked)) ?? at
    kept.set(key, known)
    return known
  }

  async #readTime(session: string, seq: number): Promise<number | undefined> {
    const page = await this.#store.read(session, seq - 1, 1).catch(() => null)
    return page?.events[0]?.at
  }
}
