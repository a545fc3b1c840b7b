// Finds the sessions that other processes changed since the last look, for watchers of all cards. It finds growth and
// removals; a card that another process changes without an event is not found.
import type { Removal } from '../../ports/store.ts'
import type { SqliteStatements } from './sqlite-schema.ts'

export class CardChanges {
  readonly #sql: SqliteStatements
  #pos: number
  #removals: number

  constructor(sql: SqliteStatements) {
    this.#sql = sql
    this.#pos = this.#last()
    this.#removals = this.#removed()
  }

  look(): readonly string[] {
    const removals = this.#removed()
    const gone = this.#sql.removals.all(Math.max(0, removals - this.#removals)) as Removal[]
    // Their positions may have been reused for other events.
    const from = gone.reduce((pos, { events }) => pos - events, this.#pos)
    const last = this.#last()
    const grown = this.#sql.grownIn.all(from, last) as { readonly id: string }[]
    this.#pos = last
    this.#removals = removals
    return [...grown.map(({ id }) => id), ...gone.map(({ session }) => session)]
  }

  #last(): number {
    return (this.#sql.last.get() as { readonly pos: number }).pos
  }

  #removed(): number {
    return (this.#sql.removed.get() as { readonly count: number }).count
  }
}
