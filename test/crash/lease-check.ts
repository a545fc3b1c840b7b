// Leases that were lost without a kill: a session was taken from a worker that lived and had not given it back. No promise is
// broken by it, and none may be: it says how busy the machine was. Pure.
import type { MarkLine } from './evidence.ts'

/** One hold of a session by one worker. `endedAt`: when that worker was killed. */
type Hold = { readonly epoch: number; readonly at: number; readonly endedAt: number | null; isReleased: boolean }

export class LeaseCheck {
  readonly #holds = new Map<string, Hold[]>()

  /** All that one worker did, once it is gone. */
  add(marks: readonly MarkLine[], endedAt: number | null): void {
    const current = new Map<string, Hold>()
    const release = (session: string): void => {
      const hold = current.get(session)
      if (hold) hold.isReleased = true
    }
    const refused = new Set(marks.flatMap((mark) => (mark.type === 'end' && !mark.ok ? [mark.n] : [])))
    for (const mark of marks) {
      if (mark.type === 'release') release(mark.session)
      else if (mark.type === 'begin' && !refused.has(mark.n))
        for (const written of mark.writes) if (written.release) release(written.session)
      if (mark.type !== 'claim') continue
      const hold: Hold = { epoch: mark.epoch, at: mark.at, endedAt, isReleased: false }
      current.set(mark.session, hold)
      const holds = this.#holds.get(mark.session) ?? []
      holds.push(hold)
      this.#holds.set(mark.session, holds)
    }
  }

  /** How often a session was taken from a worker that lived. */
  get lost(): number {
    let lost = 0
    for (const holds of this.#holds.values()) {
      const inOrder = holds.toSorted((a, b) => a.epoch - b.epoch)
      for (const [i, { at }] of inOrder.slice(1).entries()) {
        const before = inOrder[i] as Hold
        if (!before.isReleased && (before.endedAt === null || before.endedAt > at)) lost += 1
      }
    }
    return lost
  }
}
