// Fills in what files before the tenth schema lack, from their logs: titles, owners, times, agents and tokens of
// sessions, their search texts, and the checksums of these. Runs inside the transaction that migrates the file.
import type { Event } from '../../kernel/event.ts'
import type { Card } from '../../ports/store.ts'
import { crc32, isSound, rowSum } from '../plan/checksum.ts'
import { type LogFacts, factsAfter, searchableText, factsOfFork, NO_FACTS } from '../plan/log-facts.ts'
import { upcast } from '../plan/upcast.ts'
import type { Database } from './driver.ts'
import { headSumOf } from './sqlite-rows.ts'
import { SPAN } from './sqlite-schema.ts'
import { snapshotChecksum } from './sqlite-snapshots.ts'

/** How many rows are held at once. */
const PIECE = 5_000

export function fillFacts(db: Database): void {
  fillSessions(db, readFacts(db))
  moveSnapshots(db)
}

/** Only events with such facts are parsed. An event that cannot be parsed is damaged, and found when it is read. */
function readFacts(db: Database): ReadonlyMap<number, LogFacts> {
  const { last } = db.prepare('SELECT coalesce(max(pos), 0) AS last FROM events').get() as { last: number }
  const types = ['user.message', 'user.rename', 'session.created', 'session.imported']
  const marks = ['"usage":{', ...types.map((type) => `"type":"${type}"`)]
  const piece = db.prepare(`SELECT session, body FROM events WHERE pos > ? AND pos <= ?
    AND (${marks.map((mark) => `instr(body, '${mark}') > 0`).join(' OR ')})`)
  const numberOf = db.prepare('SELECT n FROM sessions WHERE id = ?')
  const all = new Map<number, LogFacts>()
  for (let from = 0; from < last; from += PIECE) {
    for (const { session, body } of piece.all(from, from + PIECE) as { session: number; body: string }[]) {
      const event = parseEvent(body)
      if (event === null) continue
      const facts = factsAfter(all.get(session) ?? NO_FACTS, event)
      const created = event.type === 'session.created' ? event : null
      const origin = created?.fork && (numberOf.get(created.fork.session) as { n: number } | undefined)
      const from = origin && all.get(origin.n)
      all.set(session, created && from ? factsOfFork(facts, created, from) : facts)
    }
  }
  return all
}

function parseEvent(body: string): Event | null {
  try {
    return upcast(JSON.parse(body) as Event)
  } catch {
    return null
  }
}

type OldSessionRow = {
  readonly n: number
  readonly id: string
  readonly card: string
  readonly cardSum: number | null
  readonly seq: number
  readonly at: number
  readonly pos: number
  readonly tail: string
  readonly headSum: number | null
}

/** Rows that do not match their checksum stay as they are, so that the damage is still found. */
function fillSessions(db: Database, all: ReadonlyMap<number, LogFacts>): void {
  const piece =
    db.prepare(`SELECT s.n, s.id, s.card, s.card_sum AS cardSum, h.seq, h.at, h.pos, h.tail, h.sum AS headSum
    FROM sessions s JOIN heads h ON h.n = s.n WHERE s.n > ? ORDER BY s.n LIMIT ${PIECE}`)
  const name = db.prepare('UPDATE sessions SET agent = ?, created = ?, title = ?, owner = ?, facts_sum = ? WHERE n = ?')
  const count = db.prepare('UPDATE heads SET tokens = ?, sum = ? WHERE n = ?')
  const find = db.prepare('INSERT INTO finds (n, text) VALUES (?, ?)')
  for (
    let rows = piece.all(0) as OldSessionRow[];
    rows.length > 0;
    rows = piece.all(rows.at(-1)?.n ?? 0) as OldSessionRow[]
  ) {
    for (const row of rows) {
      const { n, id, card, cardSum, headSum } = row
      const { created, title, owner, tokens } = all.get(n) ?? NO_FACTS
      const { agent, labels = {} } = isSound(cardSum, n, id, card) ? parseCard(card) : UNREADABLE
      name.get(agent, created, title, owner, rowSum(n, agent, created, title, owner), n)
      find.get(n, searchableText({ session: id, agent: agent ?? '', title, labels }))
      const before = headSumOf({ ...row, tokens: null })
      if (headSum === null) count.get(tokens, null, n)
      else if (headSum === before) count.get(tokens, headSumOf({ ...row, tokens }), n)
    }
  }
}

const UNREADABLE = { agent: null, labels: {} } as const

function parseCard(card: string): Pick<Card, 'labels'> & { readonly agent: string | null } {
  try {
    return JSON.parse(card) as Card
  } catch {
    return UNREADABLE
  }
}

type OldSnapshot = {
  readonly n: number
  readonly id: string
  readonly seq: number
  readonly version: number
} & SummedBody
type SummedBody = { readonly sum: number; readonly body: string }

/** A damaged snapshot is left behind. */
function moveSnapshots(db: Database): void {
  const piece = db.prepare(`SELECT s.n, s.id, p.seq, p.version, p.sum, p.body FROM snapshots_before p
    JOIN sessions s ON s.n = p.session WHERE s.n > ? ORDER BY s.n LIMIT ${PIECE / 100}`)
  const keep = db.prepare('INSERT INTO snapshots (key, own, version, sum, body) VALUES (?, 1, ?, ?, ?)')
  for (
    let rows = piece.all(0) as OldSnapshot[];
    rows.length > 0;
    rows = piece.all(rows.at(-1)?.n ?? 0) as OldSnapshot[]
  ) {
    for (const { n, id, seq, version, sum, body } of rows) {
      if ((crc32(body) | 0) === sum)
        keep.get(n * SPAN + seq, version, snapshotChecksum(id, { seq, version, body }), body)
    }
  }
  db.exec('DROP TABLE snapshots_before')
}
