// How risky a command is, as one of four levels, and how findings add up. What is risky is not known here.
import { shortened } from '../../../view/text.ts'

/** From harmless to forbidden. `bounded_write` is what a sandbox bounds; the two after it are what it does not. */
export type Level = 'safe_read' | 'bounded_write' | 'needs_approval' | 'blocked'

export type Risk = { readonly level: Level; readonly reasons: readonly string[] }

const ORDER: readonly Level[] = ['safe_read', 'bounded_write', 'needs_approval', 'blocked']
const REASONS_MAX = 10
const REASON_CHARACTERS_MAX = 160

/** Takes what rules find. The level only ever rises, so no order and no number of findings hides one. */
export class Findings {
  #rank = 0
  #reasons = new Map<string, number>()

  note(level: Level, reason: string): void {
    const rank = ORDER.indexOf(level)
    this.#rank = Math.max(this.#rank, rank)
    const text = shortened(reason, REASON_CHARACTERS_MAX)
    if ((this.#reasons.get(text) ?? -1) < rank) this.#reasons.set(text, rank)
  }

  /** The reasons that made the level what it is; lesser ones would only distract. */
  risk(): Risk {
    const reasons = [...this.#reasons].filter(([, rank]) => rank === this.#rank).map(([reason]) => reason)
    return { level: ORDER[this.#rank] ?? 'needs_approval', reasons: reasons.slice(0, REASONS_MAX) }
  }
}
