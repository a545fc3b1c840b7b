// Episodes: what users asked of an agent in earlier runs, how each run ended, and how its answer began. They are in the
// file of the learnings. A harness writes one after each settled root run, and its users recall their own.
import { hash } from 'node:crypto'
import type { Frozen, Outcome } from '../kernel/content.ts'
import type { SettledRun } from '../runtime/hooks/settled-run.ts'
import type { Database, Statement } from '../stores/sqlite/driver.ts'
import { removeInvisible } from '../view/invisible.ts'
import { clipText, eventId } from '../view/shown-text.ts'

/** An earlier run. */
export type Episode = Frozen<{
  /** Names the event that settled the run. */
  id: string
  /** The session of the run. */
  session: string
  /** The first part of what the user asked. Empty if a wake began the run. */
  asked: string
  /** How the run ended. */
  outcome: Outcome['type']
  /** The first part of the answer. */
  answer: string
  /** When the run ended. */
  at: number
  /** The user who opened the session. Null: the host did not say. */
  owner: string | null
}>

/** The agent whose runs the episodes tell of, and the owner of their sessions. `owner` is empty if the host did not say. */
export type EpisodeOwner = { readonly agent: string; readonly owner: string }

type EpisodeRow = Omit<Episode, 'id' | 'owner'> & { readonly seq: number; readonly owner: string }

const ASKED_CHARS = 400
const ANSWER_CHARS = 600
/** Of one owner and agent. Recall reads all of them. */
export const EPISODES_MAX = 200

/** An older version of this package ignores the table. So it is made with the first use, and has no schema version. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS episodes (
    key TEXT PRIMARY KEY, agent TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL,
    at REAL NOT NULL, outcome TEXT NOT NULL, asked TEXT NOT NULL, answer TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS episodes_of ON episodes (owner, agent, at);
`
const SQL = {
  keep: `INSERT INTO episodes (key, agent, owner, session, seq, at, outcome, asked, answer)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
  bound: `DELETE FROM episodes WHERE key IN (SELECT key FROM episodes WHERE owner = ? AND agent = ?
    ORDER BY at DESC, key DESC LIMIT -1 OFFSET ${EPISODES_MAX})`,
  // One text: see ROWS in learnings.ts.
  list: `SELECT json_group_array(json_object('session', session, 'seq', seq, 'at', at, 'outcome', outcome, 'asked', asked,
    'answer', answer, 'owner', owner)) AS rows FROM
    (SELECT * FROM episodes WHERE owner = ? AND agent = ? ORDER BY at, session, seq)`,
  owned: 'SELECT json_group_array(key) AS rows FROM episodes WHERE owner = ?',
  one: `SELECT json_group_array(key) AS rows FROM episodes
    WHERE owner = ? AND agent = ? AND session = ? AND seq = ?`,
  drop: 'DELETE FROM episodes WHERE key = ?',
} as const

/** The episodes in the file of the learnings. Its caller opens the transactions. */
export class EpisodeTable {
  readonly #sql: Readonly<Record<keyof typeof SQL, Statement>>

  constructor(db: Database) {
    db.exec(SCHEMA)
    const prepared = Object.entries(SQL).map(([name, sql]) => [name, db.prepare(sql)] as const)
    this.#sql = Object.fromEntries(prepared) as Record<keyof typeof SQL, Statement>
  }

  /** Of two with one key the first stays. Then the oldest of this owner are removed, as many as there are too many. */
  keep(key: string, { session, seq, agent, owner, endedAt, outcome, prompt, text }: SettledRun): void {
    const [asked, answer] = [firstPart(prompt, ASKED_CHARS), firstPart(text, ANSWER_CHARS)]
    this.#sql.keep.run(key, agent, owner ?? '', session, seq, endedAt, outcome.type, asked, answer)
    this.#sql.bound.run(owner ?? '', agent)
  }

  /** The oldest first. */
  list({ agent, owner }: EpisodeOwner): readonly Episode[] {
    return rowsIn<EpisodeRow>(this.#sql.list.get(owner, agent)).map(({ seq, ...row }) => ({
      ...row,
      id: eventId(row.session, seq),
      owner: row.owner === '' ? null : row.owner,
    }))
  }

  /** The keys of the episodes of an owner, for every agent. */
  keysOf(owner: string): readonly string[] {
    return rowsIn(this.#sql.owned.get(owner))
  }

  /** The keys of one episode: none if there is no such episode. */
  keysAt({ agent, owner }: EpisodeOwner, session: string, seq: number): readonly string[] {
    return rowsIn(this.#sql.one.get(owner, agent, session, seq))
  }

  drop(key: string): void {
    this.#sql.drop.run(key)
  }
}

/** What stays of a forgotten episode, so that a run that is told again does not bring it back. */
export function episodeMark(key: string): string {
  return hash('sha256', `episode\0${key}`)
}

/** One line without hidden characters. Only the beginning of a long text is looked at. */
function firstPart(text: string, chars: number): string {
  return clipText(
    removeInvisible(text.slice(0, chars * 4))
      .text.replace(/\s+/g, ' ')
      .trim(),
    chars,
  )
}

function rowsIn<T>(found: unknown): readonly T[] {
  return JSON.parse((found as { readonly rows: string }).rows) as readonly T[]
}
