// Which sessions other processes changed since the last look, for those that watch the cards of all sessions. It finds what grew and
// what was removed; a card that another process changes without an event is not seen here.
import type { Removal } from '../../ports/store.ts'
import type { Statements } from './schema.ts'

export class CardNews {
  readonly #sql: Statements
  #pos: number
  #removals: number

  constructor(sql: Statements) {
    this.#sql = sql
    this.#pos = this.#last()
    this.#removals = this.#removed()
  }

  look(): readonly string[] {
    const removals = this.#removed()
    const gone = this.#sql.removals.all(Math.max(0, removals - this.#removals)) as Removal[]
    // Their places may have been given to other events.
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
