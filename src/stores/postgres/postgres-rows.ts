// Rows of a Postgres store as objects. Fetched rows arrive as JSON, because one statement reads many tables.
import type { Card } from '../../ports/store.ts'
import { rowSum } from '../plan/checksum.ts'
import { type LogFacts, cardFacts } from '../plan/log-facts.ts'
import type { SessionRecord, Lease, SessionTrouble } from '../plan/plan-writes.ts'

/** The stored row of a session. Its log ends with the checksum `sum`; `card` is the last written card, as text. */
export type PostgresRow = SessionRecord & {
  readonly n: number
  /** Increases with each change of the row. */
  readonly v: number
  readonly sum: number
  readonly root: string
  readonly agent: string
  readonly folder: string | null
  readonly parent: string | null
  readonly card: string
  /** Why the session can only be read, or null. */
  readonly damage: string | null
}

/** `host`, `pid` and `started` identify its process, if the worker gave them. */
export type PostgresWorkerRow = Lease & {
  readonly address: string | null
  readonly host: string | null
  readonly pid: number | null
  readonly started: number | null
}

/** Numbers as float8: one that JavaScript cannot hold must not break the whole fetch. */
export const HEAD = `s.n::float8 as n, s.v::float8 as v, s.id, s.seq, s.at, s.sum, s.epoch::float8 as epoch, s.worker, s.due, s.urgent,
  s.tries, s.trouble, s.status, s.root, s.agent, s.card, s.tokens, s.created, s.title, s.owner, s.folder, s.parent, s.facts_sum as "factsSum"`

/** A row as HEAD selects it. */
export type StoredPostgresRow = Omit<PostgresRow, 'trouble' | 'facts' | 'damage'> & {
  readonly id: string
  readonly trouble: string | null
  readonly tokens: number
  readonly created: number
  readonly title: string | null
  readonly owner: string | null
  readonly factsSum: number | null
}

/** `last` is the checksum of the last event of its log; null if that is missing, undefined if it was not read. */
export function parseRow(stored: StoredPostgresRow, last?: number | null): PostgresRow {
  const { n, v, seq, at, sum, epoch, worker, due, urgent, tries, status, root, agent, folder, parent, card } = stored
  return {
    n,
    v,
    seq,
    at,
    sum,
    epoch,
    worker,
    due,
    urgent,
    tries,
    status,
    trouble: parseTrouble(stored),
    root,
    agent,
    folder,
    parent,
    card,
    facts: factsOf(stored),
    damage: damageOf(stored, last),
  }
}

/** The checksum of the log facts that the row repeats. */
export function factsSumOf({ n, agent, facts }: Pick<PostgresRow, 'n' | 'agent' | 'facts'>): number {
  return rowSum(n, agent, facts.created, facts.title, facts.owner)
}

function damageOf(
  { seq, epoch, sum, trouble, ...row }: StoredPostgresRow,
  last: number | null | undefined,
): string | null {
  const { n, agent, factsSum } = row
  if (factsSum !== null && factsSum !== factsSumOf({ n, agent, facts: factsOf(row) })) return FACTS_DAMAGED
  if (!Number.isSafeInteger(epoch) || epoch >= Number.MAX_SAFE_INTEGER) return `its epoch is ${epoch}`
  if (last === null) return `its last event, ${seq}, is missing`
  if (last !== undefined && last !== sum) return `event ${seq}: the log does not end as its session says`
  if (trouble !== null && parseTrouble({ trouble }) === null) return 'its trouble cannot be read'
  return parseCard(row.card) === null ? 'its card cannot be read' : null
}

function parseTrouble({ trouble }: Pick<StoredPostgresRow, 'trouble'>): SessionTrouble | null {
  return trouble === null ? null : (parseObject(trouble) as SessionTrouble | null)
}

const FACTS_DAMAGED = 'its agent, time, title or owner does not match its checksum'

function factsOf({
  created,
  tokens,
  title,
  owner,
}: Pick<StoredPostgresRow, 'created' | 'tokens' | 'title' | 'owner'>): LogFacts {
  return { created, tokens, title, owner, words: title }
}

/** A damaged session is listed with a note, so that it can be found by id. */
export function cardFromRow(stored: StoredPostgresRow): Card {
  const { id, root, seq, at, due, trouble, card, parent, agent } = stored
  const damage = damageOf(stored, undefined)
  const written = parseCard(card)
  const known = { session: id, root, seq, at } as const
  if (damage !== null || written === null) {
    const reason = `The session is damaged: ${damage ?? ''}. Export what can be read of it, or restore the database from a backup.`
    const rest = { due: null, cost: 0, asks: [], waits: [], wakes: 0, outcome: null } as const
    return { ...known, agent, status: 'requires_action', ...rest, trouble: { attempts: 0, reason, until: null } }
  }
  const { title: _title, owner: _owner, created: _created, tokens: _tokens, ...own } = written
  const present = { ...own, ...(parent === null ? {} : { parent }), seq, at, due, ...cardFacts(factsOf(stored)) }
  const why = parseTrouble({ trouble })
  return why === null ? present : { ...present, trouble: why }
}

/** Null if the text is not a card. */
export function parseCard(text: string): Card | null {
  return parseObject(text) as Card | null
}

function parseObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return value !== null && typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

const HOUR_MS = 3_600_000
const HOURS_MAX = 2 ** 52

export function hourOf(at: number): number {
  return Math.max(-HOURS_MAX, Math.min(HOURS_MAX, Math.floor(at / HOUR_MS)))
}
