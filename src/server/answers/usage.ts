// What was spent, by day, agent and model, counted from the logs. Each log is read once and then only where it grew; one request reads so
// many events at most, and says whether it came to the end.
import type { Card, Event, Store } from '../../kernel/index.ts'
import { usdOf } from '../../view/usd.ts'
import { type Asked, type Given, OWNER, reaches } from '../host.ts'
import type { Principal, UsageAnswer, UsageRow } from '../wire.ts'

const HOUR_MS = 60 * 60 * 1_000
const DAY_MS = 24 * HOUR_MS
const DAYS = 30
const EVENTS_MAX = 50_000
const PAGE = 500

type Counted = { cost: number; inputTokens: number; outputTokens: number; replies: number }
/** How far a log was read, and what it spent, by day and model. */
type Book = { seq: number; readonly spent: Map<string, Counted>; readonly card: Card; recent: Spent[] }
type Spent = { readonly at: number; readonly cost: number }

const books = new WeakMap<Store, Map<string, Book>>()

export async function usage({ host, principal, query }: Asked): Promise<Given> {
  const { store } = host
  const { days = DAYS } = query as { readonly days?: number }
  const now = store.now()
  const since = now - days * DAY_MS
  const known = books.get(store) ?? new Map<string, Book>()
  books.set(store, known)
  let left = EVENTS_MAX
  const wanted: Book[] = []
  for await (const card of cardsOf(store, principal)) {
    if (card.at < since) continue
    const before = known.get(card.session)
    // The same id may be that of another session since: the first was removed.
    const book = before && before.card.created === card.created && before.seq <= card.seq ? before : emptyBook(card)
    known.set(card.session, book)
    wanted.push(book)
    while (left > 0 && book.seq < card.seq) {
      const { events, damaged } = await store.read(card.session, book.seq, PAGE)
      for (const event of events) count(book, event)
      left -= events.length
      if (damaged || events.length === 0) break
    }
  }
  const rows = rowsOf(wanted, dayOf(since))
  return { json: { rows, complete: left > 0, now, hourUsd: usdOf(hourOf(wanted, now)) } satisfies UsageAnswer }
}

function emptyBook(card: Card): Book {
  return { seq: 0, spent: new Map(), card, recent: [] }
}

/** What is older is let go. */
function hourOf(wanted: readonly Book[], now: number): number {
  let sum = 0
  for (const book of wanted) {
    if (book.recent.length > 0) book.recent = book.recent.filter(({ at }) => at > now - HOUR_MS)
    for (const { cost } of book.recent) sum += cost
  }
  return sum
}

async function* cardsOf(store: Store, principal: Principal): AsyncGenerator<Card> {
  const where = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  for (let after = ''; ; ) {
    const page = await store.list({ ...where, after, limit: PAGE })
    for (const card of page) if (reaches(principal, card)) yield card
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = last.session
  }
}

/** A day of the calendar, in UTC. */
function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function count(book: Book, event: Event): void {
  book.seq = event.seq
  if (!('usage' in event) && !('cost' in event)) return
  const { usage: used, cost = 0 } = event
  const model = ('route' in event && event.route) || 'unknown'
  const key = `${dayOf(event.at)} ${model}`
  const spent = book.spent.get(key) ?? { cost: 0, inputTokens: 0, outputTokens: 0, replies: 0 }
  book.spent.set(key, spent)
  spent.cost += cost
  if (cost > 0) book.recent.push({ at: event.at, cost })
  spent.inputTokens += used?.inputTokens ?? 0
  spent.outputTokens += used?.outputTokens ?? 0
  if (event.type === 'agent.message') spent.replies += 1
}

function rowsOf(wanted: readonly Book[], from: string): readonly UsageRow[] {
  const rows = new Map<string, Counted & { readonly day: string; readonly agent: string; readonly model: string }>()
  for (const { spent, card } of wanted) {
    for (const [key, { cost, inputTokens, outputTokens, replies }] of spent) {
      const day = key.slice(0, 10)
      const model = key.slice(11)
      if (day < from) continue
      const name = JSON.stringify([day, card.agent, model])
      const row = rows.get(name) ?? { day, agent: card.agent, model, ...NOTHING }
      rows.set(name, row)
      row.cost += cost
      row.inputTokens += inputTokens
      row.outputTokens += outputTokens
      row.replies += replies
    }
  }
  return [...rows.values()]
    .map(({ cost, ...row }) => ({ ...row, usd: usdOf(cost) }))
    .toSorted((a, b) => `${b.day} ${a.agent} ${a.model}`.localeCompare(`${a.day} ${b.agent} ${b.model}`))
}

const NOTHING = { cost: 0, inputTokens: 0, outputTokens: 0, replies: 0 }
