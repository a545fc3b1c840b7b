// A transaction that runs step by step for as long as its owner likes; a move reads and writes with it. It never starts
// again after its first statement: an error is reported, and nothing of it is done.
import { Fault } from '../../kernel/failure.ts'
import type { DatabaseConnection } from './connections.ts'
import { type Sql, type PostgresValue, UnknownOutcomeError } from './sql.ts'
import { sqlInSchema } from './schema-texts.ts'

/** Its owner may be waiting for the other store of a move. */
const MAY_IDLE = 'set local idle_in_transaction_session_timeout = 0'

class TransactionUndone extends Error {}

export class HeldTransaction implements Sql {
  readonly #sql: Sql
  readonly #done: Promise<void>
  readonly #end: (undo: Error | null) => void

  private constructor(sql: Sql, done: Promise<void>, end: (undo: Error | null) => void) {
    this.#sql = sql
    this.#done = done
    this.#end = end
  }

  /** `first` is the first statement, which waits for locks. It is tried again until it gets them. */
  static async begin(link: DatabaseConnection, schema: string, first: string): Promise<HeldTransaction> {
    let end: (undo: Error | null) => void = () => {}
    const ending = new Promise<void>((resolve, reject) => {
      end = (undo) => (undo === null ? resolve() : reject(undo))
    })
    ending.catch(() => {})
    let given = false
    return new Promise<HeldTransaction>((resolve, reject) => {
      const work = async (inner: Sql): Promise<void> => {
        if (given) throw new Fault('store_busy', BROKEN)
        const sql = sqlInSchema(inner, schema)
        await sql.ask('', `${first}; ${MAY_IDLE}`)
        given = true
        resolve(new HeldTransaction(sql, done, end))
        await ending
      }
      // `commit`, `undo` or the failed statement awaits this.
      const done: Promise<void> = link.transaction(work, { isLong: true, waits: true }).catch((error: unknown) => {
        throw error instanceof UnknownOutcomeError ? error.fault : error
      })
      done.catch(reject)
    })
  }

  async ask<Row extends object>(
    name: string,
    text: string,
    values?: readonly PostgresValue[],
  ): Promise<readonly Row[]> {
    try {
      return await this.#sql.ask<Row>(name, text, values)
    } catch (error) {
      // The connection interprets the error.
      this.#end(error instanceof Error ? error : new Error(String(error)))
      await this.#done
      throw error
    }
  }

  async commit(): Promise<void> {
    this.#end(null)
    await this.#done
  }

  /** Rolls everything back. May be called again, and after the end. */
  async undo(): Promise<void> {
    this.#end(new TransactionUndone())
    await this.#done.catch(() => {})
  }
}

const BROKEN =
  'The connection to the database broke, and what was under way there is not done. Run the same command again.'
