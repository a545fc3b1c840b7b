// `due`: the queries for due sessions and for the next due time, in a file with a hundred thousand sessions whose wakes lie in
// the future, while a worker drives some others. Only the queries, as the due loop runs them each time it looks.
import { join } from 'node:path'
import type { Card, OwnerWrite, CompleteStore } from '../src/ports/store.ts'
import { Harness, scripted } from '../src/index.ts'
import { loadDriver } from '../src/stores/sqlite/driver.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { openBare, warmDriver } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'

const SESSIONS = 100_000
const DRIVEN = 64
const LOOKS = 500
const BATCH = 1_000
const HOUR_MS = 3_600_000

/** In no order, so that the index is not a copy of the table. */
function dueOf(n: number, now: number): number {
  return now + 24 * HOUR_MS + ((n * 7_919) % SESSIONS) * 1_000
}

function asleep(store: CompleteStore, n: number, due: number): OwnerWrite {
  const session = `session-${n}`
  const at = store.now()
  const rest = { asks: [], waits: [], wakes: 1, outcome: null } as const
  const card: Card = { session, agent: 'a', root: session, status: 'rescheduling', due, seq: 2, at, cost: 0, ...rest }
  const stamp = { at, epoch: 0 }
  return {
    session,
    lane: 'owner',
    epoch: 0,
    expectedSeq: 0,
    events: [
      { ...stamp, seq: 1, type: 'session.created', agent: 'a', planner: 'model' },
      { ...stamp, seq: 2, type: 'wake.scheduled', due, reason: 'later', key: 'w' },
    ],
    card,
  }
}

const fixture: Case = async (folder) => {
  const store = sqlite(join(folder, 'store.db'))
  const now = store.now()
  const numbers = Array.from({ length: SESSIONS }, (_, n) => n)
  for (let from = 0; from < SESSIONS; from += BATCH)
    await store.commit(numbers.slice(from, from + BATCH).map((n) => asleep(store, n, dueOf(n, now))))
  for (const n of numbers.slice(0, DRIVEN)) await store.claim(`session-${n}`, 'worker', 24 * HOUR_MS)
  await store.close()
  const bare = openBare(join(folder, 'bare.db'))
  bare.db.exec('CREATE TABLE wakes (id TEXT NOT NULL, due REAL NOT NULL); BEGIN')
  const insert = bare.db.prepare('INSERT INTO wakes (id, due) VALUES (?, ?)')
  for (const n of numbers) insert.run(`session-${n}`, dueOf(n, now))
  bare.db.exec('COMMIT; CREATE INDEX wakes_due ON wakes (due)')
  bare.close()
  return {}
}

const harness: Case = async (folder) => {
  warmDriver()
  const store = sqlite(join(folder, 'store.db'))
  await look(store)
  const begun = cpuMs()
  for (let i = 0; i < LOOKS; i++) await look(store)
  const ms = (cpuMs() - begun) / LOOKS
  await store.close()
  return { ms }
}

async function look(store: CompleteStore): Promise<void> {
  const found = (await store.due(DRIVEN)).sessions
  const next = (await store.due(0)).next
  if (found.length > 0 || next === null) throw new Error(`found ${found.length}, and the next at ${next}`)
}

/** The same two questions, of a table that has nothing else. */
const floor: Case = async (folder) => {
  warmDriver()
  const bare = openBare(join(folder, 'bare.db'))
  const due = bare.db.prepare('SELECT id FROM wakes WHERE due <= ? ORDER BY due LIMIT ?')
  const next = bare.db.prepare('SELECT due FROM wakes ORDER BY due LIMIT 1')
  const now = Date.now()
  due.all(now, DRIVEN)
  const begun = cpuMs()
  for (let i = 0; i < LOOKS; i++) {
    const found = due.all(now, DRIVEN)
    if (found.length > 0 || next.get() === undefined) throw new Error(`found ${found.length}`)
  }
  const ms = (cpuMs() - begun) / LOOKS
  bare.close()
  return { ms }
}

const PAGES = 50
const PAGE = 100

/** A page of cards with what their trees cost, and what is pending where nothing is. */
const lists: Case = async (folder) => {
  warmDriver()
  const store = sqlite(join(folder, 'store.db'))
  const harness = new Harness({ model: scripted([]), store, worker: { drives: false }, secrets: {} })
  await harness.pending()
  const page = async (after: string): Promise<string> =>
    (await harness.list({ order: 'id', cursor: after, limit: PAGE })).cards.at(-1)?.session ?? ''
  let after = await page('')
  const listing = cpuMs()
  for (let i = 0; i < PAGES; i++) after = await page(after)
  const pageMs = (cpuMs() - listing) / PAGES
  const looking = cpuMs()
  for (let i = 0; i < PAGES; i++)
    if ((await harness.pending()).length > 0) throw new Error('a session that only sleeps waits for somebody')
  const pendingMs = (cpuMs() - looking) / PAGES
  await harness.close()
  return { pageMs, pendingMs }
}

/** The same rows, by the same index, and nothing made of them. */
const listsFloor: Case = async (folder) => {
  warmDriver()
  const db = new (loadDriver())(join(folder, 'store.db'))
  const cards = db.prepare('SELECT id, card FROM sessions WHERE id > ? ORDER BY id LIMIT ?')
  let after = ''
  const begun = cpuMs()
  for (let i = 0; i < PAGES; i++) after = (cards.all(after, PAGE) as { id: string }[]).at(-1)?.id ?? ''
  const pageMs = (cpuMs() - begun) / PAGES
  const waiting = db.prepare(`SELECT id FROM sessions WHERE status = 'requires_action' AND id > ? LIMIT ?`)
  const looking = cpuMs()
  for (let i = 0; i < PAGES; i++) waiting.all('', PAGE)
  const pendingMs = (cpuMs() - looking) / PAGES
  db.close()
  return { pageMs, pendingMs }
}

export const due: Family = {
  repetitions: 7,
  fixture,
  cases: { harness, floor, lists, listsFloor },
  figures: [
    {
      name: 'due',
      unit: 'CPU ms',
      target: 5,
      value: (median) => median('harness.ms'),
      floor: (median) => median('floor.ms'),
      note: () => `${SESSIONS} sessions with wakes in the future`,
    },
    {
      name: 'due.list',
      unit: 'CPU ms',
      target: 50,
      value: (median) => median('lists.pageMs'),
      floor: (median) => median('listsFloor.pageMs'),
      note: () => `a page of ${PAGE} cards`,
    },
    {
      name: 'due.pending',
      unit: 'CPU ms',
      target: 50,
      value: (median) => median('lists.pendingMs'),
      floor: (median) => median('listsFloor.pendingMs'),
      note: () => 'nothing is pending',
    },
  ],
}
