// Writes the rows of a move into the tables of an empty store, inside a transaction. It decides nothing and writes the
// rows as they come.
import { assert, Fault } from '../../kernel/failure.ts'
import type { Card } from '../../ports/store.ts'
import type { MoveRow, MoveSessionRow } from '../move/move-rows.ts'
import { addSum, crc32, logSeed } from '../plan/checksum.ts'
import { searchableText } from '../plan/log-facts.ts'
import { factsSumOf, hourOf } from './postgres-rows.ts'
import { ROOM } from './postgres-schema.ts'
import type { Sql } from './sql.ts'
import { shellCommand } from '../../view/shell-command.ts'
import { shownId } from '../../view/clean.ts'

/** How many bytes are sent at once. */
const SENT_BYTES = 1024 * 1024
const ROW_BYTES = 500

export class PostgresMoveWriter {
  readonly #sql: Sql
  /** The rows not sent yet, by table. */
  readonly #rows = new Map<string, object[]>()
  #bytes = 0
  /** The session that is being written. Its row follows its events, because it contains their checksum. */
  #session: MoveSessionRow | null = null
  #seq = 0
  #sum = 0
  /** The highest number of any present or removed session. */
  #last = 0
  #room = -1

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async add(row: MoveRow): Promise<void> {
    if (row.type === 'blob') {
      const values = [row.hash, row.media, crc32(row.data) | 0, Buffer.from(row.data)]
      await this.#sql.ask('fill blob', 'insert into ~blobs (hash, media, sum, data) values ($1, $2, $3, $4)', values)
      return
    }
    const n = this.#session?.number ?? 0
    if (row.type === 'session') await this.#begin(row)
    else if (row.type === 'event') this.#append(row.body)
    else if (row.type === 'inbox') this.#put('inbox', { n, id: row.id, seq: row.seq })
    else if (row.type === 'ref') this.#put('blob_refs', { n, hash: row.hash })
    else if (row.type === 'worker') this.#put('workers', { id: row.id, until: row.until, ttl: row.ttlMs })
    else if (row.type === 'hold') {
      const { key, amount, accounts, session } = row
      this.#put('holds', { key, amount, accounts: JSON.stringify(accounts), session })
    } else if (row.type === 'account') {
      const { id, limit: cap, held, spent, assumed } = row
      this.#put('accounts', { id, cap, held, spent, assumed })
    } else {
      const { type: _type, number, ...removal } = row
      this.#last = Math.max(this.#last, number)
      this.#put('removals', { ...removal, n: number, root: removal.session })
    }
    if (this.#bytes >= SENT_BYTES) await this.#send()
  }

  /** Numbering continues from there. */
  async end(): Promise<void> {
    this.#finish()
    await this.#send()
    if (this.#last > 0) await this.#sql.ask('fill numbers', `select setval('~numbers', $1::bigint)`, [this.#last])
  }

  async #begin(row: MoveSessionRow): Promise<void> {
    this.#finish()
    this.#session = row
    this.#seq = 0
    this.#sum = logSeed(row.id)
    this.#last = Math.max(this.#last, row.number)
    const room = Math.floor(row.number / ROOM)
    if (room !== this.#room) await this.#sql.ask('fill room', 'select ~make_room($1)', [room])
    this.#room = room
  }

  #append(body: string): void {
    this.#seq += 1
    this.#sum = addSum(this.#sum, body)
    this.#put('events', { n: this.#session?.number, seq: this.#seq, sum: this.#sum, body }, body.length)
  }

  #finish(): void {
    if (this.#session === null) return
    const { type: _type, number: n, card: bare, trouble, origin, ...row } = this.#session
    this.#session = null
    assert(this.#seq === row.seq, 'each session has as many events as it says')
    const { id, seq, at, due, agent, title } = row
    const card: Card = { ...bare, seq, at, due }
    const texts = [title, agent, row.folder, row.owner, ...Object.entries(card.labels ?? {}).flat()]
    if (texts.some((each) => each?.includes('\0'))) throw unwritableFault(id)
    const text = JSON.stringify(card)
    const facts_sum = factsSumOf({ n, agent, facts: { ...row, words: null } })
    const more = {
      n,
      v: 1,
      sum: this.#sum,
      facts_sum,
      hour: hourOf(at),
      trouble: trouble && JSON.stringify(trouble),
      card: text,
    }
    this.#put('sessions', { ...row, ...more }, text.length)
    this.#put('finds', { n, text: searchableText({ session: id, agent, title, labels: card.labels ?? {} }) })
    for (const [name, value] of Object.entries(card.labels ?? {})) this.#put('labels', { name, value, n })
    if (origin !== null) this.#put('forks', { n, origin })
  }

  #put(table: string, row: object, bytes = 0): void {
    const rows = this.#rows.get(table)
    if (rows) rows.push(row)
    else this.#rows.set(table, [row])
    this.#bytes += ROW_BYTES + bytes
  }

  async #send(): Promise<void> {
    for (const [table, rows] of this.#rows) {
      // By column names: the order of the table's columns does not matter, and the database fills in the rest.
      const names = Object.keys(rows[0] ?? {}).join(', ')
      const text = `insert into ~${table} (${names}) select ${names} from json_populate_recordset(null::~${table}, $1::json)`
      await this.#sql.ask(`fill ${table}`, text, [JSON.stringify(rows)])
    }
    this.#rows.clear()
    this.#bytes = 0
  }
}

/** For its title, agent, folder, owner or labels. In events a NUL is escaped. */
function unwritableFault(id: string): Fault {
  const text = `Session ${shownId(id)} cannot be moved: a text of it has a NUL, which no Postgres database holds. Keep the store in a file, or take it out: \`${shellCommand`terret delete ${id}`}\`.`
  return new Fault('store_unsupported', text)
}
