// A transaction that is asked step by step, for as long as its owner likes: a move reads and writes by it. It is never begun again once
// something was asked: what broke is said, and nothing of it was done.
import { Fault } from '../../kernel/failure.ts'
import type { Link } from './connect.ts'
import { type Sql, type SqlValue, Unknown } from './sql.ts'
import { inSchema } from './texts.ts'

/** Its owner may wait for the other store of a move. */
const MAY_IDLE = 'set local idle_in_transaction_session_timeout = 0'

class Undone extends Error {}

export class Held implements Sql {
  readonly #sql: Sql
  readonly #done: Promise<void>
  readonly #end: (undo: Error | null) => void

  private constructor(sql: Sql, done: Promise<void>, end: (undo: Error | null) => void) {
    this.#sql = sql
    this.#done = done
    this.#end = end
  }

  /** `first` is its first statement, which waits for locks. It is tried again while it gets none. */
  static async begin(link: Link, schema: string, first: string): Promise<Held> {
    let end: (undo: Error | null) => void = () => {}
    const ending = new Promise<void>((resolve, reject) => {
      end = (undo) => (undo === null ? resolve() : reject(undo))
    })
    ending.catch(() => {})
    let given = false
    return new Promise<Held>((resolve, reject) => {
      const work = async (inner: Sql): Promise<void> => {
        if (given) throw new Fault('store_busy', BROKEN)
        const sql = inSchema(inner, schema)
        await sql.ask('', `${first}; ${MAY_IDLE}`)
        given = true
        resolve(new Held(sql, done, end))
        await ending
      }
      // Awaited by `commit`, `undo`, or the statement that failed.
      const done: Promise<void> = link.transaction(work, { isLong: true, waits: true }).catch((error: unknown) => {
        throw error instanceof Unknown ? error.fault : error
      })
      done.catch(reject)
    })
  }

  async ask<Row extends object>(name: string, text: string, values?: readonly SqlValue[]): Promise<readonly Row[]> {
    try {
      return await this.#sql.ask<Row>(name, text, values)
    } catch (error) {
      // The connection knows what it means.
      this.#end(error instanceof Error ? error : new Error(String(error)))
      await this.#done
      throw error
    }
  }

  async commit(): Promise<void> {
    this.#end(null)
    await this.#done
  }

  /** Whatever it has done is not done. May be called again, and after its end. */
  async undo(): Promise<void> {
    this.#end(new Undone())
    await this.#done.catch(() => {})
  }
}

const BROKEN =
  'The connection to the database broke, and what was under way there is not done. Run the same command again.'
