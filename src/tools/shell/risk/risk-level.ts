// The risk of a command as one of four levels, and how findings add up. The rules that find risks are elsewhere.
import { shortenText } from '../../../view/shown-text.ts'

/** From harmless to forbidden. A sandbox limits a `bounded_write`; it does not limit the two levels after it. */
export type RiskLevel = 'safe_read' | 'bounded_write' | 'needs_approval' | 'blocked'

export type Risk = { readonly level: RiskLevel; readonly reasons: readonly string[] }

const ORDER: readonly RiskLevel[] = ['safe_read', 'bounded_write', 'needs_approval', 'blocked']
const REASONS_MAX = 10
const REASON_CHARACTERS_MAX = 160

/** Collects the findings of rules. The level only rises, so no order and no number of findings hides one. */
export class RiskFindings {
  #rank = 0
  #reasons = new Map<string, number>()

  note(level: RiskLevel, reason: string): void {
    const rank = ORDER.indexOf(level)
    this.#rank = Math.max(this.#rank, rank)
    const text = shortenText(reason, REASON_CHARACTERS_MAX)
    if ((this.#reasons.get(text) ?? -1) < rank) this.#reasons.set(text, rank)
  }

  /** Only the reasons for the highest level; lesser ones would distract. */
  risk(): Risk {
    const reasons = [...this.#reasons].filter(([, rank]) => rank === this.#rank).map(([reason]) => reason)
    return { level: ORDER[this.#rank] ?? 'needs_approval', reasons: reasons.slice(0, REASONS_MAX) }
  }
}
