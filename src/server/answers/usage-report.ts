// The handler for usage: what was spent by day, agent and model, counted from the logs. Each log is read once and then
// only where it grew. One request reads a bounded number of events and says whether it reached the end.
import type { Card, Event, CompleteStore } from '../../kernel/index.ts'
import { usdOf } from '../../view/usd.ts'
import { type ApiRequest, type ApiAnswer, OWNER, mayReach } from '../server-host.ts'
import type { Principal, UsageAnswer, UsageRow } from '../wire.ts'

const HOUR_MS = 60 * 60 * 1_000
const DAY_MS = 24 * HOUR_MS
const DAYS = 30
const EVENTS_MAX = 50_000
const PAGE = 500

type UsageSum = { cost: number; inputTokens: number; outputTokens: number; replies: number }
/** How far a log was read, and what it spent by day and model. */
type SessionUsage = { seq: number; readonly spent: Map<string, UsageSum>; readonly card: Card; recent: SpendingEntry[] }
type SpendingEntry = { readonly at: number; readonly cost: number }

const usageByStore = new WeakMap<CompleteStore, Map<string, SessionUsage>>()

export async function handleUsage({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  const { store } = host
  const { days = DAYS } = query as { readonly days?: number }
  const now = store.now()
  const since = now - days * DAY_MS
  const known = usageByStore.get(store) ?? new Map<string, SessionUsage>()
  usageByStore.set(store, known)
  let left = EVENTS_MAX
  const wanted: SessionUsage[] = []
  for await (const card of listCardsFor(store, principal)) {
    if (card.at < since) continue
    const before = known.get(card.session)
    // The id may now belong to another session, if the first one was removed.
    const book = before && before.card.created === card.created && before.seq <= card.seq ? before : emptyUsage(card)
    known.set(card.session, book)
    wanted.push(book)
    while (left > 0 && book.seq < card.seq) {
      const { events, damaged } = await store.read(card.session, book.seq, PAGE)
      for (const event of events) countEvent(book, event)
      left -= events.length
      if (damaged || events.length === 0) break
    }
  }
  const rows = usageRows(wanted, dayOf(since))
  return { json: { rows, complete: left > 0, now, hourUsd: usdOf(spentLastHour(wanted, now)) } satisfies UsageAnswer }
}

function emptyUsage(card: Card): SessionUsage {
  return { seq: 0, spent: new Map(), card, recent: [] }
}

/** Entries older than an hour are dropped. */
function spentLastHour(wanted: readonly SessionUsage[], now: number): number {
  let sum = 0
  for (const book of wanted) {
    if (book.recent.length > 0) book.recent = book.recent.filter(({ at }) => at > now - HOUR_MS)
    for (const { cost } of book.recent) sum += cost
  }
  return sum
}

async function* listCardsFor(store: CompleteStore, principal: Principal): AsyncGenerator<Card> {
  const where = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  for (let after = ''; ; ) {
    const page = await store.list({ ...where, after, limit: PAGE })
    for (const card of page) if (mayReach(principal, card)) yield card
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = last.session
  }
}

/** A calendar day in UTC. */
function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function countEvent(book: SessionUsage, event: Event): void {
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

function usageRows(wanted: readonly SessionUsage[], from: string): readonly UsageRow[] {
  const rows = new Map<string, UsageSum & { readonly day: string; readonly agent: string; readonly model: string }>()
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
