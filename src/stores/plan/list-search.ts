// The replacement for `search` in a store without it: pages of cards from lists of all sessions, and messages from
// their logs. It reads everything, a bounded piece at a time, so it is for stores of some thousand sessions.
import { hash } from 'node:crypto'
import { Fault } from '../../kernel/failure.ts'
import type { Card, CardPage, CardPlace, CardQuery, Search, Store } from '../../ports/store.ts'
import { checkQuery, comparePlaces, FIRST_PLACE, hasOutcome, isAgentWanted } from './card-query.ts'
import { hasAllWords, searchableText, searchWords } from './log-facts.ts'

const CARDS = 500
const EVENTS = 500

type PlacedCard = { readonly card: Card; readonly place: CardPlace }

export class ListSearch implements Search {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * The order `made` is by the time of the first event. Sessions with the same time are ordered by a number made of
   * their ids.
   */
  async page(query: CardQuery): Promise<CardPage> {
    checkQuery(query)
    const { limit, behind } = query
    const words = searchWords(query.q ?? '')
    let found: PlacedCard[] = []
    for await (const card of this.#cards(query)) {
      const place = placeOf(card, query)
      if ((behind && comparePlaces(behind, place) >= 0) || !matchesPage(card, query, words)) continue
      found.push({ card, place })
      if (found.length > limit + CARDS) found = firstOf(found, limit + 1)
    }
    const shown = firstOf(found, limit)
    const last = shown.at(-1)?.place ?? behind ?? FIRST_PLACE
    return { cards: shown.map(({ card }) => card), next: found.length > limit ? last : null }
  }

  async sent(session: string, id: string): Promise<number | null> {
    for (let after = 0; ; ) {
      const events = await this.#events(session, after)
      const found = events.find((event) => event.epoch === 0 && 'id' in event && event.id === id)
      if (found) return found.seq
      const last = events.at(-1)
      if (last === undefined) return null
      after = last.seq
    }
  }

  async #events(session: string, after: number) {
    try {
      return (await this.#store.read(session, after, EVENTS)).events
    } catch (error) {
      if (error instanceof Fault && error.code === 'session_missing') return []
      throw error
    }
  }

  async *#cards({ status, parent, folder, where }: CardQuery): AsyncGenerator<Card> {
    const wanted = { status, parent, folder, where }
    const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined))
    for (let after: string | undefined; ; ) {
      const page = await this.#store.list({ ...given, limit: CARDS, ...(after === undefined ? {} : { after }) })
      yield* page
      after = page.at(-1)?.session
      if (page.length < CARDS) return
    }
  }
}

function firstOf(found: readonly PlacedCard[], count: number): PlacedCard[] {
  return found.toSorted((a, b) => comparePlaces(a.place, b.place)).slice(0, count)
}

/** A store without `search` numbers no sessions, so a number made of the id stands for the order of one moment. */
function placeOf({ session, at, created }: Card, { order }: CardQuery): CardPlace {
  const n = Number.parseInt(hash('sha256', session).slice(0, 12), 16)
  return { at: order === 'made' ? (created ?? 0) : at, n }
}

function matchesPage(card: Card, query: CardQuery, words: readonly string[]): boolean {
  const { since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = query
  if (card.at < since || card.at >= until) return false
  if (query.outcome !== undefined && !hasOutcome(card, card.trouble ?? null, query.outcome)) return false
  if (query.parent === undefined && !query.children && card.session !== card.root) return false
  if (!isAgentWanted(card.agent, query.agent) || (query.owner ?? card.owner) !== card.owner) return false
  return words.length === 0 || hasAllWords(searchableText({ ...card, title: card.title ?? null }), words)
}
